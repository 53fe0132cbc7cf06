"""Splitting paragraphs into sentences."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.text.languages import written_without_spaces
from dragoman.text.sentence_splitting import sentence_spans

LANGUAGES = ["en", "de", "ko", "fr", "zh", "ja"]


def split(text: str, language: str | None = None) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, language)]


def gold(language: str, half: str) -> Iterator[list[str]]:
    """Yield the paragraphs of one half of a gold set, each as the sentences and spaces of it."""
    path = Path(__file__).parent / "data" / f"sentences.{language}.txt"
    part = path.read_text(encoding="utf-8").split(f"%% {half}\n")[1].split("%%")[0]
    for paragraph in part.strip().split("\n\n"):
        space = "" if written_without_spaces(language) else " "
        pieces: list[str] = []
        for line in paragraph.split("\n"):
            pieces += ["" if line.startswith("+") else space, line.removeprefix("+")]
        yield pieces[1:]


def boundary_f1(language: str, half: str, *, told: bool = True) -> float:
    """Return the F1 of the boundaries between sentences; those at paragraphs' ends do not count."""
    right = found = wanted = 0
    for pieces in gold(language, half):
        text = "".join(pieces)
        ends = {len("".join(pieces[: 2 * n + 1])) for n in range(len(pieces) // 2)}
        cuts = {end for _, end in sentence_spans(text, language if told else None)[:-1]}
        right, found, wanted = right + len(ends & cuts), found + len(cuts), wanted + len(ends)
    return 2 * right / (found + wanted)


def test_a_point_after_a_bracket_ends_the_sentence_whatever_is_in_it() -> None:
    assert split("Das geht (mit Namen usw.). Diese Namen sind alt.", "de") == [
        "Das geht (mit Namen usw.).",
        "Diese Namen sind alt.",
    ]
    assert split("It works (names etc.). and goes on", "en") == [
        "It works (names etc.). and goes on"
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_gold_sets_are_large_enough(language: str) -> None:
    paragraphs = [*gold(language, "tuning"), *gold(language, "held out")]
    main = language in ("en", "de", "ko")
    assert len(paragraphs) >= (200 if main else 80)
    assert sum(len(one) // 2 + 1 for one in paragraphs) >= (450 if main else 190)


@pytest.mark.parametrize("language", LANGUAGES)
def test_boundaries_are_found(language: str) -> None:
    goal = 0.98 if language in ("en", "de", "ko") else 0.95
    assert boundary_f1(language, "tuning") >= goal
    assert boundary_f1(language, "held out") >= goal


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_that_nobody_told_is_split_nearly_as_well(language: str) -> None:
    assert boundary_f1(language, "tuning", told=False) >= 0.95
    assert boundary_f1(language, "held out", told=False) >= 0.95


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Tom is a doctor.", "They have 3 children, 2 dogs and 1 cat."]),
        (
            "en",
            ["Mr. and Mrs. J. R. Smith Jr. left at 10 a.m. on Monday.", "At 10 p.m. they slept."],
        ),
        ("en", ['"Really?" Tom asked.', '"Yes."', "Mary nodded."]),
        ("en", ["We use Node.js v1.2.3, e.g. on example.com.", "Next one."]),
        ("en", ["Great! 😀", "See you."]),
        ("en", ["✅ Done.", "✅ Tested.", "❌ Not deployed."]),
        ("en", ["hi. ", "how are you?", "i'm fine"]),
        ("en", ["$25 incl. Shipping, excl. Alaska.", "Attn. Tom Smith.", "Qty. 5, Art. No. 12."]),
        ("en", ["asap!!!", "ok?", "thx"]),
        ("en", ["Please send it asap!!!", "ok?", "thx"]),
        ("en", ["I will call you tomorrow.", "thx, bye!", "ttyl"]),
        ("en", ["Is it done??", "let me know"]),
        ("en", ["What a day!! and what a night."]),
        ("en", ['Tell him "Stop!!" and go.']),
        ("en", ["He said no.", "No. 5 is alive."]),
        ("de", ["Schick mir die Datei!!!", "geht das?", "danke"]),
        ("en", ["No, thanks.", "<b>Bold.</b>", "[Link.](https://a.de/b)", "End."]),
        ("de", ["Gem. § 3 Abs. 1 i. V. m. Art. 5 GG gilt das.", "Siehe z. B. dort."]),
        ("de", ["Drücken Sie Strg + U.", "Klicken hilft auch."]),
        ("de", ["Mehr steht bei der Option -t.", "Optionen gibt es viele."]),
        ("de", ["Herr A. Müller + B. Schmidt kamen.", "wenn es regnet?", "Nein."]),
        ("de", ["Er kam am 5.", "Sie kam am 6. Mai."]),
        ("fr", ["« Vraiment ? » dit M. Roux.", "« Oui. »", "Il sourit."]),
        ("ko", ['그는 "간다. 정말이다."라고 말했다.', "1.5% 올랐다."]),
        ("ko", ["좋아요~", "재밌어요 ㅋㅋ", "또 봐요!"]),
        ("es", ["¿Cómo está el Sr. García?", "¡Muy bien!"]),
        ("ru", ["Он живёт на ул. Ленина.", "Это близко."]),
        ("el", ["Τι κάνεις;", "Είμαι καλά."]),
        ("hi", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("ar", ["مرحبا.", "كيف حالك؟", "أنا بخير."]),
        ("xx", ["This is one.", "This is two."]),
    ],
)
def test_examples(language: str, sentences: list[str]) -> None:
    sentences = [one.strip() for one in sentences]
    assert split(" ".join(sentences), language) == sentences


def test_spaces_between_sentences_are_left_out_and_can_be_put_back() -> None:
    text = "  One.\u3000Two.\n\n Three.\t"
    assert sentence_spans(text) == [(2, 6), (7, 11), (14, 20)]
    assert sentence_spans(" \n ") == []
    assert sentence_spans("") == []


def test_marks_alone_are_no_sentence() -> None:
    assert split('Wow! ... !!! Yes. "') == ["Wow! ... !!!", 'Yes. "']


PIECES = [
    "The dog",
    "he",
    "Dr",
    "z. B",
    "3",
    "3.14",
    "다",
    "라고",
    "。",
    "「",
    "」",
    "と",
    "”",
    "“",
    '"',
]
MARKS = [
    ".",
    "!",
    "?",
    "…",
    "...",
    ")",
    "(",
    " ",
    "\n",
    "\xa0",
    "😀",
    ":)",
    "ㅋㅋ",
    "~",
    "<b>",
    "•",
]
texts = st.lists(st.sampled_from(PIECES + MARKS) | st.text(max_size=5), max_size=30).map("".join)


@settings(deadline=None)
@given(texts, st.sampled_from([None, *LANGUAGES, "el", "xx"]))
def test_every_character_but_spaces_is_in_exactly_one_sentence(
    text: str, language: str | None
) -> None:
    spans = sentence_spans(text, language)
    last = 0
    for start, end in spans:
        assert not text[last:start].strip()
        assert start < end
        assert text[start:end] == text[start:end].strip()
        last = end
    assert not text[last:].strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        ".",
        ". ",
        "a. ",
        "A. ",
        '."',
        "a",
        " ",
        ".,!?",
        "! 😀",
        ". <a",
        "「あ。",
        '"가. ',
        "(X. ",
        "1. ",
    ],
)
def test_the_time_is_in_proportion_to_the_text(piece: str) -> None:
    def seconds(length: int) -> float:
        start = time.process_time()
        sentence_spans(piece * (length // len(piece)), "de")
        return time.process_time() - start

    seconds(1000)
    assert seconds(80_000) < 0.1 + 40 * seconds(8_000)
