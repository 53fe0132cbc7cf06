"""`normalize` gives a text the one spelling that Dragoman sees."""

from __future__ import annotations

import unicodedata
from typing import Final, Literal

from dragoman.text.lazy_patterns import lazy_pattern

Form = Literal["nfc", "nfkc", "plain", "none"]

SPACE_MARK: Final = "\u2581"
"""SentencePiece writes a space so; in a text it becomes a low line."""

_UNICODE_FORM: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC", "plain": "NFC"}
_PLAIN = str.maketrans(
    dict.fromkeys("“”„‟«»〝〞", '"')
    | dict.fromkeys("‘’‚‛‹›ʼ´", "'")
    | dict.fromkeys("‐‑‒–—―−", "-")
    | {"…": "..."}
)
"""Maps typographic quotation marks, apostrophes and dashes to those a keyboard has."""
_SURROGATE = lazy_pattern("[\ud800-\udfff]")
# C0, DEL and C1 without those that are white space (tab to carriage return, 1C to 1F, 85).
_CONTROL = lazy_pattern("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


def normalize(text: str, form: Form = "nfc") -> str:
    """Return the text with one spelling for what looks alike; doing it again changes nothing.

    In this order: a lone surrogate becomes U+FFFD; control characters that are not white space
    go; U+2581 becomes "_"; the Unicode form is applied; with "plain", which is NFC otherwise,
    typographic quotation marks, apostrophes, dashes and ellipses become ASCII; every run of white
    space, line ends and no-break spaces included, becomes one space, and none remains at either
    end.
    """
    # Printable text has no surrogate, no control character, and no white space but U+0020.
    if not text.isprintable():
        text = _CONTROL.sub("", _SURROGATE.sub("\ufffd", text))
    if not text.isascii():
        text = text.replace(SPACE_MARK, "_")
        if form != "none":
            text = unicodedata.normalize(_UNICODE_FORM[form], text)
    if form == "plain":
        text = text.translate(_PLAIN)
    return collapse_spaces(text)


def collapse_spaces(text: str) -> str:
    """Make every run of white space one space, none at the ends; drop control characters."""
    if text.isprintable():
        if "  " not in text and text[:1] != " " and text[-1:] != " ":
            return text
    else:
        text = _CONTROL.sub("", text)
    return " ".join(text.split())
