"""Subtitles (.srt, .vtt) are translated; their numbers, times, styles and notes stay.

The lines of a subtitle are one unit, and a sentence that goes on in the next subtitle is
translated as a whole and divided again. The files are edited in place: the srt library writes them
anew, without what stands between subtitles, and knows no WebVTT.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.file_text import (
    LINE,
    decode_file,
    line_ends,
    replace_spans,
)
from dragoman.inference.documents.inline_tags import Kind, TaggedText, Token, split_tokens
from dragoman.text.line_breaking import can_break, columns
from dragoman.text.sentence_splitting import ends_sentence

MAX_COLUMNS: Final = 42
"""A line of a subtitle is no longer than this, if it can be."""
MAX_JOINED: Final = 4
"""A sentence is put together from so many subtitles at most,"""
MAX_JOINED_LENGTH: Final = 320
"""and has so many characters at most,"""
MAX_GAP: Final = 3.0
"""and there are so many seconds between two of them at most."""
USUALLY: Final = 0.4
"""Where such a part of the subtitles ends like a sentence, one that does not goes on."""

_TIME: Final = r"\d{1,9}(?:[:.,]\d{1,9}){1,4}"
_TIMING: Final = re.compile(rf"[ \t]*({_TIME})[ \t]*-->[ \t]*({_TIME})(?:[ \t].*)?")
_MARKUP: Final = re.compile(
    r"(?P<tag></?[A-Za-z][^<>\n]*>|<\d[\d:.]*>|\{\\[^{}\n]*\}|\{[yYcCfFsSpPbB]:[^{}\n]*\})"
)
_STYLE: Final = re.compile(r"\{\\([ibus])([01])\}")
_DASH: Final = re.compile(r"\s*[-‐–—]{1,2}\s*(?=[^\W\d_]|[\"'„“”«»‚‘¿¡.…\[(♪]|\Z)")
_LEADING: Final = re.compile(r"\s*(?:[♪♫♬♩]+|#(?=\s))\s*")
_TRAILING: Final = re.compile(r"\s*(?:[♪♫♬♩]+|(?<=\s)#)\s*\Z")
_BREAKS_OFF: Final = ":;—–-"
"""Marks that divide as a sentence's end does."""
_SOUND: Final = re.compile(
    rf"(?:\s|{_MARKUP.pattern.replace('?P<tag>', '?:')}|[-‐–—](?=\s*\[))*"
    r"\[(?P<sound>[^\[\]<>{}\r\n]*[^\W\d_][^\[\]<>{}\r\n]*)\](?=.*[^\W\d_])",
    re.DOTALL,
)


@dataclass(slots=True)
class _Piece:
    """Hold lines of one subtitle that belong together: what one person says, a sound, a song."""

    start: int
    end: int
    lines: int
    width: int
    inline: TaggedText
    can_join: tuple[bool, bool]
    """These say whether a sentence may come from the subtitle before and go on in the next."""

    @property
    def unit(self) -> Unit:
        assert self.inline.unit is not None
        return self.inline.unit


class _Cue(NamedTuple):
    begin: float
    end: float
    pieces: list[_Piece]


class _SubtitleDocument(Document):
    """Hold a file of subtitles."""

    def __init__(self, content: bytes, *, max_bytes: int) -> None:
        self._file = decode_file(content, max_bytes=max_bytes)
        self._newline = line_ends(self._file.text)
        text = self._file.text
        cues = [
            _Cue(begin, end, list(self._read_pieces(text, *place)))
            for begin, end, place in self._find_cues(text)
        ]
        self._groups = _join_sentences(cues)
        self._joined = [TaggedText.join([piece.inline for piece in one]) for one in self._groups]
        self.units = []
        for one in self._joined:
            assert one.unit is not None
            self.units.append(one.unit)

    def _find_cues(self, text: str) -> Iterator[tuple[float, float, tuple[int, int]]]:
        """Yield when each subtitle begins and ends, and where its text stands."""
        raise NotImplementedError

    def _unescape(self, text: str) -> str:
        return text

    def _escape(self, text: str) -> str:
        return text

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with the translation of each sentence in its subtitle, or subtitles."""
        replacements = []
        for group, joined, unit in zip(self._groups, self._joined, translations, strict=True):
            if unit == joined.unit:
                continue
            shares = [len(piece.unit.text) for piece in group]
            for piece, part in zip(group, divide_unit(unit, shares), strict=True):
                wrapped = wrap_unit(part, piece.lines, piece.width)
                inside = joined.render_part(wrapped, self._escape)
                written = piece.inline.put_around(inside, self._escape)
                replacements.append((piece.start, piece.end, written.replace("\n", self._newline)))
        return self._file.encode(replace_spans(self._file.text, replacements))

    def _read_pieces(self, text: str, start: int, end: int) -> Iterator[_Piece]:
        """Yield the parts of a subtitle's text that are translated by themselves."""
        groups: list[list[tuple[int, int]]] = []
        lines = [match.span(1) for match in LINE.finditer(text, start, end) if match[1]]
        plain = [_MARKUP.sub("", text[a:b]).strip() for a, b in lines]
        dialogue = sum(_DASH.match(line) is not None for line in plain) > 1
        previous, previous_end = "", start
        for (a, b), line in zip(lines, plain, strict=True):
            blank_between = len(text[previous_end:a].splitlines()) > 1
            apart = (
                blank_between
                or not any(map(str.isalnum, previous))
                or (_DASH.match(line) is not None and (dialogue or ends_sentence(previous)))
                or line[:1] in ("♪", "♫", "♬", "♩", "#", "[", "(")
                or previous[-1:] in ("♪", "♫", "♬", "♩", "]", ")")
            )
            if apart or not groups:
                groups.append([])
            groups[-1].append((a, b))
            previous, previous_end = line, b
        for group in groups:
            yield from self._read_piece(text, group)

    def _read_piece(self, text: str, lines: Sequence[tuple[int, int]]) -> Iterator[_Piece]:
        """Yield a sound in brackets that comes first, and what is said."""
        start, end = lines[0][0], lines[-1][1]
        width = max(MAX_COLUMNS, *(columns(_MARKUP.sub("", text[a:b]).strip()) for a, b in lines))
        if match := _SOUND.match(text, start, end):
            yield from self._make_piece(text, *match.span("sound"), width, sound=True)
            start = match.end()
        yield from self._make_piece(text, start, end, width)

    def _make_piece(
        self, text: str, start: int, end: int, width: int, *, sound: bool = False
    ) -> Iterator[_Piece]:
        joined, breaks = re.subn(r"[ \t]*(?:\r\n|\n|\r)[ \t]*", " ", text[start:end])
        tokens = split_tokens(joined.replace("\t", " "), _MARKUP, self._unescape)
        for place, token in enumerate(tokens):
            if match := _STYLE.fullmatch(token.raw):
                kind = Kind.OPEN if match[2] == "1" else Kind.CLOSE
                tokens[place] = Token(kind, token.raw, f"style {match[1]}")
            elif token.kind is Kind.BREAK:  # lines are broken anew
                tokens[place] = Token(Kind.EMPTY, token.raw)
        tokens, ornaments = _set_ornaments_apart(tokens)
        inline = TaggedText(tokens)
        if inline.unit is not None:
            closed = sound or ornaments[1]
            can_join = not sound and not ornaments[0], not closed
            yield _Piece(start, end, breaks + 1, width, inline, can_join)


def _set_ornaments_apart(tokens: list[Token]) -> tuple[list[Token], tuple[bool, bool]]:
    """Make tags of a dash, notes of music and brackets at the ends; say where there were any."""
    found = [False, False]
    filled = [
        place
        for place, token in enumerate(tokens)
        if token.kind is Kind.TEXT and not token.raw.isspace()
    ]
    if not filled:
        return tokens, (False, False)
    last, first = filled[-1], filled[0]
    plain = "".join(token.raw for token in tokens if token.kind is Kind.TEXT).strip()
    if match := _TRAILING.search(tokens[last].raw):
        tokens[last : last + 1] = [
            Token(Kind.TEXT, tokens[last].raw[: match.start()]),
            Token(Kind.EMPTY, match.group()),
        ]
        found[1] = True
    for pattern in (_DASH, _LEADING):
        if match := pattern.match(tokens[first].raw):
            tokens[first : first + 1] = [
                Token(Kind.EMPTY, match.group()),
                Token(Kind.TEXT, tokens[first].raw[match.end() :]),
            ]
            first, last = first + 1, last + 1
            found[0] = True
            found[1] |= pattern is _LEADING
    if re.fullmatch(r"\[[^\[\]]*\]|\([^()]*\)", plain):
        found = [True, True]
        for place, bracket in ((last, plain[-1]), (first, plain[0])):
            before, _, after = tokens[place].raw.partition(bracket)
            tokens[place : place + 1] = [
                Token(Kind.TEXT, before),
                Token(Kind.EMPTY, bracket),
                Token(Kind.TEXT, after),
            ]
    return [token for token in tokens if token.raw], (found[0], found[1])


def _join_sentences(cues: Sequence[_Cue]) -> list[list[_Piece]]:
    """Return the pieces of each sentence."""
    ends = [
        ends_sentence(piece.unit.text, also=_BREAKS_OFF) for cue in cues for piece in cue.pieces
    ]
    usual = sum(ends) >= USUALLY * len(ends)
    groups: list[list[_Piece]] = []
    before: _Cue | None = None
    for cue in cues:
        for place, piece in enumerate(cue.pieces):
            if (
                place == 0
                and before is not None
                and -MAX_GAP < cue.begin - before.end <= MAX_GAP
                and len(groups[-1]) < MAX_JOINED
                and groups[-1][-1].can_join[1]
                and piece.can_join[0]
                and _goes_on(groups[-1][-1].unit.text, piece.unit.text, usual)
                and sum(len(one.unit.text) for one in (*groups[-1], piece)) <= MAX_JOINED_LENGTH
            ):
                groups[-1].append(piece)
            else:
                groups.append([piece])
        before = cue if cue.pieces else None
    return groups


def _goes_on(text: str, following: str, usual: bool) -> bool:
    """Return whether a sentence goes on in the next subtitle."""
    if ends_sentence(text, also=_BREAKS_OFF):
        return False
    letter = next(filter(str.isalnum, following), "")
    return letter.islower() or text.endswith(",") or (usual and text[-1].isalnum())


# --- dividing and wrapping ---


def _find_breaks(text: str) -> list[tuple[int, int]]:
    """Return where a line may end and the next begin: at spaces, and between Chinese characters."""
    found = [match.span() for match in re.finditer(r"(?<=\S) +(?=\S)", text)]
    found += [
        (place, place)
        for place in range(1, len(text))
        if not (text[place - 1].isspace() or text[place].isspace())
        and can_break(text[place - 1], text[place])
    ]
    return sorted(found)


def _choose_breaks(
    text: str, count: int, cost: Callable[[int, int, int], float], bonus: float
) -> list[tuple[int, int]] | None:
    """Return the best places to break a text `count` times, or None if there are not as many.

    `cost` is what a line costs, given its number and where it begins and ends; one that ends with
    punctuation costs less by `bonus`.
    """
    breaks = _find_breaks(text)
    if len(breaks) < count:
        return None
    if not count:
        return []
    # For each break: what the lines until it cost if one ends there, and the breaks before it.
    best: list[tuple[float, tuple[int, ...]]] = []
    for number in range(count):
        before, best = best, []
        for place, (end, _) in enumerate(breaks):
            options: list[tuple[float, tuple[int, ...]]] = [(cost(0, 0, end), (place,))]
            if number:
                options = [
                    (
                        before[other][0] + cost(number, breaks[other][1], end),
                        (*before[other][1], place),
                    )
                    for other in range(number - 1, place)
                ]
            total, chosen = min(options, default=(math.inf, ()))
            best.append((total - bonus * _judge_end(text, end), chosen))
    ends = range(count - 1, len(breaks))
    last = min(ends, key=lambda one: best[one][0] + cost(count, breaks[one][1], len(text)))
    return [breaks[place] for place in best[last][1]]


def _judge_end(text: str, end: int) -> float:
    """Return how good it is that a line ends here: after punctuation; not after a short word."""
    if text[end - 1] in ",;:.!?…、。，！？–—":
        return 1.0
    return -0.5 if re.search(r"(?:^|\s)[^\W\d_]{1,3}$", text[max(0, end - 4) : end]) else 0.0


def divide_unit(unit: Unit, shares: Sequence[int]) -> list[Unit]:
    """Return a unit in as many parts as there are shares, as long as these in proportion.

    Where it has too few words, every part is the whole: it is then shown all the time.
    """
    if len(shares) == 1:
        return [unit]
    text, total = unit.text, sum(shares)
    goals = [share / total for share in shares]

    def cost(number: int, start: int, end: int) -> float:
        return float(abs((end - start) / len(text) - goals[number]) ** 1.5)

    breaks = _choose_breaks(text, len(shares) - 1, cost, bonus=0.1)
    if breaks is None:
        return [unit, *[Unit(text)] * (len(shares) - 1)]
    starts, ends = [0, *(b for _, b in breaks)], [*(a for a, _ in breaks), len(text)]
    return [_cut(unit, a, b, last=b == len(text)) for a, b in zip(starts, ends, strict=True)]


def _cut(unit: Unit, start: int, end: int, *, last: bool) -> Unit:
    """Return a part of a unit; a mark on both sides of an end is in both parts."""
    marks = []
    for mark in unit.marks:
        if mark.start == mark.end:
            inside = start <= mark.start < end or (last and mark.start == end)
        else:
            inside = mark.start < end and mark.end > start
        if inside or (mark.end == start and mark.start == mark.end):
            a, b = max(mark.start, start) - start, min(mark.end, end) - start
            marks.append(replace(mark, start=a, end=b))
    return Unit(unit.text[start:end], tuple(marks))


def wrap_unit(unit: Unit, lines: int, width: int) -> Unit:
    """Return a unit in so many lines, or more if they would be wider, of about equal width."""
    text = unit.text
    breaks = _find_breaks(text)
    if len(text) > 2000 or not breaks:  # no subtitle
        return unit
    widths = [0, *accumulate(map(columns, text))]

    def cost(number: int, start: int, end: int) -> float:
        size = widths[end] - widths[start]
        return (size / widths[-1]) ** 2 + (10.0 if size > width else 0.0)

    needed = max(lines, -(-widths[-1] // width))
    for count in range(min(needed, len(breaks) + 1), len(breaks) + 2):
        chosen = _choose_breaks(text, count - 1, cost, bonus=0.02) or []
        starts, ends = [0, *(b for _, b in chosen)], [*(a for a, _ in chosen), len(text)]
        if count > needed or all(
            widths[b] - widths[a] <= width for a, b in zip(starts, ends, strict=True)
        ):
            break
    for start, end in reversed(chosen):
        text = f"{text[:start]}\n{text[end:]}"
        shift = 1 - (end - start)
        unit = Unit(
            text,
            tuple(
                replace(
                    mark,
                    start=mark.start + (shift if mark.start >= end and shift else 0),
                    end=mark.end + (shift if mark.end > end and shift else 0),
                )
                for mark in unit.marks
            ),
        )
    return unit


# --- the two formats ---


class SubRipDocument(_SubtitleDocument):
    """Hold a SubRip file (.srt)."""

    def _find_cues(self, text: str) -> Iterator[tuple[float, float, tuple[int, int]]]:
        lines = [match.span(1) for match in LINE.finditer(text)]
        timings = [
            (number, match)
            for number, (start, end) in enumerate(lines)
            if (match := _TIMING.fullmatch(text, start, end))
        ]
        if text.strip() and not timings:
            raise DataError("no line has times; this is not a subtitle file")
        for place, (number, match) in enumerate(timings):
            last = timings[place + 1][0] if place + 1 < len(timings) else len(lines)
            if last < len(lines) and text[slice(*lines[last - 1])].strip().isdecimal():
                last -= 1
            if number + 1 < last:
                place_of_text = lines[number + 1][0], lines[last - 1][1]
                yield _seconds(match[1]), _seconds(match[2]), place_of_text


class WebVttDocument(_SubtitleDocument):
    """Hold a WebVTT file (.vtt)."""

    def _find_cues(self, text: str) -> Iterator[tuple[float, float, tuple[int, int]]]:
        if text.strip() and not re.match(r"WEBVTT(?:[ \t\r\n]|\Z)", text):
            raise DataError("the file does not begin with WEBVTT; this is not a WebVTT file")
        lines = [match.span(1) for match in LINE.finditer(text)]
        number = 0
        while number < len(lines):
            first = number
            while number < len(lines) and text[slice(*lines[number])].strip():
                number += 1
            block = lines[first:number]
            number += 1
            if not block or re.match(r"(?:NOTE|STYLE|REGION)(?:\s|\Z)", text[slice(*block[0])]):
                continue
            timings = [(row, _TIMING.fullmatch(text, *span)) for row, span in enumerate(block)]
            times = [(row, match) for row, match in timings if match is not None]
            # A cue begins with its times, even where no blank line is before them.
            for (row, match), (last, _) in pairwise([*times, (len(block), None)]):
                if match is not None and row + 1 < last:
                    place = block[row + 1][0], block[last - 1][1]
                    yield _seconds(match[1]), _seconds(match[2]), place

    def _unescape(self, text: str) -> str:
        return html.unescape(text)

    def _escape(self, text: str) -> str:
        return html.escape(text, quote=False)


def _seconds(time: str) -> float:
    seconds = 0.0
    clock, *fraction = re.split("[.,]", time, maxsplit=1)
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds + (float(f"0.{fraction[0]}") if fraction and fraction[0].isdecimal() else 0.0)
