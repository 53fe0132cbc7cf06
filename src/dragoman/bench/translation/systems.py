"""The systems that translate against each other, and which of their settings are tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from dragoman.errors import ConfigError
from dragoman.inference.cpu.shortlist import SHORTLIST

__all__ = [
    "OTHERS",
    "OURS",
    "WITH_SHORTLIST",
    "Settings",
    "System",
    "chosen",
    "describe",
    "size_on_disk",
    "with_shortlists",
]

Settings: TypeAlias = dict[str, Any]
"""Threads and batches, as the worker of a system understands them."""


def _none(threads: int) -> Settings:
    return {}


Groups: TypeAlias = tuple[tuple[Settings, ...], ...]


def _no_choice(threads: int, sentences: int) -> Groups:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """Something that translates."""

    name: str
    """For people."""
    worker: str
    """Which `dragoman.bench.worker_…` runs it."""
    precision: str
    export: str | None = None
    """The runtime that a model must be exported to; None: ours."""
    shortlist: bool = False
    """Whether it looks only at the pieces of the model's shortlist."""
    first: Callable[[int], Settings] = _none
    """The settings to begin with, by threads."""
    choices: Callable[[int, int], Groups] = _no_choice
    """By threads and sentences, what is tried: group by group, and of each the fastest is kept."""
    sample: int = 0
    """Sentences that it is tried on."""
    alone: Callable[[int], Settings] = _none
    """The settings for one sentence at a time."""


def _ctranslate2(precision: str) -> System:
    return System(
        name=f"CTranslate2 {precision}",
        worker="ctranslate2",
        precision=precision,
        export="ctranslate2",
        first=lambda threads: _together(threads) | _batch(64, "examples"),
        choices=lambda threads, sentences: (
            tuple(
                {"inter_threads": inter, "intra_threads": threads // inter}
                # No larger a batch than leaves work for all.
                | _batch(min(64, -(-sentences // inter)), "examples")
                for inter in range(1, threads + 1)
                if threads % inter == 0
            ),
            (
                *(_batch(size, "examples") for size in _sizes((16, 32, 64, 128), sentences)),
                *(_batch(32 * size, "tokens") for size in _sizes((16, 32, 64, 128), sentences)),
            ),
        ),
        sample=256,  # two of the largest batches, one for each of two inter_threads
        alone=lambda threads: _together(threads) | _batch(1, "examples"),
    )


def _together(threads: int) -> Settings:
    """All threads on one sentence."""
    return {"inter_threads": 1, "intra_threads": threads}


def _sizes(sizes: Sequence[int], sentences: int) -> list[int]:
    """Those that make a difference: of the sizes that hold all sentences, the first."""
    return [size for n, size in enumerate(sizes) if n == 0 or sizes[n - 1] < sentences]


def _batch(size: int, kind: str) -> Settings:
    return {"batch": size, "batch_type": kind}


WITH_SHORTLIST: Final = ", shortlist"
"""What the name of a system that looks at a shortlist alone ends in."""

OURS: Final = tuple(
    System(name=f"dragoman {precision}", worker="ours", precision=precision)
    for precision in ("int8", "float32")
)
"""The first is the one that others are compared with."""

OTHERS: Final = {
    "ctranslate2": _ctranslate2("int8"),
    "ctranslate2-float32": _ctranslate2("float32"),
    "huggingface": System(
        name="Hugging Face float32",
        worker="huggingface",
        precision="float32",
        export="huggingface",
        first=lambda threads: {"batch": 32},
        choices=lambda threads, sentences: (
            tuple({"batch": size} for size in _sizes((16, 32, 64), sentences)),
        ),
        sample=64,
        alone=lambda threads: {"batch": 1},
    ),
}
"""By the names that --against takes."""


def with_shortlists(systems: Sequence[System]) -> list[System]:
    """These, and each that can look at a shortlist alone doing so: what is in int8."""
    return [
        one
        for system in systems
        for one in (system, replace(system, name=f"{system.name}{WITH_SHORTLIST}", shortlist=True))
        if one is system or system.precision == "int8"
    ]


def chosen(names: str) -> list[System]:
    """The systems of a list such as "ctranslate2,huggingface"."""
    found = []
    for name in filter(None, (name.strip() for name in names.split(","))):
        if name not in OTHERS:
            raise ConfigError(
                f"--against {name}: there is no such system; choose {', '.join(OTHERS)}"
            )
        found.append(OTHERS[name])
    return list(dict.fromkeys(found))


def describe(settings: Settings) -> str:
    """Settings for people."""
    parts = []
    if "inter_threads" in settings:
        parts.append(
            f"inter_threads {settings['inter_threads']}, intra_threads {settings['intra_threads']}"
        )
    if "batch" in settings:
        kind = "sentences" if settings.get("batch_type") != "tokens" else "tokens"
        parts.append(f"batches of {settings['batch']:,} {kind}")
    return ", ".join(parts)


def size_on_disk(directory: Path, system: System) -> int:
    """Bytes of the files that a system needs.

    A directory of ours may hold the weights twice, in float32 and in int8: the others do not count,
    nor does a shortlist that nobody looks at.
    """
    files = [file for file in directory.rglob("*") if file.is_file()]
    rounded = [file for file in files if "int8" in file.name]
    left_out: Sequence[Path] = rounded
    if system.precision == "int8":
        left_out = [file for file in files if file.name == "weights.safetensors"] if rounded else ()
    used = [file for file in files if system.shortlist or file.name != SHORTLIST]
    return sum(file.stat().st_size for file in used if file not in left_out)
