"""This is the list of systems whose translation is timed, with the settings that are tried."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from dragoman.errors import ConfigError
from dragoman.inference.cpu.shortlist import SHORTLIST_FILE, Shortlist
from dragoman.system.atomic_files import atomic_write
from dragoman.text.special_tokens import EOS, FIRST_PIECE

Settings: TypeAlias = dict[str, Any]
"""The threads and batches of a system, as its worker takes them."""


def _no_settings(threads: int) -> Settings:
    return {}


CandidateGroups: TypeAlias = tuple[tuple[Settings, ...], ...]


def _no_candidates(threads: int, sentences: int) -> CandidateGroups:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """Describe something that translates, and the settings it may be run with."""

    name: str
    worker: str
    """Names the `worker_….py` that runs it."""
    precision: str
    export: str | None = None
    """Names the runtime that a model must be exported to; None for our own."""
    shortlist: bool = False
    """Says whether only the pieces of the model's shortlist are considered."""
    default_settings: Callable[[int], Settings] = _no_settings
    """Returns the settings to begin with, by the number of threads."""
    candidates: Callable[[int, int], CandidateGroups] = _no_candidates
    """Returns, by threads and sentences, groups of settings; of each the fastest is kept."""
    tuning_sentences: int = 0
    """Counts the sentences that settings are tried on."""
    single_settings: Callable[[int], Settings] = _no_settings
    """Returns the settings for one sentence at a time."""


def _ctranslate2(precision: str) -> System:
    return System(
        name=f"CTranslate2 {precision}",
        worker="ctranslate2",
        precision=precision,
        export="ctranslate2",
        default_settings=lambda threads: _all_threads(threads) | _batch(64, "examples"),
        candidates=lambda threads, sentences: (
            tuple(
                {"inter_threads": inter, "intra_threads": threads // inter}
                # No larger a batch than leaves work for all.
                | _batch(min(64, -(-sentences // inter)), "examples")
                for inter in range(1, threads + 1)
                if threads % inter == 0
            ),
            (
                *(_batch(size, "examples") for size in _useful_sizes((16, 32, 64, 128), sentences)),
                *(
                    _batch(32 * size, "tokens")
                    for size in _useful_sizes((16, 32, 64, 128), sentences)
                ),
            ),
        ),
        tuning_sentences=256,  # two of the largest batches, one for each of two inter_threads
        single_settings=lambda threads: _all_threads(threads) | _batch(1, "examples"),
    )


_MARIAN = System(
    name="Marian int8",
    worker="marian",
    precision="int8",
    export="marian",
    default_settings=lambda threads: {"cpu_threads": threads} | _batch(32, "examples"),
    candidates=lambda threads, sentences: (
        tuple(
            _batch(size, "examples")
            for size in _useful_sizes((8, 16, 32, 64), -(-sentences // threads))
        ),
    ),
    tuning_sentences=128,  # a batch of the largest for each of two threads
    # Marian's threads take sentences: one sentence has one.
    single_settings=lambda threads: {"cpu_threads": 1} | _batch(1, "examples"),
)


def _all_threads(threads: int) -> Settings:
    """Return settings that put all threads on one sentence."""
    return {"inter_threads": 1, "intra_threads": threads}


def _useful_sizes(sizes: Sequence[int], sentences: int) -> list[int]:
    """Return the sizes that make a difference: of those that hold all sentences, the first."""
    return [size for n, size in enumerate(sizes) if n == 0 or sizes[n - 1] < sentences]


def _batch(size: int, kind: str) -> Settings:
    return {"batch": size, "batch_type": kind}


SHORTLIST_SUFFIX: Final = ", shortlist"
"""The end of the name of a system that uses a shortlist."""

DRAGOMAN_SYSTEMS: Final = tuple(
    System(name=f"dragoman {precision}", worker="dragoman", precision=precision)
    for precision in ("int8", "float32")
)
"""Our systems; the first is the one that others are compared with."""

OTHER_SYSTEMS: Final = {
    "ctranslate2": _ctranslate2("int8"),
    "ctranslate2-float32": _ctranslate2("float32"),
    "huggingface": System(
        name="Hugging Face float32",
        worker="huggingface",
        precision="float32",
        export="huggingface",
        default_settings=lambda threads: {"batch": 32},
        candidates=lambda threads, sentences: (
            tuple({"batch": size} for size in _useful_sizes((16, 32, 64), sentences)),
        ),
        tuning_sentences=64,
        single_settings=lambda threads: {"batch": 1},
    ),
    "marian": _MARIAN,
}
"""The other systems by the names that --against takes."""


def with_shortlists(systems: Sequence[System]) -> list[System]:
    """Return these systems, and each that is in int8 once more with a shortlist."""
    return [
        one
        for system in systems
        for one in (
            system,
            replace(system, name=f"{system.name}{SHORTLIST_SUFFIX}", shortlist=True),
        )
        if one is system or system.precision == "int8"
    ]


def parse_systems(names: str) -> list[System]:
    """Return the systems of a list such as "ctranslate2,huggingface"."""
    found = []
    for name in filter(None, (name.strip() for name in names.split(","))):
        if name not in OTHER_SYSTEMS:
            raise ConfigError(
                f"--against {name}: there is no such system; choose {', '.join(OTHER_SYSTEMS)}"
            )
        found.append(OTHER_SYSTEMS[name])
    return list(dict.fromkeys(found))


def describe_beam(beam: int) -> str:
    """Return a beam in words."""
    return "greedy" if beam == 1 else f"beam {beam}"


def describe_settings(settings: Settings) -> str:
    """Return settings in words."""
    parts = []
    if "inter_threads" in settings:
        parts.append(
            f"inter_threads {settings['inter_threads']}, intra_threads {settings['intra_threads']}"
        )
    if "cpu_threads" in settings:
        parts.append(f"cpu-threads {settings['cpu_threads']}")
    if "batch" in settings:
        kind = "sentences" if settings.get("batch_type") != "tokens" else "tokens"
        parts.append(f"batches of {settings['batch']:,} {kind}")
    return ", ".join(parts)


def size_on_disk(directory: Path, system: System) -> int:
    """Return how many bytes the files that a system needs have.

    A directory of ours may hold the weights twice, in float32 and in int8: those of the other
    precision do not count, nor does a shortlist that is not used.
    """
    files = [file for file in directory.rglob("*") if file.is_file()]
    rounded = [file for file in files if "int8" in file.name]
    left_out: Sequence[Path] = rounded
    if system.precision == "int8":
        left_out = [file for file in files if file.name == "weights.safetensors"] if rounded else ()
    used = [file for file in files if system.shortlist or file.name != SHORTLIST_FILE]
    return sum(file.stat().st_size for file in used if file not in left_out)


def write_vocabulary_map(directory: Path, shortlist: Shortlist) -> None:
    """Write our shortlist as the `vmap.txt` of a model that was exported to CTranslate2.

    What all sources may use comes first, then what each piece may.
    """
    sources, targets = (_read_vocabulary(directory, side) for side in ("source", "target"))
    lines = ["\t" + " ".join(targets[i] for i in shortlist.common)]
    for source, (begin, end) in enumerate(
        zip(shortlist.starts[:-1], shortlist.starts[1:], strict=True)
    ):
        own = [source] if FIRST_PIECE <= source < shortlist.outputs else []
        may = " ".join(targets[i] for i in (*shortlist.targets[begin:end], *own))
        lines.append(f"{sources[source]}\t{may}")
    atomic_write(directory / "vmap.txt", "\n".join(lines) + "\n")


LEXICAL_SHORTLIST: Final = ("shortlist.txt", "shortlist.json")
"""The files of a model exported to Marian that have its shortlist, and how much of it is used."""


def write_lexical_shortlist(directory: Path, shortlist: Shortlist, pieces: Sequence[str]) -> None:
    """Write our shortlist for a model that was exported to Marian, as a lexicon.

    What all sources may use is listed as translations of the end that every source has.
    """
    lists = {pieces[EOS]: shortlist.common.tolist()}
    for source, (begin, end) in enumerate(
        zip(shortlist.starts[:-1], shortlist.starts[1:], strict=True)
    ):
        if source >= FIRST_PIECE:
            own = [source] if source < shortlist.outputs else []
            lists[pieces[source]] = [*shortlist.targets[begin:end].tolist(), *own]
    lines = (
        f"{pieces[target]} {source} 1\n" for source, listed in lists.items() for target in listed
    )
    text, options = LEXICAL_SHORTLIST
    atomic_write(directory / text, "".join(lines))
    # Of the first pieces of the vocabulary no more than the marks; of each list all.
    best = max(len(listed) for listed in lists.values())
    atomic_write(directory / options, json.dumps([FIRST_PIECE, best, 0]) + "\n")


def _read_vocabulary(directory: Path, side: str) -> list[str]:
    """Read the vocabulary of one side; its ids are ours."""
    file = directory / "shared_vocabulary.json"
    if not file.exists():
        file = directory / f"{side}_vocabulary.json"
    found: list[str] = json.loads(file.read_text(encoding="utf-8"))
    return found
