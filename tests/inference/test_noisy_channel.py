"""Reranking is what scoring with both models by hand gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.errors import ConfigError
from dragoman.inference import Translation, Translator
from dragoman.inference.pivot_translator import PivotTranslator
from dragoman.search import SamplingOptions

from ..conftest import Result
from ..kernel import needs_kernel

SENTENCES = ["the old dog sees", "a red cat", "this house is small", ""]


def named(trained: Path, source: str, target: str) -> Translator:
    """The model under other languages than it has."""
    found = dragoman.load(trained / "model", precision="float32")
    data = replace(found.config.data, languages=(source, target))
    found.config = replace(found.config, data=data)
    return found


@pytest.fixture(scope="module")
def reverse(trained: Path, reverser: Translator) -> Translator:
    """Not a model of the other direction at all, but what it says can be computed by hand."""
    source, target = reverser.config.data.languages or ("", "")
    return named(trained, target, source)


def by_hand(
    reverse: Translator, source: str, found: Translation, weight: float, reward: float
) -> list[str]:
    every = [one for one in (found, *found.alternatives) if one.log_probs]

    def total(one: Translation) -> float:
        [back] = reverse.score([one.text], [source])
        return one.score + weight * back.score + reward * len(one.tokens)

    ranked = sorted(every, key=total, reverse=True)
    return list(dict.fromkeys(one.text for one in ranked))


@pytest.mark.parametrize(("weight", "reward"), [(0.25, 0.0), (2.0, 0.0), (1.0, 0.3), (0.0, -0.5)])
def test_the_order_is_that_of_both_scores(
    weight: float, reward: float, reverser: Translator, reverse: Translator
) -> None:
    wide = reverser.translate(SENTENCES, beam=10, n_best=10, raw=True)
    options = {"rerank_weight": weight, "length_reward": reward, "candidates": 10, "n_best": 10}
    found = reverser.translate(SENTENCES, rerank=reverse, raw=True, **options)
    for source, all_of_it, chosen in zip(SENTENCES, wide, found, strict=True):
        texts = [one.text for one in (chosen, *chosen.alternatives)]
        if source:
            assert texts == by_hand(reverse, source, all_of_it, weight, reward)
        else:
            assert texts == [""]


def test_without_weight_it_is_the_order_of_search(
    reverser: Translator, reverse: Translator
) -> None:
    plain = reverser.translate(SENTENCES, beam=6, raw=True)
    found = reverser.translate(SENTENCES, rerank=reverse, rerank_weight=0.0, candidates=6, raw=True)
    assert [one.text for one in found] == [one.text for one in plain]


def test_samples_can_be_reranked(reverser: Translator, reverse: Translator) -> None:
    sampling = SamplingOptions(samples=8, top_k=20)
    drawn = reverser.translate(SENTENCES[0], sampling=sampling, raw=True)
    best = reverser.translate(SENTENCES[0], sampling=sampling, rerank=reverse, raw=True)
    assert best.text == by_hand(reverse, SENTENCES[0], drawn, 0.25, 0.0)[0]


def test_a_whole_text_is_reranked_sentence_by_sentence(
    reverser: Translator, reverse: Translator
) -> None:
    text = "The old dog sees. A red cat\n\nhttps://a.de/x"
    found = reverser.translate(text, rerank=reverse, n_best=2, prefix="eht")
    assert found.text.startswith("eht")
    assert "https://a.de/x" in found.text
    assert found.alternatives


def refusal(translator: Translator, **options: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        translator.translate("the dog", **options)
    return str(refused.value)


def test_a_model_of_other_languages_is_refused(trained: Path) -> None:
    forward, other = named(trained, "en", "de"), named(trained, "ko", "en")
    assert refusal(forward, rerank=other) == (
        f"{other.path}: translates from ko to en; to rerank translations from en to de, name a "
        "model from de to en"
    )
    assert forward.translate("the dog", rerank=named(trained, "de-CH", "en-GB")).text


def test_what_makes_no_sense_is_one_line(reverser: Translator, reverse: Translator) -> None:
    assert refusal(reverser, rerank=reverse, mbr="chrf") == (
        "mbr and rerank are two ways to choose; leave out one"
    )
    assert refusal(reverser, rerank=reverse, rerank_weight=-1.0) == (
        "rerank_weight = -1.0 must be a number from 0 on; 0.25 is usual"
    )
    assert refusal(reverser, rerank=reverse, length_reward=float("nan")) == (
        "length_reward = nan must be a number"
    )
    assert refusal(reverser, rerank=reverse, candidates=1) == (
        "1 candidate leaves nothing to choose; the least is 2"
    )


MODELS = Path(__file__).parents[2] / "models"


@needs_kernel
def test_the_command_reranks_and_refuses_the_wrong_direction(
    command: Callable[..., Result],
) -> None:
    line = b"The cat sat there, and nobody saw it.\n"
    found = command("translate", MODELS / "en-ko", "--rerank", MODELS / "ko-en", stdin=line)
    assert (found.status, found.err) == (0, "")
    assert "고양이" in found.out
    refused = command("translate", MODELS / "en-ko", "--rerank", MODELS / "en-de", stdin=line)
    assert refused.status == 2
    assert refused.err == (
        f"dragoman: {MODELS / 'en-de'}: translates from en to de; to rerank translations from en "
        "to ko, name a model from ko to en\n"
    )


@needs_kernel
def test_a_chain_of_models_is_not_reranked() -> None:
    first, second = (dragoman.load(MODELS / name) for name in ("ko-en", "en-de"))
    chain = PivotTranslator(first, second)
    with pytest.raises(
        ConfigError, match=r"two models, and reranking needs one; name ko-en or en-de"
    ):
        chain.translate("고양이", rerank=first)
    assert chain.translate("고양이가 앉았다.", mbr="chrf").text
