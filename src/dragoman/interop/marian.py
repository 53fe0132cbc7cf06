"""Models are exported to Marian as an .npz file with its config inside, vocabulary and decoder.yml.

Marian has two Transformers, and ours is written for one of them by the precision:

- In float32 for the type `transformer-new`, which has tables of positions of its own for encoder
  and decoder, so that our sinusoids, or learned positions, are written as they are. Every score and
  every translation is ours.
- In int8 for the type `transformer`, the only one whose weights Marian packs. It computes sinusoids
  itself, and others than the paper's: 10000^(-i/(n-1)) where ours are 10000^(-i/n), n = d_model/2.
  Scores are near ours. Its pre-norm decoder is not what was trained: from the second step on it
  does not normalise what keys and values are made of.

Marian has no BOS: its decoder begins with a vector of zeros. In float32 our BOS is part of the
decoder's first position. In int8 it is subtracted from all embeddings, and the first layer of each
stack adds it again by its biases; a tied output layer then lowers all logits of a position alike.
"""

# V vocabulary, M model width, T positions

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from dragoman.config import Config, ModelConfig
from dragoman.errors import ConfigError, ModelError
from dragoman.interop.parity import Parity, Reference
from dragoman.interop.sentencepiece_model import (
    all_pieces,
    normalizing_model,
    source_and_target_models,
)
from dragoman.model_directory import LoadedModel
from dragoman.models.positions import position_table
from dragoman.models.weights import get_weights
from dragoman.system.atomic_files import write_synced
from dragoman.text.pair_tokenizer import PairTokenizer
from dragoman.text.special_tokens import BOS, EOS, PAD
from dragoman.text.tokenizer import Tokenizer

QUANTIZATIONS: Final = ("float32", "int8")
"""The types that weights can be stored in."""
GEMM_TYPE: Final = "intgemm8"
"""Marian's int8 that is packed anew for the processor it is loaded on, VNNI included."""
ROUNDING_TOLERANCE: Final = 0.1
"""In int8 the log-probability of a piece may change by so much on average."""
MAX_LENGTH_FACTOR: Final = 3
"""An output may have so many times as many pieces as its source, Marian's own default."""
NEVER: Final = -1e8
"""The bias of pieces that are never an output, which Marian cannot be told otherwise."""

_ENCODER, _DECODER = "TransformerBatchEncoder->encoder", "TransformerBatchDecoder->decoder"
_PROJECTIONS: Final = {"query": "q", "key": "k", "value": "v", "output": "o"}

_README = """\
# For Marian

```console
$ echo "{example}" | python -m pymarian decode -c DIRECTORY/decoder.yml --quiet
```

```python
from pymarian import Translator

translator = Translator("-c DIRECTORY/decoder.yml --quiet")
print(translator.translate({given}))
```

{vocabulary}

`decoder.yml` has what `search` of the model's config says. It ranks by another length penalty: the
greedy translations (`--beam-size 1`) are Dragoman's{nearly}, those of a beam may differ. An output
has at most {factor} times as many pieces as its source.

{batches}
"""
_TEXT = "`vocab.spm` normalises text as Dragoman does."
_PIECES = (
    "`vocab.yml` numbers the pieces of two SentencePiece models: text is split by `source.spm` "
    "first, and pieces are joined by `target.spm`, as with the models of OPUS-MT."
)
_ONE_BY_ONE = """\
Sentences are translated one at a time (`mini-batch: 1`). On a CPU Marian 1.12.42 computes padded
batches of this type wrongly if their width is a multiple of four."""
_BATCHES = """\
Weights are in int8 ({gemm}). Marian computes sinusoids of slightly other frequencies than
Dragoman's, so that translations may differ a little more than by rounding."""


def write(loaded: LoadedModel, directory: Path, *, quantization: str = "float32") -> None:
    """Write the model as Marian reads it, with its vocabulary and a page on how to use them."""
    if quantization not in QUANTIZATIONS:
        raise ConfigError(
            f"--quantization {quantization}: there is no such type; "
            f"choose {', '.join(QUANTIZATIONS)}"
        )
    packed = quantization == "int8"
    vocabularies = _write_vocabulary(loaded.tokenizer, directory)
    model = directory / "model.npz"
    _write_npz(model, loaded, _sinusoidal_arrays(loaded) if packed else _exact_arrays(loaded))
    if packed:
        run_marian("convert", "--from", model, "--to", model.with_suffix(".bin"), "-g", GEMM_TYPE)
        model.unlink()
    settings = _decoder_settings(loaded.config, packed, vocabularies)
    write_synced(directory / "decoder.yml", _yaml(settings))
    write_synced(directory / "README.md", _page(loaded.tokenizer, packed))


def _page(tokenizer: Tokenizer, packed: bool) -> str:
    text = "Some text."
    pieces = isinstance(tokenizer, PairTokenizer)
    example = " ".join(tokenizer.pieces(tokenizer.encode(text))) if pieces else text
    return _README.format(
        example=example,
        given=json.dumps([example], ensure_ascii=False),
        vocabulary=_PIECES if pieces else _TEXT,
        nearly=" but for rounding" if packed else "",
        factor=MAX_LENGTH_FACTOR,
        batches=_BATCHES.format(gemm=GEMM_TYPE) if packed else _ONE_BY_ONE,
    )


# --- files ---


def _write_vocabulary(tokenizer: Tokenizer, directory: Path) -> list[str]:
    """Write what numbers the pieces; return the names of the files for source and target."""
    if not isinstance(tokenizer, PairTokenizer):
        (directory / "vocab.spm").write_bytes(normalizing_model(tokenizer))
        return ["vocab.spm", "vocab.spm"]
    for name, model in zip(
        ("source.spm", "target.spm"), source_and_target_models(tokenizer), strict=True
    ):
        (directory / name).write_bytes(model)
    _write_pieces(directory / "vocab.yml", tokenizer)
    return ["vocab.yml", "vocab.yml"]


def _write_pieces(path: Path, tokenizer: Tokenizer) -> None:
    """Write a vocabulary of pieces, which Marian reads between spaces."""
    # A piece may be "no" or "#", which YAML reads as something else: as JSON it is a string.
    quoted = (json.dumps(piece, ensure_ascii=False) for piece in all_pieces(tokenizer))
    write_synced(path, _yaml({piece: number for number, piece in enumerate(quoted)}))


def _yaml(table: Mapping[str, Any]) -> str:
    """Return flat YAML: what JSON has for a value is YAML, too."""
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in table.items())


def _write_npz(path: Path, loaded: LoadedModel, model: tuple[str, dict[str, Tensor]]) -> None:
    kind, tensors = model
    settings = _yaml(_model_settings(loaded.config.model, len(loaded.tokenizer), kind))
    arrays: dict[str, Any] = {
        name: np.ascontiguousarray(tensor.numpy()) for name, tensor in tensors.items()
    }
    arrays["special:model.yml"] = np.frombuffer(settings.encode() + b"\0", np.int8)
    np.savez(path, **arrays)


def _model_settings(m: ModelConfig, vocabulary: int, kind: str) -> dict[str, Any]:
    """Return what Marian has to know of the model; it has no defaults for most of these."""
    norm = "r" if m.norm_kind == "rms" else "n"
    pre = m.norm == "pre"
    return {
        "type": kind,
        "dim-vocabs": [vocabulary, vocabulary],
        "dim-emb": m.d_model,
        "enc-depth": m.encoder_layers,
        "dec-depth": m.decoder_layers,
        "tied-embeddings": False,
        "tied-embeddings-src": False,
        "tied-embeddings-all": m.shared_embeddings,
        "output-omit-bias": False,
        "transformer-heads": m.heads,
        "transformer-dim-ffn": m.d_ff,
        "transformer-ffn-depth": 2,
        "transformer-ffn-activation": m.activation,
        "transformer-preprocess": norm if pre else "",
        "transformer-postprocess": "da" if pre else f"da{norm}",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": norm if pre else "",
        "transformer-train-position-embeddings": kind == "transformer-new",
        "transformer-decoder-autoreg": "self-attention",
        "transformer-decoder-dim-ffn": 0,
        "transformer-decoder-ffn-depth": 0,
        "transformer-no-projection": False,
        "transformer-pool": False,
        "transformer-tied-layers": [],
        "transformer-guided-alignment-layer": "last",
        "transformer-attention-mask": "default",
        "transformer-alibi-shift": False,
        "transformer-alibi-trainable": False,
        "transformer-disable-position-embeddings": False,
        "transformer-no-bias": False,
        "transformer-no-affine": False,
        "layer-normalization": False,
        "right-left": False,
        "skip": False,
        "ulr": False,
        "input-types": [],
        "factors-combine": "sum",
        "factors-dim-emb": 0,
        "lemma-dependency": "",
        "lemma-dim-emb": 0,
        "version": "v1.12.42",
    }


def _decoder_settings(config: Config, packed: bool, vocabularies: list[str]) -> dict[str, Any]:
    """Return the options of `marian decode`."""
    batches = (
        {"mini-batch": 32, "maxi-batch": 100, "maxi-batch-sort": "src"}
        if packed
        else {"mini-batch": 1, "maxi-batch": 1}
    )
    return {
        "relative-paths": True,
        "models": ["model.bin" if packed else "model.npz"],
        "vocabs": vocabularies,
        "beam-size": config.search.beam,
        "normalize": config.search.length_penalty,
        "max-length": count_positions(config),
        "max-length-factor": MAX_LENGTH_FACTOR,
        "cpu-threads": 1,
        **batches,
    }


def count_positions(config: Config) -> int:
    """Return how many positions Marian has, at which it ends with an error.

    There are enough for the longest output of a source that the model may read.
    """
    return max(1024, MAX_LENGTH_FACTOR * (config.data.max_length + 1))


# --- weights ---


class _Weights:
    """Hold our weights in float32, and zeros for biases that we do not have."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.model = loaded.config.model
        self._found = {n: w.float().cpu().clone() for n, w in get_weights(loaded.model).items()}

    def get(self, name: str) -> Tensor | None:
        """Return a weight, or None."""
        return self._found.get(name)

    def __getitem__(self, name: str) -> Tensor:
        return self._found[name]

    def bias(self, name: str) -> Tensor:
        """Return the bias of a linear layer or a norm."""
        found = self._found.get(f"{name}.bias")
        return torch.zeros(len(self._found[f"{name}.weight"])) if found is None else found

    @property
    def target_embedding(self) -> str:
        """Return the name of the target's embedding."""
        return "embedding" if self.model.shared_embeddings else "target_embedding"

    def output_bias(self) -> Tensor:
        """Return the bias of the output layer, V, by which marks are never an output."""
        size = len(self._found["embedding.pieces.weight"])
        found = self._found.get("projection_bias", torch.zeros(size)).clone()
        found[[PAD, BOS]] = NEVER
        return found


def _exact_arrays(loaded: LoadedModel) -> tuple[str, dict[str, Tensor]]:
    """Return the weights by the names of the type `transformer-new`, with tables of positions.

    It does not multiply embeddings by √d_model: they are written so. Where they are the output
    layer, too, the norm before that is divided by the same.
    """
    w = _Weights(loaded)
    m = w.model
    scale = math.sqrt(m.d_model)
    found: dict[str, Tensor] = {}

    def add_linear(theirs: str, ours: str) -> None:
        found[f"{theirs}->weight"] = w[f"{ours}.weight"].T
        found[f"{theirs}->bias"] = w.bias(ours)

    def add_norm(theirs: str, ours: str, divisor: float = 1.0) -> None:
        found[f"{theirs}->norm->weight"] = w[f"{ours}.weight"] / divisor
        found[f"{theirs}->norm->bias"] = w.bias(ours) / divisor

    def add_attention(theirs: str, ours: str) -> None:
        for name, letter in _PROJECTIONS.items():
            add_linear(f"{theirs}->{letter}Proj", f"{ours}.{name}")

    relu = m.activation == "relu"
    inner, outer = ("LinearReluDropout", 1) if relu else ("Linear", 3)
    around = "preprocessor" if m.norm == "pre" else "postprocessor"
    kinds = (
        (_ENCODER, "encoder", m.encoder_layers, "EncoderLayer", "selfAttentionBlock"),
        (
            _DECODER,
            "decoder",
            m.decoder_layers,
            "DecoderLayerWithCrossAttention",
            "autoRegressiveBlock",
        ),
    )
    for stack, side, count, kind, block in kinds:
        tied = side == "decoder" and m.shared_embeddings
        for i in range(count):
            layer = f"{stack}->layers->at({i})->as<marian::nn::Transformer{kind}>()"
            add_attention(f"{layer}->{block}->selfAttention", f"{side}.{i}.attention.attention")
            add_norm(f"{layer}->{block}->{around}", f"{side}.{i}.around_attention.norm")
            if side == "decoder":
                block_there = f"{layer}->crossAttentionBlock"
                add_attention(f"{block_there}->crossAttention", f"{side}.{i}.source_attention")
                add_norm(f"{block_there}->{around}", f"{side}.{i}.around_source.norm")
            layers = f"{layer}->filterBlock->layers"
            add_linear(
                f"{layers}->at(0)->as<marian::nn::{inner}>()", f"{side}.{i}.feed_forward.inner"
            )
            add_linear(
                f"{layers}->at({outer})->as<marian::nn::Linear>()", f"{side}.{i}.feed_forward.outer"
            )
            last = tied and m.norm == "post" and i == count - 1
            add_norm(
                f"{layer}->filterBlock->{around}",
                f"{side}.{i}.around_feed_forward.norm",
                scale if last else 1.0,
            )
        if m.norm == "pre":
            add_norm(f"{stack}->postprocessor", f"{side}_norm", scale if tied else 1.0)
        embedding = "embedding" if side == "encoder" else w.target_embedding
        learned = w.get(f"{embedding}.positions.weight")
        positions_TM = position_table(count_positions(loaded.config), m.d_model, learned).clone()
        if side == "decoder":
            positions_TM[0] += scale * w[f"{embedding}.pieces.weight"][BOS]
        found[f"{stack}->positionEmbedding->embeddings"] = positions_TM
    if m.shared_embeddings:
        found["Wemb"] = scale * w["embedding.pieces.weight"]
    else:
        found["encoder_Wemb"] = scale * w["embedding.pieces.weight"]
        found["decoder_Wemb"] = scale * w["target_embedding.pieces.weight"]
        found["decoder_ff_logit_out_W"] = w["projection.weight"].T
    found["decoder_ff_logit_out_b"] = w.output_bias()[None]
    return "transformer-new", found


def _sinusoidal_arrays(loaded: LoadedModel) -> tuple[str, dict[str, Tensor]]:
    """Return the weights by the names of the type `transformer`, post-norm, without positions.

    Its sinusoids lie in halves, all sines before all cosines, where ours alternate: the features
    of the model are put in another order, everywhere at once, which changes no result.
    """
    w = _Weights(loaded)
    m = w.model
    order = torch.cat([torch.arange(0, m.d_model, 2), torch.arange(1, m.d_model, 2)])
    found: dict[str, Tensor] = {}

    def add_linear(theirs: str, letter: object, ours: str, *, reads: bool, writes: bool) -> None:
        weight, bias = w[f"{ours}.weight"], w.bias(ours)
        weight = weight[:, order] if reads else weight
        weight, bias = (weight[order], bias[order]) if writes else (weight, bias)
        found[f"{theirs}_W{letter}"], found[f"{theirs}_b{letter}"] = weight.T, bias[None]

    def add_attention(theirs: str, ours: str) -> None:
        for name, letter in _PROJECTIONS.items():
            out = name == "output"
            add_linear(theirs, letter, f"{ours}.{name}", reads=not out, writes=out)

    def add_norm(theirs: str, ours: str) -> None:
        found[f"{theirs}_ln_scale"] = w[f"{ours}.weight"][order][None]
        found[f"{theirs}_ln_bias"] = w.bias(ours)[order][None]

    for side, count in (("encoder", m.encoder_layers), ("decoder", m.decoder_layers)):
        for i in range(count):
            theirs, ours = f"{side}_l{i + 1}", f"{side}.{i}"
            add_attention(f"{theirs}_self", f"{ours}.attention.attention")
            add_norm(f"{theirs}_self_Wo", f"{ours}.around_attention.norm")
            if side == "decoder":
                add_attention(f"{theirs}_context", f"{ours}.source_attention")
                add_norm(f"{theirs}_context_Wo", f"{ours}.around_source.norm")
            feed_forward = f"{ours}.feed_forward"
            add_linear(f"{theirs}_ffn", 1, f"{feed_forward}.inner", reads=True, writes=False)
            add_linear(f"{theirs}_ffn", 2, f"{feed_forward}.outer", reads=False, writes=True)
            add_norm(f"{theirs}_ffn_ffn", f"{ours}.around_feed_forward.norm")
    pieces_VM = w[f"{w.target_embedding}.pieces.weight"][:, order]
    begin_M = pieces_VM[BOS].clone()
    without_begin_VM = pieces_VM - begin_M
    shifted = ["decoder"]
    if m.shared_embeddings:
        found["Wemb"] = without_begin_VM
        shifted.append("encoder")
    else:
        found["encoder_Wemb"] = w["embedding.pieces.weight"][:, order]
        found["decoder_Wemb"] = without_begin_VM
        found["decoder_ff_logit_out_W"] = w["projection.weight"][:, order].T
    for side in shifted:
        first = f"{side}_l1_self"
        added_M = math.sqrt(m.d_model) * begin_M
        for letter in ("q", "k", "v"):
            found[f"{first}_b{letter}"] = (
                found[f"{first}_b{letter}"] + added_M @ found[f"{first}_W{letter}"]
            )
        found[f"{first}_bo"] = found[f"{first}_bo"] + added_M
    found["decoder_ff_logit_out_b"] = w.output_bias()[None]
    return "transformer", found


# --- comparison ---


def check(directory: Path, reference: Reference, *, quantization: str = "float32") -> Parity:
    """Score and translate the sample in Marian, and compare with ours.

    In float32 every score and every translation must be ours. In int8 translations may differ;
    scores must be ours on average.
    """
    packed = quantization == "int8"
    tokenizer = reference.loaded.tokenizer
    sources = [" ".join(tokenizer.pieces(ids)) for ids in reference.sources]
    # Text, for its own tokeniser to split, where it has one.
    lines = [text.replace("\n", " ") for text in reference.texts]
    with tempfile.TemporaryDirectory(prefix="dragoman-marian-") as folder:
        place = Path(folder)
        pieces = _write_lines(place / "source", sources)
        targets = [" ".join(tokenizer.pieces(ids)) for ids in reference.outputs]
        ours = _write_lines(place / "target", targets)
        _write_pieces(place / "vocab.yml", tokenizer)
        vocabularies = ("--vocabs", place / "vocab.yml", place / "vocab.yml")
        longest = ("--max-length", count_positions(reference.loaded.config))
        common = ("--cpu-threads", 1, "--mini-batch", 8 if packed else 1)
        given = (*vocabularies, *longest, *common, "--word-scores", "--output", place / "scores")
        if packed:  # its command `score` does not read such weights
            forced = ("--force-decode", "--n-best", "--beam-size", 1)
            model = ("--models", directory / "model.bin")
            run_marian("decode", *model, "--input", pieces, ours, *forced, *given)
        else:
            model = ("--model", directory / "model.npz")
            order = ("--maxi-batch-sort", "none")
            run_marian("score", *model, "--train-sets", pieces, ours, *order, *given)
        scores = _read_word_scores(place / "scores")

        text = _write_lines(place / "text", lines)
        config = ("--config", directory / "decoder.yml")
        search = ("--beam-size", 1, "--allow-special", "--no-spm-decode", *common)
        given_text = pieces if isinstance(tokenizer, PairTokenizer) else text
        run_marian("decode", *config, "--input", given_text, *search, "--output", place / "found")
        found = (place / "found").read_text(encoding="utf-8").split("\n")[:-1]
    # What was forced ends before EOS, and goes on as Marian likes.
    counts = [len(ids) + (not packed) for ids in reference.outputs]
    if (
        len(scores) != len(counts)
        or len(found) != len(counts)
        or any(len(row) < count for row, count in zip(scores, counts, strict=True))
    ):
        raise ModelError(
            f"{directory}: Marian reads other lines or pieces than ours; nothing was written"
        )
    theirs_N = torch.tensor(
        [score for row, count in zip(scores, counts, strict=True) for score in row[:count]]
    )
    ours_N = torch.cat(
        [row[:count] for row, count in zip(_log_probabilities(reference), counts, strict=True)]
    )
    ids_of = {piece: number for number, piece in enumerate(all_pieces(tokenizer))}
    outputs = [
        _complete([ids_of[piece] for piece in line.split(" ") if piece], expected, source, limit)
        for line, expected, source, limit in zip(
            found, reference.outputs, reference.sources, reference.limits, strict=True
        )
    ]
    where = str(directory)
    if not packed:
        return reference.compare_scores(theirs_N, ours_N, outputs, where=where)
    return reference.compare_rounded(
        theirs_N, ours_N, outputs, where=where, limit=ROUNDING_TOLERANCE
    )


def _write_lines(path: Path, lines: Sequence[str]) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def _read_word_scores(path: Path) -> list[list[float]]:
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    listed = (line.rpartition("WordScores=")[2].partition("|||")[0] for line in lines)
    return [[float(word) for word in one.split()] for one in listed]


def _log_probabilities(reference: Reference) -> list[Tensor]:
    """Return ours of every piece of our translations and EOS, where marks are never an output."""
    found = []
    for row_TV, ids in zip(reference.logits_BTV, reference.outputs, strict=True):
        scores_TV = row_TV[: len(ids) + 1].clone()
        scores_TV[:, [PAD, BOS]] = -torch.inf
        wanted_T = torch.tensor([*ids, EOS])
        found.append(scores_TV.log_softmax(-1).gather(1, wanted_T[:, None])[:, 0])
    return found


def _complete(
    found: list[int], ours: Sequence[int], source: Sequence[int], limit: int
) -> list[int]:
    """Return an output cut at our limit, or with the rest of ours where Marian's limit cut it."""
    cut = len(found) >= MAX_LENGTH_FACTOR * len(source)
    if cut and list(ours[: len(found)]) == found:
        return list(ours)
    return found[:limit]


# --- the program ---


def run_marian(command: str, *arguments: object) -> None:
    """Run one of Marian's commands in a process of its own, which it ends on an error.

    ModelError has its reason.
    """
    words = [sys.executable, "-m", "pymarian", command, *map(str, arguments)]
    ran = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if ran.returncode:
        lines = [line for line in ran.stderr.splitlines() if line.strip()]
        errors = [line.partition("Error: ")[2] for line in lines if "Error: " in line]
        reason = (errors or lines[-1:] or [f"status {ran.returncode}"])[0]
        raise ModelError(f"marian {command} failed: {reason}")
