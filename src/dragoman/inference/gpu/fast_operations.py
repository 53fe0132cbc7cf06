"""The operations of a step by kernels."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.inference.gpu import attention_kernels, norm_kernels, selection_kernels, small_gemm
from dragoman.inference.gpu.batch_state import Slots
from dragoman.inference.gpu.plain_operations import Arithmetic
from dragoman.inference.gpu.weights import Matrix, Norm, Stage, Weights

__all__ = ["Fast"]


class Fast(Arithmetic):
    """The same as plain PyTorch, sooner."""

    def __init__(self, weights: Weights, *, overlap: bool | None = None) -> None:
        """Whether kernels of few rows `overlap` is the device's to say, if nobody does."""
        super().__init__(weights)
        self.overlap = small_gemm.can_overlap(weights.device) if overlap is None else overlap

    def enter(self, x: Tensor, y: Tensor | None, stage: Stage) -> tuple[Tensor, Tensor]:
        """See Arithmetic."""
        if len(x) > small_gemm.FEW:
            return super().enter(x, y, stage)
        return self._few(x, y, stage, self.weights.dtype)

    def add_and_norm(self, x: Tensor, y: Tensor | None, norm: Norm | None) -> tuple[Tensor, Tensor]:
        """See Arithmetic."""
        if norm is None:
            return super().add_and_norm(x, y, norm)
        return norm_kernels.add_and_norm(x, y, norm, self.weights.post, self.weights.dtype)

    def product(self, x: Tensor, matrix: Matrix, activation: str = "") -> Tensor:
        """See Arithmetic."""
        if len(x) <= small_gemm.FEW:
            _, out = small_gemm.few_rows(
                *(x, None, None, matrix, activation),
                post=False,
                keeps=False,
                dtype=x.dtype,
                overlap=self.overlap,
            )
            return out
        if activation == "relu" and matrix.bias is not None and x.is_cuda:
            return torch._addmm_activation(matrix.bias, x, matrix.weight.t())
        return super().product(x, matrix, activation)

    def scores(self, x: Tensor, y: Tensor | None) -> Tensor:
        """See Arithmetic."""
        stage = self.weights.projection
        if len(x) <= small_gemm.FEW:
            return self._few(x, y, stage, torch.float32)[1]
        _, z = self.add_and_norm(x, y, stage.norm)
        if z.dtype == torch.float32:
            return self.product(z, stage.matrix)
        # Rounded to bf16, scores that differ would be equal.
        return torch.mm(z, stage.matrix.weight.t(), out_dtype=torch.float32)

    def embed(self, slots: Slots, lanes: int) -> Tensor:
        """See Arithmetic."""
        return norm_kernels.embed(self.weights, slots, lanes, overlap=self._overlap(slots, lanes))

    def look_back(self, qkv: Tensor, slots: Slots, layer: int, lanes: int) -> Tensor:
        """See Arithmetic."""
        overlap = self._overlap(slots, lanes)
        return attention_kernels.look_back(qkv, self.weights, slots, layer, lanes, overlap=overlap)

    def look_at_source(self, q: Tensor, slots: Slots, layer: int, lanes: int) -> Tensor:
        """See Arithmetic."""
        overlap = self._overlap(slots, lanes)
        return attention_kernels.look_at_source(
            q, self.weights, slots, layer, lanes, overlap=overlap
        )

    def choose(self, scores: Tensor, slots: Slots, lanes: int, *, stop_early: bool) -> None:
        """See Arithmetic."""
        overlap = self._overlap(slots, lanes) and not slots.words  # for trees PyTorch comes between
        selection_kernels.choose(
            scores, self.weights, slots, lanes, stop_early=stop_early, overlap=overlap
        )

    def _overlap(self, slots: Slots, lanes: int) -> bool:
        return self.overlap and lanes * slots.beams <= small_gemm.FEW

    def _few(
        self, x: Tensor, y: Tensor | None, stage: Stage, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        return small_gemm.few_rows(
            *(x, y, stage.norm, stage.matrix, stage.activation),
            post=self.weights.post,
            keeps=y is not None or (self.weights.post and stage.norm is not None),
            dtype=dtype,
            overlap=self.overlap,
        )
