"""Who translates the parts: processes of this machine, or those of a Ray cluster."""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple

from dragoman.bulk.parts import Part
from dragoman.data.pool import ahead
from dragoman.data.readers import open_text
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.files import atomic_write
from dragoman.translate import Translator, load

__all__ = ["ENGINES", "Engine", "Finished"]

_TRIES: Final = 5
"""How many workers may die of a part; Ray itself would go on for ever."""
_BLOCKS: Final = 10_000
"""Ray keeps account of each; beyond this number, one holds several parts."""


class Finished(NamedTuple):
    """A part that is there."""

    name: str
    """Of the result it belongs to."""
    worker: str
    """Who made it: machine and process."""
    cut: int
    """Sentences that were too long and were cut."""


class Engine:
    """Translates parts; loads its model where it has travelled to, when the first part comes."""

    def __init__(self, models: Sequence[Path], device: str, options: dict[str, Any]) -> None:
        self.device = device
        self._models, self._options = models, options
        self._translator: Translator | None = None
        self._cut = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Engine, (self._models, self.device, self._options)

    def adopt(self, translator: Translator) -> None:
        """Use a model that is loaded already."""
        self._translator = translator
        translator.warn = self._count

    def __call__(self, part: Part) -> Finished:
        """Translate a part, unless somebody has; it appears when it is whole."""
        before = self._cut
        if not part.translated.exists():
            if self._translator is None:
                self.adopt(load(*self._models, device=self.device))
            assert self._translator is not None
            found = self._translator.translate_lines(open_text(part.source), **self._options)
            atomic_write(part.translated, "".join(f"{one.text}\n" for one in found))
        return Finished(part.name, f"{platform.node()}:{os.getpid()}", self._cut - before)

    def _count(self, message: str) -> None:
        self._cut += 1


def _local(engine: Engine, parts: Sequence[Part], workers: int | None) -> Iterator[Finished]:
    """In this process, or in several of one thread each."""
    return ahead(engine, parts, 0 if workers in (None, 1) else min(workers or 1, len(parts)))


def _ray(engine: Engine, parts: Sequence[Part], workers: int | None) -> Iterator[Finished]:
    """As actors of Ray Data: one that dies is started again, and its part given out again."""
    if not parts:
        return
    try:
        import ray
        import ray.data
    except ImportError:
        raise ConfigError(
            "--engine ray needs one more package; pip install 'dragoman[ray]'"
        ) from None
    ours = not ray.is_initialized()
    with redirect_stdout(sys.stderr):  # where Ray tells of workers that died
        try:
            if ours:
                os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # raised anyway
                ray.init(
                    os.environ.get("RAY_ADDRESS", "local"),  # and none that was here some time ago
                    log_to_driver=False,
                    include_dashboard=False,
                    logging_level=logging.ERROR,
                )
            yield from _mapped(ray, engine, parts, workers)
        except (ConnectionError, ray.exceptions.RayError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise DragomanError(f"Ray: {reason}; what is done stays: run again") from None
        finally:
            if ours:
                ray.shutdown()


def _mapped(
    ray: Any, engine: Engine, parts: Sequence[Part], workers: int | None
) -> Iterator[Finished]:
    resources = ray.cluster_resources()
    gpus = 0 if engine.device == "cpu" else int(resources.get("GPU", 0))
    crew = workers or gpus or int(resources.get("CPU", 1))
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    for part in parts:
        _tries(part).unlink(missing_ok=True)
    # Another machine may have another working directory.
    rows = [
        {"name": p.name, "source": str(p.source.resolve())}
        | {"translated": str(p.translated.resolve())}
        for p in parts
    ]
    done = ray.data.from_items(rows, override_num_blocks=min(len(rows), _BLOCKS)).map(
        _Actor,
        fn_constructor_args=(engine,),
        compute=ray.data.ActorPoolStrategy(size=min(crew, len(rows))),
        num_gpus=1 if gpus else None,
    )
    for row in done.iter_rows():
        if row["error"]:
            raise DragomanError(row["error"])
        yield Finished(row["name"], row["worker"], row["cut"])


class _Actor:
    """An engine as Ray Data calls it, row by row."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate the part of a row; an error is returned, for Ray wraps what is raised."""
        part = Part(row["name"], Path(row["source"]), Path(row["translated"]))
        try:
            self._count(part)
            return {**self._engine(part)._asdict(), "error": ""}
        except Exception as error:
            told = str(error) if isinstance(error, DragomanError) else repr(error)
            return {**Finished(part.name, "", 0)._asdict(), "error": told}

    def _count(self, part: Part) -> None:
        tries = _tries(part)
        tries.parent.mkdir(exist_ok=True)
        with tries.open("ab") as file:
            if file.tell() >= _TRIES:
                raise DataError(
                    f"{part.source}: {_TRIES} workers have died of this part; if memory ran out, "
                    "use fewer"
                )
            file.write(b"+")


def _tries(part: Part) -> Path:
    """A file with a byte for each time that a part was begun."""
    return part.translated.with_suffix(".tries")


ENGINES: Final[dict[str, Callable[[Engine, Sequence[Part], int | None], Iterator[Finished]]]] = {
    "local": _local,
    "ray": _ray,
}
"""By the names a user gives."""
