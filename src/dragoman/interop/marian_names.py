"""The Transformer under two names: ours, and those of the Marian family in `transformers`.

Marian (post-norm), Pegasus (pre-norm) and Blenderbot (pre-norm, learned positions) name their
weights alike and differ from ours in three ways. Every linear layer has a bias: zero where ours has
none. The sinusoids lie in halves, all sines before all cosines, where ours alternate as in §3.5: so
the features of the model are put in another order, everywhere at once, which changes no result.
Source and target share one matrix by default under a name of its own.
"""

# M model width, V vocabulary

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.config import ModelConfig

__all__ = ["Weight", "correspondence", "from_theirs", "order_of_halves", "to_theirs"]


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor and its names."""

    ours: str
    theirs: tuple[str, ...]
    """All the places it has there; ours is the first on import."""
    axes: tuple[int, ...]
    """Which of its axes run over the features of the model."""


_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def correspondence(m: ModelConfig) -> Iterator[Weight]:
    """Every weight such a model can have, biases of the attention included."""
    yield from _embeddings(m)
    for side, count in (("encoder", m.encoder_layers), ("decoder", m.decoder_layers)):
        for i in range(count):
            ours, theirs = f"{side}.{i}", f"model.{side}.layers.{i}"
            yield from _attention(f"{ours}.attention.attention", f"{theirs}.self_attn")
            yield from _norm(f"{ours}.around_attention.norm", f"{theirs}.self_attn_layer_norm")
            if side == "decoder":
                yield from _attention(f"{ours}.source_attention", f"{theirs}.encoder_attn")
                yield from _norm(f"{ours}.around_source.norm", f"{theirs}.encoder_attn_layer_norm")
            yield Weight(f"{ours}.feed_forward.inner.weight", (f"{theirs}.fc1.weight",), (1,))
            yield Weight(f"{ours}.feed_forward.inner.bias", (f"{theirs}.fc1.bias",), ())
            yield Weight(f"{ours}.feed_forward.outer.weight", (f"{theirs}.fc2.weight",), (0,))
            yield Weight(f"{ours}.feed_forward.outer.bias", (f"{theirs}.fc2.bias",), (0,))
            yield from _norm(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm")
        if m.norm == "pre":
            yield from _norm(f"{side}_norm", f"model.{side}.layer_norm")


def _embeddings(m: ModelConfig) -> Iterator[Weight]:
    source, target = "model.encoder.embed", "model.decoder.embed"
    if m.shared_embeddings:
        yield Weight("embedding.pieces.weight", ("model.shared.weight",), (1,))
    else:
        yield Weight("embedding.pieces.weight", (f"{source}_tokens.weight",), (1,))
        yield Weight("target_embedding.pieces.weight", (f"{target}_tokens.weight",), (1,))
        yield Weight("projection.weight", ("lm_head.weight",), (1,))
    if m.positions == "learned" and m.shared_embeddings:
        both = (f"{source}_positions.weight", f"{target}_positions.weight")
        yield Weight("embedding.positions.weight", both, (1,))
    elif m.positions == "learned":
        yield Weight("embedding.positions.weight", (f"{source}_positions.weight",), (1,))
        yield Weight("target_embedding.positions.weight", (f"{target}_positions.weight",), (1,))


def _attention(ours: str, theirs: str) -> Iterator[Weight]:
    for name, other in _PROJECTIONS.items():
        out = name == "output"
        yield Weight(f"{ours}.{name}.weight", (f"{theirs}.{other}.weight",), (0,) if out else (1,))
        yield Weight(f"{ours}.{name}.bias", (f"{theirs}.{other}.bias",), (0,) if out else ())


def _norm(ours: str, theirs: str) -> Iterator[Weight]:
    for part in ("weight", "bias"):
        yield Weight(f"{ours}.{part}", (f"{theirs}.{part}",), (0,))


def order_of_halves(d_model: int) -> Tensor:
    """Feature j of theirs is feature order[j] of ours: first the sines, then the cosines."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


def to_theirs(weights: Mapping[str, Tensor], m: ModelConfig) -> dict[str, Tensor]:
    """Our weights by their names, in their order; biases that we do not have are zero."""
    order = order_of_halves(m.d_model)
    found: dict[str, Tensor] = {}
    for weight in correspondence(m):
        if weight.ours in weights:
            tensor = weights[weight.ours].float().cpu()
        else:  # only a bias can be missing, and its matrix came before
            tensor = torch.zeros(len(weights[weight.ours.removesuffix("bias") + "weight"]))
        for axis in weight.axes:
            tensor = tensor.index_select(axis, order)
        for name in weight.theirs:
            found[name] = tensor.clone()
    return found


def from_theirs(theirs: Mapping[str, Tensor], m: ModelConfig) -> dict[str, Tensor]:
    """Their weights by our names, in our order; a missing one raises KeyError with their name."""
    order = order_of_halves(m.d_model).argsort()
    found: dict[str, Tensor] = {}
    for weight in correspondence(m):
        tensor = theirs[weight.theirs[0]].float()
        for axis in weight.axes:
            tensor = tensor.index_select(axis, order)
        found[weight.ours] = tensor.contiguous()
    return found
