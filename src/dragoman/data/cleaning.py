"""Cleaning decides which pairs are worth training on, and reports what became of the others."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dragoman.config import DataConfig
from dragoman.errors import ConfigError
from dragoman.messages import counted
from dragoman.text.languages import identify_language

Reason = Literal[
    "malformed",
    "empty",
    "too long",
    "length ratio",
    "copy",
    "language",
    "broken text",
    "few letters",
    "markup",
    "numbers",
    "sentences",
    "duplicate",
    "repeated text",
    "template",
    "unlike the sample",
    "in validation",
]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
"""The reasons to drop a pair; the first that applies counts."""

Hashes: TypeAlias = npt.NDArray[np.uint64]

_SHORTEST_SIDE: Final = 10
"""A side counts as at least this many pieces in the ratio, so that short sentences may differ."""
EXAMPLES: Final = 5
"""So many places are remembered for each reason."""
_IDENTIFIABLE: Final = 20
"""The language of a text of fewer characters is not judged."""
_MARGIN: Final = 1.0
"""Another language must be likelier by this, in nats by the square root of the bytes: about 1 in
1000 lines of clean Europarl are dropped, and 1 in 1000 lines of the other language kept."""


class Cleaner:
    """Judge one pair at a time, by itself; see `HashSet` for duplicates."""

    def __init__(self, config: DataConfig) -> None:
        self._config = config
        self._identifier = _LanguageIdentifier(config.identify_languages)

    def reason_to_drop(
        self, source: str, target: str, source_pieces: int, target_pieces: int
    ) -> Reason | None:
        """Return why to drop a pair of normalised texts, or None to keep it."""
        config = self._config
        if not source or not target:
            return "empty"
        longer, shorter = max(source_pieces, target_pieces), min(source_pieces, target_pieces)
        if longer > config.max_length:
            return "too long"
        if config.max_ratio and longer >= config.max_ratio * max(shorter, _SHORTEST_SIDE):
            return "length ratio"
        if config.drop_copies and source == target:
            return "copy"
        if config.identify_languages and not (
            self._identifier.may_be(source, config.identify_languages[0])
            and self._identifier.may_be(target, config.identify_languages[1])
        ):
            return "language"
        return None


class _LanguageIdentifier:
    """Say whether a text may be in the language it should be in."""

    def __init__(self, languages: tuple[str, ...]) -> None:
        if not languages:
            return
        known = identify_language("text")
        for language in languages:
            if language not in known:
                raise ConfigError(
                    f"data.identify_languages: '{language}' is not a language that can be "
                    f"identified; choose from: {', '.join(sorted(known))}"
                )

    def may_be(self, text: str, language: str) -> bool:
        if len(text) < _IDENTIFIABLE:
            return True
        scores = identify_language(text)
        lead = max(scores.values()) - scores[language]
        return lead <= _MARGIN * math.sqrt(len(text.encode()))


def pair_hash(source: str, target: str) -> int:
    """Return 64 bits that two different pairs practically never share, equal in every process."""
    text = f"{source}\n{target}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") or 1


class HashSet:
    """Hold a set of 64-bit hashes other than 0 in one array, 16 to 32 bytes each."""

    def __init__(self) -> None:
        self._table: Hashes = np.zeros(1 << 12, np.uint64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Add these; return True for each that was neither there nor earlier among these."""
        while 2 * (self._count + len(hashes)) > len(self._table):
            old = self._table
            self._table = np.zeros(2 * len(old), np.uint64)
            self._insert(old[old != 0])
        distinct, first = np.unique(hashes, return_index=True)
        new = np.zeros(len(hashes), np.bool_)
        new[first[self._insert(distinct)]] = True
        self._count += int(new.sum())
        return new

    def _insert(self, hashes: Hashes) -> npt.NDArray[np.intp]:
        """Insert distinct hashes by linear probing; return the indices of those that were new."""
        table, mask = self._table, np.uint64(len(self._table) - 1)
        waiting = np.arange(len(hashes))
        slots = hashes & mask
        new = []
        while len(waiting):
            wanted = hashes[waiting]
            there = table[slots]
            free = there == 0
            table[slots[free]] = wanted[free]  # of several for one slot the last stays
            placed = free & (table[slots] == wanted)
            new.append(waiting[placed])
            on = ~(placed | (there == wanted))
            waiting, slots = waiting[on], (slots[on] + np.uint64(1)) & mask
        return np.concatenate(new) if new else np.zeros(0, np.intp)


@dataclass(slots=True)
class CleaningReport:
    """Count how many pairs were read and kept, and why the others were dropped."""

    read: int = 0
    kept: int = 0
    held_out: int = 0
    """So many of those kept became the validation set."""
    dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    """Where the first few pairs stand that were dropped, for each reason."""

    def drop(self, reason: Reason, places: Iterable[str], count: int = 1) -> None:
        """Count pairs as dropped; of `places` only as many are taken as are remembered."""
        self.dropped[reason] = self.dropped.get(reason, 0) + count
        known = self.examples.setdefault(reason, [])
        for _, place in zip(range(EXAMPLES - len(known)), places, strict=False):
            known.append(place)

    def lines(self) -> list[str]:
        """Return the report for people."""
        share = f" ({math.floor(1000 * self.kept / self.read) / 10}%)" if self.read else ""
        lines = [f"{counted(self.read, 'pair')} read, {self.kept:,} kept{share}"]
        width = max(13, *map(len, self.dropped), 0)
        return lines + [
            f"  {reason:<{width}} {self.dropped[reason]:>11,}  {self.places(reason)}"
            for reason in REASONS
            if self.dropped.get(reason)
        ]

    def places(self, reason: str) -> str:
        """Return where the first pairs dropped for a reason stand."""
        places = self.examples.get(reason, [])
        return "; ".join([*places[:2], *(["…"] if len(places) > 2 else [])])

    def to_json(self) -> dict[str, Any]:
        """Return the report for programs."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Make the report from what `to_json` gave."""
        return cls(**values)
