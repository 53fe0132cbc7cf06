"""Sentence-level chrF of all pairs is sacreBLEU's, to the last digit."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from dragoman.text import ngram_overlap
from dragoman.text.chrf import pairwise_chrf

TEXTS = st.lists(
    st.text("ab .é한국어😀\u3000\n", max_size=30) | st.text(max_size=12), min_size=1, max_size=6
)
SENTENCES = [
    "Der Hund sieht die Katze.",
    "Der Hund sah die Katze.",
    "Die Katze sieht den Hund, den Hund, den Hund.",
    "그는 어제 학교에 갔습니다.",
    "그는 어제 학교에 갔다.",
    "",
    " \n ",
    "a",
    "aaaaaaaaaaaaaaaaaaaa",
]


def sacrebleu_scores(texts: list[str]) -> list[list[float]]:
    metric = CHRF()
    return [[metric.sentence_score(one, [other]).score for other in texts] for one in texts]


@example(texts=SENTENCES)
@given(texts=TEXTS)
def test_every_pair_has_the_score_that_sacrebleu_gives(texts: list[str]) -> None:
    assert pairwise_chrf(texts).tolist() == sacrebleu_scores(texts)


def test_tables_that_are_computed_in_parts_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pairwise_chrf(SENTENCES).tolist()
    monkeypatch.setattr(ngram_overlap, "CELLS_AT_ONCE", 3 * len(SENTENCES))
    assert pairwise_chrf(SENTENCES).tolist() == whole


def test_no_texts_have_no_scores() -> None:
    assert pairwise_chrf([]).shape == (0, 0)
