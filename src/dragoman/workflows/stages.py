"""Long work in a directory of stages: what is done is not done again, and no two ways are mixed.

A stage is a directory, made of the input and of the stages before it. A record beside them says
how each was made. Most stages appear when they are complete; one made window by window holds a
file for each window, whole or not there.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from dragoman.data.prepare import Progress
from dragoman.data.readers.parallel import check_rereadable
from dragoman.errors import ConfigError
from dragoman.inference import Translator, load
from dragoman.inference.device import pick
from dragoman.model_directory import open_model
from dragoman.system.atomic_files import atomic_write, explained, remove_leftovers
from dragoman.system.memory import keep_freed_memory

__all__ = [
    "alone",
    "begin",
    "difference",
    "facts",
    "fill",
    "listed",
    "load_known",
    "option",
    "read_record",
    "window_file",
]

Item = TypeVar("Item")


def begin(out: Path, stages: dict[str, dict[str, Any]], *, command: str, tidy: bool = True) -> None:
    """Note how each stage is made, in their order; what was made in another way is refused.

    The record may have more stages that come last, made from all but the last of these: they stay.
    What killed processes left beside the stages is removed: nobody may be writing there.
    """
    wanted: dict[str, dict[str, Any]] = json.loads(json.dumps(stages))  # tuples become lists
    record = out / f"{command}.json"
    with explained(out):
        if out.exists() and not record.exists() and any(_visible(out)):
            raise ConfigError(f"{out}: not made by dragoman {command}; choose another --out")
        made = read_record(record) if record.exists() else {}
        *bases, last = wanted
        others = [stage for stage in made if stage not in wanted]
        for place, stage in enumerate(wanted):
            later = [last] if stage == last else [*bases[place:], *others, last]
            stale = [name for name in later if (out / name).exists()]
            if stale and (name := difference(made.get(stage, {}), wanted[stage])):
                raise ConfigError(
                    f"{out / stage}: made with another {name}; choose another --out, or remove "
                    f"{listed(stale)} in it to make that again"
                )
        entries = {**{stage: made[stage] for stage in others if (out / stage).exists()}, **wanted}
        atomic_write(record, json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
        remove_leftovers(out)


def _visible(directory: Path) -> Iterator[Path]:
    return (path for path in directory.iterdir() if not path.name.startswith("."))


def read_record(record: Path) -> dict[str, dict[str, Any]]:
    """How each stage was made, as `begin` noted it."""
    try:
        made = json.loads(record.read_text(encoding="utf-8"))
        return {stage: dict(settings) for stage, settings in made.items()}
    except (ValueError, AttributeError, TypeError):
        raise ConfigError(f"{record}: cannot be read; choose another --out") from None


def difference(made: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """The first setting that differs, with its two values where they are short."""
    for name in (*wanted, *made):
        before, now = made.get(name), wanted.get(name)
        if before != now:
            short = not isinstance(before, list) and not isinstance(now, list)
            return f"{name} ({before}, now {now})" if short else name
    return None


def listed(names: list[str]) -> str:
    """Names as a sentence has them."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def fill(
    place: Path,
    items: Iterable[Item],
    total: int,
    size: int,
    make: Callable[[list[Item]], str],
    *,
    progress: Progress,
    doing: str,
    share: tuple[int, int] = (1, 1),
) -> int:
    """Make the windows that are not there, of `size` items each; how many are missing then.

    With a `share` of (2, 3), only the second of every three windows is made: the others are other
    processes'.
    """
    mine, of = share
    waiting, missing = iter(items), 0
    for start in range(0, total, size):
        window = list(islice(waiting, size))
        number = start // size
        file = window_file(place, number)
        if not file.exists():
            if number % of == mine - 1:
                atomic_write(file, make(window))
            else:
                missing += 1
        progress(doing, start + len(window), total)
    # Others may have been at work meanwhile.
    return missing and sum(not window_file(place, n).exists() for n in range(-(-total // size)))


def window_file(place: Path, number: int) -> Path:
    """Where a window of a stage is."""
    return place / f"{number:06}.txt"


@contextmanager
def alone(lock: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock file, so that no other process does; False if one does and `wait` is not set.

    It is free again when its holder ends, however that happens.
    """
    with explained(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("wb")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def option(name: str) -> str:
    """A setting's name on the command line."""
    return f"--{name.replace('_', '-')}"


def facts(path: Path) -> list[Any]:
    """What a file, or all of a directory, is known by, wherever it is moved to."""
    if path.is_dir():
        sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
        return [path.name, len(sizes), sum(sizes)]
    check_rereadable(path)
    return [path.name, path.stat().st_size]


def load_known(paths: Sequence[Path], device: str) -> tuple[Translator, list[str]]:
    """The translator that these models are, together if several, and a digest of each."""
    device = pick(device)
    if device == "cpu":
        keep_freed_memory()
    loaded = [open_model(path) for path in paths]
    digests = []
    for one in loaded:
        with (one.path / "weights.safetensors").open("rb") as file:
            digests.append(hashlib.file_digest(file, "blake2b").hexdigest()[:16])
    return load(*paths, device=device), digests
