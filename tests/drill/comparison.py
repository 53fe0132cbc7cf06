"""Whether two runs are the same: every byte that does not tell the time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.models.weights import read_tensors
from dragoman.run_directory import list_checkpoints
from dragoman.training.checkpoints.checkpoint import Checkpoint

CLOCKS = {"seconds", "tokens_per_second", "checkpoint_seconds", "metrics_bytes"}
"""What differs between two runs of the same steps; metrics_bytes counts the digits of the rest."""

Count = tuple[int, int]
"""Bytes compared, and bytes that differ."""


def compare(expected: Path, found: Path) -> dict[str, Count]:
    """What the two runs ended with, part by part."""
    a, b = _contents(expected), _contents(found)
    return {part: _bytes(a.get(part, {}), b.get(part, {})) for part in a | b}


def _contents(run: Path) -> dict[str, dict[str, bytes]]:
    """Named pieces of what a run has left, by part."""
    found: dict[str, dict[str, bytes]] = {}
    for path in list_checkpoints(run):
        checkpoint = Checkpoint(path)
        for name, tensor in checkpoint.shards.read_all().items():
            found.setdefault(name.partition("/")[0], {})[f"{path.name} {name}"] = _raw(tensor)
        progress = _timeless(checkpoint.state.to_dict())
        found.setdefault("progress", {})[path.name] = json.dumps(progress).encode()
    for model in ("best", "model"):
        tensors = read_tensors(run / model / "weights.safetensors")
        found[f"{model}/"] = {name: _raw(tensor) for name, tensor in tensors.items()}
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    found["metrics.jsonl"] = {
        str(number): json.dumps(_timeless(json.loads(line))).encode()
        for number, line in enumerate(lines)
    }
    return found


def _timeless(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in CLOCKS}


def _raw(tensor: Tensor) -> bytes:
    return tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def _bytes(expected: dict[str, bytes], found: dict[str, bytes]) -> Count:
    """A piece that only one of them has differs in all its bytes, and in one more."""
    compared = differing = 0
    for name in expected.keys() | found.keys():
        a, b = expected.get(name, b""), found.get(name, b"")
        compared += max(len(a), len(b))
        both = min(len(a), len(b))
        x, y = np.frombuffer(a, np.uint8, both), np.frombuffer(b, np.uint8, both)
        differing += int(np.count_nonzero(x != y)) + abs(len(a) - len(b))
        differing += (name in expected) != (name in found)
    return compared, differing
