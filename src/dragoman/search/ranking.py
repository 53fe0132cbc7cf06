"""Scores and the best of them, the same whatever the device, the batch and the search."""

# B sentences, N candidates of each, C of them chosen

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.search.options import length_penalty

__all__ = ["best_of", "penalty_table"]


def best_of(values_BN: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` greatest of each row and where they stood, best first, of equals the first."""
    wanted = min(count, values_BN.shape[1])
    # On CUDA topk chooses the first of equals, in any order. On the CPU it chooses any, which
    # matters where the last one chosen equals the first one left out: rare, and seen by asking
    # for one more.
    spare = 0 if values_BN.is_cuda else min(1, values_BN.shape[1] - wanted)
    top_BC, index_BC = values_BN.topk(wanted + spare, dim=1)
    if spare:
        last_B, next_B = top_BC[:, wanted - 1], top_BC[:, wanted]
        if bool(((last_B == next_B) & (last_B > -torch.inf)).any()):
            top_BC, index_BC = values_BN.sort(dim=1, descending=True, stable=True)
    index_BC, order_BC = index_BC[:, :wanted].sort(dim=1)
    top_BC, again_BC = top_BC.gather(1, order_BC).sort(dim=1, descending=True, stable=True)
    return top_BC, index_BC.gather(1, again_BC)


def penalty_table(longest: int, alpha: float, device: torch.device) -> Tensor:
    """The length penalty of 0 to `longest` pieces; in double, so that all searches agree."""
    values = [length_penalty(pieces, alpha) for pieces in range(longest + 1)]
    return torch.tensor(values, dtype=torch.float64, device=device)
