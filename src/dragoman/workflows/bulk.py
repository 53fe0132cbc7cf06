"""Many files are translated in parts by any number of workers; finished parts are not repeated.

In the directory of the results, until they are complete:

    .parts/.job.json         the settings, and the inputs by what they are recognised by
    .parts/NAME/source/      an input, cut into parts of so many lines
    .parts/NAME/translated/  a file for each part that is translated

A result is put in its place when all its parts are there, and its parts are removed. Whatever is
killed, a worker or all of them, the parts that are there stay, and the same call continues.
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
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from dragoman.data import Progress
from dragoman.data.readers.parallel import COMPRESSIONS, check_rereadable, open_text
from dragoman.errors import ConfigError, DataError, DragomanError, first_line
from dragoman.inference import Translator, load
from dragoman.messages import counted
from dragoman.system.atomic_files import atomic_write, explain_os_errors, sync_directory
from dragoman.system.packages import require_package
from dragoman.system.process_pool import map_ahead
from dragoman.workflows.stages import (
    check_settings,
    exclusive_lock,
    identify_file,
    identify_model,
    join_names,
    make_stage,
    option_name,
    read_record,
    window_file,
)

PARTS: Final = ".parts"
"""The directory of the parts, in that of the results."""
_RECORD: Final = ".job.json"  # no result has such a name


@dataclass(frozen=True, slots=True)
class Summary:
    """Hold what has been done, in this call and before."""

    files: list[Path]
    """All results, in the order of the inputs."""
    lines: int
    """The lines of all results."""
    parts: int
    """The parts translated in this call."""
    there: int
    """The parts that were there before, not counting those of finished files."""
    cut: int
    """The sentences of this call that were too long for the model and were cut."""
    workers: dict[str, int]
    """How many parts each worker translated, by its machine and process."""


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

    Several models are an ensemble. `engine` names the executor: "local" for processes of this
    machine, or "ray" for those of a Ray cluster, all of which must see the same files. `options`
    are those of `Translator.translate` that leave a line a line.
    """
    if engine not in EXECUTORS:
        raise ConfigError(f"--engine {engine}: choose {' or '.join(EXECUTORS)}")
    for name, count in (("workers", workers), ("part", part)):
        if count is not None and count < 1:
            raise ConfigError(f"--{name} {count} must be at least 1")
    found = find_inputs(inputs, out)
    models = [model] if isinstance(model, Path) else list(model)
    translator = load(*models, device="cpu" if engine == "ray" else device)
    translator.require_one_model("--engine")
    models = [one.path for one in translator._loaded]  # a name is one only where it is installed
    translator.translate([], **options)  # refuses impossible options before the long work
    used = {name: value for name, value in options.items() if value is not None}
    settings = {"model": list(map(identify_model, models)), "--part": part}
    settings |= {option_name(name): value for name, value in used.items()}
    with exclusive_lock(out / PARTS / ".lock", wait=False) as lock:
        if lock is None:
            raise ConfigError(f"{out}: another process is translating here; wait until it ends")
        job = Job.open(out, found, settings)
        job.cut(part, progress)
        missing = job.missing()
        there = job.parts - len(missing)
        if there:
            tell(f"{there:,} of {job.parts:,} parts are already done")
        part_translator = PartTranslator([path.resolve() for path in models], device, used)
        if engine == "local" and workers in (None, 1):
            part_translator.use(translator)
        del translator
        remaining = Counter(one.name for one in missing)
        for name in found:
            if not remaining[name]:
                job.assemble(name)
        cut, done = 0, Counter[str]()
        for finished in EXECUTORS[engine](part_translator, missing, workers):
            cut += finished.cut
            done[finished.worker] += 1
            remaining[finished.name] -= 1
            if not remaining[finished.name]:
                job.assemble(finished.name)
            progress("translating", there + done.total(), job.parts)
        if cut:
            tell(f"{counted(cut, 'sentence')} too long for the model, cut into parts")
        return Summary(job.results, job.lines, len(missing), there, cut, dict(done))


# Inputs, their parts and the results.


class Part(NamedTuple):
    """Name some lines of an input, and where their translations go."""

    name: str
    """The result that the part belongs to."""
    source: Path
    translated: Path


def find_inputs(paths: Sequence[Path], out: Path) -> dict[str, Path]:
    """Return the files to translate by the names of their results; those of a directory in order.

    Names that begin with a dot are skipped; a result is not compressed.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            if out.resolve().is_relative_to(path.resolve()):
                raise ConfigError(f"--out {out}: is inside {path}; choose a place outside of it")
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
    """Hold files that become others of the same names in a directory."""

    out: Path
    inputs: dict[str, Path]
    counts: dict[str, tuple[int, int]]
    """The lines and parts of each input, once it is cut; a finished one has no parts."""

    @classmethod
    def open(cls, out: Path, inputs: dict[str, Path], settings: dict[str, Any]) -> Job:
        """Record the settings, unless results or parts were made with others or of other files."""
        place = out / PARTS
        record = place / _RECORD
        wanted = {
            name: [*identify_file(path), path.stat().st_mtime_ns] for name, path in inputs.items()
        }
        settings = json.loads(json.dumps(settings, default=_digest))
        with explain_os_errors(out):
            made = read_record(record) if record.exists() else {}
            if made:
                remedy = f"{place} and the results"
                check_settings(out, made.get("settings", {}), settings, remove=remedy)
            known = made.get("files", {})
            for name, identity in wanted.items():
                if name not in known and (out / name).exists():
                    raise ConfigError(
                        f"{out / name}: was not made by this command; choose another --out"
                    )
                if name in known and known[name] != identity:
                    stale = [str(p) for p in (out / name, place / name) if p.exists()]
                    if stale:
                        raise ConfigError(
                            f"{inputs[name]}: has changed; remove {join_names(stale)} to "
                            "translate it again"
                        )
            files = {**known, **wanted}
            atomic_write(record, json.dumps({"settings": settings, "files": files}, indent=1))
        return cls(out, inputs, {})

    def cut(self, size: int, progress: Progress) -> None:
        """Cut every input that has no result into parts of `size` lines."""
        for name, path in self.inputs.items():
            place = self._place(name)
            if (self.out / name).exists():
                shutil.rmtree(place, ignore_errors=True)  # killed before it could be removed
                self.counts[name] = (_count_lines(self.out / name), 0)
                continue
            counts = make_stage(place / "source", partial(_cut, path, size))
            self.counts[name] = (counts["lines"], counts["parts"])
            progress("cutting", self.parts, None)

    @property
    def results(self) -> list[Path]:
        """Return where the translations are in the end."""
        return [self.out / name for name in self.inputs]

    @property
    def lines(self) -> int:
        """Return how many lines all inputs have."""
        return sum(lines for lines, _ in self.counts.values())

    @property
    def parts(self) -> int:
        """Return how many parts the inputs have that have no result yet."""
        return sum(parts for _, parts in self.counts.values())

    def missing(self) -> list[Part]:
        """Return the parts that are not translated yet."""
        every = (
            self._part(name, n) for name, (_, parts) in self.counts.items() for n in range(parts)
        )
        return [part for part in every if not part.translated.exists()]

    def assemble(self, name: str) -> None:
        """Put a result in its place, if it is not there; all its parts must be."""
        _, parts = self.counts[name]
        whole, result = self._place(name) / "whole", self.out / name
        if result.exists():
            return
        with explain_os_errors(result):
            with whole.open("wb") as file:
                for number in range(parts):
                    part = self._part(name, number)
                    text = part.translated.read_bytes()
                    if text.count(b"\n") != part.source.read_bytes().count(b"\n"):
                        raise DragomanError(
                            f"{part.translated}: does not have as many lines as {part.source}; "
                            "remove it and run again"
                        )
                    file.write(text)
                file.flush()
                os.fsync(file.fileno())
            result.parent.mkdir(parents=True, exist_ok=True)
            whole.rename(result)
            sync_directory(result.parent)
        shutil.rmtree(self._place(name), ignore_errors=True)
        with suppress(OSError):  # the directory is not empty yet
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


def _digest(value: object) -> str:
    """Return what recognises an option that JSON cannot hold, such as a glossary."""
    return hashlib.blake2b(pickle.dumps(value), digest_size=8).hexdigest()


def _cut(path: Path, size: int, directory: Path) -> dict[str, int]:
    """Write a file in parts of `size` lines, and return how many lines and parts there are."""
    lines = parts = 0
    text = open_text(path)
    while window := list(islice(text, size)):
        content = "".join(f"{line}\n" for line in window)
        window_file(directory, parts).write_text(content, encoding="utf-8", newline="\n")
        lines += len(window)
        parts += 1
    return {"lines": lines, "parts": parts}


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


# Translating parts.


class FinishedPart(NamedTuple):
    """Report a part that is translated."""

    name: str
    """The result that the part belongs to."""
    worker: str
    """The machine and the process that translated it."""
    cut: int
    """The sentences that were too long and were cut."""


class PartTranslator:
    """Translate parts in any process: the model is loaded there when the first part comes."""

    def __init__(self, models: Sequence[Path], device: str, options: dict[str, Any]) -> None:
        self.device = device
        self._models, self._options = models, options
        self._translator: Translator | None = None
        self._cut = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return PartTranslator, (self._models, self.device, self._options)

    def use(self, translator: Translator) -> None:
        """Use a model that is loaded already."""
        self._translator = translator
        translator.warn = self._count_cut

    def __call__(self, part: Part) -> FinishedPart:
        """Translate a part, unless it is there already; the file appears when it is complete."""
        before = self._cut
        if not part.translated.exists():
            if self._translator is None:
                self.use(load(*self._models, device=self.device))
            assert self._translator is not None
            found = self._translator.translate_lines(open_text(part.source), **self._options)
            atomic_write(part.translated, "".join(f"{one.text}\n" for one in found))
        return FinishedPart(part.name, f"{platform.node()}:{os.getpid()}", self._cut - before)

    def _count_cut(self, message: str) -> None:
        self._cut += 1


def _run_locally(
    translate: PartTranslator, parts: Sequence[Part], workers: int | None
) -> Iterator[FinishedPart]:
    """Translate parts in this process, or in several of one thread each."""
    processes = 0 if workers in (None, 1) else min(workers or 1, len(parts))
    return map_ahead(translate, parts, processes)


# Ray.

_MAX_ATTEMPTS: Final = 5
"""How many workers may die of a part; Ray itself would never give up."""
_MAX_BLOCKS: Final = 10_000
"""Ray keeps account of each block; if there are more parts, one block holds several."""


def _run_on_ray(
    translate: PartTranslator, parts: Sequence[Part], workers: int | None
) -> Iterator[FinishedPart]:
    """Translate parts in actors of Ray Data; one that dies is restarted, and its part repeated."""
    if not parts:
        return
    require_package("ray", "--engine ray")
    import ray
    import ray.data

    ours = not ray.is_initialized()
    with redirect_stdout(sys.stderr):  # Ray prints about workers that died
        try:
            if ours:
                os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # raised anyway
                ray.init(
                    os.environ.get("RAY_ADDRESS", "local"),  # not a cluster that ran here before
                    log_to_driver=False,
                    include_dashboard=False,
                    logging_level=logging.ERROR,
                )
            yield from _map_on_ray(ray, translate, parts, workers)
        except (ConnectionError, ray.exceptions.RayError) as error:
            raise DragomanError(
                f"Ray: {first_line(error)}; finished parts are kept: run again"
            ) from None
        finally:
            if ours:
                ray.shutdown()


def _map_on_ray(
    ray: Any, translate: PartTranslator, parts: Sequence[Part], workers: int | None
) -> Iterator[FinishedPart]:
    resources = ray.cluster_resources()
    gpus = 0 if translate.device == "cpu" else int(resources.get("GPU", 0))
    actors = workers or gpus or int(resources.get("CPU", 1))
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    for part in parts:
        _attempts_file(part).unlink(missing_ok=True)
    # Another machine may have another working directory.
    rows = [
        {"name": p.name, "source": str(p.source.resolve())}
        | {"translated": str(p.translated.resolve())}
        for p in parts
    ]
    done = ray.data.from_items(rows, override_num_blocks=min(len(rows), _MAX_BLOCKS)).map(
        _Actor,
        fn_constructor_args=(translate,),
        compute=ray.data.ActorPoolStrategy(size=min(actors, len(rows))),
        num_gpus=1 if gpus else None,
    )
    for row in done.iter_rows():
        if row["error"]:
            raise DragomanError(row["error"])
        yield FinishedPart(row["name"], row["worker"], row["cut"])


class _Actor:
    """Translate parts as Ray Data asks for it, row by row."""

    def __init__(self, translate: PartTranslator) -> None:
        self._translate = translate

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate the part of a row; an error is returned, for Ray wraps what is raised."""
        part = Part(row["name"], Path(row["source"]), Path(row["translated"]))
        try:
            self._count_attempt(part)
            return {**self._translate(part)._asdict(), "error": ""}
        except Exception as error:
            message = str(error) if isinstance(error, DragomanError) else repr(error)
            return {**FinishedPart(part.name, "", 0)._asdict(), "error": message}

    def _count_attempt(self, part: Part) -> None:
        attempts = _attempts_file(part)
        attempts.parent.mkdir(exist_ok=True)
        with attempts.open("ab") as file:
            if file.tell() >= _MAX_ATTEMPTS:
                raise DataError(
                    f"{part.source}: {_MAX_ATTEMPTS} workers died while translating this part; "
                    "if memory ran out, use fewer workers"
                )
            file.write(b"+")


def _attempts_file(part: Part) -> Path:
    """Return the path of a file with a byte for each time that a part was begun."""
    return part.translated.with_suffix(".tries")


Executor = Callable[[PartTranslator, Sequence[Part], int | None], Iterator[FinishedPart]]
EXECUTORS: Final[dict[str, Executor]] = {"local": _run_locally, "ray": _run_on_ray}
"""What runs the workers, by the names that --engine takes."""
