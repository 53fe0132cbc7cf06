"""Perplexity and BLEU, or F1 of trees, on held-out pairs, while training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import torch

from dragoman.config import Config
from dragoman.data.batches import Batches
from dragoman.data.languages import tokenizer_for
from dragoman.data.prepare import Prepared
from dragoman.errors import TrainingError
from dragoman.models import Model
from dragoman.search import SearchOptions, greedy_search
from dragoman.search.grammar import constrain
from dragoman.search.many import search_many
from dragoman.text.trees.bracketing import parse_tree
from dragoman.text.trees.evalb import PREDICTED_TAGS, score_trees
from dragoman.training.held_out import HeldOut
from dragoman.training.loss import Criterion, TensorBatch
from dragoman.training.shortage import is_shortage

__all__ = ["Validation", "validate"]


@dataclass(frozen=True, slots=True)
class Validation:
    """The scores of one moment."""

    loss: float
    """Negative log-likelihood a target piece, without label smoothing."""
    score: float | None
    """Of what greedy search finds; None: not asked for."""
    others: dict[str, float] = field(default_factory=dict)
    """The same of other sets, by their names."""
    metric: str = "BLEU"
    """What the score is: BLEU, detokenised, as sacreBLEU computes it; or F1, as EVALB does."""

    @property
    def perplexity(self) -> float:
        """A target piece."""
        return math.exp(min(self.loss, 100.0))

    def judged_by(self, metric: str) -> float:
        """What patience goes by; higher is better."""
        return self.score if metric == "score" and self.score is not None else -self.loss


def validate(
    model: Model, data: Prepared, config: Config, others: Sequence[HeldOut] = ()
) -> Validation:
    """Score the model on the validation pairs and on other sets; it is left in training mode."""
    model.eval()
    try:
        metric, compute = _METRICS[config.data.task]
        loss, score = _loss(model, data, config), None
        if count := config.training.validate_sentences:
            source, target = data.valid_source[:count], data.valid_target[:count]
            score = compute(model, data, config, source, target)
        scores = {s.name: compute(model, data, config, s.source, s.target) for s in others}
        return Validation(loss, score, scores, metric)
    except Exception as error:
        if not is_shortage(error):
            raise
        raise TrainingError(
            f"out of memory while validating; lower search.batch_tokens = "
            f"{config.search.batch_tokens}, or training.batch_tokens to leave more room, and resume"
        ) from None
    finally:
        model.train()


@torch.no_grad()
def _loss(model: Model, data: Prepared, config: Config) -> float:
    device = next(model.parameters()).device
    longest = max(data.valid.meta.longest_source, data.valid.meta.longest_target)
    batches = Batches(
        data.valid,
        batch_tokens=min(config.training.tokens, 16_384),
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


def _bleu(
    model: Model, data: Prepared, config: Config, sources: Sequence[str], references: Sequence[str]
) -> float:
    import sacrebleu

    found = _translated(model, data, config, sources)
    words = tokenizer_for(next(iter(config.data.languages[1:]), None))
    score = sacrebleu.corpus_bleu(found, [references], force=True, tokenize=words)
    return float(score.score)


def _f1(
    model: Model, data: Prepared, config: Config, sources: Sequence[str], references: Sequence[str]
) -> float:
    found = _translated(model, data, config, sources)
    gold, trees = list(map(parse_tree, references)), list(map(parse_tree, found))
    return score_trees(gold, trees, PREDICTED_TAGS).f1


def _translated(model: Model, data: Prepared, config: Config, sources: Sequence[str]) -> list[str]:
    """What greedy search finds for each source."""
    tokenizer = data.tokenizer
    options = SearchOptions.from_config(config.search, beam=1)
    found = search_many(
        model,
        tokenizer.encode_batch(sources),
        lambda rows, prefixes, constraint: greedy_search(
            model, rows, options, prefixes=prefixes, constraint=constraint
        ),
        batch_tokens=config.search.batch_tokens,
        constrain=constrain(tokenizer, sources, model),
    )
    return [
        tokenizer.decode_target(best.ids, source)
        for (best, *_), source in zip(found, sources, strict=True)
    ]


_METRICS: Final = {"translation": ("BLEU", _bleu), "parsing": ("F1", _f1)}
"""What is scored in each task, and how."""
