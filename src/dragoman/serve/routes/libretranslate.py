"""LibreTranslate's API is offered with the same fields, statuses and errors."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from dragoman.inference.documents.formats import MEDIA_TYPES
from dragoman.serve.errors import ERROR_RESPONSES, ServiceError
from dragoman.serve.limits import MAX_ALTERNATIVES
from dragoman.serve.requests import (
    Body,
    FormRoute,
    check_size,
    form_schema,
    get_authenticator,
    get_corrections,
    get_service,
    keep_corrections,
    translate,
)
from dragoman.text.languages import choose_language, detect_languages, language_name

router = APIRouter(route_class=FormRoute, tags=["LibreTranslate"], responses=ERROR_RESPONSES)

Key = Annotated[str | None, Field(description="Needed if the service has API keys.")]


class TranslateBody(Body):
    """Gives the text or texts to translate."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"q": "Good morning!", "source": "en", "target": "de"}],
        },
    )
    q: str | list[str] = Field(description="A text, or several.")
    source: str = Field(description="The code of its language, or auto to detect it.")
    target: str = Field(description="The code of the language to translate to.")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(
        0, ge=0, le=MAX_ALTERNATIVES, description="How many other translations."
    )
    api_key: Key = None


class Detected(BaseModel):
    """Names a language a text may be in."""

    confidence: float = Field(description="0 to 100.")
    language: str


class TranslateAnswer(BaseModel):
    """Holds the translations: a list of each kind if q was a list."""

    translatedText: str | list[str]
    detectedLanguage: Detected | list[Detected] | None = Field(
        None, description="Only if the source is auto."
    )
    alternatives: list[str] | list[list[str]] | None = Field(None, description="Only if asked for.")


class DetectBody(Body):
    """Gives the text whose language is to be detected."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "Good morning!"}]})
    q: str
    api_key: Key = None


class SuggestBody(Body):
    """Gives a text, and how it should have been translated."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"q": "Good morning!", "s": "Schönen Morgen!", "source": "en", "target": "de"}
            ]
        },
    )
    q: str = Field(description="The text that was translated.")
    s: str = Field(description="The better translation.")
    source: str = Field(description="The code of the text's language, or auto to detect it.")
    target: str = Field(description="The code of the translation's language.")
    api_key: Key = None


class SuggestAnswer(BaseModel):
    """Says that a suggestion is kept."""

    success: bool


class Language(BaseModel):
    """Names a language that can be translated from."""

    code: str
    name: str
    targets: list[str]


@router.post(
    "/translate",
    response_model=TranslateAnswer,
    response_model_exclude_none=True,
    openapi_extra=form_schema(TranslateBody),
)
async def translate_texts(request: Request, body: TranslateBody) -> dict[str, Any]:
    """Translate a text, or several."""
    authenticator = get_authenticator(request)
    key = authenticator.authenticate(request, body.api_key)
    texts = [body.q] if isinstance(body.q, str) else body.q
    found = await translate(
        request,
        texts,
        None if body.source == "auto" else body.source,
        body.target,
        html=body.format == "html",
        options={"n_best": body.alternatives + 1} if body.alternatives else {},
    )
    authenticator.add_usage(key, sum(map(len, texts)))
    answer: dict[str, list[Any]] = {"translatedText": [one.translation.text for one in found]}
    if body.source == "auto":
        answer["detectedLanguage"] = [
            describe_detected(one.source, one.confidence) for one in found
        ]
    if body.alternatives:
        answer["alternatives"] = [
            [other.text for other in one.translation.alternatives] for one in found
        ]
    if isinstance(body.q, str):
        return {field: values[0] for field, values in answer.items()}
    return answer


@router.post("/detect", response_model=list[Detected], openapi_extra=form_schema(DetectBody))
async def detect_language(request: Request, body: DetectBody) -> list[Detected]:
    """List the languages a text may be in, of those served, likeliest first.

    The confidence is that among all languages, so that a text in none of those served has low ones.
    """
    get_authenticator(request).authenticate(request, body.api_key)
    check_size(request, [body.q])
    sources = get_service(request).registry.sources
    return [describe_detected(*one) for one in detect_languages(body.q, sources)]


@router.post(
    "/suggest",
    openapi_extra=form_schema(SuggestBody),
    dependencies=[Depends(get_corrections)],
)
async def suggest(request: Request, body: SuggestBody) -> SuggestAnswer:
    """Keep a better translation, and use it from the next request on.

    Without `--corrections` this is refused.
    """
    key = get_authenticator(request).authenticate(request, body.api_key)
    for name, value in body.model_dump(include={"q", "s", "source", "target"}).items():
        if not value.strip():
            raise ServiceError(400, f"Invalid request: missing {name} parameter")
    registry = get_service(request).registry
    get_service(request).settings.limits.check_texts([body.q])
    source = body.source
    if source == "auto":
        candidates = registry.find_sources(body.target)
        source, _ = await asyncio.to_thread(choose_language, body.q, candidates)
    model = registry.find_pair(source, body.target)
    await keep_corrections(request, [(body.q, body.s)], model, key)
    return SuggestAnswer(success=True)


@router.get("/languages")
async def languages(request: Request) -> list[Language]:
    """List the languages that can be translated from, and to which."""
    registry = get_service(request).registry
    return [
        Language(
            code=source,
            name=language_name(source),
            targets=list(
                dict.fromkeys(one.target for one in registry.translators if one.source == source)
            ),
        )
        for source in registry.sources
    ]


@router.get("/frontend/settings")
async def settings(request: Request) -> dict[str, Any]:
    """Return the settings that LibreTranslate's own web page asks for."""
    service = get_service(request)
    limits, needs_key = service.settings.limits, bool(service.settings.keys)
    first = service.registry.translators[:1]
    pair = [
        {"code": code, "name": language_name(code)}
        for one in first
        for code in (one.source, one.target)
    ]
    return {
        "apiKeys": needs_key,
        "charLimit": limits.max_characters,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": needs_key,
        "language": dict(zip(("source", "target"), pair, strict=False)),
        "suggestions": service.corrections is not None,
        "supportedFilesFormat": [f".{extension}" for extension in MEDIA_TYPES],
    }


def describe_detected(language: str, confidence: float) -> Detected:
    """Return a language and its probability as LibreTranslate writes them."""
    return Detected(confidence=round(100 * confidence, 2), language=language)
