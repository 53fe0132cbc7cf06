"""Inspection draws pictures and pages of what a model computes and how it was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["PAGE"]

PAGE: Final = Path(__file__).parent / "page"
"""The HTML, CSS and JavaScript of the page: the service serves them, a saved page contains them."""
