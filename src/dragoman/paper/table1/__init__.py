"""Table 1 says what four kinds of layer cost by the length n and the width d (§4).

`layers` builds the layers, `measurement` counts, traces and times them, `results` holds the numbers
and fits their exponents, `rendering` shows them beside the paper's.
"""

from dragoman.paper.table1.measurement import LENGTHS, WIDTHS, measure
from dragoman.paper.table1.rendering import draw, render, text_tables
from dragoman.paper.table1.results import Table1

__all__ = ["LENGTHS", "WIDTHS", "Table1", "draw", "measure", "render", "text_tables"]
