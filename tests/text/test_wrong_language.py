"""Noticing texts that are not in the language expected."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.text.wrong_language import find_other_language, recognize_language

PARAGRAPHS = {
    "en": "The committee decided yesterday that the building should be kept and that the money for "
    "it must be found elsewhere.",
    "de": "Der Ausschuss beschloss gestern, dass das Gebäude erhalten bleiben und das Geld dafür "
    "anderswo gefunden werden soll.",
    "fr": "La commission a décidé hier que le bâtiment devait être conservé et que l'argent devait "
    "être trouvé ailleurs.",
    "es": "El comité decidió ayer que el edificio debía conservarse y que el dinero tendría que "
    "encontrarse en otra parte.",
    "it": "Il comitato ha deciso ieri che l'edificio deve essere conservato e che i soldi vanno "
    "trovati altrove.",
    "nl": "De commissie besloot gisteren dat het gebouw behouden moet blijven en dat het geld "
    "daarvoor elders gevonden moet worden.",
    "pl": "Komisja postanowiła wczoraj, że budynek należy zachować, a pieniądze na ten cel trzeba "
    "znaleźć gdzie indziej.",
    "sv": "Kommittén beslutade i går att byggnaden ska bevaras och att pengarna till den måste "
    "hittas någon annanstans.",
    "tr": "Komite dün binanın korunmasına ve bunun için gereken paranın başka bir yerden "
    "bulunmasına karar verdi.",
    "ru": "Комитет вчера решил, что здание следует сохранить, а деньги на него нужно найти в "
    "другом месте.",
    "ar": "قررت اللجنة أمس الإبقاء على المبنى وإيجاد المال اللازم له في مكان آخر.",
    "hi": "समिति ने कल निर्णय लिया कि भवन को बचाया जाए और उसके लिए पैसा कहीं और से लाया जाए।",
    "el": "Η επιτροπή αποφάσισε χθες ότι το κτίριο πρέπει να διατηρηθεί.",
    "th": "เมื่อวานนี้คณะกรรมการตัดสินใจว่าควรเก็บอาคารไว้และต้องหาเงินจากที่อื่น",
    "zh": "委员会昨天决定保留这座建筑，所需的钱必须从别的地方筹集，大家都表示同意。",
    "ja": "委員会は昨日、その建物を残し、必要な資金は別のところで見つけることを決めた。",
    "ko": "위원회는 어제 그 건물을 그대로 두고 필요한 돈은 다른 곳에서 마련하기로 했다.",
}


@pytest.mark.parametrize("expected", PARAGRAPHS)
def test_a_paragraph_tells_its_language(expected: str) -> None:
    found = {code: find_other_language(text, expected) for code, text in PARAGRAPHS.items()}
    assert found == {code: None if code == expected else code for code in PARAGRAPHS}


@pytest.mark.parametrize(
    ("text", "expected", "found"),
    [
        ("서울", "en", "ko"),
        ("日本", "ja", None),
        ("日本語で話します", "zh", "ja"),
        ("Привет", "de", "ru"),
        ("Bonjour tout le monde, comment ça va ?", "de-AT", "fr"),
        ("THIS IS AN IMPORTANT WARNING FOR ALL PEOPLE HERE", "de", "en"),
        ("Azure Functions에서 HTTP 트리거를 사용하는 방법을 설명합니다", "en", "ko"),
    ],
)
def test_a_few_words_can_be_enough(text: str, expected: str, found: str | None) -> None:
    assert find_other_language(text, expected) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "en"),
        ("123 + 456 = 579", "en"),
        ("Ω = 5 µm, α", "en"),
        ("Hallo!", "en"),
        ("Cristiano Ronaldo, Lionel Messi, Zinedine Zidane, Andrés Iniesta, Luka Modrić", "en"),
        ("New York, Los Angeles, San Francisco, Las Vegas, Santa Barbara, El Paso", "ko"),
        ("SELECT name, age FROM users WHERE id = 5 ORDER BY name DESC LIMIT 10;", "de"),
        ("npm install --save-dev typescript eslint prettier webpack", "ko"),
        ("https://example.com/how/to/keep/the/building/and/find/the/money/elsewhere", "de"),
        ("Das Meeting mit dem Team Lead im Open Space war ein Highlight.", "de"),
        ("Er las „The Lord of the Rings“ und „The Hobbit“ an einem Tag.", "de"),
        ("La vie en rose is a song by Édith Piaf.", "en"),
        ("The word 안녕하세요 means hello, and He said «привет» means the same.", "en"),
        ("Visual Studio Code에서 Remote Containers 사용", "ko"),
        ("위원회는 어제 결정했다.", "xx"),
        ("det er en bygning som skal bevares, og pengene må finnes et annet sted", "da"),
    ],
)
def test_names_code_quotations_and_close_languages_give_no_alarm(text: str, expected: str) -> None:
    assert find_other_language(text, expected) is None


def test_a_quotation_does_not_decide_about_a_whole_text() -> None:
    text = f"{PARAGRAPHS['de']} {PARAGRAPHS['en']} {PARAGRAPHS['de']} {PARAGRAPHS['de']}"
    assert find_other_language(text, "de") is None


@settings(deadline=None)
@given(st.text(), st.sampled_from(["en", "ko", "ja", "zh", "ru", "xx", ""]))
def test_any_text_is_judged(text: str, expected: str) -> None:
    found = find_other_language(text, expected)
    assert found is None or found != expected


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat and the dog sleep.", "en"),
        ("Ich weiß nicht, ob das für dich ist.", "de"),
        ("고양이가 잔다.", "ko"),
    ],
)
def test_plain_sentences_are_recognized_without_tables(
    text: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> None:
        raise AssertionError("the tables take half a second to load")

    monkeypatch.setattr("dragoman.text.languages._identifier", load)
    assert recognize_language(text, ["en", "de", "ko"]) == language
    assert find_other_language(f"{text} {text}", language) is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("She could not find her keys because it was dark.", "en"),
        ("Wir haben noch keine Karten bei uns.", "de"),
    ],
)
def test_a_plain_sentence_is_as_expected_without_tables(
    text: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.text.languages._identifier", lambda: pytest.fail("loaded"))
    assert find_other_language(text, language) is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Menschen in Not", "de"),
        ("My red hat", "en"),
        ("MIT students", "en"),
        ("Was machst du", "de"),
    ],
)
def test_a_word_that_two_languages_have_does_not_tell_between_them(
    text: str, language: str
) -> None:
    assert recognize_language(text, ["en", "de"]) == language


def test_where_common_words_do_not_tell_the_tables_do() -> None:
    assert recognize_language("Guten Morgen", ["en", "de"]) == "de"
    assert recognize_language("Good morning", ["en", "de"]) == "en"
    assert recognize_language("das Lied The Voice of the Night", ["en", "de"]) in ("en", "de")
    assert recognize_language("Bonjour tout le monde", ["fr", "de"]) == "fr"
