"""The paper's formulas are drawn: positions, the learning rate, and scaled dot products.

Positions are those of §3.5, the learning rate that of eq. 3. Why dot products are divided by √d_k
(§3.2.1, footnote 4) is measured: if the components of q and k have mean 0 and variance 1, q · k has
mean 0 and variance d_k. Scores that large leave one key with nearly all the weight, and the softmax
with nearly no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import torch
from torch import Tensor

from dragoman.config import TrainingConfig
from dragoman.errors import ConfigError
from dragoman.inspection.plotting import check_format, save_figure, style
from dragoman.models.positions import sinusoids
from dragoman.paper.text_table import TextTable
from dragoman.training.learning_rate import learning_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEDULES: Final = ((512, 4000), (512, 8000), (512, 16000), (256, 4000), (1024, 4000))
"""The d_model and warm-up steps of each curve; the first is the base model's."""

_COLOURS: Final = ("#2f6db3", "#3a9a63", "#3f9fb5", "#e07a1f", "#a5478f")


def draw_positions(path: Path, *, positions: int = 100, d_model: int = 128) -> None:
    """Draw the sinusoids, positions × dimensions, and some dimensions as curves."""
    check_format(path)
    table = sinusoids(positions, d_model).numpy()
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.5, 3.8), layout="constrained")
        map_, curves = figure.subplots(1, 2, width_ratios=(1.2, 1))
        options: Any = {"cmap": "RdBu", "vmin": -1, "vmax": 1, "aspect": "auto"}
        image = map_.imshow(table, **options, interpolation="nearest")
        map_.set(title=f"PE, d_model {d_model}", xlabel="dimension", ylabel="position")
        map_.grid(False)
        bar = figure.colorbar(image, ax=map_, aspect=30, pad=0.02, ticks=[-1, 0, 1])
        bar.outline.set_visible(False)
        for dimension, colour in zip(_dimensions(d_model), _COLOURS, strict=False):
            curves.plot(table[:, dimension], label=str(dimension), color=colour, linewidth=1.4)
        curves.set(title="some dimensions", xlabel="position", ylim=(-1.1, 1.1))
        curves.margins(x=0.01)
        beside: Any = {"loc": "lower right", "bbox_to_anchor": (1.02, 1), "borderpad": 0.2}
        curves.legend(**beside, ncols=5, handlelength=1, columnspacing=1, handletextpad=0.4)
        save_figure(figure, path)


def _dimensions(d_model: int) -> list[int]:
    """Return dimensions of short to long waves, of one of them both the sine and the cosine."""
    even = sorted({2 * round(d_model * part / 2) for part in (0.1, 0.2, 0.3, 0.45)})
    return [*even[:2], even[1] + 1, *even[2:]]


def draw_learning_rate(path: Path, *, steps: int = 40_000) -> None:
    """Draw eq. 3 for several d_model and warm-ups, each with its peak marked."""
    check_format(path)
    with style():
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter

        figure = Figure(figsize=(7, 3.6), layout="constrained")
        axes = figure.subplots()
        for (d_model, warmup), colour in zip(SCHEDULES, _COLOURS, strict=True):
            config = TrainingConfig(schedule="paper", learning_rate=1.0, warmup_steps=warmup)
            shown = sorted({*range(1, steps + 1, max(1, steps // 400)), min(warmup, steps)})
            rates = [learning_rate(config, d_model, step) for step in shown]
            peak = learning_rate(config, d_model, warmup)
            label = f"d_model {d_model}, warm-up {warmup:,}: at most {peak:.2e}"
            axes.plot(shown, rates, color=colour, label=label, linewidth=1.6)
            axes.plot(warmup, peak, "o", color=colour, markersize=5)
        axes.set(title="learning rate, eq. 3", xlabel="step", ylim=(0, None))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.margins(x=0.01)
        axes.legend()
        save_figure(figure, path)


# --- dot products: Q queries, N keys of each ---

WIDTHS: Final = tuple(2**power for power in range(11))
_MAX_NUMBERS: Final = 2**24  # numbers held at a time
_CURVES: Final = (("plain", "q · k", "#e07a1f"), ("scaled", "q · k / √d_k", "#2f6db3"))


@dataclass(frozen=True, slots=True)
class Scores:
    """Hold statistics of scores and of their softmax over the keys."""

    variance: float
    weight: float
    """Is the largest of a query's weights, on average over the queries."""
    gradient: float
    """Is the median over queries of ‖∂ softmax(x) / ∂x‖ at the scores x, in the Frobenius norm."""
    mean_gradient: float
    """Is the mean over the queries, which a few with two similar keys hold up."""


@dataclass(frozen=True, slots=True)
class Width:
    """Hold what was measured at one d_k."""

    d_k: int
    plain: Scores
    """Holds the statistics of q · k."""
    scaled: Scores
    """Holds the statistics of q · k / √d_k."""


@dataclass(frozen=True, slots=True)
class DotProducts:
    """Hold statistics of random queries and keys, with and without the division by √d_k."""

    queries: int
    keys: int
    seed: int
    widths: tuple[Width, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the object that `to_json` was called on."""
        widths = tuple(
            Width(width["d_k"], Scores(**width["plain"]), Scores(**width["scaled"]))
            for width in values["widths"]
        )
        return cls(values["queries"], values["keys"], values["seed"], widths)

    def to_table(self) -> TextTable:
        """Return a table with a line for each width: q · k as it is, and divided."""
        rows = []
        for width in self.widths:
            a, b = width.plain, width.scaled
            variances = f"{a.variance:.2f}", f"{b.variance:.2f}"
            weights = f"{a.weight:.3f}", f"{b.weight:.3f}"
            rows.append((str(width.d_k), *variances, *weights, *map(_format_gradient, (a, b))))
        return TextTable(
            "Dot products, as they are and divided by √d_k",
            ("d_k", "variance", "/ √d_k", "largest weight", "/ √d_k", "gradient", "/ √d_k"),
            rows,
            note=f"{self.queries:,} random queries, {self.keys} keys each. The largest weight is "
            "the mean over the queries; the softmax's gradient, ‖∂ softmax(x) / ∂x‖, the median.",
            text_columns=0,
        )


def _format_gradient(scores: Scores) -> str:
    """Return a gradient with two significant digits, however small it is."""
    return f"{scores.gradient:.2g}"


def measure_dot_products(
    widths: Sequence[int] = WIDTHS, *, queries: int = 2000, keys: int = 32, seed: int = 0
) -> DotProducts:
    """Sample queries and keys of every width from N(0, 1), and measure their softmax."""
    if not widths or min(widths) < 1 or queries < 1 or keys < 2:
        raise ConfigError("dot products need d_k ≥ 1, a query and two keys; give more")
    generator = torch.Generator().manual_seed(seed)
    rows = tuple(_measure(d_k, queries, keys, generator) for d_k in widths)
    return DotProducts(queries, keys, seed, rows)


def _measure(d_k: int, queries: int, keys: int, generator: torch.Generator) -> Width:
    parts = []
    at_once = max(1, _MAX_NUMBERS // (keys * d_k))
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
        save_figure(figure, path)


def _curves(axes: Axes, found: DotProducts, name: str) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    d_k = [width.d_k for width in found.widths]
    for kind, label, colour in _CURVES:
        values = [getattr(getattr(width, kind), name) for width in found.widths]
        options: Any = {"color": colour, "label": label, "marker": "o", "markersize": 3}
        axes.plot(d_k, values, **options, gid=f"{kind}-{name}")
    axes.set_xlabel("d_k")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(d_k[::2]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(which="minor", length=0)
