from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from dragoman import load
from dragoman.errors import DataError
from dragoman.evaluation.evaluate import evaluate
from dragoman.evaluation.perplexity import perplexity

from ..conftest import reversals
from ..kernel import needs_kernel

Ids = list[list[int]]


def uniform(source: Ids, target: Ids) -> list[list[float]]:
    """A model that knows nothing: each of nine pieces is as likely as another."""
    return [[-math.log(9)] * (len(ids) + 1) for ids in target]


def by_length(source: Ids, target: Ids) -> list[list[float]]:
    """One that finds the pieces of a long source improbable."""
    return [[-0.1 * len(s)] * (len(t) + 1) for s, t in zip(source, target, strict=True)]


def _pairs(count: int) -> tuple[Ids, Ids]:
    rng = random.Random(3)
    source, target = (
        [rng.choices(range(4, 9), k=rng.randint(0, 12)) for _ in range(count)] for _ in range(2)
    )
    return source, target


def test_perplexity_equals_its_definition() -> None:
    source, target = _pairs(200)
    found = perplexity(by_length, source, target)
    nll = sum(0.1 * len(s) * (len(t) + 1) for s, t in zip(source, target, strict=True))
    pieces = sum(len(ids) + 1 for ids in target)
    assert found.pieces == pieces
    assert found.nll == pytest.approx(nll)
    assert found.per_piece == pytest.approx(math.exp(nll / pieces))
    assert found.per_word(1000) == pytest.approx(math.exp(nll / 1000))


def test_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary() -> None:
    assert perplexity(uniform, *_pairs(20)).per_piece == pytest.approx(9)


@needs_kernel
@pytest.mark.slow
def test_int8_and_float32_are_about_as_perplexed(trained: Path) -> None:
    sources, references = map(list, zip(*reversals(30, seed=5), strict=True))
    found = [
        evaluate(load(trained, device="cpu", precision=precision), references, sources, beam=1)
        for precision in ("int8", "float32")
    ]
    int8, float32 = (one.perplexity for one in found)
    assert int8 is not None
    assert float32 is not None
    assert int8.pieces == float32.pieces
    assert int8.nll != float32.nll, "each is measured as it computes"
    assert int8.per_piece == pytest.approx(float32.per_piece, rel=0.05)


def test_perplexity_is_json() -> None:
    found = perplexity(uniform, *_pairs(3))
    assert json.loads(json.dumps(found.to_json()))["perplexity"] == found.per_piece


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="2 source but 1 target sentences"):
        perplexity(uniform, [[4], [5]], [[4]])
    with pytest.raises(DataError, match="nothing to measure"):
        perplexity(uniform, [], [])
