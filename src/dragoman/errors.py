"""Everything Dragoman refuses, as one line a user can act on.

DragomanError
├── ConfigError    a setting, preset or option that cannot be
├── DataError      a corpus, line or store that cannot be read
├── ModelError     a model directory or checkpoint that cannot be loaded
└── TrainingError  a run that cannot start, go on or be saved

The command line prints the message after ``dragoman:`` and exits with status 2. A message says
what was wrong, where, and what to do.
"""

from __future__ import annotations

__all__ = ["ConfigError", "DataError", "DragomanError", "ModelError", "TrainingError"]


class DragomanError(Exception):
    """The root: catch this to catch everything Dragoman refuses on purpose."""


class ConfigError(DragomanError):
    """A setting, preset or option that cannot be."""


class DataError(DragomanError):
    """A corpus, line or store that cannot be read."""


class ModelError(DragomanError):
    """A model directory or checkpoint that cannot be loaded."""


class TrainingError(DragomanError):
    """A run that cannot start, go on or be saved."""
