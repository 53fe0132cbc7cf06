"""The timed sentences as others batch them: of similar length, one a row, padded.

Sorted by the length of the longer side and cut where a batch is full, then shuffled, as the
paper's tensor2tensor did. It is the order that pads these sentences least: sorted by target
length, half of the source would be padding.
"""

# B sentences of a batch, S and T its source and target lengths

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import Batch
from dragoman.data.shuffle import shuffled
from dragoman.text.symbols import PAD

__all__ = ["Padded", "padded_batches"]

Pair: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Source, decoder's input and expected output, marks included."""


@dataclass(frozen=True, slots=True)
class Padded:
    """A rectangle of sentences on each side."""

    source_BS: Tensor
    input_BT: Tensor
    output_BT: Tensor

    @property
    def source_tokens(self) -> int:
        """Source positions that are not padding."""
        return int((self.source_BS != PAD).sum())

    @property
    def target_tokens(self) -> int:
        """Target positions that are not padding."""
        return int((self.output_BT != PAD).sum())

    def to(self, device: torch.device) -> Padded:
        """The same on a device."""
        tensors = (self.source_BS, self.input_BT, self.output_BT)
        return Padded(*(tensor.to(device, non_blocking=True) for tensor in tensors))


def padded_batches(batches: Iterable[Batch], positions: int) -> list[Padded]:
    """The sentences of packed batches in padded ones of at most `positions` on either side."""
    pairs = sorted(_pairs(batches), key=lambda pair: (_longer(pair), len(pair[0])))
    found = [
        Padded(*(_rectangle(side) for side in zip(*group, strict=True)))
        for group in _groups(pairs, positions)
    ]
    return [found[index] for index in shuffled(np.arange(len(found)), len(found), seed=0)]


def _pairs(batches: Iterable[Batch]) -> Iterator[Pair]:
    for batch in batches:
        for row, segments in enumerate(batch.target_segments):
            for segment in range(1, int(segments.max(initial=0)) + 1):
                source, target = batch.source_segments[row] == segment, segments == segment
                yield (
                    batch.source_ids[row][source],
                    batch.target_input[row][target],
                    batch.target_output[row][target],
                )


def _groups(pairs: Sequence[Pair], positions: int) -> Iterator[Sequence[Pair]]:
    """Runs of pairs that fit together; the last of a run is the longest."""
    start = 0
    for end in range(1, len(pairs) + 1):
        if end == len(pairs) or (end + 1 - start) * _longer(pairs[end]) > positions:
            yield pairs[start:end]
            start = end


def _longer(pair: Pair) -> int:
    return max(len(pair[0]), len(pair[1]))


def _rectangle(sentences: Sequence[np.ndarray]) -> Tensor:
    """int64, as torch's embeddings and losses want it; PAD where a sentence has ended."""
    out = np.full((len(sentences), max(map(len, sentences))), PAD, np.int64)
    for row, sentence in zip(out, sentences, strict=True):
        row[: len(sentence)] = sentence
    return torch.from_numpy(out)
