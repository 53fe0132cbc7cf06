"""Texts are taken apart and put together; their parts' translations become one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.inference.join_translations import Between, join_translations
from dragoman.inference.text_layout import TextLayout
from dragoman.inference.translation_types import Issue, Translation


def upper(sentence: str) -> Translation:
    words = range(len(sentence.split()))
    return Translation(sentence, sentence.upper(), -1.0, ("x",), tuple((n, n) for n in words))


def same(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!  Three?", ["One.", "Two!", "Three?"]),
        ("a\tb\t\tc d", ["a", "b", "c d"]),
        ("- one\n- two", ["one", "two"]),
        ("\n \n", []),
        ("...", []),
        ("Name:    John", ["Name:", "John"]),
        ("Introduction ........ 12", ["Introduction", "12"]),
        ("Sign here: ________", ["Sign here:"]),
        ("one  two", ["one  two"]),
        ("LH 401  JFK 18:30  Seat 32A", ["LH 401", "JFK 18:30", "Seat 32A"]),
        ("One.  Two.  Three of  it.", ["One.", "Two.", "Three of  it."]),
        ("| Apples | 3 |\n|---|--:|\n|Red pears|$12|", ["Apples", "3", "Red pears", "$12"]),
        ("cat a.txt | grep b", ["cat a.txt", "grep b"]),
        ("|x| is (a|b)", ["|x| is (a|b)"]),
    ],
)
def test_sentences_are_found(text: str, sentences: list[str]) -> None:
    assert TextLayout(text, "en", "de").sentences == sentences


def test_the_spacing_of_sentences_stays() -> None:
    layout = TextLayout("  One.  Two.\n\n\tThree. ", "en", "de")
    found = layout.join(list(map(upper, layout.sentences)), same)
    assert found.text == "  ONE.  TWO.\n\n\tTHREE. "
    assert found.alignment == ((0, 0), (1, 1), (2, 2))
    assert found.score == -3.0


def test_a_language_without_spaces_has_none_between_sentences() -> None:
    layout = TextLayout("One. Two.", "en", "ja")
    assert layout.join(list(map(upper, layout.sentences)), same).text == "ONE.TWO."
    layout = TextLayout("一。二。", "zh", "en")
    assert layout.sentences == ["一。", "二。"]
    assert layout.join(list(map(upper, layout.sentences)), same).text == "一。 二。"


def test_wrapped_lines_are_joined_and_wrapped_again() -> None:
    text = (
        "This is a long paragraph of a mail that somebody's editor has wrapped at some\n"
        "width, so that one sentence goes on over the end of a line and must be joined\n"
        "before it is translated. This is the second sentence of it.\n"
    )
    layout = TextLayout(text, "en", "de")
    assert len(layout.sentences) == 2
    assert "\n" not in layout.sentences[0]
    found = layout.join(list(map(upper, layout.sentences)), same)
    assert found.text == text.upper()
    assert found.alignment == tuple((n, n) for n in range(len(text.split())))
    assert len(TextLayout(text, "en", "de", lines=True).sentences) == 3


def test_alternatives_and_issues_are_joined() -> None:
    one = Translation("a", "b", -1.0, ("b",), issues=(Issue("cut", "2 parts"),))
    other = replace(one, alternatives=(replace(one, text="c"), replace(one, text="d")))
    found = join_translations("a a", [other, Between(" ", "-"), one])
    assert found.text == "b-b"
    assert [each.text for each in found.alternatives] == ["c-b", "d-b"]
    assert len(found.issues) == 2


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        ({"One.": "一。", "Two.": "二。", "Three.": "三。"}, "一。二。三。"),
        ({"One.": "一。"}, "一。 Two. Three."),
        ({"One.": "一。", "Two.": "二。"}, "一。二。 Three."),
        ({"Two.": "二。"}, "One. 二。 Three."),
    ],
)
def test_sentences_that_were_not_translated_keep_their_spaces(
    known: dict[str, str], wanted: str
) -> None:
    layout = TextLayout("One. Two. Three.", "en", "zh")
    found = [Translation(one, known.get(one, one), 0.0, ()) for one in layout.sentences]
    assert layout.join(found, same).text == wanted


@pytest.mark.parametrize(
    ("text", "known", "wanted"),
    [
        ("| Apples   | 3 |", {"Apples": "Äpfel"}, "| Äpfel    | 3 |"),
        ("| Apples   | 3 |", {"Apples": "Apfelsinen"}, "| Apfelsinen | 3 |"),
        ("Table      2      $5", {"Table": "Tisch aus"}, "Tisch aus  2      $5"),
        ("Table      2      $5", {"Table": "Tisch aus Holz"}, "Tisch aus Holz  2  $5"),
        ("Intro ........ 12", {"Intro": "Einleitung"}, "Einleitung ... 12"),
        ("Intro.   Then.", {"Intro.": "Einleitung."}, "Einleitung.   Then."),
        ("One   two\nx   y", {"One": "Eins"}, "Eins  two\nx   y"),
        ("One\r    two   x", {"One": "Eins"}, "Eins\r    two   x"),
    ],
)
def test_cells_stay_in_their_columns(text: str, known: dict[str, str], wanted: str) -> None:
    layout = TextLayout(text, "en", "de")
    found = [Translation(one, known.get(one, one), 0.0, ()) for one in layout.sentences]
    assert layout.join(found, same).text == wanted


def test_alternatives_are_aligned_with_the_text_whatever_the_model_got_of_it() -> None:
    bare = Translation("a", "b b", 0.0, (), alignment=((1, 1),))  # without an unknown word
    best = Translation("ệ a", "ệ b", 0.0, (), alignment=((1, 1),), alternatives=(bare,))
    found = join_translations("ệ a a", [best, Between(" ", " "), Translation("a", "b", 0.0, ())])
    assert found.alternatives[0].alignment == ((1, 1),)


def test_a_text_knows_its_sentences() -> None:
    layout = TextLayout("- One. Two.\n", "en", "de")
    found = layout.join(list(map(upper, layout.sentences)), same)
    assert [(one.source, one.text) for one in found.sentences] == [
        ("One.", "ONE."),
        ("Two.", "TWO."),
    ]
    layout = TextLayout("- One.", "en", "de")
    found = layout.join(list(map(upper, layout.sentences)), same)
    assert [one.text for one in found.sentences] == ["ONE."]
    assert "sentences" not in replace(found, confidence=0.5).to_dict()


@given(st.text(alphabet="ab. \n\t\r!-*>1", max_size=60))
def test_sentences_that_stay_give_the_text(text: str) -> None:
    layout = TextLayout(text, "en", "de")
    kept = [Translation(one, one, 0.0, ()) for one in layout.sentences]
    assert layout.join(kept, same).text == text
