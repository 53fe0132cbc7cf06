"""Greedy search has a loop that sampling shares: its hypotheses do not compete."""

# B sentences still searched, K hypotheses of each, T pieces, V vocabulary

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import torch
from torch import Tensor

from dragoman.models.api import Model, Rows
from dragoman.search.allowed_outputs import AllowedOutputs, Constraint
from dragoman.search.beam import length_penalties
from dragoman.search.options import (
    Hypothesis,
    Limits,
    SearchOptions,
    fallback_hypothesis,
    refuse_nan,
)
from dragoman.text.special_tokens import BOS, EOS

ChoosePiece = Callable[[Tensor, Tensor, int], Tensor]
"""It gets the log-probabilities of all extensions (B K V), the rows of the source they belong to
(B) and the number of pieces so far, and returns the next piece of each hypothesis (B K)."""


@torch.no_grad()
def extend_independently(
    model: Model,
    source: Rows,
    allowed: AllowedOutputs,
    limits: Limits,
    hypotheses: int,
    choose: ChoosePiece,
) -> list[list[Hypothesis]]:
    """Extend so many hypotheses of each sentence by the chosen pieces until each has ended."""
    if not allowed.sentences:
        return []
    results: list[list[Hypothesis]] = [[] for _ in allowed.sentences]
    device, shape = source.ids_RL.device, (len(allowed.sentences), hypotheses)
    penalties = length_penalties(max(allowed.max_lengths), limits.length_penalty, device)
    state = model.start(source).expand(hypotheses)
    ids_BKT = torch.zeros(*shape, 0, dtype=torch.int64, device=device)
    last_BK = torch.full(shape, BOS, dtype=torch.int64, device=device)
    lengths_BK = torch.zeros(shape, dtype=torch.int64, device=device)
    sums_BK = torch.zeros(shape, device=device)
    running_BKT = torch.zeros(*shape, 0, device=device)
    open_BK = torch.ones(shape, dtype=torch.bool, device=device)

    for length in count():
        log_probs_BKV, state = model.step(last_BK, state)
        totals_BKV = allowed.score_extensions(sums_BK, log_probs_BKV, ids_BKT)
        chosen_BK = choose(totals_BKV, allowed.sentences_B, length)
        total_BK = totals_BKV.gather(2, chosen_BK[:, :, None])[:, :, 0]
        sums_BK = torch.where(open_BK, total_BK, sums_BK)
        last_BK = torch.where(open_BK, chosen_BK, EOS)
        ids_BKT = torch.cat([ids_BKT, last_BK[:, :, None]], dim=2)
        running_BKT = torch.cat([running_BKT, sums_BK[:, :, None]], dim=2)
        open_BK = open_BK & (last_BK != EOS) & (sums_BK != -torch.inf)
        lengths_BK = lengths_BK + open_BK

        done_B = ~open_BK.any(dim=1)
        done = done_B.tolist()  # the one wait of a step
        if not any(done):
            continue
        scores_BK = sums_BK.double() / penalties[lengths_BK]
        columns = (ids_BKT, lengths_BK, scores_BK, sums_BK, running_BKT)
        found = zip(*(column[done_B].tolist() for column in columns), strict=True)
        for row in (row for row, ended in enumerate(done) if ended):
            results[allowed.sentences[row]] = [
                fallback_hypothesis(allowed.prefixes[row])
                if score == -torch.inf
                else Hypothesis.from_running_sums(ids[:n], score, log_prob, running[:n])
                for ids, n, score, log_prob, running in zip(*next(found), strict=True)
            ]
        rows = [row for row, ended in enumerate(done) if not ended]
        if not rows:
            return refuse_nan(results)
        allowed.keep(rows)
        rows_B = torch.tensor(rows, device=device)
        state = state.keep(rows_B)
        ids_BKT, last_BK, lengths_BK = ids_BKT[rows_B], last_BK[rows_B], lengths_BK[rows_B]
        sums_BK, open_BK, running_BKT = sums_BK[rows_B], open_BK[rows_B], running_BKT[rows_B]
    raise AssertionError("unreachable")


def greedy_search(
    model: Model,
    source: Rows,
    options: SearchOptions,
    *,
    prefixes: list[list[int]] | None = None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """Return one hypothesis a sentence: exactly what `beam_search` finds with a beam of 1, sooner.

    The `beam`, `n_best` and `stop_early` of the options mean nothing here.
    """
    allowed = AllowedOutputs(source, model.targets, options, prefixes, constraint)
    return extend_independently(model, source, allowed, options, 1, _likeliest)


def _likeliest(totals_BKV: Tensor, sentences_B: Tensor, length: int) -> Tensor:
    return totals_BKV.argmax(dim=2)  # the first of equals, as in stable_topk
