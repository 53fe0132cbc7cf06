"""What a training step computes, for any model: counted by PyTorch as it is computed.

The counter sees a real step, forward and backward, on sentences of a real batch, one at a time:
nothing is padded, no sentence is counted against another, and every matrix product counts 2·m·n·k.
Scores that a causal or window mask hides are computed, and counted, for every model alike;
`dragoman.bench.flops` leaves them out. Two fused operations have to be taken apart for the counter
to see them: attention (it is computed by its plain form) and oneDNN's LSTM.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import Config
from dragoman.data.batches import Batch
from dragoman.models import build
from dragoman.training.loss import Criterion, TensorBatch

__all__ = ["counted_flops"]

SAMPLE: Final = 8
"""Sentences of a batch that are counted."""


def counted_flops(config: Config, batch: Batch, *, sample: int = SAMPLE) -> int:
    """Operations of one training step on a batch, forward and backward, optimiser left out.

    `sample` sentences, spread evenly over the lengths, are counted one by one; the rest is taken
    to cost as much a position.
    """
    sentences = sorted(_sentences(batch), key=lambda s: s.source_tokens + s.target_tokens)
    count = min(sample, len(sentences))
    few = [sentences[int((k + 0.5) * len(sentences) / count)] for k in range(count)]
    criterion = Criterion(
        build(config.model, config.tokenizer.vocabulary),
        label_smoothing=config.training.label_smoothing,
        r_drop=config.training.r_drop,
    )
    with _plainly(), FlopCounterMode(display=False) as counter:
        for sentence in few:
            loss, _ = criterion(TensorBatch.of(sentence, torch.device("cpu")))
            loss.backward()
    tokens = sum(sentence.source_tokens + sentence.target_tokens for sentence in few)
    counted = int(counter.get_total_flops())
    return round(counted * (batch.source_tokens + batch.target_tokens) / tokens)


def _sentences(batch: Batch) -> Iterator[Batch]:
    """Each sentence as a batch of its own, without padding."""
    source, target = batch.arrays()[:3], batch.arrays()[3:]
    for row, number in enumerate(batch.target_segments.max(axis=1, initial=0)):
        for segment in range(1, int(number) + 1):
            of_source = batch.source_segments[row] == segment
            of_target = batch.target_segments[row] == segment
            sides = [a[row][of_source] for a in source] + [a[row][of_target] for a in target]
            arrays = [np.ascontiguousarray(side[None]) for side in sides]
            arrays[1], arrays[5] = np.ones_like(arrays[1]), np.ones_like(arrays[5])
            yield Batch(*arrays)


@contextmanager
def _plainly() -> Iterator[None]:
    """Attention and LSTMs as the products they are made of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TF32 acceleration", UserWarning)  # of another device
        with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
            yield
