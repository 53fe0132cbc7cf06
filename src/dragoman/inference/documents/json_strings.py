"""The string values of JSON are translated where they stand; keys, numbers and layout stay.

Strings that are no text (addresses, identifiers, colours, classes) are left as they are, and so is
the metadata of .arb files, which Flutter uses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.file_text import decode_file, has_letters, replace_spans
from dragoman.inference.documents.message_text import MessageText
from dragoman.inference.documents.options import NO_OPTIONS, DocumentOptions

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_MAX_DEPTH: Final = 200


class JsonString(NamedTuple):
    """Hold a string of a JSON text, and where it stands."""

    start: int
    end: int
    value: str
    path: tuple[str | int, ...]
    """These are the keys and the numbers, from 0, that lead to it."""


def check_json(text: str) -> None:
    """Raise DataError, with the line, for what is not JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise DataError(f"not JSON that can be read: {reason}") from None


def find_strings(text: str, start: int = 0) -> Iterator[JsonString]:
    """Yield the string values of a text that is known to be JSON, in order."""
    path: list[str | int] = []
    objects: list[bool] = []  # whether each level is an object
    expects_key = False
    for match in _TOKEN.finditer(text, start):
        token = match.group()
        if token in "{[":
            objects.append(token == "{")
            if len(objects) > _MAX_DEPTH:
                raise DataError(f"not JSON that can be read: more than {_MAX_DEPTH} levels deep")
            path.append("" if token == "{" else 0)
            expects_key = token == "{"
        elif token in "}]":
            objects.pop()
            path.pop()
            expects_key = False
        elif token == ",":
            if objects[-1]:
                expects_key = True
            else:
                last = path[-1]
                assert isinstance(last, int)
                path[-1] = last + 1
        elif token == ":":
            expects_key = False
        elif token[0] == '"':
            value = json.loads(token)
            if expects_key:
                path[-1] = value
            else:
                yield JsonString(match.start(), match.end(), value, tuple(path))


def write_string(value: str, like: str) -> str:
    """Return a string as JSON, with the escapes that the other string of the file uses."""
    ascii_only = like.isascii() and re.search(r"\\u(?!00[01])", like) is not None
    written = json.dumps(value, ensure_ascii=ascii_only)
    if r"\/" in like:
        written = written.replace("/", r"\/")
    for character in "<>&'":
        escape = f"\\u{ord(character):04x}"
        if escape in like.lower():
            written = written.replace(character, escape)
    if not ascii_only:  # halves of characters, which no encoding can write
        written = re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", written)
    return written


class JsonDocument(Document):
    """Hold a JSON file whose strings are to be translated."""

    def __init__(
        self, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
    ) -> None:
        """Read a file; `options.leave_keys` names keys whose strings stay."""
        self._file = decode_file(content, max_bytes=max_bytes)
        text = self._file.text
        check_json(text)
        is_ascii = text.isascii() and r"\u" in text
        self._like = r"\u1234" if is_ascii else ""
        self._language = options.target_language
        self._locales: list[JsonString] = []
        self._strings: list[tuple[JsonString, MessageText]] = []
        strings = list(find_strings(text))
        paths = {one.path for one in strings}
        for one in strings:
            if one.path == ("@@locale",):
                self._locales.append(one)
            elif not _is_left(one, options.leave_keys, paths):
                message = MessageText(one.value, icu=True)
                if message.units:
                    self._strings.append((one, message))
        self.units = [unit for _, message in self._strings for unit in message.units]

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with a translation in place of each string."""
        text = self._file.text
        replacements = []
        coming = iter(translations)
        for one, message in self._strings:
            value = message.fill(coming)
            if value != one.value:
                like = self._like + text[one.start : one.end]
                replacements.append((one.start, one.end, write_string(value, like)))
        if replacements and self._language:
            replacements += [
                (one.start, one.end, json.dumps(self._language)) for one in self._locales
            ]
        assert next(coming, None) is None
        return self._file.encode(replace_spans(text, sorted(replacements)))


_CODE_KEY_NAMES: Final = (
    "alias anchor bin class classname color colour css cssclass domain encoding extends file "
    "filename font format height href icon id identifier image img key lang language layout "
    "licence license locale main method mimetype module name_key path pattern ref regex rel route "
    "script slug src style tag target theme type uri url uuid version width"
)
_CODE_KEYS: Final = frozenset(_CODE_KEY_NAMES.split())
"""Under these keys a string that could be code is code, not text."""
_CAPITALS: Final = r"\(?(?:[A-Z0-9]{2,}|[A-Za-z]+-(?=[\w.+-]*\d)[\w.+-]+)\)?"  # MIT, Apache-2.0
_COULD_BE_CODE: Final = re.compile(
    r"[a-z0-9_./:#@%,;()\[\]+*=?&$-]+(?: [a-z0-9_./:#@%,;()+*=-]+)*"
    rf"|{_CAPITALS}(?: (?:OR|AND|WITH) {_CAPITALS})*"
)
_COMMANDS_AND_VERSIONS: Final = re.compile(r"scripts|engines|\w*dependencies", re.IGNORECASE)
"""Directly under these keys a string that does not begin with a capital is no text."""
_PACKAGE_NAME: Final = re.compile(r"[a-z0-9]+(?:[-_./][a-z0-9]+)*")
_NO_TEXT: Final = re.compile(
    r"""
    [a-zA-Z][a-zA-Z0-9+.-]*://\S+ | mailto:\S+ | data:\S+ | www\.\S+  # addresses
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | \#[0-9A-Fa-f]{3,8} | (?:rgba?|hsla?|var|calc|url)\([^()]*\)  # colours and CSS
    | -?[\d.]+\s?(?:px|r?em|%|pt|vh|vw|ms|s|deg|fr|[KMGT]?B)
    | [a-z]{2,3}[-_][A-Z]{2}(?:\.[\w-]+)? | [a-z]{2}[-_][A-Z][a-z]{3}  # languages
    | [a-z]+(?:[A-Z][a-z0-9]+)+ | (?:[A-Z][a-z0-9]+){2,}  # camelCase, CamelCase
    | \w+(?:_\w+)+ | \w+(?:\.\w+)+(?:\(\))? | \w+(?:::\w+)+
    | [\w-]+(?:\.[\w-]+)*\.\w{1,5}  # file names
    | \.{0,2}/\S* | ~/\S* | [\w.-]+(?:/[\w.*{}-]+){2,}/? | [\w./-]+/[\w-]+\.\w+ | [A-Za-z]:\\\S*
    | [@$]\S+ | --?[A-Za-z][\w-]* | </?\w[^<>]*/?>
    | [0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12} | [0-9a-f]{16,}
    | [A-Za-z0-9+/]{40,}={0,2}
    | (?=.*(?:yy|MM|dd|HH|:mm))(?:[yMdHhmsSaEkKzZ]+[.:/,\ '-]+)+[yMdHhmsSaEkKzZ]+  # forms of dates
    """,
    re.VERBOSE,
)


def is_code(value: str) -> bool:
    """Return whether a string is an address, an identifier or the like, and no text."""
    value = value.strip()
    if not has_letters(value):
        return True
    return _NO_TEXT.fullmatch(value) is not None


def _is_left(
    one: JsonString, leave_keys: Sequence[str], paths: Collection[tuple[str | int, ...]]
) -> bool:
    keys = [key for key in one.path if isinstance(key, str)]
    if any(key.startswith("@") for key in keys) or any(key in leave_keys for key in keys):
        return True
    if keys and keys[-1].startswith("$"):
        return True
    if keys and keys[-1].lower() in _CODE_KEYS and _COULD_BE_CODE.fullmatch(one.value):
        return True
    if len(keys) > 1 and _COMMANDS_AND_VERSIONS.fullmatch(keys[-2]) and not one.value[:1].isupper():
        return True
    if one.path[-1:] == ("name",) and _PACKAGE_NAME.fullmatch(one.value):
        has_version = (*one.path[:-1], "version") in paths
        return has_version or not one.value.isalnum()  # other names may be words
    return is_code(one.value)
