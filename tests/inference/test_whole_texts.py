"""Whatever text goes in comes back whole, whatever the model says."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.inference import Translation, Translator
from dragoman.text.sentence_splitting import sentence_spans

from ..awkward_texts import CASES, assert_whole
from ..fake_engines import BEHAVIOURS, make_translator


@pytest.fixture(scope="module", params=BEHAVIOURS)
def translator(request: pytest.FixtureRequest) -> Translator:
    return make_translator(request.param)


@pytest.fixture(scope="module")
def identity() -> Translator:
    return make_translator("identity")


@pytest.fixture(scope="module")
def translations(translator: Translator) -> dict[str, Translation]:
    texts = list({case.text for case in CASES})
    return dict(zip(texts, translator.translate(texts), strict=True))


KINDS = sorted({case.kind for case in CASES})
COPIED_OTHERWISE = ("number", "unknown", "code")


def test_there_are_enough_cases() -> None:
    assert len({case.text for case in CASES}) >= 300


@pytest.mark.parametrize("kind", KINDS)
def test_texts_come_back_whole(kind: str, translations: dict[str, Translation]) -> None:
    for case in CASES:
        if case.kind == kind:
            assert_whole(case, translations[case.text].text)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in COPIED_OTHERWISE])
def test_a_model_that_copies_gives_the_texts_themselves(kind: str, identity: Translator) -> None:
    # Typographic marks become those of a keyboard: the model's normalisation.
    plain = str.maketrans("“”‘’—–", "\"\"''--")
    texts = [case.text for case in CASES if case.kind == kind]
    for text, found in zip(texts, identity.translate(texts), strict=True):
        assert found.text.translate(plain) == text.translate(plain).replace("…", "...")
        assert not [one for one in found.issues if one.kind in ("item", "empty", "damaged")], text


def test_every_sentence_is_searched_by_itself(identity: Translator) -> None:
    text = "Tom is a doctor. Mary is a teacher. They live here.\nThank you. Goodbye."
    engine = identity._engine
    engine.searched.clear()  # type: ignore[union-attr]
    identity.translate(text)
    expected = [line[a:b] for line in text.split("\n") for a, b in sentence_spans(line, "en")]
    assert engine.searched == expected  # type: ignore[union-attr]


def test_with_lines_each_line_is_one_sentence(identity: Translator) -> None:
    engine = identity._engine
    engine.searched.clear()  # type: ignore[union-attr]
    identity.translate("One. Two.\nThree.", lines=True)
    assert engine.searched == ["One. Two.", "Three."]  # type: ignore[union-attr]


def test_what_is_said_twice_is_searched_once(identity: Translator) -> None:
    engine = identity._engine
    engine.searched.clear()  # type: ignore[union-attr]
    found = identity.translate(["Yes. " * 20, "Yes."])
    assert engine.searched == ["Yes."]  # type: ignore[union-attr]
    assert found[0].text == "Yes. " * 20


def test_a_model_that_says_nothing_is_told_of(request: pytest.FixtureRequest) -> None:
    found = make_translator("silent").translate("Good morning. How are you?")
    assert found.text == "Good morning. How are you?"
    assert [(one.kind, one.repaired) for one in found.issues] == [("empty", False)] * 2


def test_capitals_go_through_ordinary_case(identity: Translator) -> None:
    engine = identity._engine
    engine.searched.clear()  # type: ignore[union-attr]
    assert identity.translate("THIS IS AN OLD HOUSE!").text == "THIS IS AN OLD HOUSE!"
    assert engine.searched == ["This is an old house!"]  # type: ignore[union-attr]


anything = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd\u2581"), max_size=60
)
pasted = st.lists(
    st.one_of(
        st.sampled_from([case.text[:80] for case in CASES]),
        anything,
        st.sampled_from([" ", "\n", "\r\n", "\n\n", "  ", ". ", "\t", "! ", "\n- ", "\n> "]),
    ),
    max_size=6,
).map("".join)


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=pasted)
@pytest.mark.parametrize("behaviour", ["identity", "random", "silent", "endless"])
def test_no_text_loses_its_words_or_breaks(behaviour: str, text: str) -> None:
    found = make_translator(behaviour).translate(text)
    assert found.source == text
    assert found.text.count("\ufffd") <= text.count("\ufffd")
    if any(map(str.isalnum, text)):
        assert found.text.strip()
    found.text.encode()
