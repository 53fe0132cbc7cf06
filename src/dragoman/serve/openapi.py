"""What the descriptions of all routes share."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, Field

__all__ = ["DEEPL_REFUSALS", "REFUSALS", "Refused", "RefusedByDeepL"]


class Refused(BaseModel):
    """Why there is no result."""

    error: str = Field(examples=["Invalid request: missing q parameter"])


class RefusedByDeepL(BaseModel):
    """Why there is no result, as DeepL says it."""

    message: str = Field(examples=["Value for 'target_lang' not supported."])


_REASONS: Final = {
    400: "A parameter is missing or wrong.",
    401: "A key is needed.",
    403: "The key is wrong.",
    404: "There is no such thing.",
    405: "The path has other methods.",
    408: "The body did not come.",
    413: "The request is too large.",
    415: "The body is neither JSON nor a form.",
    429: "Too many requests; see Retry-After.",
    500: "A worker failed.",
    503: "The service is full or closing; see Retry-After.",
    504: "The deadline has passed.",
}


def _described(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": model, "description": text} for code, text in _REASONS.items()}


REFUSALS = _described(Refused)
DEEPL_REFUSALS = _described(RefusedByDeepL)
