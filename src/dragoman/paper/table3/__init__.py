"""Table 3 varies the Transformer, counted at the paper's size and trained at any.

`measurement` scales the paper's rows to a base model and trains them, `results` holds the scores
and checks the paper's findings against them, `rendering` shows both beside the paper's.
"""

from dragoman.paper.table3.measurement import count_paper_parameters, measure
from dragoman.paper.table3.rendering import (
    draw,
    findings_table,
    parameter_table,
    render,
    scores_table,
)
from dragoman.paper.table3.results import Table3, check_findings

__all__ = [
    "Table3",
    "check_findings",
    "count_paper_parameters",
    "draw",
    "findings_table",
    "measure",
    "parameter_table",
    "render",
    "scores_table",
]
