"""Characters the tokeniser has no piece for are found with the words they are in."""

from __future__ import annotations

import pytest

from dragoman.inference.protection.protected_items import find_items
from dragoman.inference.protection.unknown_characters import UnknownCharacters, has_no_spaces

from .fake_models import fake_tokenizer


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nothing here", []),
        ("Mr Nguyễn, please", [("Nguyễn", "unknown")]),
        ("Hồ Łódź and İx", [("Hồ Łódź", "unknown"), ("İx", "unknown")]),
        ("the NKÚ-Chef", [("NKÚ", "unknown")]),
        ("in 東京は now", [("東京は", "unknown")]),
        ("in the東京 now", [("東京", "unknown")]),
        ("good 😀❤️ 🎉!", [("😀❤️ 🎉", "emoji")]),
        ("👨‍👩‍👧, 🇩🇪 1️⃣", [("👨‍👩‍👧", "emoji"), ("🇩🇪 1️⃣", "emoji")]),
        ("Haus™ (¿no?)", [("™", "emoji"), ("¿", "mark")]),
        ("H₂O", [("H₂O", "unknown")]),
        ("5 € and 3 £", []),
        ("see https://a.b/ł now", []),
        ("\ue000x", [("\ue000x", "unknown")]),
    ],
)
def test_what_is_unknown_is_found_whole(text: str, found: list[tuple[str, str]]) -> None:
    unknown = UnknownCharacters(fake_tokenizer(), "en", "de")
    items = unknown.find(text, find_items(text))
    assert [(item.text, item.kind) for item in items] == found
    assert all(text[item.start : item.end] == item.text for item in items)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("ﬁnd", "find"),
        ("Ｈｅｌｌｏ！", "Hello!"),
        ("so\u00adft \ufeffbom\u200e", "soft bom"),
        ("a‑b — c ‚d‛", "a-b - c 'd'"),
        ("Bu\u0308cher", "Bücher"),
        ("👩\u200d💻 x\u200dy", "👩\u200d💻 xy"),
        ("m² ½ Ω", "m² ½ Ω"),
        ("plain", "plain"),
    ],
)
def test_lookalikes_are_written_as_what_is_known(text: str, result: str) -> None:
    assert UnknownCharacters(fake_tokenizer()).replace_lookalikes(text) == result


def test_rare_letters_of_the_source_are_unknown_only_if_strict() -> None:
    unknown = UnknownCharacters(fake_tokenizer(), "ko-KR", "en")
    assert unknown.find("뷁", []) == []
    assert [item.text for item in unknown.find("뷁", [], strict=True)] == ["뷁"]
    assert [item.text for item in unknown.find("Я", [])] == ["Я"]
    assert UnknownCharacters(fake_tokenizer(), "fr", "en").find("un Œuf", []) == []


@pytest.mark.parametrize(
    ("target", "output", "left"),
    [
        ("zh", "看\ufffd东Я西。", "看东西。"),
        ("de", "Cœur \ufffdЯ΅ 5 € ẞ ⁇\ue000", "Cœur  5 € ẞ "),
        ("ru", "Я东", "Я"),
        ("th", "ไЯ東\ufffd", "ไЯ東"),
        ("", "Я東\ufffd", "Я東"),
        ("en", "plain", "plain"),
    ],
)
def test_broken_bytes_are_found_and_the_targets_own_letters_are_not(
    target: str, output: str, left: str
) -> None:
    damage = UnknownCharacters(fake_tokenizer(), "en", target).find_damage(output, "")
    kept = [c for n, c in enumerate(output) if (n, n + 1) not in damage]
    assert "".join(kept) == left


def test_what_was_in_the_source_is_no_damage() -> None:
    assert UnknownCharacters(fake_tokenizer(), "en", "de").find_damage("Я\ufffd", "\ufffdЯ") == []


def test_some_scripts_have_no_spaces() -> None:
    assert has_no_spaces("京")
    assert has_no_spaces("ไ")
    assert not has_no_spaces("서")
    assert not has_no_spaces("a")


def test_a_direction_is_kept_beside_letters_that_run_to_the_left() -> None:
    unknown = UnknownCharacters(fake_tokenizer())
    assert unknown.replace_lookalikes("a \u202bדוד\u202c") == "a \u202bדוד\u202c"
    assert [one.text for one in unknown.find("a \u202bדוד\u202c.", [])] == ["\u202bדוד\u202c"]
    assert unknown.replace_lookalikes("a\u200e b") == "a b"


def test_letters_of_mathematics_are_no_others() -> None:
    assert UnknownCharacters(fake_tokenizer()).replace_lookalikes("x ∈ ℝ, ﬁne") == "x ∈ ℝ, fine"
