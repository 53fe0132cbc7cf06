"""Label-smoothed cross-entropy (§5.4), with R-Drop as an option."""

# R rows, T target length, V vocabulary

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman import kernels
from dragoman.data.batching.batches import Batch
from dragoman.models import Model, Rows

__all__ = ["Criterion", "TensorBatch", "in_one_piece", "label_smoothed"]


@dataclass(frozen=True, slots=True)
class TensorBatch:
    """A batch as the model wants it."""

    source: Rows
    target: Rows
    output_RT: Tensor
    """The piece that should follow each target position."""

    @classmethod
    def of(cls, batch: Batch, device: torch.device) -> TensorBatch:
        """Move a batch of arrays to a device, all of it in one copy."""
        (R, S), T = batch.source_ids.shape, batch.target_input.shape[1]
        return cls.over(in_one_piece(batch, device).to(device, non_blocking=True), (R, S, T))

    @classmethod
    def over(cls, numbers: Tensor, shape: tuple[int, int, int]) -> TensorBatch:
        """Views of what `in_one_piece` made of a batch of this shape."""
        R, S, T = shape
        source_3RS, target_4RT = numbers.split([3 * R * S, 4 * R * T])
        target, output, *places = target_4RT.view(4, R, T).unbind()
        return cls(Rows(*source_3RS.view(3, R, S).unbind()), Rows(target, *places), output)


def in_one_piece(batch: Batch, device: torch.device) -> Tensor:
    """All the numbers of a batch, where a copy to the device need not wait."""
    numbers = torch.from_numpy(np.concatenate([array.ravel() for array in batch.arrays()]))
    return numbers.pin_memory() if device.type == "cuda" else numbers


def label_smoothed(logits_NV: Tensor, output_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Summed smoothed loss and summed negative log-likelihood of the pieces.

    The target distribution gives 1 - ε to the piece plus ε / V to every piece, itself included.
    """
    log_probs_NV = logits_NV.float().log_softmax(-1)
    output_N = output_N.long()  # as torch wants it
    nll = -log_probs_NV.gather(-1, output_N[:, None]).sum()
    if smoothing == 0:
        return nll, nll.detach()
    uniform = -log_probs_NV.mean(-1).sum()
    return (1 - smoothing) * nll + smoothing * uniform, nll.detach()


class Criterion(nn.Module):
    """A model with its loss, so that one call does a forward pass on any number of devices."""

    def __init__(self, model: Model, *, label_smoothing: float = 0.0, r_drop: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.r_drop = r_drop

    def forward(self, batch: TensorBatch, scale: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Summed loss, to be minimised, and summed negative log-likelihood, to be reported.

        Both are multiplied by the scale, if there is one: inside, where bf16 gradients gain by it.
        """
        features: Tensor = self.model.features(batch.source, batch.target)
        if scale is None:
            scale = features.new_ones((), dtype=torch.float32)
        again = self.r_drop > 0 and self.training
        weight = self.model.output_weight()
        plain = again or self.model.output_bias() is not None
        if kernels.usable(features) and kernels.usable(weight) and not plain:
            fast: tuple[Tensor, Tensor] = kernels.project_and_score(
                features,
                weight,
                batch.output_RT,
                batch.target.segments_RL,
                self.label_smoothing,
                scale,
            )
            return fast
        real_RT = batch.target.segments_RL > 0
        output_N = batch.output_RT[real_RT]
        logits_NV = self.model.logits(features[real_RT])  # no vocabulary for padding
        loss, nll = label_smoothed(logits_NV, output_N, self.label_smoothing)
        if not again:
            return loss * scale, nll * scale
        # R-Drop: a second pass draws other dropout masks; both should say the same.
        again_NV = self.model.logits(self.model.features(batch.source, batch.target)[real_RT])
        second, second_nll = label_smoothed(again_NV, output_N, self.label_smoothing)
        p, q = logits_NV.float().log_softmax(-1), again_NV.float().log_softmax(-1)
        divergence = F.kl_div(p, q, reduction="sum", log_target=True) + F.kl_div(
            q, p, reduction="sum", log_target=True
        )
        loss = (loss + second) / 2 + self.r_drop * divergence / 4
        return loss * scale, (nll + second_nll) / 2 * scale
