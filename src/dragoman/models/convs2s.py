"""ConvS2S (Gehring et al., 2017, arXiv 1705.03122) translates by convolutions alone.

Sections are of that paper.
"""

# R rows, S source length, T target length, B sentences, K beams, P history, M model width

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.models.api import Model, Rows, State
from dragoman.models.attention import AttentionMask, RecordableAttention
from dragoman.models.convolution import Convolution, ConvolutionState
from dragoman.models.positions import LearnedPositions

SQRT_HALF = math.sqrt(0.5)
"""A sum of two parts of equal variance, times this, has that variance too (§3.4)."""


def _initialise(layer: nn.Linear | nn.Conv1d, variance: float) -> None:
    """Initialise by N(0, variance / n), n inputs to each output, and biases by zero (§3.5)."""
    nn.init.normal_(layer.weight, std=math.sqrt(variance / layer.weight[0].numel()))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


class TokenEmbedding(nn.Embedding):
    """Learn a vector for each piece."""

    def reset_parameters(self) -> None:
        """Initialise by N(0, 0.1²) (§3.5)."""
        nn.init.normal_(self.weight, std=0.1)


class Positions(LearnedPositions):
    """Learn a vector for each position."""

    def reset_parameters(self) -> None:
        """Initialise by N(0, 0.1²) (§3.5)."""
        nn.init.normal_(self.weight, std=0.1)


class Embedding(nn.Module):
    """Embed pieces plus learned positions (§3.1), then dropout (§4.2)."""

    def __init__(self, config: ModelConfig, pieces: TokenEmbedding) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.pieces = pieces
        self.positions = Positions(config.max_positions, config.d_model)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return … M of ids and positions."""
        x: Tensor = self.pieces(ids) + self.positions(positions)
        return F.dropout(x, self.dropout, self.training)


class GatedConvolution(nn.Module):
    """Compute A ⊗ σ(B), where [A B] is a convolution of the input: gated linear units (§3.2)."""

    def __init__(self, config: ModelConfig, *, causal: bool = False) -> None:
        super().__init__()
        self.dropout = config.dropout
        width = config.d_model
        self.convolution = Convolution(width, 2 * width, config.kernel, causal=causal)
        # The gate lets a quarter of the variance through, dropout adds a share: §3.5.
        _initialise(self.convolution, 4 * (1 - config.dropout))

    def forward(self, x_RLM: Tensor, rows: Rows) -> Tensor:
        """Return R L M of R L M."""
        x = F.dropout(x_RLM, self.dropout, self.training)
        return F.glu(self.convolution(x, rows))

    def step(self, x_BKM: Tensor, history_BKPM: Tensor) -> tuple[Tensor, Tensor]:
        """Return B K M at one new position, and the history with it."""
        y, history = self.convolution.step(x_BKM, history_BKPM)
        return F.glu(y), history


class SourceAttention(RecordableAttention):
    """Attend to the source from one decoder layer (§3.3): one head, its scores not scaled."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.query = nn.Linear(config.d_model, config.d_model)
        _initialise(self.query, 1)

    def forward(self, h_RTM: Tensor, g_RTM: Tensor, source: tuple[Tensor, ...]) -> Tensor:
        """Return the context c, R T M, of layer output h and target embedding g.

        The source is keys z and values z + e, R S M each, and a mask R #T S.
        """
        z_RSM, values_RSM, mask_RTS = source
        d_RTM = self.query(h_RTM) + g_RTM  # eq. 1
        scores_RTS = d_RTM @ z_RSM.transpose(1, 2)
        weights_RTS = scores_RTS.masked_fill(~mask_RTS, -torch.inf).softmax(-1)
        if self.observer is not None:
            self.observer(weights_RTS[:, None])
        # m √(1/m): a mean of m vectors has 1/m of their variance (§3.4).
        m_RT1 = mask_RTS.sum(-1, keepdim=True).to(values_RSM.dtype)
        c_RTM: Tensor = weights_RTS @ values_RSM * m_RT1.sqrt()  # eq. 2
        return c_RTM


class EncoderLayer(nn.Module):
    """Apply a gated convolution and the connection around it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config)

    def forward(self, x: Tensor, rows: Rows) -> Tensor:
        """Return R S M of R S M."""
        out: Tensor = (x + self.convolution(x, rows)) * SQRT_HALF
        return out


class DecoderLayer(nn.Module):
    """Apply a causal gated convolution and attention to the source, and connect them."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config, causal=True)
        self.source_attention = SourceAttention(config)

    def forward(self, x: Tensor, g: Tensor, rows: Rows, source: tuple[Tensor, ...]) -> Tensor:
        """Return R T M of R T M and the target's embedding g, all positions at once."""
        return self._connect(x, self.convolution(x, rows), g, source)

    def step(
        self, x: Tensor, g: Tensor, history: Tensor, source: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor]:
        """Return B K M at one new position of every hypothesis, and the history with it."""
        h, history = self.convolution.step(x, history)
        # The K hypotheses of a sentence are K queries to the one copy of its source.
        return self._connect(x, h, g, source), history

    def _connect(self, x: Tensor, h: Tensor, g: Tensor, source: tuple[Tensor, ...]) -> Tensor:
        attended: Tensor = (h + self.source_attention(h, g, source)) * SQRT_HALF
        return (x + attended) * SQRT_HALF


class ConvS2S(Model):
    """Stack gated convolutions, with attention to the source in every decoder layer.

    All positions are computed at once, as in the Transformer that came five weeks later. Its
    limit: a layer joins `kernel` neighbours, so that what is n apart meets only after n / kernel
    layers (Table 1 of the Transformer's paper), and each decoder layer has but one head.

    Differs from its paper: one width throughout, so that nothing maps between the embeddings' and
    the convolutions'; one matrix for all embeddings, unless told otherwise; no weight
    normalisation, and the encoder's gradients are not divided by the number of attentions: Adam
    divides every gradient by its own size.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.dropout = config.dropout
        self.projection = TokenEmbedding(vocabulary, config.d_model)
        source, target = (
            self.projection
            if config.shared_embeddings
            else TokenEmbedding(vocabulary, config.d_model)
            for _ in range(2)
        )
        self.source_embedding = Embedding(config, source)
        self.target_embedding = Embedding(config, target)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))

    def encode(self, source: Rows) -> tuple[Tensor, Tensor]:
        """Return keys z and values z + e for attention, R S M each."""
        e: Tensor = self.source_embedding(source.ids_RL, source.positions_RL)
        z = e
        for layer in self.encoder:
            z = layer(z, source)
        return z, (z + e) * SQRT_HALF

    def features(self, source: Rows, target: Rows) -> Tensor:
        """Return the decoder's output at every target position, as `Model.features` says."""
        memory = (*self.encode(source), AttentionMask(target, source).mask[:, 0])
        g: Tensor = self.target_embedding(target.ids_RL, target.positions_RL)
        x = g
        for layer in self.decoder:
            x = layer(x, g, target, memory)
        return F.dropout(x, self.dropout, self.training)

    def _decoder_layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def start(self, source: Rows) -> ConvolutionState:
        """Read the source and return the first state, as `Model.start` says."""
        z, values = self.encode(source)
        histories = [
            layer.convolution.convolution.empty_history(z) for layer in self._decoder_layers()
        ]
        return ConvolutionState(histories, z, values, (source.segments_RL > 0)[:, None])

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, ConvolutionState]:
        """Append a piece to every hypothesis, as `Model.step` says."""
        assert isinstance(state, ConvolutionState)
        g: Tensor = self.target_embedding(ids_BK, torch.full_like(ids_BK, state.length))
        x = g
        for n, layer in enumerate(self._decoder_layers()):
            x, state.histories[n] = layer.step(x, g, state.histories[n], state.source)
        state.length += 1
        return self.log_probabilities(x), state
