"""Translating on a CPU: an engine of int8 products, used wherever there is no GPU."""

from dragoman.inference.cpu.engine import Engine, why_no_engine
from dragoman.inference.cpu.int8_file import VARIANT, open_engine, quantize

__all__ = ["VARIANT", "Engine", "open_engine", "quantize", "why_no_engine"]
