"""What a run records: metrics.jsonl, one line an event, and the same for TensorBoard."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

__all__ = ["Metrics"]


class Metrics:
    """Appends to a run's records; `start` is how much of metrics.jsonl is still true."""

    def __init__(self, run: Path, *, start: int = 0, step: int = 0) -> None:
        self._path = run / "metrics.jsonl"
        self._path.touch()
        # What a killed run wrote after its checkpoint will be written again.
        os.truncate(self._path, min(start, self._path.stat().st_size))
        self._file = self._path.open("a", encoding="utf-8")
        self._directory = run / "tensorboard"
        self._step = step
        self._events: _Events | None = None

    @property
    def bytes_written(self) -> int:
        """Length of metrics.jsonl."""
        self._file.flush()
        return self._path.stat().st_size

    def sync(self) -> None:
        """Bring metrics.jsonl to the disk: a checkpoint counts on what was written before it."""
        os.fsync(self._file.fileno())

    def write(self, kind: str, step: int, **values: float | int | str) -> None:
        """Record an event."""
        line = {"kind": kind, "step": step}
        line.update({k: round(v, 6) if isinstance(v, float) else v for k, v in values.items()})
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        if self._events is None:  # made when first needed: its imports take a while
            self._events = _Events(self._directory, self._step + 1)
        numbers = {k: float(v) for k, v in values.items() if not isinstance(v, str)}
        self._events.write(kind, step, numbers)

    def close(self) -> None:
        """Finish the files."""
        self._file.close()
        if self._events is not None:
            self._events.close()


class _Events:
    """A TensorBoard file, written at once: its own writer has a thread, and loses what that holds.

    Events of an earlier file from step `first` on are struck out.
    """

    def __init__(self, directory: Path, first: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event: Any = Event
        self._summary: Any = Summary
        directory.mkdir(parents=True, exist_ok=True)
        stamp = f"{time.time():017.6f}"  # files are read in the order of their names
        path = directory / f"events.out.tfevents.{stamp}.{socket.gethostname()}.{os.getpid()}"
        self._file = path.open("wb")
        self._records: Any = RecordWriter(self._file)
        self._add(file_version="brain.Event:2")
        self._add(step=first, session_log=SessionLog(status=SessionLog.START))

    def write(self, kind: str, step: int, numbers: dict[str, float]) -> None:
        """Record some numbers of a step."""
        values = [
            self._summary.Value(tag=f"{kind}/{name}", simple_value=number)
            for name, number in numbers.items()
        ]
        self._add(step=step, summary=self._summary(value=values))

    def _add(self, **content: Any) -> None:
        event = self._event(wall_time=time.time(), **content)
        self._records.write(event.SerializeToString())
        self._file.flush()

    def close(self) -> None:
        """Finish the file."""
        self._file.close()
