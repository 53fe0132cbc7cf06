"""The engine on a CPU, and whether it found what was wanted."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.inference.gpu import GpuEngine
from dragoman.models import Model
from dragoman.models.weights import get_weights
from dragoman.search import Hypothesis


def engine(model: Model, slots: int | None = 8, **settings: Any) -> GpuEngine:
    """With so many sentences at a time."""
    config: Any = model.config
    found = GpuEngine(get_weights(model), config, model.targets, "cpu", **settings)
    found.slots = slots
    return found


def assert_same(
    found: list[list[Hypothesis]], wanted: list[list[Hypothesis]], *, within: float = 1e-4
) -> None:
    """The same pieces in the same order, and scores as near as that."""
    for ours, theirs in zip(found, wanted, strict=True):
        assert [h.ids for h in ours] == [h.ids for h in theirs]
        for name in ("score", "log_prob"):
            values = [getattr(h, name) for h in theirs]
            assert [getattr(h, name) for h in ours] == pytest.approx(values, abs=within)
        for one, other in zip(ours, theirs, strict=True):
            assert one.log_probs == pytest.approx(other.log_probs, abs=within)
