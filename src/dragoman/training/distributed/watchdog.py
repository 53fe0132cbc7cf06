"""The watchdog notices that a rank is gone, and ends with its name instead of hanging.

In every rank a thread regularly writes a heartbeat with its step to torchrun's store, and reads
that of the next rank; so however many ranks there are, the store has little to do. A rank counts as
gone if its heartbeats stop for `timeout_seconds`, if it stays a step behind for so long, or if it
reports an error. The first such finding is used by all ranks.

This needs a thread, because the main thread may be waiting in a collective for a message that never
comes, where nothing can interrupt it; if it does not get out by itself, the thread ends the
process. Signals must reach the thread too: when torchrun sees a process die, it sends the others
SIGTERM, but saving a checkpoint would need the dead one. So after a signal, or a failed collective,
a few missed heartbeats are enough to call a rank gone.
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
from dragoman.run_directory import checkpoint_step, list_checkpoints
from dragoman.training.distributed.ranks import Ranks, Store, store_address

MISSED_BEATS = 10
"""This many missed heartbeats are enough after a signal or a failed collective."""
ALIVE, FINISHED, FAILED = "alive", "finished", "failed"
GONE = "gone"
"""Under this key the store has what all ranks say of the one that is gone."""


@contextmanager
def run_watchdog(ranks: Ranks, run: Path, timeout: float) -> Iterator[Callable[[int], None]]:
    """Watch the other ranks while the block runs; yields the function to report each step with.

    If a rank is gone, this raises TrainingError with its name in place of the error of the failed
    collective, or ends the process.
    """
    if ranks.store is None:
        yield lambda step: None
        return
    watchdog = Watchdog(ranks, run, timeout, ranks.store.clone())
    try:
        yield watchdog.report_step
    except RuntimeError as error:  # which is how a collective fails
        if (failure := watchdog.find_failure()) is None:
            watchdog.stop(FAILED, error)
            raise
        watchdog.stop(FINISHED)
        raise TrainingError(failure) from None
    except BaseException as error:
        watchdog.stop(FAILED, error)
        raise
    watchdog.stop(FINISHED)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Hold what a rank writes to the store of itself."""

    rank: int
    host: str = ""
    process: int = 0
    step: int = 0
    beat: int = 0
    state: str = ALIVE
    error: str = ""
    """This is the first line of the error that ended it."""

    def __str__(self) -> str:
        who = f"rank {self.rank}" + (f" ({self.host}, process {self.process})" * bool(self.host))
        if self.state == FAILED:
            return f"{who} ended at step {self.step:,}: {self.error}"
        return f"{who} stopped answering at step {self.step:,}"


class Watchdog:
    """Run the thread of one rank, which watches the next rank."""

    def __init__(self, ranks: Ranks, run: Path, timeout: float, store: Store) -> None:
        self._run, self._timeout, self._store = run, timeout, store
        self._interval = min(0.5, timeout / 20)
        self._own = Heartbeat(ranks.rank, socket.gethostname(), os.getpid())
        self._next = Heartbeat((ranks.rank + 1) % ranks.world_size)
        self._last_beat = self._last_in_step = self._last_store_answer = time.monotonic()
        self._step, self._state, self._error = 0, ALIVE, ""
        self._urgent = False
        """This is True after a signal or a failed collective."""
        self._failure: str | None = None
        self._failure_found, self._stopping = threading.Event(), threading.Event()
        self._signals = _SignalListener()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    # --- called by the rest of the process ---

    def report_step(self, step: int) -> None:
        """Note that this rank begins a step."""
        self._step = step

    def find_failure(self) -> str | None:
        """Return which rank is gone, now that something has failed; None if all ranks answer."""
        self._urgent = True
        self._failure_found.wait(1.5 * MISSED_BEATS * self._interval)
        return self._failure

    def stop(self, state: str, error: BaseException | None = None) -> None:
        """Tell the other ranks that this one ends, and why; then end the thread.

        Where a rank is gone, the thread goes on, to end the process if it does not end itself.
        """
        self._signals.close()
        if error is not None:
            self._error = str(error).partition("\n")[0] or type(error).__name__
        self._state = state
        if not self._failure_found.is_set():
            self._stopping.set()
            self._thread.join(MISSED_BEATS * self._interval)

    # --- in the thread ---

    def _watch(self) -> None:
        while not self._failure_found.is_set():
            stopping = self._stopping.wait(self._interval)
            self._urgent |= self._signals.received()
            with suppress(RuntimeError):  # the store does not answer; that may pass
                self._write_heartbeat()
                self._read_next_rank()
                self._check_next_rank()
                self._last_store_answer = time.monotonic()
            if stopping:
                return
            if time.monotonic() - self._last_store_answer > self._allowed_silence():
                self._set_failure(f"the rendezvous store ({store_address()}) stopped answering")
        self._end_process_if_stuck()

    def _write_heartbeat(self) -> None:
        self._own = replace(
            self._own,
            step=self._step,
            beat=self._own.beat + 1,
            state=self._state,
            error=self._error,
        )
        self._store.set(f"rank/{self._own.rank}", json.dumps(asdict(self._own)))

    def _read_next_rank(self) -> None:
        now = time.monotonic()
        key = f"rank/{self._next.rank}"
        if self._store.check([key]):
            heartbeat = Heartbeat(**json.loads(self._store.get(key)))
            if heartbeat.beat != self._next.beat:
                self._last_beat = now
            self._next = heartbeat
        if self._next.step >= self._own.step:
            self._last_in_step = now
        if self._store.check([GONE]):
            self._set_failure(self._store.get(GONE).decode())

    def _check_next_rank(self) -> None:
        """Declare the next rank gone if it failed, fell silent or fell behind."""
        heartbeat, silence = self._next, time.monotonic() - self._last_beat
        behind = time.monotonic() - self._last_in_step > self._timeout
        if silence > MISSED_BEATS * self._interval:  # its step is old, and ranks go step by step
            heartbeat = replace(heartbeat, step=max(heartbeat.step, self._own.step))
        missed = heartbeat.state == ALIVE and (behind or silence > self._allowed_silence())
        if missed or heartbeat.state == FAILED:
            self._set_failure(self._store.compare_set(GONE, "", str(heartbeat)).decode())

    def _allowed_silence(self) -> float:
        return MISSED_BEATS * self._interval if self._urgent else self._timeout

    def _set_failure(self, finding: str) -> None:
        saved = [checkpoint_step(path) for path in list_checkpoints(self._run)]
        goes_on = f"which goes on from step {saved[-1]:,}" if saved else "which begins again"
        self._failure = (
            f"{finding}; the other ranks stop here; start all again with: dragoman train --resume "
            f"{self._run}, {goes_on}"
        )
        self._failure_found.set()

    def _end_process_if_stuck(self) -> None:
        time.sleep(MISSED_BEATS * self._interval)
        if not dist.is_initialized():
            return  # the process is already ending
        if self._state == ALIVE:  # the main thread waits for the dead rank and cannot say it
            print(f"dragoman: {self._failure}", file=sys.stderr, flush=True)
        os._exit(2)


class _SignalListener:
    """Notice SIGTERM and SIGINT even while the main thread is where no handler can run."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._before: int | None = None
        with suppress(ValueError):  # only the main thread may set this
            self._before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def received(self) -> bool:
        """Return whether a signal has come since the last call."""
        with suppress(OSError):  # nothing to read
            return any(n in (signal.SIGTERM, signal.SIGINT) for n in self._reader.recv(4096))
        return False

    def close(self) -> None:
        """Stop listening for signals."""
        if self._before is not None:
            with suppress(ValueError):
                signal.set_wakeup_fd(self._before)
            self._before = None
        self._reader.close()
        self._writer.close()
