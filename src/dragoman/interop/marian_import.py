"""Marian models of Hugging Face, the OPUS-MT family, are imported as model directories of ours.

So are Pegasus and Blenderbot models with Marian's tokeniser, which dragoman export makes of
pre-norm ones. Only weights are read: safetensors, or a PyTorch file without unpickling code. Their
ids are put in our order, PAD, BOS, EOS and UNK first. Marian has no BOS, and its decoder begins
with padding: our BOS gets the vector of what the decoder begins with.
"""

# V vocabulary

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.config import Config
from dragoman.errors import ModelError
from dragoman.interop.export import require_packages
from dragoman.interop.huggingface import (
    compare_models,
    compare_tokenizers,
    from_marian,
    silence_transformers,
)
from dragoman.interop.parity import Parity, Reference, sample_texts
from dragoman.model_directory import load_model, save_model
from dragoman.models.weights import read_tensors
from dragoman.system.atomic_files import atomic_directory
from dragoman.text.pair_tokenizer import PairTokenizer
from dragoman.text.tokenizer import Tokenizer

_EXPECTED: dict[str, tuple[Any, ...]] = {
    "model_type": ("marian", "pegasus", "blenderbot"),
    "normalize_before": (False, None),
    "add_final_layer_norm": (False, None),
    "normalize_embedding": (False, None),
    "scale_embedding": (True,),
    "share_encoder_decoder_embeddings": (True, None),
    "tie_word_embeddings": (True, None),
    "activation_function": ("relu", "gelu", "swish", "silu"),
}
"""The values of settings that can be imported; None: a setting that is left out."""

_EQUAL = (
    ("encoder_attention_heads", "decoder_attention_heads"),
    ("encoder_ffn_dim", "decoder_ffn_dim"),
)
"""Settings that must be equal: ours has one for encoder and decoder."""

_EMBEDDINGS = (
    "model.shared",
    "model.decoder.embed_tokens",
    "model.encoder.embed_tokens",
    "lm_head",
)
"""The names of the one matrix of embeddings, of which a file may have any."""


def import_marian(source: Path, directory: Path, *, texts: Sequence[str] = ()) -> Parity:
    """Make a model directory, which appears once it translates as `transformers` does.

    `texts` are compared besides the usual sample.
    """
    require_packages("transformers")
    settings = _read_settings(source)
    tokenizer, their_ids = _read_tokenizer(source, settings)
    config = _convert_config(source, settings, len(tokenizer))
    weights = _convert_weights(source, config, their_ids)
    card = {"imported": "huggingface", "from": settings.get("_name_or_path") or source.name}
    with atomic_directory(directory) as temporary:
        save_model(temporary, weights, config, tokenizer, card)
        loaded = load_model(temporary)
        reference = Reference(loaded, sample_texts(loaded, texts))
        import transformers

        with silence_transformers():
            there: Any = transformers.AutoModelForSeq2SeqLM
            model = there.from_pretrained(str(source), local_files_only=True)
            there = transformers.MarianTokenizer
            compare_tokenizers(
                there.from_pretrained(str(source), local_files_only=True),
                reference,
                where=str(source),
                their_ids=their_ids,
            )
            return compare_models(
                model.eval().float(), reference, where=str(source), their_ids=their_ids
            )


def _read_settings(source: Path) -> dict[str, Any]:
    settings = _read_json(source / "config.json")
    for key, wanted in _EXPECTED.items():
        if settings.get(key) not in wanted:
            raise ModelError(
                f"{source / 'config.json'}: {key} = {settings.get(key)}, and Dragoman imports "
                f"models with {' or '.join(str(value) for value in wanted if value is not None)}"
            )
    for one, other in _EQUAL:
        if settings.get(one) != settings.get(other):
            raise ModelError(
                f"{source / 'config.json'}: {one} = {settings.get(one)} and {other} = "
                f"{settings.get(other)}; Dragoman imports models where they are equal"
            )
    return settings


def _read_json(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"{path}: no such file; give the directory of a downloaded Marian model"
        ) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not a readable JSON file ({error})") from None
    if not isinstance(table, dict):
        raise ModelError(f"{path}: not a JSON object; this is not a file of a Marian model")
    return table


def _read_tokenizer(source: Path, settings: dict[str, Any]) -> tuple[Tokenizer, list[int]]:
    """Return a tokeniser of their two SentencePiece models under our ids, and their id of each."""
    options = _read_json(source / "tokenizer_config.json")
    if options.get("separate_vocabs"):
        raise ModelError(
            f"{source / 'tokenizer_config.json'}: separate_vocabs = True, and Dragoman imports "
            "models with one vocabulary"
        )
    vocabulary = _read_json(source / "vocab.json")
    pad, end = settings["pad_token_id"], settings["eos_token_id"]
    begin = settings["decoder_start_token_id"]
    unknown = vocabulary.get(str(options.get("unk_token") or "<unk>"))
    spelling = {number: piece for piece, number in vocabulary.items()}
    if unknown is None or sorted(spelling) != list(range(settings["vocab_size"])):
        raise ModelError(
            f"{source / 'vocab.json'}: does not number {settings['vocab_size']} pieces with "
            "<unk> among them; the files belong to different models"
        )
    rest = [number for number in sorted(spelling) if number not in (pad, begin, end, unknown)]
    their_ids = [pad, begin, end, unknown, *rest]
    start = "<s>" if "<s>" not in vocabulary else "<start>"
    if begin != pad:
        start = spelling.get(begin, start)
    pieces = [spelling[pad], start, *(spelling[number] for number in their_ids[2:])]
    try:
        reads, writes = ((source / f"{side}.spm").read_bytes() for side in ("source", "target"))
    except OSError as error:
        raise ModelError(f"{error.filename}: cannot be read ({error.strerror})") from None
    return PairTokenizer.from_models(reads, writes, pieces), their_ids


def _convert_config(source: Path, settings: dict[str, Any], vocabulary: int) -> Config:
    options = _read_json(source / "tokenizer_config.json")
    languages = [options.get("source_lang"), options.get("target_lang")]
    activation = settings["activation_function"]
    search = source / "generation_config.json"
    beam = (_read_json(search) if search.exists() else settings).get("num_beams") or 4
    kind = settings["model_type"]
    most = settings["max_position_embeddings"]
    learned = {"positions": "learned", "max_positions": most}
    lengths = {"row_length": min(256, most), "max_length": min(200, most - 1)}
    tables: dict[str, dict[str, Any]] = {
        "tokenizer": {"kind": "unigram", "vocabulary": vocabulary, "normalization": "none"},
        "data": {
            **({"languages": languages} if all(isinstance(x, str) for x in languages) else {}),
            **(lengths if kind == "blenderbot" else {}),
        },
        "model": {
            "encoder_layers": settings["encoder_layers"],
            "decoder_layers": settings["decoder_layers"],
            "d_model": settings["d_model"],
            "d_ff": settings["encoder_ffn_dim"],
            "heads": settings["encoder_attention_heads"],
            "activation": "swish" if activation == "silu" else activation,
            "dropout": float(settings.get("dropout", 0.1)),
            "attention_dropout": float(settings.get("attention_dropout", 0.0)),
            "activation_dropout": float(settings.get("activation_dropout", 0.0)),
            "norm": "post" if kind == "marian" else "pre",
            **(learned if kind == "blenderbot" else {}),
            "norm_epsilon": 1e-5,
            "attention_bias": True,
            "output_bias": True,
        },
        "search": {"beam": beam},
    }
    return Config().updated(tables, where=str(source / "config.json"))


def _convert_weights(source: Path, config: Config, their_ids: Sequence[int]) -> dict[str, Tensor]:
    found, path = _read_weights(source)
    embedding = next((found[f"{n}.weight"] for n in _EMBEDDINGS if f"{n}.weight" in found), None)
    if embedding is None:
        raise ModelError(f"{path}: has no model.shared.weight; not the weights of a Marian model")
    order = torch.tensor(their_ids)
    bias_V = found.get("final_logits_bias", torch.zeros(1, len(embedding)))[0].float()
    if len(embedding) != len(bias_V) or int(order.max()) >= len(embedding):
        raise ModelError(f"{path}: {len(embedding)} pieces; the files belong to different models")
    try:
        weights = from_marian({**found, "model.shared.weight": embedding[order]}, config.model)
    except KeyError as error:
        raise ModelError(f"{path}: has no {error.args[0]}; it is incomplete") from None
    return {**weights, "projection_bias": bias_V[order]}


def _read_weights(source: Path) -> tuple[dict[str, Tensor], Path]:
    path = source / "model.safetensors"
    if path.exists():
        return read_tensors(path), path
    path = source / "pytorch_model.bin"
    try:
        found: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ModelError(f"{source}: has neither model.safetensors nor pytorch_model.bin") from None
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError):
        raise ModelError(
            f"{path}: truncated, or holds more than weights, which Dragoman does not run; "
            "convert it to safetensors"
        ) from None
    return found, path
