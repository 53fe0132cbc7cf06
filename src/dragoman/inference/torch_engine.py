"""PyTorch computes for a translator what the fast engines do not.

These are sampling, diverse beams, and everything with models that no engine supports; on a GPU also
constraints, alignments, scores and alternatives. Importing this imports PyTorch, so it is imported
only where it is needed.
"""

# B sentences, L length of their rows, N real positions, X beginnings, G groups of pieces,
# C candidates, V vocabulary

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.config import Config
from dragoman.inference.alignment import word_alignment
from dragoman.inference.engine import NextPieces
from dragoman.inference.source_attention import (
    attends_to_source,
    mean_attention,
    source_attention,
)
from dragoman.models import Model, Rows
from dragoman.search import (
    Constraint,
    Hypothesis,
    SamplingOptions,
    SearchOptions,
    phrase_constrained_search,
    sample,
    search,
)
from dragoman.search.allowed_outputs import NEVER
from dragoman.search.batching import (
    length_sorted_batches,
    search_in_batches,
    source_rows,
    target_rows,
)
from dragoman.search.beam import stable_topk
from dragoman.search.constraints.phrase_constraint import PhraseConstraint
from dragoman.search.constraints.requirements import OutputRequirements
from dragoman.system.malloc import keep_freed_memory
from dragoman.text.tokenizer import Tokenizer

POSITIONS_AT_ONCE: Final = 1024
"""Log-probabilities of this many positions exist at once, however large the batch is."""


class TorchEngine:
    """Compute with a model in PyTorch what the fast engines do not."""

    def __init__(self, model: Model, tokenizer: Tokenizer, config: Config) -> None:
        self._model, self._tokenizer, self._config = model, tokenizer, config
        if self._device.type == "cpu":
            keep_freed_memory()

    @property
    def aligns(self) -> bool:
        """Return whether the model has attention to read an alignment off."""
        return attends_to_source(self._model)

    # --- search ---

    def search(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions | SamplingOptions,
        requirements: Sequence[OutputRequirements] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each sentence, or samples, that are what is required.

        Phrases are required of all, or of none, and so is that any are contained.
        """
        required = requirements or [OutputRequirements()] * len(sentences)
        contains = any(one.phrases is not None and one.phrases.must for one in required)

        def find(
            rows: Rows, forced: list[list[int]] | None, constraint: Constraint | None
        ) -> list[list[Hypothesis]]:
            model = self._model
            if isinstance(options, SamplingOptions):
                return sample(model, rows, options, prefixes=forced, constraint=constraint)
            if contains:
                assert isinstance(constraint, PhraseConstraint)
                return phrase_constrained_search(model, rows, options, constraint, prefixes=forced)
            return search(model, rows, options, prefixes=forced, constraint=constraint)

        prefixes = [list(one.prefix) for one in required]
        return search_in_batches(
            self._model,
            sentences,
            find,
            batch_tokens=self._config.search.batch_tokens,
            prefixes=prefixes if any(prefixes) else None,
            constrain=self._make_constraint(required),
        )

    def _make_constraint(
        self, required: Sequence[OutputRequirements]
    ) -> Callable[[Sequence[int]], Constraint] | None:
        """Return what makes the constraint of a batch; all sentences have phrases, or none has."""
        device, targets = self._device, self._model.targets
        phrases = [one.phrases for one in required if one.phrases is not None]
        if phrases:
            return lambda rows: PhraseConstraint([phrases[i] for i in rows], targets, device)
        if any(one.after_prefix is not None for one in required):
            return lambda rows: AfterPrefix([required[i] for i in rows], targets, device)
        return None

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

    @torch.no_grad()
    def log_probabilities(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """Return the log-probabilities of each target's pieces and of its end."""
        results: list[list[float]] = [[] for _ in sources]
        lengths = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
        for batch in length_sorted_batches(lengths, self._config.search.batch_tokens):
            wanted = source_rows([targets[i] for i in batch], self._device)  # its pieces, then EOS
            real_BL = wanted.segments_RL > 0
            features_NM = self._model.features(
                source_rows([sources[i] for i in batch], self._device),
                target_rows([targets[i] for i in batch], self._device),
            )[real_BL]
            parts = zip(
                features_NM.split(POSITIONS_AT_ONCE),
                wanted.ids_RL[real_BL].split(POSITIONS_AT_ONCE),
                strict=True,
            )
            found = [
                self._model.log_probabilities(features).gather(1, ids[:, None])[:, 0]
                for features, ids in parts
            ]
            each = torch.cat(found).split([len(targets[i]) + 1 for i in batch])
            for i, log_probs_L in zip(batch, each, strict=True):
                results[i] = log_probs_L.tolist()
        return results

    @torch.no_grad()
    def predict_next(
        self,
        source: Sequence[int],
        prefix: Sequence[int],
        words: Sequence[Sequence[int]],
        groups_GV: NDArray[np.bool_],
        count: int,
    ) -> NextPieces:
        """Return the likeliest pieces of each group after the prefix and each word: see Engine."""
        begun = [[*prefix, *word] for word in words]
        features_XLM = self._model.features(
            source_rows([source] * len(begun), self._device), target_rows(begun, self._device)
        )
        last_X = torch.tensor([len(ids) for ids in begun], device=self._device)
        rows_X = torch.arange(len(begun), device=self._device)
        log_probs_XV = self._model.log_probabilities(features_XLM[rows_X, last_X])
        groups = torch.tensor(groups_GV, device=self._device)
        groups[:, list(NEVER)] = False
        each_XGV = log_probs_XV[:, None].masked_fill(~groups, -torch.inf)
        values, ids = stable_topk(each_XGV.flatten(0, 1), count)
        shape = (len(begun), len(groups), -1)
        return NextPieces(
            ids.view(shape).int().cpu().numpy(), values.view(shape).float().cpu().numpy()
        )

    @property
    def _device(self) -> torch.device:
        return next(self._model.parameters()).device


class AfterPrefix(Constraint):
    """Allow only some pieces right after the prefix of each output."""

    def __init__(
        self, required: Sequence[OutputRequirements], targets: int, device: torch.device
    ) -> None:
        """Take what is required of each row of the source, and the size of the vocabulary."""
        self._lengths = [len(one.prefix) for one in required]
        self._lengths_B = torch.tensor(self._lengths, device=device)
        every = np.ones(targets, np.bool_)
        follows = [every if (mask := one.after_prefix) is None else mask for one in required]
        self._follows_BV = torch.from_numpy(np.stack(follows)).to(device)

    def allowed(self, sentences_B: Tensor, ids_BKT: Tensor, room_B: Tensor) -> Tensor:
        """Return which pieces may follow, B K V: see Constraint."""
        here_B1 = (self._lengths_B[sentences_B] == ids_BKT.shape[2])[:, None]
        may_BV = self._follows_BV[sentences_B] | ~here_B1
        return may_BV[:, None].expand(-1, ids_BKT.shape[1], -1)

    def shortest(self, sentence: int) -> int:
        """Return the fewest pieces an output may have: see Constraint."""
        return self._lengths[sentence]
