"""Run CTranslate2 in a worker as its documentation advises: all sentences in one call.

Our tokeniser encodes and decodes, in one call, too.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.text.special_tokens import BOS, PAD
from dragoman.trees.tokenizer_kinds import load_tokenizer


def prepare(threads: int) -> None:
    """Import CTranslate2 without PyTorch, which it imports if it can and needs only to convert.

    Threads are among its settings.
    """
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
    import ctranslate2  # noqa: F401


class CTranslate2System:
    """Translate with a CTranslate2 translator, between our tokeniser's encoding and decoding."""

    def __init__(
        self,
        path: str,
        model: str,
        precision: str,
        search: Mapping[str, Any],
        settings: Any,
        *,
        shortlist: bool,
    ) -> None:
        self._path, self._precision, self._search = path, precision, search
        self._shortlist = shortlist
        self._tokenizer = load_tokenizer(Path(model))
        self._pieces = self._tokenizer.pieces(range(len(self._tokenizer)))
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        self._threads: tuple[int, int] | None = None
        self.apply_settings(settings)

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        """Take other batches, and for other threads load another translator."""
        import ctranslate2

        threads = settings["inter_threads"], settings["intra_threads"]
        if threads != self._threads:
            self._translator = None
            self._translator = ctranslate2.Translator(
                self._path,
                device="cpu",
                compute_type=self._precision,
                inter_threads=threads[0],
                intra_threads=threads[1],
            )
        self._threads = threads
        self._batch, self._batch_type = settings["batch"], settings["batch_type"]

    def translate(self, texts: Sequence[str], beam: int) -> list[str]:
        """Translate all texts in one call; CTranslate2 itself batches them by length."""
        pieces = self._pieces
        sources = [[pieces[i] for i in ids] for ids in self._tokenizer.encode_batch(texts)]
        assert self._translator is not None
        found = self._translator.translate_batch(
            sources,
            beam_size=beam,
            max_batch_size=self._batch,
            batch_type=self._batch_type,
            max_decoding_length=max(map(len, sources)) + self._search["max_extra"],
            length_penalty=self._search["length_penalty"],
            disable_unk=True,
            use_vmap=self._shortlist,
            suppress_sequences=[[pieces[PAD]], [pieces[BOS]]],
        )
        ids = self._ids
        return self._tokenizer.decode_batch(
            [[ids[piece] for piece in row.hypotheses[0]] for row in found]
        )


def load(
    *,
    path: str,
    model: str,
    precision: str,
    shortlist: bool,
    search: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> CTranslate2System:
    """Load the exported model at `path`, and the tokeniser of `model`."""
    return CTranslate2System(path, model, precision, search, settings, shortlist=shortlist)
