"""Numbers are read and written as each language does."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dragoman.text.numbers import (
    NumberReading,
    number_format,
    number_words,
    read_number,
    says_scale,
    scale_after,
)


@pytest.mark.parametrize(
    ("text", "code", "value"),
    [
        ("1.499,00", "de", "1499.00"),
        ("1,499.00", "de", "1499.00"),
        ("3.000", "de", "3000"),
        ("3.000", "en", "3.000"),
        ("3,000", "en", "3000"),
        ("3,000", "de", "3.000"),
        ("3.000", "fr", "3000"),
        ("3.5", "de", "3.5"),
        ("0.500", "de", "0.500"),
        ("25.400.000", "de", "25400000"),
        ("1 400", "en", "1400"),
        ("1\u202f499,5", "fr", "1499.5"),
        ("1’499.00", "de-CH", "1499.00"),
        ("12,34,567.5", "en-IN", "1234567.5"),
        ("007", "en", "7"),
    ],
)
def test_a_spelling_means_what_its_language_says(text: str, code: str, value: str) -> None:
    assert read_number(text, code)[0].value == Decimal(value)


@pytest.mark.parametrize("text", ["1.2.3", "1,2,3", "1.23,456.7", "10.0000,5"])
def test_what_is_no_number_has_no_reading(text: str) -> None:
    assert read_number(text, "de") == []


def test_without_a_language_there_are_two_readings() -> None:
    assert {one.value for one in read_number("3.000", "")} == {Decimal(3000), Decimal("3.000")}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "1,234,567.80"),
        ("de", "1.234.567,80"),
        ("de_CH", "1’234’567.80"),
        ("fr", "1\u202f234\u202f567,80"),
        ("ru", "1\u00a0234\u00a0567,80"),
        ("ko", "1,234,567.80"),
        ("hi", "12,34,567.80"),
        ("en-IN", "12,34,567.80"),
        ("es-MX", "1,234,567.80"),
    ],
)
def test_a_number_is_written_as_a_language_does_and_read_again(code: str, text: str) -> None:
    reading = NumberReading("1234567", "80", grouped=True)
    assert reading.write(code) == text
    assert read_number(text, code) == [reading]


def test_years_are_not_grouped() -> None:
    assert read_number("2024", "en")[0].write("de") == "2024"


def test_an_unknown_language_has_no_format() -> None:
    assert number_format("tlh") is None
    assert number_format(None) is None


@pytest.mark.parametrize(
    ("text", "code", "power", "end"),
    [
        ("5 million", "en", 6, 9),
        ("5 Mio. Euro", "de", 6, 6),
        ("5 billion", "en", 9, 9),
        ("5 Billionen", "de", 12, 11),
        ("5 billions", "fr", 12, 10),
        ("5만", "ko", 4, 2),
        ("5천만 명", "ko", 7, 3),
        ("5 dogs", "en", 0, 1),
        ("5", "en", 0, 1),
    ],
)
def test_a_scale_word_multiplies(text: str, code: str, power: int, end: int) -> None:
    assert scale_after(text, 1, code) == (power, end)


@pytest.mark.parametrize(
    ("value", "code", "word"),
    [
        (3, "en", "third"),
        (25, "en", "twenty-five"),
        (25, "de", "fünfundzwanzig"),
        (71, "fr", "soixante-et-onze"),
        (80, "fr", "quatre-vingt"),
        (2, "ko", "두"),
        (21, "ko", "스물한"),
        (12, "ko", "십이"),
        (20, "ko", "스무"),
        (12, "zh", "十二"),
        (12, "en", "dozen"),
        (100, "de", "hundert"),
    ],
)
def test_numbers_have_words(value: int, code: str, word: str) -> None:
    assert word in number_words(value, code)


@pytest.mark.parametrize(
    ("text", "power", "code", "said"),
    [
        ("5 Millionen", 6, "de", True),
        ("sechzehntausend", 3, "de", True),
        ("5 Mrd.", 9, "de", True),
        ("5 M", 6, "de", True),
        ("500만", 6, "ko", True),
        ("5 Hunde", 6, "de", False),
        ("ein Hemd für 5", 9, "de", False),
        ("5 milionów", 6, "pl", True),
    ],
)
def test_a_text_says_a_scale(text: str, power: int, code: str, said: bool) -> None:
    assert says_scale(text, power, code) is said


def test_eight_is_no_word_for_eighty() -> None:
    assert not any("eight".startswith(word) for word in number_words(80, "en"))
    assert number_words(101, "en") == ()
