"""Validation scores what evaluation would score, in any language, and test sets beside it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from dragoman.config import Config, DataConfig
from dragoman.data.prepare import Prepared
from dragoman.errors import DataError
from dragoman.evaluation.metrics import bleu
from dragoman.models import build
from dragoman.search import Hypothesis
from dragoman.training import validation
from dragoman.training.loop import fit
from dragoman.training.validation import (
    NamedTestSet,
    copy_test_sets,
    load_test_sets,
    validate,
)


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
    monkeypatch.setattr(validation, "search_in_batches", lambda *_, **__: found)
    model = build(config.model, len(data.tokenizer))
    expected = bleu(texts, references[: len(texts)], language=language)
    assert validate(model, data, config).score == pytest.approx(expected)
    assert (expected > 50) == (language == "ko"), "characters tell, words do not"


# --- test sets ---


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "news.en").write_text("the dog sees\na \u2028 b\n", encoding="utf-8")
    (tmp_path / "news.de").write_text("sees god eht\nb a\n", encoding="utf-8")
    return [tmp_path / "news.en", tmp_path / "news.de"]


def test_a_set_comes_back_as_it_was(tmp_path: Path, files: list[Path]) -> None:
    (tmp_path / "talks.tsv").write_text("x\ty\n", encoding="utf-8")
    copy_test_sets(tmp_path / "run", [files, [tmp_path / "talks.tsv"]], DataConfig())
    news, talks = load_test_sets(tmp_path / "run")
    assert (news.name, len(news.source), news.target) == ("news", 2, ["sees god eht", "b a"])
    assert talks == NamedTestSet("talks", ["x"], ["y"])
    assert load_test_sets(tmp_path / "nowhere") == []


def test_two_sets_of_one_name_and_an_empty_one_are_refused(
    tmp_path: Path, files: list[Path]
) -> None:
    with pytest.raises(DataError, match="another --test is called news"):
        copy_test_sets(tmp_path / "run", [files, files], DataConfig())
    for file in files:
        file.write_text("")
    with pytest.raises(DataError, match="no pairs"):
        copy_test_sets(tmp_path / "other", [files], DataConfig())


@pytest.mark.slow
def test_its_score_is_recorded_also_after_a_resume(
    tiny: Config, prepared: Prepared, tmp_path: Path, files: list[Path]
) -> None:
    run = tmp_path / "run"
    copy_test_sets(run, [files], DataConfig())
    more = ["training.validate_every=2", "training.checkpoint_every=2"]
    for steps, resume in ((2, False), (4, True)):
        config = tiny.overridden([f"training.steps={steps}", *more])
        fit(config, prepared, run, resume=resume, quiet=True)
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    found = [e for e in map(json.loads, lines) if e["kind"] == "valid"]
    assert [entry["step"] for entry in found] == [2, 4]
    assert all(0 <= entry["bleu/news"] <= 100 for entry in found)
