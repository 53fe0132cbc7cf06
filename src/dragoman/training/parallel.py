"""A criterion on many ranks: how the gradients of all become one.

Either every rank keeps a copy of the weights (DDP), and gradients are exchanged bucket by bucket
while the backward pass goes on; or each keeps a share (FSDP2, in sharding.py).
"""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from dragoman.config import TrainingConfig
from dragoman.training.distribution import Ranks
from dragoman.training.precision import wants_bf16
from dragoman.training.sharding import shard

__all__ = ["exchanging", "spread"]

_NAMES = inspect.signature(DistributedDataParallel).parameters
_SYNC_BUFFERS = next(n for n in ("forward_sync_buffers", "broadcast_buffers") if n in _NAMES)
"""The name changed in torch 2.13."""


def spread(
    criterion: nn.Module,
    settings: TrainingConfig,
    device: torch.device,
    ranks: Ranks,
    *,
    sharded: bool,
) -> nn.Module:
    """What computes the loss of this rank's rows and the mean gradient of all ranks."""
    if ranks.world == 1:
        return criterion
    if sharded:
        shard(criterion, settings, device)
        return criterion
    # Buffers are tables that each rank makes: sharing them would be an exchange in every slice.
    options: dict[str, Any] = {"gradient_as_bucket_view": True, _SYNC_BUFFERS: False}
    copies = DistributedDataParallel(criterion, **options)
    rounded = next(criterion.parameters()).dtype == torch.bfloat16
    if device.type == "cuda" and wants_bf16(settings.precision, device) and not rounded:
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

        # Half the bytes; the gradients of bf16 weights are bf16 as they are. gloo has no such hook.
        copies.register_comm_hook(None, bf16_compress_hook)
    return copies


def exchanging(criterion: nn.Module, wanted: bool) -> AbstractContextManager[None]:
    """A block whose backward passes exchange gradients, or add to this rank's own.

    In shards they always exchange: whole gradients, kept until the last slice, would take the
    memory that shards are there to save, and the weights are gathered for every slice anyway.
    """
    if isinstance(criterion, DistributedDataParallel) and not wanted:
        return criterion.no_sync()
    return nullcontext()
