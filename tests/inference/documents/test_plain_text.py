"""Plain text and mail keep their lines, quotes, headers and attachments."""

from __future__ import annotations

import email
import email.policy

import pytest

from dragoman.errors import DataError

from .filling import copy, fill_with, read, shout, texts

WRAPPED = (
    "This paragraph was wrapped by somebody's editor at about seventy columns,\n"
    "and goes on here as a sentence does, because mail was always written so,\n"
    "and ends here. One more sentence.\n"
)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "one", "one\r\n\r\n7\ntwo", "\ufeffone\n", "  indented\n\n\n\ttabs  \n"),
        *("- one\n- two\n", "> quoted\n>> twice\n", WRAPPED, WRAPPED.replace("\n", "\r\n")),
        *("a\rb", "1. one\n2. two\n", "-- \nSignature\n", "…\n123\n"),
    ],
)
def test_a_text_filled_with_itself_is_itself(text: str) -> None:
    assert copy("txt", text) == text.encode()
    assert shout("txt", text) == text.swapcase()


def test_wrapped_lines_are_one_and_are_wrapped_again() -> None:
    assert texts("txt", WRAPPED) == [WRAPPED.strip().replace("\n", " ")]
    assert len(texts("txt", WRAPPED, join_lines=False)) == 3
    filled = fill_with(read("txt", WRAPPED), lambda text: f"{text} {text}")
    assert filled.count("\n") == 6
    assert max(map(len, filled.split("\n"))) <= 74


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_tells_the_encoding(encoding: str) -> None:
    content = "grün\n".encode(encoding)
    document = read("txt", content)
    assert document.units[0].text == "grün"
    assert document.fill(document.units) == content


MAIL = (
    "From: a@b.de\r\nX-Kept: as it   is\r\n"
    "Subject: =?utf-8?q?AW=3A_Sch=C3=B6ne_Gr=C3=BC=C3=9Fe?=\r\nMIME-Version: 1.0\r\n"
    'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\n'
    "Content-Type: text/plain; charset=iso-8859-1\r\n"
    "Content-Transfer-Encoding: quoted-printable\r\n\r\nHallo Welt, sch=F6n.\r\n\r\n--b\r\n"
    "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    "PHA+SGFsbG8gPGI+V2VsdDwvYj48L3A+\r\n--b\r\nContent-Type: application/pdf\r\n"
    "Content-Disposition: attachment; filename=x.pdf\r\n"
    "Content-Transfer-Encoding: base64\r\n\r\nAAAA\r\n--b--\r\n"
)


def test_subject_and_texts_of_a_mail_are_translated() -> None:
    assert texts("eml", MAIL) == ["Schöne Grüße", "Hallo Welt, schön.", "Hallo Welt"]
    assert copy("eml", MAIL) == MAIL.encode()
    filled = shout("eml", MAIL)
    found = email.message_from_string(filled, policy=email.policy.default)
    assert found["Subject"] == "AW: sCHÖNE gRÜßE"
    plain, page, attachment = found.iter_parts()
    assert plain.get_content().strip() == "hALLO wELT, SCHÖN."
    assert page.get_content().strip() == "<p>hALLO <b>wELT</b></p>"
    assert attachment.get_payload().strip() == "AAAA"
    assert "X-Kept: as it   is\r\n" in filled


def test_a_mail_keeps_its_byte_order_mark() -> None:
    mail = "\ufeffSubject: one\n\nTwo three.\n"
    assert copy("eml", mail) == mail.encode()
    assert shout("eml", mail).startswith("\ufeffSubject: ONE\n")


def test_a_translation_that_the_charset_lacks_is_utf8() -> None:
    text = "Subject: x\n\nHello there\n"
    filled = fill_with(read("eml", text), lambda _: "안녕하세요")
    found = email.message_from_string(filled, policy=email.policy.default)
    assert found.get_content().strip() == "안녕하세요"


@pytest.mark.parametrize(
    ("extension", "content"),
    [
        ("txt", b"\xff"),
        ("txt", b"a\0b"),
        ("txt", b"\xff\xfe\x00"),
        ("eml", b"\n\nno headers"),
        ("eml", b"Content-Type: text/plain; charset=nonsense\n\nx\n"),
        ("eml", b"Content-Type: text/plain; charset=utf-8\n\n\xff\xff\n"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(extension: str, content: bytes) -> None:
    with pytest.raises(DataError) as raised:
        read(extension, content)
    assert "\n" not in str(raised.value)
