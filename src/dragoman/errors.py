"""These are the errors Dragoman raises on purpose, each one line that a user can act on.

DragomanError
├── ConfigError    a setting, preset or option is unknown or impossible
├── DataError      a corpus, line or store cannot be read or used
├── ModelError     a model directory or checkpoint cannot be loaded
└── TrainingError  a run cannot start, go on or be saved

The command line prints the message after ``dragoman:`` and exits with status 2. A message says
what was wrong, where, and what to do.
"""

from __future__ import annotations

__all__ = ["ConfigError", "DataError", "DragomanError", "ModelError", "TrainingError", "first_line"]


class DragomanError(Exception):
    """Raised as one of its subclasses; catch it to catch everything Dragoman refuses."""


class ConfigError(DragomanError):
    """Raised when a setting, preset or option is unknown or impossible."""


class DataError(DragomanError):
    """Raised when a corpus, line or store cannot be read or used."""


class ModelError(DragomanError):
    """Raised when a model directory or checkpoint cannot be loaded."""


class TrainingError(DragomanError):
    """Raised when a run cannot start, go on or be saved."""


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, or its repr if it says nothing."""
    return str(error).strip().partition("\n")[0] or repr(error)
