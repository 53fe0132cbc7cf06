"""Table 2 in words: scores beside the paper's, BLEU by length, and what the lengths say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from dragoman.paper.paper_values import TABLE_2
from dragoman.paper.table2.results import CONTENDERS, Budget, Row, Table2
from dragoman.paper.text_table import Grid

__all__ = ["grids", "render", "verdict"]


def render(table: Table2) -> str:
    """All of it for a terminal."""
    return "\n\n".join(grid.text() for grid in grids(table)) + f"\n\n{verdict(table)}"


def grids(table: Table2) -> list[Grid]:
    """A table of scores for each budget, and one of BLEU by length."""
    titles: dict[Budget, str] = {
        "parameters": f"Same parameters, same data: {table.steps:,} steps each",
        "flops": "Same parameters, same training FLOPs: the Transformer's",
    }
    shown = [budget for budget in titles if any(row.budget == budget for row in table.rows)]
    scores = [
        # What holds for all is said once, under the last.
        _scores(table, budget, titles[budget], _notes(table) if budget == shown[-1] else ())
        for budget in shown
    ]
    return [*scores, *_lengths(table)]


def _notes(table: Table2) -> Sequence[str]:
    return [
        f"{table.data}: {table.pairs:,} pairs, one seed. Test: {table.test}, {table.sentences:,} "
        f"sentences, beam {table.beam}, α {table.length_penalty:g}; BLEU|{table.signature}.",
        f"tokens/s on {table.device}: {table.speed}.",
        "min: of training by the run's clock, beside the runs that shared the device.",
        "Experts are sized by the parameters a position uses. The paper's figures: newstest2014 "
        "en-de.",
    ]


def _scores(table: Table2, budget: Budget, title: str, notes: Sequence[str]) -> Grid:
    paper = {c.preset: next((s for s in TABLE_2 if s.model == c.paper), None) for c in CONTENDERS}
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
    return Grid(title, header, rows, "\n".join([*failures, *notes]), words=2)


def _millions(row: Row) -> str:
    total = f"{row.parameters / 1e6:.2f}M"
    return total if row.active == row.parameters else f"{row.active / 1e6:.2f}M of {total}"


def _lengths(table: Table2) -> list[Grid]:
    rows = table.first_round
    if not rows:
        return []
    heads = [f"{bucket.lengths} ({bucket.sentences})" for bucket in rows[0].by_length]
    cells = [
        (row.model, *(f"{b.bleu:.1f} ± {(b.high - b.low) / 2:.1f}" for b in row.by_length))
        for row in rows
    ]
    note = "Source words between white space (sentences of that length); ± half the 95% interval."
    return [Grid("BLEU by sentence length", ("model", *heads), cells, note)]


def verdict(table: Table2) -> str:
    """Whether one fixed vector falls with length faster than attention does, with the figures."""
    rows = [row for row in table.first_round if len(row.by_length) > 1]
    fixed = [f for row in rows if row.family == "fixed" and (f := _Fall.of(row))]
    attention = [f for row in rows if row.family == "attention" and (f := _Fall.of(row))]
    if not fixed or not attention:
        return (
            "Whether one fixed vector falls with length faster than attention cannot be told: "
            "there must be models of both kinds that translate, and sentences of two lengths."
        )
    low, high = (sorted(getattr(f, end) for f in fixed)[len(fixed) // 2] for end in ("low", "high"))
    lows, highs = (sorted(getattr(f, end) for f in attention) for end in ("low", "high"))
    middle = len(attention) // 2
    if high < lows[middle]:
        answer = "one fixed vector falls with length faster than attention does"
    elif low > highs[middle]:
        answer = "one fixed vector falls with length less than attention does"
    else:
        answer = "one fixed vector and attention fall alike, as far as these sentences tell"
    short, long = rows[0].by_length[0].lengths, rows[0].by_length[-1].lengths
    return (
        f"From {short} to {long} words, {answer}: of its BLEU keep {_named(fixed)}, "
        f"and with attention {_named(attention)}."
    )


@dataclass(frozen=True, slots=True)
class _Fall:
    """What is left of a model's BLEU from the shortest bucket to the longest."""

    model: str
    before: float
    after: float
    low: float
    high: float

    @classmethod
    def of(cls, row: Row) -> Self | None:
        """None for a model that cannot translate short sentences either."""
        short, long = row.by_length[0], row.by_length[-1]
        if short.low < 1:
            return None
        return cls(row.model, short.bleu, long.bleu, long.low / short.high, long.high / short.low)


def _named(falls: Iterable[_Fall]) -> str:
    return ", ".join(
        f"{f.model} {f.after / f.before:.0%} ({f.before:.1f} → {f.after:.1f})" for f in falls
    )
