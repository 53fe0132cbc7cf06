"""Packed rows become sentences, for models that read one position after another.

A recurrent layer knows no rows: it wants all first positions, then all second positions, and so
on, of sentences from the longest to the shortest (torch's PackedSequence). In that order lie the N
features between here and the end of a model; padding is not among them.
"""

# R rows, L row length, B sentences, N real positions of all, T longest sentence, M model width,
# n some of the sentences

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from dragoman.models.api import Rows


@dataclass(frozen=True, slots=True)
class UnpackedSentences:
    """Tell where the sentences of one side are: in the rows, and in the order of the N features."""

    shape: tuple[int, int]
    """These are R and L of the rows."""
    lengths_B: Tensor
    """They are on the host."""
    batch_sizes: Tensor
    """This is `counts_T` on the host, where torch wants it."""
    counts_T: Tensor
    """So many sentences have a first position, a second, …"""
    starts_T: Tensor
    """Among the N, the first positions begin here, the second here, …"""
    longest_first_B: Tensor
    """This orders the sentences: the longest, the second longest, …"""
    ranks_B: Tensor
    """This is the inverse: which place each sentence has in that order."""
    last_B: Tensor
    """The last position of each sentence is here among the N."""
    places_N: Tensor
    """Each feature is here in the rows, laid end to end."""
    sentence_N: Tensor
    """Each feature is of this sentence."""
    time_N: Tensor
    """Each feature is at this position of its sentence."""

    def gather(self, x_RL: Tensor) -> Tensor:
        """Return the features of all sentences, N …, from rows, R L …, without the padding."""
        return x_RL.flatten(0, 1).index_select(0, self.places_N)

    def to_rows(self, x_NM: Tensor) -> Tensor:
        """Return R L M of N M; zeros at padding."""
        R, L = self.shape
        rows = x_NM.new_zeros(R * L, x_NM.shape[-1]).index_copy(0, self.places_N, x_NM)
        return rows.view(R, L, -1)

    def pack(self, x_NM: Tensor) -> PackedSequence:
        """Return what torch's recurrent layers read; their states are B M by sentence."""
        return PackedSequence(x_NM, self.batch_sizes, self.longest_first_B, self.ranks_B)

    def pad(
        self, x_NM: Tensor, chosen_n: Tensor | None = None, length: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return n T M of some sentences, or all, and n T: which positions are real.

        The others hold arbitrary features.
        """
        ranks_n1 = (self.ranks_B if chosen_n is None else self.ranks_B[chosen_n])[:, None]
        places_nT = (ranks_n1 + self.starts_T[:length]).clamp(max=len(x_NM) - 1)
        x_nTM = x_NM.index_select(0, places_nT.flatten()).view(*places_nT.shape, -1)
        return x_nTM, ranks_n1 < self.counts_T[:length]


def unpack(*sides: Rows) -> list[UnpackedSentences]:
    """Return the sentences of each side, in one order: by row and number.

    This waits for the device once. Rows that are all padding have no sentences; if there are none
    at all, the first position stands for one, so that gradients still reach every weight.
    """
    device = sides[0].ids_RL.device
    shapes = [(side.ids_RL.shape[0], side.ids_RL.shape[1]) for side in sides]
    numbers = [t.flatten() for side in sides for t in (side.segments_RL, side.positions_RL)]
    flat = torch.cat(numbers).cpu().split([len(n) for n in numbers])
    return [
        _unpack_side(shape, flat[2 * i].view(shape), flat[2 * i + 1], device)
        for i, shape in enumerate(shapes)
    ]


def _unpack_side(
    shape: tuple[int, int], segments_RL: Tensor, positions: Tensor, device: torch.device
) -> UnpackedSentences:
    """Compute everything on the host, where many small steps cost little, then move it."""
    keys_RL = segments_RL.long()
    keys_RL = keys_RL + torch.arange(shape[0])[:, None] * (keys_RL.max() + 1)
    places = (segments_RL > 0).flatten().nonzero()[:, 0]
    if not len(places):
        places = torch.zeros(1, dtype=torch.long)
    time = positions[places].long()
    _, sentence, lengths_B = keys_RL.flatten()[places].unique(
        return_inverse=True, return_counts=True
    )
    longest_first_B = lengths_B.argsort(descending=True, stable=True)
    ranks_B = longest_first_B.argsort()
    counts_T = time.bincount()
    starts_T = counts_T.cumsum(0) - counts_T
    last_B = starts_T[lengths_B - 1] + ranks_B
    order = torch.empty_like(places)
    order[starts_T[time] + ranks_B[sentence]] = torch.arange(len(places))
    to_move = [counts_T, starts_T, longest_first_B, ranks_B, last_B]
    to_move += [places[order], sentence[order], time[order]]
    moved = torch.cat(to_move).to(device, non_blocking=True).split([len(t) for t in to_move])
    return UnpackedSentences(shape, lengths_B, counts_T, *moved)


def group_by_length(
    source: UnpackedSentences, target: UnpackedSentences, limit: int
) -> Iterator[tuple[Tensor, int, int]]:
    """Yield groups of sentences of similar lengths, with the longest target and source of each.

    Sentences times both lengths is at most `limit`, unless a single sentence is above it.
    """
    lengths_2B = torch.stack([target.lengths_B, source.lengths_B])
    order_B = lengths_2B.amax(0).argsort(descending=True, stable=True)
    lengths_2B = lengths_2B[:, order_B]
    # At each place of the order, the longest from there on.
    longest_2B = lengths_2B.flip(1).cummax(1).values.flip(1)
    chosen_B = order_B.to(source.ranks_B.device, non_blocking=True)
    first = 0
    while first < len(order_B):
        group = slice(first, first + max(1, limit // int(longest_2B[:, first].prod())))
        T, S = lengths_2B[:, group].amax(1).tolist()
        yield chosen_B[group], T, S
        first = group.stop
