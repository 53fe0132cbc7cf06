"""LibreTranslate's API: the same fields, statuses and errors."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from dragoman.inference.documents.formats import KINDS
from dragoman.serve.openapi import REFUSALS
from dragoman.serve.request_bodies import Body, FormRoute, also_a_form
from dragoman.serve.translation_request import check_size, desk_of, guard_of, translate
from dragoman.text.languages import detect_languages, language_name

__all__ = ["router"]

MOST: Final = 16
"""Alternatives of a translation."""

router = APIRouter(route_class=FormRoute, tags=["LibreTranslate"], responses=REFUSALS)

Key = Annotated[str | None, Field(description="Where the service has keys.")]


class TranslateBody(Body):
    """What is to be translated."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"q": "Good morning!", "source": "en", "target": "de"}],
        },
    )
    q: str | list[str] = Field(description="A text, or several.")
    source: str = Field(description="Its language's code, or auto.")
    target: str = Field(description="The code of the language wanted.")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, le=MOST, description="Other translations of each text.")
    api_key: Key = None


class Detected(BaseModel):
    """A language a text may be in."""

    confidence: float = Field(description="0 to 100.")
    language: str


class TranslateAnswer(BaseModel):
    """Lists where q was one."""

    translatedText: str | list[str]
    detectedLanguage: Detected | list[Detected] | None = Field(
        None, description="Only if the source was auto."
    )
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Only if asked for.")


class DetectBody(Body):
    """A text in some language."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "Good morning!"}]})
    q: str
    api_key: Key = None


class Language(BaseModel):
    """A language that can be translated from."""

    code: str
    name: str
    targets: list[str]


@router.post(
    "/translate",
    response_model=TranslateAnswer,
    response_model_exclude_none=True,
    openapi_extra=also_a_form(TranslateBody),
)
async def translate_texts(request: Request, body: TranslateBody) -> dict[str, Any]:
    """Translate a text, or several."""
    guard = guard_of(request)
    key = guard.admit(request, body.api_key)
    texts = [body.q] if isinstance(body.q, str) else body.q
    found = await translate(
        request,
        texts,
        None if body.source == "auto" else body.source,
        body.target,
        html=body.format == "html",
        options={"n_best": body.alternatives + 1} if body.alternatives else {},
    )
    guard.bill(key, sum(map(len, texts)))
    answer: dict[str, list[Any]] = {"translatedText": [one.translation.text for one in found]}
    if body.source == "auto":
        answer["detectedLanguage"] = [_detected(one.source, one.confidence) for one in found]
    if body.alternatives:
        answer["alternatives"] = [
            [other.text for other in one.translation.alternatives] for one in found
        ]
    if isinstance(body.q, str):
        return {field: values[0] for field, values in answer.items()}
    return answer


@router.post("/detect", response_model=list[Detected], openapi_extra=also_a_form(DetectBody))
async def detect_language(request: Request, body: DetectBody) -> list[Detected]:
    """The languages a text may be in, of those served, likeliest first."""
    guard_of(request).admit(request, body.api_key)
    check_size(request, [body.q])
    return [_detected(*one) for one in detect_languages(body.q, desk_of(request).fleet.sources)]


@router.get("/languages")
async def languages(request: Request) -> list[Language]:
    """The languages that can be translated from, and to which."""
    fleet = desk_of(request).fleet
    return [
        Language(
            code=source,
            name=language_name(source),
            targets=[one.target for one in fleet.translators if one.source == source],
        )
        for source in fleet.sources
    ]


@router.get("/frontend/settings")
async def settings(request: Request) -> dict[str, Any]:
    """What LibreTranslate's page asks for."""
    desk = desk_of(request)
    first = desk.fleet.translators[:1]
    pairs = [
        {"code": code, "name": language_name(code)}
        for one in first
        for code in (one.source, one.target)
    ]
    return {
        "apiKeys": bool(desk.settings.keys),
        "charLimit": desk.settings.max_characters,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": bool(desk.settings.keys),
        "language": dict(zip(("source", "target"), pairs, strict=False)),
        "suggestions": False,
        "supportedFilesFormat": [f".{kind}" for kind in KINDS],
    }


def _detected(language: str, confidence: float) -> Detected:
    return Detected(confidence=round(100 * confidence, 2), language=language)
