"""Table 1, measured, as a picture: four panels against the length n."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.inspection.plotting import check_format, style, write
from dragoman.paper.table1.layers import (
    CONVOLUTIONAL,
    DILATED,
    LAYERS,
    RECURRENT,
    RESTRICTED,
    SELF_ATTENTION,
)
from dragoman.paper.table1.results import Table1

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

COLOURS: Final = {
    SELF_ATTENTION: "#2f6db3",
    RECURRENT: "#e07a1f",
    CONVOLUTIONAL: "#3a9a63",
    DILATED: "#3a9a63",
    RESTRICTED: "#a5478f",
}
SHORT: Final = {RESTRICTED: "restricted", DILATED: "dilated"}
APART: Final = 0.06
"""Between two names, as a share of a panel's height."""


def draw(result: Table1, path: Path) -> None:
    """Operations, time, sequential operations and path length against n, on logarithmic scales."""
    from matplotlib.figure import Figure

    check_format(path)
    d = result.widths[0]
    panels: list[tuple[str, dict[str, Mapping[int, float]]]] = [
        (
            f"operations of mixing, d = {d}",
            {layer: result.by_length("mixing", layer, d) for layer in LAYERS},
        ),
        (
            f"milliseconds of a training pass, d = {d}",
            {
                layer: {n: 1000 * t for n, t in result.by_length("training", layer, d).items()}
                for layer in LAYERS
            },
        ),
        ("sequential operations", {layer: result.sequential(layer) for layer in LAYERS}),
        ("maximum path length", {layer: result.path(layer) for layer in (*LAYERS, DILATED)}),
    ]
    with style():
        figure = Figure(figsize=(10.4, 6.8), layout="constrained")
        for number, (axes, (title, lines)) in enumerate(
            zip(figure.subplots(2, 2).flat, panels, strict=True)
        ):
            _panel(axes, {layer: line for layer, line in lines.items() if line})
            axes.set_title(title)
            if number < 2 and result.lengths[0] < d < result.lengths[-1]:
                _mark(axes, d)
            if number >= 2:
                axes.set_xlabel("n, positions of the sentence")
        figure.suptitle(f"Table 1, measured: {result.device}", x=0.012, ha="left", fontsize=12)
        write(figure, path)


def _panel(axes: Axes, lines: Mapping[str, Mapping[int, float]]) -> None:
    from matplotlib.ticker import EngFormatter, FixedLocator, NullLocator

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for layer, line in reversed(list(lines.items())):  # where lines meet, the paper's own is on top
        looks: Any = {"color": COLOURS[layer], "linestyle": "--" if layer == DILATED else "-"}
        axes.plot(list(line), list(line.values()), marker="o", markersize=3, **looks)
    lengths = sorted({n for line in lines.values() for n in line})
    axes.xaxis.set_major_locator(FixedLocator(lengths))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.tick_params(length=0)
    axes.margins(x=0.02, y=0.08)
    _name_lines(axes, lines)


def _mark(axes: Axes, d: int) -> None:
    """Where n = d, the bound of §4."""
    axes.axvline(d, color="0.6", linewidth=1, linestyle=":")
    looks: Any = {"xycoords": ("data", "axes fraction"), "xytext": (4, 0), "va": "top"}
    axes.annotate("n = d", (d, 0.99), textcoords="offset points", color="0.4", **looks)


def _name_lines(axes: Axes, lines: Mapping[str, Mapping[int, float]]) -> None:
    """At the right, each beside its end; names that would overlap move up, equal ends share one."""
    ends: dict[float, list[str]] = {}
    for layer, line in lines.items():
        ends.setdefault(line[max(line)], []).append(layer)
    low, high = (math.log(limit) for limit in axes.get_ylim())
    place = -1.0
    for value, layers in sorted(ends.items()):
        place = max((math.log(value) - low) / (high - low), place + APART)
        axes.annotate(
            ", ".join(SHORT.get(layer, layer) for layer in layers),
            (1.015, place),
            xycoords="axes fraction",
            va="center",
            color=COLOURS[layers[0]],
            annotation_clip=False,
        )
