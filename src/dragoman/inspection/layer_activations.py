"""Everything that a layer computes for a sentence is named as in the paper's formulas.

The Transformer's modules are called one by one here, in the order of §3, instead of by the layer.
A test checks that the result is the layer's.
"""

# H heads, T query pieces, S key pieces, M model width, K and V widths of a head

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from dragoman.errors import ConfigError, ModelError
from dragoman.inspection import json_arrays
from dragoman.inspection.attention import Part
from dragoman.inspection.sentence_pair import Inspectable, SentencePair, piece_labels, read_pair
from dragoman.models import Model
from dragoman.models.supported_settings import unsupported
from dragoman.models.transformer import ResidualStream
from dragoman.text.special_tokens import BOS, EOS

NEXT_PIECES: Final = 8
"""So many of the likeliest next pieces are shown."""


@dataclass(slots=True)
class LayerActivations:
    """Hold what one attention sub-layer computes, with the steps before and after it."""

    pair: SentencePair
    part: Part
    layer: int
    facts: dict[str, Any]
    """The sizes and variants of the model."""
    matrices: dict[str, Tensor] = field(default_factory=dict)
    """By the names that the page has for them: T M, H T K and the like."""
    squares: dict[str, Tensor] = field(default_factory=dict)
    """H T S: `scores`, `weights`, and `bias` where positions are added to the scores."""
    seen: Tensor | None = None
    """T S: which pieces may be attended to; None: all."""
    output: Tensor | None = None
    """T M: the output of the whole layer."""
    next_words: list[list[tuple[str, float, float]]] = field(default_factory=list)
    """For each target piece, the likeliest next ones: text, logit, probability."""

    def to_dict(self, columns: int = 512) -> dict[str, Any]:
        """Return a table that JSON can hold, with the first columns of wide matrices."""
        pair = self.pair
        rows, keys = {
            "encoder": (pair.source, pair.source),
            "decoder": (pair.decoder_input, pair.decoder_input),
            "cross": (pair.decoder_input, pair.source),
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
            "said": list(pair.predicted),
            "ids": list(ids),
            "matrices": {
                k: json_arrays.encode_matrix(v, columns) for k, v in self.matrices.items()
            },
            "squares": {k: json_arrays.encode_exact(v) for k, v in self.squares.items()},
            "seen": None if self.seen is None else json_arrays.encode_exact(self.seen.float()),
            "next": [
                [[text, round(logit, 4), round(p, 6)] for text, logit, p in one]
                for one in self.next_words
            ],
        }


def count_layers(translator: Inspectable) -> dict[Part, int]:
    """Return how many layers of each part can be inspected."""
    config = translator.config.model
    if reason := unsupported(config, "layer activations"):
        raise ModelError(f"{reason} is not computed by the paper's formulas; inspect a transformer")
    decoder = config.decoder_layers
    return {"encoder": config.encoder_layers, "decoder": decoder, "cross": decoder}


@torch.no_grad()
def compute_activations(
    translator: Inspectable, text: str, translation: str | None, part: Part, layer: int
) -> LayerActivations:
    """Compute the activations of one layer; layers are counted from 0."""
    count = count_layers(translator)[part]
    if not 0 <= layer < count:
        raise ConfigError(f"there is no {part} layer {layer + 1}: this model has {count}")
    pair = read_pair(translator, text, translation)
    model: Any = translator.model
    if not hasattr(model, "encoder"):
        raise ModelError("an ensemble is several models; inspect one of them")
    source, target = pair.rows(translator)
    stack = model.encoder if part == "encoder" else model.decoder
    block, inputs, features = stack[layer], [], None

    def record(_: Any, args: tuple[Any, ...]) -> None:
        inputs.append(args)

    hook = block.register_forward_pre_hook(record)
    try:
        features = model.features(source, target)
    finally:
        hook.remove()
    found = LayerActivations(pair, part, layer, _facts(translator))
    rows = source if part == "encoder" else target
    embedding = model.embedding if part == "encoder" else model.target_embedding
    _embed(found, embedding, rows.ids_RL, rows.positions_RL)
    _attend(found, block, *inputs[0])
    found.next_words = _predict_next(translator, model, features)
    found.matrices["features"] = features[0]
    return found


def _facts(translator: Inspectable) -> dict[str, Any]:
    config = translator.config.model
    return {
        "layers": dict(count_layers(translator)),
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


def _embed(found: LayerActivations, embedding: Any, ids: Tensor, positions: Tensor) -> None:
    """Compute embeddings and positions: §3.4 and §3.5."""
    m = found.matrices
    m["pieces"] = (embedding.pieces(ids) * embedding.scale)[0]
    m["embedded"] = embedding(ids, positions, ids.shape[1])[0]
    if embedding.positions is not None:
        m["positions"] = embedding.positions(positions[0], ids.shape[1])


def _attend(
    found: LayerActivations,
    block: Any,
    stream: ResidualStream,
    own_mask: Any,
    memory: Any = None,
    source_mask: Any = None,
) -> None:
    """Compute attention (§3.2) of one layer, and what follows in the layer."""
    m, bias = found.matrices, None
    if found.part == "cross":
        x = block.around_attention(stream, lambda y: block.attention(y, own_mask)).residual
        around, a, mask = block.around_source, block.source_attention, source_mask.mask
        y = around.norm(x) if around.pre else x
        q, (k, v) = a.split(a.query(y)), block.project_source(memory)
        m["memory"] = memory[0]
    else:
        x, around, own = stream.residual, block.around_attention, block.attention
        y, a, mask = around.norm(x) if around.pre else x, own.attention, own_mask.mask
        positions = own_mask.queries.positions_RL
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
    concatenated_TM = heads_HTV.transpose(0, 1).flatten(-2)
    attended_TM = a.output(concatenated_TM)
    m |= {"heads": heads_HTV, "joined": concatenated_TM, "attended": attended_TM}
    x = _add(found, "attention", around, x[0], attended_TM)[None]
    if found.part == "decoder":  # attention to the source comes between
        source = (*block.project_source(memory), source_mask.mask)
        x = block.around_source(
            ResidualStream.of(x), lambda y: block.attend_to_source(y, *source)
        ).residual
    _feed_forward(found, block, x[0], own_mask.queries)


def _feed_forward(found: LayerActivations, block: Any, x: Tensor, rows: Any) -> None:
    """Compute the feed-forward network: §3.3."""
    m, around, layer = found.matrices, block.around_feed_forward, block.feed_forward
    y = around.norm(x) if around.pre else x
    m["ff_x"], m["ff_input"] = x, y
    if not found.facts["experts"]:
        m["ff_inner"] = layer.inner(y)
        m["ff_active"] = layer.activate(m["ff_inner"], y)
    m["ff_output"] = layer(y[None], rows)[0]
    found.output = _add(found, "ff", around, x, m["ff_output"])


def _add(found: LayerActivations, name: str, around: Any, x: Tensor, y: Tensor) -> Tensor:
    """Compute the residual sum, and its normalisation where that comes after: §3.1."""
    total = x + y
    out: Tensor = total if around.pre else around.norm(total)
    found.matrices |= {f"{name}_sum": total, f"{name}_out": out}
    return out


def _predict_next(
    translator: Inspectable, model: Model, features: Tensor
) -> list[list[tuple[str, float, float]]]:
    """Return the likeliest pieces after every target piece."""
    logits_TV = model.logits(features)[0].float()
    probabilities_TV, index_TV = logits_TV.softmax(-1).topk(min(NEXT_PIECES, logits_TV.shape[-1]))
    found = []
    for row, ids in enumerate(index_TV.tolist()):
        texts = [piece_labels(translator.tokenizer, [0, i])[1] for i in ids]
        logits = logits_TV[row, ids].tolist()
        found.append(list(zip(texts, logits, probabilities_TV[row].tolist(), strict=True)))
    return found
