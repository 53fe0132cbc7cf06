"""Surviving a shortage of memory: the batch is computed again, in twice as many slices.

With one rank that is all. With several, a rank that runs out in the middle of an exchange leaves
the others waiting for gradients that never come. So there are two ways to take a step:

- the careful one: every rank computes its gradients alone, all tell each other on the host whether
  memory sufficed, and only then exchange. If it did not for one, all begin the batch again.
- the usual one: gradients are exchanged while the backward pass goes on.

All batches have one shape, so that what has fitted will fit. The first steps of a process, and the
first after a shortage, are careful; the others are not. A shortage in one of the others ends the
process, and a note in the run's directory makes the next one begin with twice the slices. In shards
every layer is an exchange, and no step can be careful.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.system.memory import is_out_of_memory
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.memory.out_of_memory import Shortage, ShortageError

__all__ = ["Ration"]

CAREFUL_STEPS = 3


class Ration:
    """In how many slices a batch is computed; more after each shortage."""

    def __init__(self, slices: int, ranks: Ranks, *, sharded: bool) -> None:
        self.slices = slices
        self.shortages: list[Shortage] = []
        """Those survived; whoever tells of them takes them out."""
        self._ranks = ranks
        self._can_agree = ranks.world > 1 and not sharded
        self._careful = CAREFUL_STEPS

    def begin_with(self, slices: int) -> None:
        """What an earlier process of the run has found to be needed."""
        self.slices = max(self.slices, slices)

    def spend(
        self,
        step: int,
        most: int,
        *,
        compute: Callable[[bool], None],
        exchange: Callable[[], None],
        forget: Callable[[], None],
    ) -> None:
        """Take a step in one of the two ways, again and again until memory suffices for it.

        `compute` finds the gradients, of all ranks or of this one alone; `exchange` makes the
        latter the former; `forget` undoes both. `most` slices are a row each.
        """
        while True:
            careful = self._can_agree and self._careful > 0
            ran_out = _runs_out(compute, not careful)
            if careful:
                ran_out = bool(self._ranks.total(ran_out)[0])
            if not ran_out:
                if careful:
                    exchange()
                self._careful -= 1
                return
            shortage = self._halve(step, most)
            if self._ranks.world > 1 and not careful:
                raise ShortageError(shortage)
            forget()
            self.shortages.append(shortage)

    def _halve(self, step: int, most: int) -> Shortage:
        if self.slices >= most:
            raise ShortageError(Shortage(step, self.slices), hopeless=True)
        self.slices = min(2 * self.slices, most)
        self._careful = CAREFUL_STEPS
        return Shortage(step, self.slices)


def _runs_out(compute: Callable[[bool], None], together: bool) -> bool:
    """Whether memory does not suffice; what the attempt held is let go with its traceback."""
    try:
        compute(together)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return True
    return False
