"""Dragoman's own step as a contestant."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import torch

from dragoman.config import Config
from dragoman.data.batches import Batch
from dragoman.models import build
from dragoman.training.distribution import Ranks
from dragoman.training.step import Stepper

__all__ = ["Ours"]


class Ours:
    """The step that `dragoman train` takes, on batches that are there already."""

    name = "dragoman"

    def __init__(self, config: Config, batches: Sequence[Batch], device: torch.device) -> None:
        torch.manual_seed(config.training.seed)
        model = build(config.model, config.tokenizer.vocabulary).to(device).train()
        self.parameters = sum(p.numel() for p in model.parameters())
        self.steps = len(batches)
        self.target_tokens = sum(batch.target_tokens for batch in batches)
        self._batches = batches
        self._stepper = Stepper(config, model, device, Ranks())
        self._done = 0

    @property
    def slices(self) -> int:
        """In how many a batch was computed: training.accumulate, or more if memory was short."""
        return self._stepper.ration.slices

    def round(self) -> None:
        """One step on each of the batches."""
        self.issue(self.steps)

    def issue(self, steps: int) -> None:
        """So many steps, on the batches in rotation."""
        for _ in range(steps):
            batch = self._batches[self._done % len(self._batches)]
            self._done += 1
            self._stepper.run(batch, self._done)
            deque(self._stepper.finished(), maxlen=0)  # the loop reads results as they come
