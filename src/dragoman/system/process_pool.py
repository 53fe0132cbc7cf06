"""`map_ahead` computes in other processes ahead of time and hands over the results in order.

Building batches is Python, and would keep the interpreter's lock from the thread that trains.
The workers are plain subprocesses that live on a pipe: they need no ``__main__`` guard in the
user's script, and they end when the pipe does, however the parent ended.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import SimpleQueue
from typing import IO, Any, TypeVar

from dragoman.errors import DataError, DragomanError

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def map_ahead(
    function: Callable[[Argument], Result], arguments: Iterable[Argument], workers: int
) -> Generator[Result, None, None]:
    """Yield what the function gives for each argument, computed ahead by `workers` processes.

    Results come in the arguments' order. With 0 workers this thread computes them, each when it is
    asked for. Function and results are pickled. Closing the iterator ends the workers.
    """
    if workers == 0:
        yield from map(function, arguments)
        return
    setup = pickle.dumps(function)
    processes = [_Worker(setup) for _ in range(workers)]
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in processes:
        idle.put(worker)

    def call(argument: Argument) -> Result:
        worker = idle.get()
        try:
            result: Result = worker.call(argument)
        finally:
            idle.put(worker)
        return result

    remaining = iter(arguments)
    results: deque[Future[Result]] = deque()
    executor = ThreadPoolExecutor(workers, "dragoman-workers")
    try:
        for argument in islice(remaining, workers + 1):
            results.append(executor.submit(call, argument))
        while results:
            result = results.popleft().result()
            for argument in islice(remaining, 1):
                results.append(executor.submit(call, argument))
            yield result
    finally:
        for worker in processes:
            worker.kill()  # whoever waits for it stops waiting
        executor.shutdown(cancel_futures=True)
        for worker in processes:
            worker.close()


class _Worker:
    """Run a process that computes one call at a time."""

    def __init__(self, setup: bytes) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from dragoman.system.process_pool import _run_worker; _run_worker()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for the parent, which ends its workers
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._setup: bytes | None = setup

    def call(self, argument: object) -> Any:
        try:
            if self._setup is not None:
                _send_bytes(self._to, self._setup)
                self._setup = None
            _send(self._to, argument)
            done, result = _receive(self._from)
        except (EOFError, OSError):
            status = self._process.wait()
            raise DataError(
                f"a worker process ended (status {status}); if memory ran out, use fewer workers"
            ) from None
        if not done:
            raise result
        return result

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._process.wait()
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):
                pipe.close()


def _run_worker() -> None:
    """Be a worker: read a function, then answer each argument with a result until the pipe ends."""
    inbox, outbox = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write to the pipe
    with contextlib.suppress(EOFError, OSError):
        setup = _receive_bytes(inbox)
        function: Callable[[Any], Any] | None = None
        while True:
            argument = _receive(inbox)
            try:
                function = function or pickle.loads(setup)
                answer = (True, function(argument))
            except Exception as error:
                answer = (False, _make_portable(error))
            _send(outbox, answer)
    os._exit(0)  # nobody is left to tell of what could not be sent


def _make_portable(error: Exception) -> Exception:
    """Return the error as another process can raise it, with a traceback if it is unexpected."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(repr(error))
    if not isinstance(error, DragomanError):
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
    return error


# A message is a pickle and the buffers of its arrays, each preceded by its length: arrays are
# read straight into their memory, without the interpreter's lock.


def _send(pipe: IO[bytes], message: object) -> None:
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    _send_bytes(pipe, pickle.dumps((head, [view.nbytes for view in views])))
    for view in views:
        pipe.write(view)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    head, sizes = pickle.loads(_receive_bytes(pipe))
    return pickle.loads(head, buffers=[_read(pipe, size) for size in sizes])


def _send_bytes(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(8, "little") + data)
    pipe.flush()


def _receive_bytes(pipe: IO[bytes]) -> bytearray:
    return _read(pipe, int.from_bytes(_read(pipe, 8), "little"))


def _read(pipe: Any, size: int) -> bytearray:
    data = bytearray(size)
    if pipe.readinto(data) != size:
        raise EOFError
    return data
