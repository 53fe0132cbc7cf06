"""Steps recorded once for each number of lanes, and replayed; on a CPU they are computed anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dragoman.inference.gpu.async_copies import Look, pinned
from dragoman.inference.gpu.batch_state import DONE, SOURCE, WORDS, Slots
from dragoman.inference.gpu.plain_operations import Arithmetic
from dragoman.inference.gpu.tree_grammar import Trees

__all__ = [
    "GRAIN",
    "Replay",
    "admit",
    "capture",
    "step",
]


# PART translate.gpu.admission: Sentences move in: the encoder reads them, and their slots begin
# anew.


# B sentences, P source positions, M model width, H heads, L decoder layers, W = heads times width


@torch.no_grad()
def admit(do: Arithmetic, slots: Slots, ids_BP: Tensor, marks_MB: Tensor, slots_B: Tensor) -> None:
    """Put sentences into slots; `marks` are what they begin with, a column for each.

    Padding is encoded too, and kept: nobody looks at it.
    """
    w, (B, P) = do.weights, ids_BP.shape
    slots_B = slots_B.long()
    x, y = _encode(do, slots, ids_BP, marks_MB[SOURCE])
    _, memory = do.enter(x, y, w.memory)
    memory_LXW = memory.view(B * P, w.layers, 2 * w.wide).transpose(0, 1)
    places_BP = slots_B[:, None] * slots.source + torch.arange(P, device=w.device)
    slots.source_LPW.index_copy_(1, places_BP.flatten(), memory_LXW)
    slots.marks.index_copy_(1, slots_B, marks_MB)


def _encode(
    do: Arithmetic, slots: Slots, ids_BP: Tensor, lengths_B: Tensor
) -> tuple[Tensor, Tensor]:
    """The residual stream at the end of the encoder and what is still to be added, BP M each."""
    w, (B, P) = do.weights, ids_BP.shape
    pieces_BPM = F.embedding(ids_BP, w.source_pieces).float() * w.scale
    x = (pieces_BPM + slots.positions_TM[:P]).flatten(0, 1)
    seen_B11P = (torch.arange(P, device=w.device) < lengths_B[:, None])[:, None, None]
    # What is added to the scores, once for all layers: of a mask each would make it anew.
    added_B11P = torch.zeros_like(seen_B11P, dtype=w.dtype).masked_fill_(~seen_B11P, -torch.inf)
    y: Tensor | None = None
    for layer in w.encoder:
        x, qkv = do.enter(x, y, layer.attention)
        q, k, v = qkv.view(B, P, 3, w.heads, -1).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v, added_B11P)
        y = do.product(heads.transpose(1, 2).reshape(B * P, w.wide), layer.output)
        x, inner = do.enter(x, y, layer.inner)
        y = do.product(inner, layer.outer)
    assert y is not None
    return x, y


# PART translate.gpu.step: One step of the search: a piece more of every hypothesis, on the
# device alone.


@torch.no_grad()
def step(
    do: Arithmetic, slots: Slots, lanes: int, *, stop_early: bool, trees: Trees | None = None
) -> None:
    """Extend the hypotheses of the first `lanes` lanes; nothing is read by the host."""
    x = do.embed(slots, lanes)
    y: Tensor | None = None
    for number, layer in enumerate(do.weights.decoder):
        x, qkv = do.enter(x, y, layer.attention)
        y = do.product(do.look_back(qkv, slots, number, lanes), layer.output)
        x, queries = do.enter(x, y, layer.source)
        y = do.product(do.look_at_source(queries, slots, number, lanes), layer.source_output)
        x, inner = do.enter(x, y, layer.inner)
        y = do.product(inner, layer.outer)
    scores = do.scores(x, y)
    if trees is None:
        do.choose(scores, slots, lanes, stop_early=stop_early)
        return
    do.choose(trees.allow(scores, lanes), slots, lanes, stop_early=stop_early)
    trees.grow(lanes)


# B sentences, P source positions, M marks


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
