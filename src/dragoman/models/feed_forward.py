"""The simplest translation model computes each position by itself.

A target position knows its own piece, the source piece at the same position, and the position. No
position sees another, so there is no context and no order beyond the number of a position: it can
learn a dictionary and which word tends to stand where, and no word order. What a model translates
better than this, it owes to attending elsewhere.
"""

# R rows, S source length, T target length, B sentences, K beams, M model width

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.models.api import Model, Rows, State
from dragoman.models.attention import Linear
from dragoman.models.transformer import (
    Embedding,
    Residual,
    ResidualStream,
    TokenEmbedding,
    feed_forward,
    norm,
)


class Layer(nn.Module):
    """Apply one feed-forward layer in its frame."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.feed_forward = feed_forward(config)
        self.around = Residual(config)

    def forward(self, x: ResidualStream, rows: Rows | None = None) -> ResidualStream:
        """Return … M of … M, each position by itself."""
        out: ResidualStream = self.around(x, lambda y: self.feed_forward(y, rows))
        return out


def aligned_source_positions(target: Rows, source: Rows) -> Tensor:
    """Return R T: where in its row the source has the same sentence and position; S where not.

    Sentences lie in the order of their numbers, and padding after them.
    """
    S = source.ids_RL.shape[1]
    sentences_RS = source.segments_RL.masked_fill(source.segments_RL == 0, S + 1)
    wanted_RT = target.segments_RL.contiguous()
    starts_RT = torch.searchsorted(sentences_RS, wanted_RT.to(sentences_RS.dtype))
    places_RT = starts_RT + target.positions_RL
    inside_RT = sentences_RS.gather(1, places_RT.clamp(max=S - 1)) == wanted_RT
    return places_RT.masked_fill(~inside_RT | (places_RT >= S), S)


class FeedForwardState(State):
    """Hold the source and how many pieces have been read; hypotheses differ in nothing else."""

    def __init__(self, memory_BSM: Tensor) -> None:
        self.memory_BSM = memory_BSM  # 0 where there is no source
        self.length = 0

    def expand(self, beams: int) -> FeedForwardState:
        """Repeat the hypothesis of each sentence, as `State.expand` says."""
        return self

    def reorder(self, parents_BK: Tensor) -> FeedForwardState:
        """Let hypotheses continue others, as `State.reorder` says."""
        return self

    def keep(self, sentences_B: Tensor) -> FeedForwardState:
        """Keep only some sentences, as `State.keep` says."""
        self.memory_BSM = self.memory_BSM[sentences_B]
        return self


class FeedForwardModel(Model):
    """Embed, and apply feed-forward layers to one position at a time on both sides.

    Its limit: the piece that follows is guessed from the piece before and from the source piece at
    the same position. Where the two languages order their words differently, or one needs more
    pieces, it is lost; past the source's end it sees nothing of the source.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = Embedding(config, vocabulary)
        self.target_embedding = (
            self.embedding if config.shared_embeddings else Embedding(config, vocabulary)
        )
        self.encoder = nn.ModuleList(Layer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(Layer(config) for _ in range(config.decoder_layers))
        self.both = Linear(2 * config.d_model, config.d_model, bias=False)
        self.around_both = Residual(config)
        pre = config.norm == "pre"
        self.encoder_norm = norm(config) if pre else nn.Identity()
        self.decoder_norm = norm(config) if pre else nn.Identity()
        self.projection = (
            self.embedding.pieces
            if config.shared_embeddings
            else TokenEmbedding(vocabulary, config.d_model)
        )

    def encode(self, source: Rows) -> Tensor:
        """Return what is made of every source piece, R S M."""
        length = source.ids_RL.shape[1]
        x = ResidualStream.of(self.embedding(source.ids_RL, source.positions_RL, length))
        for layer in self.encoder:
            x = layer(x, source)
        out: Tensor = self.encoder_norm(x.residual)
        return out

    def decode(self, x: Tensor, memory: Tensor, rows: Rows | None = None) -> Tensor:
        """Return … M of target pieces and of the source pieces at their places."""
        memory = memory.expand_as(x)  # the hypotheses of a sentence share its source
        stream = self.around_both(
            ResidualStream.of(x), lambda y: self.both(torch.cat([y, memory], -1))
        )
        for layer in self.decoder:
            stream = layer(stream, rows)
        out: Tensor = self.decoder_norm(stream.residual)
        return out

    def features(self, source: Rows, target: Rows) -> Tensor:
        """Return the decoder's output at every target position, as `Model.features` says."""
        places_RT = aligned_source_positions(target, source)
        memory_RSM = nn.functional.pad(self.encode(source), (0, 0, 0, 1))  # 0 at S: no source
        memory_RTM = memory_RSM.gather(1, places_RT[..., None].expand(-1, -1, memory_RSM.shape[-1]))
        x_RTM = self.target_embedding(target.ids_RL, target.positions_RL, target.ids_RL.shape[1])
        return self.decode(x_RTM, memory_RTM, target)

    def start(self, source: Rows) -> FeedForwardState:
        """Read the source and return the first state, as `Model.start` says."""
        return FeedForwardState(self.encode(source) * (source.segments_RL > 0)[..., None])

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, FeedForwardState]:
        """Append a piece to every hypothesis, as `Model.step` says."""
        assert isinstance(state, FeedForwardState)
        now = torch.full_like(ids_BK, state.length)
        memory_B1M = state.memory_BSM[:, state.length : state.length + 1]
        if memory_B1M.shape[1] == 0:
            memory_B1M = torch.zeros_like(state.memory_BSM[:, :1])
        x_BKM = self.target_embedding(ids_BK, now, state.length + 1)
        state.length += 1
        return self.log_probabilities(self.decode(x_BKM, memory_B1M)), state
