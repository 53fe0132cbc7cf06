"""A projection on a few pieces: those that every sentence may need, and those of its own words.

Each sentence has its own matrix of the pieces that only it needs, so that what is found of it
depends on nothing else in its batch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.allowed_tokens import Ints
from dragoman.inference.cpu.quantization import BLOCK, NEVER, Packed, lines
from dragoman.inference.cpu.shortlist import Shortlist
from dragoman.text.special_tokens import PAD

__all__ = ["Narrow", "Parts"]

SURE: Final = 0.3
"""Where the best piece of a list is less probable than this, all pieces are looked at."""


class Narrow:
    """A model's projection, and what of it each sentence needs."""

    def __init__(self, packed: Packed, shortlist: Shortlist) -> None:
        name = "projection" if "projection.scale" in packed else "embedding"
        weight = packed[f"{name}.weight"].view(np.int32)  # four inputs of an output each
        weight_BKN = weight.reshape(len(weight), -1, BLOCK)
        self._weight_VK = np.ascontiguousarray(weight_BKN.transpose(0, 2, 1)).reshape(
            -1, weight_BKN.shape[1]
        )
        self._vectors = [packed[f"{name}.{part}"] for part in ("scale", "offset", "bias")]
        self._shortlist = shortlist
        self.common = self._common()

    def _common(self) -> Part:
        """The common pieces, then some of the others that stand for all of them in the sum.

        They are never chosen: where one would be, nothing is sure.
        """
        common, sample = self._shortlist.common, self._shortlist.sample
        part = self.part(np.concatenate([common, sample]))
        part.names[len(common) :] = PAD
        part.bias[len(common) : len(common) + len(sample)] += np.log(self._shortlist.weight)
        return part

    def part(self, ids: Ints) -> Part:
        """The outputs of these pieces."""
        return Part(ids, self._weight_VK, self._vectors)

    def of(self, source: Sequence[int]) -> Part:
        """What one sentence needs beyond what all do."""
        return self.part(self._shortlist.of(source))


class Part:
    """Some outputs of a projection as the kernel reads them; the last block is filled up."""

    def __init__(self, ids: Ints, weight_VK: NDArray[Any], vectors: Sequence[NDArray[Any]]) -> None:
        blocks, quads = -(-len(ids) // BLOCK), weight_VK.shape[1]
        self.names: Ints = np.full(blocks * BLOCK, PAD, np.int32)
        self.names[: len(ids)] = ids
        chosen_BNK = weight_VK.take(self.names, axis=0).reshape(blocks, BLOCK, quads)
        weight = lines(chosen_BNK.nbytes).view(np.int32).reshape(blocks, quads, BLOCK)
        weight[:] = chosen_BNK.transpose(0, 2, 1)
        scale, offset, self.bias = (one[self.names] for one in vectors)
        self.bias[len(ids) :] = NEVER
        self._kept = weight, scale, offset  # the kernel reads them
        self.linear = kernel_library.Linear(
            blocks * BLOCK,
            4 * quads,
            weight.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
            scale.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            offset.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            self.bias.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
        )


class Parts:
    """The parts of the sentences that one worker searches, by their places."""

    def __init__(self, narrow: Narrow, slots: int) -> None:
        self._narrow = narrow
        self._parts: list[Part | None] = [None] * slots
        self._linears = (kernel_library.Linear * slots)()
        self._names = (ctypes.c_void_p * slots)()

    def admit(self, slot: int, source: Sequence[int]) -> None:
        """A new sentence has this place."""
        part = self._narrow.of(source)
        self._parts[slot] = part
        self._linears[slot], self._names[slot] = part.linear, part.names.ctypes.data

    def leave(self, slot: int) -> None:
        """The sentence is done."""
        self._parts[slot] = None

    def narrow(self, rows: kernel_library.Rows) -> None:
        """Let a step look at the parts alone."""
        common = self._narrow.common
        rows.projection = ctypes.pointer(common.linear)
        rows.names = common.names.ctypes.data
        rows.own, rows.own_names = self._linears, self._names
        rows.sure = SURE
