"""Units are found after numbers, and in the words of a language."""

from __future__ import annotations

import pytest

from dragoman.text.units import find_unit, says_unit


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("5 kg of", "kg"),
        ("5kg", "kg"),
        ("5 km/h.", "km/h"),
        ("5 km", "km"),
        ("5\u00a0°C", "°C"),
        ("5℃", "°C"),
        ("5 MB", "MB"),
        ("5 Mo", "MB"),
        ("5 Mbit/s", "Mbit/s"),
        ("5 GHz", "GHz"),
        ("5 m²", "m²"),
        ("5 m2", "m²"),
        ("5 lbs", "lb"),
        ("5kg을", "kg"),
        ("5 g", "g"),
    ],
)
def test_a_unit_follows_its_number(text: str, unit: str) -> None:
    assert find_unit(text, 0, 1)[0] == unit


@pytest.mark.parametrize(
    "text", ["5 men", "5 in a row", "5 B", "5 good", "5 mbar2", "5 months", "5G", "5"]
)
def test_words_are_no_units(text: str) -> None:
    assert find_unit(text, 0, 1) == ("", 1)


def test_a_word_before_a_number_makes_a_distance_a_speed() -> None:
    assert find_unit("시속 5km", 3, 4) == ("km/h", 6)


@pytest.mark.parametrize(
    ("unit", "text", "code"),
    [
        ("kg", "fünf Kilogramm", "de"),
        ("kg", "5kg", "de"),
        ("ml", "5 Milliliter", "de"),
        ("kWh", "Kilowattstunden", "de"),
        ("GB", "5 기가바이트", "ko"),
        ("GB", "5 Go", "fr"),
        ("m²", "5 Quadratmeter", "de"),
        ("km/h", "시속 5킬로미터", "ko"),
        ("kg", "5 кг", "ru"),
    ],
)
def test_languages_have_words_for_units(unit: str, text: str, code: str) -> None:
    assert says_unit(unit, text, code)


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("g", "das Programm"),
        ("kg", "5 km"),
        ("m", "der Parameter"),
        ("MB", "5 Mb"),
        ("km/h", "5 km"),
    ],
)
def test_other_words_are_not_the_unit(unit: str, text: str) -> None:
    assert not says_unit(unit, text, "de")
