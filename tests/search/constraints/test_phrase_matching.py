"""Whether a phrase occurs, followed piece by piece: the same as looking for it in the text."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.search.constraints.phrase_matching import FOUND, START, PhraseMatcher, PieceSpelling
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import contains_phrase

from ...conftest import more_examples


@cache
def tokenizer() -> Tokenizer:
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdeinrstäü", k=draw.randint(1, 7))) for _ in range(200)]
    lines = [" ".join(draw.choices([*words, "Haus", "der"], k=8)) + "." for _ in range(300)]
    return Tokenizer.train(lines, TokenizerConfig(vocabulary=360))


@cache
def spelling() -> PieceSpelling:
    return PieceSpelling.from_tokenizer(tokenizer(), len(tokenizer()))


@cache
def automaton(phrase: str, whole_words: bool = True, separate: bool = False) -> PhraseMatcher:
    return PhraseMatcher(phrase, spelling(), whole_words=whole_words, separate=separate)


def read_pieces(phrase: PhraseMatcher, ids: list[int]) -> int:
    state = START
    for piece in ids:
        state = phrase.after(state, piece)
    return state


PHRASES = ["Haus", "der Haus", "a b a", "aa", "ü", "(a)", "a.", "é", "한국", "_a", "a'b", "ab ab"]
PIECES = st.integers(4, len(tokenizer()) - 1)


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A phrase and pieces among which it, parts of it and what disturbs it are likely."""
    phrase = draw(st.sampled_from(PHRASES))
    bits = [phrase, phrase[0], phrase[:-1], f"x{phrase}", f"{phrase}n", f" {phrase} ", ".", " ", ""]
    bits += ["\x00", "\t", "\u00a0", "\u0301", "\u200b", "ü", "한"]
    ids: list[int] = []
    for bit in draw(st.lists(st.sampled_from(bits) | PIECES, max_size=7)):
        if isinstance(bit, int):
            ids.append(bit)
        elif draw(st.booleans()):
            ids += tokenizer().encode(bit)
        else:  # byte by byte, and perhaps not all of them
            data = bit.encode()[: draw(st.integers(1, 12))]
            ids += [spelling().bytes[byte] for byte in data]
    return phrase, ids


@pytest.mark.slow
@more_examples(6)
@given(spelled(), st.booleans())
@example(("a b a", tokenizer().encode("a b a b a")), True)
def test_the_automaton_finds_what_is_in_the_text(
    case: tuple[str, list[int]], whole_words: bool
) -> None:
    phrase, ids = case
    text = tokenizer().decode(ids)
    found = automaton(phrase, whole_words)
    assert found.matches_at_end(read_pieces(found, ids)) == contains_phrase(
        phrase, text, whole_words=whole_words
    ), text


@pytest.mark.slow
@more_examples(3)
@given(spelled(), st.lists(PIECES, max_size=4))
def test_what_was_found_stays_found(case: tuple[str, list[int]], more: list[int]) -> None:
    phrase, ids = case
    found = automaton(phrase)
    state = read_pieces(found, ids)
    if state == FOUND:
        assert read_pieces(found, ids + more) == FOUND


@pytest.mark.slow
@more_examples(2)
@given(spelled(), st.booleans(), st.booleans())
def test_with_as_many_pieces_as_are_needed_the_phrase_can_be_made_to_occur(
    case: tuple[str, list[int]], whole_words: bool, separate: bool
) -> None:
    phrase, ids = case
    found = automaton(phrase, whole_words, separate)
    state = read_pieces(found, ids)
    for left in range(found.pieces_needed(state), 0, -1):
        needs_V = found.pieces_needed_after(state)
        needs_V = needs_V.copy()
        needs_V[:4] = 999
        best = int(needs_V.argmin())
        assert int(needs_V[best]) <= left - 1
        ids, state = [*ids, best], found.after(state, best)
    assert found.matches_at_end(state)
    assert contains_phrase(phrase, tokenizer().decode(ids), whole_words=whole_words)


def test_a_phrase_that_must_be_separate_does_not_count_right_after_a_full_stop() -> None:
    ids = tokenizer().encode("der.Haus")
    assert automaton("Haus").matches_at_end(read_pieces(automaton("Haus"), ids))
    assert not automaton("Haus", separate=True).matches_at_end(
        read_pieces(automaton("Haus", separate=True), ids)
    )
    ids = tokenizer().encode("der. Haus")
    assert automaton("Haus", separate=True).matches_at_end(
        read_pieces(automaton("Haus", separate=True), ids)
    )


@pytest.mark.parametrize(
    ("phrase", "text", "there"),
    [
        ("Haus", "Das Haus.", True),
        ("Haus", "Hausboot", False),
        ("Haus", "Landhaus", False),
        ("Haus", "Hausboot und Haus", True),
        ("Haus", "(Haus)", True),
        ("haus", "Haus", False),
        ("e", "e\u0301", False),
        ("a.", "b a.c", True),
        ("a.", "ba. c", False),
        ("x_", "x_y", False),
    ],
)
def test_whole_words_have_no_word_going_on_at_either_end(
    phrase: str, text: str, there: bool
) -> None:
    assert contains_phrase(phrase, text) is there
    assert contains_phrase(phrase, text, whole_words=False) is (phrase in text)


@pytest.mark.parametrize("gap", [" ", "  ", " \t\n", " \x00 ", "\u00a0", " \u2003\x07"])
def test_a_run_of_white_space_is_one_space_and_control_characters_are_nothing(gap: str) -> None:
    phrase = automaton("der Haus")
    ids = [spelling().bytes[byte] for byte in f"der{gap}Ha\x01us".encode()]
    assert tokenizer().decode(ids) == "der Haus"
    assert phrase.matches_at_end(read_pieces(phrase, ids))


def test_a_row_may_not_be_neutral_where_the_phrase_has_begun() -> None:
    phrase = automaton("der Haus")
    begun = read_pieces(phrase, tokenizer().encode("ab der"))
    assert not phrase.is_neutral(begun, " ")
    assert phrase.is_neutral(begun, ". ")
    assert phrase.is_neutral(read_pieces(phrase, tokenizer().encode("ab Haus")), " ")


def test_the_fewest_pieces_of_a_text_spell_it() -> None:
    fewest = spelling().fewest_pieces(" Haus")
    assert fewest[-1] == 0
    assert fewest[0] <= len(tokenizer().encode("Haus"))
    assert spelling().fewest_pieces("🦜")[0] == 4
