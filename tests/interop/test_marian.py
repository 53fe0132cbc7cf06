"""Models go to Marian: its names, shapes and settings; and, where it is installed, its text."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.errors import ConfigError, ModelError
from dragoman.inference import Translator
from dragoman.interop import marian
from dragoman.interop.export import export
from dragoman.interop.marian_import import import_marian
from dragoman.model_directory import LoadedModel, load_model
from dragoman.models.positions import sinusoids
from dragoman.models.weights import get_weights
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK

Make = Callable[..., LoadedModel]
TEXTS = ["The bear has found her birds.", "My sister reads two old books."]
WIDE = ("model.d_model=64", "model.d_ff=128")

needs_marian = pytest.mark.skipif(
    find_spec("pymarian") is None, reason="pymarian is not installed: dragoman[marian]"
)


def read_settings(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines())


def written(loaded: LoadedModel, directory: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays of the .npz file that is written in float32, and the settings inside."""
    directory.mkdir()
    marian.write(loaded, directory)
    arrays = dict(np.load(directory / "model.npz"))
    settings = arrays.pop("special:model.yml")
    assert settings.dtype == np.int8
    assert settings[-1] == 0, "Marian reads a string of C"
    assert all(array.dtype == np.float32 for array in arrays.values())
    return arrays, read_settings(settings[:-1].tobytes().decode())


# --- what is written, without Marian ---


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_settings_say_where_the_norms_are(norm: str, make: Make, tmp_path: Path) -> None:
    arrays, settings = written(make(f"model.norm={norm}"), tmp_path / "out")
    ops = [settings[f"transformer-{where}"] for where in ("preprocess", "postprocess")]
    top = settings["transformer-postprocess-top"]
    assert (ops, top) == ((['""', '"dan"'], '""') if norm == "post" else (['"n"', '"da"'], '"n"'))
    assert settings["type"] == '"transformer-new"'
    assert (settings["enc-depth"], settings["dec-depth"]) == ("2", "3")
    around = "postprocessor" if norm == "post" else "preprocessor"
    norms = [name for name in arrays if name.endswith("->norm->weight")]
    in_layers = [name for name in norms if f"->{around}->" in name and "layers->" in name]
    assert len(in_layers) == 2 * 2 + 3 * 3
    assert len(norms) - len(in_layers) == (2 if norm == "pre" else 0)


def test_matrices_are_transposed_and_missing_biases_are_zero(make: Make, tmp_path: Path) -> None:
    loaded = make("model.activation=swish")
    arrays, _ = written(loaded, tmp_path / "out")
    ours = get_weights(loaded.model)
    layer = (
        "TransformerBatchDecoder->decoder->layers->at(1)->"
        "as<marian::nn::TransformerDecoderLayerWithCrossAttention>()"
    )
    query = f"{layer}->crossAttentionBlock->crossAttention->qProj"
    expected = ours["decoder.1.source_attention.query.weight"].T
    assert np.array_equal(arrays[f"{query}->weight"], expected)
    assert not arrays[f"{query}->bias"].any()
    # Between the two linear layers are the activation and dropout.
    outer = f"{layer}->filterBlock->layers->at(3)->as<marian::nn::Linear>()"
    assert arrays[f"{outer}->weight"].shape == (48, 32)
    assert np.array_equal(arrays[f"{outer}->bias"], ours["decoder.1.feed_forward.outer.bias"])


def test_a_relu_is_part_of_its_linear_layer(make: Make, tmp_path: Path) -> None:
    arrays, _ = written(make(), tmp_path / "out")
    layers = {re.sub(r".*filterBlock->layers->", "", n) for n in arrays if "filterBlock" in n}
    assert "at(0)->as<marian::nn::LinearReluDropout>()->weight" in layers
    assert "at(1)->as<marian::nn::Linear>()->weight" in layers


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_embeddings_are_scaled_and_the_last_norm_undoes_it(
    norm: str, make: Make, tmp_path: Path
) -> None:
    loaded = make(f"model.norm={norm}")
    arrays, _ = written(loaded, tmp_path / "out")
    ours = get_weights(loaded.model)
    scale = math.sqrt(32)
    pieces = ours["embedding.pieces.weight"].numpy()
    np.testing.assert_allclose(arrays["Wemb"], scale * pieces, rtol=1e-6)
    last = "decoder_norm" if norm == "pre" else "decoder.2.around_feed_forward.norm"
    gain = ours[f"{last}.weight"].numpy() / scale
    (found,) = [
        name
        for name, array in arrays.items()
        if name.endswith("->norm->weight") and np.allclose(array, gain)
    ]
    assert found.startswith("TransformerBatchDecoder->decoder->")


def test_the_decoder_begins_with_our_begin_mark(make: Make, tmp_path: Path) -> None:
    loaded = make()
    arrays, _ = written(loaded, tmp_path / "out")
    rows = marian.count_positions(loaded.config)
    table = sinusoids(rows, 32).numpy()
    encoder = arrays["TransformerBatchEncoder->encoder->positionEmbedding->embeddings"]
    decoder = arrays["TransformerBatchDecoder->decoder->positionEmbedding->embeddings"]
    assert np.array_equal(encoder, table)
    assert np.array_equal(decoder[1:], table[1:])
    begin = get_weights(loaded.model)["embedding.pieces.weight"][BOS].numpy()
    np.testing.assert_allclose(decoder[0], table[0] + math.sqrt(32) * begin, rtol=1e-5)


def test_learned_positions_go_on_with_the_last(make: Make, tmp_path: Path) -> None:
    loaded = make("model.positions=learned", "model.shared_embeddings=false")
    arrays, settings = written(loaded, tmp_path / "out")
    learned = get_weights(loaded.model)["embedding.positions.weight"].numpy()
    table = arrays["TransformerBatchEncoder->encoder->positionEmbedding->embeddings"]
    assert len(learned) == 128 < len(table)
    assert np.array_equal(table[:128], learned)
    assert (table[128:] == learned[-1]).all()
    assert settings["tied-embeddings-all"] == "false"
    projection = get_weights(loaded.model)["projection.weight"].T
    assert np.array_equal(arrays["decoder_ff_logit_out_W"], projection)


def test_marks_are_never_an_output(make: Make, tmp_path: Path) -> None:
    arrays, _ = written(make("model.output_bias=true"), tmp_path / "out")
    (bias,) = arrays["decoder_ff_logit_out_b"]
    assert bias[PAD] == bias[BOS] == np.float32(marian.NEVER)
    assert abs(bias[[EOS, UNK]]).max() < 10


def test_in_int8_the_first_layers_add_the_begin_mark(make: Make) -> None:
    """What the attention reads is what it would have read, and so is what is added to it."""
    loaded = make(*WIDE, "model.attention_bias=true")
    kind, found = marian._sinusoidal_arrays(loaded)
    assert kind == "transformer"
    ours = get_weights(loaded.model)
    order = [*range(0, 64, 2), *range(1, 64, 2)]
    assert not found["Wemb"][BOS].any(), "Marian begins with zeros"
    for side in ("encoder", "decoder"):
        theirs = 8.0 * found["Wemb"][300]
        mine = 8.0 * ours["embedding.pieces.weight"][300]
        name = f"{side}.0.attention.attention"
        for letter, projection in (("q", "query"), ("k", "key"), ("v", "value")):
            expected = ours[f"{name}.{projection}.weight"] @ mine
            expected = expected + ours[f"{name}.{projection}.bias"]
            first = f"{side}_l1_self"
            got = theirs @ found[f"{first}_W{letter}"] + found[f"{first}_b{letter}"][0]
            torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
        residual = theirs + found[f"{side}_l1_self_bo"][0]
        expected = (mine + ours[f"{name}.output.bias"])[order]
        torch.testing.assert_close(residual, expected, atol=1e-4, rtol=1e-4)


def test_decoder_yml_has_the_search_of_the_config(make: Make, tmp_path: Path) -> None:
    longest = ("data.max_length=399", "data.row_length=400")
    loaded = make("search.beam=5", "search.length_penalty=0.8", *longest)
    written(loaded, tmp_path / "out")
    text = (tmp_path / "out" / "decoder.yml").read_text(encoding="utf-8")
    settings = read_settings(text)
    assert (settings["beam-size"], settings["normalize"]) == ("5", "0.8")
    assert settings["vocabs"] == '["vocab.spm", "vocab.spm"]'
    assert settings["mini-batch"] == "1", "padded batches of this type are wrong on a CPU"
    assert settings["max-length"] == "1200", "three times the longest source and its end"


def test_other_quantizations_are_refused(make: Make, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="int4: there is no such type; choose float32, int8"):
        marian.write(make(), tmp_path, quantization="int4")


def test_what_marian_says_is_one_line() -> None:
    with pytest.raises(ModelError, match=r"^marian fly failed: .+$"):
        marian.run_marian("fly")


def test_an_imported_model_keeps_its_two_tokenizers(opus: Path, tmp_path: Path) -> None:
    import_marian(opus, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    arrays, _ = written(loaded, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"vocab.yml", "source.spm", "target.spm"} <= names
    assert "vocab.spm" not in names
    lines = (tmp_path / "out" / "vocab.yml").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(loaded.tokenizer) == len(arrays["Wemb"])
    assert lines[EOS] == f'"</s>": {EOS}'


# --- with Marian ---


@needs_marian
@pytest.mark.slow
def test_int8_is_smaller_and_close(make: Make, tmp_path: Path) -> None:
    loaded = make(*WIDE)
    export(loaded, tmp_path / "whole", "marian", texts=TEXTS)
    found = export(loaded, tmp_path / "rounded", "marian", texts=TEXTS, quantization="int8")
    assert 1e-4 < found.difference < 1
    assert found.same > 0.5 * found.sentences
    assert (tmp_path / "rounded" / "model.bin").stat().st_size < 0.6 * (
        tmp_path / "whole" / "model.npz"
    ).stat().st_size


@needs_marian
@pytest.mark.slow
def test_int8_without_the_begin_mark_would_be_noticed(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = make(*WIDE)
    arrays = marian._sinusoidal_arrays

    def forget(one: LoadedModel) -> tuple[str, dict[str, torch.Tensor]]:
        kind, found = arrays(one)
        return kind, {n: w * (not n.endswith("self_bo")) for n, w in found.items()}

    get_weights(loaded.model)["embedding.pieces.weight"][BOS] *= 4
    monkeypatch.setattr(marian, "_sinusoidal_arrays", forget)
    with pytest.raises(ModelError, match=r"on average, more than 0\.1"):
        export(loaded, tmp_path / "out", "marian", quantization="int8")


@needs_marian
@pytest.mark.slow
def test_what_was_imported_goes_to_marian(opus: Path, tmp_path: Path) -> None:
    import_marian(opus, tmp_path / "model")
    found = export(load_model(tmp_path / "model"), tmp_path / "out", "marian", texts=TEXTS)
    assert found.difference < 1e-3
    assert found.same == found.sentences


@needs_marian
@pytest.mark.slow
def test_the_lines_on_the_page_work_as_printed(make: Make, tmp_path: Path) -> None:
    loaded = make("model.norm=pre", "search.max_extra=0")
    export(loaded, tmp_path / "out", "marian")
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    lines = lines.replace("Some text.", TEXTS[0]).replace("DIRECTORY", str(tmp_path / "out"))
    ran = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=True, timeout=120
    )
    ours = Translator(loaded).translate(TEXTS[0], raw=True).text
    # Three times the source there, and no more than the source here: neither ends before.
    assert eval(ran.stdout)[0].startswith(ours)
