"""Finding paragraphs, and laying translations out as they stood."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.text.paragraphs import Paragraph, Parts, assemble, split_paragraphs


def read_cases() -> list[tuple[str, str, list[int], str]]:
    """Read the texts: a name, a language, how many lines each paragraph has, and the text."""
    content = (Path(__file__).parent / "data" / "paragraphs.txt").read_text(encoding="utf-8")
    cases = []
    for block in ("\n" + content).split("\n%% ")[1:]:
        head, _, text = block.partition("\n")
        if head.count("|") == 2:
            name, language, counts = map(str.strip, head.split("|"))
            text = text.replace("\\r\n", "\r\n")
            cases.append((name, language, list(map(int, counts.split())), text))
    return cases


CASES = read_cases()


def paragraphs(parts: Parts) -> list[Paragraph]:
    return [part for part in parts if isinstance(part, Paragraph)]


def test_there_are_enough_cases_of_both_sorts() -> None:
    joined = sum(max(counts) > 1 for _, _, counts, _ in CASES)
    assert len(CASES) >= 60
    assert 25 <= joined <= len(CASES) - 30


@pytest.mark.parametrize(
    ("language", "counts", "text"),
    [case[1:] for case in CASES],
    ids=[case[0].replace(" ", "-") for case in CASES],
)
def test_wrapped_lines_are_joined_and_others_never(
    language: str, counts: list[int], text: str
) -> None:
    found = paragraphs(split_paragraphs(text, language))
    assert [len(one.original.splitlines()) for one in found] == counts, [one.text for one in found]


@pytest.mark.parametrize("case", CASES, ids=[case[0].replace(" ", "-") for case in CASES])
def test_a_text_comes_back_as_it_was(case: tuple[str, str, list[int], str]) -> None:
    _, language, _, text = case
    for join in (True, False):
        parts = split_paragraphs(text, language, join_lines=join)
        assert assemble(parts, [one.text for one in paragraphs(parts)]) == text


PIECES = [
    "a line that is long enough to be one of those that somebody wrapped at",
    "word",
    "Word.",
    "> ",
    "- ",
    "1. ",
    "2. ",
    "# ",
    "    ",
    "\t",
    " ",
    "가나다 라마바사",
    "漢字かな。",
    "00:00:01,000 --> 00:00:02,000",
    "-- ",
    "\x00",
    "\u200b",
    "\ud800",
]
ENDS = ["\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]
texts = st.lists(st.sampled_from(PIECES + ENDS) | st.text(max_size=9), max_size=25).map("".join)


@settings(deadline=None)
@given(texts, st.sampled_from([None, "en", "ko", "zh"]), st.booleans())
def test_any_text_comes_back_and_nothing_but_words_is_translated(
    text: str, language: str | None, join: bool
) -> None:
    parts = split_paragraphs(text, language, join_lines=join)
    found = paragraphs(parts)
    assert assemble(parts, [one.text for one in found]) == text
    assert "".join(p if isinstance(p, str) else p.original for p in parts) == text
    for one in found:
        assert one.text == one.text.strip()
        assert any(map(str.isalnum, one.text))
        assert not set(one.text) & set("\n\r\x0b\x0c\x85\u2028\u2029")
    if not join:
        assert all(one.text == one.original for one in found)
    # What is translated is found again, and everything else still stands around it.
    marked = assemble(parts, ["@" for _ in found])
    kept = "@".join("".join(p if isinstance(p, str) else "\0\0" for p in parts).split("\0\0"))
    assert marked == kept or "\0\0" in text


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(["ab", "cdefgh", "i", "jklmnopq."]), min_size=30, max_size=99))
def test_a_translation_of_a_wrapped_paragraph_is_wrapped_as_wide(words: list[str]) -> None:
    second = "the width that their mail program had, which nobody sees any more,"
    text = f"> {PIECES[0]}\n> {second}\n> today."
    parts = split_paragraphs(text, "en")
    [one] = paragraphs(parts)
    found = assemble(parts, [" ".join(words)])
    assert max(map(len, found.split("\n"))) <= one.width == 72
    assert all(line.startswith("> ") for line in found.split("\n"))
    assert found.replace("\n> ", " ") == "> " + " ".join(words)


def test_lists_keep_their_markers_and_their_hanging_lines() -> None:
    text = (
        "  * the first item is so long that it does not fit on one line, so that\n"
        "    it goes on below itself.\n"
        "  * the second is not\n"
    )
    parts = split_paragraphs(text, "en")
    assert parts[0] == "  * "
    first, second = paragraphs(parts)
    assert second == Paragraph("the second is not", "the second is not")
    assert first.text.endswith("so that it goes on below itself.")
    found = assemble(parts, ["wort " * 20, "kurz"])
    lines = found.split("\n")
    assert lines[0] == "  *" + " wort" * 13
    assert lines[1] == "    wort" + " wort" * 6
    assert lines[2:] == ["  * kurz", ""]


def test_chinese_lines_are_joined_without_a_space_and_broken_between_characters() -> None:
    text = (
        "先週お送りいただいた資料を拝受しました。ただし三番目の表の\n"
        "合計が本文の数字と合わないようですので、もう一度ご確認いた\n"
        "だけますでしょうか。"
    )
    [one] = paragraphs(split_paragraphs(text, "ja"))
    assert one.text == text.replace("\n", "")
    assert one.width == 58
    assert one.lay_out("あ" * 29 + "。いう") == "あ" * 28 + "\nあ。いう"
    assert one.lay_out("word " * 15).split("\n")[0] == ("word " * 11).strip()


def test_a_hyphen_at_a_line_end_goes_only_if_the_word_is_known_without_it() -> None:
    wrapped = (
        "somebody wrote this text with a very old program, one that did hyphen-\n"
        "ation by itself, and nobody could turn hyphenation off, so that well-\n"
        "known words were cut in the middle, which is a pity for the Haupt-\n"
        "und Nebensätze."
    )
    [one] = paragraphs(split_paragraphs(wrapped, "en"))
    assert "did hyphenation by itself" in one.text
    assert "so that well-known words" in one.text
    assert "Haupt- und Nebensätze" in one.text


def test_a_date_is_no_list_marker_but_numbers_in_a_row_are() -> None:
    assert [p.text for p in paragraphs(split_paragraphs("3. Mai\n24. Dezember", "de"))] == [
        "3. Mai",
        "24. Dezember",
    ]
    assert split_paragraphs("1. Mai\n2. Juni", "de")[0] == "1. "


def test_numbers_of_sections_are_list_markers_and_decimals_are_not() -> None:
    text = "1. One\n1.1 Two\n1.1.1 Three\n1.2 Four\n2. Five\n2.5 million\n2.5 Five"
    assert [one.text for one in paragraphs(split_paragraphs(text, "en"))] == [
        *("One", "Two", "Three", "Four", "Five", "2.5 million", "2.5 Five"),
    ]
    text = "1  One\n2  Two\n\n1 egg\n2 cups"
    assert [one.text for one in paragraphs(split_paragraphs(text, "en"))] == [
        *("One", "Two", "1 egg", "2 cups"),
    ]


def test_times_and_boxes_before_what_is_said_stay() -> None:
    text = "[10:15, 4/11/2024] Hi.\n[ ] Call.\n☐ Write.\n[door] Bang."
    found = [one.text for one in paragraphs(split_paragraphs(text, "en"))]
    assert found == ["Hi.", "Call.", "Write.", "[door] Bang."]


def test_code_between_fences_stays_and_an_open_fence_hides_nothing() -> None:
    text = "One.\n```python\ncode here\n\n```\nTwo.\n~~~\nThree."
    found = [one.text for one in paragraphs(split_paragraphs(text, "en"))]
    assert found == ["One.", "Two.", "Three."]
    assert len(paragraphs(split_paragraphs(text, "en", join_lines=False))) == 5


def test_a_subtitle_has_no_more_lines_than_before() -> None:
    text = "1\n00:00:01,000 --> 00:00:03,500\nI told you that\nwe would come.\n"
    parts = split_paragraphs(text, "en")
    [said] = paragraphs(parts)
    longer = "Ich habe dir doch gesagt, dass wir kommen würden."
    assert assemble(parts, [longer]).endswith(
        "\nIch habe dir doch gesagt,\ndass wir kommen würden.\n"
    )
    assert assemble(parts, [said.text]) == text


def test_no_break_spaces_stay_in_wrapped_lines() -> None:
    text = (
        f"{PIECES[0]}\nthe width that their mail program had, which nobody can see today, and\nok."
    )
    [one] = paragraphs(split_paragraphs(text, "en"))
    assert "10\xa0000" in one.lay_out("about 10\xa0000 people " * 9)


@pytest.mark.parametrize("text", ["a\n" * 20_000, "\n" * 50_000, "a" * 1_000_000, "> " * 100_000])
def test_long_texts_take_a_second_or_so(text: str) -> None:
    start = time.process_time()
    parts = split_paragraphs(text)
    assert time.process_time() - start < 5
    assert assemble(parts, [one.text for one in paragraphs(parts)]) == text


def test_lines_that_end_with_a_word_that_something_follows_are_joined() -> None:
    mail = (
        "I will come to Berlin on Monday, the third of\n"
        "May at half past five and stay two nights at the\n"
        "old hotel.\n"
    )
    assert [one.text for one in split_paragraphs(mail, "en") if isinstance(one, Paragraph)] == [
        mail.strip().replace("\n", " ")
    ]
    titles = "A Short History of Almost Everything Under the Sun\nThe Old Man and the Sea Again\n"
    assert len([p for p in split_paragraphs(titles, "en") if isinstance(p, Paragraph)]) == 2
