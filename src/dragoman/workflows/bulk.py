"""Files translated in parts, by any number of workers, so that nothing finished is done again.

In the directory of the results, until they are whole:

    .parts/.job.json         how the parts are made
    .parts/NAME/source/      an input, cut into parts of so many lines
    .parts/NAME/translated/  a file for each part that is done

A result is put in its place when all its parts are there, and its parts are removed. Whoever dies,
a worker or all of them, what is there stays, and the same call goes on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
import platform
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from dragoman.data.prepare import Progress
from dragoman.data.readers.parallel import check_rereadable, open_text
from dragoman.data.readers.text_files import COMPRESSIONS
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.inference import Translator, load
from dragoman.system.atomic_files import atomic_directory, atomic_write, explained, sync_directory
from dragoman.system.process_pool import ahead
from dragoman.workflows.stages import (
    alone,
    difference,
    facts,
    listed,
    load_known,
    option,
    window_file,
)

__all__ = [
    "ENGINES",
    "PARTS",
    "Engine",
    "Finished",
    "Job",
    "Part",
    "Summary",
    "find_inputs",
    "translate_directory",
]


# PART bulk.parts: Inputs cut into parts, and results put together from them.


PARTS: Final = ".parts"
"""Where the parts are, in the directory of the results."""
_RECORD: Final = ".job.json"  # no result has such a name


class Part(NamedTuple):
    """Some lines of an input, and where their translations go."""

    name: str
    """Of the result."""
    source: Path
    translated: Path


def find_inputs(paths: Sequence[Path], out: Path) -> dict[str, Path]:
    """The files to translate, by the names of their results; those of a directory in order.

    Names that begin with a dot are passed over; a result is not compressed.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            if out.resolve().is_relative_to(path.resolve()):
                raise ConfigError(f"--out {out}: lies in {path}, which is read; choose another")
            inside = sorted(file for file in path.rglob("*") if file.is_file())
            names = [(file.relative_to(path), file) for file in inside]
        else:
            check_rereadable(path)
            names = [(Path(path.name), path)]
        for place, file in names:
            if any(part.startswith(".") for part in place.parts):
                continue
            name = str(place.with_suffix("") if place.suffix.lower() in COMPRESSIONS else place)
            if name in found:
                raise DataError(f"{found[name]} and {file} would both become {out / name}")
            found[name] = file
    if not found:
        raise DataError(f"{' + '.join(map(str, paths))}: no files to translate")
    return found


@dataclass(slots=True)
class Job:
    """Files that become others of the same names in a directory."""

    out: Path
    inputs: dict[str, Path]
    counts: dict[str, tuple[int, int]]
    """Lines and parts of each, once they are cut; those of finished files have no parts."""

    @classmethod
    def begin(cls, out: Path, inputs: dict[str, Path], settings: dict[str, Any]) -> Job:
        """Note how the results are made; what was made in another way is refused."""
        place = out / PARTS
        record = place / _RECORD
        wanted = {name: [*facts(path), path.stat().st_mtime_ns] for name, path in inputs.items()}
        settings = json.loads(json.dumps(settings, default=_pickled))
        with explained(out):
            made = _read(record) if record.exists() else {"settings": settings, "files": {}}
            if name := difference(made["settings"], settings):
                raise ConfigError(
                    f"{out}: made with another {name}; choose another --out, or remove {place} and "
                    "the results"
                )
            for name, fact in wanted.items():
                known = made["files"].get(name)
                if known is None and (out / name).exists():
                    raise ConfigError(f"{out / name}: not made here; choose another --out")
                if known is not None and known != fact:
                    stale = [str(p) for p in (out / name, place / name) if p.exists()]
                    if stale:
                        raise ConfigError(
                            f"{inputs[name]}: has changed; remove {listed(stale)} to translate it "
                            "again"
                        )
            files = {**made["files"], **wanted}
            atomic_write(record, json.dumps({"settings": settings, "files": files}, indent=1))
        return cls(out, inputs, {})

    def cut(self, size: int, progress: Progress) -> None:
        """Cut every input that has no result into parts of `size` lines."""
        for name, path in self.inputs.items():
            place = self._place(name)
            if (self.out / name).exists():
                shutil.rmtree(place, ignore_errors=True)  # killed before it could be removed
                self.counts[name] = (_count(self.out / name), 0)
                continue
            if not (place / "source").exists():
                _cut(path, place / "source", size)
            counts = json.loads((place / "source" / "counts.json").read_text(encoding="utf-8"))
            self.counts[name] = (counts["lines"], counts["parts"])
            progress("cutting", self.parts, None)

    @property
    def results(self) -> list[Path]:
        """Where the translations are in the end."""
        return [self.out / name for name in self.inputs]

    @property
    def lines(self) -> int:
        """Of all inputs."""
        return sum(lines for lines, _ in self.counts.values())

    @property
    def parts(self) -> int:
        """Of all inputs that have no result yet."""
        return sum(parts for _, parts in self.counts.values())

    def missing(self) -> list[Part]:
        """What has to be translated yet."""
        every = (
            self._part(name, n) for name, (_, parts) in self.counts.items() for n in range(parts)
        )
        return [part for part in every if not part.translated.exists()]

    def join(self, name: str) -> None:
        """Put a result in its place, if it is not there; all its parts must be."""
        _, parts = self.counts[name]
        whole, result = self._place(name) / "whole", self.out / name
        if result.exists():
            return
        with explained(result):
            with whole.open("wb") as file:
                for number in range(parts):
                    part = self._part(name, number)
                    text = part.translated.read_bytes()
                    if text.count(b"\n") != part.source.read_bytes().count(b"\n"):
                        raise DragomanError(
                            f"{part.translated}: has not as many lines as {part.source}; remove "
                            "it and run again"
                        )
                    file.write(text)
                file.flush()
                os.fsync(file.fileno())
            result.parent.mkdir(parents=True, exist_ok=True)
            whole.rename(result)
            sync_directory(result.parent)
        shutil.rmtree(self._place(name), ignore_errors=True)
        with suppress(OSError):  # the last of its directory
            for above in Path(name).parents[:-1]:
                (self.out / PARTS / above).rmdir()

    def _place(self, name: str) -> Path:
        return self.out / PARTS / name

    def _part(self, name: str, number: int) -> Part:
        place = self._place(name)
        source, translated = (
            window_file(place / stage, number) for stage in ("source", "translated")
        )
        return Part(name, source, translated)


def _pickled(value: object) -> str:
    """What an option is known by that JSON cannot hold, such as a glossary."""
    return hashlib.blake2b(pickle.dumps(value), digest_size=8).hexdigest()


def _read(record: Path) -> dict[str, dict[str, Any]]:
    try:
        made = json.loads(record.read_text(encoding="utf-8"))
        return {"settings": dict(made["settings"]), "files": dict(made["files"])}
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{record}: cannot be read; choose another --out") from None


def _cut(path: Path, place: Path, size: int) -> None:
    with atomic_directory(place) as directory:
        lines = parts = 0
        reading = open_text(path)
        while window := list(islice(reading, size)):
            text = "".join(f"{line}\n" for line in window)
            window_file(directory, parts).write_text(text, encoding="utf-8", newline="\n")
            lines += len(window)
            parts += 1
        counts = json.dumps({"lines": lines, "parts": parts})
        (directory / "counts.json").write_text(counts, encoding="utf-8")


def _count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


# PART bulk.engines: Who translates the parts: processes of this machine, or those of a Ray
# cluster.


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


@dataclass(frozen=True, slots=True)
class Summary:
    """What has been done, of that in this call."""

    files: list[Path]
    """The results, all of them, in the order of the inputs."""
    lines: int
    """In all of them."""
    parts: int
    """Translated this time."""
    there: int
    """Parts that were there before, not counting those of finished files."""
    cut: int
    """Sentences that were too long for the model and were cut, this time."""
    workers: dict[str, int]
    """How many parts each worker did, by its machine and process."""


def translate_directory(
    model: Path | Sequence[Path],
    inputs: Sequence[Path],
    out: Path,
    *,
    engine: str = "local",
    workers: int | None = None,
    part: int = 2000,
    device: str = "auto",
    tell: Callable[[str], None] = lambda message: None,
    progress: Progress = lambda stage, done, total: None,
    **options: Any,
) -> Summary:
    """Translate files, and all files of directories, to files of the same names in `out`.

    Several models are an ensemble. The engine is "local", processes of this machine, or "ray",
    those of a Ray cluster, all of which see the same files. `options` are those of
    `Translator.translate` that leave a line a line.
    """
    if engine not in ENGINES:
        raise ConfigError(f"--engine {engine}: there are {' and '.join(ENGINES)}")
    for name, count in (("workers", workers), ("part", part)):
        if count is not None and count < 1:
            raise ConfigError(f"--{name} {count} must be at least 1")
    found = find_inputs(inputs, out)
    models = [model] if isinstance(model, Path) else list(model)
    translator, digests = load_known(models, "cpu" if engine == "ray" else device)
    translator.translate([], **options)  # what cannot be is refused before the long work
    used = {name: value for name, value in options.items() if value is not None}
    settings = {"model": digests, "--part": part}
    settings |= {option(name): value for name, value in used.items()}
    with alone(out / PARTS / ".lock", wait=False) as first:
        if not first:
            raise ConfigError(f"{out}: another process is at work here; wait for its end")
        job = Job.begin(out, found, settings)
        job.cut(part, progress)
        todo = job.missing()
        there = job.parts - len(todo)
        if there:
            tell(f"{there:,} of {job.parts:,} parts are there already")
        cut, done = 0, Counter[str]()
        worker = Engine([path.resolve() for path in models], device, used)
        if engine == "local" and workers in (None, 1):
            worker.adopt(translator)
        del translator
        remaining = Counter(one.name for one in todo)
        for name in found:
            if not remaining[name]:
                job.join(name)
        for finished in ENGINES[engine](worker, todo, workers):
            cut += finished.cut
            done[finished.worker] += 1
            remaining[finished.name] -= 1
            if not remaining[finished.name]:
                job.join(finished.name)
            progress("translating", there + done.total(), job.parts)
        if cut:
            tell(f"{cut:,} sentences were too long for the model and were cut into parts")
        return Summary(job.results, job.lines, len(todo), there, cut, dict(done))
