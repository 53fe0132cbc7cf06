"""Noticing that a rank is gone, and ending with its name instead of waiting for it.

In every rank a thread says now and then, in torchrun's store, that it lives and at which step it
is, and listens to the next rank; so however many there are, the store has little to do. A rank
counts as gone if it says nothing for `timeout_seconds`, if it stays a step behind for so long, or
if it says that it ended with an error. The first verdict counts for all.

A thread, because the rest of the process may be waiting for a message that never comes, from where
nothing calls it back: if it does not leave by itself then, the thread ends the process. Signals
reach the thread too. When torchrun sees a process die, it sends the others SIGTERM; saving a
checkpoint would need the dead one. So after a signal, or an exchange that failed, a few seconds of
silence are enough for the verdict.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch.distributed as dist

from dragoman.errors import TrainingError
from dragoman.training.checkpoints.checkpoint import list_checkpoints, step_of
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.distributed.rendezvous import Store, address

__all__ = ["watched"]

BEATS = 10
"""Of silence that are enough for a verdict in an emergency."""
ALIVE, LEFT, FAILED = "alive", "left", "failed"


@dataclass(frozen=True, slots=True)
class Sign:
    """What a rank says of itself."""

    rank: int
    host: str = ""
    process: int = 0
    step: int = 0
    beat: int = 0
    state: str = ALIVE
    words: str = ""
    """Its last ones."""

    def __str__(self) -> str:
        who = f"rank {self.rank}" + (f" ({self.host}, process {self.process})" * bool(self.host))
        if self.state == FAILED:
            return f"{who} ended at step {self.step:,}: {self.words}"
        return f"{who} stopped answering at step {self.step:,}"


@contextmanager
def watched(ranks: Ranks, run: Path, timeout: float) -> Iterator[Callable[[int], None]]:
    """A block in which a rank that is gone ends the run, with its name; yields what to tell steps.

    Raises TrainingError in place of what an exchange says when it fails; or ends the process.
    """
    if ranks.store is None:
        yield lambda step: None
        return
    watch = Watch(ranks, run, timeout, ranks.store.clone())
    try:
        yield watch.reached
    except RuntimeError as error:  # which is how an exchange fails
        if (verdict := watch.verdict()) is None:
            watch.leave(FAILED, error)
            raise
        watch.leave(LEFT)
        raise TrainingError(verdict) from None
    except BaseException as error:
        watch.leave(FAILED, error)
        raise
    watch.leave(LEFT)


class Watch:
    """The thread of one rank."""

    def __init__(self, ranks: Ranks, run: Path, timeout: float, store: Store) -> None:
        self._run, self._timeout, self._store = run, timeout, store
        self._interval = min(0.5, timeout / 20)
        self._mine = Sign(ranks.rank, socket.gethostname(), os.getpid())
        self._next = Sign((ranks.rank + 1) % ranks.world)
        self._heard = self._abreast = self._reached_store = time.monotonic()
        self._step, self._state, self._words = 0, ALIVE, ""
        self._emergency = False
        self._gone: str | None = None
        self._known, self._over = threading.Event(), threading.Event()
        self._signals = _Signals()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._thread.start()

    # --- called by the rest of the process ---

    def reached(self, step: int) -> None:
        """This rank begins a step."""
        self._step = step

    def verdict(self) -> str | None:
        """Who is gone, now that something has failed; None if everybody answers."""
        self._emergency = True
        self._known.wait(1.5 * BEATS * self._interval)
        return self._gone

    def leave(self, state: str, error: BaseException | None = None) -> None:
        """Say that this rank leaves, and why; where one is gone, it has to leave soon."""
        self._signals.close()
        if error is not None:
            self._words = str(error).partition("\n")[0] or type(error).__name__
        self._state = state
        if not self._known.is_set():
            self._over.set()
            self._thread.join(BEATS * self._interval)

    # --- in the thread ---

    def _watch(self) -> None:
        while not self._known.is_set():
            over = self._over.wait(self._interval)
            self._emergency |= self._signals.came()
            with suppress(RuntimeError):  # the store does not answer; that may pass
                self._say()
                self._listen()
                self._judge()
                self._reached_store = time.monotonic()
            if over:
                return
            if time.monotonic() - self._reached_store > self._patience():
                self._conclude(f"the store that ranks meet in ({address()}) stopped answering")
        self._leave_or_be_ended()

    def _say(self) -> None:
        self._mine = replace(
            self._mine,
            step=self._step,
            beat=self._mine.beat + 1,
            state=self._state,
            words=self._words,
        )
        self._store.set(f"rank/{self._mine.rank}", json.dumps(asdict(self._mine)))

    def _listen(self) -> None:
        now = time.monotonic()
        key = f"rank/{self._next.rank}"
        if self._store.check([key]):
            sign = Sign(**json.loads(self._store.get(key)))
            if sign.beat != self._next.beat:
                self._heard = now
            self._next = sign
        if self._next.step >= self._mine.step:
            self._abreast = now
        if self._store.check(["gone"]):
            self._conclude(self._store.get("gone").decode())

    def _judge(self) -> None:
        """Give the next rank up if there is reason to."""
        sign, silence = self._next, time.monotonic() - self._heard
        behind = time.monotonic() - self._abreast > self._timeout
        if silence > BEATS * self._interval:  # its last word is old, and ranks go step by step
            sign = replace(sign, step=max(sign.step, self._mine.step))
        missed = sign.state == ALIVE and (behind or silence > self._patience())
        if missed or sign.state == FAILED:
            self._conclude(self._store.compare_set("gone", "", str(sign)).decode())

    def _patience(self) -> float:
        return BEATS * self._interval if self._emergency else self._timeout

    def _conclude(self, verdict: str) -> None:
        saved = [step_of(path) for path in list_checkpoints(self._run)]
        goes_on = f"which goes on from step {saved[-1]:,}" if saved else "which begins again"
        self._gone = (
            f"{verdict}; the other ranks stop here; start all again with: dragoman train --resume "
            f"{self._run}, {goes_on}"
        )
        self._known.set()

    def _leave_or_be_ended(self) -> None:
        time.sleep(BEATS * self._interval)
        if not dist.is_initialized():
            return  # the process has found its way out
        if self._state == ALIVE:  # it waits for the dead; nobody else will say it
            print(f"dragoman: {self._gone}", file=sys.stderr, flush=True)
        os._exit(2)


class _Signals:
    """Whether SIGTERM or SIGINT came, also while the main thread is where no handler runs."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._before: int | None = None
        with suppress(ValueError):  # not the main thread, which alone may ask for them
            self._before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def came(self) -> bool:
        with suppress(OSError):  # nothing to read
            return any(n in (signal.SIGTERM, signal.SIGINT) for n in self._reader.recv(4096))
        return False

    def close(self) -> None:
        if self._before is not None:
            with suppress(ValueError):
                signal.set_wakeup_fd(self._before)
            self._before = None
        self._reader.close()
        self._writer.close()
