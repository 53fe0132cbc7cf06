"""The file ``run.json`` of a run says where its corpus and first weights are, and its job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from dragoman.system.atomic_files import atomic_write


@dataclass(frozen=True, slots=True)
class RunFile:
    """Hold what ``run.json`` says of a run."""

    data: str
    """The path of the prepared corpus, relative to the run's directory."""
    job: str | None = None
    """The torchrun job that began the run, empty without torchrun."""
    start_from: str | None = None
    """The path of the model whose weights the run begins with, relative to the run's directory."""

    @classmethod
    def read(cls, run: Path) -> RunFile | None:
        """Read the file of a run; return None where there is none, or where it is damaged."""
        try:
            values = json.loads((run / "run.json").read_text(encoding="utf-8"))
            first = values.get("from", values.get("start_from"))  # its name in version 0.1
            return cls(str(values["data"]), values.get("job"), first)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, run: Path) -> None:
        """Write the file of a run, replacing the one that was there in one step."""
        table = {"data": self.data, "job": self.job, "from": self.start_from}
        atomic_write(run / "run.json", json.dumps(table) + "\n")
