"""One step of the search: a piece more of every hypothesis, on the device alone."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.translate.gpu.arithmetic import Arithmetic
from dragoman.translate.gpu.slots import Slots
from dragoman.translate.gpu.trees import Trees

__all__ = ["step"]


@torch.no_grad()
def step(
    do: Arithmetic, slots: Slots, lanes: int, *, stop_early: bool, trees: Trees | None = None
) -> None:
    """Extend the hypotheses of the first `lanes` lanes; nothing is read by the host."""
    x = do.embed(slots, lanes)
    y: Tensor | None = None
    for number, layer in enumerate(do.weights.decoder):
        x, qkv = do.enter(x, y, layer.attention)
        y = do.product(do.look_back(qkv, slots, number, lanes), layer.output)
        x, queries = do.enter(x, y, layer.source)
        y = do.product(do.look_at_source(queries, slots, number, lanes), layer.source_output)
        x, inner = do.enter(x, y, layer.inner)
        y = do.product(inner, layer.outer)
    scores = do.scores(x, y)
    if trees is None:
        do.choose(scores, slots, lanes, stop_early=stop_early)
        return
    do.choose(trees.allow(scores, lanes), slots, lanes, stop_early=stop_early)
    trees.grow(lanes)
