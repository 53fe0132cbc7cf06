"""The CPU engine multiplies in int8, and is used wherever there is no GPU."""

from dragoman.inference.cpu.engine import CpuEngine, open_cpu_engine, why_no_cpu_engine
from dragoman.inference.cpu.quantization import INT8_FILE, write_int8_file

__all__ = ["INT8_FILE", "CpuEngine", "open_cpu_engine", "why_no_cpu_engine", "write_int8_file"]
