"""Paragraphs of plain text (.txt) and mail (.eml) are translated and stand on lines as before."""

from __future__ import annotations

import email
import email.policy
import io
import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from email.errors import MessageError
from email.generator import BytesGenerator
from email.header import Header, decode_header, make_header
from email.message import Message
from typing import Any, Final

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, DocumentTooLargeError, Unit
from dragoman.inference.documents.file_text import decode_file, has_letters
from dragoman.inference.documents.options import NO_OPTIONS, DocumentOptions
from dragoman.text.paragraphs import Paragraph, assemble, split_paragraphs


class PlainText:
    """Hold a text as paragraphs to translate."""

    def __init__(self, text: str, options: DocumentOptions = NO_OPTIONS) -> None:
        self._parts = [
            part.original if isinstance(part, Paragraph) and not has_letters(part.text) else part
            for part in split_paragraphs(
                text, options.source_language, join_lines=options.join_lines
            )
        ]
        self.units = [Unit(part.text) for part in self._parts if isinstance(part, Paragraph)]

    def fill(self, translations: Sequence[Unit]) -> str:
        """Return the text with a translation in place of each paragraph."""
        return assemble(self._parts, [unit.text for unit in translations])


class PlainTextDocument(Document):
    """Hold a file of plain text."""

    def __init__(
        self, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
    ) -> None:
        self._file = decode_file(content, max_bytes=max_bytes)
        self._text = PlainText(self._file.text, options)
        self.units = self._text.units

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with a translation in place of each paragraph."""
        return self._file.encode(self._text.fill(translations))


# --- mail ---

_REPLY: Final = re.compile(
    r"\s*(?:(?:re|fwd?|aw|wg|antw|sv|tr|rv)\s*(?:\[\d+\])?:\s*)*", re.IGNORECASE
)
"""A subject's marks for answers and forwarded mail stay."""


class MailDocument(Document):
    """Hold a mail: its subject and its parts of text are translated, attachments stay."""

    def __init__(
        self, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
    ) -> None:
        if len(content) > max_bytes:
            raise DocumentTooLargeError(f"the file has more than {max_bytes} bytes")
        self._content, self._max_bytes, self._options = content, max_bytes, options
        text = content.removeprefix(BOM_UTF8)
        self._byte_order_mark = content[: len(content) - len(text)]
        try:
            self._message = email.message_from_bytes(text, policy=_POLICY)
        except (MessageError, ValueError, LookupError, RecursionError):
            raise DataError("the file is not an email message that can be read") from None
        if content.strip() and not self._message.keys():
            raise DataError("there are no headers; this is not an email message")
        self._subject, self._reply = _read_subject(self._message)
        self._bodies: list[tuple[Message, Document | PlainText]] = []
        for part in self._message.walk():
            body = self._read_part(part)
            if body is not None:
                self._bodies.append((part, body))
        self.units = [Unit(self._subject)] if has_letters(self._subject) else []
        for _, body in self._bodies:
            self.units += body.units

    def _read_part(self, part: Message) -> Document | PlainText | None:
        kind = part.get_content_type()
        if part.is_multipart() or part.get_content_disposition() == "attachment":
            return None
        if kind not in ("text/plain", "text/html"):
            return None
        raw = part.get_payload(decode=True)
        charset = part.get_content_charset() or "utf-8"
        try:
            text = raw.decode(charset) if isinstance(raw, bytes) else ""
        except (UnicodeError, LookupError):
            raise DataError(f"a part of the mail is not {charset}, as its header says") from None
        if kind == "text/plain":
            return PlainText(text, self._options)
        from dragoman.inference.documents.html import HtmlDocument

        # The mail says the charset, whatever the page itself may say.
        return HtmlDocument(
            text.encode("utf-8-sig"),
            max_bytes=self._max_bytes,
            target_language=self._options.target_language,
        )

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the mail with translations in it; headers and parts that have none stay."""
        if list(translations) == self.units:
            return self._content
        coming = list(translations)
        if has_letters(self._subject):
            subject = self._reply + coming.pop(0).text
            ascii_only = subject.isascii()
            self._message.replace_header(
                "Subject", subject if ascii_only else Header(subject, "utf-8").encode()
            )
        for part, body in self._bodies:
            own, coming = coming[: len(body.units)], coming[len(body.units) :]
            if own == body.units:
                continue
            filled = body.fill(own)
            _set_text(part, filled.decode("utf-8-sig") if isinstance(filled, bytes) else filled)
        assert not coming
        out = io.BytesIO()
        BytesGenerator(out, policy=_POLICY).flatten(self._message)
        found = self._byte_order_mark + out.getvalue()
        return found.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") if self._crlf else found

    @property
    def _crlf(self) -> bool:
        return self._content.count(b"\r\n") * 2 > self._content.count(b"\n")


_POLICY: Final[Any] = email.policy.compat32.clone(max_line_length=0, mangle_from_=False)


def _read_subject(message: Message) -> tuple[str, str]:
    """Return the subject of a mail without the marks of an answer, and these."""
    raw = message.get("Subject", "")
    try:
        subject = re.sub(r"\r?\n", "", str(make_header(decode_header(str(raw)))))
    except (MessageError, UnicodeError, LookupError, ValueError):
        return "", ""
    match = _REPLY.match(subject)
    reply = match.group() if match else ""
    return subject[len(reply) :].strip(), reply


def _set_text(part: Message, text: str) -> None:
    """Put a text into a part of a mail, encoded as it was if that can be."""
    charset = part.get_content_charset() or "utf-8"
    try:
        text.encode(charset)
    except (UnicodeError, LookupError):
        charset = "utf-8"
    encoding = str(part.get("Content-Transfer-Encoding", "7bit")).strip().lower()
    del part["Content-Transfer-Encoding"]
    part.set_param("charset", charset)
    body = text.encode(charset)
    if encoding == "base64":
        from base64 import encodebytes

        part["Content-Transfer-Encoding"] = "base64"
        part.set_payload(encodebytes(body).decode("ascii"))
    elif encoding in ("8bit", "binary") or (
        body.isascii() and max(map(len, body.split(b"\n"))) < 900
    ):
        part["Content-Transfer-Encoding"] = encoding if encoding in ("8bit", "binary") else "7bit"
        part.set_payload(body.decode("ascii", "surrogateescape"))
    else:
        from quopri import encodestring

        part["Content-Transfer-Encoding"] = "quoted-printable"
        part.set_payload(encodestring(body.replace(b"\r\n", b"\n")).decode("ascii"))
