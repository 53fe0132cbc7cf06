"""The CPU engine multiplies in int8, and is used wherever there is no GPU."""

from dragoman.inference.cpu.engine import CpuEngine, open_cpu_engine, why_no_cpu_engine

__all__ = ["CpuEngine", "open_cpu_engine", "why_no_cpu_engine"]
