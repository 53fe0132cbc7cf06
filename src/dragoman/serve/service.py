"""The service, without HTTP, computes for admitted requests within their deadlines.

Plain searches join the batcher's running batch; everything else goes through the serial queue.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from dragoman.errors import DragomanError
from dragoman.inference import Translation
from dragoman.inference.parser import Parse
from dragoman.inference.translation_types import Issue
from dragoman.serve.batcher import Batcher
from dragoman.serve.corrections import Correction, CorrectionFile
from dragoman.serve.errors import ServiceError, log, raise_service_errors
from dragoman.serve.limits import AdmissionControl, RequestContext, current_request
from dragoman.serve.model_registry import ModelRegistry, ServedModel
from dragoman.serve.prometheus_metrics import Metrics
from dragoman.serve.serial_queue import SerialQueue
from dragoman.serve.settings import Settings
from dragoman.system.cores import available_cores
from dragoman.text.languages import detect_languages
from dragoman.text.wrong_language import find_other_language

HEALTHY_SECONDS: Final = 5.0
"""How long a model that has answered counts as answering."""
T = TypeVar("T")


class TranslationService:
    """Compute translations, parses and whatever else the models are asked for.

    Its methods work for the current request: call them where `admission` has admitted it.
    """

    def __init__(self, settings: Settings) -> None:
        """Load the models, which may take a while."""
        self.settings, self.metrics = settings, Metrics()
        self.admission = AdmissionControl(settings.limits, self.metrics)
        self._batcher = Batcher(settings.threads or available_cores(), self.metrics)
        self.registry = ModelRegistry(settings, self._batcher)
        self.corrections: CorrectionFile | None = None
        """Where corrections are kept, if they are."""
        if settings.corrections is not None:
            self.corrections = CorrectionFile(settings.corrections)
            self.registry.learn(self.corrections)
        with suppress(DragomanError):
            detect_languages(
                "this loads the tables now, not while a request waits", self.registry.sources
            )
        self._serial_queue = SerialQueue()
        # A thread for each request that waits, and some for health checks.
        self._pool = ThreadPoolExecutor(settings.limits.queue + 8, "request")
        self._answered: dict[str, float] = {}
        self.metrics.ready.set(1)

    def close(self) -> None:
        """Admit nothing more, and end the threads as soon as they can."""
        self.admission.drain()
        self._batcher.close()
        self._serial_queue.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def translate(
        self, model: ServedModel, texts: Sequence[str], **options: Any
    ) -> list[Translation]:
        """Translate each text as `Translator.translate` does."""
        translator = model.translator
        if not texts:
            return []
        options = {name: value for name, value in options.items() if _is_set(name, value)}

        def work(some: list[str]) -> list[Translation]:
            return translator.translate(some, memory=model.memory, **options)

        if model.can_batch(options):
            found = await self._run_in_thread(model, lambda: work(list(texts)))
        else:
            plain = all(isinstance(value, int | float) for value in options.values())
            key = (model.name, *sorted(options.items())) if plain else None
            found = await self._run_in_queue(model, key, texts, work)
        self.metrics.sentences.labels(model.name).inc(sum(len(one.sentences) or 1 for one in found))
        self.metrics.tokens.labels(model.name).inc(sum(len(one.tokens) for one in found))
        for issue in (issue for one in found for issue in one.issues):
            repaired = "yes" if issue.repaired else "no"
            self.metrics.issues.labels(model.name, issue.kind, repaired).inc()
        return found

    def check_language(self, model: ServedModel, text: str, source: str) -> Issue | None:
        """Return the issue that a text is surely not in its source language, and count it."""
        other = find_other_language(text, source)
        if other is None:
            return None
        self.metrics.issues.labels(model.name, "language", "no").inc()
        return Issue("language", other)

    async def keep_corrections(self, corrections: Sequence[Correction]) -> None:
        """Keep corrections in the file, and use them from the next request on."""
        kept = self.corrections
        assert kept is not None

        def keep() -> None:
            try:
                kept.add(corrections, self.registry.learn)
            except DragomanError as error:  # of the file; its path is nobody's business
                log.error("corrections cannot be kept", extra={"fields": {"reason": str(error)}})
                raise ServiceError(
                    500, "the correction could not be kept; see the service's log"
                ) from None

        await asyncio.to_thread(keep)

    async def parse(
        self, model: ServedModel, sentences: Sequence[list[str]], **options: Any
    ) -> list[Parse | None]:
        """Parse sentences that are split into words, as `Parser.parse` does."""
        parser = model.parser
        key = (model.name, *sorted(options.items()))
        found: list[Parse | None] = await self._run_in_queue(
            model, key, sentences, lambda some: parser.parse(some, **options)
        )
        self.metrics.sentences.labels(model.name).inc(len(found))
        return found

    async def run(self, model: ServedModel, work: Callable[[], T]) -> T:
        """Do any other work with a model, alone in its thread."""
        found: list[T] = await self._run_in_queue(model, None, [None], lambda _: [work()])
        return found[0]

    async def is_answering(self, model: ServedModel) -> bool:
        """Say whether a model has answered just now, or translates or parses a word."""
        last = self._answered.get(model.name, -HEALTHY_SECONDS)
        if time.monotonic() - last < HEALTHY_SECONDS:
            return True
        context = RequestContext(time.monotonic() + HEALTHY_SECONDS)
        try:
            with context.activate():
                if model.is_parser:
                    await self.parse(model, [["a"]])
                else:
                    await self.translate(model, ["a"], beam=1)
        except Exception:
            return False
        finally:
            context.cancel()
        return True

    async def _run_in_queue(
        self,
        model: ServedModel,
        key: Hashable,
        texts: Sequence[Any],
        work: Callable[[list[Any]], list[Any]],
    ) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(texts), model.chunk):
            chunk = texts[start : start + model.chunk]
            job = self._serial_queue.run(key, chunk, work, max_texts=4 * model.chunk)
            found += await _wait_until_deadline(job)
        self._answered[model.name] = time.monotonic()
        return found

    async def _run_in_thread(self, model: ServedModel, work: Callable[[], T]) -> T:
        def run() -> T:
            with raise_service_errors():
                return work()

        context = contextvars.copy_context()  # the thread works for the current request
        loop = asyncio.get_running_loop()
        found = await _wait_until_deadline(loop.run_in_executor(self._pool, context.run, run))
        self._answered[model.name] = time.monotonic()
        return found


def _is_set(name: str, option: Any) -> bool:
    """Say whether an option asks for anything; protection is on unless it is switched off."""
    if name == "protect":
        return option is False
    return option is not None and option is not False and option not in ("", [])


async def _wait_until_deadline(doing: Awaitable[T]) -> T:
    """Return what is awaited, or raise 504 when the current request's deadline comes first."""
    context = current_request()
    task = asyncio.ensure_future(doing)
    try:
        while not task.done() and context.is_wanted:  # draining brings the deadline nearer
            await asyncio.wait({task}, timeout=min(context.seconds_left, 1.0))
        if not task.done():
            raise context.error()
        return task.result()
    finally:
        task.cancel()
