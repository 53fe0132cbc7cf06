"""Texts made to be slow take time in proportion to their length, at every entry."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dragoman.inference import Translator
from dragoman.inference.fault_detection import check_faults
from dragoman.inference.letter_case import is_in_capitals, to_ordinary_case
from dragoman.inference.protection.number_check import check_numbers
from dragoman.inference.protection.numbers_in_text import localize_numbers
from dragoman.inference.protection.protected_items import find_items, find_symbols
from dragoman.inference.text_layout import TextLayout
from dragoman.search.options import Hypothesis, SearchOptions
from dragoman.text.paragraphs import split_paragraphs
from dragoman.text.sentence_splitting import sentence_spans

from ..fake_engines import make_translator

SIZE = 20_000
LIMIT = 3.0
"""So many seconds of a processor a text of that size may take at each entry; what goes back over
itself takes minutes."""

REPEATED = [
    *("%0", "a@", "@", "{", "{a}", "{a,plural,{x}", "[[", "(", "<a ", "<b>x</b>", "<!--", "`"),
    *('"', "“", "1,", "1.2.3.", "1.000 ", "1:2:", "1万2", "3\u2009000", "00:00.000 --> ", "a.com "),
    *("x@y.de ", "www.", "a/", "C:\\", "DE12", "A-1", "😀 ", "ệ ", "\u3000", "; ", "Abc, ", "- "),
    *("hahahahahaha ", "Word1 ", "1. a\n", "「あ。", '"다." ', "z. B. ", ". ", "!a", "\n> ", "|"),
]
TEXTS = {
    **{repr(unit): (unit * (SIZE // len(unit) + 1))[:SIZE] for unit in REPEATED},
    "letters and one that is unknown": "A" + "a" * SIZE + "ệ",
    "letters, then an address": "a" * SIZE + "@b.de",
    "wide spaces between words": "a" + "\u3000" * SIZE + "b",
    "digits, then a scale": "1" * SIZE + "만",
    "many different items": " ".join(f"{{a{n}}} v1.{n}" for n in range(SIZE // 14)),
}


@pytest.fixture(scope="module")
def translators() -> list[Translator]:
    found = [make_translator(behaviour) for behaviour in ("identity", "random")]
    for one in found:
        one.warn = lambda message: None  # type: ignore[method-assign]
        one.translate("Hello {x}, 5 of {y}.")
    return found


def count_one(texts: object) -> list[int]:
    return [1] * len(list(texts))  # type: ignore[call-overload]


ENTRIES: dict[str, Callable[[str], object]] = {
    "find_items": find_items,
    "find_symbols": find_symbols,
    "check_numbers": lambda text: check_numbers(text, text[::-1], ("en", "de")),
    "check_numbers of Korean": lambda text: check_numbers(text, text[::-1], ("ko", "en")),
    "localize_numbers": lambda text: localize_numbers(text, ("en", "de"), ()),
    "sentence_spans": lambda text: [sentence_spans(text, code) for code in ("en", "ko", "")],
    "split_paragraphs": split_paragraphs,
    "TextLayout": lambda text: TextLayout(text, "en", "de"),
    "letter_case": lambda text: (is_in_capitals(text), to_ordinary_case(text, count_one)),
    "check_faults": lambda text: check_faults(
        [5] * 9, text[::-1], Hypothesis([5] * 9, 0.0, 0.0, []), text, SearchOptions()
    ),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(SIZE // 8, marks=pytest.mark.slow),
        pytest.param(SIZE, marks=pytest.mark.thorough),
    ],
)
def test_no_text_takes_long(name: str, size: int, translators: list[Translator]) -> None:
    text = TEXTS[name]
    text = text[: size // 2] + text[-size // 2 :] if len(text) > size else text
    entries = dict(ENTRIES)
    for behaviour, one in zip(("copies", "says anything"), translators, strict=True):
        entries[f"a model that {behaviour}"] = one.translate
    taken = {}
    for entry, function in entries.items():
        start = time.thread_time()
        function(text)
        taken[entry] = time.thread_time() - start
    assert max(taken.values()) < LIMIT * max(0.5, size / SIZE), {
        entry: round(t, 2) for entry, t in taken.items()
    }
