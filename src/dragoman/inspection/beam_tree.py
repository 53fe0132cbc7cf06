"""The tree of a beam search holds every hypothesis it kept, ended or dropped, step by step."""

# B = 1 sentence, K beams, C candidates, V vocabulary

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from torch import Tensor

from dragoman.inspection.sentence_pair import BEGIN, END, Inspectable, encode_source, piece_labels
from dragoman.search import SearchOptions
from dragoman.search.batching import source_rows
from dragoman.search.beam import beam_search, stable_topk
from dragoman.search.options import length_penalty
from dragoman.text.special_tokens import EOS


@dataclass(slots=True)
class Branch:
    """Hold a hypothesis, which has one piece more than its parent."""

    parent: int
    """The parent's index among the branches; −1 for the root."""
    step: int
    """The number of pieces it has."""
    piece: str
    log_prob: float
    """The log-probability of this piece after its parent."""
    total: float
    """The log-probability of all its pieces."""
    fate: Literal["kept", "ended", "dropped"]
    score: float | None = None
    """If it ended: the score it is ranked by."""
    rank: int | None = None
    """If it is among the results: its rank, from 1."""


@dataclass(slots=True)
class BeamTree:
    """Hold all hypotheses of a search, parents before children."""

    text: str
    beam: int
    length_penalty: float
    branches: list[Branch]
    results: list[str] = field(default_factory=list)
    """The translations found, best first."""

    def to_dict(self) -> dict[str, Any]:
        """Return a table that JSON can hold."""
        return {
            "text": self.text,
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "results": self.results,
            "branches": [
                asdict(one)
                | {
                    "log_prob": round(one.log_prob, 5),
                    "total": round(one.total, 5),
                    "score": None if one.score is None else round(one.score, 5),
                }
                for one in self.branches
            ],
        }


def build_beam_tree(translator: Inspectable, text: str, *, beam: int | None = None) -> BeamTree:
    """Search for the translation of a sentence and record every hypothesis on the way."""
    ids = encode_source(translator, text)
    config = translator.config.search
    beams = config.beam if beam is None else beam
    options = SearchOptions.from_config(config, beam=beams, n_best=beams)
    model = translator.model
    recorder = _Recorder(translator, beams, options.length_penalty, model.targets)
    rows = source_rows([ids], next(model.parameters()).device)
    found = beam_search(model, rows, options, choose=recorder.choose)[0]
    for rank, one in enumerate(found, 1):
        if (place := recorder.ended.get(tuple(one.ids))) is not None:
            recorder.branches[place].rank = rank
    texts = [translator.tokenizer.decode_target(one.ids, text) for one in found]
    return BeamTree(text, beams, options.length_penalty, recorder.branches, texts)


class _Recorder:
    """Choose candidates as beam search does, and record them."""

    def __init__(self, translator: Inspectable, beams: int, alpha: float, targets: int) -> None:
        self._tokenizer = translator.tokenizer
        self._beams, self._alpha, self._targets = beams, alpha, targets
        self.branches = [Branch(-1, 0, BEGIN, 0.0, 0.0, "kept")]
        self.ended: dict[tuple[int, ...], int] = {}
        self._unfinished: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        """For each hypothesis that goes on, its index among the branches, and its pieces."""

    def choose(self, totals_BKV: Tensor, _: Tensor, ids_BKT: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best candidates, as `dragoman.search.beam.Choose` asks for."""
        best_BC, index_BC = stable_topk(totals_BKV.flatten(1), 2 * self._beams)
        unfinished: list[tuple[int, tuple[int, ...]]] = []
        for rank, (total, index) in enumerate(
            zip(best_BC[0].tolist(), index_BC[0].tolist(), strict=True)
        ):
            if total == -math.inf:
                continue
            parent, so_far = self._unfinished[index // self._targets]
            piece, place = index % self._targets, len(self.branches)
            branch = self._make_branch(parent, piece, total)
            self.branches.append(branch)
            if piece == EOS:
                if rank < self._beams:
                    branch.fate = "ended"
                    branch.score = total / length_penalty(len(so_far), self._alpha)
                    self.ended[so_far] = place
            elif len(unfinished) < self._beams:
                branch.fate = "kept"
                unfinished.append((place, (*so_far, piece)))
        self._unfinished = unfinished
        return best_BC, index_BC

    def _make_branch(self, parent: int, piece: int, total: float) -> Branch:
        before = self.branches[parent]
        text = END if piece == EOS else piece_labels(self._tokenizer, [0, piece])[1]
        return Branch(parent, before.step + 1, text, total - before.total, total, "dropped")
