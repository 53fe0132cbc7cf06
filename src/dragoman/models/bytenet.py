"""ByteNet (Kalchbrenner et al., 2016, arXiv 1610.10099) translates in linear time.

Sections are of that paper's second version. A "column" is a position of the unfolded source.
"""

# R rows, S source length, T target length, L either, B sentences, K beams, P history,
# C columns of all sentences, M model width

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.models.api import Model, Rows, State
from dragoman.models.attention import Linear
from dragoman.models.convolution import Convolution, ConvolutionState
from dragoman.models.transformer import TokenEmbedding

STRETCH: Final = Fraction(6, 5)
"""This is a of |t̂| = a |s| + b (§3.2): columns for each piece of the source s."""
ROOM: Final = 4
"""This is b. Theirs is 0, for characters, of which a sentence has more than pieces."""
DILATIONS: Final = (1, 2, 4, 8, 16)
"""A stack's convolutions have these in turn, over and over (§3.5)."""


class Unfolding:
    """Lay the columns of all sentences of a batch end to end in one row without padding."""

    def __init__(self, source: Rows) -> None:
        segments = source.segments_RL.long()
        # How many pieces segment g of row r has; no segment has a higher number than S.
        lengths_RG = segments.new_zeros(len(segments), segments.shape[1] + 1)
        lengths_RG.scatter_add_(1, segments, (segments > 0).long())
        stretched_RG = -(-lengths_RG * STRETCH.numerator // STRETCH.denominator)
        self.widths_RG = (stretched_RG + ROOM) * (lengths_RG > 0)
        ends_RG = self.widths_RG.flatten().cumsum(0).view_as(self.widths_RG)
        self.starts_RG = ends_RG - self.widths_RG
        self.columns = int(ends_RG.flatten()[-1])  # C: waits for the GPU

        sentences = torch.arange(ends_RG.numel(), device=segments.device)
        sentences_C = sentences.repeat_interleave(
            self.widths_RG.flatten(), output_size=self.columns
        )
        positions_C = torch.arange(self.columns, device=segments.device)
        positions_C = positions_C - self.starts_RG.flatten()[sentences_C]
        no_ids = torch.zeros_like(sentences_C)
        self.rows = Rows(no_ids[None], sentences_C[None] + 1, positions_C[None])
        """All columns are one row, 1 C, without ids."""

    def column_indices(self, rows: Rows) -> Tensor:
        """Return the column at the position of each piece, R L; C where there is none."""
        segments, positions = rows.segments_RL.long(), rows.positions_RL.long()
        columns_RL = self.starts_RG.gather(1, segments) + positions
        return columns_RL.where(positions < self.widths_RG.gather(1, segments), self.columns)

    def unfold(self, x_RSM: Tensor, source: Rows) -> Tensor:
        """Return a source's vectors at its columns, 1 C M; zeros where it has ended."""
        blank = x_RSM.new_zeros(self.columns + 1, x_RSM.shape[-1])
        filled = blank.index_copy(0, self.column_indices(source).flatten(), x_RSM.flatten(0, 1))
        return filled[None, :-1]

    def gather(self, x_1CM: Tensor, rows: Rows) -> Tensor:
        """Return the column of each position, R L M; zeros where there is none."""
        return F.pad(x_1CM[0], (0, 0, 0, 1))[self.column_indices(rows)]


class Block(nn.Module):
    """Add to x what a dilated convolution of half the width makes of it (§3.6, with ReLUs)."""

    def __init__(self, config: ModelConfig, dilation: int, *, causal: bool) -> None:
        super().__init__()
        wide, narrow = config.d_model, max(1, config.d_model // 2)
        self.dropout = config.dropout
        self.norm_down, self.down = nn.LayerNorm(wide), Linear(wide, narrow)
        self.norm_across = nn.LayerNorm(narrow)
        self.across = Convolution(narrow, narrow, config.kernel, dilation=dilation, causal=causal)
        self.norm_up, self.up = nn.LayerNorm(narrow), Linear(narrow, wide)

    def forward(self, x_RLM: Tensor, rows: Rows) -> Tensor:
        """Return R L M of R L M, all positions at once."""
        return self._after(x_RLM, self.across(self._before(x_RLM), rows))

    def step(self, x_BKM: Tensor, history: Tensor) -> tuple[Tensor, Tensor]:
        """Return B K M at one new position of every hypothesis, and the history with it."""
        y, history = self.across.step(self._before(x_BKM), history)
        return self._after(x_BKM, y), history

    def _before(self, x: Tensor) -> Tensor:
        return F.relu(self.norm_across(self.down(F.relu(self.norm_down(x)))))

    def _after(self, x: Tensor, y: Tensor) -> Tensor:
        y = self.up(F.relu(self.norm_up(y)))
        return x + F.dropout(y, self.dropout, self.training)


def _stack(config: ModelConfig, blocks: int, *, causal: bool) -> nn.ModuleList:
    return nn.ModuleList(
        Block(config, DILATIONS[n % len(DILATIONS)], causal=causal) for n in range(blocks)
    )


class ByteNet(Model):
    """Stack dilated convolutions, the decoder's on the encoder's, column by column.

    Time is linear in the length, and log n layers join what is n apart (Table 1 of the
    Transformer's paper). Its limit: no attention. Position t of the decoder reads the source at
    column t and remembers the columns before; what stands elsewhere in the source must have been
    carried there by convolutions of fixed weights, whatever the sentence says.

    Differs from its paper: over pieces, not characters; one width for embeddings and stacks.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.scale, self.dropout = math.sqrt(config.d_model), config.dropout
        self.projection = TokenEmbedding(vocabulary, config.d_model)
        self.source_pieces, self.target_pieces = (
            self.projection
            if config.shared_embeddings
            else TokenEmbedding(vocabulary, config.d_model)
            for _ in range(2)
        )
        self.encoder = _stack(config, config.encoder_layers, causal=False)
        self.encoder_norm = nn.LayerNorm(config.d_model)
        self.join = Linear(config.d_model, config.d_model)
        self.decoder = _stack(config, config.decoder_layers, causal=True)
        self.decoder_norm = nn.LayerNorm(config.d_model)
        self.output = Linear(config.d_model, config.d_model)

    def _embed(self, ids: Tensor, pieces: nn.Module) -> Tensor:
        return F.dropout(pieces(ids) * self.scale, self.dropout, self.training)

    def encode(self, source: Rows) -> tuple[Unfolding, Tensor]:
        """Return where the columns are, and what the decoder adds to its input at each, 1 C M."""
        unfolding = Unfolding(source)
        x = unfolding.unfold(self._embed(source.ids_RL, self.source_pieces), source)
        for block in self.encoder:
            x = block(x, unfolding.rows)
        return unfolding, self.join(F.relu(self.encoder_norm(x)))

    def features(self, source: Rows, target: Rows) -> Tensor:
        """Return the decoder's output at every target position, as `Model.features` says."""
        unfolding, columns = self.encode(source)
        x = self._embed(target.ids_RL, self.target_pieces) + unfolding.gather(columns, target)
        for block in self.decoder:
            x = block(x, target)
        return self._output(x)

    def _output(self, x: Tensor) -> Tensor:
        out: Tensor = self.output(F.relu(self.decoder_norm(x)))
        return out

    def _decoder_blocks(self) -> list[Block]:
        return [block for block in self.decoder if isinstance(block, Block)]

    def start(self, source: Rows) -> ConvolutionState:
        """Read the source and return the first state, as `Model.start` says."""
        unfolding, columns = self.encode(source)
        width = int(unfolding.widths_RG.max())
        lengths_B = torch.full_like(source.ids_RL[:, 0], width)
        everywhere = Rows.one_a_row(source.ids_RL.new_zeros(len(lengths_B), width), lengths_B)
        columns_BCM = unfolding.gather(columns, everywhere)
        histories = [block.across.empty_history(columns_BCM) for block in self._decoder_blocks()]
        return ConvolutionState(histories, columns_BCM)

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, ConvolutionState]:
        """Append a piece to every hypothesis, as `Model.step` says."""
        assert isinstance(state, ConvolutionState)
        x = self._embed(ids_BK, self.target_pieces)
        (columns_BCM,) = state.source
        # No column, no addend: an empty sum past the last.
        x = x + columns_BCM[:, state.length : state.length + 1].sum(1, keepdim=True)
        for n, block in enumerate(self._decoder_blocks()):
            x, state.histories[n] = block.step(x, state.histories[n])
        state.length += 1
        return self.log_probabilities(self._output(x)), state
