"""The host's part: which sentence is in which slot, and when to look.

Steps are queued, then a copy of what is done. While the device works on those, the host looks at
the copy before: it takes out what was found, and puts in what waits. So the device never waits for
the host, and a sentence that is done keeps its slot for some steps more.

Of a few sentences a look has all that was found, and no more is asked for.
"""

# B sentences that move at a time, N best of each, T positions, P source positions, M marks

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.inference.gpu.async_copies import Look, fetch, mark, pinned
from dragoman.inference.gpu.batch_state import CEILING, ENDED, MARKS, SOURCE, WORDS
from dragoman.inference.gpu.cuda_graphs import GRAIN, Replay
from dragoman.search.options import Hypothesis, SearchOptions, nothing
from dragoman.text.special_tokens import EOS, PAD
from dragoman.trees.grammar import Yields

__all__ = ["Harvest", "Loop", "Sentences", "hypotheses"]

FEW: Final = 64
"""Up to so many rows the host looks after every step: what is done is to be seen at once."""
ENCODED: Final = 1 << 15
"""Source positions that are encoded together."""
EVEN: Final = 8
"""Sources are padded to multiples of this, which fast attention wants."""

Ints = NDArray[np.int32]


class Sentences:
    """Sources end to end, the longest first, with the most pieces each may become."""

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        ceilings: Sequence[int],
        yields: Yields | None = None,
    ) -> None:
        """With `yields`, what trees are to be made over."""
        lengths = np.array([len(ids) for ids in sentences], np.int32)
        self.order = np.argsort(-lengths, kind="stable")
        self.ceilings: Ints = np.array(ceilings, np.int32)[self.order]
        self.lengths: Ints = lengths[self.order] + 1
        self._yields = yields
        ids = chain.from_iterable(sentences[n] for n in self.order)
        self._ids: Ints = np.fromiter(ids, np.int32, int(lengths.sum()))
        self._begins = np.cumsum(self.lengths - 1, dtype=np.int64) - (self.lengths - 1)

    def __len__(self) -> int:
        return len(self.lengths)

    def packet(self, chosen: slice, slots: Sequence[int], marks: int) -> Ints:
        """All that the device needs of some, for these slots: marks, M B; slots; ids, B P."""
        marks_MB: Ints = np.zeros((marks, len(slots)), np.int32)
        marks_MB[CEILING] = self.ceilings[chosen]
        marks_MB[SOURCE] = self.lengths[chosen]
        if self._yields is not None:
            for column, number in enumerate(self.order[chosen]):
                announced = self._yields.announced[number]
                marks_MB[WORDS, column] = self._yields.words[number]
                marks_MB[MARKS : MARKS + len(announced), column] = announced
        ids_BP = self._padded(chosen, EVEN if len(slots) > 1 else GRAIN)
        return np.concatenate([marks_MB.ravel(), np.array(slots, np.int32), ids_BP.ravel()])

    def _padded(self, chosen: slice, grain: int) -> Ints:
        """Each ending in EOS."""
        lengths, begins = self.lengths[chosen, None], self._begins[chosen, None]
        places = np.arange(-(-int(lengths.max()) // grain) * grain)
        found: Ints = np.full((len(lengths), len(places)), PAD, np.int32)
        inside = places < lengths - 1
        found[inside] = self._ids[(begins + places)[inside]]
        found[places == lengths - 1] = EOS
        return found


@dataclass(frozen=True, slots=True)
class Harvest:
    """What was found for some sentences, on its way to the host."""

    time: int
    """Of the look before it: when the next one has arrived, so has this."""
    sentences: list[int]
    figures_BN4: Tensor
    ids_BNT: Tensor
    ended_B: Tensor


class Loop:
    """A search of many sentences in a few slots."""

    def __init__(
        self, replay: Replay, options: SearchOptions, lanes: int, *, steps: int = 4
    ) -> None:
        """`lanes` sentences at a time, a power of two; every so many `steps` the host looks."""
        self._replay, self._slots = replay, replay.slots
        self._options, self._lanes, self._steps = options, lanes, steps
        self._device = replay.slots.lanes.device

    def run(self, sentences: Sentences) -> Iterator[tuple[int, list[Hypothesis]]]:
        """What is found for each sentence, in the order they are seen to be done."""
        count = len(sentences)
        holds = [-1] * self._slots.count  # the sentence in each slot
        since = [0] * self._slots.count  # when it moved in
        free = list(range(self._lanes - 1, -1, -1))
        lanes, coming, live, time = self._lanes, 0, 0, 0
        before: Look | None = None
        harvests: deque[Harvest] = deque()
        self._replay.aim(list(range(lanes)))
        while coming < count or live:
            if coming < count and (len(free) >= max(1, self._lanes // 16) or not live):
                moving = min(len(free), count - coming)
                into = [free.pop() for _ in range(moving)]
                self._admit(sentences, coming, into)
                for place, slot in enumerate(into):
                    holds[slot], since[slot] = coming + place, time
                coming, live = coming + moving, live + moving
            few = lanes * self._options.beam <= FEW
            for _ in range(1 if few else self._steps):
                self._replay.step(lanes, stop_early=self._options.stop_early)
            time += 1
            look = self._replay.looks[time % 2]
            look.take(time)
            if before is not None:
                before.ready()
                while harvests and harvests[0].time < before.time:
                    yield from hypotheses(harvests.popleft(), sentences)
                done = [
                    int(slot)
                    for slot in before.done_S[:-1].nonzero()[0]
                    if holds[slot] >= 0 and since[slot] < before.time
                ]
                if done:
                    harvest = self._harvest(before, [holds[slot] for slot in done], done)
                    if before.report is None:
                        harvests.append(harvest)
                    else:
                        yield from hypotheses(harvest, sentences)
                    for slot in done:
                        holds[slot] = -1
                    free += done
                    live -= len(done)
                if coming == count and live and 2 * live <= lanes:
                    while 2 * live <= lanes:
                        lanes //= 2
                    self._replay.aim([slot for slot, held in enumerate(holds) if held >= 0])
            before = look
        if harvests:
            mark(self._device)()
        for harvest in harvests:
            yield from hypotheses(harvest, sentences)

    def _admit(self, sentences: Sentences, first: int, slots: list[int]) -> None:
        while slots:
            room = max(1, ENCODED // int(sentences.lengths[first]))
            here, slots = slots[:room], slots[room:]
            chosen = slice(first, first + len(here))
            packet = sentences.packet(chosen, here, len(self._slots.marks))
            self._replay.admit(packet, len(here))
            first += len(here)

    def _harvest(self, look: Look, sentences: list[int], slots: list[int]) -> Harvest:
        """From the look itself, or asked for after the one that is on its way."""
        if look.report is not None:
            chosen_B = torch.tensor(slots)
            parts = (look.report.pool_SN4, look.report.pool_SNT, look.report.marks[ENDED])
            return Harvest(look.time, sentences, *(part[chosen_B] for part in parts))
        chosen_B = self._to_device(np.array(slots, np.int64))
        s = self._slots
        parts = (s.pool_SN4, s.pool_SNT, s.marks[ENDED])
        found = [self._to_host(part.index_select(0, chosen_B)) for part in parts]
        return Harvest(look.time + 1, sentences, *found)

    def _to_device(self, array: NDArray[Any]) -> Tensor:
        return pinned(array, self._device).to(self._device, non_blocking=True)

    def _to_host(self, tensor: Tensor) -> Tensor:
        here = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
        fetch(here, tensor)
        return here


def hypotheses(harvest: Harvest, sentences: Sentences) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Each sentence's, best first; the device keeps them in no order."""
    ids_BNT = harvest.ids_BNT.numpy()
    figures, ended = harvest.figures_BN4.tolist(), harvest.ended_B.tolist()
    for place, number in enumerate(harvest.sentences):
        found = []
        if ended[place]:
            ranked = sorted(enumerate(figures[place]), key=lambda one: (-one[1][0], one[1][3]))
            for rank, (score, total, length, _) in ranked:
                if score != -np.inf:
                    ids = ids_BNT[place, rank, : int(length)].tolist()
                    found.append(Hypothesis(ids, score, total))
        yield int(sentences.order[number]), found or [nothing([])]
