"""Sentences move in: the encoder reads them, and their slots begin anew."""

# B sentences, P source positions, M model width, H heads, L decoder layers, W = heads times width

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.translate.gpu.arithmetic import Arithmetic
from dragoman.translate.gpu.slots import SOURCE, Slots

__all__ = ["admit"]


@torch.no_grad()
def admit(do: Arithmetic, slots: Slots, ids_BP: Tensor, marks_MB: Tensor, slots_B: Tensor) -> None:
    """Put sentences into slots; `marks` are what they begin with, a column for each.

    Padding is encoded too, and kept: nobody looks at it.
    """
    w, (B, P) = do.weights, ids_BP.shape
    slots_B = slots_B.long()
    x, y = _encode(do, slots, ids_BP, marks_MB[SOURCE])
    _, memory = do.enter(x, y, w.memory)
    memory_LXW = memory.view(B * P, w.layers, 2 * w.wide).transpose(0, 1)
    places_BP = slots_B[:, None] * slots.source + torch.arange(P, device=w.device)
    slots.source_LPW.index_copy_(1, places_BP.flatten(), memory_LXW)
    slots.marks.index_copy_(1, slots_B, marks_MB)


def _encode(
    do: Arithmetic, slots: Slots, ids_BP: Tensor, lengths_B: Tensor
) -> tuple[Tensor, Tensor]:
    """The residual stream at the end of the encoder and what is still to be added, BP M each."""
    w, (B, P) = do.weights, ids_BP.shape
    pieces_BPM = F.embedding(ids_BP, w.source_pieces).float() * w.scale
    x = (pieces_BPM + slots.positions_TM[:P]).flatten(0, 1)
    seen_B11P = (torch.arange(P, device=w.device) < lengths_B[:, None])[:, None, None]
    # What is added to the scores, once for all layers: of a mask each would make it anew.
    added_B11P = torch.zeros_like(seen_B11P, dtype=w.dtype).masked_fill_(~seen_B11P, -torch.inf)
    y: Tensor | None = None
    for layer in w.encoder:
        x, qkv = do.enter(x, y, layer.attention)
        q, k, v = qkv.view(B, P, 3, w.heads, -1).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v, added_B11P)
        y = do.product(heads.transpose(1, 2).reshape(B * P, w.wide), layer.output)
        x, inner = do.enter(x, y, layer.inner)
        y = do.product(inner, layer.outer)
    assert y is not None
    return x, y
