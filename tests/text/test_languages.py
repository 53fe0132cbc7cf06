"""What a language code tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.text.languages import (
    bleu_tokenizer,
    choose_language,
    detect_languages,
    guess_languages,
    language_code,
    language_name,
    same_language,
    ter_counts_characters,
    written_without_spaces,
)


@pytest.mark.parametrize("code", ["zh", "zh-TW", "ZH_cn", "JA", "th", "bo"])
def test_words_without_spaces(code: str) -> None:
    assert written_without_spaces(code)
    assert bleu_tokenizer(code) == ("zh" if code.lower().startswith("zh") else "char")


@pytest.mark.parametrize("code", [None, "", "en", "de-AT", "ko", "vi"])
def test_words_with_spaces(code: str | None) -> None:
    assert not written_without_spaces(code)
    assert bleu_tokenizer(code) == ("char" if code == "ko" else "13a")
    assert not ter_counts_characters(code)


def test_characters_are_edited_where_sacrebleu_can_split_them() -> None:
    assert [ter_counts_characters(code) for code in ("zh-TW", "ja", "th")] == [True, True, False]


def test_a_region_makes_no_other_language() -> None:
    assert same_language("EN-US", "en")
    assert not same_language("en", "de")
    assert language_name("pt_BR") == "Portuguese"
    assert language_name("tlh") == "tlh"


@pytest.mark.parametrize(
    ("names", "codes"),
    [
        (["corpus.en.gz", "corpus.de.gz"], ("en", "de")),
        (["a.EN", "b.deu"], ("en", "deu")),
        (["a.en", "b.en"], ()),
        (["a.txt", "b.de"], ()),
        (["a.en"], ()),
        (["a.en.txt", "a.de.txt.gz"], ("en", "de")),
        (["europarl-v7.de-en.en", "europarl-v7.de-en.de"], ("en", "de")),
        (["train.src", "train.tgt"], ()),
        (["corpus.en-de.tsv"], ("en", "de")),
        (["de-en.tmx.gz"], ("de", "en")),
        (["news_en_ko.jsonl"], ("en", "ko")),
        (["corpus.es-quz.tsv"], ("es", "quz")),
        (["corpus-es-quz.tsv"], ()),
        (["before.old-new.tsv"], ()),
        (["train.no-dup.tsv"], ()),
        (["en-en.tsv"], ()),
        (["corpus.tsv"], ()),
        (["a", "b.de"], ()),
    ],
)
def test_file_names_tell_the_languages(names: list[str], codes: tuple[str, ...]) -> None:
    assert guess_languages([Path(name) for name in names]) == codes


@pytest.mark.parametrize(
    ("label", "code"),
    [
        ("en", "en"),
        (" DE_at ", "de"),
        ("zh-Hant-TW", "zh"),
        ("German", "de"),
        ("norwegian", "no"),
        ("id number", None),
        ("xx", None),
        ("", None),
        ("the", None),
    ],
)
def test_keys_and_columns_are_named_by_codes_or_names(label: str, code: str | None) -> None:
    assert language_code(label) == code


def test_a_single_language_is_chosen_unseen_and_detected_as_it_is() -> None:
    assert choose_language("anything", ["xx"]) == ("xx", 1.0)
    english, korean = "The weather is very nice today.", "오늘은 날씨가 아주 좋습니다."
    assert choose_language(korean, ["en"]) == ("en", 1.0)
    [(code, probability)] = detect_languages(english, ["en"])
    assert code == "en"
    assert probability > 0.9
    [(code, probability)] = detect_languages(korean, ["en"])
    assert code == "en"
    assert probability < 0.01


def test_the_likeliest_language_is_chosen_and_measured_among_those_there_are() -> None:
    text = "Het weer is vandaag erg mooi en de zon schijnt."
    (code, probability), (_, other) = detect_languages(text, ["de", "fr"])
    assert probability + other < 0.01
    assert choose_language(text, ["fr", "de"])[0] == code
    assert 0.5 <= choose_language(text, ["fr", "de"])[1] <= 1.0


def test_languages_nobody_can_detect_are_refused() -> None:
    with pytest.raises(DataError, match="none of xx, yy can be detected; name the source"):
        detect_languages("anything", ["xx", "yy"])
