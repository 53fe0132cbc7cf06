"""In gettext catalogues (.po, .pot), messages without a translation get one; all else stays.

The file is edited in place. polib writes files anew: it wraps lines and orders comments its way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.file_text import (
    LINE,
    FileText,
    decode_file,
    line_ends,
    replace_spans,
)
from dragoman.inference.documents.message_text import MessageText
from dragoman.inference.documents.options import NO_OPTIONS, DocumentOptions
from dragoman.text.languages import primary_code

LINE_COLUMNS: Final = 79
"""Gettext wraps the lines of a message at this width."""

_FEW: Final = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20)"
_TWO: Final = "nplurals=2; plural=(n != 1);"
_TWO_FROM_TWO: Final = "nplurals=2; plural=(n > 1);"
_SLAVIC: Final = f"nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : {_FEW} ? 1 : 2);"
_CZECH: Final = "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);"
_NONE: Final = "nplurals=1; plural=0;"
PLURAL_FORMS: Final = {
    **dict.fromkeys(("id", "ja", "km", "ko", "lo", "ms", "my", "th", "vi", "zh"), _NONE),
    **dict.fromkeys(("fa", "fr", "hy", "oc", "tl", "tr", "uz", "wa", "pt-br"), _TWO_FROM_TWO),
    **dict.fromkeys(("be", "bs", "hr", "ru", "sr", "uk"), _SLAVIC),
    **dict.fromkeys(("cs", "sk"), _CZECH),
    "pl": f"nplurals=3; plural=(n==1 ? 0 : {_FEW} ? 1 : 2);",
    "lt": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : "
    "n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);",
    "lv": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);",
    "ro": "nplurals=3; plural=(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2);",
    "sl": "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);",
    "mk": "nplurals=2; plural=(n%10==1 && n%100!=11 ? 0 : 1);",
    "is": "nplurals=2; plural=(n%10!=1 || n%100==11);",
    "ga": "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4);",
    "cy": "nplurals=4; plural=(n==1 ? 0 : n==2 ? 1 : (n != 8 && n != 11) ? 2 : 3);",
    "mt": "nplurals=4; plural=(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : "
    "(n%100>10 && n%100<20) ? 2 : 3);",
    "ar": "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : "
    "n%100>=11 ? 4 : 5);",
}
"""What gettext calls the plural forms of a language; most languages that are not here have two."""


def plural_forms(language: str) -> str:
    """Return the Plural-Forms of a language."""
    code = language.replace("_", "-").lower()
    return PLURAL_FORMS.get(code) or PLURAL_FORMS.get(primary_code(code)) or _TWO


def _form_is_singular(form: int, forms: str) -> bool:
    """Return whether a plural form says one; with a single form none does."""
    count = _count_forms(forms)
    # Only Arabic has six, and begins with none.
    return count > 1 and form == (1 if count == 6 else 0)


def _count_forms(forms: str) -> int:
    match = re.search(r"nplurals\s*=\s*(\d{1,2})", forms)
    return min(max(int(match[1]), 1), 9) if match else 0


_KEYWORD: Final = re.compile(r'[ \t]*(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)[ \t]*(".*)')
_LONG_LINE: Final = re.compile(r'(?m)^(?:msg\w+ )?"[^\n]* [^\n]*"')
_STRING: Final = re.compile(r'[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*')
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(slots=True)
class _Field:
    """Hold a string of an entry, and the characters of its lines."""

    value: str
    start: int
    end: int
    lines: int = 1


@dataclass(slots=True)
class _Entry:
    line: int
    """It begins on this line."""
    fields: dict[str, _Field] = field(default_factory=dict)
    """By keyword; a plural's translations are under msgstr[0], …"""
    flags: list[tuple[int, int]] = field(default_factory=list)
    """Lines with flags stand at these places."""
    fuzzy: bool = False

    @property
    def translations(self) -> list[_Field]:
        return [one for name, one in self.fields.items() if name.startswith("msgstr")]


@dataclass(slots=True)
class _Filling:
    """Hold what is to be written into one entry."""

    entry: _Entry
    messages: list[tuple[MessageText, _Accelerator | None]]
    """One, or a singular and a plural."""


@dataclass(frozen=True, slots=True)
class _Accelerator:
    mark: str
    letter: str

    def put(self, text: str) -> str:
        """Return a translation with the mark before its first letter, or a letter in brackets."""
        place = next((i for i, one in enumerate(text) if one.isalnum()), None)
        if place is None:
            return text
        if not _can_be_typed(text[place]):
            end = len(text.rstrip(" .…:：。"))
            return f"{text[:end]}({self.mark}{self.letter.upper()}){text[end:]}"
        return text[:place] + self.mark + text[place:]


def _can_be_typed(letter: str) -> bool:
    """Return whether a letter has a key of its own: those of Chinese, Japanese, Korean have not."""
    return letter < "\u1100"


_ACCELERATOR: Final = re.compile(
    r"(?<![\w&])_(?=[A-Z])|(?<=\b[A-Z])_(?=[a-z])|(?<=\b[A-Z][a-z])_(?=[a-z])"
    r"|(?<![&\w])&(?=[^\W_])|(?<=[a-z])&(?=[a-z])|(?<=\b[A-Z])&(?=[a-z])"
)


def take_accelerator(text: str) -> tuple[str, _Accelerator | None]:
    """Return a label without the mark of its key (_File, Save &As, E_xit), and the mark."""
    places = [match.start() for match in _ACCELERATOR.finditer(text)]
    if len(places) != 1 or len(text) > 80 or re.search(r"&\w{2,8};|://", text):
        return text, None
    place = places[0]
    mark = text[place]
    if text.count(mark) != 1:
        return text, None
    return text[:place] + text[place + 1 :], _Accelerator(mark, text[place + 1])


class GettextDocument(Document):
    """Hold a catalogue of messages."""

    def __init__(
        self, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
    ) -> None:
        """Read a catalogue; its messages without a translation are to be translated.

        With `options.overwrite` all are. Those marked fuzzy are then no longer.
        """
        self._file = _decode(content, max_bytes)
        text = self._file.text
        self._newline = line_ends(text)
        # Some tools wrap no lines.
        self._long_lines = any(len(one[0]) > LINE_COLUMNS for one in _LONG_LINE.finditer(text))
        entries = list(_read_entries(text))
        self._language = options.target_language
        self._header = next((one for one in entries if _is_header(one)), None)
        header = self._header.fields["msgstr"].value if self._header else ""
        self._forms = _choose_forms(header, entries, self._language)
        self._fillings = [
            _Filling(entry, [_read_message(one) for one in _sources(entry)])
            for entry in entries
            if not _is_header(entry) and _wants_filling(entry, options.overwrite)
        ]
        self.units = [
            unit
            for filling in self._fillings
            for message, _ in filling.messages
            for unit in message.units
        ]

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the catalogue with a translation of each message that was without one."""
        coming = iter(translations)
        text = self._file.text
        replacements: list[tuple[int, int, str]] = []
        for filling in self._fillings:
            entry = filling.entry
            found = []
            for (message, accelerator), source in zip(
                filling.messages, _sources(entry), strict=True
            ):
                value = message.fill(coming)
                value = accelerator.put(value) if accelerator else value
                found.append(_fit_line_ends(value, source.value))
            replacements += self._write_entry(entry, found)
            if entry.fuzzy:
                replacements += [(a, b, _without_fuzzy(text[a:b])) for a, b in entry.flags]
        assert next(coming, None) is None
        if replacements:
            replacements += self._write_header()
            if self._header is None:
                new = "\n".join([*self._header_lines(), ""])
                written = self._write_field("msgstr", new) + self._newline
                replacements.append((0, 0, f'msgid ""{self._newline}{written}'))
        filled = replace_spans(text, sorted(replacements))
        if replacements and self._file.encoding != "utf-8":
            try:
                filled.encode(self._file.encoding)
            except UnicodeEncodeError:
                filled = re.sub(r"(?i)(charset=)[\w.:-]+", r"\g<1>UTF-8", filled, count=1)
                return filled.encode("utf-8")
        return self._file.encode(filled)

    def _write_entry(self, entry: _Entry, found: Sequence[str]) -> list[tuple[int, int, str]]:
        """Return what to replace in an entry, given the translation, or singular and plural."""
        fields = entry.translations
        if len(found) == 1:
            written = self._write_field("msgstr", found[0])
        else:
            written = "".join(
                self._write_field(
                    f"msgstr[{form}]",
                    found[0 if _form_is_singular(form, self._forms) else 1],
                )
                for form in range(_count_forms(self._forms))
            )
        start, end = fields[0].start, fields[-1].end
        if not self._file.text[start:end].endswith(("\n", "\r")):
            written = written.removesuffix(self._newline)
        return [(start, end, written)]

    def _write_field(self, keyword: str, value: str) -> str:
        return _write_field(keyword, value, self._long_lines).replace("\n", self._newline)

    def _write_header(self) -> list[tuple[int, int, str]]:
        """Return what to replace so that the header says the language and its plural forms."""
        language, header = self._language, self._header
        if header is None or not language:
            return []
        one = header.fields["msgstr"]
        lines = one.value.split("\n")
        wanted = {"Language": language.replace("-", "_")}
        if self._has_plurals or any(line.lower().startswith("plural-forms:") for line in lines):
            wanted["Plural-Forms"] = self._forms
        for name, value in wanted.items():
            place = next(
                (n for n, line in enumerate(lines) if line.lower().startswith(f"{name.lower()}:")),
                None,
            )
            if place is None:
                lines.insert(max(0, len(lines) - 1), f"{name}: {value}")
            elif name != "Language" or primary_code(lines[place].partition(":")[2].strip()) != (
                primary_code(language)
            ):
                lines[place] = f"{name}: {value}"
        new = "\n".join(lines)
        if self._file.encoding == "utf-8":
            new = new.replace("charset=CHARSET", "charset=UTF-8")
        if new == one.value:
            return []
        written = self._write_field("msgstr", new)
        if not self._file.text[one.start : one.end].endswith(("\n", "\r")):
            written = written.removesuffix(self._newline)
        flags = [(a, b, _without_fuzzy(self._file.text[a:b])) for a, b in header.flags]
        return [*(flags if header.fuzzy else []), (one.start, one.end, written)]

    @property
    def _has_plurals(self) -> bool:
        return any(len(filling.messages) > 1 for filling in self._fillings)

    def _header_lines(self) -> list[str]:
        """Return the header of a catalogue that has none; without one, it were ASCII."""
        language = [f"Language: {self._language.replace('-', '_')}"] if self._language else []
        plurals = [f"Plural-Forms: {self._forms}"] if self._has_plurals else []
        return [
            *language,
            "MIME-Version: 1.0",
            "Content-Type: text/plain; charset=UTF-8",
            "Content-Transfer-Encoding: 8bit",
            *plurals,
        ]


def _choose_forms(header: str, entries: Sequence[_Entry], language: str | None) -> str:
    """Return the plural forms to write: those declared, where translations follow them already."""
    declared = re.search(r"(?mi)^Plural-Forms:(.*)$", header)
    if declared and _count_forms(declared[1]):
        named = re.search(r"(?mi)^Language:[ \t]*([\w-]+)", header)
        used = any(
            "msgid_plural" in one.fields and any(form.value for form in one.translations)
            for one in entries
        )
        if not language or used or (named and primary_code(named[1]) == primary_code(language)):
            return declared[1].strip()
    return plural_forms(language) if language else _TWO


def _read_message(source: _Field) -> tuple[MessageText, _Accelerator | None]:
    text, accelerator = take_accelerator(source.value)
    return MessageText(text, icu=True), accelerator


def _sources(entry: _Entry) -> list[_Field]:
    return [entry.fields[name] for name in ("msgid", "msgid_plural") if name in entry.fields]


def _is_header(entry: _Entry) -> bool:
    return not entry.fields["msgid"].value and "msgctxt" not in entry.fields


def _wants_filling(entry: _Entry, overwrite: bool) -> bool:
    if not any(one.value for one in _sources(entry)):
        return False
    return overwrite or not any(one.value for one in entry.translations)


def _fit_line_ends(value: str, source: str) -> str:
    """Return a translation that begins and ends with a line break if its source does.

    Gettext demands this.
    """
    if not value.strip():
        return value
    value = value.strip("\n")
    return (
        ("\n" if source.startswith("\n") else "") + value + ("\n" if source.endswith("\n") else "")
    )


# --- reading and writing ---


def _decode(content: bytes, max_bytes: int) -> FileText:
    match = re.search(rb"charset=([\w.:-]+)", content[:20_000])
    encoding = match[1].decode("ascii").lower() if match else "utf-8"
    if encoding in ("charset", "utf8"):
        encoding = "utf-8"
    return decode_file(content, max_bytes=max_bytes, encoding=encoding)


def _read_entries(text: str) -> Iterator[_Entry]:
    """Yield the entries; obsolete ones are comments. Raise DataError for anything else."""
    entry: _Entry | None = None
    flags: list[tuple[int, int]] = []
    current: _Field | None = None
    for number, line in enumerate(LINE.finditer(text), 1):
        content = line[1]
        stripped = content.strip()
        if not stripped or stripped.startswith("#"):
            if entry is not None and entry.translations:
                yield _check(entry)
                entry = None
            current = None
            if not stripped or stripped.startswith("#~"):  # an obsolete entry's flags are its own
                flags = []
            elif stripped.startswith("#,"):
                flags.append(line.span())
            continue
        if match := _KEYWORD.fullmatch(content):
            keyword, rest = match[1], match[2]
            if keyword in ("msgctxt", "msgid") and (
                entry is None or entry.translations or keyword in entry.fields
            ):
                if entry is not None:
                    yield _check(entry)
                entry = _Entry(number, flags=flags)
                entry.fuzzy = any(re.search(r"\bfuzzy\b", text[a:b]) for a, b in flags)
                flags = []
            if entry is None or keyword in entry.fields:
                raise DataError(f"line {number}: {keyword} where no entry begins")
            current = _Field(_read_string(rest, number), line.start(), line.end())
            entry.fields[keyword] = current
        elif stripped.startswith('"') and current is not None:
            current.value += _read_string(content, number)
            current.end, current.lines = line.end(), current.lines + 1
        else:
            raise DataError(f"line {number}: not the syntax of a gettext file: {stripped[:40]}")
    if entry is not None:
        yield _check(entry)


def _check(entry: _Entry) -> _Entry:
    fields = entry.fields
    if "msgid" not in fields or not entry.translations:
        missing = "msgstr" if "msgid" in fields else "msgid"
        raise DataError(f"line {entry.line}: an entry without {missing}")
    if ("msgid_plural" in fields) == ("msgstr" in fields):
        raise DataError(f"line {entry.line}: a plural needs msgstr[0], and only a plural has it")
    return entry


def _read_string(raw: str, number: int) -> str:
    match = _STRING.fullmatch(raw)
    if match is None:
        raise DataError(f"line {number}: a string that is not closed")
    return re.sub(
        r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)",
        lambda one: _unescape(one[1]),
        match[1],
    )


def _unescape(escape: str) -> str:
    if escape[0] == "x" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape[0] in "01234567":
        return chr(int(escape, 8) & 0xFF)
    return _ESCAPES.get(escape, escape)


def _escape(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    for letter, character in _ESCAPES.items():
        text = text.replace(character, f"\\{letter}")
    return text


def _write_field(keyword: str, value: str, long_lines: bool) -> str:
    """Return a string as gettext writes it: a line a line, and long ones wrapped."""
    escaped = [_escape(line) for line in re.findall(r"[^\n]*\n|[^\n]+", value)] or [""]
    whole = "".join(escaped)
    if len(escaped) == 1 and (long_lines or len(keyword) + 3 + len(whole) <= LINE_COLUMNS):
        return f'{keyword} "{whole}"\n'
    lines = [f'{keyword} ""']
    for line in escaped:
        lines += [f'"{part}"' for part in ([line] if long_lines else _wrap(line))]
    return "\n".join(lines) + "\n"


def _wrap(line: str) -> list[str]:
    """Return a line in parts that fit between quotes, each but the last ending with a space."""
    words = re.findall(r"\S*\s*", line)
    parts = [""]
    for word in words:
        if parts[-1] and len(parts[-1]) + len(word.rstrip()) > LINE_COLUMNS - 2:
            parts.append("")
        parts[-1] += word
    return parts


def _without_fuzzy(line: str) -> str:
    """Return a line of flags without "fuzzy", or nothing if it has no other."""
    flags = [flag.strip() for flag in line.strip().removeprefix("#,").split(",")]
    others = [flag for flag in flags if flag and flag != "fuzzy"]
    end = line[len(line.rstrip("\r\n")) :]
    return f"#, {', '.join(others)}{end}" if others else ""
