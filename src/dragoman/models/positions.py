"""Positions tell a model the order of its pieces (§3.5); every position encoding stands here.

Two kinds are added to the embeddings: `SinusoidalPositions`, the paper's, and `LearnedPositions`
(Table 3, row E); `added_positions` makes the one that a config asks for. Two kinds act inside
self-attention: `rotate` turns queries and keys, and `RelativeBias` is added to the scores.
Which implementations of the Transformer have which is declared in `supported_settings`.
"""

# R rows, T queries, S keys, H heads, K query/key width, M model width

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.models import sinusoids as numpy_sinusoids


def added_positions(config: ModelConfig) -> SinusoidalPositions | LearnedPositions | None:
    """Return what is added to embeddings; None if positions act in attention alone."""
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.d_model)
    if config.positions == "learned":
        return LearnedPositions(config.max_positions, config.d_model)
    return None


def sinusoids(length: int, d_model: int) -> Tensor:
    """Return the paper's table of the first `length` positions, T M, on the CPU."""
    return torch.from_numpy(numpy_sinusoids.sinusoids(length, d_model))


def position_table(length: int, d_model: int, learned: Tensor | None) -> Tensor:
    """Return what is added at the first `length` positions, T M: learned vectors, or sinusoids."""
    if learned is None:
        return sinusoids(length, d_model)
    return learned[_clamp(torch.arange(length, device=learned.device), len(learned))]


def _clamp(positions: Tensor, count: int) -> Tensor:
    """Return indices of learned positions: past the last there is nothing better than the last."""
    return positions.clamp(max=count - 1)


class SinusoidalPositions(nn.Module):
    """Look positions up in the paper's table, which grows when a longer sentence comes."""

    table: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        empty = torch.empty(0, d_model, device="cpu")  # real even in a meta model
        self.register_buffer("table", empty, persistent=False)

    def table_of(self, longest: int, device: torch.device) -> Tensor:
        """Return the table, with at least `longest` rows."""
        if longest > len(self.table):
            self.table = sinusoids(max(256, 2 * longest), self.table.shape[1]).to(device)
        return self.table

    def forward(self, positions: Tensor, longest: int) -> Tensor:
        """Return … M of positions …, which are all below `longest`."""
        return self.table_of(longest, positions.device)[positions]

    def compute(self, positions: Tensor) -> Tensor:
        """Return the same without a table, for an exported graph that has no longest sentence."""
        d_model = self.table.shape[1]
        exponents = torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(1e4) / d_model)
        angles = positions[..., None].double() * exponents.exp()
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2).float()


class LearnedPositions(nn.Embedding):
    """Learn a vector for each position; later positions share the last one."""

    def reset_parameters(self) -> None:
        """Initialise by N(0, 1/d_model), as pieces are."""
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)

    def forward(self, positions: Tensor, longest: int = 0) -> Tensor:
        """Return … M of positions …, however many there are."""
        return super().forward(_clamp(positions, self.num_embeddings))


def rotate(x_RHTK: Tensor, positions_RT: Tensor) -> Tensor:
    """Turn each pair of features of queries or keys by an angle that grows with the position."""
    half = x_RHTK.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half, device=x_RHTK.device) / half)
    angles = positions_RT[:, None, :, None] * frequencies
    cos, sin = angles.cos().to(x_RHTK.dtype), angles.sin().to(x_RHTK.dtype)
    left, right = x_RHTK[..., :half], x_RHTK[..., half:]
    return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)


class RelativeBias(nn.Module):
    """Learn a number for each head and distance; distances beyond `max_distance` share one."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.max_distance = config.max_distance
        self.table = nn.Embedding(2 * config.max_distance + 1, config.heads)
        nn.init.zeros_(self.table.weight)

    def forward(self, queries_RT: Tensor, keys_RS: Tensor) -> Tensor:
        """Return what is added to the scores, R H T S, given the positions of both."""
        distance = (keys_RS[:, None, :] - queries_RT[:, :, None]).clamp(
            -self.max_distance, self.max_distance
        )
        bias: Tensor = self.table(distance + self.max_distance)
        return bias.permute(0, 3, 1, 2)
