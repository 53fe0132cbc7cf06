"""In diverse beam search (Vijayakumar et al. 2016), groups avoid each other's pieces.

A group is a beam search of its own. At every step a piece costs it `diversity` for each hypothesis
of an earlier group that takes the same piece at the same position. A group depends on earlier ones
alone, so that they are searched one after another.
"""

# B sentences, K hypotheses of a group, T pieces so far, V vocabulary, C = 2 K candidates

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import torch
from torch import Tensor

from dragoman.models.api import Model, Rows
from dragoman.search.allowed_outputs import Constraint
from dragoman.search.beam import beam_search, stable_topk
from dragoman.search.options import Hypothesis, SearchOptions
from dragoman.text.special_tokens import EOS


class DiverseGroup:
    """Choose the candidates of one group, and remember which pieces all groups have taken."""

    def __init__(self, taken: dict[tuple[int, int], Counter[int]], diversity: float) -> None:
        """Count how often each piece was taken in `taken`, by (sentence, position)."""
        self._before = {key: dict(pieces) for key, pieces in taken.items()}
        self._taken, self._diversity = taken, diversity

    def choose(
        self, totals_BKV: Tensor, sentences_B: Tensor, ids_BKT: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the best after the penalty; their log-probabilities are without it."""
        beams, vocabulary = totals_BKV.shape[1:]
        position, sentences = ids_BKT.shape[2], sentences_B.tolist()
        ranked_BKV = totals_BKV.clone()
        for row, sentence in enumerate(sentences):
            if pieces := self._before.get((sentence, position)):
                ids = torch.tensor(list(pieces), device=totals_BKV.device)
                cost = torch.tensor([float(n) for n in pieces.values()], device=ids.device)
                ranked_BKV[row, :, ids] -= self._diversity * cost
        _, index_BC = stable_topk(ranked_BKV.flatten(1), 2 * beams)
        values_BC = totals_BKV.flatten(1).gather(1, index_BC)
        self._count(sentences, position, (index_BC % vocabulary).tolist(), values_BC.tolist())
        return values_BC, index_BC

    def _count(
        self,
        sentences: list[int],
        position: int,
        pieces: list[list[int]],
        values: list[list[float]],
    ) -> None:
        """Count what goes on; beam_search takes the first that are no endings."""
        for sentence, row, totals in zip(sentences, pieces, values, strict=True):
            continued = [
                piece
                for piece, total in zip(row, totals, strict=True)
                if piece != EOS and total != -torch.inf
            ]
            counts = self._taken.setdefault((sentence, position), Counter())
            counts.update(continued[: len(row) // 2])


def diverse_search(
    model: Model,
    source: Rows,
    options: SearchOptions,
    *,
    prefixes: list[list[int]] | None = None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """Return the best of each group, then the second best and so on, until there are `n_best`.

    They are sorted by score, and no two are alike. The beam is `options.beam` hypotheses for
    all groups together.
    """
    size = -(-options.beam // options.groups)
    each = replace(options, beam=size, n_best=min(size, options.n_best), groups=1)
    taken: dict[tuple[int, int], Counter[int]] = {}
    groups = [
        beam_search(
            model,
            source,
            each,
            prefixes=prefixes,
            constraint=constraint,
            choose=DiverseGroup(taken, options.diversity).choose,
        )
        for _ in range(options.groups)
    ]
    return [_merge_groups(found, options.n_best) for found in zip(*groups, strict=True)]


def _merge_groups(groups: tuple[list[Hypothesis], ...], count: int) -> list[Hypothesis]:
    chosen: dict[tuple[int, ...], Hypothesis] = {}
    for rank in range(max(map(len, groups))):
        for group in groups:
            if rank < len(group) and len(chosen) < count:
                chosen.setdefault(tuple(group[rank].ids), group[rank])
    return sorted(chosen.values(), key=lambda one: -one.score)
