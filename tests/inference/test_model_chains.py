"""Models are found by the languages they translate between."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.inference.model_chains import (
    choose_chain,
    find_named_chain,
    installed_chains,
    join_pairs,
)

GERMAN = "Die Katze schläft heute den ganzen Tag auf dem alten Sofa im Wohnzimmer."
ENGLISH = "The cat sleeps all day long on the old sofa in the living room of the house."
FRENCH = "Le chat dort toute la journée sur le vieux canapé du salon de la maison."
KOREAN = "고양이가 하루 종일 소파에서 잔다."


def test_pairs_are_joined_by_the_language_they_share() -> None:
    pairs = [("de", "en"), ("en", "ko"), ("en", "de"), ("ko", "en")]
    joined = join_pairs(pairs)
    assert joined == {
        ("de", "en"): (0,),
        ("en", "ko"): (1,),
        ("en", "de"): (2,),
        ("ko", "en"): (3,),
        ("de", "ko"): (0, 1),
        ("ko", "de"): (3, 2),
    }


def test_a_model_of_the_pair_comes_before_two_and_english_before_other_languages() -> None:
    pairs = [("de", "fr"), ("fr", "ko"), ("de", "en"), ("en", "ko"), ("en-US", "ko")]
    assert join_pairs(pairs)["de", "ko"] == (2, 3)
    assert join_pairs([*pairs, ("de", "ko")])["de", "ko"] == (5,)
    assert ("en-US", "ko") not in join_pairs(pairs), "en to ko is there already"
    assert join_pairs([("de", "en-US"), ("en", "ko")])["de", "ko"] == (0, 1), "regions are one"


def test_no_more_than_two_models_are_joined() -> None:
    joined = join_pairs([("a", "b"), ("b", "c"), ("c", "d")])
    assert ("a", "c") in joined
    assert ("a", "d") not in joined


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models that have nothing but a name and languages."""
    monkeypatch.setenv("DRAGOMAN_MODELS", str(tmp_path))
    return tmp_path


def install(folder: Path, *names: str, languages: str | None = None) -> None:
    for name in names:
        (folder / name).mkdir()
        (folder / name / "card.json").write_text("{}")
        codes = (languages or name).split("-")
        (folder / name / "config.toml").write_text(f"[data]\nlanguages = {codes}\n")


def names(text: str, source: str | None = None, target: str | None = None) -> list[str]:
    return [one.name for one in choose_chain(text, source, target).models]


def test_a_model_is_chosen_by_the_language_of_the_text(installed: Path) -> None:
    install(installed, "de-en", "en-de", "en-ko", "ko-en")
    assert names(GERMAN, target="en") == ["de-en"]
    assert names(KOREAN, target="en") == ["ko-en"]
    assert names("Guten Morgen", target="en") == ["de-en"]
    assert names(ENGLISH, target="de") == ["en-de"]
    assert names(ENGLISH, target="DE-at") == ["en-de"]
    assert names(KOREAN, target="de") == ["ko-en", "en-de"]
    assert names(GERMAN, target="ko") == ["de-en", "en-ko"]
    assert names("No", source="de", target="ko") == ["de-en", "en-ko"]


def test_the_target_may_be_left_out_where_there_is_one(installed: Path) -> None:
    install(installed, "de-en", "en-de", "en-ko")
    assert names(GERMAN) == ["de-en"], "though Korean can be reached through English"
    with pytest.raises(ConfigError, match=r"from en; add --to de, --to ko$"):
        names(ENGLISH)


def test_a_pair_of_codes_names_a_chain(installed: Path) -> None:
    install(installed, "de-en", "en-ko")
    install(installed, "news", languages="en-fr")
    install(installed, "broken", languages="nothing")
    found = find_named_chain("de-ko")
    assert found is not None
    assert [one.name for one in found.models] == ["de-en", "en-ko"]
    named = find_named_chain("en-fr")
    assert named is not None
    assert [one.name for one in named.models] == ["news"]
    assert find_named_chain("de-en") is None, "it is a model itself"
    assert find_named_chain("ko-de") is None
    assert find_named_chain("news") is None
    assert len(installed_chains()) == 5


def test_what_is_missing_is_named(installed: Path) -> None:
    def said(*arguments: str | None) -> str:
        with pytest.raises(DragomanError) as caught:
            choose_chain(*arguments)  # type: ignore[arg-type]
        return str(caught.value)

    assert said(ENGLISH, None, "ko") == (
        "no translator is installed; get one, as in: dragoman get en-ko, or give a model directory"
    )
    install(installed, "en-de")
    assert said(ENGLISH, None, "ko") == (
        "nothing installed translates to Korean; try: dragoman get en-ko; there are en-de"
    )
    assert said(ENGLISH, None, "en") == ("nothing installed translates to English; there are en-de")
    assert said(ENGLISH, "fr", None) == (
        "nothing installed translates from French; try: dragoman get fr-en; there are en-de"
    )
    assert said(FRENCH, None, "de") == (
        "nothing installed translates from French to German; try: dragoman get fr-de; there are "
        "en-de"
    )
    assert said(GERMAN, None, "de") == (
        "the text seems to be German already; --from says what else it is"
    )


def test_a_text_in_another_language_that_can_be_translated_decides(installed: Path) -> None:
    install(installed, "en-de", "ko-de")
    assert names(KOREAN + " " + KOREAN, target="de") == ["ko-de"]
    with pytest.raises(ModelError, match="from Russian to German; try: dragoman get ru-de"):
        names("Кошка спит весь день на старом диване в гостиной.", target="de")
