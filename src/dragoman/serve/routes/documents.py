"""LibreTranslate's /translate_file: a file comes in, and its translation waits to be fetched."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response
from pydantic import BaseModel

from dragoman.inference.documents.formats import KINDS, opened
from dragoman.serve.errors import Refusal
from dragoman.serve.openapi import REFUSALS
from dragoman.serve.translation_request import desk_of, guard_of, translate

__all__ = ["Shelf", "router"]

KEPT: Final = 600.0
"""Seconds."""
ROOM: Final = 64 << 20
"""Bytes of all files that wait."""

router = APIRouter(tags=["LibreTranslate"], responses=REFUSALS)


class Shelf:
    """Translated files, in memory, each under a name that cannot be guessed."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[float, str, bytes]] = {}

    def put(self, kind: str, content: bytes) -> str:
        """The name of a new file; the oldest go where there is no room."""
        now = time.monotonic()
        size = len(content)
        for name, (then, _, there) in reversed(list(self._files.items())):
            size += len(there)
            if now - then > KEPT or size > ROOM:
                del self._files[name]
        name = f"{secrets.token_urlsafe(24)}.{kind}"
        self._files[name] = now, kind, content
        return name

    def get(self, name: str) -> tuple[str, bytes]:
        """What is kept under a name."""
        then, kind, content = self._files.get(name, (-KEPT, "", b""))
        if not kind or time.monotonic() - then > KEPT:
            raise Refusal(404, "there is no such file, or no longer")
        return kind, content


class FileAnswer(BaseModel):
    """Where the translation is."""

    translatedFileUrl: str


@router.post("/translate_file")
async def translate_file(
    request: Request,
    file: Annotated[UploadFile, File(description=f"One of: {', '.join(KINDS)}.")],
    source: Annotated[str, Form()],
    target: Annotated[str, Form()],
    api_key: Annotated[str | None, Form()] = None,
) -> FileAnswer:
    """Translate a file, which is then to be fetched for ten minutes."""
    key = guard_of(request).admit(request, api_key)
    kind = (file.filename or "").rpartition(".")[2].lower()
    if kind not in KINDS:
        raise Refusal(
            400, f"Invalid request: file format not supported; there are {', '.join(KINDS)}"
        )
    content, most = await file.read(), desk_of(request).settings.max_body
    document = await asyncio.to_thread(opened, kind, content, most)
    # One text, so that it is in one language; its lines are as many as the document's texts.
    whole = "\n".join(document.texts)
    (found,) = await translate(
        request, [whole], None if source == "auto" else source, target, html=document.html
    )
    guard_of(request).bill(key, len(whole))
    text = found.translation.text
    lines = ([text] if document.html else text.split("\n")) if whole else []
    name = request.app.state.files.put(kind, await asyncio.to_thread(document.filled, lines))
    return FileAnswer(translatedFileUrl=f"{request.base_url}download_file/{quote(name)}")


@router.get("/download_file/{name}", response_class=Response)
async def download_file(request: Request, name: str) -> Response:
    """A file that was translated."""
    kind, content = request.app.state.files.get(name)
    headers: dict[str, Any] = {"content-disposition": f'attachment; filename="translation.{kind}"'}
    return Response(content, media_type=KINDS[kind], headers=headers)
