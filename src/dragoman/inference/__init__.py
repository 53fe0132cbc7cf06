"""Inference has the translators and parsers, and the engines that run their models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.inference.translation_types import Alternative, Translation
from dragoman.inference.translator import Translator, load

if TYPE_CHECKING:
    from dragoman.inference.glossary import Glossary

__all__ = ["Alternative", "Glossary", "Translation", "Translator", "load"]


def __getattr__(name: str) -> Any:
    """Import glossaries when they are first asked for: most translations have none."""
    if name == "Glossary":
        from dragoman.inference.glossary import Glossary

        return Glossary
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
