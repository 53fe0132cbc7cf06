"""How formally a text addresses its reader, told by rules."""

from __future__ import annotations

import pytest

from dragoman.errors import ConfigError
from dragoman.text.formality import FORMALITIES, choose_tag, formality_of, formality_tags

GERMAN = [
    ("Haben Sie gut geschlafen?", "formal"),
    ("Klicken Sie bitte hier.", "formal"),
    ("Wir senden es Ihnen morgen zu.", "formal"),
    ("Das ist auf Ihrem Konto.", "formal"),
    ("Wir brauchen Ihr Passwort.", "formal"),
    ("Wenn es regnet, können Sie hier warten.", "formal"),
    ("Hast du gut geschlafen?", "informal"),
    ("Ich rufe dich morgen an.", "informal"),
    ("Lieber Paul, ich danke Dir.", "informal"),
    ("Wo ist dein Schlüssel?", "informal"),
    ("Ihr seid spät dran.", "informal"),
    ("Wenn ihr müde seid, schlaft.", "informal"),
    ("Wenn Ihr müde seid, schlaft.", "informal"),
    ("Habt ihr euch verlaufen?", "informal"),
    ("Gib mir das Buch.", "informal"),
    ("Bitte komm herein!", "informal"),
    ("Kannst das mal halten?", "informal"),
    # A capital at the beginning may be she or they, and her.
    ("Sie haben gut geschlafen.", None),
    ("Das war Anna. Sie kommt morgen.", None),
    ("Ihr Hund schläft.", None),
    ("Ihnen ist kalt.", None),
    ("1. Sie beginnen morgen.", None),
    ("„Sie kommen“, sagte er.", None),
    ("Er sagte: „Sie kommen.“", None),
    ("Peter fragte, ob sie ihr helfen.", None),
    ("Er gibt ihr das Buch.", None),
    ("Ich komm gleich, dann geh ich.", None),
    ("Der Versuch war gut.", None),
    ("In aller Hast ging er.", None),
    ("Die Datei liegt im Bois du Bac.", None),
    ("Geben Sie DIR ein.", "formal"),
    ("Es regnet.", None),
    ("", None),
    # Quoted speech counts where nothing else does.
    ("Er fragte: „Hast du Zeit?“", "informal"),
    ("Klicken Sie auf „Dein Konto“.", "formal"),
    ('Drücken Sie "Zeig mir mehr".', "formal"),
    # Of two kinds is of none.
    ("Haben Sie gehört, was du sagst?", None),
]

KOREAN = [
    ("비밀번호가 변경되었습니다.", "formal"),
    ("다시 로그인하십시오.", "formal"),
    ("어디에 가십니까?", "formal"),
    ("같이 갑시다.", "formal"),
    ("비밀번호가 변경되었습니다", "formal"),
    ("비밀번호가 바뀌었어요.", "polite"),
    ("다시 로그인하세요.", "polite"),
    ("어디에 가요?", "polite"),
    ("그렇죠?", "polite"),
    ("저는 학생이에요", "polite"),
    ("비가 온다.", "informal"),
    ("어디 가니?", "informal"),
    ("열쇠를 사니?", "informal"),
    ("밥 먹었어.", "informal"),
    ("내일 전화할게.", "informal"),
    ("우리 집에 가자!", "informal"),
    ("사랑해.", "informal"),
    ("이건 내 책이야.", "informal"),
    ("빨리 와!", "informal"),
    # Nouns that end as verbs do, and entries of a dictionary.
    ("문서 개요", None),
    ("로그인 필요", None),
    ("이것은 우리의 바다.", None),
    ("새로운 분야.", None),
    ("더 큰 피해.", None),
    ("작은 강아지.", None),
    ("우리 어머니?", None),
    ("새로 산 의자.", None),
    ("가다", None),
    ("설정", None),
    ("그는 그러니까.", None),
    ("야곱의 아들이요", None),
    # Quoted speech counts where nothing else does.
    ("그는 “어디 가니?”라고 물었습니다.", "formal"),
    ("“어디 가요?”", "polite"),
    ("네. 알겠습니다. 곧 가겠습니다.", "formal"),
    ("알겠습니다. 곧 갈게요.", None),
    ("알겠습니다... 곧 가겠습니다!", "formal"),
]


@pytest.mark.parametrize(("text", "formality"), GERMAN)
def test_german_addresses_its_reader_with_sie_or_du(text: str, formality: str | None) -> None:
    assert formality_of(text, "de") == formality


@pytest.mark.parametrize(("text", "formality"), KOREAN)
def test_korean_sentences_end_as_they_address_their_reader(
    text: str, formality: str | None
) -> None:
    assert formality_of(text, "ko") == formality


def test_regions_do_not_matter_and_other_languages_say_nothing() -> None:
    assert formality_of("Hast du Zeit?", "de-AT") == "informal"
    assert formality_of("Hast du Zeit?", "en") is None
    assert formality_of("Hast du Zeit?", "") is None


@pytest.mark.parametrize("language", FORMALITIES)
def test_tags_are_those_that_the_rules_tell_apart(language: str) -> None:
    assert formality_tags(language) == tuple(f"<{one}>" for one in FORMALITIES[language])


@pytest.mark.parametrize("language", ["fr", None])
def test_a_language_without_rules_has_no_tags(language: str | None) -> None:
    with pytest.raises(ConfigError, match=r"no rules for .*; leave it out, or translate to German"):
        formality_tags(language)


@pytest.mark.parametrize(
    ("wish", "tag"),
    [
        (None, None),
        ("default", None),
        ("more", "<formal>"),
        ("less", "<informal>"),
        ("prefer_more", "<formal>"),
        ("prefer_less", "<informal>"),
        ("polite", "<polite>"),
    ],
)
def test_a_wish_means_a_tag(wish: str | None, tag: str | None) -> None:
    assert choose_tag(wish, formality_tags("ko"), "m") == tag


def test_a_wish_that_the_model_cannot_fulfil_is_refused_unless_it_is_a_preference() -> None:
    for wish in ("default", "prefer_more", "prefer_less"):
        assert choose_tag(wish, (), "m") is None
    for wish in ("more", "less"):
        with pytest.raises(ConfigError, match=rf"m: was trained without .*; use prefer_{wish}, or"):
            choose_tag(wish, (), "m")
    with pytest.raises(ConfigError, match="m: knows <formal>, <informal>, and no <polite>"):
        choose_tag("polite", formality_tags("de"), "m")
    with pytest.raises(ConfigError, match="formality polie does not exist; use default, more"):
        choose_tag("polie", formality_tags("de"), "m")
