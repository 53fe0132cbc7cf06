"""Counting what a layer computes: its operations, and how many of them must wait for each other.

Operations are those of matrix products and convolutions, 2·m·n·k for an m×k by k×n product, as
PyTorch's own counter sees them while the layer runs; sums, softmax and tanh count nothing.

Sequential operations are the longest chain of products of which each needs the result of the one
before. Every operation that the layer dispatches is seen with its inputs and outputs; a result's
depth is that of its deepest input, and one more if the operation is a product. So the chain is
found, not assumed. Two conventions, both the paper's: a product is one operation, however many
sums of how many numbers it is made of, because those do not wait for other positions; and what
costs no product (softmax, sums, copies) does not lengthen a chain.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from dragoman.errors import DragomanError
from dragoman.paper.table1.layers import DILATED, Layer, build

__all__ = [
    "Operations",
    "back",
    "hops",
    "longest_chain",
    "operations",
    "path_length",
    "sequential",
]


@dataclass(frozen=True, slots=True)
class Operations:
    """Of a pass over one sentence."""

    mixing: int
    """What Table 1 counts: of an attention the scores and the weighted values, else everything."""
    projections: int
    """What every position computes alone, where that is apart: Q, K, V and W^O of an attention."""

    @property
    def all(self) -> int:
        """Of the whole layer."""
        return self.mixing + self.projections


def operations(layer: Layer, n: int, d: int) -> tuple[Operations, Operations]:
    """Of a forward pass over n positions, and of forward and backward together."""
    layer = deepcopy(layer).to(layer.counted_on)
    x_1ND = torch.zeros(1, n, d, device=layer.counted_on, requires_grad=True)
    # Fused attention computes the same products out of the counter's sight.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        y_1ND = layer(x_1ND)
        forward = _split(counter, layer)
        y_1ND.backward(torch.zeros_like(y_1ND))
        return forward, _split(counter, layer)


def sequential(layer: Layer, n: int, d: int) -> int:
    """The longest chain of products that wait for each other in a forward pass."""
    layer = deepcopy(layer).to(layer.counted_on)
    x_1ND = torch.zeros(1, n, d, device=layer.counted_on)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        return longest_chain(layer, x_1ND)


def longest_chain(function: Callable[[Tensor], Tensor], x: Tensor) -> int:
    """Products on the longest way from anything to the result of the function."""
    chain = _Chain()
    with chain:
        y = function(x)
    return chain.depth(y)


def _split(counter: FlopCounterMode, layer: Layer) -> Operations:
    counts = counter.get_flop_counts()["Global"]
    apart = sum(count for operator, count in counts.items() if operator in layer.projections)
    return Operations(sum(counts.values()) - apart, apart)


class _Chain(TorchDispatchMode):
    """Keeps the depth of every tensor that is computed while it is on.

    By storage: a view is as deep as what it looks at, and a tensor that is written in parts is as
    deep as its deepest part.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._depths: dict[int, int] = {}
        self._alive: list[Any] = []  # a storage that were freed could lend another its identity

    def depth(self, tensor: Tensor) -> int:
        """Products on the longest way to it."""
        return self._depths.get(tensor.untyped_storage()._cdata, 0)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        results = func(*args, **(kwargs or {}))
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        depth = max(map(self.depth, given), default=0)
        depth += func._overloadpacket in flop_registry
        for leaf in tree_leaves(results):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                self._alive.append(storage)
                self._depths[storage._cdata] = depth
        return results


# PART paper.reach: How far a signal travels in Table 1's sense: the hops from the first
# position to the last.
#
# A hop is a layer of a stack, or one application of the recurrence. The gradient of the last
# position's output is walked back through the real layers, hop by hop, until the first
# position's input has some. After each hop it is replaced by a random one at the positions it
# reached: a product of thousands of small factors would otherwise vanish in the arithmetic,
# which says nothing about whether there is a path. Weights and inputs are random, in float64: a
# zero is structural.


WIDTH: Final = 2
"""Of the layers that are walked through; a path does not depend on it."""


def path_length(layer: str, n: int, *, kernel: int, window: int) -> int:
    """Hops of this kind of layer between the first and the last of n positions."""

    @cache
    def at(depth: int) -> Layer:
        return build(layer, WIDTH, kernel=kernel, window=window, depth=depth)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        # Who sees whom does not depend on the weights: one layer stands for all that look alike.
        return hops(lambda depth: at(depth if layer == DILATED else 0), n)


def hops(stack: Callable[[int], Layer], n: int) -> int:
    """The least layers of a stack, built from depth 0 on, with which the last sees the first.

    The walk back begins with depth 0: of these layers the order does not change who sees whom.
    """
    reached_N = torch.zeros(n, dtype=torch.bool)
    reached_N[-1] = True
    depth = 0
    while not reached_N[0]:
        before_N, reached_N = reached_N, back(stack(depth), reached_N)
        depth += 1
        if torch.equal(before_N, reached_N):
            raise DragomanError(
                f"layer {depth} leads no further: the last of {n} never sees the first"
            )
    return depth


def back(layer: Layer, reached_N: Tensor) -> Tensor:
    """The positions whose input has a gradient, of an output that has one where `reached` says."""
    layer = layer.double()
    x_1ND = torch.randn(1, len(reached_N), WIDTH, dtype=torch.float64, requires_grad=True)
    y_1ND = layer.hop(x_1ND)
    wish_1ND = torch.randn_like(y_1ND) * reached_N[None, :, None]
    (gradient_1ND,) = torch.autograd.grad(y_1ND, x_1ND, wish_1ND)
    return (gradient_1ND[0] != 0).any(-1)
