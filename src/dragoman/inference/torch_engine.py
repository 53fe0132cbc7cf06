"""What PyTorch computes: constraints, sampling, alignments, scores, and search where no engine is.

Importing this imports PyTorch, so that only what asks for such a thing imports this.
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
from dragoman.inference.alignment import attends_to_source, source_attention, word_alignment
from dragoman.inference.alternatives import alternatives
from dragoman.inference.scoring import score_pairs
from dragoman.inference.translation import Alternative, Scored, Segment, Settings, Translation
from dragoman.models import Model, Rows
from dragoman.search import Constraint, Hypothesis, SearchOptions, banked_search, sample, search
from dragoman.search.batching import Find, by_length, search_many
from dragoman.search.constraints.phrase_matching import occurs
from dragoman.search.constraints.phrases import Lexical, Phrases, Wanted
from dragoman.system.memory import keep_freed_memory
from dragoman.text.tokenizer import Tokenizer

__all__ = ["ByModel"]


class ByModel:
    """A model and its tokeniser."""

    def __init__(self, model: Model, tokenizer: Tokenizer, config: Config, *, spaces: bool) -> None:
        """`spaces`: whether the target language has them between words."""
        self._model, self._tokenizer, self._config = model, tokenizer, config
        self._spaces = spaces
        self._phrases = Phrases(tokenizer, tokenizer.sizes[1], whole_words=spaces)
        if self._device.type == "cpu":
            keep_freed_memory()

    @property
    def aligns(self) -> bool:
        """Whether the model has attention to read an alignment off."""
        return attends_to_source(self._model)

    # --- search ---

    def search(
        self, segments: Sequence[Segment], ids: Sequence[Sequence[int]], settings: Settings
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each segment, or samples; `ids` are the segments' pieces."""
        if settings.sampling is not None and any(one.must for one in segments):
            raise ConfigError("what a translation must contain is searched for, not sampled")
        forced = [self._forced(one.prefix) for one in segments]
        wanted = [
            self._phrases.wanted(one.must, one.must_not, one.joint)
            if one.must or one.must_not
            else None
            for one in segments
        ]
        found: list[list[Hypothesis]] = [[] for _ in segments]
        for beam, group in self._groups(segments, ids, wanted, settings):
            asked = [w for i in group if (w := wanted[i]) is not None]
            several = search_many(
                self._model,
                [ids[i] for i in group],
                self._finder(beam, settings),
                batch_tokens=self._config.search.batch_tokens,
                prefixes=[forced[i] for i in group] if any(forced[i] for i in group) else None,
                constrain=self._constrain(asked),
            )
            for i, hypotheses in zip(group, several, strict=True):
                if wanted[i] is not None and hypotheses[0].score == -inf:
                    raise ConfigError(_impossible(segments[i]))
                found[i] = hypotheses
        return found

    def share_out(
        self,
        segments: Sequence[Segment],
        find: Callable[[Sequence[Segment]], list[list[Translation]]],
    ) -> list[Segment]:
        """Of a line in several segments, each phrase goes where it costs least."""
        parts: dict[int, list[int]] = {}
        for place, one in enumerate(segments):
            if one.must:
                parts.setdefault(one.owner, []).append(place)
        shared = list(segments)
        for places in parts.values():
            if len(places) < 2:
                continue
            given: dict[int, list[str]] = {place: [] for place in places}
            free = [replace(segments[place], must=()) for place in places]
            plain = [found[0] for found in find(free)]
            for phrase in segments[places[0]].must:
                text = self._phrases.normalized(phrase, "must")
                there = [occurs(text, one.text, whole_words=self._spaces) for one in plain]
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

    def _forced(self, prefix: str) -> list[int]:
        if not prefix:
            return []
        return self._tokenizer.encode_targets([self._tokenizer.normalize_target(prefix)])[0]

    def _groups(
        self,
        segments: Sequence[Segment],
        ids: Sequence[Sequence[int]],
        wanted: Sequence[Wanted | None],
        settings: Settings,
    ) -> Iterable[tuple[int | None, list[int]]]:
        """Segments by the beam they need, so that no line's result depends on its neighbours."""
        groups: dict[tuple[bool, int | None], list[int]] = {}
        for i, one in enumerate(wanted):
            beam = one.beams(settings.search.beam) if one is not None and one.must else None
            groups.setdefault((one is None, beam), []).append(i)
            if one is not None and beam is not None:
                _check_room(segments[i], len(ids[i]), one, settings.search)
        return [(beam, group) for (_, beam), group in groups.items()]

    def _finder(self, beam: int | None, settings: Settings) -> Find:
        """Of one group; `beam` is None where nothing must be contained."""

        def find(
            rows: Rows, forced: list[list[int]] | None, constraint: Constraint | None
        ) -> list[list[Hypothesis]]:
            model, options = self._model, settings.search
            if beam is not None:
                if options.groups > 1:
                    raise ConfigError("diverse beams cannot contain certain phrases; leave one out")
                assert isinstance(constraint, Lexical)
                wide = replace(options, beam=beam)
                return banked_search(model, rows, wide, constraint, prefixes=forced)
            if settings.sampling is not None:
                return sample(
                    model, rows, settings.sampling, prefixes=forced, constraint=constraint
                )
            return search(model, rows, options, prefixes=forced, constraint=constraint)

        return find

    def _constrain(self, wanted: Sequence[Wanted]) -> Callable[[Sequence[int]], Constraint] | None:
        if not wanted:
            return None
        device, targets = self._device, self._model.targets
        return lambda rows: Lexical([wanted[i] for i in rows], targets, device)

    # --- beside search ---

    def align(
        self, sources: Sequence[Sequence[int]], found: Sequence[Sequence[Hypothesis]]
    ) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """The word alignment of every hypothesis, by (sentence, rank)."""
        keys = [(i, n) for i, row in enumerate(found) for n in range(len(row))]
        lengths = [len(sources[i]) + len(found[i][n].ids) for i, n in keys]
        alignments = {}
        for batch in by_length(lengths, self._config.search.batch_tokens):
            pairs = [keys[k] for k in batch]
            source = [sources[i] for i, _ in pairs]
            target = [found[i][n].ids for i, n in pairs]
            seen = source_attention(self._model, source, target)
            for key, weights, s, t in zip(pairs, seen, source, target, strict=True):
                alignments[key] = word_alignment(weights, self._tokenizer, s, t)
        return alignments

    def score(self, sources: Sequence[str], targets: Sequence[str], alpha: float) -> list[Scored]:
        """How probable each target is as the translation of its source."""
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
        """The likeliest next words of a translation that begins with `prefix`."""
        return alternatives(
            self._model,
            self._tokenizer,
            source,
            self._forced(prefix),
            self.word_starts,
            count,
            options,
        )

    @cached_property
    def word_starts(self) -> Tensor:
        """Which pieces a word can begin with, V; in a language without spaces, all."""
        texts = self._phrases.spelling.texts
        begins = [text.startswith(" ") or not self._spaces for text in texts]
        return torch.tensor(begins, device=self._device)

    @property
    def _device(self) -> torch.device:
        return next(self._model.parameters()).device


def _check_room(segment: Segment, pieces: int, wanted: Wanted, options: SearchOptions) -> None:
    longest = pieces + options.max_extra
    if wanted.pieces > longest:
        raise ConfigError(
            f"what must be in the translation of '{_brief(segment.text)}' has "
            f"{wanted.pieces} pieces, and {longest} are allowed; raise max_extra"
        )


def _brief(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _impossible(segment: Segment) -> str:
    return (
        f"no translation of '{_brief(segment.text)}' contains and does not contain what it must; "
        "ask for less, or raise max_extra"
    )
