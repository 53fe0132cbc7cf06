"""The timed sentences: the same for everybody, and shaped as docs/bench.md says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dragoman.bench.training.synthetic_corpus import SyntheticPairs, packed_batches
from dragoman.config import Config, load_preset
from dragoman.text.special_tokens import UNK


@pytest.fixture(scope="module")
def pairs() -> SyntheticPairs:
    return SyntheticPairs(vocabulary=37_000, longest=200)


@pytest.mark.slow
def test_the_corpus_is_the_same_every_time(pairs: SyntheticPairs) -> None:
    again = SyntheticPairs(vocabulary=37_000, longest=200)
    other = SyntheticPairs(vocabulary=37_000, longest=200, seed=2)
    for index in (0, 1, 41_234, len(pairs) - 1):
        np.testing.assert_array_equal(pairs.source(index), again.source(index))
        np.testing.assert_array_equal(pairs.target(index), again.target(index))
    assert not np.array_equal(
        pairs.source_lengths(np.arange(9)), other.source_lengths(np.arange(9))
    )


def test_sentences_have_27_pieces_on_average_and_go_together(pairs: SyntheticPairs) -> None:
    everyone = np.arange(len(pairs))
    source, target = pairs.source_lengths(everyone), pairs.target_lengths(everyone)
    assert source.mean() == pytest.approx(27, rel=0.01)
    assert target.mean() == pytest.approx(27, rel=0.01)
    assert np.log(source).std() == pytest.approx(0.6, rel=0.02)
    assert np.log(target / source).std() == pytest.approx(0.25, rel=0.05)
    assert (min(source.min(), target.min()), max(source.max(), target.max())) == (1, 200)
    assert [len(pairs.source(i)) for i in range(50)] == source[:50].tolist()
    assert [len(pairs.target(i)) for i in range(50)] == target[:50].tolist()
    totals = (pairs.meta.source_pieces, pairs.meta.target_pieces)
    assert totals == (source.sum(), target.sum())
    assert (pairs.meta.longest_source, pairs.meta.longest_target) == (source.max(), target.max())


def test_pieces_follow_zipfs_law(pairs: SyntheticPairs) -> None:
    counts = Counter(np.concatenate([pairs.source(i) for i in range(20_000)]).tolist())
    assert min(counts) == UNK + 1, "no special symbol, and the first piece is the most frequent"
    assert max(counts) < 37_000
    # 1 / (k + 2.7): the 1st against the 10th, the 100th against the 1000th.
    assert counts[4] / counts[13] == pytest.approx(12.7 / 3.7, rel=0.05)
    near = sum(counts[k] for k in range(94, 114)) / sum(counts[k] for k in range(994, 1014))
    assert near == pytest.approx(1006.7 / 106.7, rel=0.1)


@pytest.mark.slow
def test_the_batches_are_those_of_a_run_with_the_fill_of_one() -> None:
    base = load_preset("base")
    batches = packed_batches(base, SyntheticPairs.for_config(base), 4)
    assert len(batches) == 4
    assert batches[0].source_ids.shape == batches[0].target_input.shape == (99, 256)
    tokens = sum(batch.target_tokens for batch in batches)
    assert tokens / 4 == pytest.approx(25_000, rel=0.03)
    assert tokens / sum(batch.target_input.size for batch in batches) > 0.98
    assert max(batch.target_output.max() for batch in batches) < 37_000


@pytest.mark.slow
def test_a_preset_with_short_rows_gets_short_sentences(tiny: Config) -> None:
    [batch] = packed_batches(tiny, SyntheticPairs.for_config(tiny), 1)
    assert batch.source_ids.shape[1] <= 64
    assert batch.target_output.max() < 330
