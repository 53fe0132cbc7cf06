"""A run records its metrics: metrics.jsonl, one line an event, and the same for TensorBoard."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any


class MetricsWriter:
    """Append to a run's records, of which metrics.jsonl is kept up to byte `start`."""

    def __init__(self, run: Path, *, start: int = 0, step: int = 0) -> None:
        self._path = run / "metrics.jsonl"
        self._path.touch()
        # What a killed run wrote after its checkpoint will be written again.
        os.truncate(self._path, min(start, self._path.stat().st_size))
        self._file = self._path.open("a", encoding="utf-8")
        self._directory = run / "tensorboard"
        self._step = step
        self._tensorboard: _TensorBoardWriter | None = None

    @property
    def bytes_written(self) -> int:
        """Return the length of metrics.jsonl."""
        self._file.flush()
        return self._path.stat().st_size

    def sync(self) -> None:
        """Sync metrics.jsonl to the disk: a checkpoint relies on what was written before it."""
        os.fsync(self._file.fileno())

    def write(self, kind: str, step: int, **values: float | int | str) -> None:
        """Record an event of the run with its values."""
        line = {"kind": kind, "step": step}
        line.update({k: round(v, 6) if isinstance(v, float) else v for k, v in values.items()})
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        if self._tensorboard is None:  # made when first needed: its imports take a while
            self._tensorboard = _TensorBoardWriter(self._directory, self._step + 1)
        numbers = {k: float(v) for k, v in values.items() if not isinstance(v, str)}
        self._tensorboard.write(kind, step, numbers)

    def close(self) -> None:
        """Close metrics.jsonl and the TensorBoard events."""
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


class _TensorBoardWriter:
    """Write a TensorBoard file in which steps from `first` on replace those of earlier files.

    tensorboard's own EventFileWriter is not used: it imports TensorFlow where that is installed,
    and a run that is killed loses what its thread has not written.
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
        """Close the file of TensorBoard events."""
        self._file.close()
