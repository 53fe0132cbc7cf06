"""To LibreTranslate's /translate_file a document is sent; its translation is fetched afterwards."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response
from pydantic import BaseModel, Field

from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.formats import MEDIA_TYPES
from dragoman.inference.documents.unit_translation import UnitTexts
from dragoman.serve.document_jobs import SentDocument
from dragoman.serve.errors import ERROR_RESPONSES
from dragoman.serve.model_registry import ServedModel
from dragoman.serve.requests import NativeIssue, check_size, get_authenticator, get_service
from dragoman.serve.routes.libretranslate import Detected, describe_detected

router = APIRouter(tags=["LibreTranslate"], responses=ERROR_RESPONSES)


class FileAnswer(BaseModel):
    """Says where the translated file can be fetched, and what was found wrong with it."""

    translatedFileUrl: str
    detectedLanguage: Detected | None = Field(
        default=None, description="Only if the source is auto."
    )
    issues: list[NativeIssue] | None = Field(
        default=None,
        description="That the file seems to be in another language than it was taken for.",
    )


@router.post("/translate_file", response_model_exclude_none=True)
async def translate_file(
    request: Request,
    file: Annotated[UploadFile, File(description=f"One of: {', '.join(MEDIA_TYPES)}.")],
    source: Annotated[str, Form()],
    target: Annotated[str, Form()],
    api_key: Annotated[str | None, Form()] = None,
) -> FileAnswer:
    """Translate a file, which can then be fetched for ten minutes."""
    key = get_authenticator(request).authenticate(request, api_key)
    extension = (file.filename or "").rpartition(".")[2].lower()
    sent = SentDocument(
        extension=extension,
        content=await file.read(),
        source=None if source == "auto" else source,
        target=target,
    )
    service = get_service(request)
    document = await asyncio.to_thread(sent.open, service.settings.limits.max_body)
    # One text, so that it is in one language.
    whole = "\n".join(unit.text for unit in document.units)
    check_size(request, [whole])
    model, language, confidence = await asyncio.to_thread(
        sent.choose_model, whole, service.registry
    )
    units = await _translate_units(request, model, document)
    get_authenticator(request).add_usage(key, len(whole))
    filled = await asyncio.to_thread(document.fill, units)
    name = f"{secrets.token_urlsafe(24)}.{extension}"
    request.app.state.documents.put(name, filled, len(filled))
    answer = FileAnswer(translatedFileUrl=f"{request.base_url}download_file/{quote(name)}")
    issue = await asyncio.to_thread(service.check_language, model, whole, language)
    if issue is not None:
        answer.issues = [NativeIssue(**issue.to_dict())]
    if sent.source is None:
        answer.detectedLanguage = describe_detected(language, 0.0 if issue else confidence)
    return answer


async def _translate_units(request: Request, model: ServedModel, document: Document) -> list[Unit]:
    """Translate the units of a document."""
    service = get_service(request)
    request.state.log_fields["models"] = [model.name]
    texts = UnitTexts(document.units)
    with service.admission.admit(len(texts)):
        plain, marked = await asyncio.gather(
            service.translate(model, texts.plain),
            service.translate(model, texts.marked, align=True),
        )
        return await asyncio.to_thread(texts.assemble, plain, marked)


@router.get("/download_file/{name}", response_class=Response)
async def download_file(request: Request, name: str) -> Response:
    """Return a translated file."""
    content: bytes = request.app.state.documents.get(name)
    extension = name.rpartition(".")[2]
    headers: dict[str, Any] = {
        "content-disposition": f'attachment; filename="translation.{extension}"'
    }
    return Response(content, media_type=MEDIA_TYPES[extension], headers=headers)
