"""The text tables and the picture of Table 3 show our rows beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman.inspection.plotting import TEXT_COLOUR, check_format, save_figure, style
from dragoman.paper.paper_values import TABLE_3
from dragoman.paper.table3.results import (
    VERDICT_RULE,
    Finding,
    Metric,
    ParameterCount,
    Table3,
    VariationResult,
    check_findings,
    compare_rows,
)
from dragoman.paper.text_table import TextTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAPER_BASE: Final = TABLE_3[0]
_TEXT_COLUMNS: Final = ("row", "ours", "the paper's")
_OURS, _PAPERS = "#2f6db3", "#e07a1f"


def render(table: Table3) -> str:
    """Return the scores and the findings for a terminal."""
    return f"{scores_table(table).to_text()}\n\n{findings_table(check_findings(table)).to_text()}"


def parameter_table(counts: Sequence[ParameterCount]) -> TextTable:
    """Return the parameters in millions, ours beside the paper's."""
    rows = [
        (
            count.paper.row,
            count.paper.change,
            f"{count.parameters / 1e6:.2f}",
            _millions(count.paper.parameters),
        )
        for count in counts
    ]
    return TextTable(
        "Table 3: parameters at the paper's size, in millions",
        ("row", "change", "ours", "paper"),
        rows,
        note="Ours: the equations, with 37,000 pieces. Where the paper prints none, it is blank.",
        text_columns=2,
    )


def scores_table(table: Table3) -> TextTable:
    """Return perplexity, BLEU and parameters of every row."""
    model = table.base.model
    seeds = f"{len(table.seeds)} seed{'s' if len(table.seeds) != 1 else ''}"
    base = _require_base(table)
    return TextTable(
        f"Table 3 on {table.corpus}: {model.encoder_layers} layers, d_model {model.d_model}, d_ff "
        f"{model.d_ff}, {model.heads} heads, {table.base.training.steps:,} steps, {seeds}",
        (*_TEXT_COLUMNS, "params", "PPL", "BLEU", "Δ", "paper: params", "PPL", "BLEU", "Δ"),
        [_row(row, base) for row in table.rows],
        note="Ours: validation set, greedy, mean and standard deviation over seeds, parameters in "
        "millions. The paper's: newstest2013, beam 4. Δ: BLEU less the base's." + _failures(table),
        text_columns=len(_TEXT_COLUMNS),
    )


def findings_table(found: Sequence[Finding]) -> TextTable:
    """Return the paper's findings with their verdicts."""
    rows = []
    for finding in found:
        measured, error = "", ""
        if finding.measured is not None:
            measured = f"{finding.measured.value:+.2f}"
            error = "" if finding.measured.error is None else f"{finding.measured.error:.2f}"
        name = "BLEU" if finding.metric == "bleu" else "PPL"
        paper = f"{finding.paper:+.2f}"
        rows.append((finding.claim, finding.rows, name, paper, measured, error, finding.verdict))
    return TextTable(
        "The paper's findings",
        ("finding", "difference", "", "paper", "ours", "std. error", "verdict"),
        rows,
        note=VERDICT_RULE,
        text_columns=3,
    )


def _row(row: VariationResult, base: VariationResult) -> tuple[str, ...]:
    paper = row.paper
    ours = ("", "", "", "")
    if row.bleu:
        change = "" if row is base else f"{row.mean('bleu') - base.mean('bleu'):+.2f}"
        ours = (
            f"{row.parameters / 1e6:.2f}",
            _mean(row, "perplexity", 3),
            _mean(row, "bleu", 2),
            change,
        )
    theirs = (
        _millions(paper.parameters),
        f"{paper.perplexity:.2f}",
        f"{paper.bleu:.1f}",
        "" if paper is _PAPER_BASE else f"{paper.bleu - _PAPER_BASE.bleu:+.1f}",
    )
    name = _short(row.change) if row.bleu else f"{_short(row.change)} (failed)"
    return (paper.row, name, _short(paper.change), *ours, *theirs)


def _failures(table: Table3) -> str:
    return "".join(
        f" Failed: {_short(row.change) or 'base'}, {len(table.seeds) - len(row.bleu)} of "
        f"{len(table.seeds)} ({row.failure})."
        for row in table.rows
        if row.failure is not None
    )


def _short(change: str) -> str:
    """Leave out the big model's layers, which are as many as the base's."""
    return change.rpartition(" layers, ")[2]


def _mean(row: VariationResult, metric: Metric, digits: int) -> str:
    deviation = row.deviation(metric)
    spread = "" if deviation is None else f" ±{deviation:.{digits}f}"
    return f"{row.mean(metric):.{digits}f}{spread}"


def _millions(parameters: float | None) -> str:
    return "" if parameters is None else f"{parameters:.0f}"


def _require_base(table: Table3) -> VariationResult:
    base = table.row("base")
    assert base is not None, "a table without its base is not made"
    return base


# --- the picture ---


def draw(table: Table3, path: Path) -> Path:
    """Draw each row's BLEU and perplexity less the base's, ours with two standard errors."""
    check_format(path)
    base = _require_base(table)
    rows = [row for row in table.rows if row.bleu and row is not base]
    labels = [f"{row.paper.row}   {_short(row.change)}" for row in rows]
    with style("".join(labels)):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.6, 1.6 + 0.27 * len(rows)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_panel(left, rows, base, "bleu")
        _draw_panel(right, rows, base, "perplexity")
        left.set_title("BLEU against the base model")
        right.set_title("perplexity against the base model, %")
        left.set_yticks(range(len(rows)), labels, color=TEXT_COLOUR)
        left.set_ylim(len(rows) - 0.4, -0.6)
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=2)
        save_figure(figure, path)
    return path


def _draw_panel(
    axes: Axes, rows: Sequence[VariationResult], base: VariationResult, metric: Metric
) -> None:
    """Draw BLEU as it is, and perplexity as a share of the base's, since corpora differ in it."""
    scale, paper_scale = 1.0, 1.0
    if metric == "perplexity":
        scale, paper_scale = 100 / base.mean(metric), 100 / _PAPER_BASE.perplexity
    found = [compare_rows(row, base, metric) for row in rows]
    ours = [each.value * scale for each in found]
    theirs = [
        (getattr(row.paper, metric) - getattr(_PAPER_BASE, metric)) * paper_scale for row in rows
    ]
    places = range(len(rows))
    axes.axvline(0, color="#b8bfca", linewidth=1)
    for place in places[1:]:
        if rows[place].paper.row != rows[place - 1].paper.row:
            axes.axhline(place - 0.5, color="#e9ecf1", linewidth=1)
    axes.errorbar(
        ours,
        [place - 0.14 for place in places],
        xerr=[2 * (each.error or 0.0) * scale for each in found],
        fmt="o",
        color=_OURS,
        markersize=4.5,
        elinewidth=1.2,
        label="ours, ± 2 standard errors",
    )
    axes.plot(
        theirs,
        [place + 0.14 for place in places],
        "D",
        color=_PAPERS,
        markersize=4,
        fillstyle="none",
        label="the paper",
    )
    if (edge := _axis_limit([*ours, *theirs])) is not None:
        axes.set_xlim(-edge, edge)
        for place, value in enumerate(ours):
            if abs(value) > edge:
                side = 1 if value > 0 else -1
                axes.annotate(
                    f"{value:+.3g}",
                    (side * edge, place - 0.14),
                    xytext=(-18 * side, 0),
                    textcoords="offset points",
                    arrowprops={"arrowstyle": "->", "color": _OURS},
                    color=_OURS,
                    ha="right" if value > 0 else "left",
                    va="center",
                )
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(lambda x, place: f"{x:+g}" if x else "0")


def _axis_limit(values: Sequence[float]) -> float | None:
    """Return where to end a panel that one value would stretch until the others overlap."""
    *_, second, largest = sorted(map(abs, [0.0, 0.0, *values]))
    return 1.5 * second if largest > 2.5 * second > 0 else None
