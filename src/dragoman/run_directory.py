"""A run is a directory: its settings, its figures and its checkpoints, each in its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from dragoman.config import Config

__all__ = ["checkpoint_path", "checkpoint_step", "describe_run", "list_checkpoints"]


def checkpoint_path(run: Path, step: int) -> Path:
    """Return where the checkpoint of a step is."""
    return run / "checkpoints" / f"step-{step:08d}"


def checkpoint_step(path: Path) -> int:
    """Return the step of a checkpoint, by its name; -1 if the name is not that of a checkpoint."""
    digits = re.fullmatch(r"step-(\d+)", path.name)
    return int(digits[1]) if digits else -1


def list_checkpoints(run: Path) -> list[Path]:
    """Return every checkpoint of a run, oldest first; copies with other names are left out."""
    found = (run / "checkpoints").glob("step-*")
    return sorted((path for path in found if checkpoint_step(path) >= 0), key=checkpoint_step)


def describe_run(run: Path) -> dict[str, Any]:
    """Return what there is to say of a run: how far it came, and its last figures."""
    config = Config.load(run / "config.toml")
    facts: dict[str, Any] = {"kind": "run", "steps planned": config.training.steps}
    facts["checkpoints"] = ", ".join(path.name for path in list_checkpoints(run)) or "none"
    last: dict[str, dict[str, Any]] = {}
    try:
        for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            last[entry["kind"]] = entry
    except (OSError, ValueError, KeyError):
        pass  # the last line of a killed run may be half a line
    for kind, entry in last.items():
        facts[f"last {kind}"] = ", ".join(f"{k} {v}" for k, v in entry.items() if k != "kind")
    facts["model"] = str(run / "model") if (run / "model").exists() else "not finished"
    return facts
