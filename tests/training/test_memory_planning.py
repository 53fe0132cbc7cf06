"""What fits in memory, found out before the first step; here on devices that are made up."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import ConfigError
from dragoman.models import build
from dragoman.training import memory as planner
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.loop import fit
from dragoman.training.memory import (
    MemoryMeasurement,
    OomRetry,
    extrapolate_rows,
    find_largest_rows,
    find_slices,
    make_full_batch,
    plan_memory,
)
from dragoman.training.step import Stepper

from .thread_ranks import run_on_ranks

GB = 10**9


def test_the_line_through_two_sizes_tells_how_many_rows_fit() -> None:
    # 2 GB for the model, 0.1 GB a row: 2.8 GB with 8 rows, 3.6 GB with 16; 80 rows make 10 GB.
    small, large = MemoryMeasurement(8, 2_800_000_000), MemoryMeasurement(16, 3_600_000_000)
    assert extrapolate_rows(10 * GB, small, large) == 80
    assert extrapolate_rows(10 * GB - 1, small, large) == 79
    assert extrapolate_rows(2.5 * GB, small, large) == 5
    assert extrapolate_rows(GB, small, large) < 0, "not even the model"


def test_what_does_not_grow_yet_is_tried_in_twice_the_size() -> None:
    assert extrapolate_rows(GB, MemoryMeasurement(8, 500), MemoryMeasurement(16, 500)) == 32


class Device:
    """One with so much memory, and what a slice of some rows needs of it."""

    def __init__(self, memory: float, fixed: float, a_row: float, at_most: float = 0.0) -> None:
        self.memory, self.fixed, self.a_row = int(memory), fixed, a_row
        self.at_most = at_most
        """What logits take: a share of a row's need, until so many bytes are reached."""
        self.tried: list[int] = []

    def need(self, rows: int) -> int:
        return int(self.fixed + self.a_row * rows + min(self.at_most, self.a_row * rows))

    def probe(self, rows: int) -> int | None:
        self.tried.append(rows)
        return self.need(rows) if self.need(rows) <= self.memory else None


@pytest.mark.parametrize(
    ("memory", "fixed", "a_row", "at_most"),
    [
        (139 * GB, 2 * GB, 0.06 * GB, 0),
        (139 * GB, 2 * GB, 0.06 * GB, 2.4 * GB),  # the line bends: the first one is too steep
        (24 * GB, 5 * GB, 0.5 * GB, 3 * GB),
        (8 * GB, 4 * GB, 1.0 * GB, 0),
    ],
)
def test_a_batch_fills_nine_tenths_of_the_memory(
    memory: float, fixed: float, a_row: float, at_most: float
) -> None:
    device = Device(memory, fixed, a_row, at_most)
    rows = find_largest_rows(device.probe, device.memory, most=10**6)
    assert rows in device.tried, "it was probed"
    assert device.need(rows) <= 0.93 * memory
    assert device.need(int(rows * 1.04) + 1) > 0.9 * memory, "not much more would have fitted"
    assert len(device.tried) <= 8


def test_a_size_that_should_fit_and_does_not_is_reduced() -> None:
    device = Device(100 * GB, 0, GB)

    def cliff(rows: int) -> int | None:  # memory in pieces: above 60 rows nothing is found
        return None if rows > 60 else device.probe(rows)

    assert 54 <= find_largest_rows(cliff, device.memory, most=10**6) <= 60


def test_no_more_rows_are_taken_than_can_be_counted() -> None:
    device = Device(100 * GB, 0, GB)
    assert find_largest_rows(device.probe, device.memory, most=33) == 33
    assert find_largest_rows(device.probe, device.memory, most=3) == 3
    assert max(device.tried) == 33


def test_few_rows_are_found_too() -> None:
    assert find_largest_rows(Device(10 * GB, GB, 4 * GB).probe, 10 * GB, most=100) == 2
    assert find_largest_rows(Device(10 * GB, GB, 8 * GB).probe, 10 * GB, most=100) == 1
    assert find_largest_rows(Device(10 * GB, GB, 10 * GB).probe, 10 * GB, most=100) == 0


def test_slices_are_doubled_until_one_fits() -> None:
    assert find_slices(Device(40, 0, 1).probe, rows=100, slices=1) == 4
    assert find_slices(Device(200, 0, 1).probe, rows=100, slices=2) == 2
    assert find_slices(Device(1, 0, 1).probe, rows=100, slices=1) == 100
    assert find_slices(Device(0, 0, 1).probe, rows=100, slices=1) == 0


# --- planning a run ---


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Device:
    """A GPU that takes 40 rows of the tiny model, 36 of them in nine tenths."""
    device = Device(40 * GB, 0, GB)
    monkeypatch.setattr(
        planner, "_peak_memory", lambda stepper, batch: device.probe(len(batch.source_ids))
    )
    monkeypatch.setattr(planner, "_available_memory", lambda stepper: device.memory)
    return device


def stepper(config: Config, ranks: Ranks | None = None) -> Any:
    """What a stepper is to the memory."""
    ranks = ranks or Ranks()
    return SimpleNamespace(
        device=torch.device("cuda", 0),
        ranks=ranks,
        oom_retry=OomRetry(config.training.accumulate, ranks, sharded=False),
        model=SimpleNamespace(targets=330),
    )


SHAPE = (8, 64, 60)


def test_auto_becomes_a_number_of_tokens(tiny: Config, gpu: Device) -> None:
    said: list[str] = []
    config = tiny.overridden(["training.batch_tokens=auto", "training.accumulate=2"])
    planned = plan_memory(config, stepper(config), SHAPE, said.append)
    assert planned.training.batch_tokens == 36 * 2 * 64, "rows, slices, positions of a row"
    assert said == ["training.batch_tokens = 4,608: what fits in the memory"]
    assert planned == config.overridden(["training.batch_tokens=4608"]), "nothing else changes"


def test_a_batch_that_fits_is_left_alone(tiny: Config, gpu: Device) -> None:
    said: list[str] = []
    made = stepper(tiny)
    assert plan_memory(tiny, made, SHAPE, said.append) == tiny
    assert (made.oom_retry.slices, said, gpu.tried) == (1, [], [8])


def test_a_batch_that_does_not_is_cut_before_the_first_step(tiny: Config, gpu: Device) -> None:
    said: list[str] = []
    made = stepper(tiny)
    assert plan_memory(tiny, made, (100, 64, 60), said.append) == tiny
    assert made.oom_retry.slices == 4
    assert said == ["to fit in the memory, each batch is computed in 4 slices"]


@pytest.mark.parametrize("tokens", ["auto", "512"])
def test_when_nothing_fits_the_error_says_what_was_tried_and_what_to_do(
    tokens: str, tiny: Config, gpu: Device
) -> None:
    gpu.memory = GB // 2
    config = tiny.overridden([f"training.batch_tokens={tokens}"])
    with pytest.raises(ConfigError) as caught:
        plan_memory(config, stepper(config), SHAPE, lambda message: None)
    assert str(caught.value) == (
        "in 0.5 GB of GPU memory not even one row of 64 source and 60 target positions fits beside "
        "the model; lower data.row_length and data.max_length, choose a smaller model, or give it "
        "more GPUs with training.sharding=full"
    )


def test_ranks_agree_on_what_fits_the_smallest(
    tiny: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = [Device(40 * GB, 0, GB), Device(30 * GB, 0, 1.5 * GB)]
    monkeypatch.setattr(
        planner,
        "_peak_memory",
        lambda stepper, batch: devices[stepper.ranks.rank].probe(len(batch.source_ids)),
    )
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 0))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: devices[device.index].memory)
    config = tiny.overridden(["training.batch_tokens=auto"])

    def plan(ranks: Ranks) -> Config:
        made = stepper(config, ranks)
        made.device = torch.device("cuda", ranks.rank)
        return plan_memory(config, made, SHAPE, lambda message: None)

    first, second = run_on_ranks(2, plan)
    assert isinstance(first, Config), first
    assert first == second
    assert first.training.tokens == 18 * 2 * 64, "rows, ranks, positions of a row"


def test_a_memory_probe_leaves_no_trace(tiny: Config) -> None:
    torch.manual_seed(1)
    model = build(tiny.model, 330)
    made = Stepper(tiny, model, torch.device("cpu"), Ranks())
    weights = [p.detach().clone() for p in model.parameters()]
    drawn = torch.get_rng_state()
    made.probe_memory(make_full_batch(4, 64, 60, 330))
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(p, w) for p, w in zip(model.parameters(), weights, strict=True))
    assert made.loss_sums.tolist() == [0, 0]
    assert list(made.take_results()) == []


def test_a_full_batch_has_no_padding() -> None:
    batch = make_full_batch(3, 10, 7, vocabulary=50)
    assert batch.source_tokens == 30
    assert batch.target_tokens == 21
    assert all(array.dtype == np.int32 for array in batch.arrays())


@pytest.mark.slow
def test_on_a_cpu_auto_is_a_fixed_number_which_the_run_keeps(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    config = tiny.overridden(["training.batch_tokens=auto", "training.steps=2"])
    fit(config, prepared, tmp_path / "run", quiet=True)
    planned = Config.load(tmp_path / "run/config.toml")
    assert planned.training.batch_tokens == 4096
    with pytest.raises(ConfigError, match="is fixed when a run begins; resume it without"):
        fit(config, prepared, tmp_path / "run", resume=True, quiet=True)


def test_auto_is_never_less_than_a_row_for_every_slice(tiny: Config) -> None:
    config = tiny.overridden(["training.batch_tokens=auto", "training.accumulate=100"])
    made = stepper(config)
    made.device = torch.device("cpu")
    assert plan_memory(config, made, SHAPE, print).training.tokens == 6400
