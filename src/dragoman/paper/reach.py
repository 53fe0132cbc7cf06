"""How far a signal travels in Table 1's sense: the hops from the first position to the last.

A hop is a layer of a stack, or one application of the recurrence. The gradient of the last
position's output is walked back through the real layers, hop by hop, until the first position's
input has some. After each hop it is replaced by a random one at the positions it reached: a
product of thousands of small factors would otherwise vanish in the arithmetic, which says nothing
about whether there is a path. Weights and inputs are random, in float64: a zero is structural.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import torch
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.paper.layers import DILATED, Layer, build

__all__ = ["back", "hops", "path_length"]

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
