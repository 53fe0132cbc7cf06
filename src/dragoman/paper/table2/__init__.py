"""Table 2 compares every model on equal terms: on the same data at the same budget.

`models` says which models are compared and how each is sized and trained, `measurement` trains,
times and scores them, `results` holds the rows, `rendering` shows them beside the paper's.
"""

from dragoman.paper.table2.measurement import measure, measure_phrasebook
from dragoman.paper.table2.models import COMPARED_MODELS
from dragoman.paper.table2.rendering import describe_length_effect, draw, render, text_tables
from dragoman.paper.table2.results import VALIDATION, Table2

__all__ = [
    "COMPARED_MODELS",
    "VALIDATION",
    "Table2",
    "describe_length_effect",
    "draw",
    "measure",
    "measure_phrasebook",
    "render",
    "text_tables",
]
