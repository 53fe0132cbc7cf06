"""Models are exported to Hugging Face as a directory that `transformers` loads by itself.

Post-norm models become Marian, pre-norm ones Pegasus or, with learned positions, Blenderbot: the
architectures of `transformers` that compute the same. The tokeniser is Marian's for all three.

The three name their weights alike and differ from ours in three ways. Every linear layer has a
bias, which is zero where ours has none. The sinusoids lie in halves, all sines before all cosines,
where ours alternate as in §3.5: so the features of the model are put in another order, everywhere
at once, which changes no result. Source and target share one matrix by default, under a name of
its own.
"""

# B sentences, S source length, T target length, M model width, V vocabulary

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.config import Config, ModelConfig
from dragoman.errors import ModelError
from dragoman.interop.export import require_packages
from dragoman.interop.parity import Parity, Reference
from dragoman.interop.sentencepiece_model import (
    SPECIAL_TOKENS,
    all_pieces,
    source_and_target_models,
)
from dragoman.model_directory import LoadedModel
from dragoman.models.weights import get_weights, write_tensors
from dragoman.search.batching import source_rows, target_rows
from dragoman.system.atomic_files import write_synced
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK

_ARCHITECTURES = {
    ("post", "sinusoidal"): ("marian", "MarianMTModel"),
    ("pre", "sinusoidal"): ("pegasus", "PegasusForConditionalGeneration"),
    ("pre", "learned"): ("blenderbot", "BlenderbotForConditionalGeneration"),
}

_TOKEN_IDS = {
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "forced_eos_token_id": EOS,
    "decoder_start_token_id": BOS,
}


def _architecture(config: Config) -> tuple[str, str]:
    """Return the type and the class that `transformers` has for a model that can be exported."""
    return _ARCHITECTURES[config.model.norm, config.model.positions]


def write(loaded: LoadedModel, directory: Path) -> None:
    """Write weights, settings and tokeniser as `from_pretrained` looks for them."""
    config = loaded.config
    ours = get_weights(loaded.model)
    weights = to_marian(ours, config.model)
    bias_V = ours.get("projection_bias", torch.zeros(len(loaded.tokenizer)))
    weights["final_logits_bias"] = bias_V.float().cpu()[None]
    write_tensors(weights, directory / "model.safetensors", {"format": "pt"})
    for name, model in zip(
        ("source.spm", "target.spm"), source_and_target_models(loaded.tokenizer), strict=True
    ):
        (directory / name).write_bytes(model)
    pieces = all_pieces(loaded.tokenizer)
    files: dict[str, dict[str, Any]] = {
        "config.json": _model_settings(config, len(pieces)),
        "generation_config.json": _search_settings(config),
        "tokenizer_config.json": _tokenizer_settings(config, pieces),
        "vocab.json": {piece: number for number, piece in enumerate(pieces)},
    }
    for name, table in files.items():
        write_synced(directory / name, json.dumps(table, indent=2, ensure_ascii=False) + "\n")


def max_positions(config: Config) -> int:
    """Return how many positions a runtime needs that has a fixed number of them."""
    if config.model.positions == "learned":
        return config.model.max_positions
    return max(512, config.data.max_length + config.search.max_extra + 2)


def transformer_settings(m: ModelConfig) -> dict[str, Any]:
    """Return the sizes and dropouts of a Transformer by the names that `transformers` has."""
    return {
        "d_model": m.d_model,
        "encoder_layers": m.encoder_layers,
        "decoder_layers": m.decoder_layers,
        "encoder_attention_heads": m.heads,
        "decoder_attention_heads": m.heads,
        "encoder_ffn_dim": m.d_ff,
        "decoder_ffn_dim": m.d_ff,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "activation_function": m.activation,
        "dropout": m.dropout,
        "attention_dropout": m.attention_dropout,
        "activation_dropout": m.activation_dropout,
    }


def _model_settings(config: Config, vocabulary: int) -> dict[str, Any]:
    m = config.model
    kind, name = _architecture(config)
    return {
        "architectures": [name],
        "model_type": kind,
        "is_encoder_decoder": True,
        "vocab_size": vocabulary,
        "decoder_vocab_size": vocabulary,
        **transformer_settings(m),
        "max_position_embeddings": max_positions(config),
        "static_position_embeddings": m.positions == "sinusoidal",
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": m.shared_embeddings,
        "tie_word_embeddings": m.shared_embeddings,
        **_TOKEN_IDS,
        "dtype": "float32",
    }


def _search_settings(config: Config) -> dict[str, Any]:
    return {
        **_TOKEN_IDS,
        "suppress_tokens": [PAD, BOS, UNK],
        "num_beams": config.search.beam,
        "length_penalty": config.search.length_penalty,
        "max_length": min(
            max_positions(config), config.data.max_length + config.search.max_extra + 2
        ),
    }


def _tokenizer_settings(config: Config, pieces: list[str]) -> dict[str, Any]:
    languages = config.data.languages or (None, None)
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0],
        "target_lang": languages[1],
        **{name: pieces[number] for name, number in SPECIAL_TOKENS.items()},
        "model_max_length": config.data.max_length + 1,
        "clean_up_tokenization_spaces": False,
        "separate_vocabs": False,
    }


def check(directory: Path, reference: Reference) -> Parity:
    """Load the directory as a user would, and compare tokens, scores and translations with ours."""
    require_packages("transformers")
    import transformers

    with silence_transformers():
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(directory))
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(directory)).eval()
        compare_tokenizers(tokenizer, reference, where=str(directory))
        return compare_models(model, reference, where=str(directory))


def compare_tokenizers(
    tokenizer: Any, reference: Reference, *, where: str, their_ids: Sequence[int] | None = None
) -> None:
    """Raise ModelError if a tokeniser of `transformers` reads or writes the sample not as ours.

    `their_ids` are its ids by ours, if they differ.
    """
    table = list(range(len(reference.loaded.tokenizer)) if their_ids is None else their_ids)
    for text, ours in zip(reference.texts, reference.sources, strict=True):
        ids = tokenizer(text)["input_ids"]
        if ids != [table[i] for i in (*ours, EOS)]:
            raise ModelError(
                f"{where}: its tokeniser splits {text!r} into "
                f"{tokenizer.convert_ids_to_tokens(ids)}, and ours into "
                f"{reference.loaded.tokenizer.pieces(ours)}; "
                "nothing was written"
            )
    texts = tokenizer.batch_decode(
        [[table[i] for i in (BOS, *ids, EOS)] for ids in reference.outputs],
        skip_special_tokens=True,
    )
    for ids, found in zip(reference.outputs, texts, strict=True):
        wanted = reference.loaded.tokenizer.decode(ids)
        if found != wanted and "\ufffd" not in wanted:  # broken bytes have no one text
            raise ModelError(
                f"{where}: its tokeniser decodes {found!r} where ours decodes {wanted!r}; "
                "nothing was written"
            )


@torch.no_grad()
def compare_models(
    model: Any, reference: Reference, *, where: str, their_ids: Sequence[int] | None = None
) -> Parity:
    """Compare a model of `transformers` with ours; `their_ids` are as in `compare_tokenizers`."""
    source = source_rows(reference.sources, torch.device("cpu"))
    target = target_rows(reference.outputs, torch.device("cpu"))
    table = torch.arange(reference.logits_BTV.shape[-1] if their_ids is None else len(their_ids))
    if their_ids is not None:
        table = torch.tensor(their_ids)
    inputs = {
        "input_ids": table[source.ids_RL],
        "attention_mask": (source.segments_RL > 0).long(),
    }
    scores_BTV = model(**inputs, decoder_input_ids=table[target.ids_RL]).logits[..., table]
    ours = {int(there): here for here, there in reversed(list(enumerate(table)))}
    suppressed = {} if their_ids is None else {"suppress_tokens": table[[PAD, UNK]].tolist()}
    found = model.generate(
        **inputs, num_beams=1, do_sample=False, max_length=max(reference.limits) + 2, **suppressed
    )
    outputs = []
    for row, limit in zip(found.tolist(), reference.limits, strict=True):
        pieces = [ours[number] for number in row[1:]]
        end = pieces.index(EOS) if EOS in pieces else len(pieces)
        outputs.append(pieces[: min(end, limit)])
    return reference.compare(scores_BTV.float(), outputs, where=where)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Hide the warnings and progress bars of `transformers` inside the block."""
    import transformers

    logging: Any = transformers.utils.logging
    level = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def to_marian(weights: Mapping[str, Tensor], m: ModelConfig) -> dict[str, Tensor]:
    """Return our weights by their names and in their order; biases that we do not have are zero."""
    order = _feature_order(m.d_model)
    found: dict[str, Tensor] = {}
    for weight in _weights(m):
        if weight.ours in weights:
            tensor = weights[weight.ours].float().cpu()
        else:  # only a bias can be missing, and its matrix came before
            tensor = torch.zeros(len(weights[weight.ours.removesuffix("bias") + "weight"]))
        for axis in weight.axes:
            tensor = tensor.index_select(axis, order)
        for name in weight.theirs:
            found[name] = tensor.clone()
    return found


def from_marian(theirs: Mapping[str, Tensor], m: ModelConfig) -> dict[str, Tensor]:
    """Return their weights by our names and in our order; KeyError names one that is missing."""
    order = _feature_order(m.d_model).argsort()
    found: dict[str, Tensor] = {}
    for weight in _weights(m):
        tensor = theirs[weight.theirs[0]].float()
        for axis in weight.axes:
            tensor = tensor.index_select(axis, order)
        found[weight.ours] = tensor.contiguous()
    return found


# B sentences, S source length, T target length


def _feature_order(d_model: int) -> Tensor:
    """Return for each feature of theirs the index of ours: first the sines, then the cosines."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


@dataclass(frozen=True, slots=True)
class _Weight:
    """Hold the names of one tensor, here and there."""

    ours: str
    theirs: tuple[str, ...]
    """All names that it has there; the first is read on import."""
    axes: tuple[int, ...]
    """The axes that run over the features of the model."""


_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def _weights(m: ModelConfig) -> Iterator[_Weight]:
    """Yield every weight that such a model can have, biases of the attention included."""
    yield from _embeddings(m)
    for side, count in (("encoder", m.encoder_layers), ("decoder", m.decoder_layers)):
        for i in range(count):
            ours, theirs = f"{side}.{i}", f"model.{side}.layers.{i}"
            yield from _attention(f"{ours}.attention.attention", f"{theirs}.self_attn")
            yield from _norm(f"{ours}.around_attention.norm", f"{theirs}.self_attn_layer_norm")
            if side == "decoder":
                yield from _attention(f"{ours}.source_attention", f"{theirs}.encoder_attn")
                yield from _norm(f"{ours}.around_source.norm", f"{theirs}.encoder_attn_layer_norm")
            yield _Weight(f"{ours}.feed_forward.inner.weight", (f"{theirs}.fc1.weight",), (1,))
            yield _Weight(f"{ours}.feed_forward.inner.bias", (f"{theirs}.fc1.bias",), ())
            yield _Weight(f"{ours}.feed_forward.outer.weight", (f"{theirs}.fc2.weight",), (0,))
            yield _Weight(f"{ours}.feed_forward.outer.bias", (f"{theirs}.fc2.bias",), (0,))
            yield from _norm(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm")
        if m.norm == "pre":
            yield from _norm(f"{side}_norm", f"model.{side}.layer_norm")


def _embeddings(m: ModelConfig) -> Iterator[_Weight]:
    source, target = "model.encoder.embed", "model.decoder.embed"
    if m.shared_embeddings:
        yield _Weight("embedding.pieces.weight", ("model.shared.weight",), (1,))
    else:
        yield _Weight("embedding.pieces.weight", (f"{source}_tokens.weight",), (1,))
        yield _Weight("target_embedding.pieces.weight", (f"{target}_tokens.weight",), (1,))
        yield _Weight("projection.weight", ("lm_head.weight",), (1,))
    if m.positions == "learned" and m.shared_embeddings:
        both = (f"{source}_positions.weight", f"{target}_positions.weight")
        yield _Weight("embedding.positions.weight", both, (1,))
    elif m.positions == "learned":
        yield _Weight("embedding.positions.weight", (f"{source}_positions.weight",), (1,))
        yield _Weight("target_embedding.positions.weight", (f"{target}_positions.weight",), (1,))


def _attention(ours: str, theirs: str) -> Iterator[_Weight]:
    for name, other in _PROJECTIONS.items():
        out = name == "output"
        yield _Weight(f"{ours}.{name}.weight", (f"{theirs}.{other}.weight",), (0,) if out else (1,))
        yield _Weight(f"{ours}.{name}.bias", (f"{theirs}.{other}.bias",), (0,) if out else ())


def _norm(ours: str, theirs: str) -> Iterator[_Weight]:
    for part in ("weight", "bias"):
        yield _Weight(f"{ours}.{part}", (f"{theirs}.{part}",), (0,))
