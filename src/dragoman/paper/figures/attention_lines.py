"""Attention drawn as in the paper: two columns of words, and lines as strong as the weights."""

# H heads, T query words, S key words

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DragomanError
from dragoman.inspection.plotting import TEXT_COLOUR, check_format, save_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THRESHOLD: Final = 0.02
"""The weight below which a line is not drawn, as it could not be seen."""

Weights: TypeAlias = NDArray[np.floating[Any]]
Columns: TypeAlias = tuple[float, float, float]
"""Where lines begin, where they end, and where squares end, from the left."""

_PALE: Final = "#9aa3b1"
_SIZE: Final = 9.0
_MAX_LETTERS: Final = 28  # letters of a word

# In inches: a word's row, the room for lines and for titles, the space beside words and between
# panels, a head's square; and within which height the lines of several heads end at one word.
_ROW, _LINES, _TITLE, _GAP, _BETWEEN, _SQUARE, _FAN = 0.2, 2.2, 0.5, 0.07, 0.5, 0.13, 0.1


@dataclass(frozen=True, slots=True)
class Panel:
    """Say what is drawn between two columns of words."""

    heads: tuple[int, ...]
    """Are counted from 0."""
    title: str = ""
    word: int | None = None
    """Names the only word whose lines are drawn, with a square for every head; None draws all."""


def head_colour(head: int, heads: int) -> tuple[float, float, float]:
    """Return the colour of a head, each of its own hue."""
    return colorsys.hls_to_rgb(head / heads, 0.36 + 0.12 * (head % 2), 0.75)


def visible_lines(weights_HTS: Weights, panel: Panel) -> list[tuple[int, int, int, float]]:
    """Return the lines of a panel: head, query word, key word, weight."""
    words = range(weights_HTS.shape[1]) if panel.word is None else [panel.word]
    return [
        (head, t, int(s), float(weights_HTS[head, t, s]))
        for head in panel.heads
        for t in words
        for s in np.flatnonzero(weights_HTS[head, t] >= THRESHOLD)
    ]


def draw_lines(
    weights_HTS: Weights,
    query_words: Sequence[str],
    key_words: Sequence[str],
    panels: Sequence[Panel],
    path: Path,
    *,
    columns: tuple[str, str] = ("", ""),
) -> None:
    """Draw panels side by side to a .png, .svg or .pdf; a line's opacity is its weight.

    The query words stand on the left, the key words on the right, each below the name of their
    column.
    """
    check_format(path)
    H, T, S = weights_HTS.shape
    query_words, key_words = list(map(_shortened, query_words)), list(map(_shortened, key_words))
    if (len(query_words), len(key_words)) != (T, S):
        raise DragomanError(
            f"attention weights of {H} × {T} × {S} do not fit {len(query_words)} query words and "
            f"{len(key_words)} key words"
        )
    with style("".join([*query_words, *key_words, *columns, *(panel.title for panel in panels)])):
        from matplotlib.figure import Figure

        left, right = _widest([*query_words, columns[0]]), _widest([*key_words, columns[1]])
        strips = [_SQUARE * len(p.heads) if p.word is not None else 0.0 for p in panels]
        width = sum(strips) + len(panels) * (left + _LINES + right + _BETWEEN) - _BETWEEN
        height = _TITLE + _ROW * max(T, S)
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        start = 0.0
        for number, (panel, strip) in enumerate(zip(panels, strips, strict=True)):
            edges = start + left, start + left + _LINES, start + left + _LINES + strip
            axes.text(start, 0.1, panel.title, va="center", fontsize=10)
            _words(axes, query_words, key_words, panel, edges, columns)
            _lines(axes, weights_HTS, panel, edges, f"panel-{number + 1}")
            _name_heads(axes, panel, H, edges, start + _widest([panel.title], 10))
            start = edges[2] + right + _BETWEEN
        save_figure(figure, path)


def _shortened(word: str) -> str:
    return word if len(word) <= _MAX_LETTERS else f"{word[: _MAX_LETTERS - 1]}…"


def _widest(texts: Sequence[str], size: float = _SIZE) -> float:
    """Return the width of the widest text in inches, with a little more for other fonts."""
    from matplotlib.figure import Figure

    scratch = Figure(dpi=100)
    widths = [scratch.text(0, 0, text, fontsize=size).get_window_extent().width for text in texts]
    return float(max(widths)) / 100 * 1.03 + _GAP


def _y(row: int) -> float:
    return _TITLE + _ROW * (row + 0.5)


def _words(
    axes: Axes,
    query_words: Sequence[str],
    key_words: Sequence[str],
    panel: Panel,
    edges: Columns,
    columns: tuple[str, str],
) -> None:
    options: Any = {"va": "center_baseline", "fontsize": _SIZE}
    for row, text in enumerate(query_words):
        chosen = row == panel.word
        box = {"boxstyle": "round,pad=0.15", "facecolor": "#dfe4ec", "linewidth": 0}
        axes.text(
            edges[0] - _GAP,
            _y(row),
            text,
            **options,
            ha="right",
            color=TEXT_COLOUR if chosen or panel.word is None else _PALE,
            bbox=box if chosen else None,
        )
    for row, text in enumerate(key_words):
        axes.text(edges[2] + _GAP, _y(row), text, **options, ha="left", color=TEXT_COLOUR)
    names: Any = {"va": "center", "fontsize": 8, "color": _PALE}
    axes.text(edges[0] - _GAP, _TITLE - 0.1, columns[0], **names, ha="right")
    axes.text(edges[2] + _GAP, _TITLE - 0.1, columns[1], **names, ha="left")


def _lines(axes: Axes, weights_HTS: Weights, panel: Panel, edges: Columns, name: str) -> None:
    """Draw the lines of each head, and squares if they are from one word."""
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Rectangle

    drawn = visible_lines(weights_HTS, panel)
    for place, head in enumerate(panel.heads):
        mine = [(t, s, weight) for h, t, s, weight in drawn if h == head]
        shift = _FAN * ((place + 0.5) / len(panel.heads) - 0.5)
        ends = [((edges[0], _y(t)), (edges[1], _y(s) + shift)) for t, s, _ in mine]
        paint = [(*head_colour(head, len(weights_HTS)), weight) for _, _, weight in mine]
        id_ = f"{name}-head-{head + 1}"
        axes.add_collection(LineCollection(ends, colors=paint, linewidths=1.7, gid=id_))
        if panel.word is not None:
            x, size = edges[1] + _SQUARE * place, 0.85 * _SQUARE
            squares = [Rectangle((x, _y(s) - size / 2), size, size) for _, s, _ in mine]
            axes.add_collection(
                PatchCollection(squares, facecolors=paint, linewidths=0, gid=f"{id_}-squares")
            )


def _name_heads(axes: Axes, panel: Panel, heads: int, edges: Columns, after: float) -> None:
    """Write the heads' numbers in their colours: above their squares, or after the title."""
    for place, head in enumerate(panel.heads):
        where = (after + 0.2 * place, 0.1)
        if panel.word is not None:
            where = (edges[1] + _SQUARE * (place + 0.42), _TITLE - 0.1)
        size = 10 if panel.word is None else 8 if heads < 10 else 6.5
        options: Any = {"ha": "center", "va": "center", "fontsize": size}
        axes.text(*where, str(head + 1), **options, color=head_colour(head, heads))
