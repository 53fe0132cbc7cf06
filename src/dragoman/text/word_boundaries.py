"""A word begins and ends where no character continues it; phrases are found as whole words."""

from __future__ import annotations

import unicodedata


def is_word(character: str) -> bool:
    """Return whether it continues a word: letters, digits, the low line, marks on letters.

    No character, the empty string beyond the ends of a text, does not.
    """
    if character.isalnum() or character == "_":
        return True
    return character != "" and unicodedata.category(character).startswith("M")


def contains_phrase(phrase: str, text: str, *, whole_words: bool = True) -> bool:
    """Return whether a text contains a phrase, with no word going on at either end of it."""
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        before, after = text[start - 1 : start] if start else "", text[end : end + 1]
        if not whole_words or not (
            (is_word(before) and is_word(phrase[0])) or (is_word(after) and is_word(phrase[-1]))
        ):
            return True
        start = text.find(phrase, start + 1)
    return False
