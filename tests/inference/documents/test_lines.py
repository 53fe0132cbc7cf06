"""Texts of several lines are translated line by line and put together again."""

from __future__ import annotations

from dragoman.inference import Translation
from dragoman.inference.documents.lines import Lines


def shouted(line: str, *others: str) -> Translation:
    """A translation whose first word comes from the first."""
    best, *rest = (
        Translation(line, text, -1.0, (text,), ((0, 0),)) for text in (line.upper(), *others)
    )
    return Translation(best.source, best.text, -1.0, best.tokens, ((0, 0),), tuple(rest))


def test_blank_lines_and_white_space_stay() -> None:
    lines = Lines(["  one two\n\nthree ", "four"])
    assert lines.plain == ["one two", "three", "four"]
    first, second = lines.assemble([shouted(line) for line in lines.plain])
    assert first.text == "  ONE TWO\n\nTHREE "
    assert first.source == "  one two\n\nthree "
    assert first.score == -2.0
    assert second.text == "FOUR"


def test_alignments_count_the_words_of_all_lines() -> None:
    lines = Lines(["one two\nthree"])
    (found,) = lines.assemble([shouted(line) for line in lines.plain])
    assert found.alignment == ((0, 0), (2, 2))


def test_alternatives_are_joined_rank_by_rank() -> None:
    lines = Lines(["one\ntwo"])
    (found,) = lines.assemble([shouted("one", "eins", "uno"), shouted("two", "zwei")])
    assert [other.text for other in found.alternatives] == ["eins\nzwei", "uno\nzwei"]


def test_a_text_without_words_is_itself() -> None:
    (found,) = Lines([" \n"]).assemble([])
    assert found.text == " \n"
