"""Shortlists made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dragoman.inference.cpu.shortlist import Shortlist, write_shortlist
from dragoman.model_directory import open_model
from dragoman.text.special_tokens import EOS, FIRST_PIECE


def shortlist_of_pieces(sizes: tuple[int, int], pieces: Iterable[int]) -> Shortlist:
    """These for every sentence, and no more for any piece of a source."""
    vocabulary, outputs = sizes
    common, empty = np.array([EOS, *pieces], np.int32), np.zeros(0, np.int32)
    return Shortlist(outputs, common, empty, np.zeros(vocabulary + 1, np.int32), empty)


def give_shortlist(model: Path, count: int | None = None) -> Shortlist:
    """Give a model a shortlist of its first pieces, or of all."""
    loaded = open_model(model)
    sizes = loaded.tokenizer.sizes
    made = shortlist_of_pieces(
        sizes, range(FIRST_PIECE, sizes[1] if count is None else FIRST_PIECE + count)
    )
    write_shortlist(loaded, made, {"tried": []})
    return made
