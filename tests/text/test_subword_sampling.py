"""Other segmentations of the same text: the same ones in every process."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from dragoman.config import TokenizerConfig
from dragoman.text.subword_sampling import SubwordSampler
from dragoman.text.tokenizer import Tokenizer

STEMS = ("like", "child", "brother", "kind", "father", "neighbour", "self", "man", "care", "hope")
ENDINGS = ("", "s", "ly", "ness", "hood", "less", "ish", "ful", "ing")
WORDS = [f"{begin}{stem}{end}" for begin in ("", "un") for stem in STEMS for end in ENDINGS]


def sentences(count: int) -> list[str]:
    draw = random.Random(3)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 8))) for _ in range(count)]


def learned(kind: Literal["bpe", "unigram"]) -> Tokenizer:
    config = TokenizerConfig(kind=kind, vocabulary=350, symbols=("<tag>",))
    return Tokenizer.train(sentences(300), config)


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return learned("bpe")


@pytest.fixture(scope="module")
def unigram() -> Tokenizer:
    return learned("unigram")


@pytest.fixture(params=["bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    found: Tokenizer = request.getfixturevalue(request.param)
    return found


def ids(tokenizer: Tokenizer, texts: list[str]) -> list[np.ndarray]:
    return [np.array(sequence, np.int32) for sequence in tokenizer.encode_batch(texts)]


def test_every_draw_spells_the_same_text(tokenizer: Tokenizer) -> None:
    texts = [*sentences(50), "한국어 <tag> text", "", "unlikely <tag>"]
    sampler = SubwordSampler(tokenizer, 0.5)
    for seed in range(5):
        assert tokenizer.decode_batch(sampler(ids(tokenizer, texts), seed)) == texts


def test_draws_differ_by_seed_and_from_the_usual_segmentation(tokenizer: Tokenizer) -> None:
    batch = ids(tokenizer, sentences(200))
    sampler = SubwordSampler(tokenizer, {"bpe": 0.3, "unigram": 0.02}[tokenizer.kind])
    usual = [sequence.tolist() for sequence in batch]
    assert sampler(batch, 1) != usual
    assert sampler(batch, 1) != sampler(batch, 2)


def test_without_dropout_bpe_is_what_sentencepiece_does(bpe: Tokenizer) -> None:
    batch = ids(bpe, sentences(100))
    assert SubwordSampler(bpe, 0.0)(batch, 1) == [sequence.tolist() for sequence in batch]


def test_full_dropout_leaves_characters(bpe: Tokenizer) -> None:
    drawn = SubwordSampler(bpe, 1.0)(ids(bpe, ["unlikely"]), 1)
    assert bpe.pieces(drawn[0]) == list("▁unlikely")


def test_unigram_draws_follow_their_probabilities(unigram: Tokenizer) -> None:
    sampler = SubwordSampler(unigram, 1.0)
    candidates, sums = sampler._candidates("childish")
    expected = sums[0] / sums[-1]
    drawn = [sampler._draw("childish", slot) for slot in range(2000)]
    assert drawn.count(candidates[0]) / 2000 == pytest.approx(expected, abs=0.05)


@pytest.mark.slow
def test_another_process_draws_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """What SentencePiece itself draws is different in every process, whatever the seed."""
    tokenizer.save(tmp_path)
    script = f"""
import numpy as np
from pathlib import Path
from dragoman.text.subword_sampling import SubwordSampler
from dragoman.text.tokenizer import Tokenizer
tokenizer = Tokenizer.load(Path({str(tmp_path)!r}))
ids = [np.array(x) for x in tokenizer.encode_batch({sentences(20)!r})]
print(SubwordSampler(tokenizer, 0.3)(ids, 7))
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    here = SubwordSampler(tokenizer, 0.3)(ids(tokenizer, sentences(20)), 7)
    assert found.strip() == repr(here)


def test_forgetting_changes_nothing(bpe: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = ids(bpe, sentences(100))
    expected = SubwordSampler(bpe, 0.3)(batch, 1)
    monkeypatch.setattr("dragoman.text.subword_sampling.REMEMBERED_DRAWS", 7)
    sampler = SubwordSampler(bpe, 0.3)
    assert sampler(batch, 1) == expected
    assert len(sampler._drawn) <= 7


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_tag_stays_before_its_source(kind):
    config = TokenizerConfig(kind=kind, vocabulary=350)
    tokenizer = Tokenizer.train(sentences(300), config, tags=("<formal>",))
    plain = np.array(tokenizer.encode(sentences(1)[0]))
    tagged = np.array([tokenizer.tags["<formal>"], *plain])
    sampler = SubwordSampler(tokenizer, 0.5)
    [with_tag], [without] = sampler([tagged], 1), sampler([plain], 1)
    assert with_tag == [tokenizer.tags["<formal>"], *without]
