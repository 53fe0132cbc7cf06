"""The state of a batch on the device has slots that sentences take and leave.

A slot has the keys and values of a sentence's source and, for each position and beam, a piece with
its keys and values. These stay where they are: when beams change places only their tables do, which
say for each position which beam's entry a hypothesis goes through. What a step reads and writes is
here, in memory that never moves, so that a step can be recorded and replayed.

A step extends the sentences in its active slots. There is one slot more than can be used, and its
sentence is always done: where a step has more room than there are sentences, that one is active.
"""

# S slots and the idle one, A active slots, K beams, N best finished, T positions, P source
# positions, C = S T K cache entries, L layers, W = heads times their width, M model width, F fields

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.inference.gpu.weights import GpuWeights
from dragoman.search.beam import length_penalties

# The fields of a slot's info.
DONE: Final = 0
LENGTH: Final = 1
"""This counts the pieces of each hypothesis. While there are none, nothing else of it is read."""
FINISHED: Final = 2
"""This counts the hypotheses that have finished."""
MAX_LENGTH: Final = 3
SOURCE_LENGTH: Final = 4
"""This counts source positions, EOS among them."""
WORDS: Final = 5
"""This counts the words that a tree is to be made over, if it is to be one."""
MIN_LENGTH: Final = 6
INFO_FIELDS: Final = 7
"""So many fields there are; in slots for trees, what announces each word follows."""

MIN_SLOTS: Final = 8
"""There are at least so many slots; with no more, the host can be told everything."""
WHOLE_REPORT_BYTES: Final = 1 << 16
"""A report of so few bytes is copied whole, whatever in it is new."""


class SlotReport:
    """Hold what the host asks for of some slots: their info, and the best that have finished.

    It is contiguous, so that one copy has it all.
    """

    def __init__(self, raw: Tensor, count: int, n_best: int, positions: int, fields: int) -> None:
        """View bytes as the parts of a report."""
        self.raw = raw
        figures, ids, running, info = raw.split(self._sizes(count, n_best, positions, fields))
        figures, ids = figures[: count * n_best * 32], ids[: count * n_best * positions * 4]
        running = running[: count * n_best * positions * 4]
        self.finished_SN4 = figures.view(torch.float64).view(count, n_best, 4)
        """Each of the best has a score, a sum, a length, and how many had finished before it."""
        self.finished_ids_SNT = ids.view(torch.int32).view(count, n_best, positions)
        self.finished_running_SNT = running.view(torch.float32).view(count, n_best, positions)
        """This is what the sum of each was after each piece."""
        self.info_FS = info[: fields * count * 4].view(torch.int32).view(fields, count)

    @staticmethod
    def _sizes(count: int, n_best: int, positions: int, fields: int) -> list[int]:
        pieces = count * n_best * positions * 4
        sizes = (count * n_best * 32, pieces, pieces, fields * count * 4)
        return [-(-size // 256) * 256 for size in sizes]  # kernels want such alignment

    @classmethod
    def empty(cls, device: torch.device, *shape: int, pinned: bool = False) -> SlotReport:
        """Return a report of zeros."""
        size = sum(cls._sizes(*shape))
        raw = torch.zeros(size, dtype=torch.uint8, device=device, pin_memory=pinned)
        return cls(raw, *shape)


class BatchState:
    """Hold `count` sentences of at most `target` pieces, from `source` positions.

    If `words` is more than 0, they are for trees of at most so many words.
    """

    def __init__(
        self,
        weights: GpuWeights,
        count: int,
        beams: int,
        n_best: int,
        target: int,
        source: int,
        words: int = 0,
    ) -> None:
        self.count, self.beams, self.n_best = count, beams, n_best
        self.target, self.source, self.words = target, source, words
        self.small = count <= MIN_SLOTS
        S, device = count + 1, weights.device
        # BOS, the pieces, and one that a step may write past the last.
        self.max_positions = target + 2
        self.active_slots = torch.full((count,), count, dtype=torch.int32, device=device)
        self.report_shape = (S, n_best, self.max_positions, INFO_FIELDS + words)
        self.report = SlotReport.empty(device, *self.report_shape)
        self.info_FS, self.finished_SN4 = self.report.info_FS, self.report.finished_SN4
        self.finished_ids_SNT = self.report.finished_ids_SNT
        self.finished_running_SNT = self.report.finished_running_SNT
        self.info_FS[DONE] = 1
        T, K, L, W = self.max_positions, beams, weights.layers, weights.attention_width
        ints = partial(torch.zeros, dtype=torch.int32, device=device)
        cache = partial(torch.zeros, dtype=weights.dtype, device=device)
        doubles = partial(torch.zeros, dtype=torch.float64, device=device)
        self.sums_SK = torch.zeros(S, K, device=device)
        self.pieces_STK = ints(S, T, K)
        self.running_STK = torch.zeros(S, T, K, device=device)
        """This is the sum of a hypothesis when it had come to this piece."""
        # Two of each: a step reads the one of its length, even or odd, and writes the other.
        self.tables_2SKT = ints(2, S, K, T if K > 1 else 1)
        self.cache_LCW = cache(L, S * T * K, 2 * W)
        self.source_cache_LPW = cache(L, S * source, 2 * W)
        self.penalties_T = doubles(T) + 1
        self._alpha = 0.0
        self.positions_TM = weights.positions(max(T, source))

    def set_length_penalty(self, alpha: float) -> None:
        """Use this length penalty from now on."""
        if alpha != self._alpha:
            table = length_penalties(self.max_positions - 1, alpha, torch.device("cpu"))
            self.penalties_T.copy_(table)
            self._alpha = alpha

    def fits(
        self, count: int, beams: int, n_best: int, target: int, source: int, words: int = 0
    ) -> bool:
        """Return whether there is room for a search of this size."""
        same = (self.beams, self.n_best, self.words > 0) == (beams, n_best, words > 0)
        same = same and self.small == (count <= MIN_SLOTS)
        sizes = (count, target, source, words)
        rooms = (self.count, self.target, self.source, self.words)
        return same and all(size <= room for size, room in zip(sizes, rooms, strict=True))


def bytes_per_slot(weights: GpuWeights, beams: int, target: int, source: int) -> int:
    """Return about how many bytes one slot takes."""
    entries = (target + 2) * beams + source
    return entries * weights.layers * 2 * weights.attention_width * weights.dtype.itemsize


# --- what moves between host and device, and is waited for no sooner than it is needed ---


class HostCopy:
    """Hold the host's copy of what is done, on its way or there; it is used again and again."""

    time = 0
    """This says when it was asked for."""

    def __init__(self, state: BatchState) -> None:
        """Copy all that is known if that is little, or else only which slots are done."""
        cuda = state.info_FS.is_cuda
        self.report: SlotReport | None = None
        if state.report.raw.numel() <= WHOLE_REPORT_BYTES:
            self.report = SlotReport.empty(torch.device("cpu"), *state.report_shape, pinned=cuda)
            self._from, self._to = state.report.raw, self.report.raw
            done_S = self.report.info_FS[DONE]
        else:
            self._from = state.info_FS[DONE]
            self._to = done_S = torch.empty(state.count + 1, dtype=torch.int32, pin_memory=cuda)
        self.done_S: NDArray[np.int32] = done_S.numpy()
        self.wait: Callable[[], None] = lambda: None
        """This waits until the copy is there."""

    def start(self, time: int) -> None:
        """Ask for a new copy."""
        self.time = time
        copy_async(self._to, self._from)
        self.wait = record_event(self._from.device)


def copy_async(here: Tensor, there: Tensor) -> None:
    """Ask for a copy of what is on the device."""
    here.copy_(there, non_blocking=True)


def record_event(device: torch.device) -> Callable[[], None]:
    """Return what waits for all that has been asked of the device until now."""
    if device.type != "cuda":
        return lambda: None
    event = torch.cuda.Event()
    event.record()
    return event.synchronize


def pin(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor that can be copied to a device while the host goes on."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory() if device.type == "cuda" else tensor
