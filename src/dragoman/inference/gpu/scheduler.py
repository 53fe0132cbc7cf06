"""The scheduler decides which sentence is in which slot, and when the host sees what is done.

Steps are queued, then a copy of what is done. While the device works on those, the host reads the
copy before: it takes out what was found, and puts in what waits. So the device never waits for the
host, and a sentence that is done keeps its slot for some steps more.

Where sentences are few a copy has all that was found, and no more is asked for.
"""

# B sentences that come or go together, N best of each, T positions, P source positions, F fields

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

from dragoman.inference.gpu.batch_state import (
    FINISHED,
    INFO_FIELDS,
    MAX_LENGTH,
    MIN_LENGTH,
    SOURCE_LENGTH,
    WORDS,
    HostCopy,
    SlotReport,
    copy_async,
    pin,
    record_event,
)
from dragoman.inference.gpu.cuda_graphs import GRAPH_PAD_MULTIPLE, GraphRunner
from dragoman.search.options import Hypothesis, SearchOptions, fallback_hypothesis
from dragoman.text.special_tokens import EOS, PAD
from dragoman.trees.grammar import SentencesToParse

SMALL_BATCH_ROWS: Final = 64
"""Up to so many rows the host checks after every step: what is done is to be seen at once."""
ENCODED_AT_ONCE: Final = 1 << 15
"""So many source positions are encoded together."""
PAD_MULTIPLE: Final = 8
"""Sources are padded to multiples of this, which fast attention wants."""

Ints = NDArray[np.int32]


class SourceQueue:
    """Hold sources end to end, the longest first, with how many pieces each may become."""

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        max_lengths: Sequence[int],
        to_parse: SentencesToParse | None = None,
        *,
        min_length: int = 0,
    ) -> None:
        """Sort the sentences; with `to_parse`, trees are to be made over their words."""
        lengths = np.array([len(ids) for ids in sentences], np.int32)
        self.order = np.argsort(-lengths, kind="stable")
        self.max_lengths: Ints = np.array(max_lengths, np.int32)[self.order]
        self.lengths: Ints = lengths[self.order] + 1
        self._to_parse, self._min_length = to_parse, min_length
        ids = chain.from_iterable(sentences[n] for n in self.order)
        self._ids: Ints = np.fromiter(ids, np.int32, int(lengths.sum()))
        self._starts = np.cumsum(self.lengths - 1, dtype=np.int64) - (self.lengths - 1)

    def __len__(self) -> int:
        return len(self.lengths)

    def pack(self, chosen: slice, slots: Sequence[int], fields: int) -> Ints:
        """Return all that the device needs of some, for these slots: info, F B; slots; ids, B P."""
        info_FB: Ints = np.zeros((fields, len(slots)), np.int32)
        info_FB[MAX_LENGTH] = self.max_lengths[chosen]
        info_FB[MIN_LENGTH] = self._min_length
        info_FB[SOURCE_LENGTH] = self.lengths[chosen]
        if self._to_parse is not None:
            for column, number in enumerate(self.order[chosen]):
                announced = self._to_parse.announced[number]
                info_FB[WORDS, column] = self._to_parse.words[number]
                info_FB[INFO_FIELDS : INFO_FIELDS + len(announced), column] = announced
        ids_BP = self._pad(chosen, PAD_MULTIPLE if len(slots) > 1 else GRAPH_PAD_MULTIPLE)
        return np.concatenate([info_FB.ravel(), np.array(slots, np.int32), ids_BP.ravel()])

    def _pad(self, chosen: slice, multiple: int) -> Ints:
        """Return sources that each end in EOS, padded to one length."""
        lengths, starts = self.lengths[chosen, None], self._starts[chosen, None]
        positions = np.arange(-(-int(lengths.max()) // multiple) * multiple)
        found: Ints = np.full((len(lengths), len(positions)), PAD, np.int32)
        inside = positions < lengths - 1
        found[inside] = self._ids[(starts + positions)[inside]]
        found[positions == lengths - 1] = EOS
        return found


@dataclass(frozen=True, slots=True)
class FinishedSentences:
    """Hold what was found for some sentences, on its way to the host."""

    time: int
    """It belongs to the host copy of this time: when the next one has arrived, so has this."""
    sentences: list[int]
    finished_BN4: Tensor
    ids_BNT: Tensor
    running_BNT: Tensor
    count_B: Tensor


class Scheduler:
    """Search many sentences in a few slots."""

    def __init__(
        self, runner: GraphRunner, options: SearchOptions, batch_size: int, *, steps: int = 4
    ) -> None:
        """Search `batch_size` sentences at a time, a power of two; check after every `steps`."""
        self._runner, self._state = runner, runner.state
        self._options, self._batch_size, self._steps = options, batch_size, steps
        self._device = runner.state.active_slots.device

    def run(self, sources: SourceQueue) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yield what is found for each sentence, in the order they are seen to be done."""
        count = len(sources)
        sentence_in = [-1] * self._state.count
        admitted_at = [0] * self._state.count
        free = list(range(self._batch_size - 1, -1, -1))
        batch_size, next_, searched, time = self._batch_size, 0, 0, 0
        before: HostCopy | None = None
        waiting: deque[FinishedSentences] = deque()
        self._runner.set_active(list(range(batch_size)))
        while next_ < count or searched:
            if next_ < count and (len(free) >= max(1, self._batch_size // 16) or not searched):
                coming = min(len(free), count - next_)
                slots = [free.pop() for _ in range(coming)]
                self._admit(sources, next_, slots)
                for place, slot in enumerate(slots):
                    sentence_in[slot], admitted_at[slot] = next_ + place, time
                next_, searched = next_ + coming, searched + coming
            small = batch_size * self._options.beam <= SMALL_BATCH_ROWS
            for _ in range(1 if small else self._steps):
                self._runner.step(batch_size, self._options)
            time += 1
            copy = self._runner.host_copies[time % 2]
            copy.start(time)
            if before is not None:
                before.wait()
                while waiting and waiting[0].time < before.time:
                    yield from read_hypotheses(waiting.popleft(), sources)
                done = [
                    int(slot)
                    for slot in before.done_S[:-1].nonzero()[0]
                    if sentence_in[slot] >= 0 and admitted_at[slot] < before.time
                ]
                if done:
                    finished = self._take_finished(before, [sentence_in[s] for s in done], done)
                    if before.report is None:
                        waiting.append(finished)
                    else:
                        yield from read_hypotheses(finished, sources)
                    for slot in done:
                        sentence_in[slot] = -1
                    free += done
                    searched -= len(done)
                if next_ == count and searched and 2 * searched <= batch_size:
                    while 2 * searched <= batch_size:
                        batch_size //= 2
                    self._runner.set_active([s for s, one in enumerate(sentence_in) if one >= 0])
            before = copy
        if waiting:
            record_event(self._device)()
        for finished in waiting:
            yield from read_hypotheses(finished, sources)

    def _admit(self, sources: SourceQueue, first: int, slots: list[int]) -> None:
        while slots:
            room = max(1, ENCODED_AT_ONCE // int(sources.lengths[first]))
            here, slots = slots[:room], slots[room:]
            chosen = slice(first, first + len(here))
            packed = sources.pack(chosen, here, len(self._state.info_FS))
            self._runner.encode(packed, len(here))
            first += len(here)

    def _take_finished(
        self, copy: HostCopy, sentences: list[int], slots: list[int]
    ) -> FinishedSentences:
        """Take what was found from the copy, or ask for it after the one that is on its way."""
        if copy.report is not None:
            slots_B = torch.tensor(slots)
            parts = _finished_parts(copy.report)
            return FinishedSentences(copy.time, sentences, *(part[slots_B] for part in parts))
        slots_B = self._to_device(np.array(slots, np.int64))
        parts = _finished_parts(self._state.report)
        found = [self._to_host(part.index_select(0, slots_B)) for part in parts]
        return FinishedSentences(copy.time + 1, sentences, *found)

    def _to_device(self, array: NDArray[Any]) -> Tensor:
        return pin(array, self._device).to(self._device, non_blocking=True)

    def _to_host(self, tensor: Tensor) -> Tensor:
        here = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
        copy_async(here, tensor)
        return here


def _finished_parts(report: SlotReport) -> tuple[Tensor, ...]:
    return (
        report.finished_SN4,
        report.finished_ids_SNT,
        report.finished_running_SNT,
        report.info_FS[FINISHED],
    )


def read_hypotheses(
    finished: FinishedSentences, sources: SourceQueue
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Yield each sentence's hypotheses, best first; the device keeps them in no order."""
    ids_BNT, running_BNT = finished.ids_BNT.numpy(), finished.running_BNT.numpy()
    figures, counts = finished.finished_BN4.tolist(), finished.count_B.tolist()
    for place, number in enumerate(finished.sentences):
        found = []
        if counts[place]:
            ranked = sorted(enumerate(figures[place]), key=lambda one: (-one[1][0], one[1][3]))
            for rank, (score, total, length, _) in ranked:
                if score != -np.inf:
                    ids = ids_BNT[place, rank, : int(length)].tolist()
                    sums = running_BNT[place, rank, : int(length)].tolist()
                    found.append(Hypothesis.from_running_sums(ids, score, total, sums))
        yield int(sources.order[number]), found or [fallback_hypothesis([])]
