"""HTML: finding the text to translate between its tags, and putting the translation there.

Text between block tags is one run. A run without tags of its own is translated like any text; in
one with inline tags, these are protected and end up beside the words that they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape, unescape
from typing import Final

from dragoman.inference import Translation
from dragoman.inference.documents.lines import get_alternative

_MARKUP: Final = re.compile(
    r"<!--.*?(?:-->|$)|<(script|style|pre|code|kbd|samp|textarea|svg|math)\b.*?(?:</\1\s*>|$)"
    r"|</?[A-Za-z][^<>]*>|<[!?][^<>]*>",
    re.DOTALL | re.IGNORECASE,
)
_INLINE_TAG: Final = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|del|dfn|em|font|i|ins|mark|q|s|small|span|strong|sub|sup"
    r"|time|tt|u|var|x|g)(?:\s[^<>]*|/)?>",
    re.IGNORECASE,
)


class HtmlTexts:
    """Hold some texts with tags as one list of runs to translate."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [HtmlText(text) for text in texts]
        self.plain = [run for text in self._texts for run in text.plain]
        """The runs without tags."""
        self.tagged = [run for text in self._texts for run in text.tagged]
        """The runs with tags in them, which must be protected."""

    def __len__(self) -> int:
        return len(self.plain) + len(self.tagged)

    def assemble(
        self, plain: Sequence[Translation], tagged: Sequence[Translation]
    ) -> list[Translation]:
        """Return the translation of each text, given those of its runs."""
        coming_plain, coming_tagged = iter(plain), iter(tagged)
        results = []
        for text in self._texts:
            runs = (
                [next(coming_plain) for _ in text.plain],
                [next(coming_tagged) for _ in text.tagged],
            )
            most = max((len(one.alternatives) for side in runs for one in side), default=0)
            score = sum(one.score for side in runs for one in side)
            best, *others = (
                Translation(
                    text.text,
                    text.fill(
                        *([get_alternative(one, rank).text for one in side] for side in runs)
                    ),
                    score,
                    (),
                )
                for rank in range(most + 1)
            )
            results.append(replace(best, alternatives=tuple(others)))
        return results


class HtmlText:
    """Hold one text with tags, as runs to translate and what stands between them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._layout: list[str | _Run] = []
        parts: list[str] = []  # since the last block tag
        end = 0
        for match in _MARKUP.finditer(text):
            parts.append(text[end : match.start()])
            end = match.end()
            if _INLINE_TAG.fullmatch(match.group()):
                parts.append(match.group())
            else:
                self._add_run(parts)
                self._layout.append(match.group())
                parts = []
        self._add_run([*parts, text[end:]])
        runs = [one for one in self._layout if isinstance(one, _Run)]
        self.plain = [one.text for one in runs if not one.tags]
        """The runs without tags."""
        self.tagged = [one.text for one in runs if one.tags]
        """The runs with tags in them."""

    def fill(self, plain: Sequence[str], tagged: Sequence[str]) -> str:
        """Return the text with translations in place of its runs."""
        coming = iter(plain), iter(tagged)
        return "".join(
            one if isinstance(one, str) else one.to_html(next(coming[bool(one.tags)]))
            for one in self._layout
        )

    def _add_run(self, parts: Sequence[str]) -> None:
        """Add what has come since the last block tag: a run, if it has words."""
        parts = [part for part in parts if part]
        words = [i for i, part in enumerate(parts) if _has_words(part)]
        if not words:
            self._layout += parts
            return
        first, end = words[0], words[-1] + 1
        if any(map(_INLINE_TAG.fullmatch, parts[first:end])):
            first, end = 0, len(parts)
        # Otherwise the tags at the ends are around all of the words, and stay there.
        self._layout += [*parts[:first], _Run(parts[first:end]), *parts[end:]]


class _Run:
    """Hold the text between two block tags, without its escapes and outer white space."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.tags = frozenset(part for part in parts if _INLINE_TAG.fullmatch(part))
        whole = "".join(part if part in self.tags else unescape(part) for part in parts)
        # White space means nothing inside, but separates outside.
        start, end = len(whole) - len(whole.lstrip()), len(whole.rstrip())
        self._before, self._after = whole[:start], whole[end:]
        self.text = " ".join(whole.split())

    def to_html(self, translation: str) -> str:
        """Return a translation as HTML; only tags that the run has are tags in it."""
        if not self.tags:
            return self._before + escape(translation, quote=False) + self._after
        known = re.compile("(" + "|".join(map(re.escape, sorted(self.tags, key=len))) + ")")
        parts = known.split(translation)
        body = "".join(p if p in self.tags else escape(p, quote=False) for p in parts)
        return self._before + body + self._after


def _has_words(part: str) -> bool:
    return not _MARKUP.fullmatch(part) and any(map(str.isalnum, unescape(part)))
