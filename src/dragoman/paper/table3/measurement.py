"""Table 3: variations on the Transformer, counted at the paper's size and trained at any.

What the rows are is in table3_rows.py, what follows from them in table3_findings.py, how they are
shown in table3_view.py; all of it can be imported from here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from dragoman.config import Config
from dragoman.errors import ConfigError, TrainingError
from dragoman.paper import sweep
from dragoman.paper.paper_values import TABLE_3
from dragoman.paper.sweep import Finished, Trial
from dragoman.paper.table3.findings import Finding, Measured, Table3, findings
from dragoman.paper.table3.rows import SMALL_BASE, TINY_BASE, Count, Row, counts, variations
from dragoman.paper.table3.text import count_grid, draw, finding_grid, grid, render

__all__ = [
    "SMALL_BASE",
    "TINY_BASE",
    "Count",
    "Finding",
    "Measured",
    "Row",
    "Table3",
    "count_grid",
    "counts",
    "draw",
    "finding_grid",
    "findings",
    "grid",
    "measure",
    "render",
    "variations",
]


def measure(
    data: Path,
    out: Path,
    *,
    base: Config = SMALL_BASE,
    seeds: Sequence[int] = (1, 2, 3),
    steps: int | None = None,
    jobs: int = 1,
    say: Callable[[str], None],
    rows: Collection[str] = (),
) -> Table3:
    """Train every row at the size of `base`, once a seed, on a prepared corpus.

    `steps` are the base's unless told otherwise; the big model has three times as many, as in the
    paper. `rows`, such as ("A", "big"), leaves out the others but the base. As in §6.2 nothing is
    averaged: the last step counts. What is trained already is not trained again.
    """
    if not seeds:
        raise ConfigError("no seeds; give at least one, and three for a standard error")
    if not base.training.validate_sentences:
        raise ConfigError("training.validate_sentences = 0, but Table 3 compares BLEU; try 2000")
    if steps is not None:
        base = base.updated({"training": {"steps": steps}})
    chosen = _chosen(base, rows)
    # Seed by seed: an interrupted sweep has whole tables.
    trials = [_trial(row, seed) for seed in seeds for row in chosen]
    found = {run.name: run for run in sweep.run(trials, data, out, jobs=jobs, say=say)}
    measured = [_measured(row, [found[_trial(row, seed).name] for seed in seeds]) for row in chosen]
    if not measured[0].bleu:
        raise TrainingError(
            f"{out}: the base model, which all are compared with, failed: {measured[0].failure}; "
            "run the same command to try again"
        )
    return Table3(data.resolve().name, base, tuple(seeds), tuple(measured))


def _chosen(base: Config, rows: Collection[str]) -> list[Row]:
    known = dict.fromkeys(paper.row for paper in TABLE_3)
    for name in rows:
        if name not in known:
            raise ConfigError(f"row {name}: not one of Table 3's; there are: {', '.join(known)}")
    return [row for row in variations(base) if not rows or row.paper.row in ("base", *rows)]


def _trial(row: Row, seed: int) -> Trial:
    settings = {
        "seed": seed,
        "average": 1,
        "keep_checkpoints": 1,
        "patience": 0,
        # Only at the end: scores on the way would let the best step be chosen.
        "validate_every": row.config.training.steps + 1,
    }
    return Trial(f"{row.name}-seed-{seed}", row.config.updated({"training": settings}))


def _measured(row: Row, runs: Sequence[Finished]) -> Measured:
    done = [run for run in runs if run.failure is None]
    return Measured(
        row.paper.preset,
        row.change,
        parameters=done[0].parameters if done else 0,
        steps=row.config.training.steps,
        perplexity=tuple(run.perplexity for run in done if run.perplexity is not None),
        bleu=tuple(run.bleu for run in done if run.bleu is not None),
        failure=next((run.failure for run in runs if run.failure is not None), None),
    )
