"""What a run records: metrics.jsonl, one line an event, and the same for TensorBoard."""

from __future__ import annotations

import json
import os
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
        self._writer: Any = None

    @property
    def bytes_written(self) -> int:
        """Length of metrics.jsonl, all of it on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._path.stat().st_size

    def write(self, kind: str, step: int, **values: float | int | str) -> None:
        """Record an event."""
        line = {"kind": kind, "step": step}
        line.update({k: round(v, 6) if isinstance(v, float) else v for k, v in values.items()})
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        for name, value in values.items():
            if not isinstance(value, str):
                self._tensorboard().add_scalar(f"{kind}/{name}", value, step)

    def _tensorboard(self) -> Any:
        if self._writer is None:  # imported when first needed: it takes a second
            from torch.utils.tensorboard.writer import SummaryWriter

            self._writer = SummaryWriter(str(self._directory), purge_step=self._step + 1)
        return self._writer

    def close(self) -> None:
        """Finish the files."""
        self._file.close()
        if self._writer is not None:
            self._writer.close()
