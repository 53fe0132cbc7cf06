"""Long work is done in a directory of stages: nothing is done twice, and no settings are mixed.

A stage is a directory, made from the input and from the stages before it. A record beside the
stages, a JSON file, holds the settings that each was made with; a command with other settings is
refused. Most stages appear when they are complete (`make_stage`). One that is made window by window
(`fill_windows`) holds a file for each window, which is complete or absent. A lock keeps two
processes from making the same stage. So whatever is killed at whatever moment, the same command
continues.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from dragoman.config import Config
from dragoman.data import Progress
from dragoman.data.prepare import prepare
from dragoman.data.readers.parallel import ConcatenatedCorpus, Corpus, check_rereadable, open_text
from dragoman.errors import ConfigError
from dragoman.messages import counted
from dragoman.model_directory import open_model
from dragoman.system.atomic_files import (
    atomic_directory,
    atomic_write,
    explain_os_errors,
    remove_leftovers,
)
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.training.run import Outcome

Item = TypeVar("Item")
Settings = dict[str, Any]


# The record of how stages were made.


def check_directory(out: Path, *, command: str) -> None:
    """Raise ConfigError if a directory has files, but not the record of this command."""
    with explain_os_errors(out):
        if not out.exists() or (out / f"{command}.json").exists():
            return
        if any(not path.name.startswith(".") for path in out.iterdir()):
            raise ConfigError(f"{out}: not made by dragoman {command}; choose another --out")


def record_stages(out: Path, stages: dict[str, Settings], *, command: str) -> None:
    """Record the settings of each stage, in their order, unless one was made with others.

    The record may name more stages that come last, made from all but the last of these: they stay.
    What killed processes left beside the stages is removed, so no other process may write there.
    """
    wanted: dict[str, Settings] = json.loads(json.dumps(stages))  # tuples become lists
    record = out / f"{command}.json"
    with explain_os_errors(out):
        made = read_record(record) if record.exists() else {}
        *bases, last = wanted
        others = [stage for stage in made if stage not in wanted]
        for position, stage in enumerate(wanted):
            dependent = [last] if stage == last else [*bases[position:], *others, last]
            stale = [name for name in dependent if (out / name).exists()]
            if stale:
                remedy = f"{join_names(stale)} in it to make that again"
                check_settings(out / stage, made.get(stage, {}), wanted[stage], remove=remedy)
        entries = {**{stage: made[stage] for stage in others if (out / stage).exists()}, **wanted}
        atomic_write(record, json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
        remove_leftovers(out)


def read_record(record: Path) -> dict[str, Settings]:
    """Read the settings of each stage."""
    try:
        made = json.loads(record.read_text(encoding="utf-8"))
        return {stage: dict(settings) for stage, settings in made.items()}
    except (ValueError, AttributeError, TypeError):
        raise ConfigError(f"{record}: cannot be read; choose another --out") from None


def check_settings(place: Path, made: Settings, wanted: Settings, *, remove: str) -> None:
    """Raise ConfigError, with the first setting that differs, if a place was made with others."""
    for name in (*wanted, *made):
        before, now = made.get(name), wanted.get(name)
        if before != now:
            short = not isinstance(before, list) and not isinstance(now, list)
            values = f" ({before}, now {now})" if short else ""
            raise ConfigError(
                f"{place}: made with another {name}{values}; choose another --out, or remove "
                f"{remove}"
            )


def option_name(name: str) -> str:
    """Return the name that a setting has on the command line."""
    return f"--{name.replace('_', '-')}"


def join_names(names: Sequence[str]) -> str:
    """Return names as a sentence has them: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def identify_file(path: Path) -> list[Any]:
    """Return what a file, or all of a directory, is recognised by wherever it is moved to."""
    if path.is_dir():
        sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
        return [path.name, len(sizes), sum(sizes)]
    check_rereadable(path)
    return [path.name, path.stat().st_size]


def identify_model(path: Path) -> str:
    """Return a digest of a model's weights."""
    with open_model(path).weights_file.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:16]


# Making stages.


def make_stage(place: Path, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Make a stage if it is not there yet, and return its counts.

    `make` fills the directory it is given and returns the counts, which counts.json holds.
    """
    counts_file = "counts.json"
    if not place.exists():
        with atomic_directory(place) as directory:
            counts = json.dumps(make(directory))
            (directory / counts_file).write_text(counts, encoding="utf-8")
    found: dict[str, Any] = json.loads((place / counts_file).read_text(encoding="utf-8"))
    return found


def describe_selection(counts: dict[str, int], purpose: str, reasons: Sequence[str]) -> str:
    """Say how many lines were read, how many are e.g. "to parse", and why the others are not."""
    dropped = [f"; {reason}: {counts[reason]:,}" for reason in reasons if counts[reason]]
    return (
        f"{counted(counts['read'], 'line')} read, {counts[purpose]:,} {purpose}{''.join(dropped)}"
    )


def fill_windows(
    place: Path,
    items: Iterable[Item],
    total: int,
    size: int,
    make: Callable[[list[Item]], str],
    *,
    progress: Progress,
    activity: str,
    suffix: str = ".txt",
    share: tuple[int, int] = (1, 1),
) -> int:
    """Make the windows that are not there, of `size` items each; return how many are still missing.

    With a `share` of (2, 3), only the second of every three windows is made: the others are left to
    other processes.
    """
    mine, shares = share
    remaining, missing = iter(items), 0
    for start in range(0, total, size):
        window = list(islice(remaining, size))
        number = start // size
        file = window_file(place, number, suffix)
        if not file.exists():
            if number % shares == mine - 1:
                atomic_write(file, make(window))
            else:
                missing += 1
        progress(activity, start + len(window), total)
    if not missing:
        return 0
    windows = -(-total // size)  # other processes may have made some meanwhile
    return sum(not window_file(place, number, suffix).exists() for number in range(windows))


def read_windows(place: Path, suffix: str = ".txt") -> Iterator[str]:
    """Yield the lines of all windows of a stage, in order."""
    number = 0
    while (file := window_file(place, number, suffix)).exists():
        yield from open_text(file)
        number += 1


def window_file(place: Path, number: int, suffix: str = ".txt") -> Path:
    """Return the path of a window of a stage."""
    return place / f"{number:06}{suffix}"


def prepare_stage(
    place: Path,
    parts: Sequence[Corpus],
    config: Config,
    *,
    valid: Corpus,
    tokenizer: Tokenizer | None,
    tell: Callable[[str], None],
    progress: Progress,
) -> None:
    """Prepare several corpora as one, and tell what became of their pairs."""
    corpus = ConcatenatedCorpus(parts)
    prepared = prepare(
        corpus,
        place,
        config,
        valid=valid,
        tokenizer=tokenizer,
        progress=progress,
        show_message=tell,
    )
    for line in prepared.lines():
        tell(line)


def train_stage(
    run: Path, config: Config, data: Path, *, tests: Sequence[Sequence[Path]], quiet: bool
) -> tuple[Path | None, Outcome | None]:
    """Train on prepared data, or continue the run if it was interrupted.

    Return the model, if training ended, and the outcome of training, if there was any.
    """
    from dragoman.training.run import resume, train  # which needs PyTorch

    if (run / "model").exists():
        return run / "model", None
    if (run / "config.toml").exists():
        outcome = resume(run, quiet=quiet)
    else:
        outcome = train(config, data, tests=tests, run=run, quiet=quiet)
    return outcome.model, outcome


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes], *, wait: bool) -> None:
        """Lock an open file, or raise BlockingIOError."""
        while True:
            try:
                return msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    raise BlockingIOError from None
                time.sleep(0.1)

else:
    import fcntl

    def _lock(file: IO[bytes], *, wait: bool) -> None:
        """Lock an open file, or raise BlockingIOError."""
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def exclusive_lock(path: Path, *, wait: bool) -> Iterator[IO[bytes] | None]:
    """Hold a lock file inside the block; yield it, or None if another process holds it.

    With `wait` the block begins when the other process ends. The lock is released when its holder
    ends, however that happens; a child process that inherits the file holds it as well.
    """
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("wb")
    with file:
        try:
            _lock(file, wait=wait)
        except BlockingIOError:
            yield None
        else:
            yield file
