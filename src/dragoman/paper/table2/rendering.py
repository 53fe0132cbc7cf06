"""The text tables, the conclusion about length and the picture of Table 2 are made here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from dragoman.errors import ConfigError
from dragoman.inspection.plotting import check_format, save_figure, style
from dragoman.paper.paper_values import TABLE_2
from dragoman.paper.table2.models import COMPARED_MODELS
from dragoman.paper.table2.results import Budget, Row, Table2
from dragoman.paper.text_table import TextTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def render(table: Table2) -> str:
    """Return all tables and the conclusion about length for a terminal."""
    return (
        "\n\n".join(part.to_text() for part in text_tables(table))
        + f"\n\n{describe_length_effect(table)}"
    )


def text_tables(table: Table2) -> list[TextTable]:
    """Return a table of scores for each budget, and one of BLEU by length."""
    titles: dict[Budget, str] = {
        "parameters": f"Same parameters, same data: {table.steps:,} steps each",
        "flops": "Same parameters, same training FLOPs: the Transformer's",
    }
    shown = [budget for budget in titles if any(row.budget == budget for row in table.rows)]
    scores = [
        # What holds for all is said once, under the last.
        _scores_table(table, budget, titles[budget], _notes(table) if budget == shown[-1] else ())
        for budget in shown
    ]
    return [*scores, *_length_tables(table)]


def _notes(table: Table2) -> Sequence[str]:
    return [
        f"{table.data}: {table.pairs:,} pairs, one seed. Test: {table.test}, {table.sentences:,} "
        f"sentences, beam {table.beam}, α {table.length_penalty:g}; BLEU|{table.signature}.",
        f"tokens/s on {table.device}: {table.speed}.",
        "min: of training by the run's clock, beside the runs that shared the device.",
        "Experts are sized by the parameters a position uses. The paper's figures: newstest2014 "
        "en-de.",
    ]


def _scores_table(table: Table2, budget: Budget, title: str, notes: Sequence[str]) -> TextTable:
    paper = {
        c.preset: next((s for s in TABLE_2 if s.model == c.paper), None) for c in COMPARED_MODELS
    }
    header = ["model", "layers × width", "parameters", "steps", "FLOPs", "tokens/s", "min", "rate"]
    header += ["PPL", "BLEU", "the paper's", "its FLOPs"]
    rows = []
    for row in table.rows:
        if row.budget != budget:
            continue
        theirs = paper.get(row.preset)
        of_paper = (
            "" if theirs is None or theirs.en_de is None else f"{theirs.en_de:g}",
            "" if theirs is None or theirs.flops_en_de is None else f"{theirs.flops_en_de:.1e}",
        )
        found = (
            f"{row.tokens_per_second:,.0f}" if row.tokens_per_second else "",
            f"{row.seconds / 60:.1f}",
            f"{row.learning_rate:.2g}",
            f"{row.perplexity:.2f}",
            f"{row.bleu:.2f}",
        )
        if row.failure is not None:
            found = ("", "", f"{row.learning_rate:.2g}", "", "failed")
        cost = (f"{row.steps:,}", f"{row.flops:.2e}")
        rows.append((row.model, row.size, _millions(row), *cost, *found, *of_paper))
    failures = [f"{r.model}: {r.failure}" for r in table.rows if r.failure and r.budget == budget]
    return TextTable(title, header, rows, "\n".join([*failures, *notes]), text_columns=2)


def _millions(row: Row) -> str:
    total = f"{row.parameters / 1e6:.2f}M"
    return total if row.active == row.parameters else f"{row.active / 1e6:.2f}M of {total}"


def _length_tables(table: Table2) -> list[TextTable]:
    rows = table.first_round
    if not rows:
        return []
    heads = [f"{bucket.lengths} ({bucket.sentences})" for bucket in rows[0].by_length]
    cells = [
        (row.model, *(f"{b.bleu:.1f} ± {(b.high - b.low) / 2:.1f}" for b in row.by_length))
        for row in rows
    ]
    note = "Source words between white space (sentences of that length); ± half the 95% interval."
    return [TextTable("BLEU by sentence length", ("model", *heads), cells, note)]


def describe_length_effect(table: Table2) -> str:
    """Say whether models with one fixed vector lose more BLEU with length than attention does."""
    rows = [row for row in table.first_round if len(row.by_length) > 1]
    kept = {row.model: _BleuRetention.of(row) for row in rows}
    fixed = [r for row in rows if row.family == "fixed" and (r := kept[row.model])]
    attention = [r for row in rows if row.family == "attention" and (r := kept[row.model])]
    if not fixed or not attention:
        return (
            "Whether one fixed vector falls with length faster than attention cannot be told: "
            "there must be models of both kinds that translate, and sentences of two lengths."
        )
    low, high = (sorted(getattr(r, end) for r in fixed)[len(fixed) // 2] for end in ("low", "high"))
    lows, highs = (sorted(getattr(r, end) for r in attention) for end in ("low", "high"))
    middle = len(attention) // 2
    if high < lows[middle]:
        answer = "one fixed vector falls with length faster than attention does"
    elif low > highs[middle]:
        answer = "one fixed vector falls with length less than attention does"
    else:
        answer = "one fixed vector and attention fall alike, as far as these sentences tell"
    short, long = rows[0].by_length[0].lengths, rows[0].by_length[-1].lengths
    return (
        f"From {short} to {long} words, {answer}. Of its BLEU each model keeps, with one fixed "
        f"vector: {_list_retentions(fixed)}; with attention: {_list_retentions(attention)}."
    )


@dataclass(frozen=True, slots=True)
class _BleuRetention:
    """Hold how much of a model's BLEU is left from the shortest sentences to the longest."""

    model: str
    before: float
    after: float
    low: float
    high: float

    @classmethod
    def of(cls, row: Row) -> Self | None:
        """Compare two buckets; return None for a model that cannot translate short sentences."""
        short, long = row.by_length[0], row.by_length[-1]
        if short.low < 1:
            return None
        return cls(row.model, short.bleu, long.bleu, long.low / short.high, long.high / short.low)


def _list_retentions(retentions: Iterable[_BleuRetention]) -> str:
    return ", ".join(
        f"{r.model} {r.after / r.before:.0%} ({r.before:.1f} → {r.after:.1f})" for r in retentions
    )


# --- the picture ---

SHADES: Final = {
    "fixed": ("#f0a35e", "#dd6b20", "#a8401a"),
    "attention": ("#62aee6", "#1fa58f", "#4c8c2b", "#9a6be0", "#4f63e0", "#0b6f86", "#17306e"),
    "other": ("#9aa3b0", "#c0399a"),
}
"""The colours of each family: warm for one fixed vector, cool for attention."""
_NAME_BRIGHTNESS: Final = 0.7
"""How much of a colour's brightness a name has, being thinner than a line."""


def draw(table: Table2, path: Path) -> Path:
    """Draw BLEU against training FLOPs, and BLEU by sentence length, a line a model."""
    from matplotlib.figure import Figure

    check_format(path)
    if not table.first_round:
        raise ConfigError("there is no model to draw: all of them failed; see the table for why")
    with style():
        figure = Figure(figsize=(12.4, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_flops(left, table)
        _draw_lengths(right, table.first_round)
        save_figure(figure, path)
    return path


def model_colours() -> dict[str, str]:
    """Return the colour of each model, the same whichever others are drawn."""
    shades = {family: iter(colours) for family, colours in SHADES.items()}
    return {model.name: next(shades[model.family]) for model in COMPARED_MODELS}


def _draw_flops(axes: Axes, table: Table2) -> None:
    rows = [*table.finished_rows("parameters"), *table.finished_rows("flops")]
    colours = model_colours()
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
    axes.margins(y=0.08)
    last = {row.model: row for row in sorted(rows, key=lambda row: row.flops)}
    _label_lines(
        axes, names_at, [(r.model, r.flops, r.bleu, colours[r.model]) for r in last.values()]
    )


def _ticks(least: float, most: float) -> list[float]:
    """Return round numbers for a logarithmic axis, the coarsest of which at least three fit."""
    decades = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.2, 1.4, 1.6, 2, 2.5, 3, 4, 5, 6, 8)):
        ticks = [m * 10.0**d for d in decades for m in steps]
        ticks = [tick for tick in ticks if least / 1.1 <= tick <= most * 1.1]
        if len(ticks) >= 3:
            break
    return ticks


def _draw_lengths(axes: Axes, rows: Sequence[Row]) -> None:
    colours = model_colours()
    heads = [bucket.lengths for bucket in rows[0].by_length]
    last = len(heads) - 1
    for row in rows:
        values = [bucket.bleu for bucket in row.by_length]
        options: Any = {"color": colours[row.model], "marker": "o", "markersize": 3.5}
        axes.plot(range(len(values)), values, **options, linewidth=1.6)
    span = max(last, 1)
    axes.set_xticks(range(len(heads)), heads)
    axes.set_xlim(-0.05 * span, last + 0.55 * span)
    axes.set_xlabel("source words")
    axes.set_title("BLEU by sentence length")
    axes.set_ylim(bottom=0)
    ends = [(r.model, last, r.by_length[-1].bleu, colours[r.model]) for r in rows]
    _label_lines(axes, last + 0.06 * span, ends)


def _label_lines(axes: Axes, x: float, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Write each name at x, level with its point or moved where two would overlap."""
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
        options: Any = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(name, (x, place), **options, color=_darker(colour), fontsize=8)


def _darker(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(_NAME_BRIGHTNESS * part for part in to_rgb(colour))
