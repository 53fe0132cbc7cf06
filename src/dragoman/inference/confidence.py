"""Confidence says how probably a word of a translation, or how much of a translation, is right.

The probabilities of a model's pieces are too high or too low for that, in its own way for every
model. On translations that there are references of, two logistic regressions learn what they mean:
one for words, of which some are in the reference, and one for sentences, which have a share of such
words. What they learned lies in the model's directory as ``calibration.json``.
"""

from __future__ import annotations

import difflib
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError, ModelError
from dragoman.inference.translation_types import Translation, Word
from dragoman.messages import counted
from dragoman.system.atomic_files import atomic_write
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.normalization import SPACE_MARK

CALIBRATION_FILE: Final = "calibration.json"
FEWEST_SENTENCES: Final = 100
"""Fewer are not enough to learn from."""
BINS: Final = 10
"""The calibration error is a mean over so many equal ranges of confidence."""
STEM: Final = 5
"""Words with the same first letters, so many of them, count as one: an ending is half right."""

Floats = NDArray[np.float64]
_EDGES: Final = lazy_pattern(r"^\W+|\W+$")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Hold what the probabilities of one model's pieces mean."""

    words: tuple[float, ...]
    """These weigh the features of a word."""
    sentences: tuple[float, ...]
    """These weigh the features of a sentence."""
    sentence_count: int = 0
    """It was learned from so many sentences."""
    word_error: float | None = None
    """On sentences it had not seen, words were off by so much."""
    sentence_error: float | None = None
    """The same for sentences."""

    def save(self, directory: Path) -> None:
        """Write the calibration to ``calibration.json`` of a model directory."""
        table = {"format": 1, **asdict(self)}
        atomic_write(directory / CALIBRATION_FILE, json.dumps(table, indent=2) + "\n")

    @classmethod
    def load(cls, directory: Path) -> Calibration | None:
        """Read what `save` wrote, or return None where a model is not calibrated."""
        path = directory / CALIBRATION_FILE
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            words, sentences = (
                tuple(float(one) for one in table[name]) for name in ("words", "sentences")
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(
                f"{path}: not a calibration file; run dragoman calibrate again"
            ) from None
        if (len(words), len(sentences)) != (WORD_FEATURES, SENTENCE_FEATURES) or not all(
            map(math.isfinite, (*words, *sentences))
        ):
            raise ModelError(
                f"{path}: written by another version of Dragoman; run dragoman calibrate again"
            )
        return cls(words, sentences, int(table.get("sentence_count", 0)))

    def apply(self, found: Translation) -> Translation:
        """Return a translation and its alternatives with their confidences."""
        others = tuple(map(self._apply_one, found.alternatives))
        return replace(self._apply_one(found), alternatives=others)

    def _apply_one(self, found: Translation) -> Translation:
        spoken = spoken_words(found)
        if not spoken:
            return found
        rates = _sigmoid(word_features(spoken) @ np.array(self.words))
        share = float(_sigmoid(sentence_features(spoken) @ np.array(self.sentences)))
        known = [text for text, _ in spoken]
        confidences = dict(_match_words(known, found.text.split()))
        words = tuple(
            # What the model did not say was copied from the source.
            Word(text, round(float(rates[confidences[place]]), 4) if place in confidences else 1.0)
            for place, text in enumerate(found.text.split())
        )
        return replace(found, confidence=round(share, 4), words=words)


# --- features ---


def spoken_words(found: Translation) -> list[tuple[str, list[float]]]:
    """Return the words that the model said, each with the log-probabilities of its pieces."""
    words: list[tuple[str, list[float]]] = []
    for token, log_prob in zip(found.tokens, found.log_probs, strict=False):
        if token.startswith(SPACE_MARK) or not words:
            words.append(("", []))
        text, log_probs = words[-1]
        words[-1] = text + token.replace(SPACE_MARK, ""), [*log_probs, log_prob]
    return [word for word in words if word[0]]


WORD_FEATURES: Final = 6
SENTENCE_FEATURES: Final = 6


def word_features(words: Sequence[tuple[str, list[float]]]) -> Floats:
    """Return the features of each word of a sentence."""
    totals = np.array([_clip(sum(log_probs)) for _, log_probs in words])
    lowest = np.array([_clip(min(log_probs)) for _, log_probs in words])
    before = np.concatenate([[0.0], totals[:-1]])
    mean = np.full(len(words), totals.mean())
    ones = np.ones(len(words))
    return np.stack([ones, totals, np.exp(totals), lowest, before, mean], axis=1)


def sentence_features(words: Sequence[tuple[str, list[float]]]) -> Floats:
    """Return the features of a sentence."""
    totals = np.array([_clip(sum(log_probs)) for _, log_probs in words])
    unsure = float((totals < math.log(0.5)).mean())
    mean = float(np.exp(totals).mean())
    return np.array(
        [1.0, float(totals.mean()), mean, float(totals.min()), unsure, math.log(len(words))]
    )


def _clip(log_prob: float) -> float:
    return max(log_prob, -10.0) if log_prob == log_prob else -10.0


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


def _match_words(known: Sequence[str], words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield which word of a text is which of those the model said, as far as they are equal."""
    matcher = difflib.SequenceMatcher(None, known, words, autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        for offset in range(size):
            yield b + offset, a + offset


# --- learning ---


def calibrate(translations: Sequence[Translation], references: Sequence[str]) -> Calibration:
    """Learn from translations and their references; the errors are of a half not learned from."""
    rows = [
        (spoken, in_reference([text for text, _ in spoken], reference))
        for found, reference in zip(translations, references, strict=True)
        if (spoken := spoken_words(found)) and reference.strip()
    ]
    if len(rows) < FEWEST_SENTENCES:
        raise DataError(
            f"{counted(len(rows), 'sentence')}: too few to calibrate with; give "
            f"{FEWEST_SENTENCES} or more"
        )
    first, second = _learn(rows[::2]), _learn(rows[1::2])
    errors = [_errors(first, rows[1::2]), _errors(second, rows[::2])]
    whole = _learn(rows)
    return replace(
        whole,
        sentence_count=len(rows),
        word_error=round(float(np.mean([one for one, _ in errors])), 4),
        sentence_error=round(float(np.mean([one for _, one in errors])), 4),
    )


def in_reference(words: Sequence[str], reference: str) -> list[bool]:
    """Return which words of a translation are in its reference, each as often as it is there."""
    left = Counter(_stem(word) for word in reference.split())
    found = []
    for word in words:
        stem = _stem(word)
        found.append(left[stem] > 0)
        left[stem] -= 1
    return found


def _stem(word: str) -> str:
    return (_EDGES.sub("", word) or word).lower()[:STEM]


Rows = Sequence[tuple[list[tuple[str, list[float]]], list[bool]]]


def _learn(rows: Rows) -> Calibration:
    features = np.concatenate([word_features(spoken) for spoken, _ in rows])
    right = np.concatenate([np.array(labels, float) for _, labels in rows])
    sentences = np.stack([sentence_features(spoken) for spoken, _ in rows])
    shares = np.array([np.mean(labels) for _, labels in rows])
    return Calibration(tuple(_regress(features, right)), tuple(_regress(sentences, shares)))


def _regress(features: Floats, shares: Floats, penalty: float = 1e-2) -> list[float]:
    """Return the weights of a logistic regression, by Newton's method."""
    weights = np.zeros(features.shape[1])
    ridge = penalty * np.eye(features.shape[1])
    for _ in range(30):
        predicted = _sigmoid(features @ weights)
        slope = features.T @ (shares - predicted) - ridge @ weights
        curve = (features * (predicted * (1 - predicted))[:, None]).T @ features + ridge
        change = np.linalg.solve(curve, slope)
        weights += change
        if np.abs(change).max() < 1e-8:
            break
    return [float(one) for one in weights]


def _errors(calibration: Calibration, rows: Rows) -> tuple[float, float]:
    features = np.concatenate([word_features(spoken) for spoken, _ in rows])
    right = np.concatenate([np.array(labels, float) for _, labels in rows])
    sentences = np.stack([sentence_features(spoken) for spoken, _ in rows])
    shares = np.array([np.mean(labels) for _, labels in rows])
    return (
        calibration_error(_sigmoid(features @ np.array(calibration.words)), right),
        calibration_error(_sigmoid(sentences @ np.array(calibration.sentences)), shares),
    )


def calibration_error(confidences: Floats, right: Floats) -> float:
    """Return the expected calibration error: how far confidence and what is right are apart.

    They are compared within ranges of confidence, weighted by how many are in each.
    """
    bins = np.minimum((confidences * BINS).astype(int), BINS - 1)
    total = 0.0
    for one in np.unique(bins):
        inside = bins == one
        total += inside.sum() * abs(confidences[inside].mean() - right[inside].mean())
    return float(total / len(confidences))
