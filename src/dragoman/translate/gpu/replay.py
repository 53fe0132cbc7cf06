"""Steps recorded once for each number of lanes, and replayed; on a CPU they are computed anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dragoman.translate.gpu.admission import admit
from dragoman.translate.gpu.arithmetic import Arithmetic
from dragoman.translate.gpu.slots import DONE, SOURCE, Slots
from dragoman.translate.gpu.step import step

__all__ = ["Replay", "capture"]

LONGEST = 256
"""Source positions of a sentence that is encoded by a recording, if it is alone."""
GRAIN = 16
"""Recordings are of multiples of so many source positions."""


class Replay:
    """What is done with some slots, again and again."""

    def __init__(self, do: Arithmetic, slots: Slots, *, captures: bool) -> None:
        """Without `captures` nothing is recorded."""
        self.slots = slots
        self.taken: Counter[int] = Counter()
        """Steps of so many lanes, since somebody last cleared this."""
        self._do, self._captures = do, captures
        self._steps: dict[tuple[int, bool], Callable[[], None]] = {}
        self._admissions: dict[int, tuple[Tensor, Tensor, Callable[[], None]]] = {}
        self._pool: Any = None

    def step(self, lanes: int, *, stop_early: bool) -> None:
        """One step of the first so many lanes."""
        key = (lanes, stop_early)
        if key not in self._steps:

            def run() -> None:
                step(self._do, self.slots, lanes, stop_early=stop_early)

            self._steps[key] = self._recorded(run)
        self._steps[key]()
        self.taken[lanes] += 1

    def admit(self, ids_BP: Tensor, marks_MB: Tensor, slots_B: Tensor) -> None:
        """See `admission.admit`; a sentence alone is worth a recording."""
        B, P = ids_BP.shape
        room = -(-P // GRAIN) * GRAIN
        if B > 1 or not self._captures or room > min(LONGEST, self.slots.source):
            admit(self._do, self.slots, ids_BP, marks_MB, slots_B)
            return
        if room not in self._admissions:
            ids = ids_BP.new_zeros(1, room)
            about = marks_MB.new_zeros(len(marks_MB) + 1, 1)
            about[SOURCE] = 1
            about[-1] = self.slots.count  # the slot for nothing, while this is recorded
            about[DONE] = 1

            def run() -> None:
                admit(self._do, self.slots, ids, about[:-1], about[-1])

            self._admissions[room] = (ids, about, self._recorded(run))
        ids, about, replay = self._admissions[room]
        ids[:, :P] = ids_BP  # beyond it is what was there before, which is not looked at
        about[:-1] = marks_MB
        about[-1] = slots_B
        replay()

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
