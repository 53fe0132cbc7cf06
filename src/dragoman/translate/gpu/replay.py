"""Steps recorded once for each number of lanes, and replayed; on a CPU they are computed anew."""

# B sentences, P source positions, M marks

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.translate.gpu.admission import admit
from dragoman.translate.gpu.arithmetic import Arithmetic
from dragoman.translate.gpu.looks import Look, pinned
from dragoman.translate.gpu.slots import DONE, SOURCE, WORDS, Slots
from dragoman.translate.gpu.step import step
from dragoman.translate.gpu.trees import Trees

__all__ = ["GRAIN", "Replay", "capture"]

LONGEST = 256
"""Source positions of a sentence that is encoded by a recording, if it is alone."""
GRAIN = 16
"""A sentence alone is padded to a multiple of so many positions: each has its recording."""


class Replay:
    """What is done with some slots, again and again."""

    def __init__(
        self, do: Arithmetic, slots: Slots, *, captures: bool, trees: Trees | None = None
    ) -> None:
        """Without `captures` nothing is recorded."""
        self.slots, self.trees = slots, trees
        self.looks = (Look(slots), Look(slots))
        """One to look at while the next is on its way."""
        self.taken: Counter[int] = Counter()
        """Steps of so many lanes, since somebody last cleared this."""
        self._do, self._captures = do, captures
        self._aims: list[int] = []
        self._steps: dict[tuple[int, bool], Callable[[], None]] = {}
        self._admissions: dict[int, tuple[Tensor, Callable[[], None]]] = {}
        self._pool: Any = None

    def aim(self, slots: list[int]) -> None:
        """Which slots the lanes are for; the rest for nothing."""
        if slots != self._aims:
            count = self.slots.count
            aims = np.array(slots + [count] * (count - len(slots)), np.int32)
            self.slots.lanes.copy_(pinned(aims, self.slots.lanes.device), non_blocking=True)
            self._aims = slots

    def step(self, lanes: int, *, stop_early: bool) -> None:
        """One step of the first so many lanes."""
        key = (lanes, stop_early)
        if key not in self._steps:

            def run() -> None:
                step(self._do, self.slots, lanes, stop_early=stop_early, trees=self.trees)

            self._steps[key] = self._recorded(run)
        self._steps[key]()
        self.taken[lanes] += 1

    def admit(self, packet: NDArray[np.int32], sentences: int) -> None:
        """Put sentences into slots, see `Sentences.packet`; one alone is worth a recording."""
        device = self.slots.lanes.device
        marks = len(self.slots.marks)
        places = len(packet) // sentences - marks - 1
        if sentences > 1 or not self._captures or places > LONGEST:
            there = pinned(packet, device).to(device, non_blocking=True)
            self._admit(there, sentences)
            return
        if places not in self._admissions:
            idle = np.zeros_like(packet)  # while this is recorded
            idle[[DONE, SOURCE]] = 1
            idle[marks] = self.slots.count
            known = torch.from_numpy(idle).to(device)
            self._admissions[places] = (known, self._recorded(lambda: self._admit(known, 1)))
        known, replay = self._admissions[places]
        known.copy_(pinned(packet, device), non_blocking=True)
        replay()

    def _admit(self, packet: Tensor, sentences: int) -> None:
        marks = len(self.slots.marks)
        marks_MB = packet[: marks * sentences].view(marks, sentences)
        slots_B = packet[marks * sentences :][:sentences]
        ids_BP = packet[(marks + 1) * sentences :].view(sentences, -1)
        admit(self._do, self.slots, ids_BP, marks_MB, slots_B)
        if self.trees is not None:
            self.trees.begin(slots_B.long(), marks_MB[WORDS])

    def _recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """The same, as one launch. To record it is to run it: a step is then a step taken early."""
        if not self._captures:
            return run
        replay, self._pool = capture(run, self._pool)
        return replay


def capture(run: Callable[[], None], pool: Any) -> tuple[Callable[[], None], Any]:
    """A recording of what `run` does, and the memory that recordings share."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):  # kernels are compiled, workspaces allocated
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        run()
    return graph.replay, pool or graph.pool()
