"""Text in, text out."""

from __future__ import annotations

from dragoman.translate.glossary import Glossary
from dragoman.translate.translation import Alternative, Translation
from dragoman.translate.translator import Translator, load

__all__ = ["Alternative", "Glossary", "Translation", "Translator", "load"]
