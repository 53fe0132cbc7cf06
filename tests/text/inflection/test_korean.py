"""Korean particles: they fit what they follow, and are told from the noun."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.phrasebook.korean.inflection import mark
from dragoman.text.inflection.korean import (
    are_particles,
    fit_particles,
    last_consonant,
    split_particles,
)

_SYLLABLES = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1)


@pytest.mark.parametrize(
    ("noun", "particles", "wanted"),
    [
        ("새", "은", "는"), ("책", "는", "은"), ("새", "이", "가"), ("책", "를", "을"),
        ("새", "과", "와"), ("개", "으로", "로"), ("숲", "로", "으로"), ("말", "으로", "로"),
        ("물", "나", "이나"), ("친구", "이랑", "랑"), ("철수", "아", "야"), ("영숙", "야", "아"),
        ("의사", "이라고", "라고"), ("친구", "이에요", "예요"), ("책", "예요", "이에요"),
        ("책", "들은", "들은"), ("새", "에서는", "에서는"), ("책", "", ""), ("책", "에게", "에게"),
        ("새", "이었습니다", "였습니다"), ("새", "입니다", "입니다"), ("새", "만은", "만은"),
        ("Google", "는", "은"), ("iPhone", "를", "을"), ("Docker", "은", "는"),
        ("SQL", "으로", "로"), ("KBS", "은", "는"), ("3", "가", "이"),
        ("2", "이", "가"), ("7", "으로", "로"), ("100", "가", "이"),
        ("(주)", "은", "는"), ("책\"", "는", "은"),
    ],
)  # fmt: skip
def test_a_particle_fits_the_noun_it_follows(noun: str, particles: str, wanted: str) -> None:
    assert fit_particles(noun, particles) == wanted


@given(_SYLLABLES, st.sampled_from(["topic", "subject", "object", "with", "toward", "in", "of"]))
def test_particles_are_those_of_the_phrasebook(noun: str, case: str) -> None:
    wanted = mark(noun, case)[len(noun) :]
    assert fit_particles(noun, mark("새", case)[1:]) == wanted
    assert fit_particles(noun, mark("책", case)[1:]) == wanted


@pytest.mark.parametrize(
    ("word", "noun", "particles"),
    [
        ("고양이들에게서는", "고양이", "들에게서는"),
        ("학교에서만", "학교", "에서만"),
        ("집으로부터의", "집", "으로부터의"),
        ("왕입니다", "왕", "입니다"),
        ("나무", "나무", ""),
    ],
)
def test_particles_are_split_off(word: str, noun: str, particles: str) -> None:
    assert split_particles(word)[0] == (noun, particles)


@pytest.mark.parametrize(
    ("noun", "rest"),
    [
        ("새", "은"), ("책", "는"), ("새", "로"), ("개", "미"), ("학교", "생활"), ("사", "이"),
        ("책", "는은"), ("정", "도"), ("나", "라"),
    ],
)  # fmt: skip
def test_what_fits_no_noun_or_is_another_word_is_no_particle(noun: str, rest: str) -> None:
    assert not are_particles(noun, rest)


def test_a_word_ends_as_it_is_read() -> None:
    ends = [last_consonant(w) for w in ("강", "배", "길", "1", "6", "robot", "file", "")]
    assert [bool(one) for one in ends] == [True, False, True, True, True, True, True, False]
    assert ends[2] == ends[3] == ends[6] == "ㄹ"
