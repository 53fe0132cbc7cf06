"""Text in, text out."""

from __future__ import annotations

from dragoman.translate.glossary import Glossary
from dragoman.translate.translator import Alternative, Translation, Translator, load

__all__ = ["Alternative", "Glossary", "Translation", "Translator", "load"]
