"""Phrases that must be there: found by the best sequence there is, in a wide enough beam."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.search import (
    SamplingOptions,
    SearchOptions,
    phrase_constrained_search,
    sample,
    search,
)
from dragoman.search.constraints.phrase_constraint import PhraseConstraint
from dragoman.search.constraints.phrase_matching import PhraseMatcher, PieceSpelling
from dragoman.search.constraints.phrases import PhraseRequirements
from dragoman.text.word_boundaries import contains_phrase

from ...conftest import more_examples
from ..toy_model import FIRST, Toy, exhaustive, only, sources

TEXTS = ["a", " a", "b", " ", ".", "ab"]
SPELLING = PieceSpelling([""] * FIRST + TEXTS, {})


def text(ids: list[int]) -> str:
    return " ".join("".join(SPELLING.texts[i] for i in ids).split())


def phrase(words: str, *, separate: bool = False) -> PhraseMatcher:
    return PhraseMatcher(words, SPELLING, separate=separate)


def constraint(*wanted: PhraseRequirements) -> PhraseConstraint:
    return PhraseConstraint(wanted, FIRST + len(TEXTS), torch.device("cpu"))


def fits(ids: list[int], must: list[str], must_not: list[str]) -> bool:
    said = text(ids)
    return all(contains_phrase(p, said) for p in must) and not any(
        contains_phrase(p, said) for p in must_not
    )


CASES = [
    (["b"], []),
    (["a b"], []),
    (["b", "a"], []),
    (["ab"], ["a"]),
    (["b"], ["b b", "a."]),
    (["a."], ["."]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("must", "must_not"), CASES[:-1])
def test_a_wide_enough_beam_finds_the_best_sequence_that_contains_the_phrases(
    must: list[str], must_not: list[str]
) -> None:
    options = SearchOptions(beam=1600, n_best=5, max_extra=1)
    wanted = PhraseRequirements(tuple(map(phrase, must)), tuple(map(phrase, must_not)))
    for seed in range(2):
        model, source = Toy(seed, pieces=len(TEXTS)), sources(3)
        everything = exhaustive(model, source, options, ceiling=4, prefix=[])
        expected = [one for one in everything if fits(one.ids, must, must_not)][:5]
        [found] = phrase_constrained_search(model, source, options, constraint(wanted))
        assert [one.ids for one in found] == [one.ids for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected])


def test_what_contradicts_itself_is_found_impossible() -> None:
    wanted = PhraseRequirements((phrase("a."),), (phrase("."),))
    [[found]] = phrase_constrained_search(
        Toy(0, pieces=6), sources(3), SearchOptions(), constraint(wanted)
    )
    assert found.score == -torch.inf


@pytest.mark.slow
@more_examples(1.2)
@given(
    seed=st.integers(0, 1000),
    must=st.lists(
        st.sampled_from(["a", "b", "ab", "a b", "b.", "a b ab"]), max_size=3, unique=True
    ),
    must_not=st.lists(st.sampled_from(["b b", "aa", "ab ab", "b a b"]), max_size=2, unique=True),
    beam=st.integers(1, 9),
    max_extra=st.integers(4, 12),
    sharpness=st.sampled_from([0.5, 2.0, 6.0]),
)
def test_any_beam_satisfies_everything_in_every_hypothesis(
    seed: int, must: list[str], must_not: list[str], beam: int, max_extra: int, sharpness: float
) -> None:
    model, source = Toy(seed, pieces=len(TEXTS), sharpness=sharpness), sources(4, 1, 6)
    wanted = PhraseRequirements(
        tuple(phrase(p, separate=True) for p in must), tuple(phrase(p) for p in must_not)
    )
    options = SearchOptions(beam=wanted.beam_width(beam), n_best=beam, max_extra=max_extra)
    for row in phrase_constrained_search(
        model, source, options, constraint(wanted, wanted, wanted)
    ):
        assert row[0].score > -torch.inf
        for one in row:
            assert fits(one.ids, must, must_not), text(one.ids)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), beam=st.integers(1, 4))
def test_what_must_not_be_there_is_in_no_search(seed: int, beam: int) -> None:
    model, source = Toy(seed, pieces=len(TEXTS), sharpness=1.0), sources(4, 7)
    banned = ["a", "b b", "."]
    wanted = PhraseRequirements((), tuple(map(phrase, banned)))
    both = constraint(wanted, wanted)
    found = search(model, source, SearchOptions(beam=beam, n_best=beam), constraint=both)
    found += sample(model, source, SamplingOptions(samples=3, seed=seed), constraint=both)
    for row in found:
        for one in row:
            assert one.score > -torch.inf, "nothing has to come to a dead end"
            assert fits(one.ids, [], banned), text(one.ids)


def test_the_length_limit_is_raised_to_what_must_be_there() -> None:
    wanted = PhraseRequirements((phrase("a b ab a b"),))
    options = SearchOptions(beam=6, max_extra=0)
    [[found]] = phrase_constrained_search(Toy(1, pieces=6), sources(1), options, constraint(wanted))
    assert contains_phrase("a b ab a b", text(found.ids))


def test_a_sentence_finds_the_same_whatever_its_neighbours_must_contain() -> None:
    model, source = Toy(3, pieces=len(TEXTS)), sources(4, 2, 6)
    wanted = [
        PhraseRequirements((phrase("a b"),)),
        PhraseRequirements((phrase("b"),)),
        PhraseRequirements((phrase("ab"),)),
    ]
    options = SearchOptions(beam=8, n_best=2)
    together = phrase_constrained_search(model, source, options, constraint(*wanted))
    for row, one in enumerate(wanted):
        [alone] = phrase_constrained_search(model, only(source, row), options, constraint(one))
        assert [h.ids for h in alone] == [h.ids for h in together[row]]


def test_without_banks_a_phrase_is_put_off_and_costs_more() -> None:
    """Why `choose` is there: the plain beam has thrown away what begins the phrase early."""
    better = 0
    for seed in range(12):
        model, source = Toy(seed, pieces=len(TEXTS), sharpness=3.0), sources(5)
        wanted = PhraseRequirements((phrase("a b", separate=True),))
        options = SearchOptions(beam=6, max_extra=6)
        [[banked]] = phrase_constrained_search(model, source, options, constraint(wanted))
        [[plain]] = search(model, source, options, constraint=constraint(wanted))
        assert contains_phrase("a b", text(plain.ids))
        better += banked.score > plain.score + 1e-6
        better -= banked.score < plain.score - 1e-6
    assert better >= 3


def test_a_text_that_goes_on_must_not_end_in_the_beginning_of_a_phrase() -> None:
    wanted = PhraseRequirements((), (phrase("a b"),), separator=" ")
    for seed in range(20):
        model = Toy(seed, pieces=len(TEXTS), sharpness=1.0)
        options = SearchOptions(beam=4, n_best=4, max_extra=3)
        for one in search(model, sources(3), options, constraint=constraint(wanted))[0]:
            assert not contains_phrase("a b", f"{text(one.ids)} b")
