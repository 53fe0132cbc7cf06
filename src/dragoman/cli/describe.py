"""Saying what a directory holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import ModelError
from dragoman.model_directory import load_model
from dragoman.training.checkpoints.checkpoint import list_checkpoints

__all__ = ["describe"]


def describe(path: Path) -> dict[str, Any]:
    """The facts of a model, a run or a prepared corpus."""
    if (path / "run.json").exists():
        return _run(path)
    if (path / "report.json").exists():
        return _prepared(path)
    return _model(path)


def _model(path: Path) -> dict[str, Any]:
    loaded = load_model(path)
    m = loaded.config.model
    languages = loaded.config.data.languages
    actions = loaded.tokenizer.actions
    task = (
        {"languages": " → ".join(languages) if languages else "not told"}
        if actions is None
        else {"task": "parsing", "actions": f"{len(actions)} ({actions.order.name})"}
    )
    return {
        "kind": "model",
        **task,
        "architecture": f"{m.architecture}, {m.encoder_layers}+{m.decoder_layers} layers, d_model "
        f"{m.d_model}, d_ff {m.d_ff}, {m.heads} heads",
        "pieces": f"{len(loaded.tokenizer):,} ({loaded.tokenizer.kind})",
        "parameters": f"{sum(p.numel() for p in loaded.model.parameters()):,}",
        **{key: value for key, value in loaded.card.items() if key not in ("format", "parameters")},
    }


def _run(path: Path) -> dict[str, Any]:
    config = Config.load(path / "config.toml")
    facts: dict[str, Any] = {"kind": "run", "steps planned": config.training.steps}
    saved = list_checkpoints(path)
    facts["checkpoints"] = ", ".join(p.name for p in saved) or "none"
    last: dict[str, dict[str, Any]] = {}
    try:
        for line in (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            last[entry["kind"]] = entry
    except (OSError, ValueError, KeyError):
        pass  # the last line of a killed run may be half a line
    for kind, entry in last.items():
        facts[f"last {kind}"] = ", ".join(f"{k} {v}" for k, v in entry.items() if k != "kind")
    facts["model"] = str(path / "model") if (path / "model").exists() else "not finished"
    return facts


def _prepared(path: Path) -> dict[str, Any]:
    prepared = Prepared.open(path)
    if len(prepared.train) == 0:
        raise ModelError(f"{path}: holds no pairs")
    first, *rest = prepared.lines()
    facts: dict[str, Any] = {"kind": "prepared corpus", "cleaning": first}
    for line in rest:
        key, colon, value = line.partition(": ")
        if colon:
            facts[key.strip()] = value
    return facts
