"""The tokeniser of a directory is read, a parser's or a translator's, by what its settings say."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

from dragoman.text.tokenizer import Tokenizer, read_tokenizer_settings

_KINDS: Final = {
    "trees": ("dragoman.trees.tree_tokenizer", "TreeTokenizer"),
    "pair": ("dragoman.text.pair_tokenizer", "PairTokenizer"),
}
"""The settings of these have a key of their own; each is imported when there is one of it."""


def load_tokenizer(directory: Path) -> Tokenizer:
    """Read the tokeniser of a directory, whichever kind it is; refuse one that is not whole."""
    settings = read_tokenizer_settings(directory)
    for key, (module, name) in _KINDS.items():
        if key in settings:
            kind: type[Tokenizer] = getattr(import_module(module), name)
            return kind.load(directory)
    return Tokenizer.load(directory)
