"""In data parallelism the gradients of all ranks become one, with DDP or with FSDP2.

With DDP every rank keeps a copy of the weights, and gradients are exchanged bucket by bucket while
the backward pass goes on. With FSDP2, for models too large for that, each rank keeps some rows of
every weight, of its moments and of its average. A layer's weights are gathered just before it
computes and freed after; its gradients are summed over the ranks and scattered. Everything that
works on weights element by element works on a rank's own rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from dragoman.config import TrainingConfig
from dragoman.models import Model
from dragoman.models.weights import get_weights
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.precision import uses_bf16, uses_kernels

MAX_STATE_FRACTION = 0.6
"""A copy of a run's state may fill this fraction of a device; the rest is for activations."""

_DDP_OPTIONS = inspect.signature(DistributedDataParallel).parameters
_SYNC_BUFFERS = next(n for n in ("forward_sync_buffers", "broadcast_buffers") if n in _DDP_OPTIONS)
"""This option has another name from torch 2.13 on."""


def should_shard(
    settings: TrainingConfig, model: nn.Module, device: torch.device, ranks: Ranks
) -> bool:
    """Return whether ranks share the state of a run (FSDP2) instead of each keeping a copy."""
    if ranks.world_size == 1 or settings.sharding != "auto":
        return ranks.world_size > 1 and settings.sharding == "full"
    if device.type != "cuda":
        return False
    parameters = sum(parameter.numel() for parameter in model.parameters())
    memory = torch.cuda.get_device_properties(device).total_memory
    return state_bytes(settings, parameters, device) > MAX_STATE_FRACTION * memory


def state_bytes(settings: TrainingConfig, parameters: int, device: torch.device) -> int:
    """Return the bytes that one whole copy of a run's state takes, without activations."""
    each = 4 + 4 + 8  # weight, gradient, two moments
    if settings.ema:
        each += 4
    if uses_kernels(settings.precision, device):
        each += 2 + 2  # the bf16 weight and its gradient
    return each * parameters


def parallelize(
    criterion: nn.Module,
    settings: TrainingConfig,
    device: torch.device,
    ranks: Ranks,
    *,
    sharded: bool,
) -> nn.Module:
    """Return a module that computes the loss of this rank's rows and all ranks' mean gradient."""
    if ranks.world_size == 1:
        return criterion
    if sharded:
        apply_fsdp(criterion, settings, device)
        return criterion
    # Each rank makes its buffers, which are tables: syncing them would be one more collective.
    options: dict[str, Any] = {"gradient_as_bucket_view": True, _SYNC_BUFFERS: False}
    copies = DistributedDataParallel(criterion, **options)
    has_bf16_weights = next(criterion.parameters()).dtype == torch.bfloat16
    if device.type == "cuda" and uses_bf16(settings.precision, device) and not has_bf16_weights:
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

        # Half the bytes; the gradients of bf16 weights are bf16 as they are. gloo has no such hook.
        copies.register_comm_hook(None, bf16_compress_hook)
    return copies


def apply_fsdp(criterion: nn.Module, settings: TrainingConfig, device: torch.device) -> None:
    """Distribute a criterion's weights over all ranks; they come to the device layer by layer.

    A unit, gathered and freed as one, is a layer of a stack; all other weights are one more, the
    shared embedding among them. The criterion is the outermost module because its call begins a
    forward pass: it gathers that last unit, for the embedding and the projection.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy()
    if uses_bf16(settings.precision, device):
        # The inputs are ids, and the scale of the loss, which bf16 would round.
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, cast_forward_inputs=False
        )
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    stacks = [module for module in criterion.modules() if isinstance(module, nn.ModuleList)]
    for layer in (layer for stack in stacks for layer in stack):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(criterion, mesh=mesh, mp_policy=policy)


def gradient_sync(criterion: nn.Module, enabled: bool) -> AbstractContextManager[None]:
    """Return a context whose backward passes sync gradients, or add to this rank's own.

    With FSDP they always sync: whole gradients, kept until the last slice, would take the memory
    that sharding is there to save, and the weights are gathered for every slice anyway.
    """
    if isinstance(criterion, DistributedDataParallel) and not enabled:
        return criterion.no_sync()
    return nullcontext()


def local_tensor(tensor: Tensor) -> Tensor:
    """Return the rows of a tensor that this rank holds: all, if it is not sharded."""
    own: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return own


def local_rows(tensor: Any) -> LocalRows:
    """Return the rows of a tensor that this rank holds, and which ones they are."""
    own = local_tensor(tensor)
    if own is tensor:
        return all_rows(tensor)
    mesh = tensor.device_mesh
    rows = -(-len(tensor) // mesh.size())  # as torch.chunk does: the last ranks may get fewer
    start = min(mesh.get_local_rank() * rows, len(tensor))
    return LocalRows(own, start, tuple(tensor.shape))


@torch.no_grad()
def gather_model(model: Model, make: Callable[[], Model], ranks: Ranks) -> Model | None:
    """Copy a sharded model to one that `make` builds on the first rank; every rank calls this.

    One device validates and exports the whole model, so it must have room for its weights in full
    precision. Search on a sharded model would gather all layers for every piece.
    """
    copy = make() if ranks.is_first else None
    own = get_weights(copy) if copy is not None else {}
    for name, tensor in get_weights(model).items():
        gathered = tensor.full_tensor()  # type: ignore[attr-defined]
        if name in own:
            own[name].copy_(gathered)
    return copy


@dataclass(frozen=True, slots=True)
class LocalRows:
    """Hold the rows of a tensor that this rank has: from row `start` on, of a tensor of `shape`."""

    tensor: Tensor
    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        """Return the row after the last one; a scalar counts as one row."""
        return self.start + (len(self.tensor) if self.shape else 1)

    @property
    def is_whole(self) -> bool:
        """Return whether these are all the rows of the tensor."""
        return tuple(self.tensor.shape) == self.shape


def all_rows(tensor: Tensor) -> LocalRows:
    """Return the rows of a tensor that every rank has whole."""
    return LocalRows(tensor, 0, tuple(tensor.shape))
