"""Whatever a model does, what must come back does."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.inference import Translation, Translator
from dragoman.inference.protection import ProtectedTranslator
from dragoman.inference.translation_types import Issue, Request
from dragoman.text.normalization import normalize

from .fake_models import KNOWN, MODELS, each, fake_tokenizer, protect

ITEMS = [
    "https://a.b/c?d=1",
    "me@a-b.de",
    "/usr/local/bin",
    "C:\\Users\\x",
    "{0}",
    "{name}",
    "%s",
    "%1$s",
    "`x = 1`",
    "@maria_2",
    "#Berlin",
    "DE89 3704 0044 0532 0130 00",
    "v1.2.3",
    "2024-11-16",
    "14:30:05",
    "RTX-4090",
    "192.168.0.1",
    "&nbsp;",
    "<b>",
    "</b>",
    "<br/>",
    "😀",
    "👨‍👩‍👧",
    "🇩🇪",
    "❤️",
    "Nguyễn",
    "Москва",
    "東京",
    "→",
]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("item", ITEMS)
def test_no_model_loses_an_item(name: str, item: str) -> None:
    for text in (f"The dog sees {item} now.", f"{item} is here", f"Look at this: {item}", item):
        found = protect(text, MODELS[name])
        assert item in found.text, (text, found)
        assert found.source == text


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("number", ["17", "1,499.00", "99.99", "2024", "−5.2", "11/16/2024"])
def test_no_model_loses_a_number(name: str, number: str) -> None:
    found = protect(f"The dog has {number} cats.", MODELS[name])
    spelled = {"1,499.00": "1.499,00", "99.99": "99,99", "−5.2": "5,2"}.get(number, number)
    assert re.sub(r"[.,]", "", spelled) in re.sub(r"[.,]", "", found.text), found


def test_a_good_model_is_not_disturbed() -> None:
    asked: list[str] = []

    def run(requests: Sequence[Request]) -> list[Translation]:
        asked.extend(request.text for request in requests)
        return [Translation(r.text, f"Siehe {r.text[4:]}", -1.0, ()) for r in requests]

    assert protect("See {0}, 5 dogs and %s!", run) == Translation(
        "See {0}, 5 dogs and %s!", "Siehe {0}, 5 dogs and %s!", -1.0, ()
    )
    assert asked == ["See {0}, 5 dogs and %s!"]


def test_what_a_model_would_damage_is_replaced_by_a_word_it_copies() -> None:
    asked: list[str] = []

    def run(requests: Sequence[Request]) -> list[Translation]:
        asked.extend(request.text for request in requests)
        return [Translation(r.text, r.text.replace("See", "Siehe"), -1.0, ()) for r in requests]

    found = protect("See https://a.b/c and Nguyễn.", run)
    assert found.text == "Siehe https://a.b/c and Nguyễn."
    assert found.issues == ()
    assert len(asked) == 1
    assert "Nguyễn" not in asked[0]
    assert "https" not in asked[0]


def test_a_word_that_is_in_the_text_stands_for_nothing() -> None:
    found = protect("Copy {1} and ABC to Nguyễn at /usr/bin.", each(str.strip))
    assert found.text == "Copy {1} and ABC to Nguyễn at /usr/bin."


def test_what_became_of_an_item_is_put_right() -> None:
    found = protect("See {0} at 2024-11-16 now", each(lambda text: "Siehe {0} am 2024-16 jetzt"))
    assert found.text == "Siehe {0} am 2024-11-16 jetzt"
    assert found.issues == (Issue("item", "2024-11-16", repaired=True),)


def test_a_line_that_lost_something_is_translated_again() -> None:
    asked: list[str] = []

    def run(requests: Sequence[Request]) -> list[Translation]:
        asked.extend(request.text for request in requests)
        return [Translation(r.text, r.text.replace("%s", ""), -1.0, ()) for r in requests]

    translator = ProtectedTranslator(fake_tokenizer(), "en", "de", probe=each(str.strip))
    found = translator.translate([Request("to %s now"), Request("dog")], run)
    assert asked == ["to %s now", "dog", "to {1} now"]
    assert [one.text for one in found] == ["to %s now", "dog"]
    assert found[0].issues == (Issue("item", "%s", repaired=True),)
    assert found[1].issues == ()


def test_a_placeholder_comes_back_just_once() -> None:
    doubled = each(lambda text: text.replace("{0}", "{0} {0}"))
    assert protect("to {0} now", doubled).text == "to {0} now"
    for name in ("loops", "echo", "random"):
        assert protect("to {0} now", MODELS[name]).text.count("{0}") == 1


WORDLESS = [
    "<b></b>",
    "{0} {1}",
    "(https://a.b/c)!",
    "%s.",
    "#",
    "{",
    "→",
    "😀",
    "***",
    "…",
    "",
    "Я",
]


@pytest.mark.parametrize("text", WORDLESS)
def test_a_text_without_words_is_left_as_it_is_and_not_searched(text: str) -> None:
    def refuse(requests: Sequence[Request]) -> list[Translation]:
        raise AssertionError(requests)

    assert protect(text, refuse).text == text


def test_what_is_copied_is_aligned_with_itself() -> None:
    translator = ProtectedTranslator(fake_tokenizer(), "en", "de", probe=each(str.strip))
    [found] = translator.translate([Request("Москва 1,499 5%")], each(str.strip), aligned=True)
    assert (found.text, found.alignment) == ("Москва 1.499 5\u00a0%", ((0, 0), (1, 1), (2, 2)))


def test_a_number_alone_is_localised_and_not_searched() -> None:
    def refuse(requests: Sequence[Request]) -> list[Translation]:
        raise AssertionError(requests)

    assert protect("1,499.00", refuse).text == "1.499,00"
    assert protect("5%", refuse).text == "5\u00a0%"
    assert protect("2024-11-16", refuse).text == "2024-11-16"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("I love you 😀❤️🎉", "I love you 😀❤️🎉"),
        ("I love you. 😀", "I love you. 😀"),
        ("I love you 😀.", "I love you 😀."),
        ("😀 I love you", "😀 I love you"),
        ("Good 😀, but bad 🎉!", "Good 😀, but bad 🎉!"),
        ("Call Nguyễn (Hồ) now", "Call Nguyễn (Hồ) now"),
        ("Haus™ now", "Haus™ now"),
        ("The NKÚ-Chef said", "The NKÚ-Chef said"),
        ("ab\u00adcd e\u200bf \ufeffgh", "abcd ef gh"),
        ("ﬁnd Ｈｅｌｌｏ", "find Hello"),
        ("Bu\u0308cher", "Bücher"),
    ],
)
def test_unknown_characters_come_back_where_they_were(text: str, result: str) -> None:
    assert protect(text, each(str.strip)).text == result


def test_what_broken_bytes_spell_is_left_out() -> None:
    assert protect("the dog", each(lambda text: "der \ufffdHuЯnd\ufffd ⁇")).text == "der Hund"
    assert protect("the \ufffd dog", each(lambda text: text)).text == "the \ufffd dog"


def test_rare_letters_of_the_source_language_are_translated_unless_that_breaks() -> None:
    assert protect("가나 뷁 다", each(lambda text: "dog"), ("ko", "en")).text == "dog"
    broken = each(lambda text: f"dog {text}".replace("뷁", "\ufffd"))
    assert protect("가나 뷁 다", broken, ("ko", "en")).text == "dog 가나 뷁 다"


def test_tags_go_around_what_is_aligned_with_their_words() -> None:
    asked: list[Request] = []

    def run(requests: Sequence[Request]) -> list[Translation]:
        asked.extend(requests)
        return [Translation(r.text, "Hund alter", 0, (), ((0, 1), (1, 0))) for r in requests]

    translator = ProtectedTranslator(fake_tokenizer(), "en", "de", probe=each(str.strip))
    [found] = translator.translate([Request("<b>old</b> dog")], run)
    assert asked == [Request("old dog", align=True)]
    assert (found.text, found.alignment) == ("Hund <b>alter</b>", ())
    [found] = translator.translate([Request("<b>old</b> dog")], run, aligned=True)
    assert found.alignment == ((0, 1), (1, 0))


@pytest.mark.parametrize("tags", [("<b>", "</b>"), ("<b>", "<br>"), ("<b>", "<b>")])
def test_tags_that_touch_each_other_at_the_end_of_a_text_stay(tags: tuple[str, str]) -> None:
    found = protect("Tom" + "".join(tags), each(str.strip)).text
    assert sorted(re.findall("<[^<>]+>", found)) == sorted(tags)
    assert re.sub("<[^<>]+>", "", found) == "Tom"


def test_an_alignment_is_one_of_the_whole_words_on_both_sides() -> None:
    def run(requests: Sequence[Request]) -> list[Translation]:
        pairs = ((0, 1), (1, 0), (2, 2), (3, 3))
        return [
            Translation(r.text, f"Hund alter {r.text.split()[2]} sieht", 0, (), pairs)
            for r in requests
        ]

    translator = ProtectedTranslator(fake_tokenizer(), "en", "de", probe=each(str.strip))
    text = "<a href='x y'>old dog</a> {x, plural, one {a} other {b}} sees"
    [found] = translator.translate([Request(text)], run, aligned=True)
    assert found.text == "<a href='x y'>Hund alter</a> {x, plural, one {a} other {b}} sieht"
    words = text.split(), found.text.split()
    assert [(words[0][s], words[1][t]) for s, t in found.alignment][:2] == [
        ("y'>old", "alter</a>"),
        ("dog</a>", "y'>Hund"),
    ]
    assert words[0][found.alignment[-1][0]] == "sees"
    assert words[1][found.alignment[-1][1]] == "sieht"


def test_alternatives_have_everything_or_are_left_out() -> None:
    def run(requests: Sequence[Request]) -> list[Translation]:
        return [
            Translation(
                r.text,
                f"siehe {r.text[4:]}",
                -1.0,
                (),
                alternatives=(
                    Translation(r.text, f"sieh {r.text[4:]}", -2.0, ()),
                    Translation(r.text, "sieh", -3.0, ()),
                ),
            )
            for r in requests
        ]

    found = protect("see https://a.b/c and %s", run)
    assert found.text == "siehe https://a.b/c and %s"
    assert [one.text for one in found.alternatives] == ["sieh https://a.b/c and %s"]


def test_what_a_translation_must_have_is_left_in_the_text() -> None:
    asked: list[Request] = []

    def run(requests: Sequence[Request]) -> list[Translation]:
        asked.extend(requests)
        return [Translation(r.text, "Siehe Nguyễn, 17", -1.0, ()) for r in requests]

    found = protect("See Nguyễn, 18", run, prefix="Siehe Nguyễn, 17", must=("Nguyễn",))
    assert found.text.startswith("Siehe Nguyễn, 17")
    assert asked[0].text == "See Nguyễn, 18"
    assert Issue("item", "18") in found.issues


def test_what_became_of_a_placeholder_is_taken_out() -> None:
    mangled = each(lambda text: f"Der {{.1}} Hund {text.replace('{1}', '{.1}')} }}")
    found = protect("The dog sees https://a.b/c now.", mangled).text
    assert "https://a.b/c" in found
    assert not set("{}") & set(found)
    assert "{x}" in protect("The {x} sees https://a.b/c now.", mangled).text


def test_placeholders_that_only_the_model_has_are_taken_out() -> None:
    run = each(lambda text: text.replace("dogs", "%d Hunde %{count}"))
    assert protect("5 dogs and 20 % more", run).text == "5 Hunde and 20 % more"
    run = each(lambda text: text.replace("you", "Sie"))
    assert protect("%d of you", run).text == "%d of Sie"


def test_what_is_put_back_stands_apart_from_words_that_it_did_not_touch() -> None:
    run = each(lambda text: text.replace(" {", "{"))
    for item in ("<me@a.de>", "me@a.de"):
        assert protect(f"Write to Tom {item} now", run).text == f"Write to Tom {item} now"
    unclosed = each(lambda text: text.replace("}", "C"))
    assert "me@a.de" in protect("Write to me@a.de now", unclosed).text.split()


def test_languages_without_spaces_keep_items_between_their_characters() -> None:
    found = protect(
        "See https://a.b/c now.", each(lambda text: f"现在看{text.split()[1]}。"), ("en", "zh")
    )
    assert found.text == "现在看https://a.b/c。"
    found = protect(
        "Open /usr/bin now.", each(lambda text: f"{text.split()[1]}를 여세요."), ("en", "ko")
    )
    assert found.text == "/usr/bin를 여세요."


def test_narrow_spaces_of_numbers_stay() -> None:
    found = protect("It costs 1,499.00 €", each(lambda text: "Cela coûte 1,499.00 €"), ("en", "fr"))
    assert found.text == "Cela coûte 1\u202f499,00 €"


def test_stand_ins_survive_a_text_in_capitals() -> None:
    found = protect("SEE https://a.b/c AND Nguyễn", each(lambda text: text.lower().upper()))
    assert found.text == "SEE https://a.b/c AND Nguyễn"


texts = st.lists(
    st.sampled_from([*ITEMS, "dog", "the", " ", " ", ".", ",", "(", ")", "12", "3.5"])
    | st.text(st.characters(exclude_characters="`<>{}[]%$#@&/\\:"), max_size=4),
    max_size=10,
)


@settings(max_examples=60, deadline=None)
@given(parts=texts, name=st.sampled_from(sorted(MODELS)))
def test_any_text_comes_back_whole_from_any_model(parts: list[str], name: str) -> None:
    text = " ".join(parts)
    found = protect(text, MODELS[name])
    assert found.source == text
    clean = unicodedata.normalize("NFC", text)
    for item in ITEMS:
        if item in parts:
            assert item in found.text, (text, found.text)
    if "\ufffd" not in text and not any("\ud800" <= c <= "\udfff" for c in text):
        assert "\ufffd" not in found.text
    for character in set(clean) - KNOWN - set("éèêïöôçñÉÈÊÏÖÔÇÑ"):  # which English has
        alike = unicodedata.normalize("NFKC", character), normalize(character, "plain")
        if unicodedata.category(character)[0] in "LS" and not any(set(a) <= KNOWN for a in alike):
            assert character in unicodedata.normalize("NFC", found.text), (text, found.text)


fuzz = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@fuzz
@given(parts=texts)
def test_a_real_model_loses_nothing(parts: list[str], reverser: Translator) -> None:
    line = " ".join(parts)
    [found] = reverser.translate([line], lines=True, protect=True)
    for item in ITEMS:
        if item in parts:
            assert item in found.text, (line, found.text)
    words = len(found.text.split())
    assert all(t < words for _, t in found.alignment)


def test_lines_without_anything_to_keep_are_as_ever(reverser: Translator) -> None:
    lines = ["the old dog", "", "red cat"]
    plain = reverser.translate(lines, align=True, protect=False)
    assert reverser.translate(lines, align=True, protect=True) == plain
