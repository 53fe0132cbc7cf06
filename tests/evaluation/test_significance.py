from __future__ import annotations

import json
import random

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from dragoman.errors import ConfigError, DataError
from dragoman.evaluation import compare, score
from dragoman.evaluation.significance import p_value

WORDS = ["the", "a", "dog", "cat", "house", "runs", "sees", "small", "old", "with", "of", "bread"]


def _references(sentences: int = 80) -> list[str]:
    rng = random.Random(7)
    return [" ".join(rng.choices(WORDS, k=rng.randint(6, 14))) for _ in range(sentences)]


def _spoiled(lines: list[str], share: float, seed: int) -> list[str]:
    """Each word replaced with this probability."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split())
        for line in lines
    ]


def test_a_system_does_not_differ_from_itself() -> None:
    references = _references()
    system = _spoiled(references, 0.3, seed=1)
    for difference in compare(system, system, references, resamples=100).values.values():
        assert difference.delta == 0
        assert difference.interval == (0, 0)
        assert difference.p_value == 1


def test_equally_good_systems_do_not_differ_significantly() -> None:
    references = _references()
    found = compare(
        _spoiled(references, 0.3, seed=1),
        _spoiled(references, 0.3, seed=2),
        references,
        resamples=300,
    )
    for difference in found.values.values():
        low, high = difference.interval
        assert low < 0 < high
        assert difference.p_value > 0.05


def test_a_clearly_better_system_is_significantly_better() -> None:
    references = _references()
    worse, better = _spoiled(references, 0.4, seed=1), _spoiled(references, 0.2, seed=2)
    found = compare(worse, better, references, resamples=300)
    for name in ("bleu", "chrf"):
        assert found[name].delta > 0
        assert found[name].interval[0] > 0
    assert found["ter"].delta < 0
    assert found["ter"].interval[1] < 0
    backwards = compare(better, worse, references, resamples=300)
    for name, difference in found.values.items():
        assert difference.p_value < 0.05
        assert backwards[name].delta == -difference.delta
        assert backwards[name].p_value == difference.p_value


def test_the_scores_are_those_of_score() -> None:
    references = _references(20)
    one, other = _spoiled(references, 0.5, seed=1), _spoiled(references, 0.1, seed=2)
    found = compare(one, other, references, resamples=100)
    for name, difference in found.values.items():
        assert difference.baseline == pytest.approx(score(one, references)[name])
        assert difference.system == pytest.approx(score(other, references)[name])


@pytest.mark.slow
def test_the_interval_is_that_of_test_sets_really_drawn() -> None:
    references = _references(15)
    one, other = _spoiled(references, 0.4, seed=1), _spoiled(references, 0.3, seed=2)
    found = compare(one, other, references, resamples=100, seed=5)
    rng, deltas = np.random.default_rng(5), []
    for _ in range(100):
        drawn = rng.integers(15, size=15)
        before, after, truth = ([lines[i] for i in drawn] for lines in (one, other, references))
        scored = score(before, truth), score(after, truth)
        deltas.append([scored[1][name] - scored[0][name] for name in found.values])
    for difference, column in zip(found.values.values(), np.array(deltas).T, strict=True):
        assert difference.interval == pytest.approx(np.percentile(column, [2.5, 97.5]))
        assert difference.p_value == p_value(column, difference.delta)


def test_the_signature_is_that_of_sacrebleus_own_paired_test() -> None:
    references = _references(10)
    systems = [("one", _spoiled(references, 0.3, seed=1)), ("other", references)]
    paired = PairedTest(systems, {"BLEU": sacrebleu.BLEU()}, [references], "bs", n_samples=100)
    signatures, _ = paired()
    found = compare(systems[0][1], references, references, resamples=100, metrics=["bleu"])
    assert found["bleu"].signature == str(signatures["BLEU"])


def test_the_p_value_equals_shares_counted_by_hand() -> None:
    deltas = np.array([1.0, 2.0, 3.0, 4.0])  # 1.5, 0.5, 0.5 and 1.5 from their mean
    assert p_value(deltas, 2.0) == 1 / 5
    assert p_value(deltas, -1.5) == 3 / 5
    assert p_value(deltas, 0.2) == 1


def test_the_seed_decides() -> None:
    references = _references(30)
    one, other = _spoiled(references, 0.3, seed=1), _spoiled(references, 0.2, seed=2)

    def compared(seed: int) -> tuple[float, float]:
        found = compare(one, other, references, resamples=100, seed=seed, metrics=["bleu"])
        return found["bleu"].interval

    assert compared(1) == compared(1)
    assert compared(1) != compared(2)


def test_a_comparison_is_text_and_json() -> None:
    references = _references(10)
    system = _spoiled(references, 0.3, seed=1)
    found = compare(references, system, references, resamples=100, metrics=["bleu"])
    assert "|bs:100|seed:12345|" in str(found)
    read = json.loads(json.dumps(found.to_json()))
    assert read["resamples"] == 100
    assert read["bleu"]["delta"] == found["bleu"].delta


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="2 baseline hypotheses but 1 hypotheses but 2 references"):
        compare(["a", "b"], ["a"], ["a", "b"])
    with pytest.raises(ConfigError, match="resamples = 9 is too few"):
        compare(["a"], ["a"], ["a"], resamples=9)
