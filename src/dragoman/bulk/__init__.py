"""Files translated in parts, by any number of workers, so that nothing finished is done again.

In the directory of the results, until they are whole:

    .parts/.job.json         how the parts are made
    .parts/NAME/source/      an input, cut into parts of so many lines
    .parts/NAME/translated/  a file for each part that is done

A result is put in its place when all its parts are there, and its parts are removed. Whoever dies,
a worker or all of them, what is there stays, and the same call goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.bulk.engines import ENGINES, Engine
from dragoman.bulk.parts import PARTS, Job, find_inputs
from dragoman.data.prepare import Progress
from dragoman.errors import ConfigError
from dragoman.stages import alone, load_known, option

__all__ = ["Summary", "translate_directory"]


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
