"""Catalogues of messages are filled as gettext wants them, and keep all they have."""

from __future__ import annotations

import polib
import pytest

from dragoman.errors import DataError
from dragoman.inference.documents.gettext import plural_forms, take_accelerator

from .filling import copy, fill_with, read, shout, texts

HEADER = """# A catalogue.
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: x\\n"
"Language: \\n"
"Content-Type: text/plain; charset=CHARSET\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"

"""
PLURAL = """#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""
"""
DONE = """#. A comment.
#: a.c:1
#| msgctxt "old"
#| msgid "Old"
#, fuzzy, c-format
msgctxt "menu"
msgid "Open %s"
msgstr "Öffne %s"

msgid ""
"several "
"parts\\n"
"here"
msgstr ""
"mehrere "
"Teile\\n"
"hier"

#~ msgid "gone"
#~ msgstr "weg"
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        HEADER + DONE,
        (HEADER + DONE).replace("\n", "\r\n"),
        "\ufeff" + DONE,
        DONE.rstrip("\n"),
        'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] "y"\n',
        '  msgid   "indented"\n  msgstr "eingerückt"\n',
        'msgid "escapes \\t \\" \\\\ \\x41 \\101"\nmsgstr "x"\n',
        'msgid "x"\nmsgstr "y"',
    ],
)
def test_a_catalogue_that_is_translated_stays_as_it_is(text: str) -> None:
    document = read("po", text, target_language="de")
    assert document.units == []
    assert document.fill([]) == text.encode()


def test_messages_without_a_translation_get_one() -> None:
    text = HEADER + 'msgid "Good day"\nmsgstr ""\n\n' + DONE
    filled = shout("po", text, target_language="de")
    assert 'msgid "Good day"\nmsgstr "gOOD DAY"\n' in filled
    assert filled.endswith(DONE)


def test_the_header_says_the_language_and_its_plural_forms() -> None:
    filled = shout("po", HEADER + PLURAL, target_language="pl")
    catalogue = polib.pofile(filled)
    assert catalogue.metadata["Language"] == "pl"
    assert catalogue.metadata["Plural-Forms"] == plural_forms("pl")
    assert catalogue.metadata["Content-Type"] == "text/plain; charset=UTF-8"
    assert not catalogue.metadata_is_fuzzy


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("de", ["%d FILE", "%d FILES"]),
        ("pt-BR", ["%d FILE", "%d FILES"]),
        ("ko", ["%d FILES"]),
        ("zh_TW", ["%d FILES"]),
        ("pl", ["%d FILE", "%d FILES", "%d FILES"]),
        ("ar", ["%d FILES", "%d FILE", *["%d FILES"] * 4]),
    ],
)
def test_plurals_have_as_many_forms_as_the_language(language: str, forms: list[str]) -> None:
    (entry,) = polib.pofile(shout("po", HEADER + PLURAL, target_language=language))
    assert list(entry.msgstr_plural.values()) == forms


def test_declared_forms_stay_where_translations_follow_them() -> None:
    header = 'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=4; plural=0;\\n"\n\n'
    done = 'msgid "a cat"\nmsgid_plural "cats"\nmsgstr[0] "a"\nmsgstr[1] "b"\n\n'
    catalogue = polib.pofile(shout("po", header + done + PLURAL, target_language="pl"))
    assert len(catalogue[1].msgstr_plural) == 4


@pytest.mark.parametrize(
    ("message", "translation"),
    [
        ("\\nHello\\n", "\\nhELLO\\n"),
        ("100%% of %s and %(name)s", "100%% OF %s AND %(name)s"),
        ("<b>bold</b> {0} &amp;", "<b>BOLD</b> {0} &AMP;"),
        ("%s: %d", "%s: %d"),
        ('say \\"yes\\"', 'SAY \\"YES\\"'),
        ("_Open", "_oPEN"),
        ("Save &As...", "&sAVE aS..."),
        ("first\\n\\nsecond\\n", "FIRST\\n\\nSECOND\\n"),
    ],
)
def test_messages_keep_what_is_no_text(message: str, translation: str) -> None:
    filled = shout("po", f'msgid "{message}"\nmsgstr ""\n')
    entry = polib.pofile(filled)[0]
    assert entry.msgstr == polib.unescape(translation)
    assert entry.msgid == polib.unescape(message)


def test_long_translations_are_wrapped_unless_the_file_is_not() -> None:
    short = 'msgid "short"\nmsgstr ""\n'
    long = "many words " * 12 + "end"
    filled = fill_with(read("po", short), lambda _: long)
    assert max(map(len, filled.split("\n"))) <= 80
    assert polib.pofile(filled)[0].msgstr == long
    wide = f'msgid "{long}"\nmsgstr "{long}"\n\n{short}'
    assert f'msgstr "{long}"\n' in fill_with(read("po", wide), lambda _: long)


def test_fuzzy_translations_stay_unless_they_are_to_be_overwritten() -> None:
    assert texts("po", DONE) == []
    filled = shout("po", DONE, overwrite=True)
    assert '#, c-format\nmsgctxt "menu"\nmsgid "Open %s"\nmsgstr "oPEN %s"\n' in filled


def test_another_encoding_is_kept_or_becomes_utf8() -> None:
    text = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n'
    text += 'msgid "gr\u00fcn"\nmsgstr ""\n'
    content = text.encode("latin-1")
    document = read("po", content)
    assert "GR\u00dcN".encode("latin-1") in document.fill(
        [type(unit)(unit.text.upper()) for unit in document.units]
    )
    korean = document.fill([type(unit)("초록") for unit in document.units])
    assert "charset=UTF-8" in korean.decode()


def test_a_catalogue_without_a_header_gets_one() -> None:
    catalogue = polib.pofile(shout("po", 'msgid "a b"\nmsgstr ""\n', target_language="ko"))
    assert catalogue.metadata["Language"] == "ko"
    assert "UTF-8" in catalogue.metadata["Content-Type"]


@pytest.mark.parametrize(
    ("label", "plain"),
    [
        *(("_File", "File"), ("F_ile", "File"), ("E&xit", "Exit"), ("Save &As…", "Save As…")),
        *((one, one) for one in ("AT&T", "R & D", "Q&A", "file_name", "__init__", "a &amp; b")),
        *((one, one) for one in ("http://x.y/?a&b", "_a _B _C", "snake_Case", "&Open && &Close")),
    ],
)
def test_keys_of_labels_are_told_from_other_signs(label: str, plain: str) -> None:
    assert take_accelerator(label)[0] == plain


def test_a_label_in_korean_has_its_key_in_brackets() -> None:
    document = read("po", 'msgid "_Open..."\nmsgstr ""\n')
    assert 'msgstr "열기(_O)..."' in fill_with(document, lambda _: "열기...")


@pytest.mark.parametrize(
    "text",
    [
        "no catalogue",
        'msgid "a',
        'msgstr "x"\n',
        'msgid "a"\nmsgid_plural "b"\nmsgstr "x"\n',
        'msgid "a"\nmsgstr[0] "x"\n',
        'msgid "a"\n\nmsgid "b"\nmsgstr ""\n',
        'msgid "a"\nmsgid "b"\n',
        b'msgid "\xff"\nmsgstr ""\n',
        'msgid ""\nmsgstr "charset=nonsense\\n"\n',
        'msgid ""\nmsgstr "charset=base64\\n"\n',
    ],
)
def test_broken_catalogues_are_refused_in_one_line(text: str | bytes) -> None:
    with pytest.raises(DataError) as raised:
        read("po", text)
    assert "\n" not in str(raised.value)


def test_a_template_is_filled_too() -> None:
    assert copy("pot", HEADER + PLURAL).decode().count('"%d files"') == 2
