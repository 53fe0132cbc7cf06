"""Why dot products are divided by √d_k: the paper's footnote 4 (§3.2.1), measured.

If the components of q and k have mean 0 and variance 1, q · k has mean 0 and variance d_k. Scores
that large leave one key with nearly all the weight, and the softmax with nearly no gradient.
"""

# Q queries, N keys of each

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import torch
from torch import Tensor

from dragoman.errors import ConfigError
from dragoman.inspection.plotting import check_format, style, write
from dragoman.paper.text_table import Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DotProducts", "Scores", "Width", "draw_dot_products", "measure_dot_products"]

WIDTHS: Final = tuple(2**power for power in range(11))
_AT_ONCE: Final = 2**24  # numbers held at a time
_LOOKS: Final = (("plain", "q · k", "#e07a1f"), ("scaled", "q · k / √d_k", "#2f6db3"))


@dataclass(frozen=True, slots=True)
class Scores:
    """What scores and their softmax over the keys are like."""

    variance: float
    weight: float
    """The largest of a query's weights, on average over the queries."""
    gradient: float
    """‖∂ softmax(x) / ∂x‖ at the scores x, Frobenius norm: half of the queries have less."""
    mean_gradient: float
    """On average over the queries; few with two keys alike hold it up."""


@dataclass(frozen=True, slots=True)
class Width:
    """What was measured at one d_k."""

    d_k: int
    plain: Scores
    """Of q · k."""
    scaled: Scores
    """Of q · k / √d_k."""


@dataclass(frozen=True, slots=True)
class DotProducts:
    """Random queries and keys, with and without the division by √d_k."""

    queries: int
    keys: int
    seed: int
    widths: tuple[Width, ...]

    def to_json(self) -> dict[str, Any]:
        """The measurement for programs."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        widths = tuple(
            Width(width["d_k"], Scores(**width["plain"]), Scores(**width["scaled"]))
            for width in values["widths"]
        )
        return cls(values["queries"], values["keys"], values["seed"], widths)

    def grid(self) -> Grid:
        """A line a width: q · k as it is, and divided."""
        rows = []
        for width in self.widths:
            a, b = width.plain, width.scaled
            variances = f"{a.variance:.2f}", f"{b.variance:.2f}"
            weights = f"{a.weight:.3f}", f"{b.weight:.3f}"
            rows.append((str(width.d_k), *variances, *weights, *map(_small, (a, b))))
        return Grid(
            "Dot products, as they are and divided by √d_k",
            ("d_k", "variance", "/ √d_k", "largest weight", "/ √d_k", "gradient", "/ √d_k"),
            rows,
            note=f"{self.queries:,} random queries, {self.keys} keys each. The largest weight is "
            "the mean over the queries; the softmax's gradient, ‖∂ softmax(x) / ∂x‖, the median.",
            words=0,
        )


def _small(scores: Scores) -> str:
    """A gradient: two figures that count, however small it is."""
    return f"{scores.gradient:.2g}"


def measure_dot_products(
    widths: Sequence[int] = WIDTHS, *, queries: int = 2000, keys: int = 32, seed: int = 0
) -> DotProducts:
    """Draw queries and keys of every width from N(0, 1), and look at their softmax."""
    if not widths or min(widths) < 1 or queries < 1 or keys < 2:
        raise ConfigError("dot products need d_k ≥ 1, a query and two keys; give more")
    generator = torch.Generator().manual_seed(seed)
    rows = tuple(_measure(d_k, queries, keys, generator) for d_k in widths)
    return DotProducts(queries, keys, seed, rows)


def _measure(d_k: int, queries: int, keys: int, generator: torch.Generator) -> Width:
    parts = []
    at_once = max(1, _AT_ONCE // (keys * d_k))
    for start in range(0, queries, at_once):
        some = min(at_once, queries - start)
        q = torch.randn(some, 1, d_k, generator=generator)
        k = torch.randn(some, keys, d_k, generator=generator)
        parts.append((q * k).sum(-1))
    scores_QN = torch.cat(parts).double()
    return Width(d_k, _describe(scores_QN), _describe(scores_QN / d_k**0.5))


def _describe(scores_QN: Tensor) -> Scores:
    p_QN = scores_QN.softmax(-1)
    jacobian_QNN = torch.diag_embed(p_QN) - p_QN[:, :, None] * p_QN[:, None, :]
    gradient_Q = torch.linalg.matrix_norm(jacobian_QNN)
    return Scores(
        variance=float(scores_QN.var()),
        weight=float(p_QN.amax(-1).mean()),
        gradient=float(gradient_Q.median()),
        mean_gradient=float(gradient_Q.mean()),
    )


def draw_dot_products(found: DotProducts, path: Path) -> None:
    """Draw variance, largest weight and gradient against d_k, to a .png, .svg or .pdf."""
    check_format(path)
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.5, 3.1), layout="constrained")
        variance, weight, gradient = figure.subplots(1, 3)
        _curves(variance, found, "variance")
        variance.set_title("variance of the scores")
        variance.set_yscale("log", base=2)
        variance.yaxis.set_major_formatter("{x:g}")
        variance.legend()
        _curves(weight, found, "weight")
        weight.set_title(f"largest of {found.keys} weights")
        weight.set_ylim(0, 1)
        _curves(gradient, found, "gradient")
        gradient.set_title("gradient of the softmax (median)")
        gradient.set_yscale("log")
        gradient.yaxis.set_major_formatter("{x:g}")
        write(figure, path)


def _curves(axes: Axes, found: DotProducts, name: str) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    d_k = [width.d_k for width in found.widths]
    for kind, label, colour in _LOOKS:
        values = [getattr(getattr(width, kind), name) for width in found.widths]
        looks: Any = {"color": colour, "label": label, "marker": "o", "markersize": 3}
        axes.plot(d_k, values, **looks, gid=f"{kind}-{name}")
    axes.set_xlabel("d_k")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(d_k[::2]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(which="both", length=0)
