"""A search that sentences join and leave at any step: for a service, where they come one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dragoman.inference.cpu.allowed_tokens import Language
from dragoman.inference.cpu.batch_state import NOTHING
from dragoman.inference.cpu.engine import ROWS, Engine
from dragoman.inference.cpu.search import BeamSearch, GreedySearch
from dragoman.search.options import Hypothesis, SearchOptions, checked, nothing

__all__ = ["OpenEngine", "Stream"]

SPARE: Final = 4
"""One place in so many is kept for newcomers, whatever one asker has waiting."""


class OpenEngine(Engine):
    """An engine of the same weights whose searches are streams.

    Neither a sentence nor its translation may have more than `reach` pieces: the table of positions
    must not move while a stream reads it.
    """

    def __init__(self, engine: Engine, reach: int) -> None:
        super().__init__(dict(engine._packed), engine._config, engine._targets)
        self.narrow = engine.narrow
        self._reach(reach + 2)
        self.reach = reach

    def stream(self, options: SearchOptions) -> Stream:
        """A search nobody has joined yet."""
        return Stream(self, options)


class Stream:
    """Sentences that are searched at the same time, each as far as it has come.

    What is found of a sentence depends on nothing but itself. One thread uses a stream.
    """

    def __init__(self, engine: OpenEngine, options: SearchOptions) -> None:
        self.share = max(1, ROWS // options.beam)
        """Places one asker may have."""
        self.places = self.share + max(1, self.share // SPARE)
        self._engine = engine  # the kernel reads its arrays
        self._options = options
        kind = GreedySearch if options.beam == 1 else BeamSearch
        language = Language(options.beam, engine._model.projection.outputs)
        self._search = kind(
            engine._model,
            options,
            language,
            narrow=engine.narrow,
            slots=self.places,
            longest=engine.reach,
        )
        self._active: dict[int, int] = {}  # sentence: place

    def __len__(self) -> int:
        return len(self._active)

    @property
    def room(self) -> int:
        """How many sentences can join now."""
        return self.places - len(self._active)

    def admit(self, sentences: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Sentences by number, as many as there is room for, are read; they join the next step."""
        options = self._options
        coming = []
        for number, ids in sentences:
            ceiling = len(ids) + options.max_extra
            if options.max_length is not None:
                ceiling = min(ceiling, options.max_length)
            coming.append((number, ids, ceiling))
        for (number, _), place in zip(sentences, self._search._admit(coming), strict=True):
            self._active[number] = place

    def leave(self, number: int) -> None:
        """Nobody waits for this sentence any more; its place is free."""
        self._search._leave(self._active.pop(number))

    def step(self) -> list[tuple[int, list[Hypothesis]]]:
        """One piece more of every hypothesis; the sentences that are done, and what was found."""
        active_A = np.array(list(self._active.values()), np.int32)
        self._search._borrow(active_A)
        done = []
        for place in self._search._step(active_A):
            number = self._search.names[place]
            found = self._search._leave(place) or [nothing([])]
            del self._active[number]
            done.append((number, checked([found])[0]))
        return done

    def agreed(self, number: int) -> list[int]:
        """The first pieces of a sentence's translation: those in which all hypotheses agree.

        They only become more: what is once agreed is in every translation that can still come.
        """
        search, place = self._search, self._active[number]
        alive = search.sums[place] > NOTHING
        rows = [*search.ids[place, alive, : search.lengths[place]].tolist()]
        rows += [ids for _, _, ids in search.pools[place]]
        agreed = []
        for pieces in zip(*rows, strict=False):
            if len(set(pieces)) > 1:
                break
            agreed.append(int(pieces[0]))
        return agreed
