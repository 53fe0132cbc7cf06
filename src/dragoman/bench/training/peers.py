"""What others offer for the same job, made as their users make it.

Models of the same size, layers, dropout and loss, bf16 autocast and the fused AdamW, on the same
sentences in padded batches of similar length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import Config
from dragoman.data.batching.batches import Batch
from dragoman.data.batching.shuffle import shuffled
from dragoman.errors import ConfigError
from dragoman.models.transformer import sinusoids
from dragoman.text.special_tokens import BOS, EOS, PAD
from dragoman.training.precision import wants_bf16

__all__ = [
    "Kind",
    "Padded",
    "Peer",
    "check_peers",
    "marian",
    "padded_batches",
    "peer_kinds",
    "torch_transformer",
]


# PART bench.padding: The timed sentences as others batch them: of similar length, one a row,
# padded.
#
# Sorted by the length of the longer side and cut where a batch is full, then shuffled, as the
# paper's tensor2tensor did. It is the order that pads these sentences least: sorted by target
# length, half of the source would be padding.


# B sentences of a batch, S and T its source and target lengths


Pair: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Source, decoder's input and expected output, marks included."""


@dataclass(frozen=True, slots=True)
class Padded:
    """A rectangle of sentences on each side."""

    source_BS: Tensor
    input_BT: Tensor
    output_BT: Tensor

    @property
    def source_tokens(self) -> int:
        """Source positions that are not padding."""
        return int((self.source_BS != PAD).sum())

    @property
    def target_tokens(self) -> int:
        """Target positions that are not padding."""
        return int((self.output_BT != PAD).sum())

    def to(self, device: torch.device) -> Padded:
        """The same on a device."""
        tensors = (self.source_BS, self.input_BT, self.output_BT)
        return Padded(*(tensor.to(device, non_blocking=True) for tensor in tensors))


def padded_batches(batches: Iterable[Batch], positions: int) -> list[Padded]:
    """The sentences of packed batches in padded ones of at most `positions` on either side."""
    pairs = sorted(_pairs(batches), key=lambda pair: (_longer(pair), len(pair[0])))
    found = [
        Padded(*(_rectangle(side) for side in zip(*group, strict=True)))
        for group in _groups(pairs, positions)
    ]
    return [found[index] for index in shuffled(np.arange(len(found)), len(found), seed=0)]


def _pairs(batches: Iterable[Batch]) -> Iterator[Pair]:
    for batch in batches:
        for row, segments in enumerate(batch.target_segments):
            for segment in range(1, int(segments.max(initial=0)) + 1):
                source, target = batch.source_segments[row] == segment, segments == segment
                yield (
                    batch.source_ids[row][source],
                    batch.target_input[row][target],
                    batch.target_output[row][target],
                )


def _groups(pairs: Sequence[Pair], positions: int) -> Iterator[Sequence[Pair]]:
    """Runs of pairs that fit together; the last of a run is the longest."""
    start = 0
    for end in range(1, len(pairs) + 1):
        if end == len(pairs) or (end + 1 - start) * _longer(pairs[end]) > positions:
            yield pairs[start:end]
            start = end


def _longer(pair: Pair) -> int:
    return max(len(pair[0]), len(pair[1]))


def _rectangle(sentences: Sequence[np.ndarray]) -> Tensor:
    """int64, as torch's embeddings and losses want it; PAD where a sentence has ended."""
    out = np.full((len(sentences), max(map(len, sentences))), PAD, np.int64)
    for row, sentence in zip(out, sentences, strict=True):
        row[: len(sentence)] = sentence
    return torch.from_numpy(out)


# B sentences of a batch, S and T its source and target lengths, M model width, V vocabulary


Scores: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Logits B T V of source ids B S and the decoder's input ids B T."""


def check_peers(config: Config) -> None:
    """Refuse to compare what cannot be: neither peer has every option of ours."""
    if find_spec("transformers") is None:
        raise ConfigError(
            "--against needs transformers; install it with: pip install 'dragoman[export]'"
        )
    m = config.model
    for name, same in (
        ("architecture", m.architecture == "transformer"),
        ("experts", not m.experts),
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
class Kind:
    """A model to compare with."""

    name: str
    make: Callable[[Config], nn.Module]
    compiled: bool = False


def peer_kinds(device: torch.device) -> list[Kind]:
    """Every peer there is for a device; what is compiled leaves traces, and so comes last."""
    kinds = [Kind("Hugging Face Marian", marian), Kind("torch.nn.Transformer", torch_transformer)]
    if device.type == "cuda":
        kinds.append(Kind("Hugging Face Marian, compiled", marian, compiled=True))
    return kinds


class Peer:
    """A contestant from elsewhere: forward, cross-entropy, backward, AdamW."""

    def __init__(
        self, kind: Kind, config: Config, batches: Sequence[Padded], device: torch.device
    ) -> None:
        torch.manual_seed(config.training.seed)
        self.name = kind.name
        self.steps = len(batches)
        self.target_tokens = sum(batch.target_tokens for batch in batches)
        source_tokens = sum(batch.source_tokens for batch in batches)
        self.source_fill = source_tokens / sum(batch.source_BS.numel() for batch in batches)
        self.target_fill = self.target_tokens / sum(batch.output_BT.numel() for batch in batches)
        model = kind.make(config).to(device).train()
        self.parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
        settings = config.training
        self._scores: Scores = torch.compile(model, dynamic=True) if kind.compiled else model
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
            device.type, torch.bfloat16, enabled=wants_bf16(settings.precision, device)
        )
        self._batches = [batch.to(device) for batch in batches]

    def round(self) -> None:
        """One step on each of the batches, which are on the device already."""
        for batch in self._batches:
            with self._autocast:
                logits_BTV = self._scores(batch.source_BS, batch.input_BT)
                loss = F.cross_entropy(
                    logits_BTV.flatten(0, 1),
                    batch.output_BT.flatten(),
                    ignore_index=PAD,
                    label_smoothing=self._smoothing,
                )
            loss.backward()
            self._optimizer.step()
            self._optimizer.zero_grad()


class Marian(nn.Module):
    """MarianMTModel from ids to logits, its masks made from the padding."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, source_BS: Tensor, input_BT: Tensor) -> Tensor:
        """B T V."""
        out: Tensor = self.model(
            input_ids=source_BS,
            attention_mask=(source_BS != PAD).long(),
            decoder_input_ids=input_BT,
            use_cache=False,
        ).logits
        return out


def marian(config: Config) -> nn.Module:
    """Hugging Face's MarianMTModel; always post-norm."""
    from transformers import MarianConfig, MarianMTModel

    m = config.model
    settings = MarianConfig(
        vocab_size=config.tokenizer.vocabulary,
        max_position_embeddings=config.data.row_length,
        d_model=m.d_model,
        encoder_layers=m.encoder_layers,
        decoder_layers=m.decoder_layers,
        encoder_attention_heads=m.heads,
        decoder_attention_heads=m.heads,
        encoder_ffn_dim=m.d_ff,
        decoder_ffn_dim=m.d_ff,
        activation_function=m.activation,
        dropout=m.dropout,
        attention_dropout=m.attention_dropout,
        activation_dropout=m.activation_dropout,
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
        decoder_start_token_id=BOS,
    )
    return Marian(MarianMTModel(settings))


class TorchTransformer(nn.Module):
    """nn.Transformer with what it leaves to its users: embeddings, positions, projection, masks."""

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
        """B T V."""
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


def torch_transformer(config: Config) -> nn.Module:
    """PyTorch's nn.Transformer, in the wrapping its tutorial gives it."""
    return TorchTransformer(config)
