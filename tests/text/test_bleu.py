"""Sentence-level BLEU of all pairs is sacreBLEU's."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.text.bleu import make_bleu, pairwise_bleu

from .test_chrf import SENTENCES

TEXTS = st.lists(st.text("ab .é한국", max_size=30), min_size=1, max_size=6)


@example(texts=SENTENCES)
@example(texts=["a b c d e f", "a b c d x y", "f e d c b a", "a", "x a x b"])
@given(texts=TEXTS)
def test_every_pair_has_the_score_that_sacrebleu_gives(texts: list[str]) -> None:
    metric = make_bleu("de", effective_order=True)
    expected = [[metric.sentence_score(one, [other]).score for other in texts] for one in texts]
    assert pairwise_bleu(texts, "de") == pytest.approx(np.array(expected), rel=1e-12, abs=1e-12)
