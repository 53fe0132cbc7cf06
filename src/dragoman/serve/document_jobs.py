"""Documents are translated in the background: sent, asked after, and fetched when done.

A document may be much longer than a request's texts. Its units are translated some at a time, each
time through the same queue that all requests wait in, so that none of these waits for a book.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from dragoman.errors import DragomanError
from dragoman.inference import Translation
from dragoman.inference.documents.document import Document
from dragoman.inference.documents.formats import open_document
from dragoman.inference.documents.options import ALL_COLUMNS, DocumentOptions
from dragoman.inference.documents.unit_translation import UnitTexts
from dragoman.inference.translation_types import Issue
from dragoman.serve.document_store import DocumentStore, no_such_document
from dragoman.serve.errors import ServiceError, as_service_error
from dragoman.serve.limits import (
    DOCUMENT_CHARACTERS,
    DOCUMENT_EXPANSION,
    MAX_DOCUMENT_JOBS,
)
from dragoman.serve.model_registry import ModelRegistry, ServedModel
from dragoman.serve.service import TranslationService
from dragoman.text.languages import choose_language

Status = Literal["queued", "translating", "done", "error"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SentDocument:
    """Hold a document as a client sent it, and the languages it asked for."""

    extension: str
    content: bytes
    source: str | None
    """The code of its language; None means that it is to be detected."""
    target: str
    formality: str | None = None
    """How its reader is to be addressed."""

    def open(self, max_body: int) -> Document:
        """Return the document, with all columns if it is a table; raise DataError if it is broken.

        `max_body` is the most bytes of a request; what is compressed may become somewhat larger.
        """
        options = DocumentOptions(
            columns=(ALL_COLUMNS,), source_language=self.source, target_language=self.target
        )
        return open_document(
            self.extension, self.content, max_bytes=DOCUMENT_EXPANSION * max_body, options=options
        )

    def choose_model(self, text: str, registry: ModelRegistry) -> tuple[ServedModel, str, float]:
        """Return the model for the document, the language of its text, and how sure that is."""
        source, confidence = self.source, 1.0
        if source is None:
            source, confidence = choose_language(text, registry.find_sources(self.target))
        return registry.find_pair(source, self.target), source, confidence


@dataclass(slots=True)
class DocumentJob:
    """Hold one document on its way."""

    extension: str
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    """Whoever knows this may ask after the document and fetch it."""
    status: Status = "queued"
    characters: int = 0
    units: int = 0
    units_done: int = 0
    began: float = field(default_factory=time.monotonic)
    content: bytes = b""
    error: str = ""
    issues: tuple[Issue, ...] = ()
    """What was found wrong with the whole: that it is in another language."""

    @property
    def seconds_remaining(self) -> int:
        """Return how long it will take yet, by how long it has taken."""
        if not self.units_done:
            return 2
        passed = time.monotonic() - self.began
        return int(passed * (self.units - self.units_done) / self.units_done) + 1


class DocumentJobs:
    """Translate documents in the background, and keep the results for a while."""

    def __init__(self, service: TranslationService) -> None:
        self._service = service
        self._running: dict[str, DocumentJob] = {}
        self._ended: DocumentStore[DocumentJob] = DocumentStore()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, sent: SentDocument, on_done: Callable[[int], None]) -> tuple[str, DocumentJob]:
        """Begin with a document and return its name; raise 503 if too many are on their way.

        `on_done` is given its number of characters.
        """
        if len(self._tasks) >= MAX_DOCUMENT_JOBS:
            raise ServiceError(503, "too many documents at once; try again later", retry_after=5)
        name, job = secrets.token_hex(16).upper(), DocumentJob(sent.extension)
        self._running[name] = job
        task = asyncio.create_task(self._run(name, sent, on_done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return name, job

    def find(self, name: str, key: str) -> DocumentJob:
        """Return a document by its name and key, or raise 404."""
        job = self._running.get(name) or self._ended.get(name)
        if not secrets.compare_digest(job.key.encode(), key.encode()):
            raise no_such_document()
        return job

    def take(self, name: str) -> None:
        """Forget a document, which can be fetched once."""
        self._ended.drop(name)

    def close(self) -> None:
        """End what is not done."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, name: str, sent: SentDocument, on_done: Callable[[int], None]) -> None:
        service, job = self._service, self._running[name]
        try:
            document = await asyncio.to_thread(sent.open, service.settings.limits.max_body)
            whole = "\n".join(unit.text for unit in document.units)
            job.characters = len(whole)
            if len(whole) > DOCUMENT_CHARACTERS:
                raise ServiceError(
                    413,
                    f"the document has {len(whole):,} characters; at most "
                    f"{DOCUMENT_CHARACTERS:,} are allowed",
                )
            model, source, _ = await asyncio.to_thread(sent.choose_model, whole, service.registry)
            model.translator.find_tag(sent.formality)  # refuses what it has not learned
            issue = await asyncio.to_thread(service.check_language, model, whole, source)
            job.issues = () if issue is None else (issue,)
            job.status = "translating"
            texts = UnitTexts(document.units)
            job.units = len(texts)
            plain = await self._translate(job, model, texts.plain, formality=sent.formality)
            marked = await self._translate(
                job, model, texts.marked, align=True, formality=sent.formality
            )
            units = await asyncio.to_thread(texts.assemble, plain, marked)
            job.content = await asyncio.to_thread(document.fill, units)
            job.status = "done"
            on_done(job.characters)
        except asyncio.CancelledError:
            job.status, job.error = "error", "the service is shutting down"
        except Exception as error:
            known = as_service_error(error)
            job.status = "error"
            if isinstance(error, DragomanError):
                job.error = str(error)
            else:
                job.error = known.detail if known is not None else "the document failed"
        finally:
            self._ended.put(name, self._running.pop(name), len(job.content))

    async def _translate(
        self, job: DocumentJob, model: ServedModel, texts: list[str], **options: Any
    ) -> list[Translation]:
        """Translate texts in turns with all other requests; wait where the queue is full."""
        found: list[Translation] = []
        size = max(1, self._service.settings.limits.queue // 8)
        while len(found) < len(texts):
            some = texts[len(found) : len(found) + size]
            try:
                with self._service.admission.admit(len(some)):
                    found += await self._service.translate(model, some, **options)
            except ServiceError as error:
                if error.status_code not in (503, 504) or self._service.admission.draining:
                    raise
                size = max(1, size // 2) if error.status_code == 504 else size
                if error.status_code == 504 and len(some) == 1:
                    raise
                await asyncio.sleep(0.5)
            else:
                job.units_done += len(some)
        return found
