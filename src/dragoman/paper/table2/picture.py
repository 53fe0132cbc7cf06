"""Table 2 as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.errors import ConfigError
from dragoman.inspection.plotting import check_format, style, write
from dragoman.paper.table2.results import CONTENDERS, Row, Table2

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "palette"]

SHADES: Final = {
    "fixed": ("#f0a35e", "#dd6b20", "#a8401a"),
    "attention": ("#62aee6", "#1fa58f", "#4c8c2b", "#9a6be0", "#4f63e0", "#0b6f86", "#17306e"),
    "other": ("#9aa3b0", "#c0399a"),
}
"""Warm for one fixed vector, cool for attention."""
_DARKER: Final = 0.7
"""Of a colour's light is left where it writes a name, which is thinner than a line."""


def draw(table: Table2, path: Path) -> Path:
    """BLEU against training FLOPs, and BLEU by sentence length, a line a model."""
    from matplotlib.figure import Figure

    check_format(path)
    if not table.first_round:
        raise ConfigError("there is no model to draw; see why all of them failed")
    with style():
        figure = Figure(figsize=(12.4, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_flops(left, table)
        _draw_lengths(right, table.first_round)
        write(figure, path)
    return path


def palette() -> dict[str, str]:
    """The colour of each contender, whoever else is drawn."""
    shades = {family: iter(colours) for family, colours in SHADES.items()}
    return {contender.name: next(shades[contender.family]) for contender in CONTENDERS}


def _draw_flops(axes: Axes, table: Table2) -> None:
    rows = [*table.at("parameters"), *table.at("flops")]
    colours = palette()
    for name, colour in colours.items():
        same = [row for row in rows if row.model == name]
        axes.plot([r.flops for r in same], [r.bleu for r in same], ":", color=colour, linewidth=1.2)
        for row in same:
            face = colour if row.budget == "parameters" else "white"
            axes.plot(row.flops, row.bleu, "o", color=colour, markerfacecolor=face, markersize=7)
    least, most = min(r.flops for r in rows), max(r.flops for r in rows)
    reach = (most / least) ** 0.08 * 1.02
    names_at = most * reach**1.5
    axes.set_xscale("log")
    axes.set_xlim(least / reach, names_at * (names_at / least) ** 0.6 * reach)  # room for the names
    axes.set_xticks(
        ticks := _ticks(least, most), [f"{tick:.2g}".replace("e+", "e") for tick in ticks]
    )
    axes.set_xticks([], minor=True)
    axes.set_xlabel("training FLOPs")
    axes.set_title("BLEU against training FLOPs (filled: same steps, open: same FLOPs)")
    axes.tick_params(length=0)
    axes.margins(y=0.08)
    last = {row.model: row for row in sorted(rows, key=lambda row: row.flops)}
    _name(axes, names_at, [(r.model, r.flops, r.bleu, colours[r.model]) for r in last.values()])


def _ticks(least: float, most: float) -> list[float]:
    """Round numbers on a logarithmic axis, the coarsest of which there are three or more."""
    decades = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.2, 1.4, 1.6, 2, 2.5, 3, 4, 5, 6, 8)):
        ticks = [m * 10.0**d for d in decades for m in steps]
        ticks = [tick for tick in ticks if least / 1.1 <= tick <= most * 1.1]
        if len(ticks) >= 3:
            break
    return ticks


def _draw_lengths(axes: Axes, rows: Sequence[Row]) -> None:
    colours = palette()
    heads = [bucket.lengths for bucket in rows[0].by_length]
    last = len(heads) - 1
    for row in rows:
        values = [bucket.bleu for bucket in row.by_length]
        looks: Any = {"color": colours[row.model], "marker": "o", "markersize": 3.5}
        axes.plot(range(len(values)), values, **looks, linewidth=1.6)
    span = max(last, 1)
    axes.set_xticks(range(len(heads)), heads)
    axes.set_xlim(-0.05 * span, last + 0.55 * span)
    axes.set_xlabel("source words")
    axes.set_title("BLEU by sentence length")
    axes.tick_params(length=0)
    axes.set_ylim(bottom=0)
    ends = [(r.model, last, r.by_length[-1].bleu, colours[r.model]) for r in rows]
    _name(axes, last + 0.06 * span, ends)


def _name(axes: Axes, x: float, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Each name at x, level with its point or moved up or down where two would overlap."""
    low, high = axes.get_ylim()
    gap = (high - low) * 0.05
    ordered = sorted(ends, key=lambda end: end[2])
    places = [end[2] for end in ordered]
    for _ in range(1000):  # push neighbours apart until all have room
        for i in range(1, len(places)):
            if (missing := gap - (places[i] - places[i - 1])) > 0:
                places[i - 1] -= missing / 2
                places[i] += missing / 2
        places[0] = max(places[0], low + gap / 2)
        places[-1] = min(places[-1], high - gap / 2)
    for (name, at, value, colour), place in zip(ordered, places, strict=True):
        axes.plot([at, x], [value, place], color=colour, linewidth=0.6, alpha=0.5)
        looks: Any = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(name, (x, place), **looks, color=_darker(colour), fontsize=8)


def _darker(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(_DARKER * part for part in to_rgb(colour))
