"""A model in shards (FSDP2), for what does not fit a device in one copy a rank.

Each rank keeps some rows of every weight, of its moments and of its average. A layer's weights are
gathered just before it computes and let go after; its gradients are summed over the ranks and dealt
out. Everything that works on weights element by element works on a rank's own rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from dragoman.config import TrainingConfig
from dragoman.models import Model
from dragoman.models.weights import get_weights
from dragoman.training.checkpoints.shards import Part, whole
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.precision import computes_fast, wants_bf16

__all__ = [
    "exchanging",
    "gathered",
    "local",
    "part",
    "shard",
    "spread",
    "state_bytes",
    "wants_shards",
]


SHARE = 0.6
"""Of a device's memory that one copy of a run's state may fill; the rest is for activations."""


def wants_shards(
    settings: TrainingConfig, model: nn.Module, device: torch.device, ranks: Ranks
) -> bool:
    """Whether ranks share the state of a run out instead of each keeping a copy."""
    if ranks.world == 1 or settings.sharding != "auto":
        return ranks.world > 1 and settings.sharding == "full"
    if device.type != "cuda":
        return False
    parameters = sum(parameter.numel() for parameter in model.parameters())
    memory = torch.cuda.get_device_properties(device).total_memory
    return state_bytes(settings, parameters, device) > SHARE * memory


def state_bytes(settings: TrainingConfig, parameters: int, device: torch.device) -> int:
    """What one whole copy of a run's state takes, activations not counted."""
    each = 4 + 4 + 8  # weight, gradient, two moments
    if settings.ema:
        each += 4
    if computes_fast(settings.precision, device):
        each += 2 + 2  # the bf16 weight and its gradient
    return each * parameters


def shard(criterion: nn.Module, settings: TrainingConfig, device: torch.device) -> None:
    """Deal out a criterion's weights to all ranks; they come to the device layer by layer.

    A unit, gathered and let go as one, is a layer of a stack; all other weights are one more,
    the shared embedding among them. The criterion is the outermost module because its call is
    what begins a forward pass: it gathers that last unit, for the embedding and the projection.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy()
    if wants_bf16(settings.precision, device):
        # The inputs are ids, and the scale of the loss, which bf16 would round.
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, cast_forward_inputs=False
        )
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    stacks = [module for module in criterion.modules() if isinstance(module, nn.ModuleList)]
    for layer in (layer for stack in stacks for layer in stack):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(criterion, mesh=mesh, mp_policy=policy)


def local(tensor: Tensor) -> Tensor:
    """The rows of a tensor that this rank holds: all, if it is not in shards."""
    own: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return own


def part(tensor: Any) -> Part:
    """The rows of a tensor that this rank holds, and which they are."""
    own = local(tensor)
    if own is tensor:
        return whole(tensor)
    mesh = tensor.device_mesh
    rows = -(-len(tensor) // mesh.size())  # dealt out as by torch.chunk: the last may get fewer
    first = min(mesh.get_local_rank() * rows, len(tensor))
    return Part(own, first, tuple(tensor.shape))


@torch.no_grad()
def gathered(model: Model, make: Callable[[], Model], ranks: Ranks) -> Model | None:
    """A plain copy of a model in shards, made by `make` on the first rank; every rank calls this.

    Simple, and right: one device validates and exports the whole, and must have room for its
    weights in full precision. Search on shards would gather all layers for every piece.
    """
    copy = make() if ranks.first else None
    places = get_weights(copy) if copy is not None else {}
    for name, tensor in get_weights(model).items():
        everything = tensor.full_tensor()  # type: ignore[attr-defined]
        if name in places:
            places[name].copy_(everything)
    return copy


# PART training.parallel: A criterion on many ranks: how the gradients of all become one.
#
# Either every rank keeps a copy of the weights (DDP), and gradients are exchanged bucket by
# bucket while the backward pass goes on; or each keeps a share (FSDP2, in sharding.py).


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
