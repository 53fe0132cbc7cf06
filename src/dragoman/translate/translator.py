"""Text in, text out: what the command line, the server and evaluation call."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, overload

from dragoman.config import Config
from dragoman.errors import ConfigError, ModelError
from dragoman.memory import keep_freed_memory
from dragoman.model_directory import LoadedModel, load_model
from dragoman.models import Model, Rows
from dragoman.search import (
    Constraint,
    Hypothesis,
    SamplingOptions,
    SearchOptions,
    sample,
    search,
)
from dragoman.search.many import Find, by_length, search_many
from dragoman.text.tokenizer import Tokenizer
from dragoman.translate.alignment import attends_to_source, source_attention, word_alignment
from dragoman.translate.device import pick
from dragoman.translate.segments import split_line

__all__ = ["Translation", "Translator", "load"]

_NO_SPACES = {"zh", "ja", "th", "lo", "km", "my"}


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of one text."""

    source: str
    text: str
    score: float
    """Log-probability / length penalty, summed over the segments of a long line."""
    tokens: tuple[str, ...]
    """The target pieces as the model produced them."""
    alignment: tuple[tuple[int, int], ...] = ()
    """(source word, target word) by white-space words, if asked for."""
    alternatives: tuple[Translation, ...] = ()
    """With n_best or samples: the others, best first."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        table: dict[str, Any] = {
            "text": self.text,
            "score": round(self.score, 6),
            "tokens": list(self.tokens),
        }
        if self.alignment:
            table["alignment"] = [list(pair) for pair in self.alignment]
        if self.alternatives:
            table["alternatives"] = [other.to_dict() for other in self.alternatives]
        return table


class Translator:
    """A loaded model that translates text."""

    def __init__(self, loaded: LoadedModel) -> None:
        if loaded.config.data.task != "translation":
            raise ModelError(f"{loaded.path}: a parser; use it with dragoman parse")
        self.model: Model = loaded.model
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.config: Config = loaded.config
        self.card: dict[str, Any] = loaded.card
        self.path: Path = loaded.path
        self.warn: Callable[[str], None] = lambda message: None
        """Told when a sentence was too long and had to be cut."""

    @overload
    def translate(self, text: str, **options: Any) -> Translation: ...

    @overload
    def translate(self, text: Sequence[str], **options: Any) -> list[Translation]: ...

    def translate(  # type: ignore[misc]  # the overloads do not repeat the options
        self,
        text: str | Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
        min_length: int | None = None,
        max_extra: int | None = None,
        prefix: str | Sequence[str] | None = None,
        sampling: SamplingOptions | None = None,
        align: bool = True,
    ) -> Translation | list[Translation]:
        """Translate a text, or several; what is not given is as the model's config says.

        `prefix` is how a translation must begin: one for all texts, or one for each. With
        `sampling` translations are drawn instead of searched for. Without attention to the source
        there is nothing to align by.
        """
        texts = [text] if isinstance(text, str) else list(text)
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix or [])
        if prefixes and len(prefixes) != len(texts):
            raise ConfigError(f"{len(prefixes)} prefixes for {len(texts)} texts; give one for each")
        changes = {
            "beam": beam if beam is not None else max(self.config.search.beam, n_best),
            "n_best": n_best,
            "length_penalty": length_penalty,
            "min_length": min_length,
            "max_extra": max_extra,
        }
        options = SearchOptions.from_config(
            self.config.search, **{k: v for k, v in changes.items() if v is not None}
        )

        def find(
            rows: Rows, forced: list[list[int]] | None, constraint: Constraint | None
        ) -> list[list[Hypothesis]]:
            if sampling is not None:
                return sample(self.model, rows, sampling, prefixes=forced, constraint=constraint)
            return search(self.model, rows, options, prefixes=forced, constraint=constraint)

        found = self._translate(texts, prefixes, find, align and self.aligns)
        return found[0] if isinstance(text, str) else found

    @cached_property
    def aligns(self) -> bool:
        """Whether the model has attention to read an alignment off."""
        return attends_to_source(self.model)

    def translate_lines(
        self, lines: Iterable[str], *, window: int = 2000, **options: Any
    ) -> Iterator[Translation]:
        """Translate any number of lines, in order, holding one window of them in memory."""
        options.setdefault("align", False)
        waiting: list[str] = []
        size = 0
        for line in lines:
            waiting.append(line)
            size += len(line)
            if len(waiting) >= window or size > 1_000_000:
                yield from self.translate(waiting, **options)
                waiting, size = [], 0
        if waiting:
            yield from self.translate(waiting, **options)

    # --- inside ---

    def _translate(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str],
        find: Find,
        align: bool,
    ) -> list[Translation]:
        segments: list[str] = []
        owners: list[int] = []
        forced: list[list[int]] = []
        for number, text in enumerate(texts):
            for place, segment in enumerate(self._segments(text)):
                segments.append(segment)
                owners.append(number)
                begins = prefixes and place == 0
                forced.append(self.tokenizer.encode(prefixes[number]) if begins else [])
        ids = self.tokenizer.encode_batch(segments) if segments else []
        budget = self.config.search.batch_tokens
        found = search_many(
            self.model,
            ids,
            find,
            batch_tokens=budget,
            prefixes=forced if any(forced) else None,
        )
        alignments = self._align(ids, found) if align else {}
        parts: list[list[Translation]] = [[] for _ in texts]
        for i, owner in enumerate(owners):
            candidates = [
                Translation(
                    segments[i],
                    self.tokenizer.decode(hypothesis.ids),
                    hypothesis.score,
                    tuple(self.tokenizer.pieces(hypothesis.ids)),
                    tuple(alignments.get((i, n), ())),
                )
                for n, hypothesis in enumerate(found[i])
            ]
            parts[owner].append(replace(candidates[0], alternatives=tuple(candidates[1:])))
        return [self._join(text, part) for text, part in zip(texts, parts, strict=True)]

    def _segments(self, text: str) -> list[str]:
        line = self.tokenizer.normalize(text)
        if not line:
            return []
        limit = self.config.data.max_length
        segments, cut = split_line(line, lambda part: len(self.tokenizer.encode(part)), limit)
        if cut:
            self.warn(
                f"a sentence of more than {limit} pieces was cut into parts: {line[:60].strip()}…"
            )
        return segments

    def _align(
        self, sources: Sequence[Sequence[int]], found: Sequence[Sequence[Hypothesis]]
    ) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """The word alignment of every hypothesis, by (sentence, rank)."""
        keys = [(i, n) for i, row in enumerate(found) for n in range(len(row))]
        lengths = [len(sources[i]) + len(found[i][n].ids) for i, n in keys]
        alignments = {}
        for batch in by_length(lengths, self.config.search.batch_tokens):
            pairs = [keys[k] for k in batch]
            source = [sources[i] for i, _ in pairs]
            target = [found[i][n].ids for i, n in pairs]
            seen = source_attention(self.model, source, target)
            for key, weights, s, t in zip(pairs, seen, source, target, strict=True):
                alignments[key] = word_alignment(weights, self.tokenizer, s, t)
        return alignments

    def _join(self, text: str, parts: list[Translation]) -> Translation:
        """The segments of a line as one translation; alternative n joins the n-th of each."""
        if not parts:
            return Translation(text, "", 0.0, ())
        if len(parts) == 1:
            return replace(parts[0], source=text)
        ranked = [[part, *part.alternatives] for part in parts]
        shortest = min(map(len, ranked))
        whole = [self._joined(text, [row[n] for row in ranked]) for n in range(shortest)]
        return replace(whole[0], alternatives=tuple(whole[1:]))

    def _joined(self, text: str, parts: list[Translation]) -> Translation:
        languages = self.config.data.languages
        space = "" if languages and languages[1] in _NO_SPACES else " "
        joined = space.join(part.text for part in parts)
        source_places = _places([part.source for part in parts], self.tokenizer.normalize(text))
        target_places = _places([part.text for part in parts], joined)
        pairs = {
            (sources[s], targets[t])
            for part, sources, targets in zip(parts, source_places, target_places, strict=True)
            for s, t in part.alignment
        }
        return Translation(
            text,
            joined,
            sum(part.score for part in parts),
            tuple(token for part in parts for token in part.tokens),
            tuple(sorted(pairs)),
        )


def _places(parts: Sequence[str], whole: str) -> list[list[int]]:
    """For each word of each part, the word of the whole it begins in.

    A part may begin or end inside a word: where a word without end was cut, or where the
    language has no spaces.
    """
    ends = list(accumulate(map(len, whole.split())))
    places, characters = [], 0
    for part in parts:
        row = []
        for word in part.split():
            row.append(bisect_right(ends, characters))
            characters += len(word)
        places.append(row)
    return places


def load(path: Path | str, *, device: str = "auto") -> Translator:
    """The translator in a model directory, or the one of a run."""
    device = pick(device)
    if device == "cpu":
        keep_freed_memory()
    return Translator(load_model(path, device))
