"""The model's own numbers for a sentence, as the paper's formulas name them, for one layer.

The Transformer's modules are called one by one here, in the order of §3, instead of by the layer;
what comes out is what the layer gives, which a test holds it to.
"""

# H heads, T pieces that look, S pieces that are looked at, M model width, F feed-forward width

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.errors import ConfigError, ModelError
from dragoman.inference import Translator
from dragoman.inspection import json_arrays
from dragoman.inspection.attention import Part
from dragoman.inspection.pieces import Pair, labels, read
from dragoman.models import Model
from dragoman.text.special_tokens import BOS, EOS

__all__ = ["Numbers", "layers_of", "numbers"]

TOP: Final = 8
"""Words shown of the vocabulary."""


@dataclass(slots=True)
class Numbers:
    """What is computed in one sub-layer of attention, before it and after it."""

    pair: Pair
    part: Part
    layer: int
    facts: dict[str, Any]
    """Sizes, and which of the variants this model is."""
    matrices: dict[str, Tensor] = field(default_factory=dict)
    """… by the names the page has for them: T M, H T K and the like."""
    squares: dict[str, Tensor] = field(default_factory=dict)
    """H T S: scores, weights; and `bias`, where positions act there."""
    seen: Tensor | None = None
    """T S: which pieces may be looked at; None: all."""
    output: Tensor | None = None
    """T M: of the whole layer."""
    next_words: list[list[tuple[str, float, float]]] = field(default_factory=list)
    """For each target piece, the likeliest: text, logit, probability."""

    def to_dict(self, columns: int = 512) -> dict[str, Any]:
        """As JSON holds it; of wide matrices the first columns."""
        pair = self.pair
        rows, keys = {
            "encoder": (pair.source, pair.source),
            "decoder": (pair.read, pair.read),
            "cross": (pair.read, pair.source),
        }[self.part]
        ids = (*pair.source_ids, EOS) if self.part == "encoder" else (BOS, *pair.target_ids)
        return {
            "text": pair.text,
            "translation": pair.translation,
            "part": self.part,
            "layer": self.layer,
            "facts": self.facts,
            "rows": list(rows),
            "columns": list(keys),
            "said": list(pair.said),
            "ids": list(ids),
            "matrices": {k: json_arrays.matrix(v, columns) for k, v in self.matrices.items()},
            "squares": {k: json_arrays.exact(v) for k, v in self.squares.items()},
            "seen": None if self.seen is None else json_arrays.exact(self.seen.float()),
            "next": [
                [[text, round(logit, 4), round(p, 6)] for text, logit, p in one]
                for one in self.next_words
            ],
        }


def layers_of(translator: Translator) -> dict[Part, int]:
    """How many layers there are to ask for."""
    config = translator.config.model
    if config.architecture != "transformer":
        raise ModelError(
            f"a {config.architecture} is not computed as the paper's formulas say; "
            "look into a transformer"
        )
    decoder = config.decoder_layers
    return {"encoder": config.encoder_layers, "decoder": decoder, "cross": decoder}


@torch.no_grad()
def numbers(
    translator: Translator, text: str, translation: str | None, part: Part, layer: int
) -> Numbers:
    """The numbers of one layer; layers are counted from 0."""
    there = layers_of(translator)[part]
    if not 0 <= layer < there:
        raise ConfigError(f"{part} layer {layer + 1}: this model has {there} of them")
    pair = read(translator, text, translation)
    model: Any = translator.model
    if not hasattr(model, "encoder"):
        raise ModelError("an ensemble is several models; look into one of them")
    source, target = pair.rows(translator)
    stack = model.encoder if part == "encoder" else model.decoder
    block, given, features = stack[layer], [], None

    def keep(_: Any, args: tuple[Any, ...]) -> None:
        given.append(args)

    handle = block.register_forward_pre_hook(keep)
    try:
        features = model.features(source, target)
    finally:
        handle.remove()
    found = Numbers(pair, part, layer, _facts(translator))
    rows = source if part == "encoder" else target
    embedding = model.embedding if part == "encoder" else model.target_embedding
    _embed(found, embedding, rows.ids_RL, rows.positions_RL)
    _attend(found, block, *given[0])
    found.next_words = _next_words(translator, model, features)
    found.matrices["features"] = features[0]
    return found


def _facts(translator: Translator) -> dict[str, Any]:
    config = translator.config.model
    return {
        "layers": dict(layers_of(translator)),
        "heads": config.heads,
        "d_model": config.d_model,
        "d_k": config.d_k,
        "d_v": config.d_v,
        "d_ff": config.d_ff,
        "norm": config.norm,
        "norm_kind": config.norm_kind,
        "positions": config.positions,
        "activation": config.activation,
        "experts": config.experts,
        "shared_embeddings": config.shared_embeddings,
        "vocabulary": translator.tokenizer.sizes[1],
    }


def _embed(found: Numbers, embedding: Any, ids: Tensor, positions: Tensor) -> None:
    """§3.4 and §3.5."""
    m = found.matrices
    m["pieces"] = (embedding.pieces(ids) * embedding.scale)[0]
    m["embedded"] = embedding(ids, positions, ids.shape[1])[0]
    if embedding.kind == "sinusoidal":
        m["positions"] = embedding.table[positions[0]]
    elif embedding.kind == "learned":
        last = embedding.positions.num_embeddings - 1
        m["positions"] = embedding.positions(positions[0].clamp(max=last))


def _attend(
    found: Numbers, block: Any, x: Tensor, sight: Any, memory: Any = None, source_sight: Any = None
) -> None:
    """§3.2 of one layer, with what is around it."""
    m, bias = found.matrices, None
    if found.part == "cross":
        x = block.around_attention(x, lambda y: block.attention(y, sight))
        around, a, mask = block.around_source, block.source_attention, source_sight.mask
        y = around.norm(x) if around.pre else x
        q, (k, v) = a.split(a.query(y)), block.source(memory)
        m["memory"] = memory[0]
    else:
        around, own, mask = block.around_attention, block.attention, sight.mask
        y, a = around.norm(x) if around.pre else x, own.attention
        positions = sight.queries.positions_RL
        q, k, v = own.project(y, positions)
        bias = own.bias(positions, positions)
    m["x"], m["input"] = x[0], y[0]
    m["q"], m["k"], m["v"] = q[0], k[0], v[0]
    scores_HTS = (q @ k.transpose(-1, -2))[0]
    scaled_HTS = scores_HTS * q.shape[-1] ** -0.5
    if bias is not None:
        found.squares["bias"] = bias[0].expand_as(scaled_HTS)
        scaled_HTS = scaled_HTS + bias[0]
    weights_HTS = scaled_HTS.masked_fill(~mask[0], -torch.inf).softmax(-1)
    found.squares |= {"scores": scores_HTS, "weights": weights_HTS}
    found.seen = None if bool(mask.all()) else mask[0, 0]
    heads_HTV = weights_HTS @ v[0]
    joined_TM = heads_HTV.transpose(0, 1).flatten(-2)
    attended_TM = a.output(joined_TM)
    m |= {"heads": heads_HTV, "joined": joined_TM, "attended": attended_TM}
    x = _add(found, "attention", around, x[0], attended_TM)[None]
    if found.part == "decoder":  # attention to the source comes between
        x = block.around_source(
            x, lambda y: block.look_at_source(y, *block.source(memory), source_sight.mask)
        )
    _feed_forward(found, block, x[0], sight.queries)


def _feed_forward(found: Numbers, block: Any, x: Tensor, rows: Any) -> None:
    """§3.3."""
    m, around, layer = found.matrices, block.around_feed_forward, block.feed_forward
    y = around.norm(x) if around.pre else x
    m["ff_x"], m["ff_input"] = x, y
    if not found.facts["experts"]:
        m["ff_inner"] = layer.inner(y)
        gate = layer.gate(y) if layer.activation == "swiglu" else None
        m["ff_active"] = _activated(layer.activation, m["ff_inner"], gate)
    m["ff_output"] = layer(y[None], rows)[0]
    found.output = _add(found, "ff", around, x, m["ff_output"])


def _activated(kind: str, inner: Tensor, gate: Tensor | None) -> Tensor:
    match kind:
        case "swiglu":
            assert gate is not None
            return F.silu(gate) * inner
        case "gelu":
            return F.gelu(inner)
        case "swish":
            return F.silu(inner)
    return F.relu(inner)


def _add(found: Numbers, name: str, around: Any, x: Tensor, y: Tensor) -> Tensor:
    """§3.1: the sum, and its normalisation where it comes after."""
    total = x + y
    out: Tensor = total if around.pre else around.norm(total)
    found.matrices |= {f"{name}_sum": total, f"{name}_out": out}
    return out


def _next_words(
    translator: Translator, model: Model, features: Tensor
) -> list[list[tuple[str, float, float]]]:
    """The likeliest pieces after every target piece."""
    logits_TV = model.logits(features)[0].float()
    chances_TV, index_TV = logits_TV.softmax(-1).topk(min(TOP, logits_TV.shape[-1]))
    found = []
    for row, ids in enumerate(index_TV.tolist()):
        texts = [labels(translator.tokenizer, [0, i])[1] for i in ids]
        logits = logits_TV[row, ids].tolist()
        found.append(list(zip(texts, logits, chances_TV[row].tolist(), strict=True)))
    return found
