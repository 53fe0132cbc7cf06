"""Exported models compute what ours do in their own runtimes, and nothing is written otherwise."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import torch

from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.inference import Translator
from dragoman.interop import parity
from dragoman.interop.export import PACKAGES, export, require_packages
from dragoman.interop.huggingface import from_marian, to_marian
from dragoman.model_directory import LoadedModel
from dragoman.models.weights import get_weights
from dragoman.text.special_tokens import BOS

Make = Callable[..., LoadedModel]
TEXTS = ["The bear has found her birds.", "My sister reads two old books."]


def need(to: str) -> None:
    try:
        require_packages(*PACKAGES[to])
    except ConfigError as error:
        pytest.skip(str(error))


SHALLOW = ("model.encoder_layers=1", "model.decoder_layers=1")
OPTIONS = {
    "huggingface": [
        (),
        ("model.norm=pre",),
        ("model.norm=pre", "model.positions=learned"),
        ("model.activation=gelu",),
        ("model.shared_embeddings=false",),
        ("model.norm=pre", "model.shared_embeddings=false"),
    ],
    "ctranslate2": [
        (),
        ("model.norm=pre",),
        ("model.positions=learned",),
        ("model.activation=gelu", "model.shared_embeddings=false"),
        ("model.norm=pre", "model.norm_kind=rms", "model.activation=swiglu"),
    ],
    # Tracing takes seconds for each layer. The usual options are those of the page's loop.
    "onnx": [
        ("model.positions=learned", "model.shared_embeddings=false", *SHALLOW),
        ("model.positions=rotary", "model.norm_kind=rms", "model.activation=swiglu", *SHALLOW),
        ("model.positions=relative", "model.window=3", "model.d_k=6", "model.d_v=10", *SHALLOW),
    ],
    "marian": [
        (),
        ("model.norm=pre",),
        ("model.positions=learned", "model.shared_embeddings=false"),
        ("model.norm=pre", "model.norm_kind=rms", "model.activation=gelu"),
        ("model.attention_bias=true", "model.output_bias=true", "model.activation=swish"),
    ],
}
FILES = {
    "huggingface": "config.json",
    "ctranslate2": "config.json",
    "onnx": "decoder.onnx",
    "marian": "decoder.yml",
}


@pytest.mark.parametrize(
    ("to", "assignments"),
    [
        pytest.param(to, options, marks=[pytest.mark.thorough] if to == "onnx" else [])
        for to, rows in OPTIONS.items()
        for options in rows
    ],
)
def test_scores_and_greedy_translations_are_ours(
    to: str, assignments: tuple[str, ...], make: Make, tmp_path: Path
) -> None:
    need(to)
    found = export(make(*assignments), tmp_path / "out", to, texts=TEXTS)
    assert found.difference < 1e-4
    assert found.same == found.sentences > 15
    assert (tmp_path / "out" / FILES[to]).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_transformers_generates_our_text_from_text(norm: str, make: Make, tmp_path: Path) -> None:
    need("huggingface")
    import transformers

    from dragoman.interop.huggingface import silence_transformers

    loaded = make(f"model.norm={norm}")
    get_weights(loaded.model)["embedding.pieces.weight"][:4] *= 8  # marks that would often win
    export(loaded, tmp_path / "out", "huggingface")
    with silence_transformers():
        tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "out")
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
        for text in TEXTS:
            limit = len(loaded.tokenizer.encode(text)) + loaded.config.search.max_extra
            ids = model.generate(**tokenizer(text, return_tensors="pt"), max_length=limit + 2)
            ours = Translator(loaded).translate(text, raw=True).text
            assert tokenizer.decode(ids[0], skip_special_tokens=True) == ours
    assert model.config.decoder_start_token_id == model.generation_config.bos_token_id == BOS


def test_their_order_of_features_is_undone_exactly(make: Make) -> None:
    loaded = make("model.norm=pre", "model.positions=learned")
    ours = get_weights(loaded.model)
    back = from_marian(to_marian(ours, loaded.config.model), loaded.config.model)
    assert back.keys() >= ours.keys()
    for name, weight in back.items():
        assert torch.equal(weight, ours.get(name, torch.zeros_like(weight)))


@pytest.mark.slow
def test_a_quantized_model_is_smaller_and_close(make: Make, tmp_path: Path) -> None:
    need("ctranslate2")
    loaded = make("model.norm=pre")
    export(loaded, tmp_path / "whole", "ctranslate2")
    found = export(loaded, tmp_path / "rounded", "ctranslate2", quantization="int8")
    assert 1e-4 < found.difference < 1
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("whole", "rounded")]
    assert sizes[1] < 0.6 * sizes[0]
    with pytest.raises(ConfigError, match="int3: there is no such type; choose float32"):
        export(loaded, tmp_path / "other", "ctranslate2", quantization="int3")


@pytest.mark.slow
@pytest.mark.parametrize("to", ["huggingface", "ctranslate2", "marian"])
def test_a_mismatch_fails_the_export_and_leaves_nothing(
    to: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(to)
    loaded = make()
    runtime = import_module(f"dragoman.interop.{to}")
    write = runtime.write

    def spoil(model: LoadedModel, directory: Path) -> None:
        weight = next(iter(get_weights(model.model).values()))
        weight[300] += 1  # one piece's vector
        write(model, directory)

    monkeypatch.setattr(runtime, "write", spoil)
    with pytest.raises(ModelError, match="nothing was written"):
        export(loaded, tmp_path / "out", to, texts=[loaded.tokenizer.decode([300, 300])])
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_another_translation_fails_and_a_tie_does_not(make: Make) -> None:
    reference = parity.Reference(make(), TEXTS)
    scores = reference.logits_BTV
    assert reference.compare(scores, reference.outputs, where="x").difference == 0
    other = [[*reference.outputs[0][:-1], 300], reference.outputs[1]]
    with pytest.raises(ModelError, match=r"x: translates 'The bear .* nothing was written"):
        reference.compare(scores, other, where="x")
    at = len(reference.outputs[0]) - 1
    scores[0, at, 300] = scores[0, at, reference.outputs[0][at]] + 1e-5
    assert reference.compare(scores, other, where="x").sentences == 2
    with pytest.raises(ModelError, match="scores differ from ours by nan"):
        reference.compare(scores * torch.nan, reference.outputs, where="x")


def test_a_directory_that_is_not_empty_is_refused(make: Make, tmp_path: Path) -> None:
    need("huggingface")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("precious")
    with pytest.raises(DragomanError, match="already exists and is not empty"):
        export(make(), tmp_path / "out", "huggingface")
    assert (tmp_path / "out" / "mine").read_text() == "precious"


@pytest.mark.thorough  # as all that ONNX is compiled for
def test_the_loop_on_the_onnx_page_works_as_printed(make: Make, tmp_path: Path) -> None:
    need("onnx")
    loaded = make("model.norm=pre", *SHALLOW[:1], "model.decoder_layers=2")
    assert export(loaded, tmp_path / "out", "onnx").difference < 1e-4
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    (loop,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", loop.replace("Some text.", TEXTS[0])],
        cwd=tmp_path / "out",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    ours = Translator(loaded).translate(TEXTS[0], raw=True).text
    assert ran.stdout.rstrip("\n") == ours

    # The gate is no formality: a model that differs in one vector is another model.
    get_weights(loaded.model)["embedding.pieces.weight"][300] += 1
    other = parity.Reference(loaded, [loaded.tokenizer.decode([300, 300])])
    with pytest.raises(ModelError, match="nothing was written"):
        import_module("dragoman.interop.onnx").check(tmp_path / "out", other)


@pytest.mark.slow
def test_the_lines_on_the_ctranslate2_page_work_as_printed(make: Make, tmp_path: Path) -> None:
    need("ctranslate2")
    loaded = make("model.norm=pre")
    export(loaded, tmp_path / "out", "ctranslate2")
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    limit = len(loaded.tokenizer.encode(TEXTS[0])) + loaded.config.search.max_extra
    lines = lines.replace("Some text.", TEXTS[0]).replace("DIRECTORY", str(tmp_path / "out"))
    lines = lines.replace("disable_unk", f"max_decoding_length={limit}, disable_unk")
    ran = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=True, timeout=60
    )
    ours = Translator(loaded).translate(TEXTS[0], raw=True).text
    assert ran.stdout.rstrip("\n") == ours
