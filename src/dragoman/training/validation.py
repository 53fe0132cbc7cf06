"""While training, held-out pairs are scored: perplexity and BLEU, or F1 of trees.

Test sets given with --test are scored beside the validation set, and never chosen by. They are
copied into the run, so that a resumed run has them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import torch

from dragoman.config import Config, DataConfig
from dragoman.data.batching.batches import Batches
from dragoman.data.prepare import Prepared
from dragoman.data.readers import open_corpus
from dragoman.errors import DataError, TrainingError
from dragoman.models import Model
from dragoman.search import SearchOptions, greedy_search
from dragoman.search.batching import search_in_batches
from dragoman.search.constraints.tree_grammar import tree_constraints
from dragoman.system.atomic_files import atomic_write
from dragoman.system.out_of_memory import is_out_of_memory
from dragoman.training.loss import Criterion, TensorBatch
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.evalb import PREDICTED_TAGS, score_trees


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Hold the scores of the model at one step."""

    loss: float
    """This is the negative log-likelihood a target piece, without label smoothing."""
    score: float | None
    """This is the score of greedy search; None if training.validate_sentences is 0."""
    test_scores: dict[str, float] = field(default_factory=dict)
    """These are the scores of the test sets, by their names."""
    metric: str = "BLEU"
    """This names the score: BLEU, detokenised, as sacreBLEU computes it; or F1, as EVALB does."""

    @property
    def perplexity(self) -> float:
        """Return the perplexity a target piece."""
        return math.exp(min(self.loss, 100.0))

    def patience_value(self, metric: str) -> float:
        """Return the value that patience goes by, of which higher is better."""
        return self.score if metric == "score" and self.score is not None else -self.loss


def validate(
    model: Model, data: Prepared, config: Config, test_sets: Sequence[NamedTestSet] = ()
) -> ValidationResult:
    """Score the model on the validation pairs and on test sets, and leave it in training mode."""
    model.eval()
    try:
        metric, compute = _METRICS[config.data.task]
        loss, score = _loss(model, data, config), None
        if count := config.training.validate_sentences:
            source, target = data.valid_source[:count], data.valid_target[:count]
            score = compute(model, data, config, source, target)
        scores = {s.name: compute(model, data, config, s.source, s.target) for s in test_sets}
        return ValidationResult(loss, score, scores, metric)
    except Exception as error:
        if not is_out_of_memory(error):
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
        nll += criterion(TensorBatch.from_batch(batch, device))[1].item()
        tokens += batch.target_tokens
    return nll / tokens


def _bleu(
    model: Model, data: Prepared, config: Config, sources: Sequence[str], references: Sequence[str]
) -> float:
    from dragoman.text.bleu import make_bleu

    found = _translate(model, data, config, sources)
    bleu = make_bleu(config.data.target_language)
    return float(bleu.corpus_score(found, [references]).score)


def _f1(
    model: Model, data: Prepared, config: Config, sources: Sequence[str], references: Sequence[str]
) -> float:
    found = _translate(model, data, config, sources)
    gold, trees = list(map(parse_tree, references)), list(map(parse_tree, found))
    return score_trees(gold, trees, PREDICTED_TAGS).f1


def _translate(model: Model, data: Prepared, config: Config, sources: Sequence[str]) -> list[str]:
    """Return what greedy search finds for each source."""
    tokenizer = data.tokenizer
    options = SearchOptions.from_config(config.search, beam=1)
    found = search_in_batches(
        model,
        tokenizer.encode_batch(sources),
        lambda rows, prefixes, constraint: greedy_search(
            model, rows, options, prefixes=prefixes, constraint=constraint
        ),
        batch_tokens=config.search.batch_tokens,
        constrain=(
            None if tokenizer.targets_are_text else tree_constraints(tokenizer, sources, model)
        ),
    )
    return [
        tokenizer.decode_target(best.ids, source)
        for (best, *_), source in zip(found, sources, strict=True)
    ]


_METRICS: Final = {"translation": ("BLEU", _bleu), "parsing": ("F1", _f1)}
"""This maps each task to the name of its score and the function that computes it."""


# --- test sets ---


@dataclass(frozen=True, slots=True)
class NamedTestSet:
    """Hold a set of pairs and its name."""

    name: str
    source: list[str]
    target: list[str]


def copy_test_sets(run: Path, sets: Sequence[Sequence[Path]], config: DataConfig) -> None:
    """Copy test sets, each given as the files of a corpus, into a run."""
    names: set[str] = set()
    for files in sets:
        name = files[0].name.split(".")[0]
        if name in names:
            raise DataError(f"{files[0]}: another --test is called {name}; rename one")
        names.add(name)
        corpus = open_corpus(files, config)
        pairs = [(pair.source, pair.target) for pair in corpus]
        if corpus.malformed:
            raise DataError(corpus.malformed[0])  # a set that is scored must be complete
        if not pairs:
            raise DataError(f"{files[0]}: contains no pairs; leave out this --test")
        lines = (json.dumps({"source": s, "target": t}, ensure_ascii=False) for s, t in pairs)
        atomic_write(_test_set_directory(run) / f"{name}.jsonl", "\n".join(lines) + "\n")


def load_test_sets(run: Path) -> list[NamedTestSet]:
    """Return the test sets that were copied into a run, in the order of their names."""
    found = []
    for file in sorted(_test_set_directory(run).glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            pairs = [json.loads(line) for line in lines]
        found.append(
            NamedTestSet(file.stem, [p["source"] for p in pairs], [p["target"] for p in pairs])
        )
    return found


def _test_set_directory(run: Path) -> Path:
    return run / "tests"
