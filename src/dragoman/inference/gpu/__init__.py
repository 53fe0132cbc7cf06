"""Translating on a GPU: whole steps of the search recorded once and replayed."""

from dragoman.inference.gpu.engine import GpuEngine, open_gpu_engine, why_no_gpu_engine

__all__ = ["GpuEngine", "open_gpu_engine", "why_no_gpu_engine"]
