"""What the tests of translating share."""

from __future__ import annotations

from pathlib import Path

import pytest

import dragoman
from dragoman.inference import Translator


@pytest.fixture(scope="session")
def reverser(trained: Path) -> Translator:
    """A model that has learned little; change nothing of it."""
    return dragoman.load(trained / "model", precision="float32")
