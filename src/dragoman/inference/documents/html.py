"""HTML: what of it is text to translate, and the page again around the translations.

Text between block tags is one run. A run without tags of its own is translated like any text; in
one with inline tags these are protected, and put beside the words that they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape, unescape
from typing import Final

__all__ = ["Page"]

_PARTS: Final = re.compile(
    r"<!--.*?(?:-->|$)|<(script|style|pre|code|kbd|samp|textarea|svg|math)\b.*?(?:</\1\s*>|$)"
    r"|</?[A-Za-z][^<>]*>|<[!?][^<>]*>",
    re.DOTALL | re.IGNORECASE,
)
_INLINE: Final = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|del|dfn|em|font|i|ins|mark|q|s|small|span|strong|sub|sup"
    r"|time|tt|u|var|x|g)(?:\s[^<>]*|/)?>",
    re.IGNORECASE,
)


class Page:
    """A text with tags."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._layout: list[str | _Run] = []
        run: list[str] = []
        end = 0
        for match in _PARTS.finditer(text):
            run.append(text[end : match.start()])
            end = match.end()
            if _INLINE.fullmatch(match.group()):
                run.append(match.group())
            else:
                self._close(run)
                self._layout.append(match.group())
                run = []
        self._close([*run, text[end:]])
        runs = [one for one in self._layout if isinstance(one, _Run)]
        self.plain = [one.text for one in runs if not one.tags]
        """The runs without tags."""
        self.tagged = [one.text for one in runs if one.tags]
        """The runs with tags in them."""

    def filled(self, plain: Sequence[str], tagged: Sequence[str]) -> str:
        """The page with translations of its runs."""
        coming = iter(plain), iter(tagged)
        return "".join(
            one if isinstance(one, str) else one.around(next(coming[bool(one.tags)]))
            for one in self._layout
        )

    def _close(self, parts: Sequence[str]) -> None:
        """What has come since the last block tag: a run, if it has words."""
        parts = [part for part in parts if part]
        words = [i for i, part in enumerate(parts) if _has_words(part)]
        if not words:
            self._layout += parts
            return
        first, end = words[0], words[-1] + 1
        if any(map(_INLINE.fullmatch, parts[first:end])):
            first, end = 0, len(parts)
        # Otherwise the tags at the ends are around all of the words, and stay there.
        self._layout += [*parts[:first], _Run(parts[first:end]), *parts[end:]]


class _Run:
    def __init__(self, parts: Sequence[str]) -> None:
        self.tags = frozenset(part for part in parts if _INLINE.fullmatch(part))
        whole = "".join(part if part in self.tags else unescape(part) for part in parts)
        # The same white space means nothing inside, and separates outside.
        start, end = len(whole) - len(whole.lstrip()), len(whole.rstrip())
        self._before, self._after = whole[:start], whole[end:]
        self.text = " ".join(whole.split())

    def around(self, translation: str) -> str:
        """The translation as HTML; what was no tag is none."""
        if not self.tags:
            return self._before + escape(translation, quote=False) + self._after
        known = re.compile("(" + "|".join(map(re.escape, sorted(self.tags, key=len))) + ")")
        parts = known.split(translation)
        body = "".join(p if p in self.tags else escape(p, quote=False) for p in parts)
        return self._before + body + self._after


def _has_words(part: str) -> bool:
    return not _PARTS.fullmatch(part) and any(map(str.isalnum, unescape(part)))
