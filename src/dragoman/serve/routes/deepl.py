"""DeepL's API: translating texts, listing the languages, and what a key has used."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from dragoman.serve.errors import DEEPL_ERROR_RESPONSES, ServiceError
from dragoman.serve.requests import (
    Body,
    FormRoute,
    form_schema,
    get_authenticator,
    get_service,
    translate,
)
from dragoman.text.languages import language_name

UNLIMITED: Final = 10**12
"""The characters that DeepL gives as the limit of accounts without one."""

router = APIRouter(
    prefix="/v2", route_class=FormRoute, tags=["DeepL"], responses=DEEPL_ERROR_RESPONSES
)


class DeepLBody(Body):
    """The texts to translate. DeepL's other fields are accepted and change nothing."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": ["Good morning!"], "source_lang": "EN", "target_lang": "DE"}]
        },
    )
    text: list[str] | str = Field(description="The texts; in a form it may be a single one.")
    target_lang: str
    source_lang: str | None = Field(None, description="Without it, each text's is detected.")
    tag_handling: Literal["html", "xml"] | None = None
    glossary_id: str | None = Field(None, description="Refused: there are no glossaries here.")


class DeepLTranslation(BaseModel):
    """The translation of one text."""

    detected_source_language: str
    text: str
    billed_characters: int


class DeepLAnswer(BaseModel):
    """The translations, in the order of the texts."""

    translations: list[DeepLTranslation]


class DeepLLanguage(BaseModel):
    """A language that is served."""

    language: str
    name: str
    supports_formality: bool = False


class Usage(BaseModel):
    """The characters translated for a key since the service began."""

    character_count: int
    character_limit: int


@router.post("/translate", openapi_extra=form_schema(DeepLBody))
async def translate_texts(request: Request, body: DeepLBody) -> DeepLAnswer:
    """Translate texts."""
    key = _authenticate(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    if not texts:
        raise ServiceError(400, "Parameter 'text' not specified.")
    if body.glossary_id is not None:
        raise ServiceError(404, "There are no glossaries here; see /v1/translate.")
    found = await translate(
        request,
        texts,
        body.source_lang.lower() if body.source_lang else None,
        body.target_lang.lower(),
        html=body.tag_handling is not None,
    )
    get_authenticator(request).add_usage(key, sum(map(len, texts)))
    return DeepLAnswer(
        translations=[
            DeepLTranslation(
                detected_source_language=one.source.upper(),
                text=one.translation.text,
                billed_characters=len(text),
            )
            for text, one in zip(texts, found, strict=True)
        ]
    )


@router.get("/languages")
async def languages(
    request: Request, type: Literal["source", "target"] | None = None
) -> list[DeepLLanguage]:
    """List the languages that can be translated from, or to."""
    _authenticate(request)
    asked = type or parse_qs((await request.body()).decode("utf-8", "replace")).get("type", [""])[0]
    registry = get_service(request).registry
    codes = registry.targets if asked == "target" else registry.sources
    return [DeepLLanguage(language=code.upper(), name=language_name(code)) for code in codes]


@router.get("/usage")
async def usage(request: Request) -> Usage:
    """Return how many characters this key has used."""
    count = get_authenticator(request).usage(_authenticate(request))
    return Usage(character_count=count, character_limit=UNLIMITED)


def _authenticate(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    given = key.strip() if scheme == "DeepL-Auth-Key" else None
    return get_authenticator(request).authenticate(request, given, missing=403)
