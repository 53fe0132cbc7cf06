"""The likeliest next words of a translation are found, and what each would lead to."""

# B sentences, K hypotheses of each, T pieces so far, W words at work, V vocabulary

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log
from typing import Final

import torch
from torch import Tensor

from dragoman.inference.translation_types import Alternative
from dragoman.models import Model
from dragoman.search import SearchOptions, search
from dragoman.search.allowed_outputs import NEVER, Constraint
from dragoman.search.batching import search_in_batches, source_rows
from dragoman.search.beam import stable_topk
from dragoman.text.special_tokens import BOS, EOS
from dragoman.text.tokenizer import Tokenizer

MAX_WORD_PIECES: Final = 24
MIN_END_PROBABILITY: Final = 0.1
"""What ends with less probability than this is not a word but the beginning of one."""


def find_alternatives(
    model: Model,
    tokenizer: Tokenizer,
    source: Sequence[int],
    prefix: Sequence[int],
    starts_V: Tensor,
    count: int,
    options: SearchOptions,
) -> list[Alternative]:
    """Return the `count` likeliest next words after a prefix; `starts` begin words."""
    words: dict[str, tuple[list[int], float]] = {}
    for ids, probability in _next_words(model, source, prefix, starts_V, count):
        word = tokenizer.decode(ids)
        if word or not ids:  # a piece may spell nothing
            spelling, total = words.get(word, (ids, 0.0))
            words[word] = spelling, total + probability
    best = sorted(words.items(), key=lambda item: -item[1][1])[:count]
    begins = [[*prefix, *ids] for _, (ids, _) in best]
    end_V = torch.arange(len(starts_V), device=starts_V.device) == EOS
    follows = [starts_V | end_V if word else end_V for word, _ in best]
    completed = search_in_batches(
        model,
        [source] * len(best),
        lambda rows, forced, constraint: search(
            model, rows, options, prefixes=forced, constraint=constraint
        ),
        batch_tokens=len(best) * (len(source) + 1),
        prefixes=begins,
        constrain=lambda rows: _WordEnds(
            [len(begins[i]) for i in rows], torch.stack([follows[i] for i in rows])
        ),
    )
    return [
        Alternative(word, probability, tokenizer.decode(one[0].ids), one[0].score)
        for (word, (_, probability)), one in zip(best, completed, strict=True)
    ]


class _WordEnds(Constraint):
    """Require that a word ends after so many pieces of a hypothesis."""

    def __init__(self, pieces: Sequence[int], follows_BV: Tensor) -> None:
        """Take, for each row of the source, after how many pieces, and what may follow there."""
        self._pieces, self._follows_BV = pieces, follows_BV
        self._pieces_B = torch.tensor(pieces, device=follows_BV.device)

    def allowed(self, sentences_B: Tensor, ids_BKT: Tensor, room_B: Tensor) -> Tensor:
        """Return which pieces may follow, B K V: see Constraint."""
        here_B1 = (self._pieces_B[sentences_B] == ids_BKT.shape[2])[:, None]
        may_BV = self._follows_BV[sentences_B] | ~here_B1
        return may_BV[:, None].expand(-1, ids_BKT.shape[1], -1)

    def shortest(self, sentence: int) -> int:
        """Return the fewest pieces an output may have: see Constraint."""
        return self._pieces[sentence]


@torch.no_grad()
def _next_words(
    model: Model, source: Sequence[int], prefix: Sequence[int], starts_V: Tensor, count: int
) -> list[tuple[list[int], float]]:
    """Return words as pieces, with their probabilities; one may be there in several spellings.

    A word ends where a piece that begins one, or EOS, follows. Without pieces the sentence ends.
    """
    device = starts_V.device
    state = model.start(source_rows([source], device))
    log_probs_V = starts_V
    for piece in [BOS, *prefix]:
        log_probs_11V, state = model.step(torch.tensor([[piece]], device=device), state)
        log_probs_V = log_probs_11V[0, 0]
    found: list[tuple[list[int], float]] = [([], float(log_probs_V[EOS]))]
    sums_W, last_W = _likeliest(log_probs_V.masked_fill(~starts_V, -inf)[None], max(8, 2 * count))
    words = [[piece] for piece in last_W.tolist()]
    state = state.expand(len(words))
    for _ in range(MAX_WORD_PIECES):
        log_probs_1WV, state = model.step(last_W[None], state)
        log_probs_WV = log_probs_1WV[0]
        over_W = log_probs_WV.masked_fill(~starts_V, -inf).logsumexp(1)
        over_W = torch.logaddexp(over_W, log_probs_WV[:, EOS])
        ended = zip(words, (sums_W + over_W).tolist(), over_W.tolist(), strict=True)
        found += [(word, total) for word, total, over in ended if over > log(MIN_END_PROBABILITY)]
        found.sort(key=lambda one: -one[1])
        totals_WV = sums_W[:, None] + log_probs_WV.masked_fill(starts_V, -inf)
        sums_W, index_W = _likeliest(totals_WV, len(words))
        if len(found) >= count and float(sums_W.max()) <= found[count - 1][1]:
            break  # a longer word is less probable than all of these
        parents_W, last_W = index_W // len(starts_V), index_W % len(starts_V)
        going = zip(parents_W.tolist(), last_W.tolist(), strict=True)
        words = [[*words[parent], piece] for parent, piece in going]
        state = state.reorder(parents_W[None])
    return [(ids, exp(value)) for ids, value in found if value > -inf]


def _likeliest(totals_WV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the best totals of pieces that continue a word, and where they stood in W V."""
    totals_WV[:, [*NEVER, EOS]] = -inf
    values_1W, index_1W = stable_topk(totals_WV.reshape(1, -1), count)
    return values_1W[0], index_1W[0]
