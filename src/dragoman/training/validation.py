"""Perplexity and BLEU on held-out pairs, while training."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from dragoman.config import Config
from dragoman.data.batches import Batches
from dragoman.data.languages import tokenizer_for
from dragoman.data.prepare import Prepared
from dragoman.models import Model
from dragoman.search import SearchOptions, greedy_search
from dragoman.search.many import search_many
from dragoman.training.loss import Criterion, TensorBatch

__all__ = ["Validation", "validate"]


@dataclass(frozen=True, slots=True)
class Validation:
    """The scores of one moment."""

    loss: float
    """Negative log-likelihood a target piece, without label smoothing."""
    bleu: float | None
    """Of greedy translations, detokenised, as sacreBLEU computes it; None: not asked for."""

    @property
    def perplexity(self) -> float:
        """A target piece."""
        return math.exp(min(self.loss, 100.0))

    def score(self, metric: str) -> float:
        """What patience goes by; higher is better."""
        return self.bleu if metric == "bleu" and self.bleu is not None else -self.loss


def validate(model: Model, data: Prepared, config: Config) -> Validation:
    """Score the model on the validation pairs; it is left in training mode."""
    model.eval()
    try:
        return Validation(_loss(model, data, config), _bleu(model, data, config))
    finally:
        model.train()


@torch.no_grad()
def _loss(model: Model, data: Prepared, config: Config) -> float:
    device = next(model.parameters()).device
    longest = max(data.valid.meta.longest_source, data.valid.meta.longest_target)
    batches = Batches(
        data.valid,
        batch_tokens=min(config.training.batch_tokens, 16_384),
        row_length=max(config.data.row_length, longest + 1),
        seed=0,
        shuffle=False,
    )
    criterion = Criterion(model).eval()
    nll, tokens = 0.0, 0
    for batch in batches.epoch():
        nll += criterion(TensorBatch.of(batch, device))[1].item()
        tokens += batch.target_tokens
    return nll / tokens


def _bleu(model: Model, data: Prepared, config: Config) -> float | None:
    count = min(config.training.validate_sentences, len(data.valid_source))
    if count == 0:
        return None
    import sacrebleu

    options = SearchOptions.from_config(config.search, beam=1)
    found = search_many(
        model,
        data.tokenizer.encode_batch(data.valid_source[:count]),
        lambda rows, prefixes: greedy_search(model, rows, options, prefixes=prefixes),
        batch_tokens=config.search.batch_tokens,
    )
    texts = [data.tokenizer.decode(best.ids) for best, *_ in found]
    words = tokenizer_for(next(iter(config.data.languages[1:]), None))
    references = data.valid_target[:count]
    score = sacrebleu.corpus_bleu(texts, [references], force=True, tokenize=words)
    return float(score.score)
