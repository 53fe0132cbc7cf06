"""The text tables and the picture of Table 1 are shown beside the paper's orders of growth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.inspection.plotting import check_format, save_figure, style
from dragoman.paper.paper_values import TABLE_1
from dragoman.paper.table1.layers import (
    CONVOLUTIONAL,
    DILATED,
    LAYERS,
    RECURRENT,
    RESTRICTED,
    SELF_ATTENTION,
)
from dragoman.paper.table1.results import Quantity, Table1, find_crossover, fit_exponent, upper_half
from dragoman.paper.text_table import TextTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FITTED_QUANTITIES: Final[dict[Quantity, str]] = {
    "mixing": "mixing",
    "operations": "layer",
    "forward": "forward",
    "training": "training",
}
COMPARED_QUANTITIES: Final[dict[Quantity, str]] = {
    "mixing": "mixing, FLOPs",
    "forward": "forward, seconds",
    "training": "training, seconds",
}
PAPER_ROWS: Final = {row.layer: row for row in TABLE_1}


def render(result: Table1) -> str:
    """Return all tables and notes for a terminal."""
    head = (
        f"Table 1, measured: {result.device}, torch {result.torch}, float32, one sentence at a time"
    )
    parts = [head, *(table.to_text() for table in text_tables(result)), "\n".join(result.notes)]
    return "\n\n".join(part for part in parts if part)


def text_tables(result: Table1) -> list[TextTable]:
    """Return tables of exponents, FLOPs, sequential operations, paths, times and crossovers."""
    parts = (_exponents, _operations, _sequential, _paths, _times, _crossings)
    return [part(result) for part in parts]


def _exponents(result: Table1) -> TextTable:
    rows = []
    for layer in LAYERS:
        fits: list[str] = []
        for quantity in FITTED_QUANTITIES:
            fits.append(
                _format_exponent(upper_half(result.by_length(quantity, layer, result.widths[0])))
            )
            fits.append(_format_exponent(result.by_width(quantity, layer)))
        rows.append([layer, PAPER_ROWS[layer].operations, *fits])
    narrow, wide = result.widths[0], result.widths[-1]
    lengths = list(upper_half(result.by_length("mixing", SELF_ATTENTION, narrow)))
    counted_at, timed_at = result.longest_shared("mixing"), result.longest_shared("training")
    return TextTable(
        "Exponents of n and d, fitted",
        [
            "",
            "paper",
            *(cell for name in FITTED_QUANTITIES.values() for cell in (f"{name}: n", "d")),
        ],
        rows,
        f"n: over {lengths[0]} … {lengths[-1]} at d = {narrow}. d: over {narrow} … {wide} at "
        f"n = {counted_at} (FLOPs) and n = {timed_at} (seconds).\n"
        "mixing: FLOPs forward of what the paper counts, of attention the scores and the weighted "
        "values.\n"
        "layer: FLOPs forward of all of it, with the projections of attention, 8·n·d².\n"
        "forward, training: seconds of all of it.",
        text_columns=2,
    )


def _format_exponent(line: Mapping[int, float]) -> str:
    found = fit_exponent(line)
    return "–" if found is None else f"{found:.2f}"


def _operations(result: Table1) -> TextTable:
    n, d = result.longest_shared("mixing"), result.widths[-1]
    rows = [
        [
            one.layer,
            *(f"{m / 1e6:,.2f}" for m in (one.mixing, one.operations, one.training_operations)),
        ]
        for one in result.counts
        if (one.n, one.d) == (n, d)
    ]
    return TextTable(
        f"MFLOP at n = {n}, d = {d}",
        ["", "mixing", "layer", "forward and backward"],
        rows,
        f"Recurrent: one layer of tanh units. Convolutional: k = {result.kernel}. Restricted: "
        f"{result.window} on each side, r = {2 * result.window + 1},\n"
        f"computed in blocks of {result.window} queries that meet {3 * result.window} keys.",
    )


def _sequential(result: Table1) -> TextTable:
    return _by_length(
        result,
        "Sequential operations",
        result.sequential,
        {layer: PAPER_ROWS[layer].sequential for layer in LAYERS},
        "Matrix products of a forward pass, each of which needs the result of the one before.",
    )


def _paths(result: Table1) -> TextTable:
    dilated, contiguous = PAPER_ROWS[CONVOLUTIONAL].path.split(", contiguous ")
    paper = {}
    for layer in LAYERS:
        paper[layer] = PAPER_ROWS[layer].path
        if layer == CONVOLUTIONAL:
            paper |= {CONVOLUTIONAL: contiguous, DILATED: dilated}
    return _by_length(
        result,
        "Maximum path length",
        result.path,
        paper,
        "Layers, or steps of the recurrence, until the last position has a gradient at the first.",
    )


def _by_length(
    result: Table1,
    title: str,
    line: Callable[[str], Mapping[int, int]],
    paper: Mapping[str, str],
    note: str,
) -> TextTable:
    lengths = _sample_lengths(result.lengths)
    rows = [[layer, o, *(f"{line(layer)[n]:,}" for n in lengths)] for layer, o in paper.items()]
    return TextTable(
        title, ["", "paper", *(f"n = {n}" for n in lengths)], rows, note, text_columns=2
    )


def _times(result: Table1) -> TextTable:
    d = result.widths[-1]
    lines = [result.by_length("training", layer, d) for layer in LAYERS]
    rows = []
    for n in result.lengths:
        times = [line.get(n) for line in lines]
        attention, recurrent = lines[0].get(n), lines[1].get(n)
        ratio = f"{attention / recurrent:.2f}" if attention and recurrent else "–"
        rows.append([f"{n}", *("–" if t is None else f"{1000 * t:.2f}" for t in times), ratio])
    return TextTable(
        f"Milliseconds of a training pass, d = {d}",
        ["n", *LAYERS, "attention ÷ recurrent"],
        rows,
    )


def _crossings(result: Table1) -> TextTable:
    d = result.widths[-1]
    return TextTable(
        "Where self-attention costs less than the recurrent layer",
        ["d", *COMPARED_QUANTITIES.values()],
        [
            [f"{d}", *(_crossing(result, one, d) for one in COMPARED_QUANTITIES)]
            for d in result.widths
        ],
        f"§4: self-attention is the faster for n < d. At d = {d} it is so "
        f"{_crossing(result, 'mixing', d)} by the FLOPs of mixing,\nand "
        f"{_crossing(result, 'training', d)} by the clock of a training pass.",
    )


def _crossing(result: Table1, quantity: Quantity, d: int) -> str:
    attention = result.by_length(quantity, SELF_ATTENTION, d)
    recurrent = result.by_length(quantity, RECURRENT, d)
    found = find_crossover(attention, recurrent)
    if found is None:
        return "–"
    if math.isinf(found):
        return f"at every n to {max(set(attention) & set(recurrent))}"
    return f"for n < {found:.0f}" if found else "at no n"


def _sample_lengths(lengths: Sequence[int]) -> list[int]:
    """Return the first, the last and one or two between."""
    places = {round(share * (len(lengths) - 1) / 3) for share in range(4)}
    return [lengths[place] for place in sorted(places)]


# --- the picture ---

COLOURS: Final = {
    SELF_ATTENTION: "#2f6db3",
    RECURRENT: "#e07a1f",
    CONVOLUTIONAL: "#3a9a63",
    DILATED: "#3a9a63",
    RESTRICTED: "#a5478f",
}
SHORT_NAMES: Final = {RESTRICTED: "restricted", DILATED: "dilated"}
NAME_SPACING: Final = 0.06
"""The least space between two names, as a share of a panel's height."""


def draw(result: Table1, path: Path) -> None:
    """Draw operations, time, sequential operations and path length against n, logarithmically."""
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
                _mark_bound(axes, d)
            if number >= 2:
                axes.set_xlabel("n, positions of the sentence")
        figure.suptitle(f"Table 1, measured: {result.device}", x=0.012, ha="left", fontsize=12)
        save_figure(figure, path)


def _panel(axes: Axes, lines: Mapping[str, Mapping[int, float]]) -> None:
    from matplotlib.ticker import EngFormatter, FixedLocator, NullLocator

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for layer, line in reversed(list(lines.items())):  # where lines meet, the paper's own is on top
        options: Any = {"color": COLOURS[layer], "linestyle": "--" if layer == DILATED else "-"}
        axes.plot(list(line), list(line.values()), marker="o", markersize=3, **options)
    lengths = sorted({n for line in lines.values() for n in line})
    axes.xaxis.set_major_locator(FixedLocator(lengths))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.02, y=0.08)
    _name_lines(axes, lines)


def _mark_bound(axes: Axes, d: int) -> None:
    """Mark n = d, up to which self-attention is the faster (§4)."""
    axes.axvline(d, color="0.6", linewidth=1, linestyle=":")
    options: Any = {"xycoords": ("data", "axes fraction"), "xytext": (4, 0), "va": "top"}
    axes.annotate("n = d", (d, 0.99), textcoords="offset points", color="0.4", **options)


def _name_lines(axes: Axes, lines: Mapping[str, Mapping[int, float]]) -> None:
    """Write each line's name beside its right end; move up names that would overlap."""
    ends: dict[float, list[str]] = {}
    for layer, line in lines.items():
        ends.setdefault(line[max(line)], []).append(layer)
    low, high = (math.log(limit) for limit in axes.get_ylim())
    place = -1.0
    for value, layers in sorted(ends.items()):
        place = max((math.log(value) - low) / (high - low), place + NAME_SPACING)
        axes.annotate(
            ", ".join(SHORT_NAMES.get(layer, layer) for layer in layers),
            (1.015, place),
            xycoords="axes fraction",
            va="center",
            color=COLOURS[layers[0]],
            annotation_clip=False,
        )
