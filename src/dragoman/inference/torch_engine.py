"""PyTorch computes for a translator what the fast engines do not.

These are constraints, sampling, alignments, scores, alternatives, and search with models that no
engine supports. Importing this imports PyTorch, so it is imported only where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf

import torch
from torch import Tensor

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.inference.alignment import word_alignment
from dragoman.inference.alternatives import find_alternatives
from dragoman.inference.scoring import score_pairs
from dragoman.inference.source_attention import (
    attends_to_source,
    mean_attention,
    source_attention,
)
from dragoman.inference.translation_types import (
    Alternative,
    DecodingSettings,
    ScoredTranslation,
    Segment,
    Translation,
)
from dragoman.models import Model, Rows
from dragoman.search import (
    Constraint,
    Hypothesis,
    SearchOptions,
    phrase_constrained_search,
    sample,
    search,
)
from dragoman.search.batching import SearchBatch, length_sorted_batches, search_in_batches
from dragoman.search.constraints.phrases import PhraseCompiler, PhraseConstraint, PhraseRequirements
from dragoman.search.options import longest_output
from dragoman.system.malloc import keep_freed_memory
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import contains_phrase


class TorchEngine:
    """Compute with a model in PyTorch what the fast engines do not."""

    def __init__(
        self, model: Model, tokenizer: Tokenizer, config: Config, *, target_has_spaces: bool
    ) -> None:
        """Use a model and its tokeniser; `target_has_spaces` between its words."""
        self._model, self._tokenizer, self._config = model, tokenizer, config
        self._target_has_spaces = target_has_spaces
        self._phrases = PhraseCompiler(tokenizer, tokenizer.sizes[1], whole_words=target_has_spaces)
        if self._device.type == "cpu":
            keep_freed_memory()

    @property
    def aligns(self) -> bool:
        """Return whether the model has attention to read an alignment off."""
        return attends_to_source(self._model)

    # --- search ---

    def search(
        self, segments: Sequence[Segment], ids: Sequence[Sequence[int]], settings: DecodingSettings
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each segment, or samples; `ids` are its pieces."""
        if settings.sampling is not None and any(one.must for one in segments):
            raise ConfigError("what a translation must contain needs search; leave out sampling")
        prefixes = [self._encode_prefix(one.prefix) for one in segments]
        wanted = [
            self._phrases.compile(one.must, one.must_not, one.separator)
            if one.must or one.must_not
            else None
            for one in segments
        ]
        found: list[list[Hypothesis]] = [[] for _ in segments]
        for beam, group in self._group_by_beam(segments, ids, wanted, settings):
            asked = [w for i in group if (w := wanted[i]) is not None]
            several = search_in_batches(
                self._model,
                [ids[i] for i in group],
                self._make_search(beam, settings),
                batch_tokens=self._config.search.batch_tokens,
                prefixes=[prefixes[i] for i in group] if any(prefixes[i] for i in group) else None,
                constrain=self._make_constraint(asked),
            )
            for i, hypotheses in zip(group, several, strict=True):
                if wanted[i] is not None and hypotheses[0].score == -inf:
                    raise ConfigError(_describe_impossible(segments[i]))
                found[i] = hypotheses
        return found

    def assign_phrases(
        self,
        segments: Sequence[Segment],
        find: Callable[[Sequence[Segment]], list[list[Translation]]],
    ) -> list[Segment]:
        """Assign each phrase of a text in several segments to the one where it costs least."""
        parts: dict[int, list[int]] = {}
        for place, one in enumerate(segments):
            if one.must:
                parts.setdefault(one.group, []).append(place)
        shared = list(segments)
        for places in parts.values():
            if len(places) < 2:
                continue
            given: dict[int, list[str]] = {place: [] for place in places}
            free = [replace(segments[place], must=()) for place in places]
            plain = [found[0] for found in find(free)]
            for phrase in segments[places[0]].must:
                text = self._phrases.normalize(phrase, "must")
                there = [
                    contains_phrase(text, one.text, whole_words=self._target_has_spaces)
                    for one in plain
                ]
                if any(there):
                    given[places[there.index(True)]].append(phrase)
                    continue
                tried = find([replace(one, must=(phrase,)) for one in free])
                losses = [
                    one.log_prob - found[0].log_prob
                    for one, found in zip(plain, tried, strict=True)
                ]
                given[places[losses.index(min(losses))]].append(phrase)
            for place in places:
                shared[place] = replace(segments[place], must=tuple(given[place]))
        return shared

    def _encode_prefix(self, prefix: str) -> list[int]:
        if not prefix:
            return []
        return self._tokenizer.encode_targets([self._tokenizer.normalize_target(prefix)])[0]

    def _group_by_beam(
        self,
        segments: Sequence[Segment],
        ids: Sequence[Sequence[int]],
        wanted: Sequence[PhraseRequirements | None],
        settings: DecodingSettings,
    ) -> Iterable[tuple[int | None, list[int]]]:
        """Group segments by the beam they need, so that no result depends on other lines."""
        groups: dict[tuple[bool, int | None], list[int]] = {}
        for i, one in enumerate(wanted):
            beam = one.beam_width(settings.search.beam) if one is not None and one.must else None
            groups.setdefault((one is None, beam), []).append(i)
            if one is not None and beam is not None:
                _check_length(segments[i], len(ids[i]), one, settings.search)
        return [(beam, group) for (_, beam), group in groups.items()]

    def _make_search(self, beam: int | None, settings: DecodingSettings) -> SearchBatch:
        """Return the search for one group; `beam` is None where nothing must be contained."""

        def find(
            rows: Rows, forced: list[list[int]] | None, constraint: Constraint | None
        ) -> list[list[Hypothesis]]:
            model, options = self._model, settings.search
            if beam is not None:
                if options.groups > 1:
                    raise ConfigError(
                        "diverse beams cannot be made to contain phrases; leave one out"
                    )
                assert isinstance(constraint, PhraseConstraint)
                wide = replace(options, beam=beam)
                return phrase_constrained_search(model, rows, wide, constraint, prefixes=forced)
            if settings.sampling is not None:
                return sample(
                    model, rows, settings.sampling, prefixes=forced, constraint=constraint
                )
            return search(model, rows, options, prefixes=forced, constraint=constraint)

        return find

    def _make_constraint(
        self, wanted: Sequence[PhraseRequirements]
    ) -> Callable[[Sequence[int]], Constraint] | None:
        if not wanted:
            return None
        device, targets = self._device, self._model.targets
        return lambda rows: PhraseConstraint([wanted[i] for i in rows], targets, device)

    # --- beside search ---

    def align(
        self, sources: Sequence[Sequence[int]], found: Sequence[Sequence[Hypothesis]]
    ) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Return the word alignment of every hypothesis, by (sentence, rank)."""
        keys = [(i, n) for i, row in enumerate(found) for n in range(len(row))]
        lengths = [len(sources[i]) + len(found[i][n].ids) for i, n in keys]
        alignments = {}
        for batch in length_sorted_batches(lengths, self._config.search.batch_tokens):
            pairs = [keys[k] for k in batch]
            source = [sources[i] for i, _ in pairs]
            target = [found[i][n].ids for i, n in pairs]
            seen = source_attention(self._model, source, target)
            for key, weights, s, t in zip(pairs, seen, source, target, strict=True):
                alignments[key] = word_alignment(mean_attention(weights), self._tokenizer, s, t)
        return alignments

    def score(
        self, sources: Sequence[str], targets: Sequence[str], alpha: float
    ) -> list[ScoredTranslation]:
        """Return how probable each target is as the translation of its source."""
        return score_pairs(
            self._model,
            self._tokenizer,
            sources,
            targets,
            alpha=alpha,
            batch_tokens=self._config.search.batch_tokens,
        )

    def alternatives(
        self, source: Sequence[int], prefix: str, count: int, options: SearchOptions
    ) -> list[Alternative]:
        """Return the likeliest next words of a translation that begins with `prefix`."""
        return find_alternatives(
            self._model,
            self._tokenizer,
            source,
            self._encode_prefix(prefix),
            self.word_starts,
            count,
            options,
        )

    @cached_property
    def word_starts(self) -> Tensor:
        """Return which pieces a word can begin with, V; in a language without spaces, all."""
        texts = self._phrases.spelling.texts
        begins = [text.startswith(" ") or not self._target_has_spaces for text in texts]
        return torch.tensor(begins, device=self._device)

    @property
    def _device(self) -> torch.device:
        return next(self._model.parameters()).device


def _check_length(
    segment: Segment, pieces: int, wanted: PhraseRequirements, options: SearchOptions
) -> None:
    longest = longest_output(pieces, options)
    if wanted.min_pieces > longest:
        raise ConfigError(
            f"what must be in the translation of '{_shorten(segment.text)}' has "
            f"{wanted.min_pieces} pieces, and {longest} are allowed; raise max_extra"
        )


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _describe_impossible(segment: Segment) -> str:
    return (
        f"no translation of '{_shorten(segment.text)}' meets all that is asked for; ask for less, "
        "or raise max_extra"
    )
