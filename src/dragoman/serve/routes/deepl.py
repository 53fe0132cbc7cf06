"""DeepL's API: translating text, the languages, and what was used."""

from __future__ import annotations

from typing import Any, Final, Literal
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from dragoman.serve.errors import Refusal
from dragoman.serve.openapi import DEEPL_REFUSALS
from dragoman.serve.request_bodies import Body, FormRoute, also_a_form
from dragoman.serve.translation_request import desk_of, guard_of, translate
from dragoman.text.languages import language_name

__all__ = ["router"]

UNLIMITED: Final = 10**12
"""Characters: what DeepL says of accounts without a limit."""

router = APIRouter(prefix="/v2", route_class=FormRoute, tags=["DeepL"], responses=DEEPL_REFUSALS)


class DeepLBody(Body):
    """What is to be translated. Other fields of DeepL's change nothing."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": ["Good morning!"], "source_lang": "EN", "target_lang": "DE"}]
        },
    )
    text: list[str] | str = Field(description="Texts; a single one in a form.")
    target_lang: str
    source_lang: str | None = Field(None, description="Without it, each text's is detected.")
    tag_handling: Literal["html", "xml"] | None = None
    glossary_id: str | None = Field(None, description="Refused: there are none here.")


class DeepLTranslation(BaseModel):
    """The translation of a text."""

    detected_source_language: str
    text: str
    billed_characters: int


class DeepLAnswer(BaseModel):
    """In the order of the texts."""

    translations: list[DeepLTranslation]


class DeepLLanguage(BaseModel):
    """A language."""

    language: str
    name: str
    supports_formality: bool = False


class Usage(BaseModel):
    """Characters since the service began."""

    character_count: int
    character_limit: int


@router.post("/translate", openapi_extra=also_a_form(DeepLBody))
async def translate_texts(request: Request, body: DeepLBody) -> DeepLAnswer:
    """Translate texts."""
    key = _admit(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    if not texts:
        raise Refusal(400, "Parameter 'text' not specified.")
    if body.glossary_id is not None:
        raise Refusal(404, "There are no glossaries here; see /v1/translate.")
    found = await translate(
        request,
        texts,
        body.source_lang.lower() if body.source_lang else None,
        body.target_lang.lower(),
        html=body.tag_handling is not None,
    )
    guard_of(request).bill(key, sum(map(len, texts)))
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
    """The languages that can be translated from, or to."""
    _admit(request)
    asked = type or parse_qs((await request.body()).decode("utf-8", "replace")).get("type", [""])[0]
    fleet = desk_of(request).fleet
    codes = fleet.targets if asked == "target" else fleet.sources
    return [DeepLLanguage(language=code.upper(), name=language_name(code)) for code in codes]


@router.get("/usage")
async def usage(request: Request) -> Usage:
    """What this key has used."""
    count = guard_of(request).used(_admit(request))
    return Usage(character_count=count, character_limit=UNLIMITED)


def _admit(request: Request) -> str:
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    known: Any = key.strip() if kind == "DeepL-Auth-Key" else None
    return guard_of(request).admit(request, known, missing=403)
