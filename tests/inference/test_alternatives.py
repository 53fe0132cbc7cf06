"""The next words of a translation, with probabilities that are the model's."""

from __future__ import annotations

import math

import pytest
import torch

from dragoman.errors import ConfigError
from dragoman.inference import Translator
from dragoman.inference.alternatives import _next_words, _WordEnds
from dragoman.search.batching import source_rows
from dragoman.text.special_tokens import BOS, EOS

TEXT = "the old dog sees"


def test_the_likeliest_first_and_each_is_how_its_translation_begins(reverser: Translator) -> None:
    found = reverser.alternatives(TEXT, "eht", 4)
    assert len(found) == 4
    assert len({one.word for one in found}) == 4
    probabilities = [one.probability for one in found]
    assert probabilities == sorted(probabilities, reverse=True)
    assert 0 < sum(probabilities) <= 1.0001
    for one in found:
        words = one.translation.split()
        assert words[:2] == (["eht", one.word] if one.word else ["eht"])
        assert one.word or words == ["eht"], "no word: the translation ends"


@torch.no_grad()
@pytest.mark.parametrize("prefix", ["", "eht", "god dlo"])
def test_a_word_is_as_probable_as_its_pieces_and_its_end_together(
    prefix: str, reverser: Translator
) -> None:
    model, encode = reverser.model, reverser.tokenizer.encode
    source, begun = encode(TEXT), encode(prefix)
    starts_V = reverser._torch_engine.word_starts
    found = _next_words(model, source, begun, starts_V, 5)
    assert len(found) >= 5
    for ids, probability in found[:5]:
        state, price = model.start(source_rows([source], torch.device("cpu"))), 0.0
        for place, piece in enumerate([BOS, *begun, *ids]):
            log_probs_11V, state = model.step(torch.tensor([[piece]]), state)
            if len(begun) <= place < len(begun) + len(ids):
                price += float(log_probs_11V[0, 0, ids[place - len(begun)]])
        ends_V = starts_V.clone() if ids else torch.zeros_like(starts_V)
        ends_V[EOS] = True
        end = float(log_probs_11V[0, 0, ends_V].exp().sum())
        assert probability == pytest.approx(math.exp(price) * end, rel=1e-3)


def test_a_word_that_has_ended_goes_on_with_a_space_or_the_end_alone() -> None:
    follows_BV = torch.tensor([[False, True, False], [True, False, False]])
    ends = _WordEnds([2, 1], follows_BV)
    rows, room = torch.tensor([1, 0]), torch.tensor([9, 9])
    one = ends.allowed(rows, torch.zeros(2, 2, 1, dtype=torch.int64), room)
    assert one.tolist() == [[[True, False, False]] * 2, [[True] * 3] * 2]
    two = ends.allowed(rows, torch.zeros(2, 2, 2, dtype=torch.int64), room)
    assert two.tolist() == [[[True] * 3] * 2, [[False, True, False]] * 2]
    assert [ends.shortest(0), ends.shortest(1)] == [2, 1]


def test_the_best_alternative_leads_to_the_best_translation(reverser: Translator) -> None:
    best = reverser.translate(TEXT, beam=8)
    found = reverser.alternatives(TEXT, "", 12, beam=8)
    assert max(found, key=lambda one: one.score).score >= best.score - 1e-4


@pytest.mark.slow
def test_nothing_to_translate_has_no_alternatives_and_none_are_no_number(
    reverser: Translator,
) -> None:
    assert reverser.alternatives(" \x00", "eht", 3) == []
    with pytest.raises(ConfigError, match="0 alternatives are too few; the least is 1"):
        reverser.alternatives(TEXT, "", 0)
    for prefix in ("\ud800", "\x00", "한국어 🦜 " * 5):
        assert reverser.alternatives(TEXT, prefix, 2)
