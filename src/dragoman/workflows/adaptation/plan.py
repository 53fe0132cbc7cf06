"""The plan of an adaptation is kept in its run, so that `--resume` continues at any moment."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from dragoman.config import Config
from dragoman.errors import TrainingError
from dragoman.system.atomic_files import atomic_write

PLAN_FILE: Final = "adaptation.json"
REPORT_FILE: Final = "report.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Hold what a user asked for."""

    model: Path
    """The directory of the model to begin with."""
    files: Sequence[Path]
    """The pairs to adapt to: two aligned files, one with both sides, or a prepared directory."""
    valid: Sequence[Path] = ()
    """Pairs like them to choose and measure by; without them, some are held out."""
    tests: Sequence[Sequence[Path]] = ()
    """More sets that are translated before and after, and never chosen by."""
    replay: Sequence[Path] = ()
    """General text: pairs, a prepared directory, or text of the source language alone."""
    config: Config | None = None
    """The config of a preset, whose schedule then holds; None: a schedule made for the set."""
    languages: tuple[str, ...] = ()
    """The languages of the files, if they are known."""
    assignments: Sequence[str] = ()
    """Changes to the config, as section.key=value."""
    epochs: float | None = None
    """So many passes over the pairs, in place of the schedule's."""

    def save(self, run: Path) -> None:
        """Write the plan into a run; paths are relative to it, so that all may be moved."""

        def relative(paths: Sequence[Path]) -> list[str]:
            return [os.path.relpath(path.resolve(), run.resolve()) for path in paths]

        table: dict[str, Any] = asdict(self) | {
            "model": relative([self.model])[0],
            "files": relative(self.files),
            "valid": relative(self.valid),
            "tests": list(map(relative, self.tests)),
            "replay": relative(self.replay),
            "config": None if self.config is None else self.config.to_dict(),
        }
        atomic_write(run / PLAN_FILE, json.dumps(table, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, run: Path) -> Plan:
        """Read the plan of a run."""
        file = run / PLAN_FILE

        def paths(names: Sequence[str]) -> list[Path]:
            return [Path(os.path.normpath(run / name)) for name in names]

        try:
            table = json.loads(file.read_text(encoding="utf-8"))
            config = table["config"]
            return cls(
                model=paths([table["model"]])[0],
                files=paths(table["files"]),
                valid=paths(table["valid"]),
                tests=list(map(paths, table["tests"])),
                replay=paths(table["replay"]),
                config=None if config is None else Config.from_dict(config, where=str(file)),
                languages=tuple(table["languages"]),
                assignments=tuple(table["assignments"]),
                epochs=table["epochs"],
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise TrainingError(f"{file}: cannot be read; start again with another --out") from None
