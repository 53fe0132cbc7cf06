"""Beam search (§6.1) works over any model.

At each step the candidates are all hypotheses one piece longer. Endings among the best K of them
are finished; the best K others go on. A sentence ends when K hypotheses have finished and the best
of them is at least as probable as any living one, or when no living one can still be among the
best: log-probabilities only fall and the penalty only grows, so whatever continues a hypothesis of
sum s scores at most s / penalty(longest). docs/search.md has the proof.
"""

# B sentences still searched, K beams, C = 2 K candidates, N best finished, T pieces, V vocabulary

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.models.api import Model, Rows
from dragoman.search.allowed_outputs import AllowedOutputs, Constraint
from dragoman.search.options import (
    Hypothesis,
    SearchOptions,
    fallback_hypothesis,
    length_penalty,
    refuse_nan,
)
from dragoman.text.special_tokens import BOS, EOS, PAD

ChooseCandidates = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""It gets the log-probabilities of all candidates (B K V), the rows of the source they belong to
(B) and the pieces so far (B K T), and returns 2 K candidates: their log-probabilities, and where
they stood in K V (B C each). Of the first K, endings end; of all, the first K others go on."""


@dataclass(frozen=True, slots=True)
class FinishedHypotheses:
    """Hold the best finished hypotheses of each sentence, best first; −∞ where there is none."""

    scores_BN: Tensor
    sums_BN: Tensor
    lengths_BN: Tensor
    ids_BNT: Tensor
    running_BNT: Tensor
    """This is the sum of log-probabilities after each piece."""

    @classmethod
    def empty(cls, sentences: int, size: int, device: torch.device) -> FinishedHypotheses:
        """Return room for `size` hypotheses a sentence."""
        empty_BN = torch.full((sentences, size), -torch.inf, device=device)
        lengths_BN = torch.zeros_like(empty_BN, dtype=torch.int64)
        ids_BNT, running_BNT = lengths_BN[:, :, None], empty_BN[:, :, None]
        return cls(
            empty_BN.double(), empty_BN, lengths_BN, ids_BNT[:, :, :0], running_BNT[:, :, :0]
        )

    def add(
        self, sums_BK: Tensor, ids_BKT: Tensor, running_BKT: Tensor, penalty: Tensor
    ) -> FinishedHypotheses:
        """Return the best with new ones, all of one length, added; of equals the older stays."""
        length, size = ids_BKT.shape[2], self.scores_BN.shape[1]
        scores_BX = torch.cat([self.scores_BN, sums_BK.double() / penalty], dim=1)
        scores_BX, order_BX = scores_BX.sort(dim=1, descending=True, stable=True)
        order_BN = order_BX[:, :size]
        lengths_BX = torch.cat([self.lengths_BN, torch.full_like(order_BX[:, size:], length)], 1)
        return FinishedHypotheses(
            scores_BX[:, :size],
            torch.cat([self.sums_BN, sums_BK], 1).gather(1, order_BN),
            lengths_BX.gather(1, order_BN),
            _merge(self.ids_BNT, ids_BKT, order_BN),
            _merge(self.running_BNT, running_BKT, order_BN),
        )

    def keep(self, rows_B: Tensor) -> FinishedHypotheses:
        """Return those of these sentences only."""
        return FinishedHypotheses(
            self.scores_BN[rows_B],
            self.sums_BN[rows_B],
            self.lengths_BN[rows_B],
            self.ids_BNT[rows_B],
            self.running_BNT[rows_B],
        )

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return every sentence's hypotheses, on the host."""
        columns = (self.ids_BNT, self.lengths_BN, self.scores_BN, self.sums_BN, self.running_BNT)
        return [
            [
                Hypothesis.from_running_sums(ids[:n], score, log_prob, running[:n])
                for ids, n, score, log_prob, running in zip(*row, strict=True)
                if score != -torch.inf
            ]
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ]


@torch.no_grad()
def beam_search(
    model: Model,
    source: Rows,
    options: SearchOptions,
    *,
    prefixes: list[list[int]] | None = None,
    constraint: Constraint | None = None,
    choose: ChooseCandidates | None = None,
) -> list[list[Hypothesis]]:
    """Return the `n_best` best hypotheses found of each sentence, best first.

    `source` has one sentence a row, each ending in EOS. There are fewer than `n_best` where fewer
    are possible, and the prefix alone, with score −∞, where none is. Candidates are chosen by
    log-probability, unless `choose` does it.
    """
    allowed = AllowedOutputs(source, model.targets, options, prefixes, constraint)
    if not allowed.sentences:
        return []
    results: list[list[Hypothesis]] = [[] for _ in allowed.sentences]
    device, beams = source.ids_RL.device, options.beam
    penalties = length_penalties(max(allowed.max_lengths), options.length_penalty, device)
    sentences = len(allowed.sentences)
    state = model.start(source).expand(beams)
    finished = FinishedHypotheses.empty(sentences, options.n_best, device)
    ended_B = torch.zeros(sentences, dtype=torch.int64, device=device)
    ids_BKT = torch.zeros(sentences, beams, 0, dtype=torch.int64, device=device)
    last_BK = torch.full((sentences, beams), BOS, dtype=torch.int64, device=device)
    # All beams begin alike, so only the first counts.
    sums_BK = torch.full((sentences, beams), -torch.inf, device=device)
    sums_BK[:, 0] = 0.0
    running_BKT = sums_BK[:, :, None][:, :, :0]

    for length in count():
        log_probs_BKV, state = model.step(last_BK, state)
        totals_BKV = allowed.score_extensions(sums_BK, log_probs_BKV, ids_BKT)
        # No more than K of the best 2 K can be endings, which leaves K to go on.
        if choose is None:
            best_BC, index_BC = stable_topk(totals_BKV.flatten(1), 2 * beams)
        else:
            best_BC, index_BC = choose(totals_BKV, allowed.sentences_B, ids_BKT)
        parents_BC, pieces_BC = index_BC // model.targets, index_BC % model.targets
        ends_BC = pieces_BC == EOS

        final_BK = best_BC[:, :beams].masked_fill(~ends_BC[:, :beams], -torch.inf)
        finished = finished.add(
            final_BK,
            _pick(ids_BKT, parents_BC[:, :beams]),
            _pick(running_BKT, parents_BC[:, :beams]),
            penalties[length],
        )
        ended_B = ended_B + (final_BK > -torch.inf).sum(1)

        going_BK = ends_BC.int().argsort(dim=1, stable=True)[:, :beams]
        sums_BK = best_BC.gather(1, going_BK)
        parents_BK, last_BK = parents_BC.gather(1, going_BK), pieces_BC.gather(1, going_BK)
        ids_BKT = torch.cat([_pick(ids_BKT, parents_BK), last_BK[:, :, None]], dim=2)
        running_BKT = torch.cat([_pick(running_BKT, parents_BK), sums_BK[:, :, None]], dim=2)

        best_alive_B = sums_BK.max(dim=1).values
        # Where a model is sure of itself, unlikely beams end early: wait for the likely one.
        overtaken_B = finished.sums_BN.max(dim=1).values >= best_alive_B
        done_B = (ended_B >= beams) & overtaken_B | (best_alive_B == -torch.inf)
        if options.stop_early:
            bound_B = best_alive_B.double() / penalties[allowed.max_lengths_B]
            done_B |= finished.scores_BN[:, -1] >= bound_B
        done = done_B.tolist()  # the one wait of a step
        if any(done):
            found = finished.keep(done_B).hypotheses()
            for row, hypotheses in zip(_where(done, True), found, strict=True):
                results[allowed.sentences[row]] = hypotheses or [
                    fallback_hypothesis(allowed.prefixes[row])
                ]
            rows = _where(done, False)
            if not rows:
                return refuse_nan(results)
            allowed.keep(rows)
            rows_B = torch.tensor(rows, device=device)
            state, finished, ended_B = state.keep(rows_B), finished.keep(rows_B), ended_B[rows_B]
            ids_BKT, last_BK, sums_BK = ids_BKT[rows_B], last_BK[rows_B], sums_BK[rows_B]
            parents_BK, running_BKT = parents_BK[rows_B], running_BKT[rows_B]
        state = state.reorder(parents_BK)
    raise AssertionError("unreachable")


def _pick(values_BKT: Tensor, parents_BX: Tensor) -> Tensor:
    return values_BKT.gather(1, parents_BX[:, :, None].expand(-1, -1, values_BKT.shape[2]))


def _merge(old_BNT: Tensor, new_BKT: Tensor, order_BN: Tensor) -> Tensor:
    """Return the chosen ones of the old and the new; the old are shorter, and padded."""
    room = new_BKT.shape[2] - old_BNT.shape[2]
    return _pick(torch.cat([functional.pad(old_BNT, (0, room), value=PAD), new_BKT], 1), order_BN)


def _where(flags: list[bool], value: bool) -> list[int]:
    return [row for row, flag in enumerate(flags) if flag is value]


def stable_topk(values_BN: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` greatest of each row and their indices, best first, of equals the first.

    The result is the same on every device and in every batch: B C of B N.
    """
    wanted = min(count, values_BN.shape[1])
    # On CUDA topk chooses the first of equals, in any order. On the CPU it chooses any, which
    # matters where the last one chosen equals the first one left out: rare, and seen by asking
    # for one more.
    spare = 0 if values_BN.is_cuda else min(1, values_BN.shape[1] - wanted)
    top_BC, index_BC = values_BN.topk(wanted + spare, dim=1)
    if spare:
        last_B, next_B = top_BC[:, wanted - 1], top_BC[:, wanted]
        if bool(((last_B == next_B) & (last_B > -torch.inf)).any()):
            top_BC, index_BC = values_BN.sort(dim=1, descending=True, stable=True)
    index_BC, order_BC = index_BC[:, :wanted].sort(dim=1)
    top_BC, again_BC = top_BC.gather(1, order_BC).sort(dim=1, descending=True, stable=True)
    return top_BC, index_BC.gather(1, again_BC)


def length_penalties(longest: int, alpha: float, device: torch.device) -> Tensor:
    """Return the length penalty of 0 to `longest` pieces; in double, so that all searches agree."""
    values = [length_penalty(pieces, alpha) for pieces in range(longest + 1)]
    return torch.tensor(values, dtype=torch.float64, device=device)
