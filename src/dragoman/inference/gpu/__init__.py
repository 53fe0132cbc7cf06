"""The GPU engine records whole steps of the search once, and replays them."""

from dragoman.inference.gpu.engine import GpuEngine, open_gpu_engine, why_no_gpu_engine

__all__ = ["GpuEngine", "open_gpu_engine", "why_no_gpu_engine"]
