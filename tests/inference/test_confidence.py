"""Confidence: probabilities that mean what they say."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman.errors import DataError, ModelError
from dragoman.inference import Translation
from dragoman.inference.confidence import (
    CALIBRATION_FILE,
    SENTENCE_FEATURES,
    WORD_FEATURES,
    Calibration,
    calibrate,
    calibration_error,
    in_reference,
    spoken_words,
)
from dragoman.inference.join_translations import Between, join_translations
from dragoman.inference.translation_types import Word

NEUTRAL = Calibration((0.0,) * WORD_FEATURES, (0.0,) * SENTENCE_FEATURES)


def said(text: str, tokens: list[str], log_probs: list[float]) -> Translation:
    return Translation("", text, 0.0, tuple(tokens), log_probs=(*log_probs, -0.1))


def made_up(count: int, seed: int) -> tuple[list[Translation], list[str]]:
    """Translations whose words are right as often as the square root of their probability says."""
    chance = random.Random(seed)
    found, references = [], []
    for _ in range(count):
        tokens, log_probs, reference = [], [], []
        for place in range(chance.randint(3, 15)):
            probability = chance.uniform(0.05, 1.0)
            word = f"{place}w{chance.randint(0, 999)}"
            tokens.append(f"▁{word}")
            log_probs.append(math.log(probability))
            reference.append(word if chance.random() < math.sqrt(probability) else "other")
        found.append(said(" ".join(t[1:] for t in tokens), tokens, log_probs))
        references.append(" ".join(reference))
    return found, references


def test_words_get_the_probabilities_of_their_pieces() -> None:
    one = said("Hello world", ["▁Hel", "lo", "▁world"], [-0.5, -0.25, -1.0])
    assert spoken_words(one) == [("Hello", [-0.5, -0.25]), ("world", [-1.0])]


def test_a_word_is_right_as_often_as_the_reference_has_it() -> None:
    assert in_reference(["the", "The", "the,", "houses"], "The house, the") == [
        *(True, True, False),
        True,
    ]


def test_what_is_learned_holds_for_sentences_that_were_not_seen() -> None:
    learned = calibrate(*made_up(600, seed=1))
    assert learned.sentence_count == 600
    assert learned.word_error is not None
    assert learned.word_error < 0.05
    found, references = made_up(400, seed=2)
    words = [word for one in found for word in learned.apply(one).words]
    right = [
        label
        for one, reference in zip(found, references, strict=True)
        for label in in_reference(one.text.split(), reference)
    ]
    confidences = np.array([word.confidence for word in words])
    assert calibration_error(confidences, np.array(right, float)) < 0.05
    plain = np.array([math.exp(p) for one in found for p in one.log_probs[:-1]])
    assert calibration_error(plain, np.array(right, float)) > 0.1


def test_the_calibration_error_is_the_mean_distance() -> None:
    confidences = np.array([0.95, 0.95, 0.15, 0.15])
    assert calibration_error(confidences, np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.3)


def test_a_word_that_was_put_back_is_sure() -> None:
    one = said("see https://x.org now", ["▁see", "▁Anna", "▁now"], [-1.0, -1.0, -1.0])
    assert [word.confidence for word in NEUTRAL.apply(one).words] == [0.5, 1.0, 0.5]
    assert NEUTRAL.apply(one).confidence == 0.5


def test_confidences_of_sentences_are_joined_by_their_words() -> None:
    one = Translation("a", "b", 0.0, (), confidence=0.8, words=(Word("b", 0.8),) * 3)
    other = replace(one, confidence=0.4, words=(Word("b", 0.4),))
    joined = join_translations("a a", [one, Between(" ", " "), other])
    assert joined.confidence == pytest.approx(0.7)
    assert len(joined.words) == 4
    assert joined.to_dict()["words"][0] == ["b", 0.8]


def test_few_sentences_are_refused() -> None:
    with pytest.raises(DataError, match="20 sentences: too few to calibrate with"):
        calibrate(*made_up(20, seed=1))


@pytest.mark.parametrize("content", ["{", "[]", '{"words": [1], "sentences": [2]}', '{"words": 3}'])
def test_a_damaged_calibration_is_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / CALIBRATION_FILE).write_text(content)
    with pytest.raises(ModelError, match="run dragoman calibrate again"):
        Calibration.load(tmp_path)


def test_a_calibrated_model_says_how_sure_it_is(trained: Path) -> None:
    translator = dragoman.load(trained)
    assert translator.translate("the old dog").confidence is None
    translator.calibration = replace(NEUTRAL)
    found = translator.translate("the old dog sees. Red cat!", n_best=2)
    assert found.confidence == 0.5
    assert [word.text for word in found.words] == found.text.split()
    assert found.alternatives[0].confidence == 0.5
    assert Calibration.load(trained / "model") is None


def test_a_calibration_is_kept_with_the_model(tmp_path: Path) -> None:
    learned = calibrate(*made_up(100, seed=3))
    learned.save(tmp_path)
    again = Calibration.load(tmp_path)
    assert again is not None
    assert again.words == learned.words
