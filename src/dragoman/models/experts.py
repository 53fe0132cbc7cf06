"""Mixture of experts (Shazeer et al., 2017): many feed-forward networks, of which each position
takes the few that a gate chooses for it.

Differs from their paper: no noise on the gate, and a simpler penalty, that of Fedus et al. (2021).
No expert is ever full: what becomes of a position does not depend on its batch-mates.
"""

# N positions, U experts used by each, P = N·U places with an expert, E experts, M model width

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.models.api import Rows
from dragoman.models.attention import Linear

BALANCE = 0.01
"""The penalty on imbalance has this weight beside a loss that is a mean over target pieces."""


class Experts(nn.Module):
    """Compute Σ w_e FFN_e(x) over the experts that the gate scores highest, w their softmax."""

    def __init__(self, config: ModelConfig, make: Callable[[ModelConfig], nn.Module]) -> None:
        super().__init__()
        self.used = config.experts_used
        self.gate = Linear(config.d_model, config.experts, bias=False)
        # Not a ModuleList, which means a stack of layers that are gathered from shards one by one.
        self.networks = nn.ModuleDict({str(n): make(config) for n in range(config.experts)})

    def forward(self, x: Tensor, rows: Rows | None = None) -> Tensor:
        """Return … M of … M, each position by itself; 0 for what the rows say is padding.

        In training the gradient is also that of the imbalance of the experts. This waits for the
        device once, to know how many positions each expert has.
        """
        x_NM = x.reshape(-1, x.shape[-1])
        scores_NE = self.scores(x_NM)
        E, U = len(self.networks), self.used
        chosen_NU = scores_NE.detach().topk(U).indices
        if rows is not None:
            chosen_NU = chosen_NU.masked_fill(rows.segments_RL.reshape(-1, 1) == 0, E)
        expert_P, place_P = chosen_NU.flatten().sort(stable=True)
        bounds = torch.searchsorted(expert_P, torch.arange(E + 2, device=x.device))
        *shares, padding_PM = x_NM.index_select(0, place_P // U).split(bounds.diff().tolist())
        # An expert that nobody chose computes nothing from nothing: its gradient is 0, not absent.
        made = [f(share) for f, share in zip(self.networks.values(), shares, strict=True)]
        y_PM = torch.cat([*made, made[0].new_zeros(padding_PM.shape)])
        y_NUM = y_PM.index_select(0, place_P.argsort()).unflatten(0, (-1, U))
        weights_NU = scores_NE.gather(1, chosen_NU.clamp(max=E - 1)).softmax(-1)
        y_NM = (weights_NU[..., None] * y_NUM).sum(1).to(x.dtype)
        if self.training:
            y_NM = _attach_penalty(y_NM, BALANCE * imbalance(scores_NE, chosen_NU))
        out: Tensor = y_NM.view_as(x)
        return out

    def scores(self, x_NM: Tensor) -> Tensor:
        """Return what the gate gives each expert, N E, at least in fp32, even under autocast."""
        full = torch.promote_types(x_NM.dtype, torch.float32)
        with torch.autocast(x_NM.device.type, enabled=False):
            return F.linear(x_NM.to(full), self.gate.weight.to(full))


def imbalance(scores_NE: Tensor, chosen_NU: Tensor) -> Tensor:
    """Return E · Σ (share of the choices that fell on e) · (mean probability of e): 1 if alike.

    Over real positions: the padding's choice is E, which no expert has. Without any it is 0. Only
    the probabilities have a gradient, which moves them from experts chosen often to the others.
    """
    E = scores_NE.shape[1]
    real_N1 = chosen_NU[:, :1] < E
    positions = real_N1.sum().clamp(min=1)
    taken_E = (chosen_NU[..., None] == torch.arange(E, device=chosen_NU.device)).sum((0, 1))
    share_E = taken_E / (positions * chosen_NU.shape[1])
    mean_E = (scores_NE.softmax(-1) * real_N1).sum(0) / positions
    return E * (share_E * mean_E).sum()


class _PenaltyGradient(torch.autograd.Function):
    """Pass the layer's output on as it is, and add a penalty's gradient in the backward pass.

    So the model needs no second result, and the loss that is reported stays that of the pieces,
    comparable with other models'. A loss is a mean over the target pieces of a batch, and the
    penalty one over positions, so that its gradient is taken as it is, whatever arrives here. It
    counts once a backward pass: the ranks' mean is right, and `training.accumulate` slices make it
    count as many times.
    """

    @staticmethod
    def forward(ctx: Any, output: Tensor, penalty: Tensor) -> Tensor:
        ctx.save_for_backward(penalty)
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (penalty,) = ctx.saved_tensors
        return gradients[0], torch.ones_like(penalty)


def _attach_penalty(output: Tensor, penalty: Tensor) -> Tensor:
    attached: Tensor = _PenaltyGradient.apply(output, penalty)  # type: ignore[no-untyped-call]
    return attached
