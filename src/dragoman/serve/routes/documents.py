"""LibreTranslate's /translate_file: a document is sent, and its translation fetched afterwards."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response
from pydantic import BaseModel

from dragoman.inference.documents.formats import MEDIA_TYPES, open_document
from dragoman.serve.errors import ERROR_RESPONSES, ServiceError
from dragoman.serve.limits import DOCUMENT_BYTES, DOCUMENT_EXPANSION, DOCUMENT_SECONDS
from dragoman.serve.requests import get_authenticator, get_service, translate

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
    max_bytes = DOCUMENT_EXPANSION * get_service(request).settings.limits.max_body
    content = await file.read()
    document = await asyncio.to_thread(open_document, extension, content, max_bytes)
    # One text, so that it is in one language; it has as many lines as the document has texts.
    whole = "\n".join(document.texts)
    (found,) = await translate(
        request, [whole], None if source == "auto" else source, target, html=document.is_html
    )
    get_authenticator(request).add_usage(key, len(whole))
    text = found.translation.text
    texts = ([text] if document.is_html else text.split("\n")) if whole else []
    filled = await asyncio.to_thread(document.fill, texts)
    name = request.app.state.documents.put(extension, filled)
    return FileAnswer(translatedFileUrl=f"{request.base_url}download_file/{quote(name)}")


@router.get("/download_file/{name}", response_class=Response)
async def download_file(request: Request, name: str) -> Response:
    """Return a translated file."""
    extension, content = request.app.state.documents.get(name)
    headers: dict[str, Any] = {
        "content-disposition": f'attachment; filename="translation.{extension}"'
    }
    return Response(content, media_type=MEDIA_TYPES[extension], headers=headers)
