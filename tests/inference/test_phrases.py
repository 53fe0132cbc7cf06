"""What a translation must contain, and must not: kept, whatever the phrase and the text."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.inference import Translation, Translator
from dragoman.search import SamplingOptions
from dragoman.text.word_boundaries import contains_phrase

fuzz = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TEXTS = ["the old dog sees", "red cat", "big small tree eats the house"]
WORDS = st.text(min_size=1, max_size=12) | st.sampled_from(["tac", "eht der", "Zoo 2.0", "é", "한"])


def one_line(error: Exception) -> None:
    assert "\n" not in str(error)


def everything(found: Translation) -> list[Translation]:
    return [found, *found.alternatives]


@pytest.mark.slow
@pytest.mark.parametrize("must", [["tac"], ["esuoh eht", "Ünseen"], ["a.b"], ["🦜 is 3.5%"]])
def test_what_must_be_there_is_there_in_every_translation(
    must: list[str], reverser: Translator
) -> None:
    for found in reverser.translate(TEXTS, must=must, n_best=3, align=False):
        assert len(everything(found)) == 3
        for one in everything(found):
            assert all(contains_phrase(phrase, one.text) for phrase in must), one.text


@pytest.mark.slow
@fuzz
@given(
    must=st.lists(WORDS, max_size=2), must_not=st.lists(WORDS, max_size=3), n_best=st.integers(1, 3)
)
def test_any_phrase_is_there_or_refused_in_one_line(
    must: list[str], must_not: list[str], n_best: int, reverser: Translator
) -> None:
    try:
        found = reverser.translate(
            TEXTS[:2], must=must, must_not=must_not, n_best=n_best, align=False
        )
    except ConfigError as error:
        one_line(error)
        return
    normalize = reverser.tokenizer.normalize
    for one in (one for each in found for one in everything(each)):
        assert all(contains_phrase(normalize(phrase), one.text) for phrase in must)
        assert not any(contains_phrase(normalize(phrase), one.text) for phrase in must_not)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_what_must_not_be_there_is_not_there(beam: int, reverser: Translator) -> None:
    for text in TEXTS:
        plain = reverser.translate(text, beam=beam)
        word = plain.text.split()[0]
        found = reverser.translate(text, beam=beam, must_not=[word])
        assert not contains_phrase(word, found.text)
    drawn = reverser.translate(
        TEXTS[0], must_not=["eht", "der"], sampling=SamplingOptions(samples=5)
    )
    for one in everything(drawn):
        assert not contains_phrase("eht", one.text)
        assert not contains_phrase("der", one.text)


@pytest.mark.slow
def test_what_is_there_anyway_changes_nothing(reverser: Translator) -> None:
    for text in TEXTS:
        plain = reverser.translate(text, beam=4)
        found = reverser.translate(text, beam=4, must=[plain.text.split()[0]])
        assert found.score >= plain.score - 1e-4


def test_phrases_may_be_given_for_each_text(reverser: Translator) -> None:
    found = reverser.translate(
        TEXTS, must=[["tac"], [], ["xyz", "tac"]], must_not=[[], ["der"], []]
    )
    assert [contains_phrase("tac", one.text) for one in found][::2] == [True, True]
    assert contains_phrase("xyz", found[2].text)
    assert found[1] == reverser.translate(TEXTS[1], must_not=["der"])
    # An unconstrained neighbour is translated as if it were alone.
    assert reverser.translate(TEXTS, must=[["tac"], [], []])[1].text == (
        reverser.translate(TEXTS[1]).text
    )


@pytest.mark.slow
def test_no_line_depends_on_what_its_neighbours_are_asked_for(reverser: Translator) -> None:
    texts = [*TEXTS, "old tree", "dog"]
    must = [["tac"], ["a longer phrase of words"], [], [], []]
    must_not = [[], [], [], ["eert"], ["god", "eht"]]
    together = reverser.translate(texts, must=must, must_not=must_not, align=False)
    for text, wanted, banned, one in zip(texts, must, must_not, together, strict=True):
        alone = reverser.translate(text, must=wanted, must_not=banned, align=False)
        assert (one.text, one.tokens) == (alone.text, alone.tokens)
    assert together[2].text == reverser.translate(TEXTS[2], align=False).text


def test_a_prefix_and_a_phrase_go_together(reverser: Translator) -> None:
    found = reverser.translate("dog", prefix="eht tac", must=["xyz", "tac"])
    assert found.text.startswith("eht tac")
    assert contains_phrase("xyz", found.text)


@pytest.mark.slow
@pytest.mark.parametrize("phrase", ["xyz", "eht tac"])
def test_a_line_in_several_segments_contains_the_phrase_once_somewhere(
    phrase: str, reverser: Translator
) -> None:
    line = "The old dog sees the cat. " * 8
    assert len(reverser.tokenizer.encode(line)) > reverser.config.data.max_length
    found = reverser.translate(line, must=[phrase], must_not=["eht eht"], align=False)
    assert contains_phrase(phrase, found.text)
    assert not contains_phrase("eht eht", found.text)


def test_a_text_without_words_stays_as_it_is(reverser: Translator) -> None:
    assert [one.text for one in reverser.translate(["", " \x00"], must=["tac"])] == ["", " \x00"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"must": ["New York"], "must_not": ["York"]}, "cannot contain 'New York' and not contain"),
        ({"must": [" \t"]}, r"must: ' \\t' has no text; give words"),
        ({"must_not": [""]}, "must not: '' has no text"),
        ({"must": ["a\ud800"]}, "holds a damaged character; write it again"),
        ({"must": ["é🦜" * 20], "max_extra": 3}, "pieces, and 4 are allowed; raise max_extra"),
        ({"must": ["x" * 500]}, "has 500 characters; at most 400 are allowed"),
        ({"must": "tac"}, r"must is a list of phrases; write must=\['tac'\]"),
        ({"must": [["a"], ["b"]]}, "must has lists of phrases for 2 texts, and there are 1"),
        ({"must": ["a"], "diverse": 2}, "diverse beams cannot be made to contain phrases"),
        ({"must": ["a"], "sampling": SamplingOptions()}, "must contain needs search"),
        ({"must_not": ["tac"], "prefix": "a tac b"}, "no translation of 'dog' meets all that"),
    ],
)
def test_what_cannot_be_met_is_refused(
    options: dict[str, object], message: str, reverser: Translator
) -> None:
    with pytest.raises(ConfigError, match=message):
        reverser.translate("dog", **options)
