"""An epoch is shuffled without holding its order in memory.

A permutation of a hundred million indices would take 800 MB and seconds to draw. A Feistel
network is a bijection by construction and gives any part of the order by itself: the pairs at
places a … b of the epoch cost b − a evaluations, wherever a is.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

_ROUNDS: Final = 6
_WORD: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15
_MIX: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # SplitMix64


def derive_seed(*numbers: int) -> int:
    """Return a 63-bit seed that depends on every one of the numbers and on their order."""
    state = 0
    for number in numbers:
        state = ((state ^ (number & _WORD)) + _STEP) & _WORD
        for shift, factor in _MIX:
            state = ((state ^ (state >> shift)) * factor) & _WORD
        state ^= state >> 31
    return state >> 1


def shuffle_indices(places: NDArray[np.integer], size: int, seed: int) -> NDArray[np.int64]:
    """Return what stands at these places of the seed's permutation of 0 … size − 1."""
    # A number below side² is a pair of digits (left, right); every round is a bijection of them.
    side = np.uint64(max(2, math.isqrt(size - 1) + 1))
    keys = [np.uint64(derive_seed(seed, number)) for number in range(_ROUNDS)]
    values = places.astype(np.uint64)
    outside = np.arange(len(values))
    # side² is a little above size: whoever lands beyond walks on until it is back inside.
    while len(outside):
        left, right = np.divmod(values[outside], side)
        for key in keys:
            left, right = right, (left + _hash(right, key) % side) % side
        values[outside] = left * side + right
        outside = outside[values[outside] >= size]
    return values.astype(np.int64)


def _hash(values: NDArray[np.uint64], key: np.uint64) -> NDArray[np.uint64]:
    mixed = values ^ key
    for shift, factor in _MIX:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
