"""Pieces that would repeat an n-gram are found, by one rule for tensors and for arrays."""

# X hypotheses, T pieces so far, W n-grams

from __future__ import annotations

from typing import Any, TypeAlias

from dragoman.text.special_tokens import PAD

Array: TypeAlias = Any
"""A tensor, or an array of numpy."""


def repeating_pieces(ids_XT: Array, lengths_X: Array, positions_T: Array, size: int) -> Array:
    """Return the pieces that would end an n-gram of this size a second time, and else PAD, X W.

    Each hypothesis has its own length, and what is beyond it is not read; `positions` count from 0.
    """
    count = ids_XT.shape[1] - size + 1
    if count <= 0:
        return ids_XT[:, :0]
    same_XW = positions_T[:count] + size <= lengths_X[:, None]
    for place in range(size - 1):
        # The piece that stands here in the n-gram which the next piece ends.
        here_XT = positions_T == (lengths_X - size + 1 + place)[:, None]
        piece_X1 = (ids_XT * here_XT).sum(1)[:, None]
        same_XW = same_XW & (ids_XT[:, place : place + count] == piece_X1)
    assert PAD == 0, "so that a product chooses"
    return ids_XT[:, size - 1 :] * same_XW
