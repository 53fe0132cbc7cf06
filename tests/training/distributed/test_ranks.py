"""Which device a run takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dragoman.errors import ConfigError
from dragoman.training.distributed.ranks import pick_device


def a_gpu_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> None:
        raise RuntimeError("MPS client failed to connect\n(Triggered internally at x.cpp:1)")

    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: str(self) == "/dev/nvidia0" or exists(self))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_a_gpu_that_does_not_start_is_no_reason_to_go_to_the_cpu_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_gpu_that_does_not_start(monkeypatch)
    with pytest.raises(ConfigError, match=r"does not start \(MPS client failed to connect\); fix"):
        pick_device("auto")
    assert pick_device("cpu").type == "cpu"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert pick_device("auto").type == "cpu"


def test_without_a_gpu_a_run_takes_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert pick_device("auto").type == "cpu"
    with pytest.raises(ConfigError, match="no GPU is visible"):
        pick_device("cuda")
