"""Heat maps, one a head, show how much each target token attends to each source token."""

# H heads, T target tokens, S source tokens

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError
from dragoman.inspection.plotting import TEXT_COLOUR, check_format, save_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_attention"]

_COLOUR_SCALE = ["#ffffff", "#d7e3f4", "#8fb3dd", "#4076b4", "#17386b"]
_ALIGNMENT_COLOUR = "#e07a1f"
_GRID_COLOUR = "#eef1f5"


def draw_attention(
    weights: NDArray[np.floating[Any]],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    path: Path,
    *,
    title: str = "",
    alignment: Iterable[tuple[int, int]] | None = None,
) -> None:
    """Draw weights, H T S or T S, to a .png, .svg or .pdf file: a panel a head, and their mean.

    Pairs (source, target) of an alignment are framed. All panels share one scale.
    """
    check_format(path)
    T, S = len(target_tokens), len(source_tokens)
    if weights.ndim not in (2, 3) or weights.shape[-2:] != (T, S) or 0 in weights.shape:
        shape = " × ".join(map(str, weights.shape))
        raise DragomanError(
            f"attention weights of {shape} do not belong to {T} target and {S} source tokens"
        )
    panels_HTS = weights.astype(np.float64).reshape(-1, T, S)
    titles = [f"head {head + 1}" for head in range(len(panels_HTS))]
    if len(panels_HTS) > 1:
        panels_HTS = np.concatenate([panels_HTS.mean(axis=0, keepdims=True), panels_HTS])
        titles = ["mean", *titles]
    else:
        titles = [""]
    aligned = list(alignment or ())
    with style("".join([*source_tokens, *target_tokens, title])):
        _draw(panels_HTS, titles, source_tokens, target_tokens, path, title, aligned)


def _draw(
    panels_HTS: NDArray[np.float64],
    titles: list[str],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    path: Path,
    title: str,
    aligned: list[tuple[int, int]],
) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    panels, T, S = panels_HTS.shape
    columns = _columns(panels, T, S)
    rows = math.ceil(panels / columns)
    cell = max(0.12, min(0.28, 7 / max(T, S)))  # inches
    width, height = columns * max(S * cell, 0.8), rows * max(T * cell, 0.5)
    colours = LinearSegmentedColormap.from_list("dragoman", _COLOUR_SCALE)
    figure = Figure(figsize=(width + 1.5, height + 1.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for number, axes in enumerate(grid.flat):
        if number >= panels:
            axes.set_axis_off()
            continue
        image = axes.imshow(
            panels_HTS[number], cmap=colours, vmin=0, vmax=max(1e-9, float(panels_HTS.max()))
        )
        _draw_grid(axes, titles[number], T, S)
        top, left = number < columns, number % columns == 0
        size = min(9.0, cell * 72 * 0.62)
        _label(axes.xaxis, source_tokens if top else [], size, rotation=90)
        _label(axes.yaxis, target_tokens if left else [], size, rotation=0)
        for source, target in aligned:
            _frame_cell(axes, source, target)
    bar = figure.colorbar(image, ax=grid, shrink=min(1.0, 2 / height), aspect=16, pad=0.015)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=7)
    if title:
        figure.suptitle(title, fontsize=12, x=0.01, ha="left", color=TEXT_COLOUR)
    save_figure(figure, path)


def _columns(panels: int, T: int, S: int) -> int:
    """Return how many columns make the picture about 3:2 with few places left empty."""

    def badness(columns: int) -> float:
        rows = math.ceil(panels / columns)
        return abs(math.log(columns * S / (rows * T) / 1.5)) + 0.4 * (columns * rows - panels)

    return min(range(1, panels + 1), key=badness)


def _draw_grid(axes: Axes, title: str, T: int, S: int) -> None:
    axes.set_title(title, pad=4)
    axes.grid(False)
    axes.spines[:].set_visible(True)
    axes.vlines(np.arange(1, S) - 0.5, -0.5, T - 0.5, color=_GRID_COLOUR, linewidth=0.5)
    axes.hlines(np.arange(1, T) - 0.5, -0.5, S - 0.5, color=_GRID_COLOUR, linewidth=0.5)


def _label(axis: Any, tokens: Sequence[str], size: float, *, rotation: float) -> None:
    axis.set_ticks(range(len(tokens)), list(tokens), rotation=rotation, fontsize=size)
    if axis.axis_name == "x":
        axis.tick_top()
    axis.set_tick_params(length=0)
    for label in axis.get_ticklabels():
        label.set_color(TEXT_COLOUR)


def _frame_cell(axes: Axes, source: int, target: int) -> None:
    from matplotlib.patches import Rectangle

    corner = (source - 0.5, target - 0.5)
    axes.add_patch(
        Rectangle(corner, 1, 1, fill=False, edgecolor=_ALIGNMENT_COLOUR, linewidth=1.3, zorder=3)
    )
