"""The loss is label-smoothed cross-entropy (§5.4), with R-Drop as an option."""

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


@dataclass(frozen=True, slots=True)
class TensorBatch:
    """Hold a batch as tensors on the model's device."""

    source: Rows
    target: Rows
    output_RT: Tensor
    """This is the piece that should follow each target position."""

    @classmethod
    def from_batch(cls, batch: Batch, device: torch.device) -> TensorBatch:
        """Move a batch of arrays to a device, all of it in one copy."""
        (R, S), T = batch.source_ids.shape, batch.target_input.shape[1]
        return cls.from_packed(pack_batch(batch, device).to(device, non_blocking=True), (R, S, T))

    @classmethod
    def from_packed(cls, numbers: Tensor, shape: tuple[int, int, int]) -> TensorBatch:
        """Return views of the tensor that `pack_batch` made of a batch of this shape."""
        R, S, T = shape
        source_3RS, target_4RT = numbers.split([3 * R * S, 4 * R * T])
        target, output, *places = target_4RT.view(4, R, T).unbind()
        return cls(Rows(*source_3RS.view(3, R, S).unbind()), Rows(target, *places), output)


def pack_batch(batch: Batch, device: torch.device) -> Tensor:
    """Return all the numbers of a batch as one tensor, pinned if it goes to a GPU."""
    numbers = torch.from_numpy(np.concatenate([array.ravel() for array in batch.arrays()]))
    return numbers.pin_memory() if device.type == "cuda" else numbers


def label_smoothed_loss(
    logits_NV: Tensor, output_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the summed smoothed loss and the summed negative log-likelihood of the pieces.

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
    """Compute a model's loss in one call, which DDP and FSDP wrap as one module."""

    def __init__(self, model: Model, *, label_smoothing: float = 0.0, r_drop: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.r_drop = r_drop

    def forward(self, batch: TensorBatch, scale: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the summed loss, to minimise, and the summed negative log-likelihood, to report.

        Both are multiplied by the scale, if there is one, before bf16 gradients are rounded.
        """
        features: Tensor = self.model.features(batch.source, batch.target)
        if scale is None:
            scale = features.new_ones((), dtype=torch.float32)
        use_r_drop = self.r_drop > 0 and self.training
        weight = self.model.output_weight()
        plain = use_r_drop or self.model.output_bias() is not None
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
        loss, nll = label_smoothed_loss(logits_NV, output_N, self.label_smoothing)
        if not use_r_drop:
            return loss * scale, nll * scale
        # R-Drop: a second pass draws other dropout masks; both should say the same.
        second_NV = self.model.logits(self.model.features(batch.source, batch.target)[real_RT])
        second_loss, second_nll = label_smoothed_loss(second_NV, output_N, self.label_smoothing)
        p, q = logits_NV.float().log_softmax(-1), second_NV.float().log_softmax(-1)
        divergence = F.kl_div(p, q, reduction="sum", log_target=True) + F.kl_div(
            q, p, reduction="sum", log_target=True
        )
        loss = (loss + second_loss) / 2 + self.r_drop * divergence / 4
        return loss * scale, (nll + second_nll) / 2 * scale
