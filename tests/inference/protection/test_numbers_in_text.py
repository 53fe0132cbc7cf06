"""Numbers of a text are found, and written as another language writes them."""

from __future__ import annotations

from dragoman.inference.protection.numbers_in_text import localize_number, localize_numbers
from dragoman.inference.protection.text_edits import apply_edits


def test_numbers_alone_are_written_as_the_target_does() -> None:
    text = "1,499.00 · 5% · 2024 · 11/16/2024"
    edits = localize_numbers(text, ("en", "de"), [])
    assert apply_edits(text, edits) == "1.499,00 · 5\u00a0% · 2024 · 11/16/2024"
    assert localize_numbers(text, ("", ""), []) == []
    assert localize_number("150만", ("ko", "en")) == "1,500,000"
    assert localize_number("1.2.3", ("en", "de")) == "1.2.3"


def test_a_time_is_written_as_the_target_does_and_bare_digits_stay() -> None:
    assert localize_number("5:30 p.m.", ("en", "de")) == "17:30 Uhr"
    assert localize_number("17 Uhr", ("de", "ko")) == "17시"
    assert localize_number("8시 46분", ("ko", "en")) == "8:46"
    assert localize_number("05:30", ("en", "ko")) == "05:30"
    assert localize_numbers("17:30 · 05:30", ("en", "de"), []) == []
