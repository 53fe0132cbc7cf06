"""Batches of one static shape, nearly free of padding, that can be resumed anywhere.

Sentence pairs are packed into rows, with the number of its segment and the position in it at
every place; docs/batches.md tells how, and what it gains.
"""

# R rows of a batch, S and T the lengths of its source and target rows

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Self

from dragoman.data.chunks import Chunks, PairStore, Sampler
from dragoman.data.layout import Batch
from dragoman.data.pool import ahead
from dragoman.errors import ConfigError, DataError

__all__ = ["START", "Batch", "Batches", "PairStore", "Position", "Sampler"]


@dataclass(frozen=True, slots=True)
class Position:
    """Which batch comes next: `batch` of `chunk` of `epoch`, all from 0."""

    epoch: int = 0
    chunk: int = 0
    batch: int = 0

    def to_dict(self) -> dict[str, int]:
        """As JSON holds it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, numbers: dict[str, Any]) -> Self:
        """What `to_dict` gave."""
        try:
            position = cls(**{name: int(number) for name, number in numbers.items()})
        except (TypeError, ValueError):
            raise DataError(f"{numbers!r} is not a position in the data") from None
        if min(asdict(position).values()) < 0:
            raise DataError(f"{numbers!r} is not a position in the data")
        return position


START = Position()


class Batches:
    """The batches of a store, epoch after epoch.

    Every batch has the shape (R, S, T): R rows, `multiple_of` dividing R; the side with more
    pieces has rows of `row_length`, the other shorter ones in proportion. Every pair comes once
    an epoch. The number of workers changes nothing but the speed.
    """

    def __init__(
        self,
        store: PairStore,
        *,
        batch_tokens: int,
        row_length: int,
        seed: int,
        multiple_of: int = 1,
        shuffle: bool = True,
        sampler: Sampler | None = None,
        sample_targets: bool = True,
        workers: int = 0,
    ) -> None:
        if len(store) == 0:
            raise DataError("there are no sentence pairs to make batches of; prepare a corpus")
        longest = max(store.meta.longest_source, store.meta.longest_target)
        if longest >= row_length:
            raise ConfigError(
                f"data.row_length = {row_length} cannot hold a sentence of {longest} pieces and "
                f"its end mark; try {longest + 1}"
            )
        R = max(batch_tokens // row_length // multiple_of, 1) * multiple_of
        self.shape = (R, *_row_lengths(store, row_length))
        """R, S, T: the same for every batch."""
        self._chunks = Chunks(store, self.shape, seed, shuffle, sampler, sample_targets)
        self.chunks = self._chunks.count
        """Chunks of an epoch."""
        self._workers = workers

    def stream(self, position: Position = START) -> Generator[tuple[Batch, Position], None, None]:
        """Batches without end, from the position on, each with the position of the next one.

        Closing the generator ends its workers.
        """
        a_epoch = self.chunks
        start = position.epoch * a_epoch + position.chunk
        with closing(self._built(count(start))) as built:
            for number, batches in zip(count(start), built, strict=False):
                first = position.batch if number == start else 0
                if position.chunk >= a_epoch or first >= len(batches):
                    raise DataError(
                        f"there is no batch at {position}; the corpus or the batch settings are "
                        "not those it was saved with"
                    )
                for index, batch in enumerate(batches[first:], first + 1):
                    if index < len(batches):
                        yield batch, Position(*divmod(number, a_epoch), index)
                    else:
                        yield batch, Position(*divmod(number + 1, a_epoch))

    def epoch(self, number: int = 0) -> Generator[Batch, None, None]:
        """One pass over all pairs."""
        a_epoch = self.chunks
        with closing(self._built(range(number * a_epoch, (number + 1) * a_epoch))) as built:
            for batches in built:
                yield from batches

    def _built(self, numbers: Iterable[int]) -> Generator[list[Batch], None, None]:
        """Chunks, counted over all epochs."""
        pairs = (divmod(number, self.chunks) for number in numbers)
        return ahead(self._chunks.build, pairs, self._workers)


def _row_lengths(store: PairStore, row_length: int) -> tuple[int, int]:
    """S and T: the side with more pieces has the full length, the other its share.

    The share is the nearest multiple of 4, or the next that holds the longest sentence.
    """
    meta, pairs = store.meta, len(store)
    most = max(meta.source_pieces, meta.target_pieces) + pairs

    def side(pieces: int, longest: int) -> int:
        share = row_length * (pieces + pairs) / most
        return min(row_length, 4 * max(round(share / 4), longest // 4 + 1))

    return side(meta.source_pieces, meta.longest_source), side(
        meta.target_pieces, meta.longest_target
    )
