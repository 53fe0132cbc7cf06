"""Several models are used as one, by the mean of the probabilities they give to the next piece."""

# B sentences, K beams, V targets, N models

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dragoman.errors import ModelError
from dragoman.models.api import Model, Rows, State


class EnsembleState(State):
    """Hold the state of each model."""

    def __init__(self, states: Sequence[State]) -> None:
        self.states = list(states)

    def _change(self, change: Callable[[State], State]) -> EnsembleState:
        return EnsembleState([change(state) for state in self.states])

    def expand(self, beams: int) -> EnsembleState:
        """Repeat the hypothesis of each sentence, as `State.expand` says."""
        return self._change(lambda state: state.expand(beams))

    def reorder(self, parents_BK: Tensor) -> EnsembleState:
        """Let hypotheses continue others, as `State.reorder` says."""
        return self._change(lambda state: state.reorder(parents_BK))

    def keep(self, sentences_B: Tensor) -> EnsembleState:
        """Keep only some sentences, as `State.keep` says."""
        return self._change(lambda state: state.keep(sentences_B))


class Ensemble(Model):
    """Search with several models over the same ids; an ensemble is not trained."""

    def __init__(self, models: Sequence[Model]) -> None:
        super().__init__()
        first = models[0]
        for other in models[1:]:
            if (other.vocabulary, other.targets) != (first.vocabulary, first.targets):
                raise ModelError(
                    "an ensemble needs one vocabulary; these have "
                    f"{first.vocabulary:,} and {other.vocabulary:,} ids, "
                    f"{first.targets:,} and {other.targets:,} of them targets"
                )
        self.models = nn.ModuleList(models)
        self.vocabulary, self.targets = first.vocabulary, first.targets

    def _members(self) -> list[Model]:
        return [model for model in self.models if isinstance(model, Model)]

    def features(self, source: Rows, target: Rows) -> Tensor:
        """Return the features of all, one after another; `log_probabilities` separates them."""
        return torch.cat([model.features(source, target) for model in self._members()], -1)

    def logits(self, features: Tensor) -> Tensor:
        """Return the logarithm of the mean probability, from all features."""
        widths = [model.output_weight().shape[1] for model in self._members()]
        parts = zip(self._members(), features.split(widths, -1), strict=True)
        return _mean([model.log_probabilities(part) for model, part in parts])

    def log_probabilities(self, features: Tensor) -> Tensor:
        """See Model; `logits` is normalised already."""
        return self.logits(features)

    def start(self, source: Rows) -> EnsembleState:
        """Read the source and return the first state, as `Model.start` says."""
        return EnsembleState([model.start(source) for model in self._members()])

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, EnsembleState]:
        """Append a piece to every hypothesis, as `Model.step` says."""
        assert isinstance(state, EnsembleState)
        steps = [
            model.step(ids_BK, one)
            for model, one in zip(self._members(), state.states, strict=True)
        ]
        return _mean([log_probs for log_probs, _ in steps]), EnsembleState([s for _, s in steps])


def _mean(log_probs: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))
