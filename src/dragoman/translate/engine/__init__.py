"""Translating on a CPU: an engine of int8 products, used wherever there is no GPU."""

from dragoman.translate.engine.engine import Engine, why_no_engine

__all__ = ["Engine", "why_no_engine"]
