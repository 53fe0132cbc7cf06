"""GNMT (Wu et al. 2016): how far recurrence went before the Transformer."""

# R rows, S source length, T target length, B sentences, K beams, N real positions of all sentences
# (in the order of `Sentences`), M model width, J decoder layers, D width of a layer's state

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.models.api import Model, Rows, State
from dragoman.models.recurrent import AdditiveAttention, Layer, RecurrentState, embed
from dragoman.models.transformer import Pieces
from dragoman.models.unpacking import Sentences, take_apart

__all__ = ["GNMT"]


class GNMT(Model):
    """A deep LSTM with additive attention and residual connections from the third layer on.

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
        self.source_pieces = Pieces(vocabulary, M)
        shared = config.shared_embeddings
        self.target_pieces = self.source_pieces if shared else Pieces(vocabulary, M)
        widths = [M, 2 * M, *[M] * (config.encoder_layers - 2)]
        self.encoder = nn.ModuleList(
            Layer("lstm", width, M, bidirectional=i == 0) for i, width in enumerate(widths)
        )
        self.bottom = Layer("lstm", M, M)
        self.decoder = nn.ModuleList(
            Layer("lstm", 2 * M, M) for _ in range(config.decoder_layers - 1)
        )
        self.source_attention = AdditiveAttention(M)
        self.projection = self.source_pieces if shared else Pieces(vocabulary, M)

    def encode(self, source: Rows, sentences: Sentences) -> Tensor:
        """The encoder's outputs, N M."""
        x = self._embed(self.source_pieces, sentences.gather(source.ids_RL))
        for i, layer in enumerate(self.encoder):
            x = self._add(x, layer(x, sentences)[0], residual=i >= 2)
        return x

    def features(self, source: Rows, target: Rows) -> Tensor:
        """See Model."""
        src, tgt = take_apart(source, target)
        memory_NM = self.encode(source, src)
        x = self._embed(self.target_pieces, tgt.gather(target.ids_RL))
        x = self._add(x, self.bottom(x, tgt)[0])
        context_NM = self.source_attention(x, tgt, memory_NM, src)
        for i, layer in enumerate(self.decoder):
            x = self._add(x, layer(_beside(x, context_NM), tgt)[0], residual=i >= 1)
        return tgt.put_back(x)

    def start(self, source: Rows) -> RecurrentState:
        """See Model."""
        (src,) = take_apart(source)
        memory = self.source_attention.remember(self.encode(source, src), src)
        B, _, M = memory.values_BSM.shape
        nothing = memory.values_BSM.new_zeros(B, 1, self.config.decoder_layers, 2 * M)
        return RecurrentState(nothing, memory)

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, RecurrentState]:
        """See Model."""
        assert isinstance(state, RecurrentState)
        old = state.hidden_BKJD.unbind(2)
        x = self._embed(self.target_pieces, ids_BK)
        y, hidden = self.bottom.step(x, old[0])
        x, new = self._add(x, y), [hidden]
        context_BKM = self.source_attention.look(x, state.memory)
        for i, layer in enumerate(self.decoder):
            assert isinstance(layer, Layer)
            y, hidden = layer.step(_beside(x, context_BKM), old[i + 1])
            x = self._add(x, y, residual=i >= 1)
            new.append(hidden)
        state.hidden_BKJD = torch.stack(new, 2)
        return self.log_probabilities(x), state

    def _embed(self, pieces: Pieces, ids: Tensor) -> Tensor:
        return embed(pieces, ids, self.config.dropout if self.training else 0.0)

    def _add(self, x: Tensor, y: Tensor, *, residual: bool = False) -> Tensor:
        """A layer's output y, with what the layer read added from the third layer on."""
        y = F.dropout(y, self.config.dropout, self.training)
        return x + y if residual else y


def _beside(x: Tensor, context: Tensor) -> Tensor:
    return torch.cat([x, context.to(x.dtype)], -1)
