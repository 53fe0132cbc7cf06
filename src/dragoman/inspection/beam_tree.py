"""Beam search, watched: every hypothesis it kept, ended or let go, step by step."""

# B = 1 sentence, K beams, C candidates, V vocabulary

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from dragoman.inference import Translator
from dragoman.inspection.pieces import BEGIN, END, labels, source_ids
from dragoman.search import SearchOptions
from dragoman.search.batching import source_rows
from dragoman.search.beam import beam_search
from dragoman.search.options import length_penalty
from dragoman.search.ranking import best_of
from dragoman.text.special_tokens import EOS

__all__ = ["BeamTree", "Branch", "beam_tree"]


@dataclass(slots=True)
class Branch:
    """A hypothesis: one piece more than its parent."""

    parent: int
    """Its place among the branches; −1: this is the root."""
    step: int
    """How many pieces it has."""
    piece: str
    log_prob: float
    """Of this piece after its parent."""
    total: float
    """Of all its pieces."""
    fate: Literal["kept", "ended", "dropped"]
    score: float | None = None
    """If it ended: what it is ranked by."""
    rank: int | None = None
    """If it is among the results: its place, from 1."""


@dataclass(slots=True)
class BeamTree:
    """All hypotheses of a search, parents before children."""

    text: str
    beam: int
    length_penalty: float
    branches: list[Branch]
    results: list[str] = field(default_factory=list)
    """Best first."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "text": self.text,
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "results": self.results,
            "branches": [
                {
                    "parent": one.parent,
                    "step": one.step,
                    "piece": one.piece,
                    "log_prob": round(one.log_prob, 5),
                    "total": round(one.total, 5),
                    "fate": one.fate,
                    "score": None if one.score is None else round(one.score, 5),
                    "rank": one.rank,
                }
                for one in self.branches
            ],
        }


def beam_tree(translator: Translator, text: str, *, beam: int | None = None) -> BeamTree:
    """Search for the translation of a sentence and keep what was seen on the way."""
    ids = source_ids(translator, text)
    config = translator.config.search
    beams = config.beam if beam is None else beam
    options = SearchOptions.from_config(config, beam=beams, n_best=beams)
    model = translator.model
    watcher = _Watcher(translator, beams, options.length_penalty, model.targets)
    rows = source_rows([ids], next(model.parameters()).device)
    found = beam_search(model, rows, options, choose=watcher.choose)[0]
    for rank, one in enumerate(found, 1):
        if (place := watcher.ended.get(tuple(one.ids))) is not None:
            watcher.branches[place].rank = rank
    texts = [translator.tokenizer.decode_target(one.ids, text) for one in found]
    return BeamTree(text, beams, options.length_penalty, watcher.branches, texts)


class _Watcher:
    """Chooses as beam search does, and writes it down."""

    def __init__(self, translator: Translator, beams: int, alpha: float, targets: int) -> None:
        self._tokenizer = translator.tokenizer
        self._beams, self._alpha, self._targets = beams, alpha, targets
        self.branches = [Branch(-1, 0, BEGIN, 0.0, 0.0, "kept")]
        self.ended: dict[tuple[int, ...], int] = {}
        self._living: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        """Where the hypotheses are among the branches, and their pieces."""

    def choose(self, totals_BKV: Tensor, _: Tensor, ids_BKT: Tensor) -> tuple[Tensor, Tensor]:
        """See Choose."""
        best_BC, index_BC = best_of(totals_BKV.flatten(1), 2 * self._beams)
        going: list[tuple[int, tuple[int, ...]]] = []
        for rank, (total, index) in enumerate(
            zip(best_BC[0].tolist(), index_BC[0].tolist(), strict=True)
        ):
            if total == -math.inf:
                continue
            parent, so_far = self._living[index // self._targets]
            piece, place = index % self._targets, len(self.branches)
            branch = self._branch(parent, piece, total)
            self.branches.append(branch)
            if piece == EOS:
                if rank < self._beams:
                    branch.fate = "ended"
                    branch.score = total / length_penalty(len(so_far), self._alpha)
                    self.ended[so_far] = place
            elif len(going) < self._beams:
                branch.fate = "kept"
                going.append((place, (*so_far, piece)))
        self._living = going
        return best_BC, index_BC

    def _branch(self, parent: int, piece: int, total: float) -> Branch:
        before = self.branches[parent]
        text = END if piece == EOS else labels(self._tokenizer, [0, piece])[1]
        return Branch(parent, before.step + 1, text, total - before.total, total, "dropped")
