"""Label-smoothed cross-entropy (§5.4), with R-Drop as an option."""

# R rows, T target length, V vocabulary

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.models import Model, Rows

__all__ = ["Criterion", "TensorBatch", "label_smoothed"]


@dataclass(frozen=True, slots=True)
class TensorBatch:
    """A batch as the model wants it."""

    source: Rows
    target: Rows
    output_RT: Tensor
    """The piece that should follow each target position."""

    @classmethod
    def of(cls, batch: Batch, device: torch.device) -> TensorBatch:
        """Move a batch of arrays to a device; int64 only where torch wants it."""

        def rows(ids: object, segments: object, positions: object) -> Rows:
            tensors = (torch.from_numpy(a) for a in (ids, segments, positions))
            return Rows(*(t.to(device, non_blocking=True) for t in tensors))

        return cls(
            rows(batch.source_ids, batch.source_segments, batch.source_positions),
            rows(batch.target_input, batch.target_segments, batch.target_positions),
            torch.from_numpy(batch.target_output).to(device, torch.long, non_blocking=True),
        )


def label_smoothed(logits_NV: Tensor, output_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Summed smoothed loss and summed negative log-likelihood of the pieces.

    The target distribution gives 1 - ε to the piece plus ε / V to every piece, itself included.
    """
    log_probs_NV = logits_NV.float().log_softmax(-1)
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

    def forward(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        """Summed loss, to be minimised, and summed negative log-likelihood, to be reported."""
        real_RT = batch.target.segments_RL > 0
        output_N = batch.output_RT[real_RT]
        logits_NV = self._logits(batch, real_RT)
        loss, nll = label_smoothed(logits_NV, output_N, self.label_smoothing)
        if self.r_drop == 0 or not self.training:
            return loss, nll
        # R-Drop: a second pass draws other dropout masks; both should say the same.
        again_NV = self._logits(batch, real_RT)
        second, second_nll = label_smoothed(again_NV, output_N, self.label_smoothing)
        p, q = logits_NV.float().log_softmax(-1), again_NV.float().log_softmax(-1)
        divergence = F.kl_div(p, q, reduction="sum", log_target=True) + F.kl_div(
            q, p, reduction="sum", log_target=True
        )
        loss = (loss + second) / 2 + self.r_drop * divergence / 4
        return loss, (nll + second_nll) / 2

    def _logits(self, batch: TensorBatch, real_RT: Tensor) -> Tensor:
        features: Tensor = self.model.features(batch.source, batch.target)
        return self.model.logits(features[real_RT])  # no vocabulary for padding
