"""Table 1, measured, as tables beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dragoman.paper.paper_values import TABLE_1
from dragoman.paper.table1.layers import CONVOLUTIONAL, DILATED, LAYERS, RECURRENT, SELF_ATTENTION
from dragoman.paper.table1.results import Measure, Table1, crossing, exponent, upper
from dragoman.paper.text_table import Grid

__all__ = ["grids", "render"]

FITTED: Final[dict[Measure, str]] = {
    "mixing": "mixing",
    "operations": "layer",
    "forward": "forward",
    "training": "training",
}
COMPARED: Final[dict[Measure, str]] = {
    "mixing": "mixing, FLOPs",
    "forward": "forward, seconds",
    "training": "training, seconds",
}
PAPER: Final = {row.layer: row for row in TABLE_1}


def render(result: Table1) -> str:
    """All of it for a terminal."""
    head = (
        f"Table 1, measured: {result.device}, torch {result.torch}, float32, one sentence at a time"
    )
    parts = [head, *(grid.text() for grid in grids(result)), "\n".join(result.notes)]
    return "\n\n".join(part for part in parts if part)


def grids(result: Table1) -> list[Grid]:
    """Exponents, FLOPs, sequential operations, paths, times, and where two layers cross."""
    parts = (_exponents, _operations, _sequential, _paths, _times, _crossings)
    return [part(result) for part in parts]


def _exponents(result: Table1) -> Grid:
    rows = []
    for layer in LAYERS:
        fits: list[str] = []
        for measure in FITTED:
            fits.append(_fit(upper(result.by_length(measure, layer, result.widths[0]))))
            fits.append(_fit(result.by_width(measure, layer)))
        rows.append([layer, PAPER[layer].operations, *fits])
    narrow, wide = result.widths[0], result.widths[-1]
    lengths = list(upper(result.by_length("mixing", SELF_ATTENTION, narrow)))
    counted_at, timed_at = result.longest_shared("mixing"), result.longest_shared("training")
    return Grid(
        "Exponents of n and d, fitted",
        ["", "paper", *(cell for name in FITTED.values() for cell in (f"{name}: n", "d"))],
        rows,
        f"n: over {lengths[0]} … {lengths[-1]} at d = {narrow}. d: over {narrow} … {wide} at "
        f"n = {counted_at} (FLOPs) and n = {timed_at} (seconds).\n"
        "mixing: FLOPs forward of what the paper counts, of attention the scores and the weighted "
        "values.\n"
        "layer: FLOPs forward of all of it, with the projections of attention, 8·n·d².\n"
        "forward, training: seconds of all of it.",
        words=2,
    )


def _fit(line: Mapping[int, float]) -> str:
    found = exponent(line)
    return "–" if found is None else f"{found:.2f}"


def _operations(result: Table1) -> Grid:
    n, d = result.longest_shared("mixing"), result.widths[-1]
    rows = [
        [
            one.layer,
            *(f"{m / 1e6:,.2f}" for m in (one.mixing, one.operations, one.training_operations)),
        ]
        for one in result.counts
        if (one.n, one.d) == (n, d)
    ]
    return Grid(
        f"MFLOP at n = {n}, d = {d}",
        ["", "mixing", "layer", "forward and backward"],
        rows,
        f"Recurrent: one layer of tanh units. Convolutional: k = {result.kernel}. Restricted: "
        f"{result.window} on each side, r = {2 * result.window + 1},\n"
        f"computed in blocks of {result.window} queries that meet {3 * result.window} keys.",
    )


def _sequential(result: Table1) -> Grid:
    return _by_length(
        result,
        "Sequential operations",
        result.sequential,
        {layer: PAPER[layer].sequential for layer in LAYERS},
        "Matrix products of a forward pass, each of which needs the result of the one before.",
    )


def _paths(result: Table1) -> Grid:
    dilated, contiguous = PAPER[CONVOLUTIONAL].path.split(", contiguous ")
    paper = {}
    for layer in LAYERS:
        paper[layer] = PAPER[layer].path
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
) -> Grid:
    lengths = _some(result.lengths)
    rows = [[layer, o, *(f"{line(layer)[n]:,}" for n in lengths)] for layer, o in paper.items()]
    return Grid(title, ["", "paper", *(f"n = {n}" for n in lengths)], rows, note, words=2)


def _times(result: Table1) -> Grid:
    d = result.widths[-1]
    lines = [result.by_length("training", layer, d) for layer in LAYERS]
    rows = []
    for n in result.lengths:
        times = [line.get(n) for line in lines]
        attention, recurrent = lines[0].get(n), lines[1].get(n)
        ratio = f"{attention / recurrent:.2f}" if attention and recurrent else "–"
        rows.append([f"{n}", *("–" if t is None else f"{1000 * t:.2f}" for t in times), ratio])
    return Grid(
        f"Milliseconds of a training pass, d = {d}",
        ["n", *LAYERS, "attention ÷ recurrent"],
        rows,
    )


def _crossings(result: Table1) -> Grid:
    d = result.widths[-1]
    return Grid(
        "Where self-attention costs less than the recurrent layer",
        ["d", *COMPARED.values()],
        [[f"{d}", *(_crossing(result, one, d) for one in COMPARED)] for d in result.widths],
        f"§4: self-attention is the faster for n < d. At d = {d} it is so "
        f"{_crossing(result, 'mixing', d)} by the FLOPs of mixing,\nand "
        f"{_crossing(result, 'training', d)} by the clock of a training pass.",
    )


def _crossing(result: Table1, measure: Measure, d: int) -> str:
    attention = result.by_length(measure, SELF_ATTENTION, d)
    recurrent = result.by_length(measure, RECURRENT, d)
    found = crossing(attention, recurrent)
    if found is None:
        return "–"
    if math.isinf(found):
        return f"at every n to {max(set(attention) & set(recurrent))}"
    return f"for n < {found:.0f}" if found else "at no n"


def _some(lengths: Sequence[int]) -> list[int]:
    """The first, the last and one or two between."""
    places = {round(share * (len(lengths) - 1) / 3) for share in range(4)}
    return [lengths[place] for place in sorted(places)]
