"""Weights taken from their file as they lie, and rounded one after another."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from dragoman.config import ModelConfig
from dragoman.errors import ModelError
from dragoman.inference.cpu.quantization import CACHE_LINE, expected_shapes, pack_weights, sinusoids
from dragoman.models import build
from dragoman.models.transformer import sinusoids as of_the_model
from dragoman.models.weights import get_weights
from dragoman.system.mapped_safetensors import MappedSafetensors

BASE = ModelConfig(encoder_layers=2, decoder_layers=1, d_model=32, d_ff=64, heads=2, norm="pre")
KINDS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"norm": "post"},
    "learned positions": {"positions": "learned", "max_positions": 64},
    "biases": {"attention_bias": True, "output_bias": True},
    "three matrices": {"shared_embeddings": False, "output_bias": True},
    "wide heads": {"d_k": 24, "d_v": 24},
}
FORMS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_kind_of_number_is_read_as_it_was_written(form: torch.dtype, tmp_path: Path) -> None:
    there = {"b": torch.randn(7, 3).mul(50).to(form), "a": torch.arange(5).to(form)}
    save_file(there, tmp_path / "file", {"who": "me"})
    mapped = MappedSafetensors(tmp_path / "file")
    assert mapped.metadata == {"who": "me"}
    assert mapped.shapes == {"a": (5,), "b": (7, 3)}
    arrays = mapped.map_all()
    for name, tensor in there.items():
        wanted = tensor.float().numpy() if form == torch.bfloat16 else tensor.numpy()
        for found in (mapped[name], arrays[name]):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


def test_kinds_of_numbers_that_weights_never_have_are_refused(tmp_path: Path) -> None:
    save_file({"mask": torch.ones(3, dtype=torch.bool)}, tmp_path / "file")
    with pytest.raises(ModelError, match="file: mask has the unexpected type BOOL"):
        MappedSafetensors(tmp_path / "file")["mask"]


def test_a_file_that_is_cut_foreign_or_missing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    save_file({"a": torch.zeros(100)}, file)
    whole = file.read_bytes()
    for data in (whole[:-4], whole[:5], b"", b"PK\x03\x04" * 40):
        file.write_bytes(data)
        with pytest.raises(ModelError, match="file: truncated or not a safetensors file"):
            MappedSafetensors(file)
    with pytest.raises(ModelError, match="other: no such file"):
        MappedSafetensors(tmp_path / "other")


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_a_model_are_known_without_it(kind: str) -> None:
    config = replace(BASE, **KINDS[kind])
    model = build(config, 150, 100)
    there = {name: tuple(tensor.shape) for name, tensor in get_weights(model).items()}
    assert expected_shapes(config, 150) == there


@pytest.mark.parametrize("d_model", [6, 32, 512])
def test_the_sinusoids_are_the_models(d_model: int) -> None:
    np.testing.assert_allclose(
        sinusoids(700, d_model), of_the_model(700, d_model).numpy(), rtol=0, atol=6e-8
    )


@pytest.mark.parametrize("outputs", [64, 100, 2500])
def test_a_matrix_is_rounded_row_by_row_and_laid_in_blocks(outputs: int) -> None:
    torch.manual_seed(0)
    model = build(BASE, outputs)
    weight = get_weights(model)["embedding.pieces.weight"]
    packed = pack_weights(get_weights(model), BASE, outputs)
    found, scale = packed["embedding.weight"], packed["embedding.scale"]
    back = found.reshape(-1, 8, 64, 4).transpose(0, 2, 1, 3).reshape(-1, 32)
    wanted_scale = weight.abs().amax(1) / 127
    assert torch.equal(torch.from_numpy(scale[:outputs]), wanted_scale)
    wanted = (weight / wanted_scale[:, None]).round().to(torch.int8)
    assert torch.equal(torch.from_numpy(back[:outputs].copy()), wanted)
    assert not back[outputs:].any()
    assert (packed["embedding.bias"][outputs:] < -1e29).all(), "padding is never the best"
    np.testing.assert_array_equal(packed["embedding.offset"], 128 * back.sum(1, dtype=np.int32))


def test_rounding_takes_little_more_memory_than_the_result(tmp_path: Path) -> None:
    model = build(BASE, 60_000)
    save_file(get_weights(model), tmp_path / "file")
    size = (tmp_path / "file").stat().st_size
    del model
    tracemalloc.start()
    packed = pack_weights(MappedSafetensors(tmp_path / "file"), BASE, 60_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = sum(array.nbytes for array in packed.values())
    assert result < size / 2
    assert peak < result + size / 6


def test_rounded_weights_begin_where_lines_of_memory_do() -> None:
    packed = pack_weights(get_weights(build(BASE, 150)), BASE, 150)
    weights = [array for array in packed.values() if array.dtype == np.int8]
    assert weights
    assert all(array.ctypes.data % CACHE_LINE == 0 for array in weights)
