"""Scores of given translations: the search's own, in order, whatever the neighbours."""

from __future__ import annotations

import pytest

from dragoman.errors import DataError
from dragoman.inference import Translator

TEXTS = ["the old dog sees", "red cat", "", "big small tree eats the house", "dog"]


def test_a_search_s_result_scores_what_the_search_says(reverser: Translator) -> None:
    found = [
        (text, one)
        for text, best in zip(TEXTS, reverser.translate(TEXTS, n_best=3, raw=True), strict=True)
        for one in (best, *best.alternatives)
    ]
    # Another spelling of the same text has another score.
    encode, pieces = reverser.tokenizer.encode, reverser.tokenizer.pieces
    found = [(text, one) for text, one in found if pieces(encode(one.text)) == list(one.tokens)]
    assert len(found) > 6
    scores = reverser.score([text for text, _ in found], [one.text for _, one in found])
    assert [s.score for s in scores] == pytest.approx([one.score for _, one in found], abs=1e-4)
    expected = [one.log_prob for _, one in found]
    assert [s.log_prob for s in scores] == pytest.approx(expected, abs=1e-4)


def test_pieces_add_up_and_end_with_the_end(reverser: Translator) -> None:
    [one] = reverser.score(["red cat"], ["tac der"])
    assert one.tokens == (*reverser.tokenizer.pieces(reverser.tokenizer.encode("tac der")), "</s>")
    assert len(one.tokens) == len(one.log_probs)
    assert sum(one.log_probs) == pytest.approx(one.log_prob)
    assert all(price < 0 for price in one.log_probs)
    assert one.to_dict()["pieces"] == len(one.tokens)
    assert "tokens" not in one.to_dict()
    assert one.to_dict(tokens=True)["tokens"] == list(one.tokens)


def test_batch_mates_and_order_change_nothing(reverser: Translator) -> None:
    targets = ["sees", "tac der " * 9, "", "house", "x"]
    together = reverser.score(TEXTS, targets)
    for text, target, one in zip(TEXTS, targets, together, strict=True):
        [alone] = reverser.score([text], [target])
        assert alone.tokens == one.tokens
        assert alone.log_prob == pytest.approx(one.log_prob, abs=1e-4)
    assert together[2].log_prob == 0.0
    assert reverser.score([], []) == []


def test_a_length_penalty_of_0_ranks_by_probability(reverser: Translator) -> None:
    [one] = reverser.score(["red cat"], ["tac der"], length_penalty=0.0)
    assert one.score == one.log_prob


def test_lines_that_do_not_belong_together_or_are_no_sentences_are_refused(
    reverser: Translator,
) -> None:
    message = "there are 2 source but 1 target lines; they must correspond"
    with pytest.raises(DataError, match=message):
        reverser.score(["a", "b"], ["a"])
    with pytest.raises(DataError, match=r"line 2 has [\d,]+ pieces, more than a batch holds"):
        reverser.score(["a", "red cat " * 9000], ["a", "b"])
