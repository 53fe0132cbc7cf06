"""Recurrent encoder-decoders read one position after another and hand a state on.

Sutskever et al. 2014 (LSTM) and Cho et al. 2014 (the GRU) hand the decoder one vector for the
whole source; Bahdanau et al. 2015 and Luong et al. 2015 let it attend to every source position.
"""

# R rows, S source length, T target length, B sentences, K beams, N real positions of all sentences
# (in the order of `UnpackedSentences`), M model width, J decoder layers, D width of a layer's
# state, n some of the sentences

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dragoman.config import ModelConfig
from dragoman.models.api import Model, Rows, State
from dragoman.models.attention import Linear, RecordableAttention
from dragoman.models.transformer import TokenEmbedding
from dragoman.models.unpacking import UnpackedSentences, group_by_length, unpack

MAX_ELEMENTS = 2**25
"""Attention compares so many elements at once; additive attention has d_model for each pair."""


class RecurrentLayer(nn.Module):
    """Run one recurrent layer: tanh units, LSTM or GRU, in one direction or in both.

    A state is one vector of width D: h, or for an LSTM h and c.
    """

    def __init__(
        self, kind: str, inputs: int, d_model: int, *, bidirectional: bool = False
    ) -> None:
        super().__init__()
        cells = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
        self.cell: nn.RNNBase = cells[kind](
            inputs, d_model, batch_first=True, bidirectional=bidirectional
        )
        self.states = 2 if kind == "lstm" else 1
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise what goes from state to state orthogonally, and the rest by Xavier.

        An LSTM begins by remembering: the biases of its forget gate are 1.
        """
        M = self.cell.hidden_size
        for name, parameter in self.cell.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)
                if self.states == 2 and name.startswith("bias_ih"):
                    nn.init.ones_(parameter.data[M : 2 * M])
                continue
            for gate in parameter.data.split(M):
                (nn.init.orthogonal_ if "hh" in name else nn.init.xavier_uniform_)(gate)

    def forward(
        self, x_NM: Tensor, sentences: UnpackedSentences, first_BD: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return N M of whole sentences and each last state h, B M; twice M in both directions."""
        packed = sentences.pack(self._full(x_NM))
        # Rounding to bf16 at every position adds up over a sentence; and under autocast cuDNN
        # would compute in fp16, in which small gradients vanish.
        with torch.autocast(x_NM.device.type, enabled=False):
            y, last = self.cell(packed, None if first_BD is None else self._split(first_BD))
        h = last[0] if self.states == 2 else last
        return y.data, h.transpose(0, 1).flatten(1)

    def step(self, x_BKM: Tensor, state_BKD: Tensor) -> tuple[Tensor, Tensor]:
        """Return B K M at one position of every hypothesis, and the state after it."""
        B, K, _ = x_BKM.shape
        x = self._full(x_BKM.reshape(B * K, 1, -1))
        with torch.autocast(x.device.type, enabled=False):
            y, last = self.cell(x, self._split(state_BKD.flatten(0, 1)))
        state = torch.cat(last, -1) if self.states == 2 else last
        return y.view(B, K, -1), state.view(B, K, -1)

    def _full(self, x: Tensor) -> Tensor:
        return x.to(next(self.cell.parameters()).dtype)

    def _split(self, state_BD: Tensor) -> Tensor | tuple[Tensor, ...]:
        parts = tuple(p.contiguous() for p in self._full(state_BD)[None].chunk(self.states, -1))
        return parts if self.states == 2 else parts[0]


class BidirectionalLayer(nn.Module):
    """Run a layer in both directions and bring its two outputs back to one width."""

    def __init__(self, kind: str, d_model: int) -> None:
        super().__init__()
        self.layer = RecurrentLayer(kind, d_model, d_model, bidirectional=True)
        self.merge = Linear(2 * d_model, d_model)

    def forward(self, x_NM: Tensor, sentences: UnpackedSentences) -> tuple[Tensor, Tensor]:
        """Return N M of whole sentences, and B M of where each direction ended."""
        y, last = self.layer(x_NM, sentences)
        return self.merge(y), self.merge(last)


@dataclass(slots=True)
class EncodedSource:
    """Hold the source as stepwise decoding reads it: once a sentence, whatever the beam."""

    keys_BSM: Tensor
    values_BSM: Tensor
    real_BS: Tensor

    def keep(self, sentences_B: Tensor) -> EncodedSource:
        """Return only these sentences, in this order."""
        return EncodedSource(*(getattr(self, f.name)[sentences_B] for f in fields(self)))


class FixedVector(nn.Module):
    """Give the decoder one vector, the encoder's last output, as the context of every step."""

    def forward(
        self,
        queries_NM: Tensor,
        target: UnpackedSentences,
        memory_NM: Tensor,
        source: UnpackedSentences,
    ) -> Tensor:
        """Return the context at every target position, N M."""
        return memory_NM.index_select(0, source.last_B[target.sentence_N])

    def encode_source(self, memory_NM: Tensor, source: UnpackedSentences) -> EncodedSource:
        """Return what `attend` reads."""
        vector_B1M = memory_NM.index_select(0, source.last_B)[:, None]
        return EncodedSource(vector_B1M, vector_B1M, torch.ones_like(vector_B1M[..., 0]).bool())

    def attend(self, queries_BKM: Tensor, memory: EncodedSource) -> Tensor:
        """Return the context of every hypothesis, B K M."""
        return memory.values_BSM.expand(-1, queries_BKM.shape[1], -1)


class SourceAttention(RecordableAttention):
    """Make a context for each target position: the h_i of the source, weighted by softmax."""

    size = 16
    """Each pair of positions takes so many elements: its score, and a share of padding."""

    def project(self, queries: Tensor) -> Tensor:
        """Return what of a query can be computed before it meets a key."""
        return queries

    def keys(self, memory: Tensor) -> Tensor:
        """Return what of a source position can be computed before it meets a query."""
        return memory

    def score(self, queries_nTM: Tensor, keys_nSM: Tensor) -> Tensor:
        """Return the scores of every pair, n T S."""
        raise NotImplementedError

    def forward(
        self,
        queries_NM: Tensor,
        target: UnpackedSentences,
        memory_NM: Tensor,
        source: UnpackedSentences,
    ) -> Tensor:
        """Return the context at every target position, N M.

        It is computed for sentences of similar lengths at a time. In a large batch the comparisons
        are computed again in the backward pass instead of kept.
        """
        queries_NM, keys_NM = self.project(queries_NM), self.keys(memory_NM)
        groups = list(group_by_length(source, target, MAX_ELEMENTS // self.size))
        if self.observer is not None:  # it wants all weights in one tensor, in order
            all_sentences = torch.arange(len(source.lengths_B), device=memory_NM.device)
            groups = [(all_sentences, len(target.counts_T), len(source.counts_T))]
        contexts, weights = [], []
        starts_B = torch.empty_like(target.ranks_B)
        end = 0
        for chosen_n, T, S in groups:
            q, _ = target.pad(queries_NM, chosen_n, T)
            k, real = source.pad(keys_NM, chosen_n, S)
            v = k if keys_NM is memory_NM else source.pad(memory_NM, chosen_n, S)[0]
            if len(groups) > 1 and torch.is_grad_enabled():
                c, w = checkpoint(
                    self._attend, q, k, v, real, use_reentrant=False, preserve_rng_state=False
                )
            else:
                c, w = self._attend(q, k, v, real)
            starts_B[chosen_n] = end + T * torch.arange(len(c), device=c.device)
            end += len(c) * T
            contexts.append(c.flatten(0, 1))
            weights.append(w)
        if self.observer is not None:
            self.observer(weights[0][:, None])
        places_N = starts_B[target.sentence_N] + target.time_N
        return torch.cat(contexts).index_select(0, places_N)

    def encode_source(self, memory_NM: Tensor, source: UnpackedSentences) -> EncodedSource:
        """Return what `attend` reads."""
        values_BSM, real_BS = source.pad(memory_NM)
        return EncodedSource(source.pad(self.keys(memory_NM))[0], values_BSM, real_BS)

    def attend(self, queries_BKM: Tensor, memory: EncodedSource) -> Tensor:
        """Return the context of every hypothesis, B K M: K queries to the one copy of a source."""
        q = self.project(queries_BKM)
        count = max(1, MAX_ELEMENTS // (self.size * q.shape[1] * memory.real_BS.shape[1]))
        parts = [t.split(count) for t in (q, memory.keys_BSM, memory.values_BSM, memory.real_BS)]
        attended = [self._attend(*part) for part in zip(*parts, strict=True)]
        if self.observer is not None:
            self.observer(torch.cat([w for _, w in attended])[:, None])
        return torch.cat([c for c, _ in attended])

    def _attend(
        self, q_nTM: Tensor, k_nSM: Tensor, v_nSM: Tensor, real_nS: Tensor
    ) -> tuple[Tensor, Tensor]:
        scores_nTS = self.score(q_nTM, k_nSM).masked_fill(~real_nS[:, None], -torch.inf)
        full = torch.promote_types(scores_nTS.dtype, torch.float32)
        weights_nTS = scores_nTS.softmax(-1, dtype=full)
        return weights_nTS.to(v_nSM.dtype) @ v_nSM, weights_nTS


class DotAttention(SourceAttention):
    """Score by s_tᵀ h_i (Luong et al. 2015)."""

    def score(self, queries_nTM: Tensor, keys_nSM: Tensor) -> Tensor:
        """Return the scores of the source positions, as `SourceAttention.score` says."""
        return queries_nTM @ keys_nSM.transpose(1, 2)


class AdditiveAttention(SourceAttention):
    """Score by vᵀ tanh(W s_t + U h_i) (Bahdanau et al. 2015)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.size = d_model
        self.query = Linear(d_model, d_model)
        self.key = Linear(d_model, d_model, bias=False)
        self.scorer = Linear(d_model, 1, bias=False)

    def project(self, queries: Tensor) -> Tensor:
        """Return W s_t, the decoder's state as the scores need it."""
        out: Tensor = self.query(queries)
        return out

    def keys(self, memory: Tensor) -> Tensor:
        """Return U h_i, the source positions as the scores need them."""
        out: Tensor = self.key(memory)
        return out

    def score(self, queries_nTM: Tensor, keys_nSM: Tensor) -> Tensor:
        """Return the scores of the source positions, as `SourceAttention.score` says."""
        compared_nTSM = torch.tanh(queries_nTM[:, :, None] + keys_nSM[:, None])
        scores: Tensor = self.scorer(compared_nTSM)
        return scores.squeeze(-1)


class RecurrentState(State):
    """Hold the states of all decoder layers for each hypothesis, and the source."""

    def __init__(self, hidden_BKJD: Tensor, memory: EncodedSource) -> None:
        self.hidden_BKJD = hidden_BKJD
        self.memory = memory

    def expand(self, beams: int) -> RecurrentState:
        """Repeat the hypothesis of each sentence, as `State.expand` says."""
        self.hidden_BKJD = self.hidden_BKJD.expand(-1, beams, -1, -1)
        return self

    def reorder(self, parents_BK: Tensor) -> RecurrentState:
        """Let hypotheses continue others, as `State.reorder` says."""
        sentences = torch.arange(len(parents_BK), device=parents_BK.device)[:, None]
        self.hidden_BKJD = self.hidden_BKJD[sentences, parents_BK]
        return self

    def keep(self, sentences_B: Tensor) -> RecurrentState:
        """Keep only some sentences, as `State.keep` says."""
        self.hidden_BKJD = self.hidden_BKJD[sentences_B]
        self.memory = self.memory.keep(sentences_B)
        return self


def embed_pieces(pieces: TokenEmbedding, ids: Tensor, dropout: float) -> Tensor:
    """Return vectors of pieces, scaled so that gates are neither shut nor open, with dropout."""
    x: Tensor = pieces(ids) * math.sqrt(pieces.embedding_dim)
    return F.dropout(x, dropout, dropout > 0)


class Recurrent(Model):
    """Encode the source into states, and decode from the last of them.

    Without attention (Sutskever et al. 2014; Cho et al. 2014) the source is one vector c of width
    d_model, however long the sentence. The decoder's layers start from tanh(W c), and every
    output sees c again, as in Cho et al. Its limit: a long sentence does not fit into one vector,
    and what the decoder needs first, the encoder has read longest ago.

    With attention (Bahdanau et al. 2015; Luong et al. 2015) the encoder reads in both directions,
    and c becomes c_t, chosen anew for every target position. Its limit: each state waits for the
    one before it, so that a sentence of n words takes n steps in training too (Table 1).

    In both, the output is tanh(W [c; s_t]), Luong's attentional vector. Differs from Bahdanau et
    al. and from Luong's input feeding: the context does not go back into the recurrence, so that
    each layer reads a whole sentence in one call when the target is known. Differs from Sutskever
    et al.: the source is not reversed, and of the encoder's states only the top layer's h is
    handed over, so that there is indeed one vector.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        M, kind, attention = config.d_model, config.cell, config.source_attention
        self.source_pieces = TokenEmbedding(vocabulary, M)
        shared = config.shared_embeddings
        self.target_pieces = self.source_pieces if shared else TokenEmbedding(vocabulary, M)
        self.encoder = nn.ModuleList(
            RecurrentLayer(kind, M, M) if attention == "none" else BidirectionalLayer(kind, M)
            for _ in range(config.encoder_layers)
        )
        self.decoder = nn.ModuleList(
            RecurrentLayer(kind, M, M) for _ in range(config.decoder_layers)
        )
        D = 2 * M if kind == "lstm" else M
        self.begin = nn.ModuleList(Linear(M, D) for _ in range(config.decoder_layers))
        self.source_attention: FixedVector | SourceAttention
        if attention == "none":
            self.source_attention = FixedVector()
        elif attention == "dot":
            self.source_attention = DotAttention()
        else:
            self.source_attention = AdditiveAttention(M)
        self.output = Linear(2 * M, M)
        self.projection = self.source_pieces if shared else TokenEmbedding(vocabulary, M)

    def encode(self, source: Rows, sentences: UnpackedSentences) -> tuple[Tensor, Tensor]:
        """Return the encoder's outputs, N M, and its last state of each sentence, B M."""
        x = self._embed(self.source_pieces, sentences.gather(source.ids_RL))
        for layer in self.encoder:
            x, last_BM = layer(x, sentences)
            x = self._drop(x)
        return x, last_BM

    def features(self, source: Rows, target: Rows) -> Tensor:
        """Return the decoder's output at every target position, as `Model.features` says."""
        src, tgt = unpack(source, target)
        memory_NM, last_BM = self.encode(source, src)
        x = self._embed(self.target_pieces, tgt.gather(target.ids_RL))
        for layer, begin in zip(self.decoder, self.begin, strict=True):
            x, _ = layer(x, tgt, torch.tanh(begin(last_BM)))
            x = self._drop(x)
        context_NM = self.source_attention(x, tgt, memory_NM, src)
        return tgt.to_rows(self._attentional_vector(context_NM, x))

    def start(self, source: Rows) -> RecurrentState:
        """Read the source and return the first state, as `Model.start` says."""
        (src,) = unpack(source)
        memory_NM, last_BM = self.encode(source, src)
        hidden_BJD = torch.stack([torch.tanh(begin(last_BM)) for begin in self.begin], 1)
        return RecurrentState(
            hidden_BJD[:, None], self.source_attention.encode_source(memory_NM, src)
        )

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, RecurrentState]:
        """Append a piece to every hypothesis, as `Model.step` says."""
        assert isinstance(state, RecurrentState)
        x = self._embed(self.target_pieces, ids_BK)
        hidden = []
        for layer, old_BKD in zip(self._decoder_layers(), state.hidden_BKJD.unbind(2), strict=True):
            x, new_BKD = layer.step(x, old_BKD)
            hidden.append(new_BKD)
        state.hidden_BKJD = torch.stack(hidden, 2)
        context_BKM = self.source_attention.attend(x, state.memory)
        return self.log_probabilities(self._attentional_vector(context_BKM, x)), state

    def _decoder_layers(self) -> list[RecurrentLayer]:
        return [layer for layer in self.decoder if isinstance(layer, RecurrentLayer)]

    def _attentional_vector(self, context: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.output(torch.cat([context, x.to(context.dtype)], -1)))

    def _embed(self, pieces: TokenEmbedding, ids: Tensor) -> Tensor:
        return embed_pieces(pieces, ids, self.config.dropout if self.training else 0.0)

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, self.training)
