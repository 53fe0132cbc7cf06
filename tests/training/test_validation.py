"""Validation scores what evaluation would score, in any language."""

from __future__ import annotations

import dataclasses

import pytest

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.evaluation.metrics import bleu
from dragoman.models import build
from dragoman.search import Hypothesis
from dragoman.training import validation
from dragoman.training.validation import validate


@pytest.mark.parametrize("language", ["de", "zh", "ko"])
def test_validation_counts_the_words_of_the_target_language(
    language: str, tiny: Config, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny.updated({"data": {"languages": ["en", language]}})
    count = config.training.validate_sentences
    references = [text.replace(" ", "") for text in prepared.valid_target]  # no spaces at all
    data = dataclasses.replace(prepared, valid_target=references)
    texts = [text[:-2] for text in references[:count]]
    found = [[Hypothesis(data.tokenizer.encode(text), 0.0, 0.0)] for text in texts]
    monkeypatch.setattr(validation, "search_many", lambda *_, **__: found)
    model = build(config.model, len(data.tokenizer))
    expected = bleu(texts, references[: len(texts)], language=language)
    assert validate(model, data, config).score == pytest.approx(expected)
    assert (expected > 50) == (language == "ko"), "characters tell, words do not"
