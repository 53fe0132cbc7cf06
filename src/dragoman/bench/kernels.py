"""The kernels of a step in a few classes, and how much of its time each class takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["GAPS", "Class", "Kernel", "busy", "classify", "table"]

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
"""Nothing runs, because the host has not yet said what."""

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
    """The class of a kernel, by its name."""
    return next((kind for kind, pattern in PATTERNS if pattern.search(name)), OTHER)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One execution, in microseconds."""

    name: str
    start: float
    length: float


@dataclass(frozen=True, slots=True)
class Class:
    """A line of the table."""

    name: str
    milliseconds: float
    """Of a step."""
    share: float
    """Of the step's time."""


def table(kernels: Sequence[Kernel], *, steps: int, milliseconds: float) -> list[Class]:
    """The classes of some steps' kernels, the longest first; gaps, the last, fill up a step."""
    times: dict[str, float] = {}
    for kernel in kernels:
        kind = classify(kernel.name)
        times[kind] = times.get(kind, 0.0) + kernel.length / 1000 / steps
    ordered = sorted(times.items(), key=lambda item: -item[1])
    gaps = max(0.0, milliseconds - busy(kernels) / steps)
    return [Class(name, time, time / milliseconds) for name, time in [*ordered, (GAPS, gaps)]]


def busy(kernels: Iterable[Kernel]) -> float:
    """Milliseconds in which at least one kernel ran."""
    total = end = 0.0
    for kernel in sorted(kernels, key=lambda kernel: kernel.start):
        finish = kernel.start + kernel.length
        total += max(0.0, finish - max(kernel.start, end))
        end = max(end, finish)
    return total / 1000
