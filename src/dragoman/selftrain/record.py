"""Knowing how the stages in a directory were made, so that no two ways are mixed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from dragoman.errors import ConfigError
from dragoman.files import atomic_write, explained, remove_leftovers
from dragoman.stages import difference, listed, read_record

__all__ = ["begin"]

_RECORD: Final = "selftrain.json"


def begin(out: Path, stages: dict[str, dict[str, Any]]) -> None:
    """Note how each stage is made, in their order; what was made in another way is refused."""
    wanted: dict[str, dict[str, Any]] = json.loads(json.dumps(stages))  # tuples become lists
    record = out / _RECORD
    with explained(out):
        if out.exists() and not record.exists() and any(out.iterdir()):
            raise ConfigError(f"{out}: not made by dragoman selftrain; choose another --out")
        made = read_record(record) if record.exists() else {}
        order = list(wanted)
        for place, stage in enumerate(order):
            stale = [later for later in order[place:] if (out / later).exists()]
            if stale and (name := difference(made.get(stage, {}), wanted[stage])):
                raise ConfigError(
                    f"{out / stage}: made with another {name}; choose another --out, or remove "
                    f"{listed(stale)} in it to make that again"
                )
        atomic_write(record, json.dumps(wanted, indent=2, ensure_ascii=False) + "\n")
        for directory in (out, out / "parsed"):
            remove_leftovers(directory)
