"""Count what a training step must compute: the matrix products of its real tokens, nothing else.

A product of an m×k and a k×n matrix takes 2·m·n·k operations. With M = d_model, F = d_ff,
K = heads·d_k, V = heads·d_v, and s and t source and target tokens, the forward pass needs

    each encoder layer   s · 2·(2·M·K + 2·M·V)         queries, keys, values, output
                         s · 2·(2·M·F)                 feed-forward; 3·M·F if gated
                         2·(K + V) · Σ sᵢ²             scores and weighted values
    each decoder layer   t · 2·(2·M·K + 2·M·V)         self-attention
                         t · 2·(M·K + M·V)             attention to the source: queries, output
                         s · 2·(M·K + M·V)             attention to the source: keys, values
                         t · 2·(2·M·F)                 feed-forward; 3·M·F if gated
                         2·(K + V) · Σ tᵢ(tᵢ + 1)/2    a position sees itself and its past
                         2·(K + V) · Σ tᵢ·sᵢ
    vocabulary           t · 2·M·vocabulary

where i runs over the sentences: no sentence sees another. The backward pass needs twice as much,
the gradients of both factors of every product. Padding, masked scores, softmax, norms, dropout
and the optimiser count nothing, so whatever a step spends on them is lost share.

For other models than the Transformer PyTorch's counter sees a real step, forward and backward, on
sentences of a real batch, one at a time: nothing is padded, and no sentence is counted against
another. Scores that a causal or window mask hides are computed, and counted, for every model alike;
the formulas leave them out. Two fused operations have to be taken apart for the counter to see
them: attention is computed by its plain form, and oneDNN's LSTM is switched off.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from dragoman.bench import sample_evenly
from dragoman.config import Config, ModelConfig
from dragoman.data.batching.batches import Batch
from dragoman.models import build
from dragoman.models.supported_settings import unsupported
from dragoman.training.loss import Criterion, TensorBatch

# N sentences


Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SentenceLengths:
    """Hold the positions of every sentence on both sides, marks included."""

    source_N: Counts
    target_N: Counts


def sentence_lengths(batches: Iterable[Batch]) -> SentenceLengths:
    """Return the lengths of all sentences of some batches."""
    source, target = [], []
    for batch in batches:
        for source_L, target_L in zip(batch.source_segments, batch.target_segments, strict=True):
            source.append(np.bincount(source_L)[1:])  # segment 0 is padding
            target.append(np.bincount(target_L)[1:])
    return SentenceLengths(np.concatenate(source), np.concatenate(target))


def formulas_hold(config: ModelConfig) -> bool:
    """Return whether a model computes what the formulas say: a Transformer without experts."""
    return unsupported(config, "flop formulas") is None


def training_flops(config: Config, lengths: SentenceLengths) -> int:
    """Return the operations of training on these sentences once; R-Drop passes over them twice."""
    linear = linear_flops(config.model, config.tokenizer.vocabulary, lengths)
    passes = 2 if config.training.r_drop else 1
    return 3 * passes * (linear + attention_flops(config.model, lengths))


def linear_flops(config: ModelConfig, vocabulary: int, lengths: SentenceLengths) -> int:
    """Return the operations of the forward products with weights."""
    s, t = int(lengths.source_N.sum()), int(lengths.target_N.sum())
    M = config.d_model
    one_pair = M * config.heads * (config.d_k + config.d_v)  # one of Q and K, one of V and O
    feed_forward = (3 if config.activation == "swiglu" else 2) * M * config.d_ff
    encoder = config.encoder_layers * s * (2 * one_pair + feed_forward)
    decoder = config.decoder_layers * (t * (3 * one_pair + feed_forward) + s * one_pair)
    return 2 * (encoder + decoder + t * M * vocabulary)


def attention_flops(config: ModelConfig, lengths: SentenceLengths) -> int:
    """Return the forward operations of the scores and weighted values that masks let through."""
    s_N, t_N = lengths.source_N, lengths.target_N
    past_and_future = 2 * _visible_pairs(s_N, config.window) - int(s_N.sum())  # itself once
    encoder = config.encoder_layers * past_and_future
    decoder = config.decoder_layers * (_visible_pairs(t_N, config.window) + int((s_N * t_N).sum()))
    return 2 * config.heads * (config.d_k + config.d_v) * (encoder + decoder)


def _visible_pairs(lengths_N: Counts, window: int) -> int:
    """Return how many pairs there are of a position and one it sees: itself or one before it."""
    seen = lengths_N * (lengths_N + 1) // 2
    if window:
        beyond = np.maximum(lengths_N - window - 1, 0)
        seen = seen - beyond * (beyond + 1) // 2
    return int(seen.sum())


SAMPLE_SENTENCES: Final = 8
"""How many sentences of a batch are counted."""


def count_flops(config: Config, batch: Batch, *, sample: int = SAMPLE_SENTENCES) -> int:
    """Return the operations of a training step on a batch, forward and backward, by PyTorch.

    `sample` sentences, spread evenly over the lengths, are counted one by one; the rest is taken
    to cost as much a position. The optimiser is left out.
    """
    sentences = sorted(_sentences(batch), key=lambda s: s.source_tokens + s.target_tokens)
    sampled = sample_evenly(sentences, sample)
    criterion = Criterion(
        build(config.model, config.tokenizer.vocabulary),
        label_smoothing=config.training.label_smoothing,
        r_drop=config.training.r_drop,
    )
    with _countable_operators(), FlopCounterMode(display=False) as counter:
        for sentence in sampled:
            loss, _ = criterion(TensorBatch.from_batch(sentence, torch.device("cpu")))
            loss.backward()
    tokens = sum(sentence.source_tokens + sentence.target_tokens for sentence in sampled)
    counted = int(counter.get_total_flops())
    return round(counted * (batch.source_tokens + batch.target_tokens) / tokens)


def _sentences(batch: Batch) -> Iterator[Batch]:
    """Yield each sentence as a batch of its own, without padding."""
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
def _countable_operators() -> Iterator[None]:
    """Compute attention and LSTMs by operators that PyTorch's counter can see."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TF32 acceleration", UserWarning)  # of another device
        with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
            yield
