"""The SentencePiece model others get reads text as our tokeniser does."""

from __future__ import annotations

import unicodedata

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.interop.sentencepiece_model import normalizing_model
from dragoman.phrasebook import generate
from dragoman.text.normalization import Form
from dragoman.text.tokenizer import Tokenizer

from ..conftest import more_examples

TEXTS = [
    "",
    "  two  spaces \t a tab\u00a0and no-break ",
    "caf\u0065\u0301 \u212b \u1e69 s\u0307\u0323",
    "“Quotes” – ‘dashes’ … and ½ ﬁne",
    "한국어 " + unicodedata.normalize("NFD", "한국어 값 닭"),
    unicodedata.normalize("NFD", "Tiếng Việt ậ Ậ ṩ"),
    "a low\u2581line, \x01control\x7f characters\x85and lines\r\n",
    "😀 \u200b \ufeff zero widths",
]


def _pair(form: Form) -> tuple[Tokenizer, sentencepiece.SentencePieceProcessor]:
    sentences = [
        text for pair in generate("ko", "train", 200) for text in (pair.source, pair.target)
    ]
    ours = Tokenizer.train(sentences, TokenizerConfig(vocabulary=700, normalization=form))
    theirs = sentencepiece.SentencePieceProcessor(model_proto=normalizing_model(ours))
    return ours, theirs


@pytest.mark.slow
@pytest.mark.parametrize("form", ["nfc", "nfkc", "plain", "none"])
def test_text_becomes_the_same_ids_without_dragoman(form: Form) -> None:
    ours, theirs = _pair(form)
    for text in TEXTS:
        assert theirs.encode(text) == ours.encode(text), text
        assert theirs.decode(ours.encode(text)) == ours.normalize(text)


# Marks in an order that Unicode calls not canonical are the documented exception.
ORDINARY = st.text(
    st.characters(exclude_categories=["Cs", "Mn", "Mc", "Me"], exclude_characters="\x00")
)


@pytest.fixture(scope="module")
def plain() -> tuple[Tokenizer, sentencepiece.SentencePieceProcessor]:
    return _pair("plain")


@pytest.mark.slow
@more_examples(3)
@given(text=ORDINARY)
def test_any_text_without_loose_marks_becomes_the_same_ids(
    plain: tuple[Tokenizer, sentencepiece.SentencePieceProcessor], text: str
) -> None:
    ours, theirs = plain
    assert theirs.encode(text) == ours.encode(text)


@pytest.mark.slow
@more_examples(3)
@given(text=ORDINARY)
def test_decomposed_text_becomes_the_same_ids(
    plain: tuple[Tokenizer, sentencepiece.SentencePieceProcessor], text: str
) -> None:
    ours, theirs = plain
    text = unicodedata.normalize("NFD", text)
    assert theirs.encode(text) == ours.encode(text)
