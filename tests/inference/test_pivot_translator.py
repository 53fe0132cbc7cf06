"""Two translators one after another are one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragoman.errors import ConfigError, ModelError
from dragoman.inference import Glossary, Translation, Translator
from dragoman.inference.pivot_translator import PivotTranslator
from dragoman.inference.translation_memory import TranslationMemory
from dragoman.inference.translation_types import Word

from ..fake_engines import FakeEngine, make_translator


def pivot(first: str = "identity", second: str = "reversed") -> PivotTranslator:
    return PivotTranslator(
        make_translator(first, ("de", "en")), make_translator(second, ("en", "nl"))
    )


def searched(translator: Translator) -> list[str]:
    assert isinstance(translator._engine, FakeEngine)
    return translator._engine.searched


def test_the_second_translates_what_the_first_says() -> None:
    one = pivot("reversed", "identity")
    assert one.translate("the old house").text == "house old the"
    assert searched(one.first) == ["the old house"]
    assert searched(one.second) == ["house old the"]
    assert one.config.data.languages == ("de", "nl")
    assert one.through == "en"
    assert one.first.through == ""


def test_a_text_is_split_once_and_laid_out_as_it_was() -> None:
    one = pivot()
    found = one.translate("the old house\n\n  We know it. They come z. B. now.\n")
    assert found.text == "house old the\n\n  it. know We. now. B. z. come They.\n"
    assert [each.source for each in found.sentences] == [
        "the old house",
        "We know it.",
        "They come z. B. now.",  # as German is split
    ]
    assert found.source.startswith("the old")


def test_numbers_and_addresses_come_through_both() -> None:
    one = PivotTranslator(
        make_translator("identity", ("de", "en")), make_translator("identity", ("en", "ko"))
    )
    text = "the house has 1.234,5 rooms; see https://example.org/a?b=c or {name} 🙂"
    found = one.translate(text).text
    assert "1,234.5" in found
    assert "https://example.org/a?b=c" in found
    assert "{name}" in found
    assert "🙂" in found
    assert one.translate("{name}: the old house", protect=False).text


def test_words_are_aligned_through_the_language_in_between() -> None:
    found = pivot().translate("the old house", align=True)
    assert found.alignment == ((0, 2), (1, 1), (2, 0))
    twice = pivot("reversed", "reversed").translate("the old house", align=True)
    assert twice.alignment == ((0, 0), (1, 1), (2, 2))
    assert pivot().translate("the old house").alignment == ()
    assert pivot().aligns


def test_scores_are_those_of_both() -> None:
    one, text = pivot("identity", "identity"), "the old house"
    each = make_translator("identity").translate(text, raw=True)
    for raw in (True, False):
        found = one.translate(text, raw=raw)
        assert found.log_prob == pytest.approx(2 * each.log_prob)
        assert found.score == pytest.approx(2 * each.score)
        assert found.tokens == each.tokens


def test_what_is_asked_of_a_translation_is_asked_of_the_second() -> None:
    one = pivot()
    found = one.translate("the old house", n_best=3)
    assert len(found.alternatives) == 2
    assert {other.source for other in found.alternatives} == {"the old house"}
    assert found.alternatives[0].log_prob == pytest.approx(found.log_prob)


def test_a_glossary_has_the_languages_of_the_whole() -> None:
    one = pivot("identity", "identity")
    found = one.translate("we see the house", glossary=Glossary([("house", "gebouw", 1)]))
    assert found.text == "we see the gebouw"


def test_a_memory_has_the_languages_of_the_whole() -> None:
    one = pivot()
    memory = TranslationMemory("de", "nl")
    memory.add([("the old house", "het oude huis")])
    found = one.translate(["the old house", "the new house"], memory=memory)
    assert [each.text for each in found] == ["het oude huis", "house new the"]
    assert searched(one.first) == ["the new house"]


def sure(share: float) -> SimpleNamespace:
    """A calibration that says of everything that it is right with one probability."""

    def apply(found: Translation) -> Translation:
        words = tuple(Word(word, share) for word in found.text.split())
        return replace(found, confidence=share, words=words)

    return SimpleNamespace(apply=apply)


def test_confidence_is_that_both_are_right() -> None:
    one = pivot()
    one.first.__dict__["calibration"] = sure(0.9)
    assert one.translate("the old house").confidence is None, "the second is not calibrated"
    assert one.translate("the old house").words == ()
    one.second.__dict__["calibration"] = sure(0.5)
    found = one.translate("the old house")
    assert found.confidence == pytest.approx(0.45)
    assert found.words == (("house", 0.45), ("old", 0.45), ("the", 0.45))


def test_issues_of_both_are_reported() -> None:
    found = pivot("silent", "identity").translate("the old house")
    assert {issue.kind for issue in found.issues} == {"empty"}
    assert found.text == "the old house"


def test_warnings_of_both_are_heard() -> None:
    heard: list[str] = []
    one = PivotTranslator(
        make_translator("identity", ("de", "en"), 20), make_translator("identity", ("en", "nl"))
    )
    one.warn = heard.append
    one.translate("the old house and " * 20)
    assert "was cut into parts" in heard[0]


def test_what_needs_one_model_is_refused() -> None:
    one = pivot()
    reason = r"de-nl: translated through en by two models, and .* needs one; name"
    uses = (
        lambda: one.score(["a"], ["b"]),
        lambda: one.alternatives("a"),
        lambda: one.model,
        lambda: one.word_starts,
    )
    for use in uses:
        with pytest.raises(ConfigError, match=reason):
            use()
    with pytest.raises(ModelError, match="share the language in between"):
        PivotTranslator(
            make_translator("identity", ("de", "en")), make_translator("identity", ("de", "nl"))
        )


def test_models_are_shared() -> None:
    middle = make_translator("identity", ("de", "en"))
    one = PivotTranslator(middle, make_translator("identity", ("en", "nl")))
    other = PivotTranslator(middle, make_translator("reversed", ("en", "ko")))
    assert one.first is other.first
    assert other.translate("the old house").text == "house old the"
    assert one.translate("the old house").text == "the old house"
    assert [each.path for each in one._loaded] == [Path("no-such-model")] * 2
