"""Run Marian in a worker as its documentation advises: all sentences in one call, sorted by length.

It splits text into pieces and joins them itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.bench.translation.systems import LEXICAL_SHORTLIST
from dragoman.text.tokenizer import Tokenizer
from dragoman.trees.tokenizer_kinds import load_tokenizer

_USUAL_LENGTH = 25


def prepare(threads: int) -> None:
    """Import Marian; threads are among its settings."""
    import pymarian  # noqa: F401


class MarianSystem:
    """Translate with a translator of Marian, which is made anew for other settings or beams."""

    def __init__(
        self, path: str, model: str, search: Mapping[str, Any], settings: Any, *, shortlist: bool
    ) -> None:
        # An imported model has a vocabulary of pieces and no tokeniser that Marian could use.
        splits = (Path(path) / "vocab.spm").exists()
        self._tokenizer: Tokenizer | None = None if splits else load_tokenizer(Path(model))
        # Marian's options are separated by spaces, and so must not have any.
        os.chdir(path)
        self._search, self._shortlist = search, shortlist
        self.apply_settings(settings)

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        """Take other threads and batches from the next translation on."""
        self._settings = settings
        self._translator: Any = None
        self._beam = 0

    def translate(self, texts: Sequence[str], beam: int) -> list[str]:
        """Translate all texts in one call; Marian itself batches them by length."""
        if self._translator is None or beam != self._beam:
            import pymarian

            self._translator = None
            self._translator = pymarian.Translator(" ".join(map(str, self._options(beam))))
            self._beam = beam
        if self._tokenizer is None:
            return list(self._translator.translate(list(texts)))
        pieces = self._tokenizer.pieces
        lines = [" ".join(pieces(ids)) for ids in self._tokenizer.encode_batch(texts)]
        ids_of = {piece: n for n, piece in enumerate(pieces(range(len(self._tokenizer))))}
        found = self._translator.translate(lines)
        return self._tokenizer.decode_batch(
            [[ids_of[piece] for piece in line.split(" ") if piece] for line in found]
        )

    def _options(self, beam: int) -> list[object]:
        search, settings = self._search, self._settings
        # Marian's limit is a multiple of the source, where ours adds to it: they are equal for
        # sentences of the usual length.
        factor = 1 + search["max_extra"] / _USUAL_LENGTH
        options: list[object] = ["--config", "decoder.yml", "--quiet", "--quiet-translation"]
        options += ["--beam-size", beam, "--normalize", search["length_penalty"]]
        options += ["--max-length-factor", factor]
        options += ["--cpu-threads", settings["cpu_threads"], "--mini-batch", settings["batch"]]
        options += ["--maxi-batch", 1000, "--maxi-batch-sort", "src"]
        if beam == 1:
            options.append("--skip-cost")  # the best piece is the same without a softmax
        if self._shortlist:
            file, how_much = LEXICAL_SHORTLIST
            options += ["--shortlist", file, *json.loads(Path(how_much).read_text("ascii"))]
        return options


def load(
    *,
    path: str,
    model: str,
    shortlist: bool,
    search: Mapping[str, Any],
    settings: Mapping[str, Any],
    **options: Any,
) -> MarianSystem:
    """Load the exported model at `path`, in the precision it was exported in."""
    return MarianSystem(path, model, search, settings, shortlist=shortlist)
