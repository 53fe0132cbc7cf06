"""GNMT (Wu et al. 2016) shows how far recurrence went before the Transformer."""

# R rows, S source length, T target length, B sentences, K beams, N real positions of all sentences
# (in the order of `UnpackedSentences`), M model width, J decoder layers, D width of a layer's state

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.models.api import Model, Rows, State
from dragoman.models.recurrent import (
    AdditiveAttention,
    RecurrentLayer,
    RecurrentState,
    embed_pieces,
)
from dragoman.models.transformer import TokenEmbedding
from dragoman.models.unpacking import UnpackedSentences, unpack


class GNMT(Model):
    """Run a deep LSTM with additive attention and residual connections from the third layer on.

    The first encoder layer reads in both directions, the others forward. The decoder's bottom
    layer asks for the context, which every layer above sees beside its input. Its limit: each of
    the layers takes a step for every word; to train it in reasonable time took the authors 96
    GPUs, with a layer or two on each.

    Differs from the paper: the query is the bottom layer's output of this step, not of the one
    before, and that layer does not see a context, so that each layer reads a whole sentence in one
    call when the target is known. Embeddings and projection are shared unless told otherwise; the
    gradient is of likelihood only, without reinforcement learning after.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        for name in ("encoder_layers", "decoder_layers"):
            if getattr(config, name) < 2:
                raise ConfigError(
                    f"model.{name} = {getattr(config, name)} is too small for "
                    'model.architecture = "gnmt", whose first layer differs from those above; try 4'
                )
        self.config = config
        self.vocabulary = vocabulary
        M = config.d_model
        self.source_pieces = TokenEmbedding(vocabulary, M)
        shared = config.shared_embeddings
        self.target_pieces = self.source_pieces if shared else TokenEmbedding(vocabulary, M)
        widths = [M, 2 * M, *[M] * (config.encoder_layers - 2)]
        self.encoder = nn.ModuleList(
            RecurrentLayer("lstm", width, M, bidirectional=i == 0) for i, width in enumerate(widths)
        )
        self.bottom = RecurrentLayer("lstm", M, M)
        self.decoder = nn.ModuleList(
            RecurrentLayer("lstm", 2 * M, M) for _ in range(config.decoder_layers - 1)
        )
        self.source_attention = AdditiveAttention(M)
        self.projection = self.source_pieces if shared else TokenEmbedding(vocabulary, M)

    def encode(self, source: Rows, sentences: UnpackedSentences) -> Tensor:
        """Return the encoder's outputs, N M."""
        x = self._embed(self.source_pieces, sentences.gather(source.ids_RL))
        for i, layer in enumerate(self.encoder):
            x = self._output(x, layer(x, sentences)[0], residual=i >= 2)
        return x

    def features(self, source: Rows, target: Rows) -> Tensor:
        """Return the decoder's output at every target position, as `Model.features` says."""
        src, tgt = unpack(source, target)
        memory_NM = self.encode(source, src)
        x = self._embed(self.target_pieces, tgt.gather(target.ids_RL))
        x = self._output(x, self.bottom(x, tgt)[0])
        context_NM = self.source_attention(x, tgt, memory_NM, src)
        for i, layer in enumerate(self.decoder):
            x = self._output(x, layer(_concatenate(x, context_NM), tgt)[0], residual=i >= 1)
        return tgt.to_rows(x)

    def start(self, source: Rows) -> RecurrentState:
        """Read the source and return the first state, as `Model.start` says."""
        (src,) = unpack(source)
        memory = self.source_attention.encode_source(self.encode(source, src), src)
        B, _, M = memory.values_BSM.shape
        zeros_BKJD = memory.values_BSM.new_zeros(B, 1, self.config.decoder_layers, 2 * M)
        return RecurrentState(zeros_BKJD, memory)

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, RecurrentState]:
        """Append a piece to every hypothesis, as `Model.step` says."""
        assert isinstance(state, RecurrentState)
        old = state.hidden_BKJD.unbind(2)
        x = self._embed(self.target_pieces, ids_BK)
        y, hidden = self.bottom.step(x, old[0])
        x, new = self._output(x, y), [hidden]
        context_BKM = self.source_attention.attend(x, state.memory)
        for i, layer in enumerate(self.decoder):
            assert isinstance(layer, RecurrentLayer)
            y, hidden = layer.step(_concatenate(x, context_BKM), old[i + 1])
            x = self._output(x, y, residual=i >= 1)
            new.append(hidden)
        state.hidden_BKJD = torch.stack(new, 2)
        return self.log_probabilities(x), state

    def _embed(self, pieces: TokenEmbedding, ids: Tensor) -> Tensor:
        return embed_pieces(pieces, ids, self.config.dropout if self.training else 0.0)

    def _output(self, x: Tensor, y: Tensor, *, residual: bool = False) -> Tensor:
        """Return a layer's output y, plus its input x if the layer has a residual connection."""
        y = F.dropout(y, self.config.dropout, self.training)
        return x + y if residual else y


def _concatenate(x: Tensor, context: Tensor) -> Tensor:
    return torch.cat([x, context.to(x.dtype)], -1)
