"""Table 4 scores constituency parsers, trained here or elsewhere, on one test set.

`treebanks` finds the trees, `measurement` trains and evaluates parsers, `results` scores their
trees, `rendering` shows the scores beside the paper's.
"""

from dragoman.paper.table4.measurement import PRESETS, load_presets, measure
from dragoman.paper.table4.rendering import draw, paper_table, render, text_tables
from dragoman.paper.table4.results import Table4
from dragoman.paper.table4.treebanks import LICENCE, Treebanks

__all__ = [
    "LICENCE",
    "PRESETS",
    "Table4",
    "Treebanks",
    "draw",
    "load_presets",
    "measure",
    "paper_table",
    "render",
    "text_tables",
]
