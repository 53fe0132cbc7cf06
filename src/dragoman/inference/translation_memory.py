"""A translation memory (TMX) finds what was translated before, and keeps new pairs.

A file of corrections (JSON lines, see docs/serving.md) is one that is only read.

A sentence that is in the memory has its translation. So has one that differs in numbers or in the
marks at its ends alone, with these put right. For others the most similar sentence is found, as a
suggestion to people: its translation says something else, and is never used by itself.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from dragoman.data.readers.parallel import Corpus, JsonLines, Tmx
from dragoman.errors import ConfigError, DataError
from dragoman.inference.translation_types import Request, TranslateFunction, Translation
from dragoman.system.atomic_files import atomic_write, explain_os_errors

LEAST_SIMILARITY: Final = 0.75
"""A sentence that is less similar than this is no suggestion."""
_CANDIDATES: Final = 12
"""So many sentences that share most with one are compared with it."""
_VARIANTS: Final = 100
"""So many sentences that differ in numbers alone are tried, the last ones first."""
_BUCKETS: Final = 1 << 20
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_LEAD: Final = re.compile(r"[^\w]*")
_TRAIL: Final = re.compile(r"[^\w]*\Z")


@dataclass(frozen=True, slots=True)
class Match:
    """Hold what the memory has for a text."""

    source: str
    """The sentence of the memory."""
    target: str
    """Its translation there."""
    similarity: float
    """From 0 to 1; 1 means that the sentence is the same."""
    text: str | None
    """The text's translation, where the memory tells it; otherwise this is only a suggestion."""


class TranslationMemory:
    """Hold sentences of one language with their translations into another."""

    def __init__(self, source_language: str, target_language: str) -> None:
        if not source_language or not target_language:
            raise ConfigError(
                "a translation memory needs the languages of the model, which does not name them"
            )
        self.languages = source_language, target_language
        self.added = 0
        """So many pairs were new, or had another translation before."""
        self.used = 0
        """So many sentences were translated by the memory."""
        self.learns = True
        """Whether `translate` adds what the memory lacks; if not, many threads may use it."""
        self._pairs: dict[str, tuple[str, str]] = {}
        self._new: dict[str, None] = {}  # keys of pairs that are not yet written
        self._similar: dict[str, list[str]] = {}  # keys by their words without numbers
        self._index: _SimilarityIndex | None = None

    def __len__(self) -> int:
        return len(self._pairs)

    @classmethod
    def read(
        cls, path: Path | str, source_language: str, target_language: str
    ) -> TranslationMemory:
        """Read a TMX file; raise DataError for one that is broken or lacks these languages.

        Of several translations of one sentence the last counts. What people have corrected, in
        JSON lines, is read in its own direction only, and nothing is learned beside it.
        """
        path = Path(path)
        memory = cls(source_language, target_language)
        corpus: Corpus = Tmx(path, memory.languages)
        if _holds_corrections(path):
            corpus, memory.learns = JsonLines(path, memory.languages, both_ways=False), False
        for pair in corpus:
            memory._put(pair.source, pair.target)
        return memory

    @classmethod
    def open(
        cls, path: Path | str, source_language: str, target_language: str
    ) -> TranslationMemory:
        """Read a file, or begin with an empty memory where there is no TMX file yet."""
        path = Path(path)
        if path.suffix.lower() != ".tmx" and not _holds_corrections(path):
            raise ConfigError(
                f"{path}: a translation memory is a .tmx file, or the .jsonl of corrections"
            )
        if not path.exists() and not _holds_corrections(path):
            return cls(source_language, target_language)
        return cls.read(path, source_language, target_language)

    def _put(self, source: str, target: str) -> str | None:
        """Keep a pair, and return its key if it is new or changed."""
        key, target = _normalize(source), target.strip()
        if not key or not target:
            return None
        known = self._pairs.get(key)
        if known is not None and known[1] == target:
            return None
        self._pairs[key] = source.strip(), target
        if known is None and (skeleton := _find_skeleton(key)):
            self._similar.setdefault(skeleton, []).append(key)
        return key

    def add(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Keep sentences with their translations, to be written back."""
        for source, target in pairs:
            key = self._put(source, target)
            if key is not None:
                self._new[key] = None
                self.added += 1

    # --- finding ---

    def lookup(self, text: str, *, least: float = LEAST_SIMILARITY) -> Match | None:
        """Return what the memory has for a sentence: the same, or the most similar one.

        `least` is how similar it has to be; at 1 only what tells the translation is looked for.
        """
        if (found := self.find_translation(text)) is not None or least >= 1:
            return found
        key = _normalize(text)
        if not key:
            return None
        # New pairs are only looked for once they are many, for the index is made as a whole.
        if self._index is None or len(self._pairs) > 1.25 * self._index.count + 100:
            self._index = _SimilarityIndex(list(self._pairs))
        best = self._index.find(key, least)
        if best is None:
            return None
        source, target = self._pairs[best[0]]
        return Match(source, target, best[1], None)

    def find_translation(self, text: str) -> Match | None:
        """Return the match that tells a sentence's translation, if there is one."""
        key = _normalize(text)
        if not key:
            return None
        if (pair := self._pairs.get(key)) is not None:
            return Match(*pair, 1.0, pair[1])
        for other in islice(reversed(self._similar.get(_find_skeleton(key), ())), _VARIANTS):
            source, target = self._pairs[other]
            adapted = _adapt(text.strip(), source, target)
            if adapted is not None:
                return Match(source, target, 0.99, adapted)
        return None

    def translate(
        self,
        requests: Sequence[Request],
        run: TranslateFunction,
        *,
        aligned: bool = False,
    ) -> list[Translation]:
        """Return the memory's translations, and for sentences it lacks what `run` gives.

        With `aligned`, `run` translates all, and the memory's translations are aligned by its own.
        What the memory lacked is added if it `learns`, unless something is wrong with it. A request
        that says what its translation must be is not looked for.
        """
        known: dict[Request, str] = {}
        for request in dict.fromkeys(requests):
            match = self.find_translation(request.text) if _is_plain(request) else None
            if match is not None and match.text is not None:
                known[request] = match.text
        asked = [one for one in dict.fromkeys(requests) if aligned or one not in known]
        found = dict(zip(asked, run(asked) if asked else [], strict=True))
        if self.learns:
            self.add(
                (request.text, translation.text)
                for request, translation in found.items()
                if request not in known
                and _is_plain(request)
                and all(issue.repaired for issue in translation.issues)
            )
        for request, text in known.items():
            pairs = _move_alignment(found[request], text) if aligned else ()
            found[request] = Translation(request.text, text, 0.0, (), pairs)
        self.used += sum(request in known for request in requests)
        return [found[request] for request in requests]

    # --- writing ---

    def write(self, path: Path | str) -> None:
        """Write the new pairs into a TMX file, whole or not at all; what it has stays as it is.

        A file that does not exist is made, with all pairs.
        """
        path = Path(path)
        if _holds_corrections(path):
            raise ConfigError(f"{path}: holds what people have corrected, and nothing is added")
        if not path.exists():
            units = [self._write_unit(*pair) for pair in self._pairs.values()]
            body = "".join(units)
            atomic_write(path, f"{self._write_header()}{body}  </body>\n</tmx>\n")
        elif self._new:
            new = "".join(self._write_unit(*self._pairs[key]) for key in self._new)
            _insert_units(path, new)
        self._new = {}

    def _write_header(self) -> str:
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
            '  <header creationtool="dragoman" creationtoolversion="1" segtype="sentence" '
            'o-tmf="dragoman" adminlang="en" '
            f'srclang={quoteattr(self.languages[0])} datatype="plaintext"/>\n  <body>\n'
        )

    def _write_unit(self, source: str, target: str) -> str:
        date = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        variants = "".join(
            f"      <tuv xml:lang={quoteattr(language)}><seg>{_escape(text)}</seg></tuv>\n"
            for language, text in zip(self.languages, (source, target), strict=True)
        )
        return f'    <tu creationdate="{date}">\n{variants}    </tu>\n'


def translate_with_memory(
    requests: Sequence[Request], run: TranslateFunction, memory: TranslationMemory | None
) -> list[Translation]:
    """Return what a memory gives and, for what it lacks or without one, what `run` gives."""
    return run(requests) if memory is None else memory.translate(requests, run)


def _is_plain(request: Request) -> bool:
    return not (request.prefix or request.must or request.must_not)


def _move_alignment(found: Translation, text: str) -> tuple[tuple[int, int], ...]:
    """Return a translation's alignment by the words of another, which are mostly the same."""
    words, others = found.text.split(), text.split()
    places: dict[int, list[int]] = {}
    matcher = SequenceMatcher(None, list(map(_bare, words)), list(map(_bare, others)))
    for _, start, end, first, last in matcher.get_opcodes():
        for word in range(start, end):
            # Where words differ, each is as far in its part of the text as in the other's.
            share = (last - first) / (end - start)
            low = first + int((word - start) * share)
            high = first + int((word - start + 1) * share)
            places[word] = list(range(low, min(max(high, low + 1), last)))
    pairs = {(s, place) for s, t in found.alignment for place in places.get(t, ())}
    return tuple(sorted(pairs))


def _bare(word: str) -> str:
    lead, trail = _find_ends(word)
    return word[len(lead) : len(word) - len(trail)].casefold() or word


def _holds_corrections(path: Path) -> bool:
    return path.suffix.lower() == ".jsonl"


def _normalize(text: str) -> str:
    return " ".join(text.split())


def _escape(text: str) -> str:
    """Return a text as XML 1.0 can hold it."""
    return escape(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]", "", text))


# --- sentences that differ in numbers and punctuation alone ---


def _find_skeleton(key: str) -> str:
    """Return a sentence without its numbers and the marks at its ends."""
    lead, trail = _find_ends(key)
    inside = key[len(lead) : len(key) - len(trail)]
    return _NUMBER.sub("0", inside) if any(map(str.isalpha, inside)) else ""


def _find_ends(text: str) -> tuple[str, str]:
    """Return what stands before the first word of a text, and after its last."""
    lead, trail = _LEAD.match(text), _TRAIL.search(text)
    assert lead is not None
    assert trail is not None
    return lead.group(), trail.group()


def _adapt(text: str, source: str, target: str) -> str | None:
    """Return a sentence's translation, given that of one with other numbers or final marks.

    Return None where that is not certain: a number is not in the translation just once, or one
    becomes several, which other words would have to follow.
    """
    old, new = _NUMBER.findall(source), _NUMBER.findall(text)
    if len(old) != len(new):
        return None
    changes: dict[str, str] = {}
    there = _NUMBER.findall(target)
    for before, after in zip(old, new, strict=True):
        if before == after:
            continue
        if old.count(before) != 1 or there.count(before) != 1 or "1" in (before, after):
            return None
        if re.sub(r"\d+", "0", before) != re.sub(r"\d+", "0", after):
            return None  # 12 and 1,200 may be written in another way there
        changes[before] = after
    adapted = _NUMBER.sub(lambda match: changes.get(match.group(), match.group()), target)
    (lead, trail), (lead_before, trail_before) = _find_ends(text), _find_ends(source)
    if lead != lead_before:
        return None  # a quote or a bracket that opens is closed somewhere
    if trail != trail_before:
        if _find_ends(adapted)[1] != trail_before:
            return None
        adapted = adapted[: len(adapted) - len(trail_before)] + trail
    return adapted


# --- similar sentences ---


class _SimilarityIndex:
    """Find the sentences that share most groups of three characters with another."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys
        self.count = len(keys)
        self._lengths = np.array([len(key) for key in keys], np.int64)
        hashes = [_hash_trigrams(key) for key in keys]
        rows = np.repeat(np.arange(len(keys), dtype=np.int64), [len(one) for one in hashes])
        flat = np.concatenate(hashes) if hashes else np.zeros(0, np.int64)
        order = np.argsort(flat, kind="stable")
        self._rows = rows[order].astype(np.int32)
        self._starts = np.searchsorted(flat[order], np.arange(_BUCKETS + 1))

    def find(self, key: str, least: float) -> tuple[str, float] | None:
        """Return the most similar sentence, and how similar it is."""
        hashes = _hash_trigrams(key)
        sizes = self._starts[hashes + 1] - self._starts[hashes]
        # The rarest groups suffice: a similar sentence shares most, so surely some of these.
        rarest = hashes[np.argsort(sizes, kind="stable")][: max(4, len(hashes) // 2 + 1)]
        parts = [self._rows[self._starts[one] : self._starts[one + 1]] for one in rarest]
        rows = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        # Of two texts the ratio is at most 2·shorter / (shorter + longer).
        low, high = len(key) * least / (2 - least), len(key) * (2 - least) / least
        rows = rows[(self._lengths[rows] >= low) & (self._lengths[rows] <= high)]
        if not len(rows):
            return None
        found, counts = np.unique(rows, return_counts=True)
        shared = counts / np.maximum(1, np.abs(self._lengths[found] - len(key)) + len(rarest))
        best: tuple[str, float] | None = None
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(key)
        for row in found[np.argsort(-shared, kind="stable")[:_CANDIDATES]]:
            other = self._keys[int(row)]
            matcher.set_seq1(other)
            if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
                continue
            ratio = matcher.ratio()
            if ratio >= least and (best is None or ratio > best[1]):
                best = other, ratio
        return best


def _hash_trigrams(key: str) -> Any:
    """Return numbers for the groups of three characters in a text, each once."""
    codes = np.frombuffer(f"  {key.casefold()} ".encode("utf-32-le", "surrogatepass"), np.uint32)
    codes = codes.astype(np.int64)
    return np.unique((codes[:-2] * 961 + codes[1:-1] * 31 + codes[2:]) * 40503 % _BUCKETS)


# --- files ---


def _insert_units(path: Path, units: str) -> None:
    """Put units at the end of a TMX file's body; everything before stays as it is."""
    with explain_os_errors(path):
        data = path.read_bytes()
    encoding = "utf-8"
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            encoding = name
    if encoding == "utf-8" and (
        declared := re.match(rb"""\s*<\?xml[^>]*encoding\s*=\s*["']([\w-]+)""", data)
    ):
        encoding = declared[1].decode("ascii")
    end = data.rfind("</body>".encode(encoding))
    if end < 0:
        raise DataError(f"{path}: has no </body>; new pairs cannot be added to it")
    written = units.encode(encoding, "xmlcharrefreplace")
    atomic_write(path, data[:end].rstrip(b" ") + written + b"  " + data[end:])
