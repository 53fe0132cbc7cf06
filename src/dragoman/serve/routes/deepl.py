"""DeepL's API translates texts and documents, lists languages, and says what a key has used."""

from __future__ import annotations

from typing import Annotated, Final, Literal
from urllib.parse import parse_qs

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from dragoman.inference.documents.formats import MEDIA_TYPES
from dragoman.serve.document_jobs import SentDocument, Status
from dragoman.serve.errors import DEEPL_ERROR_RESPONSES, ServiceError
from dragoman.serve.requests import (
    Body,
    FormRoute,
    NativeIssue,
    form_schema,
    get_authenticator,
    get_service,
    translate,
)
from dragoman.text.languages import language_name

Formality = Literal["default", "more", "less", "prefer_more", "prefer_less"]
UNLIMITED: Final = 10**12
"""The characters that DeepL gives as the limit of accounts without one."""

router = APIRouter(
    prefix="/v2", route_class=FormRoute, tags=["DeepL"], responses=DEEPL_ERROR_RESPONSES
)


class DeepLBody(Body):
    """Gives the texts to translate. DeepL's other fields are accepted and change nothing."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": ["Good morning!"], "source_lang": "EN", "target_lang": "DE"}]
        },
    )
    text: list[str] | str = Field(description="The texts; in a form it may be a single one.")
    target_lang: str
    source_lang: str | None = Field(None, description="Without it, each text's is detected.")
    tag_handling: Literal["html", "xml"] | None = None
    formality: Formality = Field(
        "default",
        description="How the reader is addressed. A model that has not learned it refuses more and "
        "less; the wishes that begin with prefer_ change nothing there.",
    )
    glossary_id: str | None = Field(None, description="Refused: there are no glossaries here.")


class DeepLTranslation(BaseModel):
    """Holds the translation of one text."""

    detected_source_language: str
    text: str
    billed_characters: int


class DeepLAnswer(BaseModel):
    """Holds the translations, in the order of the texts."""

    translations: list[DeepLTranslation]


class DeepLLanguage(BaseModel):
    """Names a language that is served."""

    language: str
    name: str
    supports_formality: bool = False


class Usage(BaseModel):
    """Counts the characters translated for a key since the service began."""

    character_count: int
    character_limit: int


@router.post("/translate", openapi_extra=form_schema(DeepLBody))
async def translate_texts(request: Request, body: DeepLBody) -> DeepLAnswer:
    """Translate texts, as DeepL does."""
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
        options={} if body.formality == "default" else {"formality": body.formality},
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


# --- documents ---


class DocumentHandle(BaseModel):
    """Names a document that is being translated."""

    document_id: str
    document_key: str


class DocumentKey(Body):
    """Shows that a document is the client's own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"document_key": "0A1B2C"}]})
    document_key: str


class DocumentState(BaseModel):
    """Says how far a document has come."""

    document_id: str
    status: Status
    seconds_remaining: int | None = None
    billed_characters: int | None = None
    error_message: str | None = None
    issues: list[NativeIssue] | None = Field(
        default=None,
        description="That the document seems to be in another language than it was taken for.",
    )


@router.post("/document")
async def send_document(
    request: Request,
    file: Annotated[UploadFile, File(description=f"One of: {', '.join(MEDIA_TYPES)}.")],
    target_lang: Annotated[str, Form()],
    source_lang: Annotated[str | None, Form()] = None,
    filename: Annotated[str | None, Form()] = None,
    formality: Annotated[Formality, Form()] = "default",
    glossary_id: Annotated[str | None, Form()] = None,
    output_format: Annotated[str | None, Form()] = None,
) -> DocumentHandle:
    """Begin to translate a document; its state is asked for, and its translation fetched."""
    key = _authenticate(request)
    if glossary_id:
        raise ServiceError(404, "There are no glossaries here; see /v1/translate.")
    extension = (filename or file.filename or "").rpartition(".")[2].lower()
    if extension not in MEDIA_TYPES or (output_format or extension).lower() != extension:
        raise ServiceError(400, f"Document format not supported; use {', '.join(MEDIA_TYPES)}.")
    source, target = source_lang.lower() if source_lang else None, target_lang.lower()
    if source is not None:
        model = get_service(request).registry.find_pair(source, target)  # or what is not served
        model.translator.find_tag(formality)  # and what it has not learned is refused
    sent = SentDocument(
        extension=extension,
        content=await file.read(),
        source=source,
        target=target,
        formality=formality,
    )
    authenticator = get_authenticator(request)
    name, job = request.app.state.document_jobs.start(
        sent, lambda characters: authenticator.add_usage(key, characters)
    )
    return DocumentHandle(document_id=name, document_key=job.key)


@router.post(
    "/document/{document_id}",
    response_model_exclude_none=True,
    openapi_extra=form_schema(DocumentKey),
)
async def document_state(request: Request, document_id: str, body: DocumentKey) -> DocumentState:
    """Say how far a document has come."""
    _authenticate(request)
    job = request.app.state.document_jobs.find(document_id, body.document_key)
    state = DocumentState(document_id=document_id, status=job.status)
    if job.status == "translating":
        state.seconds_remaining = job.seconds_remaining
    elif job.status == "done":
        state.billed_characters = job.characters
        state.issues = [NativeIssue(**issue.to_dict()) for issue in job.issues] or None
    elif job.status == "error":
        state.error_message = job.error
    return state


@router.post(
    "/document/{document_id}/result",
    response_class=Response,
    openapi_extra=form_schema(DocumentKey),
)
async def fetch_document(request: Request, document_id: str, body: DocumentKey) -> Response:
    """Return a translated document, once."""
    _authenticate(request)
    jobs = request.app.state.document_jobs
    job = jobs.find(document_id, body.document_key)
    if job.status != "done":
        raise ServiceError(503, "the document is not translated yet", retry_after=1)
    jobs.take(document_id)
    headers = {"content-disposition": f'attachment; filename="translation.{job.extension}"'}
    return Response(job.content, media_type=MEDIA_TYPES[job.extension], headers=headers)


@router.get("/languages")
async def languages(
    request: Request, type: Literal["source", "target"] | None = None
) -> list[DeepLLanguage]:
    """List the languages that can be translated from, or to."""
    _authenticate(request)
    asked = type or parse_qs((await request.body()).decode("utf-8", "replace")).get("type", [""])[0]
    registry = get_service(request).registry
    codes = registry.targets if asked == "target" else registry.sources
    tagged = [one.target for one in registry.translators if one.translator.tokenizer.tags]
    return [
        DeepLLanguage(
            language=code.upper(),
            name=language_name(code),
            supports_formality=asked == "target" and code in tagged,
        )
        for code in codes
    ]


@router.get("/usage")
async def usage(request: Request) -> Usage:
    """Return how many characters this key has used."""
    count = get_authenticator(request).usage(_authenticate(request))
    return Usage(character_count=count, character_limit=UNLIMITED)


def _authenticate(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    given = key.strip() if scheme == "DeepL-Auth-Key" else None
    return get_authenticator(request).authenticate(request, given, missing=403)
