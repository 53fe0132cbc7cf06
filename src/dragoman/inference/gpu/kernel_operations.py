"""Triton kernels compute the operations of a step, as `plain_operations` does."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.inference.gpu import layer_kernels, selection_kernels, small_gemm
from dragoman.inference.gpu.batch_state import BatchState
from dragoman.inference.gpu.plain_operations import PlainOperations
from dragoman.inference.gpu.weights import GpuWeights, Matrix, Norm, Stage


class KernelOperations(PlainOperations):
    """Compute the same as plain PyTorch, faster."""

    def __init__(self, weights: GpuWeights, *, overlap: bool | None = None) -> None:
        """Let kernels of few rows `overlap`; where that is not given, if the device can."""
        super().__init__(weights)
        self.overlap = small_gemm.can_overlap(weights.device) if overlap is None else overlap

    def apply_stage(self, x: Tensor, y: Tensor | None, stage: Stage) -> tuple[Tensor, Tensor]:
        """Add `y` to the residual stream and apply the stage, in one kernel if rows are few."""
        if len(x) > small_gemm.MAX_ROWS:
            return super().apply_stage(x, y, stage)
        return self._small_stage(x, y, stage, self.weights.dtype)

    def add_and_norm(self, x: Tensor, y: Tensor | None, norm: Norm | None) -> tuple[Tensor, Tensor]:
        """Return x + y, normalised if that is post-norm; and what the next matrix sees of it."""
        if norm is None:
            return super().add_and_norm(x, y, norm)
        return layer_kernels.add_and_norm(x, y, norm, self.weights.post, self.weights.dtype)

    def linear(self, x: Tensor, matrix: Matrix, activation: str = "") -> Tensor:
        """Multiply each row with a matrix, and apply the activation."""
        if len(x) <= small_gemm.MAX_ROWS:
            _, out = small_gemm.small_gemm(
                *(x, None, None, matrix, activation),
                post=False,
                keep_stream=False,
                dtype=x.dtype,
                overlap=self.overlap,
            )
            return out
        if activation == "relu" and matrix.bias is not None and x.is_cuda:
            return torch._addmm_activation(matrix.bias, x, matrix.weight.t())
        return super().linear(x, matrix, activation)

    def scores(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Return unnormalised scores of the targets, and padding, R V′, in fp32."""
        stage = self.weights.projection
        if len(x) <= small_gemm.MAX_ROWS:
            return self._small_stage(x, y, stage, torch.float32)[1]
        _, z = self.add_and_norm(x, y, stage.norm)
        if z.dtype == torch.float32:
            return self.linear(z, stage.matrix)
        # Rounded to bf16, scores that differ would be equal.
        return torch.mm(z, stage.matrix.weight.t(), out_dtype=torch.float32)

    def embed(self, state: BatchState, batch_size: int) -> Tensor:
        """Return the embedding of every hypothesis's last piece, R M in full precision."""
        overlap = self._overlaps(state, batch_size)
        return layer_kernels.embed(self.weights, state, batch_size, overlap=overlap)

    def self_attention(self, qkv: Tensor, state: BatchState, layer: int, batch_size: int) -> Tensor:
        """Attend to the pieces before, R W from R 3W; keys and values are put into the cache."""
        overlap = self._overlaps(state, batch_size)
        return layer_kernels.self_attention(
            qkv, self.weights, state, layer, batch_size, overlap=overlap
        )

    def source_attention(self, q: Tensor, state: BatchState, layer: int, batch_size: int) -> Tensor:
        """Attend to the source, R W from R W."""
        overlap = self._overlaps(state, batch_size)
        return layer_kernels.source_attention(
            q, self.weights, state, layer, batch_size, overlap=overlap
        )

    def select_next(
        self,
        scores: Tensor,
        state: BatchState,
        batch_size: int,
        *,
        stop_early: bool,
        after_kernel: bool = True,
    ) -> None:
        """Choose the next piece of every hypothesis by the rules of `beam_search`."""
        overlap = self._overlaps(state, batch_size) and after_kernel
        selection_kernels.select_next(
            scores, self.weights, state, batch_size, stop_early=stop_early, overlap=overlap
        )

    def _overlaps(self, state: BatchState, batch_size: int) -> bool:
        return self.overlap and batch_size * state.beams <= small_gemm.MAX_ROWS

    def _small_stage(
        self, x: Tensor, y: Tensor | None, stage: Stage, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        return small_gemm.small_gemm(
            *(x, y, stage.norm, stage.matrix, stage.activation),
            post=self.weights.post,
            keep_stream=y is not None or (self.weights.post and stage.norm is not None),
            dtype=dtype,
            overlap=self.overlap,
        )
