"""To LibreTranslate's /translate_file a document is sent; its translation is fetched afterwards."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response
from pydantic import BaseModel

from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.formats import MEDIA_TYPES
from dragoman.inference.documents.unit_translation import UnitTexts
from dragoman.serve.document_jobs import SentDocument
from dragoman.serve.errors import ERROR_RESPONSES, ServiceError
from dragoman.serve.limits import DOCUMENT_BYTES, DOCUMENT_SECONDS
from dragoman.serve.requests import check_size, get_authenticator, get_service

router = APIRouter(tags=["LibreTranslate"], responses=ERROR_RESPONSES)


class DocumentStore:
    """Keep translated documents in memory for a while, under names that cannot be guessed."""

    def __init__(self, max_bytes: int = DOCUMENT_BYTES, seconds: float = DOCUMENT_SECONDS) -> None:
        self._max_bytes, self._seconds = max_bytes, seconds
        self._documents: dict[str, tuple[float, str, bytes]] = {}

    def put(self, extension: str, content: bytes) -> str:
        """Keep a document and return its name; the oldest are dropped if there is no room."""
        now = time.monotonic()
        size = len(content)
        for name, (then, _, other) in reversed(list(self._documents.items())):
            size += len(other)
            if now - then > self._seconds or size > self._max_bytes:
                del self._documents[name]
        name = f"{secrets.token_urlsafe(24)}.{extension}"
        self._documents[name] = now, extension, content
        return name

    def get(self, name: str) -> tuple[str, bytes]:
        """Return the extension and content of a document, or raise 404."""
        then, extension, content = self._documents.get(name, (0.0, "", b""))
        if not extension or time.monotonic() - then > self._seconds:
            raise ServiceError(404, "there is no such file, or it has expired")
        return extension, content


class FileAnswer(BaseModel):
    """Says where the translated file can be fetched."""

    translatedFileUrl: str


@router.post("/translate_file")
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
    max_body = get_service(request).settings.limits.max_body
    document = await asyncio.to_thread(sent.open, max_body)
    # One text, so that it is in one language.
    whole = "\n".join(unit.text for unit in document.units)
    units = await _translate_units(request, sent, document, whole)
    get_authenticator(request).add_usage(key, len(whole))
    filled = await asyncio.to_thread(document.fill, units)
    name = request.app.state.documents.put(extension, filled)
    return FileAnswer(translatedFileUrl=f"{request.base_url}download_file/{quote(name)}")


async def _translate_units(
    request: Request, sent: SentDocument, document: Document, whole: str
) -> list[Unit]:
    """Translate the units of a document, all from the language that most of it is in."""
    check_size(request, [whole])
    service = get_service(request)
    model = await asyncio.to_thread(sent.choose_model, whole, service.registry)
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
    extension, content = request.app.state.documents.get(name)
    headers: dict[str, Any] = {
        "content-disposition": f'attachment; filename="translation.{extension}"'
    }
    return Response(content, media_type=MEDIA_TYPES[extension], headers=headers)
