"""When weights are shared out; what becomes of them in processes is in test_torchrun.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from dragoman.config import Config
from dragoman.training.distributed import parallel
from dragoman.training.distributed.parallel import (
    local_rows,
    local_tensor,
    should_shard,
    state_bytes,
)
from dragoman.training.distributed.ranks import Ranks

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
MODEL = nn.Linear(1000, 1000, bias=False)  # a million weights


@pytest.mark.parametrize(
    ("assignments", "fast", "bytes_each"),
    [
        ([], False, 4 + 4 + 8),
        (["training.ema=0.9"], False, 4 + 4 + 8 + 4),
        ([], True, 4 + 4 + 8 + 2 + 2),
        (["training.ema=0.9"], True, 4 + 4 + 8 + 4 + 2 + 2),
    ],
)
def test_a_copy_of_the_state_takes_so_much(
    assignments: list[str], fast: bool, bytes_each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "uses_kernels", lambda precision, device: fast)
    settings = Config().overridden(assignments).training
    assert state_bytes(settings, 1_000_000, GPU) == bytes_each * 1_000_000


@pytest.mark.parametrize(
    ("sharding_", "world", "device", "expected"),
    [
        ("full", 2, CPU, True),
        ("full", 1, CPU, False),
        ("none", 2, GPU, False),
        ("auto", 2, CPU, False),
        ("auto", 2, GPU, True),
        ("auto", 1, GPU, False),
    ],
)
def test_shards_are_for_several_ranks_that_ask_for_them_or_need_them(
    sharding_: str,
    world: int,
    device: torch.device,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Config().overridden([f"training.sharding={sharding_}"]).training
    # 16 MB of state: three fifths of 26 MB are less.
    small = SimpleNamespace(total_memory=26_000_000)
    monkeypatch.setattr(parallel, "uses_kernels", lambda precision, device: False)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: small)
    assert should_shard(settings, MODEL, device, Ranks(0, world)) == expected


def test_what_fits_in_three_fifths_of_the_memory_is_not_shared_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parallel, "uses_kernels", lambda precision, device: False)
    large = SimpleNamespace(total_memory=27_000_000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: large)
    assert not should_shard(Config().training, MODEL, GPU, Ranks(0, 2))


def test_a_tensor_that_is_not_shared_out_is_all_there() -> None:
    tensor = torch.rand(3, 2)
    assert local_tensor(tensor) is tensor
    whole = local_rows(tensor)
    assert whole.tensor is tensor
    assert (whole.start, whole.shape, whole.is_whole) == (0, (3, 2), True)
