"""Every export and import must pass a comparison with our model.

Both models read a sample. Our greedy translations are the reference: theirs must be the same, and
so must, within a tolerance, the scores of every piece along them.
"""

# B sentences, T target positions, V vocabulary

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.errors import DataError, ModelError
from dragoman.model_directory import LoadedModel
from dragoman.phrasebook import LANGUAGES, generate
from dragoman.search import SearchOptions, search
from dragoman.search.batching import search_in_batches, source_rows, target_rows
from dragoman.search.options import longest_output
from dragoman.text.special_tokens import EOS, FIRST_PIECE

TOLERANCE = 1e-3
"""Two scores may differ by so much in fp32; docs/interop.md says what has been measured."""

_HARD_TEXTS = (
    "  two  spaces,\ta tab and\u00a0a no-break space ",
    "“Quotes” – ‘dashes’ … and an apostrophe’s end",
    "cafe\u0301 and café, ﬁne ½",
    "日本語 한국어 😀 \u2581 Ω",
)
"""Texts that tokenisers often split differently."""


def sample_texts(loaded: LoadedModel, texts: Sequence[str] = (), count: int = 12) -> list[str]:
    """Return sentences to compare on: the phrasebook's, hard ones, random pieces, the user's own.

    The random pieces are the model's and always the same, so that every language has a sample.
    """
    tokenizer, languages = loaded.tokenizer, loaded.config.data.languages
    target = next((code for code in languages if code in LANGUAGES), next(iter(LANGUAGES)))
    book = list(generate(target, "valid", count))
    reads_it = bool(languages) and languages[0] == target
    draw = random.Random(1)
    ids = range(FIRST_PIECE, len(tokenizer))
    random_texts = [tokenizer.decode(draw.choices(ids, k=draw.randint(2, 30))) for _ in range(4)]
    own = [pair.target if reads_it else pair.source for pair in book]
    return [*own, *_HARD_TEXTS, *filter(None, random_texts), *filter(str.strip, texts)]


@dataclass(frozen=True, slots=True)
class Parity:
    """Hold the result of a comparison."""

    sentences: int
    positions: int
    difference: float
    """The largest difference between two scores."""
    same: int
    """The sentences whose translations are the same, or differ where two pieces score the same."""

    def __str__(self) -> str:
        return (
            f"{self.sentences} sentences, {self.positions} positions: scores differ by at most "
            f"{self.difference:.1e}, {self.same} of {self.sentences} translations are the same"
        )


class Reference:
    """Hold a model of ours with its greedy translations of a sample and their scores."""

    def __init__(self, loaded: LoadedModel, texts: Sequence[str]) -> None:
        self.loaded = loaded
        self.texts = [text for text in texts if loaded.tokenizer.encode(text)]
        limit = loaded.config.data.max_length
        encoded = [loaded.tokenizer.encode(text) for text in self.texts]
        short = [len(ids) <= limit for ids in encoded]
        self.texts = [text for text, fits in zip(self.texts, short, strict=True) if fits]
        self.sources = [ids for ids, fits in zip(encoded, short, strict=True) if fits]
        if not self.sources:
            raise DataError(
                "no sentence of the sample can be translated; give others with --sample"
            )

        # Now, because an export that changed our weights must not change what it is compared with.
        self.outputs = self._translate()
        """Our greedy translations, without BOS and EOS."""
        self.logits_BTV = self._score()
        """Our scores of what follows BOS and every piece of them, padded."""

    @property
    def options(self) -> SearchOptions:
        """Return the options of the greedy search."""
        return SearchOptions(beam=1, max_extra=self.loaded.config.search.max_extra)

    @property
    def limits(self) -> list[int]:
        """Return how many pieces each translation may have."""
        return [longest_output(len(ids), self.options) for ids in self.sources]

    def _translate(self) -> list[list[int]]:
        model, options = self.loaded.model, self.options
        found = search_in_batches(
            model,
            self.sources,
            lambda rows, prefixes, constraint: search(model, rows, options),
            batch_tokens=4096,
        )
        return [row[0].ids for row in found]

    @torch.no_grad()
    def _score(self) -> Tensor:
        model = self.loaded.model
        device = next(model.parameters()).device
        scores: Tensor = model(source_rows(self.sources, device), target_rows(self.outputs, device))
        return scores.float().cpu()

    @property
    def positions(self) -> int:
        """Return how many pieces are scored: those of the translations, and EOS."""
        return sum(len(ids) + 1 for ids in self.outputs)

    def compare(
        self, theirs_BTV: Tensor, outputs: Sequence[Sequence[int]], *, where: str
    ) -> Parity:
        """Raise ModelError if logits along our translations, or translations, are not ours."""
        real_BT = torch.zeros(self.logits_BTV.shape[:2], dtype=torch.bool)
        for b, ids in enumerate(self.outputs):
            real_BT[b, : len(ids) + 1] = True
        return self.compare_scores(
            theirs_BTV[real_BT], self.logits_BTV[real_BT], outputs, where=where
        )

    def compare_scores(
        self, theirs: Tensor, ours: Tensor, outputs: Sequence[Sequence[int]], *, where: str
    ) -> Parity:
        """Raise ModelError if scores of any kind, or translations, are not ours."""
        difference = float((theirs - ours).abs().max())
        if not difference <= TOLERANCE:  # not-a-number fails too
            raise ModelError(
                f"{where}: its scores differ from ours by {difference:.1e}, more than "
                f"{TOLERANCE:.0e}; nothing was written"
            )
        for b, (mine, found) in enumerate(zip(self.outputs, outputs, strict=True)):
            if list(found) != mine and not self._scores_tie(b, mine, found):
                tokenizer = self.loaded.tokenizer
                raise ModelError(
                    f"{where}: translates {self.texts[b]!r} as {tokenizer.decode(found)!r} and "
                    f"not as {tokenizer.decode(mine)!r}; nothing was written"
                )
        return Parity(len(self.sources), self.positions, difference, len(self.sources))

    def compare_rounded(
        self,
        theirs: Tensor,
        ours: Tensor,
        outputs: Sequence[Sequence[int]],
        *,
        where: str,
        limit: float,
    ) -> Parity:
        """Compare a model of rounded weights, whose scores must be near ours on average."""
        differences = (theirs - ours).abs()
        if not float(differences.mean()) <= limit:
            raise ModelError(
                f"{where}: its scores differ from ours by {float(differences.mean()):.2f} on "
                f"average, more than {limit:g}; try another --quantization; nothing was written"
            )
        same = sum(list(b) == a for a, b in zip(self.outputs, outputs, strict=True))
        return Parity(len(self.sources), self.positions, float(differences.max()), same)

    def _scores_tie(self, b: int, ours: Sequence[int], theirs: Sequence[int]) -> bool:
        """Return whether the first two pieces that differ score so alike that rounding decides."""
        ours, theirs = [*ours, EOS], [*theirs, EOS]
        shorter = min(len(ours), len(theirs))
        t = next((i for i in range(shorter) if ours[i] != theirs[i]), shorter - 1)
        scores_V = self.logits_BTV[b, t]
        return abs(float(scores_V[ours[t]] - scores_V[theirs[t]])) <= TOLERANCE
