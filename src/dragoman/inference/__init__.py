"""Inference has the translators and parsers, and the engines that run their models."""

from __future__ import annotations

from dragoman.inference.glossary import Glossary
from dragoman.inference.translation_types import Alternative, Translation
from dragoman.inference.translator import Translator, load

__all__ = ["Alternative", "Glossary", "Translation", "Translator", "load"]
