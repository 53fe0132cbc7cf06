"""Export to Hugging Face: a directory that `transformers` loads by itself.

Post-norm models become Marian, pre-norm ones Pegasus or, with learned positions, Blenderbot: the
architectures of `transformers` that compute the same. The tokeniser is Marian's for all three.
"""

# B sentences, S source length, T target length

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from dragoman.config import Config
from dragoman.errors import ModelError
from dragoman.interop.marian_names import to_theirs
from dragoman.interop.parity import Parity, Reference
from dragoman.interop.sentencepiece_model import SPECIAL, models, spelling
from dragoman.interop.support import require
from dragoman.model_directory import LoadedModel
from dragoman.models.weights import get_weights, write_tensors
from dragoman.search.batching import source_rows, target_rows
from dragoman.system.atomic_files import write_synced
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK

__all__ = ["architecture", "check", "compare", "compare_tokenizers", "longest", "quiet", "write"]

_ARCHITECTURES = {
    ("post", "sinusoidal"): ("marian", "MarianMTModel"),
    ("pre", "sinusoidal"): ("pegasus", "PegasusForConditionalGeneration"),
    ("pre", "learned"): ("blenderbot", "BlenderbotForConditionalGeneration"),
}


def architecture(config: Config) -> tuple[str, str]:
    """The type and the class that `transformers` has for a model that fits."""
    return _ARCHITECTURES[config.model.norm, config.model.positions]


def write(loaded: LoadedModel, directory: Path) -> None:
    """Weights, settings and tokeniser, as `from_pretrained` looks for them."""
    config = loaded.config
    ours = get_weights(loaded.model)
    weights = to_theirs(ours, config.model)
    bias_V = ours.get("projection_bias", torch.zeros(len(loaded.tokenizer)))
    weights["final_logits_bias"] = bias_V.float().cpu()[None]
    write_tensors(weights, directory / "model.safetensors", {"format": "pt"})
    for name, model in zip(("source.spm", "target.spm"), models(loaded.tokenizer), strict=True):
        (directory / name).write_bytes(model)
    pieces = spelling(loaded.tokenizer)
    files: dict[str, dict[str, Any]] = {
        "config.json": _model_settings(config, len(pieces)),
        "generation_config.json": _search_settings(config),
        "tokenizer_config.json": _tokenizer_settings(config, pieces),
        "vocab.json": {piece: number for number, piece in enumerate(pieces)},
    }
    for name, table in files.items():
        write_synced(directory / name, json.dumps(table, indent=2, ensure_ascii=False) + "\n")


def longest(config: Config) -> int:
    """Positions that a model of a fixed number of them needs."""
    if config.model.positions == "learned":
        return config.model.max_positions
    return max(512, config.data.max_length + config.search.max_extra + 2)


def _model_settings(config: Config, vocabulary: int) -> dict[str, Any]:
    m = config.model
    kind, name = architecture(config)
    return {
        "architectures": [name],
        "model_type": kind,
        "is_encoder_decoder": True,
        "vocab_size": vocabulary,
        "decoder_vocab_size": vocabulary,
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
        "max_position_embeddings": longest(config),
        "static_position_embeddings": m.positions == "sinusoidal",
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": m.shared_embeddings,
        "tie_word_embeddings": m.shared_embeddings,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "forced_eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "dtype": "float32",
    }


def _search_settings(config: Config) -> dict[str, Any]:
    return {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "forced_eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "suppress_tokens": [PAD, BOS, UNK],
        "num_beams": config.search.beam,
        "length_penalty": config.search.length_penalty,
        "max_length": min(longest(config), config.data.max_length + config.search.max_extra + 2),
    }


def _tokenizer_settings(config: Config, pieces: list[str]) -> dict[str, Any]:
    languages = config.data.languages or (None, None)
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0],
        "target_lang": languages[1],
        **{name: pieces[number] for name, number in SPECIAL.items()},
        "model_max_length": config.data.max_length + 1,
        "clean_up_tokenization_spaces": False,
        "separate_vocabs": False,
    }


def check(directory: Path, reference: Reference) -> Parity:
    """Load the directory as a user would and compare tokens, scores and translations."""
    require("transformers")
    import transformers

    with quiet():
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(directory))
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(directory)).eval()
        compare_tokenizers(tokenizer, reference, where=str(directory))
        return compare(model, reference, where=str(directory))


def compare_tokenizers(
    tokenizer: Any, reference: Reference, *, where: str, theirs: Sequence[int] | None = None
) -> None:
    """Refuse a tokeniser of `transformers` that reads or writes the sample otherwise than ours."""
    table = list(range(len(reference.loaded.tokenizer)) if theirs is None else theirs)
    for text, ours in zip(reference.texts, reference.sources, strict=True):
        ids = tokenizer(text)["input_ids"]
        if ids != [table[i] for i in (*ours, EOS)]:
            raise ModelError(
                f"{where}: its tokeniser makes {tokenizer.convert_ids_to_tokens(ids)} of "
                f"{text!r}, and ours {reference.loaded.tokenizer.pieces(ours)}; "
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
                f"{where}: its tokeniser makes {found!r} of pieces that are {wanted!r}; "
                "nothing was written"
            )


@torch.no_grad()
def compare(
    model: Any, reference: Reference, *, where: str, theirs: Sequence[int] | None = None
) -> Parity:
    """Compare a model of `transformers` with ours; `theirs` are its ids by ours, if others."""
    source = source_rows(reference.sources, torch.device("cpu"))
    target = target_rows(reference.outputs, torch.device("cpu"))
    table = torch.arange(reference.logits_BTV.shape[-1] if theirs is None else len(theirs))
    if theirs is not None:
        table = torch.tensor(theirs)
    inputs = {
        "input_ids": table[source.ids_RL],
        "attention_mask": (source.segments_RL > 0).long(),
    }
    scores_BTV = model(**inputs, decoder_input_ids=table[target.ids_RL]).logits[..., table]
    ours = {int(there): here for here, there in reversed(list(enumerate(table)))}
    longest = max(len(ids) for ids in reference.sources) + reference.max_extra
    never = {} if theirs is None else {"suppress_tokens": table[[PAD, UNK]].tolist()}
    found = model.generate(**inputs, num_beams=1, do_sample=False, max_length=longest + 2, **never)
    outputs = []
    for row, ids in zip(found.tolist(), reference.sources, strict=True):
        pieces = [ours[number] for number in row[1:]]
        end = pieces.index(EOS) if EOS in pieces else len(pieces)
        outputs.append(pieces[: min(end, len(ids) + reference.max_extra)])
    return reference.compare(scores_BTV.float(), outputs, where=where)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings and progress bars of `transformers`."""
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
