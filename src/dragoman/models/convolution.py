"""Convolution works over packed rows, and a convolutional decoder remembers its last inputs."""

# R rows, L row length, M input width, N output width, B sentences, K beams,
# P positions that a causal convolution reaches back

from __future__ import annotations

from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.models.api import Rows, State


class Convolution(nn.Conv1d):
    """Apply `nn.Conv1d` to each sentence alone: past a sentence's ends there are zeros.

    Dilated, a position sees every `dilation`-th neighbour. Centred, it sees as many on the left as
    on the right; causal, only itself and the left. Shapes alone decide what is computed.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, dilation: int = 1, causal: bool = False
    ) -> None:
        super().__init__(inputs, outputs, kernel, dilation=dilation)
        self.span = (kernel - 1) * dilation
        self.back = self.span if causal else self.span // 2

    def forward(self, x_RLM: Tensor, rows: Rows) -> Tensor:  # type: ignore[override]
        """Return R L N; at padding it is the bias."""
        length, segments = x_RLM.shape[1], rows.segments_RL
        padding = (self.back, self.span - self.back)
        x_all = F.pad(x_RLM, (0, 0, *padding))
        segments_all = F.pad(segments, padding)
        taps = []
        for first in range(0, self.span + 1, self.dilation[0]):
            tapped = slice(first, first + length)
            same_RL = (segments_all[:, tapped] == segments) & (segments > 0)
            taps.append(x_all[:, tapped].masked_fill(~same_RL[..., None], 0))
        return self._product(torch.cat(taps, -1))

    def step(self, x_BKM: Tensor, history_BKPM: Tensor) -> tuple[Tensor, Tensor]:
        """Return B K N at one new position of every hypothesis, and the history; causal only."""
        longer = torch.cat([history_BKPM, x_BKM[:, :, None]], 2)
        return self._product(longer[:, :, :: self.dilation[0]].flatten(2)), longer[:, :, 1:]

    def empty_history(self, source_B: Tensor) -> Tensor:
        """Return the history of one hypothesis of each sentence at its start, B 1 P M: zeros."""
        return source_B.new_zeros(len(source_B), 1, self.span, self.in_channels)

    def _product(self, taps: Tensor) -> Tensor:
        """Return … N of the inputs of all taps end to end, the leftmost first."""
        return F.linear(taps, self.weight.transpose(1, 2).flatten(1), self.bias)


class ConvolutionState(State):
    """Hold the last inputs of every convolution of a decoder, and what it needs of the source."""

    def __init__(self, histories: list[Tensor], *source: Tensor) -> None:
        self.length = 0  # pieces read
        self.histories = histories  # B K P M each: for every hypothesis
        self.source = source  # B … each: once a sentence

    def expand(self, beams: int) -> Self:
        """Repeat the hypothesis of each sentence, as `State.expand` says."""
        self.histories = [history.expand(-1, beams, -1, -1) for history in self.histories]
        return self

    def reorder(self, parents_BK: Tensor) -> Self:
        """Let hypotheses continue others, as `State.reorder` says."""
        sentences = torch.arange(len(parents_BK), device=parents_BK.device)[:, None]
        self.histories = [history[sentences, parents_BK] for history in self.histories]
        return self

    def keep(self, sentences_B: Tensor) -> Self:
        """Keep only some sentences, as `State.keep` says."""
        self.histories = [history[sentences_B] for history in self.histories]
        self.source = tuple(tensor[sentences_B] for tensor in self.source)
        return self
