"""One spelling for what looks alike."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.normalization import normalize

FORMS = ("nfc", "nfkc", "plain", "none")
TYPOGRAPHIC = {
    **dict.fromkeys("“”„‟«»〝〞", '"'),
    **dict.fromkeys("‘’‚‛‹›ʼ´", "'"),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    "…": "...",
}
any_text = st.text(alphabet=st.characters(), max_size=30)  # surrogates and controls included


@given(any_text, st.sampled_from(FORMS))
def test_normalising_again_changes_nothing(text, form):
    once = normalize(text, form)
    assert normalize(once, form) == once


@given(any_text, st.sampled_from(FORMS))
def test_the_result_is_one_encodable_line_of_single_spaced_words(text, form):
    line = normalize(text, form)
    assert line.encode("utf-8").decode("utf-8") == line
    assert line == " ".join(line.split())
    assert not any(unicodedata.category(character) == "Cc" for character in line)
    assert "\u2581" not in line


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_single_character_comes_out_as_documented(form):
    """Of those that Unicode has given no meaning yet, or never will, one in a hundred."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if code % 100 and unicodedata.category(character) in ("Cn", "Co"):
            continue
        result = normalize(f"a{character}b", form)
        if character.isspace():
            assert result == "a b"
        elif unicodedata.category(character) == "Cc":
            assert result == "ab"
        elif unicodedata.category(character) == "Cs":
            assert result == "a\ufffdb"
        elif character == "\u2581":
            assert result == "a_b"
        elif form == "none":
            assert result == f"a{character}b"
        else:
            unicode_form = "NFC" if form == "plain" else form.upper()
            expected = unicodedata.normalize(unicode_form, f"a{character}b")
            if form == "plain":
                expected = "".join(TYPOGRAPHIC.get(c, c) for c in expected)
            assert result == " ".join(expected.split())


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("  plain \t text\r\n", "nfc", "plain text"),
        ("cafe\u0301", "nfc", "café"),
        ("cafe\u0301", "none", "cafe\u0301"),
        ("ﬁne ①", "nfkc", "fine 1"),
        ("ﬁne ①", "nfc", "ﬁne ①"),
        ("„Ja“, it’s ‹so› – or “not”…", "plain", """"Ja", it's 'so' - or "not"..."""),
        ("„Ja“ – `ﬁne`", "nfc", "„Ja“ – `ﬁne`"),
        ("cafe\u0301 `ﬁne`", "plain", "café `ﬁne`"),
        ("1\u00a0000\u202fkm", "nfc", "1 000 km"),
        ("e\x00\u0301", "nfc", "é"),  # what controls kept apart comes together before the form
        ("\ud83d", "nfc", "\ufffd"),
        ("a\u2028b\x85c\x1fd", "none", "a b c d"),
        ("", "nfc", ""),
    ],
)
def test_examples(text, form, expected):
    assert normalize(text, form) == expected
