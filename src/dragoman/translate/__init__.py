"""Text in, text out."""

from __future__ import annotations

from dragoman.translate.translator import Translation, Translator, load

__all__ = ["Translation", "Translator", "load"]
