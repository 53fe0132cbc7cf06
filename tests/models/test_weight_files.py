"""Weights taken from their file as they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from dragoman.errors import ModelError
from dragoman.models.weight_files import MappedSafetensors

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
