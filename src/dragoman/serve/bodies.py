"""What all bodies share."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

__all__ = ["Body"]


class Body(BaseModel):
    """A body whose values have the types that are described, none converted."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _is_text(cls, value: Any) -> Any:
        """JSON can write half of a character; no text has one."""
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                try:
                    one.encode()
                except UnicodeEncodeError:
                    raise ValueError("half of a surrogate pair is no character") from None
            elif isinstance(one, dict):
                waiting += [*one, *one.values()]
            elif isinstance(one, list):
                waiting += one
        return value
