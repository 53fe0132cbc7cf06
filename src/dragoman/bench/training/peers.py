"""Others' models for the same job are trained here as their users train them.

They are models of the same size, layers, dropout and loss, under bf16 autocast and the fused AdamW,
on sentences of the same corpus in padded batches. Batches are made as the paper's tensor2tensor
made them: all sentences are sorted by the length of the longer side, cut where a batch is full, and
the batches shuffled. It is the order that pads these sentences least: sorted by target length, half
of the source would be padding. The whole corpus is sorted, however few batches are timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.bench import sample_evenly
from dragoman.bench.training.synthetic_corpus import SyntheticPairs
from dragoman.config import Config
from dragoman.data.batching.shuffle import shuffle_indices
from dragoman.errors import ConfigError
from dragoman.models.positions import sinusoids
from dragoman.text.special_tokens import BOS, EOS, PAD
from dragoman.training.precision import uses_bf16

# N pairs, B sentences of a batch, S and T its source and target lengths, V vocabulary

Lengths: TypeAlias = NDArray[np.integer[Any]]
ComputeLogits: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Maps source ids B S and the decoder's input ids B T to logits B T V."""


def check_peers(config: Config) -> None:
    """Raise ConfigError for a model that the peers do not have: they lack some options of ours."""
    if find_spec("transformers") is None:
        raise ConfigError(
            "--against needs transformers; install it with: pip install 'dragoman[export]'"
        )
    m = config.model
    for name, same in (
        ("architecture", m.architecture == "transformer"),
        ("experts", not m.experts),
        ("positions", m.positions in ("sinusoidal", "learned")),
        ("window", not m.window),
        ("d_k", m.heads * m.d_k == m.d_model),
        ("d_v", m.heads * m.d_v == m.d_model),
        ("activation", m.activation != "swiglu"),
        ("shared_embeddings", m.shared_embeddings),
    ):
        if not same:
            raise ConfigError(
                f"model.{name} = {getattr(m, name)}: the peers have no such model; "
                "leave out --against"
            )


@dataclass(frozen=True, slots=True)
class PeerModel:
    """Name a model to compare with, and how it is built."""

    name: str
    build: Callable[[Config], nn.Module]
    compiled: bool = False


def peer_models(device: torch.device) -> list[PeerModel]:
    """Return the peers for a device; the compiled one comes last, as compiling leaves traces."""
    models = [
        PeerModel("Hugging Face Marian", build_marian),
        PeerModel("torch.nn.Transformer", build_torch_transformer),
    ]
    if device.type == "cuda":
        models.append(PeerModel("Hugging Face Marian, compiled", build_marian, compiled=True))
    return models


class PeerTraining:
    """Train a peer's model: forward, cross-entropy, backward, AdamW."""

    def __init__(
        self, peer: PeerModel, config: Config, batches: Sequence[PaddedBatch], device: torch.device
    ) -> None:
        torch.manual_seed(config.training.seed)
        self.name = peer.name
        self.steps = len(batches)
        self.target_tokens = sum(batch.target_tokens for batch in batches)
        source_tokens = sum(batch.source_tokens for batch in batches)
        self.source_fill = source_tokens / sum(batch.source_BS.numel() for batch in batches)
        self.target_fill = self.target_tokens / sum(batch.output_BT.numel() for batch in batches)
        model = peer.build(config).to(device).train()
        self.parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
        settings = config.training
        self._compute_logits: ComputeLogits = model
        if peer.compiled:
            # Beyond the limit, 8 by default, it would go back to eager mode without a word.
            torch._dynamo.config.recompile_limit = len(batches) + 8
            self._compute_logits = torch.compile(model, dynamic=True)
        self._optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=1e-4,
            betas=(settings.beta1, settings.beta2),
            eps=settings.epsilon,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self._smoothing = settings.label_smoothing
        self._autocast = torch.autocast(
            device.type, torch.bfloat16, enabled=uses_bf16(settings.precision, device)
        )
        self._batches = [batch.to(device) for batch in batches]

    def run_round(self) -> None:
        """Take one step on each of the batches, which are on the device already."""
        for batch in self._batches:
            with self._autocast:
                logits_BTV = self._compute_logits(batch.source_BS, batch.input_BT)
                loss = F.cross_entropy(
                    logits_BTV.flatten(0, 1),
                    batch.output_BT.flatten(),
                    ignore_index=PAD,
                    label_smoothing=self._smoothing,
                )
            loss.backward()
            self._optimizer.step()
            self._optimizer.zero_grad()


# --- padded batches ---


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Hold a rectangle of sentences on each side, one a row."""

    source_BS: Tensor
    input_BT: Tensor
    output_BT: Tensor

    @property
    def source_tokens(self) -> int:
        """Return how many source positions are not padding."""
        return int((self.source_BS != PAD).sum())

    @property
    def target_tokens(self) -> int:
        """Return how many target positions are not padding."""
        return int((self.output_BT != PAD).sum())

    def to(self, device: torch.device) -> PaddedBatch:
        """Return the same batch on a device."""
        tensors = (self.source_BS, self.input_BT, self.output_BT)
        return PaddedBatch(*(tensor.to(device, non_blocking=True) for tensor in tensors))


def padded_batches(pairs: SyntheticPairs, positions: int, count: int) -> list[PaddedBatch]:
    """Sort all pairs by length, cut them into batches, and return `count` of these.

    A batch has at most `positions` on either side. Those that are returned are spread evenly over
    the lengths, so that they are like the whole corpus, and are in random order.
    """
    every_N = np.arange(len(pairs))
    source_N, target_N = pairs.source_lengths(every_N), pairs.target_lengths(every_N)
    longer_N = np.maximum(source_N, target_N) + 1  # each has a mark at one end
    order_N = np.lexsort((source_N, longer_N))
    cuts = _cut_batches(longer_N[order_N], positions)
    taken = sample_evenly(cuts, count)
    shuffled = shuffle_indices(np.arange(len(taken)), len(taken), seed=0)
    return [_pad_pairs(pairs, order_N[taken[k]]) for k in shuffled]


def _cut_batches(longer_N: Lengths, positions: int) -> list[slice]:
    """Cut sorted sentences where the next one, padded to by all before it, would not fit."""
    cuts, start = [], 0
    for end in range(1, len(longer_N) + 1):
        if end == len(longer_N) or (end + 1 - start) * longer_N[end] > positions:
            cuts.append(slice(start, end))
            start = end
    return cuts


def _pad_pairs(pairs: SyntheticPairs, chosen: Lengths) -> PaddedBatch:
    sources, targets = map(pairs.source, chosen), [pairs.target(i) for i in chosen]
    return PaddedBatch(
        _pad([[*source, EOS] for source in sources]),
        _pad([[BOS, *target] for target in targets]),
        _pad([[*target, EOS] for target in targets]),
    )


def _pad(sentences: Sequence[Sequence[int]]) -> Tensor:
    """Return int64, as torch's embeddings and losses want it, with PAD behind each sentence."""
    out = np.full((len(sentences), max(map(len, sentences))), PAD, np.int64)
    for row, sentence in zip(out, sentences, strict=True):
        row[: len(sentence)] = sentence
    return torch.from_numpy(out)


# --- models ---


class Marian(nn.Module):
    """Map ids to logits by a MarianMTModel, with masks made from the padding."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, source_BS: Tensor, input_BT: Tensor) -> Tensor:
        """Return logits B T V."""
        out: Tensor = self.model(
            input_ids=source_BS,
            attention_mask=(source_BS != PAD).long(),
            decoder_input_ids=input_BT,
            use_cache=False,
        ).logits
        return out


def build_marian(config: Config) -> nn.Module:
    """Return Hugging Face's MarianMTModel, which is always post-norm."""
    from transformers import MarianConfig, MarianMTModel

    from dragoman.interop.huggingface import transformer_settings

    settings = MarianConfig(
        vocab_size=config.tokenizer.vocabulary,
        max_position_embeddings=config.data.row_length,
        **transformer_settings(config.model),
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
        decoder_start_token_id=BOS,
    )
    return Marian(MarianMTModel(settings))


class TorchTransformer(nn.Module):
    """Give nn.Transformer what it leaves to its users: embeddings, positions, masks, projection."""

    table: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        m = config.model
        self.pieces = nn.Embedding(config.tokenizer.vocabulary, m.d_model)
        self.register_buffer("table", sinusoids(config.data.row_length, m.d_model))
        self.dropout = nn.Dropout(m.dropout)
        sizes = (m.d_model, m.heads, m.d_ff, m.dropout, m.activation)
        pre = m.norm == "pre"
        # The encoder is the one nn.Transformer would make, less a warning about inference.
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, batch_first=True, norm_first=pre),
            m.encoder_layers,
            nn.LayerNorm(m.d_model),
            enable_nested_tensor=False,
        )
        decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*sizes, batch_first=True, norm_first=pre),
            m.decoder_layers,
            nn.LayerNorm(m.d_model),
        )
        self.transformer = nn.Transformer(
            m.d_model, m.heads, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
        )

    def forward(self, source_BS: Tensor, input_BT: Tensor) -> Tensor:
        """Return logits B T V."""
        T = input_BT.shape[1]
        future_TT = torch.ones(T, T, dtype=torch.bool, device=input_BT.device).triu(1)
        out = self.transformer(
            self._embed(source_BS),
            self._embed(input_BT),
            tgt_mask=future_TT,
            src_key_padding_mask=source_BS == PAD,
            tgt_key_padding_mask=input_BT == PAD,
            memory_key_padding_mask=source_BS == PAD,
            tgt_is_causal=True,
        )
        return F.linear(out, self.pieces.weight)

    def _embed(self, ids_BL: Tensor) -> Tensor:
        x: Tensor = self.pieces(ids_BL) * math.sqrt(self.table.shape[1])
        embedded: Tensor = self.dropout(x + self.table[: ids_BL.shape[1]])
        return embedded


def build_torch_transformer(config: Config) -> nn.Module:
    """Return PyTorch's nn.Transformer, wrapped as in its tutorial."""
    return TorchTransformer(config)
