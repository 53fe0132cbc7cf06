"""Weights rounded to int8 one after another, and laid out as the kernel reads them."""

from __future__ import annotations

import re
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
from dragoman.models import build
from dragoman.models.int8_weights import (
    CACHE_LINE,
    check_packed_weights,
    expected_shapes,
    pack_weights,
    unpack_weights,
)
from dragoman.models.weight_files import MappedSafetensors
from dragoman.models.weights import get_weights

BASE = ModelConfig(encoder_layers=2, decoder_layers=1, d_model=32, d_ff=64, heads=2, norm="pre")
KINDS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"norm": "post"},
    "learned positions": {"positions": "learned", "max_positions": 64},
    "biases": {"attention_bias": True, "output_bias": True},
    "three matrices": {"shared_embeddings": False, "output_bias": True},
    "wide heads": {"d_k": 24, "d_v": 24},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_a_model_are_known_without_it(kind: str) -> None:
    config = replace(BASE, **KINDS[kind])
    model = build(config, 150, 100)
    there = {name: tuple(tensor.shape) for name, tensor in get_weights(model).items()}
    assert expected_shapes(config, 150) == there


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


@pytest.mark.parametrize("targets", [100, 150])
@pytest.mark.parametrize("kind", KINDS)
def test_packed_weights_come_back_as_they_were_rounded(kind: str, targets: int) -> None:
    config = replace(BASE, **KINDS[kind])
    torch.manual_seed(0)
    before = get_weights(build(config, 150, targets))
    for tensor in before.values():
        tensor.copy_(torch.randn_like(tensor))
    packed = pack_weights(before, config, targets)
    check_packed_weights(packed, config, 150, targets, where="file")
    after = unpack_weights(packed, config, 150, targets)
    assert after.keys() == before.keys()
    for name, tensor in before.items():
        assert after[name].shape == tuple(tensor.shape)
        assert after[name].dtype == np.float32
        # Of these only what can be produced is packed.
        rows = targets if name.startswith("projection") else len(tensor)
        found, wanted = torch.from_numpy(after[name])[:rows], tensor[:rows]
        if tensor.dim() == 1 or "positions" in name:
            assert torch.equal(found, wanted), name
        else:
            step = wanted.abs().amax(1, keepdim=True) / 127
            assert ((found - wanted).abs() <= 0.501 * step).all(), name
    again = pack_weights(after, config, targets)
    for name, array in packed.items():
        np.testing.assert_allclose(again[name], array, rtol=1e-6, err_msg=name)


CHANGES: dict[str, tuple[Any, str]] = {
    "fewer pieces": (
        lambda p: p.update({"embedding.scale": p["embedding.scale"][:64]}),
        "embedding.scale is missing, or belongs to another model",
    ),
    "another shape of as many": (
        lambda p: p.update({"positions": p["positions"].reshape(-1, 1)}),
        "positions is missing, or belongs to another model",
    ),
    "another type": (
        lambda p: p.update({"encoder_norm.bias": p["encoder_norm.bias"].astype(np.float64)}),
        "encoder_norm.bias is missing",
    ),
    "one missing": (lambda p: p.pop("decoder.0.inner.offset"), "decoder.0.inner.offset is miss"),
    "one too many": (
        lambda p: p.update({"decoder.1.inner.bias": np.zeros(64, np.float32)}),
        "decoder.1.inner.bias belongs to another model",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_packed_weights_of_another_model_are_refused(change: str) -> None:
    config = replace(BASE, **KINDS["learned positions"])
    packed = pack_weights(get_weights(build(config, 150)), config, 150)
    CHANGES[change][0](packed)
    with pytest.raises(ModelError, match=f"^file: {re.escape(CHANGES[change][1])}"):
        check_packed_weights(packed, config, 150, 150, where="file")
