"""Protection of what is not to be translated: URLs, addresses, inline tags and placeholders.

What stands for a word ({0}, %s, a URL) is replaced by a word the model copies, and put back where
that word comes out. A tag is taken out and put back beside the words that are aligned with its
own; so is whatever the model did not copy just once. docs/decoding.md has the measurements.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from dragoman.inference.translation_types import Request, TranslateFunction, Translation
from dragoman.text.normalization import normalize
from dragoman.text.word_boundaries import is_word

COMMON_NAMES: Final = (
    "Anna",
    "Peter",
    "Maria",
    "Martin",
    "Julia",
    "Thomas",
    "London",
    "Berlin",
    "Paris",
)
"""Many models copy these words."""
MAX_TRIED_WORDS: Final = 400
"""So many capitalised words of the vocabulary are tried as stand-ins, too."""
MAX_STAND_INS: Final = 8
"""So many words that are copied are kept."""

_ITEMS: Final = re.compile(
    r"""
    (?P<tag></?[A-Za-z][^<>]*>)
    | (?P<word>
        (?:(?:https?|ftp)://|(?<!\w)www\.)[^\s<>]*[^\s<>.,;:!?)\]'"]
      | [\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+
      | \{\{[\w. -]+\}\} | \$?\{[\w.:-]*\}
      | %\(\w+\)[sdf] | %\d+\$[sd@] | %[-+0\#]*\d*(?:\.\d+)?[sdfiux@](?!\w)
    )""",
    re.VERBOSE,
)
_BREAKS = re.compile(r"</?(?:br|hr|p|div|li|ul|ol|td|tr|th|img|h[1-6])\b|.*/>$", re.IGNORECASE)
_LEADING, _TRAILING = re.compile(r"[^\w\s]*"), re.compile(r"[^\w\s]*$")


@dataclass(frozen=True, slots=True)
class ProtectedItem:
    """Hold something that was taken out, and where it stood."""

    text: str
    next: int
    """This is the word of the text without it that it stood before or in."""
    touches: tuple[bool, bool]
    """These say whether something touched it before and after."""
    word: bool
    """It stands for a word; otherwise it is a tag."""

    @property
    def last(self) -> int:
        """Return the word of the text without it that came before it, or that it stood in."""
        return self.next if all(self.touches) else self.next - 1


@dataclass(frozen=True, slots=True)
class ProtectedText:
    """Hold a text without what is protected."""

    text: str
    items: tuple[ProtectedItem, ...]
    """These were taken out."""
    stand_ins: dict[str, str]
    """This maps a word that stands for something to what it replaced."""
    words: tuple[int, ...]
    """For each word of this text, this is the word of the whole that it was."""


def protect_text(text: str, names: Sequence[str] = ()) -> ProtectedText:
    """Take out what is protected; what stands for a word is replaced while there are names."""
    free = iter([name for name in names if name not in text])
    parts: list[str] = []
    starts = [0]  # where each part began in the text
    taken: list[tuple[str, int, bool]] = []
    stand_ins: dict[str, str] = {}
    size = end = 0
    for match in _ITEMS.finditer(text):
        before = text[max(0, match.start() - 1) : match.start()]
        after = text[match.end() : match.end() + 1]
        plain = text[end : match.start()]
        word = match.lastgroup == "word"
        name = next(free, "") if word and not any(map(is_word, before + after)) else ""
        if name:
            stand_ins[name] = match.group()
            gap = name
        else:
            taken.append((match.group(), size + len(plain), word))
            apart = word or _BREAKS.match(match.group())
            gap = " " if apart and before.strip() and after.strip() else ""
        parts += [plain, gap]
        starts += [match.start(), match.end()]
        size += len(plain) + len(gap)
        end = match.end()
    parts.append(text[end:])
    protected = "".join(parts)
    offsets = [0, *accumulate(map(len, parts))]
    begins = [match.start() for match in re.finditer(r"\S+", protected)]
    whole = [match.start() for match in re.finditer(r"\S+", text)]
    words = []
    for begin in begins:
        part = bisect_right(offsets, begin) - 1
        words.append(bisect_right(whole, starts[part] + begin - offsets[part]) - 1)
    items = tuple(_item(*one, protected, begins) for one in taken)
    return ProtectedText(protected, items, stand_ins, tuple(words))


def _item(text: str, at: int, word: bool, protected: str, begins: Sequence[int]) -> ProtectedItem:
    before, after = protected[at - 1 : at] if at else "", protected[at : at + 1]
    touches = bool(before.strip()) and not word, bool(after.strip()) and not word
    count = bisect_right(begins, at - 1) if at else 0
    return ProtectedItem(text, count - 1 if all(touches) else count, touches, word)


def restore_text(found: Translation, protected: ProtectedText) -> Translation | None:
    """Return the translation with everything back, each just once; None if that cannot be."""
    text = found.text
    for name in protected.stand_ins:
        if len(re.findall(rf"(?<!\w){name}(?!\w)", text)) != 1:
            return None
    words = text.split(" ") if text else [""]
    before: list[list[ProtectedItem]] = [[] for _ in words]
    after: list[list[ProtectedItem]] = [[] for _ in words]
    for item, (word, ends) in zip(
        protected.items, _find_places(found, protected, len(words)), strict=True
    ):
        (after if ends else before)[word].append(item)
    rendered = [_render(*row) for row in zip(words, before, after, strict=True)]
    places = [0, *accumulate(len(one.split()) for one, _ in rendered)]
    pairs = {
        (protected.words[s], places[t] + rendered[t][1])
        for s, t in found.alignment
        if s < len(protected.words)
    }
    line = " ".join(one for one, _ in rendered)
    for name, kept in protected.stand_ins.items():
        line = kept.join(re.split(rf"(?<!\w){name}(?!\w)", line, maxsplit=1))
    return replace(found, text=line.strip(), alignment=tuple(sorted(pairs)))


def _find_places(
    found: Translation, protected: ProtectedText, words: int
) -> list[tuple[int, bool]]:
    """Return, for each item, the word of the translation it goes to, and whether after it."""
    aligned: dict[int, list[int]] = {}
    for s, t in found.alignment:
        aligned.setdefault(s, []).append(t)
    if not aligned:  # no attention to read it off: by the share of the text before
        share = words / max(1, len(protected.words))
        aligned = {s: [min(words - 1, int(s * share))] for s in range(len(protected.words))}
    places: dict[int, tuple[int, bool]] = {}
    for opening, closing in _pair_tags(protected.items):
        inside = range(protected.items[opening].next, protected.items[closing].last + 1)
        if targets := [t for s in inside for t in aligned.get(s, ())]:
            places[opening], places[closing] = (min(targets), False), (max(targets), True)
    known = sorted(aligned)
    return [
        places.get(n) or _place_beside(item, aligned, known, words)
        for n, item in enumerate(protected.items)
    ]


def _pair_tags(items: Sequence[ProtectedItem]) -> list[tuple[int, int]]:
    """Return the numbers of tags that open and of those that close them."""
    found, still_open = [], []
    for n, item in enumerate(items):
        if match := re.match(r"<([A-Za-z][\w:.-]*)[^<>]*(?<!/)>", item.text):
            still_open.append((match[1], n))
        elif match := re.match(r"</([A-Za-z][\w:.-]*)", item.text):
            for place in range(len(still_open) - 1, -1, -1):
                if still_open[place][0] == match[1]:
                    found.append((still_open[place][1], n))
                    del still_open[place:]
                    break
    return found


def _place_beside(
    item: ProtectedItem, aligned: dict[int, list[int]], known: Sequence[int], words: int
) -> tuple[int, bool]:
    """Return a place before what the next word became, or after what the last one did."""
    if item.touches == (True, False) and item.last in aligned:
        return max(aligned[item.last]), True
    later = bisect_left(known, item.next)
    if later < len(known):
        return min(aligned[known[later]]), False
    return words - 1, True


def _render(
    word: str, before: Sequence[ProtectedItem], after: Sequence[ProtectedItem]
) -> tuple[str, int]:
    """Return a word with what belongs to it, and how many words come before it then."""
    lead, trail = _LEADING.match(word), _TRAILING.search(word)
    assert lead is not None
    assert trail is not None
    start, end = (0, len(word)) if lead.end() == len(word) else (lead.end(), trail.start())
    # Marks that stood between the item and its word still do.
    opens = [item for item in before if not item.touches[0]]
    inner = [item for item in before if item.touches[0]]
    closes = [item for item in after if item.touches[1]]
    outer = [item for item in after if not item.touches[1]]
    left = "".join(item.text + ("" if item.touches[1] else " ") for item in opens)
    left += word[:start] + "".join(item.text for item in inner)
    right = "".join(item.text for item in closes) + word[end:]
    right += "".join(("" if item.touches[0] else " ") + item.text for item in outer)
    return left + word[start:end] + right, len(f"{left}x".split()) - 1


def translate_protected(
    requests: Sequence[Request], run: TranslateFunction, names: Callable[[], Sequence[str]]
) -> list[Translation]:
    """Return what `run` gives for the texts without protected items, with these put back.

    `names` are words the model copies; they are asked for only if needed.
    """
    texts = [normalize(request.text, "none") for request in requests]
    bare = [protect_text(text) for text in texts]
    named = any(item.word for one in bare for item in one.items)
    known = names() if named else ()
    results: list[Translation | None] = [None] * len(requests)
    for protected_texts in ([protect_text(text, known) for text in texts], bare):
        # Where nothing but marks is left there is nothing to translate.
        asked = {
            i: replace(requests[i], text=one.text) if one.items or one.stand_ins else requests[i]
            for i, one in enumerate(protected_texts)
            if results[i] is None and (any(map(is_word, bare[i].text)) or not bare[i].items)
        }
        for i, found in zip(asked, run(list(asked.values())), strict=True):
            results[i] = _restore_all(found, protected_texts[i])
    return [
        Translation(request.text, text, 0.0, ())
        if result is None
        else replace(result, source=request.text)
        for request, text, result in zip(requests, texts, results, strict=True)
    ]


def _restore_all(found: Translation, protected: ProtectedText) -> Translation | None:
    """Return the translation and those of its alternatives that all items can be put back in."""
    if not protected.items and not protected.stand_ins:
        return found
    best = restore_text(found, protected)
    if best is None:
        return None
    others = [restore_text(other, protected) for other in found.alternatives]
    return replace(best, alternatives=tuple(other for other in others if other is not None))


def find_copied_words(vocabulary: Sequence[str], run: TranslateFunction) -> list[str]:
    """Return words the model copies, most certain first: known names, and its own words."""
    own = [word for word in vocabulary if len(word) > 2 and word.isalpha() and word.istitle()]
    tried = list(dict.fromkeys([*COMMON_NAMES, *own[:MAX_TRIED_WORDS]]))
    bare = run([Request(word) for word in tried])
    ended = run([Request(f"{word}.") for word in tried])
    copied = [
        (min(one.score, other.score), word)
        for word, one, other in zip(tried, bare, ended, strict=True)
        if word in (one.text, one.text.rstrip(".")) and other.text == f"{word}."
    ]
    return [word for _, word in sorted(copied, reverse=True)[:MAX_STAND_INS]]
