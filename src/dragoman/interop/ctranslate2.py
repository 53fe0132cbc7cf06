"""Models are exported to CTranslate2 directly from our weights.

CTranslate2 runs what Marian has and more: pre-norm, RMSNorm, SwiGLU, and any table of positions,
so that our sinusoids are written as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.errors import ConfigError, ModelError
from dragoman.interop.huggingface import max_positions
from dragoman.interop.parity import Parity, Reference
from dragoman.interop.sentencepiece_model import all_pieces, normalizing_model
from dragoman.model_directory import LoadedModel
from dragoman.models.positions import sinusoids
from dragoman.models.weights import get_weights
from dragoman.system.atomic_files import write_synced
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK

QUANTIZATIONS = (
    "float32",
    "float16",
    "bfloat16",
    "int16",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
)
"""The types that weights can be stored in."""

ROUNDING_TOLERANCE = 0.1
"""The log-probability of a piece may change by so much on average if weights are rounded."""

_README = """\
# For CTranslate2

```python
import ctranslate2, sentencepiece

pieces = sentencepiece.SentencePieceProcessor(model_file="{name}/tokenizer.model")
translator = ctranslate2.Translator("{name}")
found = translator.translate_batch(
    [pieces.encode("Some text.", out_type=str)],
    beam_size={beam}, disable_unk=True, suppress_sequences=[["<pad>"], ["<s>"]],
)
print(pieces.decode(found[0].hypotheses[0]))
```

`tokenizer.model` normalises text as Dragoman does. CTranslate2 ends a source by itself. It ranks
by another length penalty: the greedy translations (`beam_size=1`) are Dragoman's, those of a beam
may differ. Weights: {quantization}.
"""


def write(loaded: LoadedModel, directory: Path, *, quantization: str = "float32") -> None:
    """Write the model as CTranslate2 reads it, with its tokeniser and a page on how to use them."""
    if quantization not in QUANTIZATIONS:
        raise ConfigError(
            f"--quantization {quantization}: there is no such type; "
            f"choose {', '.join(QUANTIZATIONS)}"
        )
    spec = _make_specification(loaded)
    pieces = all_pieces(loaded.tokenizer)
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.bos_token, spec.config.eos_token = pieces[BOS], pieces[EOS]
    spec.config.unk_token, spec.config.decoder_start_token = pieces[UNK], pieces[BOS]
    spec.config.add_source_bos, spec.config.add_source_eos = False, True
    first_norm = loaded.model.get_submodule("encoder.0.around_attention.norm")
    spec.config.add_attribute("layer_norm_epsilon", first_norm.eps)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(directory))
    (directory / "tokenizer.model").write_bytes(normalizing_model(loaded.tokenizer))
    page = _README.format(
        name="DIRECTORY", beam=loaded.config.search.beam, quantization=quantization
    )
    write_synced(directory / "README.md", page)


def _make_specification(loaded: LoadedModel) -> Any:
    import ctranslate2

    specs = ctranslate2.specs
    m = loaded.config.model
    activation = {
        "relu": specs.Activation.RELU,
        "gelu": specs.Activation.GELU,
        "swish": specs.Activation.SWISH,
        "swiglu": specs.Activation.SWISH,
    }[m.activation]
    spec = specs.TransformerSpec.from_config(
        (m.encoder_layers, m.decoder_layers),
        m.heads,
        pre_norm=m.norm == "pre",
        activation=activation,
        ffn_glu=m.activation == "swiglu",
        rms_norm=m.norm_kind == "rms",
    )
    # Copies: CTranslate2 rounds weights where they are.
    weights = {name: w.float().cpu().clone() for name, w in get_weights(loaded.model).items()}
    target = "embedding" if m.shared_embeddings else "target_embedding"
    table = sinusoids(max_positions(loaded.config), m.d_model)
    for side, prefix in ((spec.encoder, "embedding"), (spec.decoder, target)):
        first = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        first.weight = weights[f"{prefix}.pieces.weight"].numpy()
        learned = weights.get(f"{prefix}.positions.weight")
        side.position_encodings.encodings = (table if learned is None else learned).numpy()
    for i, layer in enumerate(spec.encoder.layer):
        _fill_layer(layer, weights, f"encoder.{i}")
    for i, layer in enumerate(spec.decoder.layer):
        _fill_layer(layer, weights, f"decoder.{i}")
        _fill_attention(layer.attention, weights, f"decoder.{i}.source_attention")
        _fill_norm(layer.attention.layer_norm, weights, f"decoder.{i}.around_source.norm")
    if m.norm == "pre":
        _fill_norm(spec.encoder.layer_norm, weights, "encoder_norm")
        _fill_norm(spec.decoder.layer_norm, weights, "decoder_norm")
    projection = "embedding.pieces.weight" if m.shared_embeddings else "projection.weight"
    spec.decoder.projection.weight = weights[projection].numpy()
    if "projection_bias" in weights:
        spec.decoder.projection.bias = weights["projection_bias"].numpy()
    return spec


Weights = Mapping[str, Tensor]


def _fill_layer(layer: Any, weights: Weights, name: str) -> None:
    _fill_attention(layer.self_attention, weights, f"{name}.attention.attention")
    _fill_norm(layer.self_attention.layer_norm, weights, f"{name}.around_attention.norm")
    feed_forward = f"{name}.feed_forward"
    # What goes through the activation is their linear_0; in SwiGLU that is the gate.
    gated = f"{feed_forward}.gate.weight" in weights
    _fill_linear(layer.ffn.linear_0, weights, f"{feed_forward}.{'gate' if gated else 'inner'}")
    if gated:
        _fill_linear(layer.ffn.linear_0_noact, weights, f"{feed_forward}.inner")
    _fill_linear(layer.ffn.linear_1, weights, f"{feed_forward}.outer")
    _fill_norm(layer.ffn.layer_norm, weights, f"{name}.around_feed_forward.norm")


def _fill_attention(spec: Any, weights: Weights, name: str) -> None:
    """Fill in an attention: self-attention has one matrix for queries, keys and values."""
    if len(spec.linear) == 2:
        _fill_linear(spec.linear[0], weights, *(f"{name}.{x}" for x in ("query", "key", "value")))
    else:
        _fill_linear(spec.linear[0], weights, f"{name}.query")
        _fill_linear(spec.linear[1], weights, f"{name}.key", f"{name}.value")
    _fill_linear(spec.linear[-1], weights, f"{name}.output")


def _fill_linear(spec: Any, weights: Weights, *names: str) -> None:
    spec.weight = torch.cat([weights[f"{name}.weight"] for name in names]).numpy()
    if f"{names[0]}.bias" in weights:
        spec.bias = torch.cat([weights[f"{name}.bias"] for name in names]).numpy()


def _fill_norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma = weights[f"{name}.weight"].numpy()
    if f"{name}.bias" in weights:
        spec.beta = weights[f"{name}.bias"].numpy()


def check(directory: Path, reference: Reference, *, quantization: str = "float32") -> Parity:
    """Score and translate the sample in CTranslate2, and compare with ours.

    In fp32 every score and every translation must be ours. Rounded weights may translate
    differently; their scores must be ours on average. They are compared in fp32, too: on a CPU
    without VNNI the int8 products of CTranslate2 saturate, which says nothing of the export.
    """
    import ctranslate2
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(directory / "tokenizer.model"))
    sources = [processor.encode(text, out_type=str) for text in reference.texts]
    tokenizer = reference.loaded.tokenizer
    ours = [tokenizer.pieces(ids) for ids in reference.sources]
    if sources != ours:
        raise ModelError(
            f"{directory}: its tokeniser splits the sample differently from ours; nothing was "
            "written"
        )
    translator = ctranslate2.Translator(
        str(directory), device="cpu", compute_type="float32", intra_threads=1, inter_threads=1
    )
    scored = translator.score_batch(sources, [tokenizer.pieces(ids) for ids in reference.outputs])
    theirs_N = torch.tensor([value for row in scored for value in row.log_probs])
    ours_N = torch.cat(
        [
            row_TV[: len(ids) + 1].log_softmax(-1).gather(1, torch.tensor([*ids, EOS])[:, None])
            for row_TV, ids in zip(reference.logits_BTV, reference.outputs, strict=True)
        ]
    )[:, 0]
    found = translator.translate_batch(
        sources,
        beam_size=1,
        disable_unk=True,
        suppress_sequences=[[tokenizer.pieces([mark])[0]] for mark in (PAD, BOS)],
        max_decoding_length=max(reference.limits),
    )
    ids_of = {piece: number for number, piece in enumerate(all_pieces(tokenizer))}
    outputs = [
        [ids_of[piece] for piece in row.hypotheses[0]][:limit]
        for row, limit in zip(found, reference.limits, strict=True)
    ]
    where = str(directory)
    if quantization == "float32":
        return reference.compare_scores(theirs_N, ours_N, outputs, where=where)
    return reference.compare_rounded(
        theirs_N, ours_N, outputs, where=where, limit=ROUNDING_TOLERANCE
    )
