"""BLEU by source length: the buckets by hand, the figures by the corpus score."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from dragoman.errors import DataError
from dragoman.evaluation import score
from dragoman.evaluation.bleu_by_length import Bucket, bleu_by_length


def words(count: int) -> str:
    return " ".join(f"w{n}" for n in range(count))


def texts(*lengths: int) -> list[str]:
    return [words(length) for length in lengths]


def test_a_sentence_is_counted_in_white_space_words_and_an_edge_belongs_to_the_shorter_bucket() -> (
    None
):
    sources = texts(3, 5, 6, 10, 11)
    found = bleu_by_length(sources, sources, sources, edges=(5, 10), min_sentences=1)
    assert [(b.shortest, b.longest, b.sentences) for b in found] == [
        (3, 5, 2),
        (6, 10, 2),
        (11, 11, 1),
    ]
    assert [b.lengths for b in found] == ["3–5", "6–10", "11"]


def test_small_buckets_join_the_next_longer_one_and_the_last_the_one_before() -> None:
    sources = texts(1, 6, 7, 8, 12, 13, 30)
    found = bleu_by_length(sources, sources, sources, edges=(5, 10, 20), min_sentences=2)
    assert [(b.shortest, b.longest, b.sentences) for b in found] == [(1, 8, 4), (12, 30, 3)]
    everything = bleu_by_length(sources, sources, sources, edges=(5, 10, 20), min_sentences=100)
    assert [(b.shortest, b.longest, b.sentences) for b in everything] == [(1, 30, 7)]


def test_every_sentence_is_in_one_bucket_and_each_scores_as_a_corpus_of_its_own() -> None:
    sources = texts(4, 4, 4, 12, 12, 12)
    references = [f"the {n} quick brown foxes jump over the lazy dog" for n in range(6)]
    hypotheses = [*references[:3], *(r.replace("quick", "slow") for r in references[3:])]
    short, long = bleu_by_length(sources, hypotheses, references, edges=(5,), min_sentences=1)
    assert short.bleu == pytest.approx(100)
    assert (short.low, short.high) == pytest.approx((100, 100))
    assert long.bleu == pytest.approx(
        score(hypotheses[3:], references[3:], metrics=["bleu"])["bleu"]
    )
    assert long.bleu < 80


def test_the_interval_holds_the_score_and_is_wider_for_fewer_sentences() -> None:
    references = [f"a b c d e f g {n}" for n in range(400)]
    hypotheses = [r if n % 3 else "a b x d y f g" for n, r in enumerate(references)]
    (many,) = bleu_by_length(references, hypotheses, references, resamples=200)
    (few,) = bleu_by_length(references[:40], hypotheses[:40], references[:40], resamples=200)
    assert many.low < many.bleu < many.high
    assert few.high - few.low > 2 * (many.high - many.low)


def test_the_same_call_gives_the_same_interval() -> None:
    references = [f"a b c d e {n}" for n in range(60)]
    hypotheses = [r if n % 2 else "a b c" for n, r in enumerate(references)]
    assert bleu_by_length(references, hypotheses, references) == bleu_by_length(
        references, hypotheses, references
    )


def test_the_target_language_chooses_the_tokeniser() -> None:
    sources = texts(3, 3)
    hypotheses, references = ["我喜欢苹果。", "他在家。"], ["我喜欢吃苹果。", "他在家里。"]
    (plain,) = bleu_by_length(sources, hypotheses, references, min_sentences=1)
    (chinese,) = bleu_by_length(sources, hypotheses, references, min_sentences=1, language="zh")
    assert chinese.bleu > plain.bleu


def test_lines_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(DataError, match="2 sources but 1 hypotheses"):
        bleu_by_length(["a", "b"], ["a"], ["a", "b"])


def test_a_bucket_survives_json() -> None:
    bucket = Bucket(3, 5, 120, 31.5, 30.0, 33.1)
    assert Bucket(**json.loads(json.dumps(asdict(bucket)))) == bucket
