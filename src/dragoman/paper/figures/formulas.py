"""Two formulas of the paper as pictures: the positions of §3.5 and the learning rate of eq. 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from dragoman.config import TrainingConfig
from dragoman.inspection.plotting import check_format, style, write
from dragoman.models.transformer import sinusoids
from dragoman.training.optimizers import learning_rate

__all__ = ["SCHEDULES", "draw_learning_rate", "draw_positions"]

SCHEDULES: Final = ((512, 4000), (512, 8000), (512, 16000), (256, 4000), (1024, 4000))
"""d_model and warm-up steps; the first is the base model's."""

_COLOURS: Final = ("#2f6db3", "#3a9a63", "#3f9fb5", "#e07a1f", "#a5478f")


def draw_positions(path: Path, *, positions: int = 100, d_model: int = 128) -> None:
    """Draw the sinusoids, positions × dimensions, and some dimensions as curves."""
    check_format(path)
    table = sinusoids(positions, d_model).numpy()
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.5, 3.8), layout="constrained")
        map_, curves = figure.subplots(1, 2, width_ratios=(1.2, 1))
        looks: Any = {"cmap": "RdBu", "vmin": -1, "vmax": 1, "aspect": "auto"}
        image = map_.imshow(table, **looks, interpolation="nearest")
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
        for axes in (map_, curves, bar.ax):
            axes.tick_params(length=0)
        write(figure, path)


def _dimensions(d_model: int) -> list[int]:
    """Waves from short to long, and of one of them both the sine and the cosine."""
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
        axes.tick_params(length=0)
        axes.margins(x=0.01)
        axes.legend()
        write(figure, path)
