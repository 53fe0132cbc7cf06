"""In sampling, each piece is drawn with its probability, or with one sharpened or cut off."""

# B sentences, K samples of each, T pieces, V vocabulary, X = B K, C pieces drawn from

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from dragoman.models.api import Model, Rows
from dragoman.search.allowed_outputs import AllowedOutputs, Constraint
from dragoman.search.beam import stable_topk
from dragoman.search.greedy import extend_independently
from dragoman.search.options import Hypothesis, SamplingOptions
from dragoman.search.random_numbers import random_numbers
from dragoman.text.special_tokens import EOS


def sample(
    model: Model,
    source: Rows,
    options: SamplingOptions,
    *,
    prefixes: list[list[int]] | None = None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """Return `samples` hypotheses of each sentence as drawn: unsorted, and perhaps repeated.

    Scores and log-probabilities are the model's own, whatever the temperature. A sentence's random
    numbers depend on the seed and on its own ids, so that batch-mates change nothing.
    """
    allowed = AllowedOutputs(source, model.targets, options, prefixes, constraint)
    uniform_BKT = _random_numbers(source, allowed.max_lengths, options)

    def choose(totals_BKV: Tensor, sentences_B: Tensor, length: int) -> Tensor:
        return draw(totals_BKV, uniform_BKT[sentences_B, :, length], options)

    return extend_independently(model, source, allowed, options, options.samples, choose)


def draw(totals_BKV: Tensor, uniform_BK: Tensor, options: SamplingOptions) -> Tensor:
    """Return where the cumulative probability first exceeds each uniform number of [0, 1): B K."""
    values_XC, index_XC = totals_BKV.flatten(0, 1), None
    # A total is the log-probability plus the same sum for all pieces.
    sums_X1 = values_XC.double().logsumexp(1, keepdim=True) if options.epsilon > 0 else None
    if options.most_pieces is not None:
        values_XC, index_XC = stable_topk(values_XC, options.most_pieces)
    elif options.top_p < 1:
        values_XC, index_XC = values_XC.sort(dim=1, descending=True, stable=True)
    probs_XC = functional.softmax(values_XC.double() / options.temperature, dim=1).nan_to_num()
    mass_XC = probs_XC.cumsum(dim=1)
    if options.top_p < 1:
        probs_XC = probs_XC.masked_fill(mass_XC - probs_XC >= options.top_p, 0.0)
    if sums_X1 is not None:
        rare_XC = values_XC - sums_X1 < math.log(options.epsilon)
        rare_XC[:, 0] = False
        probs_XC = probs_XC.masked_fill(rare_XC, 0.0)
    mass_XC = probs_XC.cumsum(dim=1)
    goal_X1 = uniform_BK.flatten()[:, None] * mass_XC[:, -1:]
    place_X1 = torch.searchsorted(mass_XC, goal_X1, right=True).clamp(max=mass_XC.shape[1] - 1)
    pieces_X1 = place_X1 if index_XC is None else index_XC.gather(1, place_X1)
    return pieces_X1.view_as(uniform_BK)


def _random_numbers(source: Rows, max_lengths: list[int], options: SamplingOptions) -> Tensor:
    """Return a number of [0, 1) for every piece of every sample, B K T: all the randomness."""
    rows = zip(source.ids_RL.tolist(), source.segments_RL.tolist(), max_lengths, strict=True)
    uniform = []
    for ids, segments, longest in rows:
        sentence = ids[: sum(segments)]
        if sentence[-1:] == [EOS]:
            sentence.pop()
        uniform.append(torch.from_numpy(random_numbers(sentence, longest, options)).T)
    if not uniform:
        return torch.zeros(0, options.samples, 1)
    return pad_sequence(uniform, batch_first=True).transpose(1, 2).to(source.ids_RL.device)
