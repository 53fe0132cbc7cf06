"""Knowing how the stages in a directory were made, so that no two ways are mixed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from dragoman.errors import ConfigError
from dragoman.files import atomic_write, explained, remove_leftovers

__all__ = ["begin"]

_RECORD: Final = "selftrain.json"


def begin(out: Path, stages: dict[str, dict[str, Any]]) -> None:
    """Note how each stage is made, in their order; what was made in another way is refused."""
    wanted: dict[str, dict[str, Any]] = json.loads(json.dumps(stages))  # tuples become lists
    record = out / _RECORD
    with explained(out):
        if out.exists() and not record.exists() and any(out.iterdir()):
            raise ConfigError(f"{out}: not made by dragoman selftrain; choose another --out")
        made = _read(record) if record.exists() else {}
        order = list(wanted)
        for place, stage in enumerate(order):
            stale = [later for later in order[place:] if (out / later).exists()]
            if stale and (name := _difference(made.get(stage, {}), wanted[stage])):
                raise ConfigError(
                    f"{out / stage}: made with another {name}; choose another --out, or remove "
                    f"{_listed(stale)} in it to make that again"
                )
        atomic_write(record, json.dumps(wanted, indent=2, ensure_ascii=False) + "\n")
        for directory in (out, out / "parsed"):
            remove_leftovers(directory)


def _read(record: Path) -> dict[str, dict[str, Any]]:
    try:
        made = json.loads(record.read_text(encoding="utf-8"))
        return {stage: dict(settings) for stage, settings in made.items()}
    except (ValueError, AttributeError, TypeError):
        raise ConfigError(f"{record}: cannot be read; choose another --out") from None


def _difference(made: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """The first setting that differs, with its two values where they are short."""
    for name in (*wanted, *made):
        before, now = made.get(name), wanted.get(name)
        if before != now:
            short = not isinstance(before, list) and not isinstance(now, list)
            return f"{name} ({before}, now {now})" if short else name
    return None


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
