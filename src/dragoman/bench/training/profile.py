"""PyTorch's profiler shows where the time of a training step goes: kernels in a few classes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import torch
from torch.profiler import ProfilerActivity, profile

from dragoman.bench.training.timing import synchronize

MATRIX: Final = "matrix products"
ATTENTION: Final = "attention"
NORM: Final = "dropout, residual, norm"
FEED_FORWARD: Final = "feed-forward activation"
LOSS: Final = "vocabulary softmax and loss"
OPTIMIZER: Final = "optimiser"
EMBEDDING: Final = "embedding and gathers"
COPIES: Final = "copies and casts"
OTHER: Final = "other"
GAPS: Final = "gaps"
"""The time in which nothing runs, because the host has not issued the next kernel yet."""

# The first pattern that a name contains decides. The names are those of PyTorch, cuBLAS, Inductor
# and Dragoman's own kernels; on a CPU those of operators.
PATTERNS: Final = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        # How one of ours begins says what it is for, whatever follows.
        (ATTENTION, r"^_?attention_"),
        (NORM, r"^_?(residual|norm)_"),
        (FEED_FORWARD, r"^_?feed_forward_"),
        (LOSS, r"^_?loss_"),
        (EMBEDDING, r"^_?embedding_"),
        (OPTIMIZER, r"adam|foreach|multi_tensor|lerp|lpnorm|vector_norm"),
        (ATTENTION, r"attention|attn|flash|fmha|sdpa"),
        (LOSS, r"softmax|cross_entropy|nll_loss"),
        (MATRIX, r"nvjet|gemm|gemv|cutlass|xmma|cublas|splitk|triton_(tem|mm)|\b(add|b)?mm\b"),
        (NORM, r"layer_?norm|rms_?norm|GammaBeta|ComputeGradInput"),
        (NORM, r"dropout|bernoulli|masked_scale"),
        (FEED_FORWARD, r"relu|gelu|silu|threshold|clamp"),
        (EMBEDDING, r"embedding|index_|indexselect|indexing|aten::index\b"),
        (EMBEDDING, r"radixsort|scatter|gather"),  # of the embedding's gradient
        (COPIES, r"memcpy|memset|copy|catarray|fillfunctor|aten::(cat|fill_|zero_|clone)\b"),
    )
)


def classify(name: str) -> str:
    """Return the class of a kernel, by its name."""
    return next((kind for kind, pattern in PATTERNS if pattern.search(name)), OTHER)


@dataclass(frozen=True, slots=True)
class Kernel:
    """Hold when a kernel began and how long it ran, in microseconds."""

    name: str
    start: float
    length: float


@dataclass(frozen=True, slots=True)
class KernelClass:
    """Hold how much of a step's time one class of kernels takes."""

    name: str
    milliseconds: float
    """Is the time in one step."""
    share: float
    """Is the share of the step's time."""


def summarize_kernels(
    kernels: Sequence[Kernel], *, steps: int, milliseconds: float
) -> list[KernelClass]:
    """Sum kernels by class, the longest first; gaps, the last, fill up a step."""
    times: dict[str, float] = {}
    for kernel in kernels:
        kind = classify(kernel.name)
        times[kind] = times.get(kind, 0.0) + kernel.length / 1000 / steps
    ordered = sorted(times.items(), key=lambda item: -item[1])
    gaps = max(0.0, milliseconds - busy_milliseconds(kernels) / steps)
    return [KernelClass(name, time, time / milliseconds) for name, time in [*ordered, (GAPS, gaps)]]


def busy_milliseconds(kernels: Iterable[Kernel]) -> float:
    """Return the milliseconds in which at least one kernel ran."""
    total = end = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel.start):
        finish = kernel.start + kernel.length
        total += max(0.0, finish - max(kernel.start, end))
        end = max(end, finish)
    return total / 1000


def profile_steps(
    work: Callable[[], None], device: torch.device, *, steps: int, milliseconds: float
) -> list[KernelClass]:
    """Run `work`, some steps of so many milliseconds each, and return its classes of kernels.

    A step's time was measured without the profiler, which slows down the host but not a GPU's
    kernels. It does slow down a CPU: there, shares are of the operators' time, and there are no
    gaps. Nothing is returned if the profiler may not see the GPU.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or it logs its start and its end
    if device.type == "cuda":
        kernels = _gpu_kernels(work, device)
        return summarize_kernels(kernels, steps=steps, milliseconds=milliseconds) if kernels else []
    operators = _cpu_operators(work)
    return summarize_kernels(
        operators, steps=steps, milliseconds=busy_milliseconds(operators) / steps
    )[:-1]


def _gpu_kernels(work: Callable[[], None], device: torch.device) -> list[Kernel]:
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        synchronize(device)
    return [
        Kernel(event.name, event.time_range.start, event.time_range.elapsed_us())
        for event in _events(profiler)
        if event.device_type.name == "CUDA" and not event.is_user_annotation
    ]


def _cpu_operators(work: Callable[[], None]) -> list[Kernel]:
    """Return operators by their own times, end to end, as they contain each other."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        work()
    events = _events(profiler)
    starts = accumulate((event.self_cpu_time_total for event in events), initial=0.0)
    return [
        Kernel(event.name, start, event.self_cpu_time_total)
        for event, start in zip(events, starts, strict=False)
    ]


def _events(profiler: profile) -> list[Any]:
    return list(profiler.events() or ())
