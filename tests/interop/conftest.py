"""Models to take elsewhere, small and random, or taught a little."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from dragoman.config import Config, TokenizerConfig
from dragoman.model_directory import LoadedModel, load_model, save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.phrasebook import generate
from dragoman.text.tokenizer import Tokenizer

SMALL = [
    "model.d_model=32",
    "model.d_ff=48",
    "model.heads=4",
    "model.encoder_layers=2",
    "model.decoder_layers=3",
    "search.max_extra=8",
    "search.beam=1",
    "data.max_length=63",
    "data.row_length=64",
    "model.max_positions=128",
]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    sentences = [
        text for pair in generate("de", "train", 300) for text in (pair.source, pair.target)
    ]
    return Tokenizer.train(sentences, TokenizerConfig(vocabulary=500, normalization="plain"))


Make = Callable[..., LoadedModel]


@pytest.fixture
def make(tmp_path: Path, tokenizer: Tokenizer) -> Make:
    """A model with random weights, biases and norms among them: make("model.norm=pre")."""

    def made(*assignments: str) -> LoadedModel:
        config = Config().overridden([*SMALL, 'data.languages=["en", "de"]', *assignments])
        torch.manual_seed(3)
        model = build(config.model, len(tokenizer))
        for weight in model.parameters():
            if weight.ndim == 1:
                torch.nn.init.normal_(weight, mean=0.5, std=0.3)
            else:
                weight.data *= 1.5
        directory = tmp_path / "model"
        save_model(directory, get_weights(model), config, tokenizer, {})
        return load_model(directory)

    return made


@pytest.fixture(scope="session")
def opus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian model as OPUS-MT's are, but for its size and its weights, which are random."""
    transformers = pytest.importorskip("transformers")
    import sentencepiece

    directory = tmp_path_factory.mktemp("opus")
    pairs = list(generate("de", "train", 300))
    pieces: dict[str, None] = {}
    for name, texts in (
        ("source", [pair.source for pair in pairs]),
        ("target", [pair.target for pair in pairs]),
    ):
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(texts),
            model_prefix=str(directory / name),
            model_type="unigram",
            vocab_size=200,
            normalization_rule_name="nmt_nfkc",
            minloglevel=3,
        )
        (directory / f"{name}.model").rename(directory / f"{name}.spm")
        (directory / f"{name}.vocab").unlink()
        processor = sentencepiece.SentencePieceProcessor(model_file=str(directory / f"{name}.spm"))
        pieces |= dict.fromkeys(processor.IdToPiece(i) for i in range(3, len(processor)))
    spelling = ["</s>", "<unk>", *pieces, ">>deu<<", "<pad>"]
    pad = len(spelling) - 1
    vocabulary = {piece: number for number, piece in enumerate(spelling)}
    (directory / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    options = {"source_lang": "en", "target_lang": "de", "tokenizer_class": "MarianTokenizer"}
    (directory / "tokenizer_config.json").write_text(json.dumps(options), encoding="utf-8")
    settings = transformers.MarianConfig(
        vocab_size=len(spelling),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        max_position_embeddings=512,
        activation_function="swish",
        scale_embedding=True,
        static_position_embeddings=True,
        normalize_before=False,
        add_final_layer_norm=False,
        normalize_embedding=False,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=pad,
        eos_token_id=0,
        forced_eos_token_id=0,
        decoder_start_token_id=pad,
        bad_words_ids=[[pad]],
        num_beams=6,
    )
    torch.manual_seed(5)
    model = transformers.MarianMTModel(settings)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name:
                weight.normal_(std=0.3)
        model.model.shared.weight[pad] = 0
        model.final_logits_bias.normal_()
    model.save_pretrained(directory)
    return directory
