"""Several ranks, each a process: they learn what one learns, however the weights are kept.

All start from one seed, without dropout, which every rank draws for itself. The tolerances are
those of sums in another order; with bf16, those of its eight bits.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.config import Config
from dragoman.data.batching.batches import Batches
from dragoman.data.prepare import Prepared
from dragoman.models.weights import read_tensors
from dragoman.run_directory import checkpoint_path
from dragoman.training.checkpoints.checkpoint import Checkpoint
from dragoman.training.loop import fit

HERE = Path(__file__).parents[1]
STEPS = 8
SETTINGS = [
    f"training.steps={STEPS}",
    "training.checkpoint_every=4",
    "training.validate_every=4",
    "training.accumulate=2",
    "training.clip_norm=0.5",
    "training.ema=0.9",
    "model.dropout=0.0",
]
DDP, FSDP = "training.sharding=none", "training.sharding=full"
BF16, CUT = "training.precision=bf16", "training.steps=4"
DRAWN = ["model.dropout=0.1", "data.subword_sampling=0.1"]


class Runs:
    """A place for runs, each with its settings."""

    def __init__(self, place: Path, tiny: Config, data: Prepared) -> None:
        self.place, self.tiny, self.data = place, tiny, data

    def config(self, *assignments: str) -> Config:
        return self.tiny.overridden([*SETTINGS, *assignments])

    def job(self, name: str, *assignments: str, **more: Any) -> dict[str, Any]:
        return {
            "run": str(self.place / name),
            "config": self.config(*assignments).to_dict(),
            **more,
        }

    def copy(self, name: str, of: str, *assignments: str) -> dict[str, Any]:
        """Take up a copy of a run where it stopped."""
        return self.job(name, *assignments, copy_of=str(self.place / of))

    def run_jobs(self, ranks: int, *jobs: dict[str, Any]) -> None:
        file = self.place / f"jobs-{ranks}.json"
        file.write_text(json.dumps({"data": str(self.data.path), "runs": jobs}), encoding="utf-8")
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        torchrun += ["--nproc-per-node", str(ranks), str(HERE / "torchrun_jobs.py"), str(file)]
        done = subprocess.run(torchrun, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr

    def take_up_on_four(self, name: str) -> None:
        """Let four ranks take up what two have saved, if that is asked for and not done."""
        if name.endswith("-on-4") and not (self.place / name).exists():
            sharding = DDP if name.startswith("ddp") else FSDP
            self.run_jobs(4, self.copy(name, name.replace("-on-4", "-half"), sharding))

    def command(self, name: str, *assignments: str) -> list[str]:
        """Return the command that trains a run of this name."""
        preset = self.place / f"{name}.toml"
        preset.write_text(self.config(*assignments).to_toml(), encoding="utf-8")
        words = ["train", self.data.path, "--out", self.place / name, "--preset", preset]
        return [str(HERE / "train_with_faults.py"), *map(str, words)]

    def fault_environment(self, name: str, faults: str) -> dict[str, str]:
        """Return the environment in which faults happen to a run, once it has a checkpoint."""
        return {"FAULTS": faults, "AFTER": str(checkpoint_path(self.place / name, 4))}

    def torchrun(
        self, name: str, faults: str, *assignments: str, restarts: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """The command on two ranks, with faults."""
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        torchrun += ["--nproc-per-node", "2", "--max-restarts", str(restarts)]
        return subprocess.run(
            [*torchrun, *self.command(name, *assignments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | self.fault_environment(name, faults),
        )

    def state(self, name: str, step: int = STEPS) -> dict[str, Tensor]:
        return self.checkpoint(name, step).shards.read_all()

    def checkpoint(self, name: str, step: int = STEPS) -> Checkpoint:
        return Checkpoint(checkpoint_path(self.place / name, step))

    def metrics(self, name: str, kind: str = "train") -> list[dict[str, Any]]:
        lines = (self.place / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [entry for entry in map(json.loads, lines) if entry["kind"] == kind]


@pytest.fixture(scope="module")
def runs(tiny: Config, prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """One process, and then two, with the same work."""
    runs = Runs(tmp_path_factory.mktemp("ranks"), tiny, prepared)
    fit(runs.config(), prepared, runs.place / "one", quiet=True)
    runs.run_jobs(
        2,
        runs.job("ddp", DDP),
        runs.job("fsdp", FSDP),
        runs.job("ddp-bf16", DDP, BF16),
        runs.job("fsdp-bf16", FSDP, BF16),
        runs.job("ddp-half", DDP, CUT),
        runs.job("fsdp-half", FSDP, CUT),
        runs.copy("fsdp-on-2", "fsdp-half", FSDP),
        runs.job("short", DDP, faults=["memory 1 2"]),
        runs.job("undisturbed", DDP, *DRAWN),
        runs.job("undisturbed-half", DDP, CUT, *DRAWN),
        runs.copy("resumed", "undisturbed-half", DDP, *DRAWN),
    )
    for name, settings in (("ddp", DDP), ("fsdp", FSDP)):
        run = runs.place / f"{name}-on-1"
        shutil.copytree(runs.place / f"{name}-half", run)
        fit(runs.config(settings), prepared, run, resume=True, quiet=True)
    return runs


DDP_ON_4 = pytest.param("ddp-on-4", marks=pytest.mark.thorough)
FSDP_ON_4 = pytest.param("fsdp-on-4", marks=pytest.mark.thorough)


def losses(runs: Runs, name: str) -> list[float]:
    return [entry["loss"] for entry in runs.metrics(name)]


def assert_ends_like_one(runs: Runs, name: str) -> None:
    assert losses(runs, name) == pytest.approx(losses(runs, "one"), rel=1e-5)
    one, other = runs.state("one"), runs.state(name)
    for kind in ("weights/", "optimizer/", "average/"):
        names = [n for n in one if n.startswith(kind)]
        assert len(names) >= 20
        for n in names:
            torch.testing.assert_close(other[n], one[n], atol=2e-6, rtol=1e-4, msg=n)


def assert_same_bits(runs: Runs, name: str) -> None:
    """As the run that nobody disturbed, with dropout and all that is drawn at random."""
    expected, found = runs.state("undisturbed"), runs.state(name)
    assert expected.keys() == found.keys()
    assert [n for n in expected if not torch.equal(expected[n], found[n])] == []


@pytest.mark.slow
class TestRealRanks:
    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["ddp", "fsdp"])
    def test_two_ranks_learn_what_one_learns(self, kind: str, runs: Runs) -> None:
        assert_ends_like_one(runs, kind)

    @pytest.mark.parametrize("kind", ["ddp-bf16", "fsdp-bf16"])
    def test_in_bf16_too_but_for_its_rounding(self, kind: str, runs: Runs) -> None:
        assert losses(runs, kind) == pytest.approx(losses(runs, "one"), rel=3e-3)
        assert losses(runs, kind) != pytest.approx(losses(runs, "one"), rel=1e-5)

    @pytest.mark.parametrize("kind", ["ddp-on-1", "fsdp-on-1", "fsdp-on-2", DDP_ON_4, FSDP_ON_4])
    def test_what_two_ranks_saved_any_number_takes_up(self, kind: str, runs: Runs) -> None:
        runs.take_up_on_four(kind)
        assert runs.checkpoint(kind, 4).state.ranks == 2
        assert runs.checkpoint(kind).state.ranks == int(kind[-1])
        assert_ends_like_one(runs, kind)

    def test_two_ranks_resume_what_two_ranks_saved_bit_for_bit(self, runs: Runs) -> None:
        assert_same_bits(runs, "resumed")
        assert {"generators/cpu/0", "generators/cpu/1"} <= runs.state("resumed").keys()

    def test_in_shards_every_rank_writes_its_own_rows(self, runs: Runs) -> None:
        for kind, writes in (("ddp", False), ("fsdp", True)):
            shard = read_tensors(runs.checkpoint(kind).path / "rank-0001.safetensors")
            assert any(name.startswith("weights/") for name in shard) == writes

    @pytest.mark.parametrize("kind", ["ddp", "fsdp", FSDP_ON_4])
    def test_the_model_that_comes_out_is_that_of_one_rank(self, kind: str, runs: Runs) -> None:
        runs.take_up_on_four(kind)
        one, other = (
            read_tensors(runs.place / name / "model/weights.safetensors") for name in ("one", kind)
        )
        assert one.keys() == other.keys()
        for name in one:
            torch.testing.assert_close(other[name], one[name], atol=2e-6, rtol=1e-4)
        assert runs.metrics(kind, "valid")[-1]["loss"] == pytest.approx(
            runs.metrics("one", "valid")[-1]["loss"], rel=1e-5
        )

    @pytest.mark.parametrize("kind", ["ddp", "fsdp", DDP_ON_4])
    def test_they_see_the_same_batches_and_come_to_the_same_place(
        self, kind: str, runs: Runs
    ) -> None:
        runs.take_up_on_four(kind)
        one, other = runs.checkpoint("one").state, runs.checkpoint(kind).state
        assert (other.position, other.target_tokens) == (one.position, one.target_tokens)
        assert [e["fill"] for e in runs.metrics(kind)] == [e["fill"] for e in runs.metrics("one")]

    def test_out_of_memory_on_one_rank_is_survived_by_all(self, runs: Runs) -> None:
        events = [(e["step"], e["slices"]) for e in runs.metrics("short", "out_of_memory")]
        assert events == [(2, 4)], "counted once, by one rank, with twice the slices"
        assert_ends_like_one(runs, "short")

    @pytest.mark.slow
    def test_a_rank_that_is_killed_ends_the_job_with_its_name(self, runs: Runs) -> None:
        began = time.monotonic()
        ended = runs.torchrun("killed", "kill 1 6", "training.timeout_seconds=4")
        assert ended.returncode != 0
        assert time.monotonic() - began < 30, "seconds to start, and a few to find out"
        said = [line for line in ended.stderr.splitlines() if line.startswith("dragoman: ")]
        assert len(said) == 1
        assert re.fullmatch(
            r"dragoman: rank 1 \(.+, process \d+\) stopped answering at step 6; the other ranks "
            r"stop here; start all again with: dragoman train --resume \S+killed, which goes on "
            r"from step 4",
            said[0],
        )

    @pytest.mark.thorough
    def test_a_rank_that_hangs_is_given_up_though_nobody_closes_its_line(self, runs: Runs) -> None:
        """Here without torchrun, which would wait for the one that hangs."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
        command = runs.command("hanging", "training.timeout_seconds=3")
        ranks = [
            subprocess.Popen(
                [sys.executable, *command],
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ
                | place
                | {"RANK": str(rank), "WORLD_SIZE": "2"}
                | runs.fault_environment("hanging", "freeze 1 6"),
            )
            for rank in range(2)
        ]
        try:
            _, said = ranks[0].communicate(timeout=60)
        finally:
            for process in ranks:
                process.kill()
                process.communicate()
        assert ranks[0].returncode == 2
        assert re.search(r"^dragoman: rank 1 \(.+\) stopped answering at step 6;", said, re.M)

    @pytest.mark.thorough
    def test_started_again_by_torchrun_it_ends_as_if_nothing_had_been(self, runs: Runs) -> None:
        settings = ["training.timeout_seconds=4", DDP, *DRAWN]
        ended = runs.torchrun("restarted", "kill 1 6", *settings, restarts=1)
        assert ended.returncode == 0, ended.stderr
        assert "stopped answering at step 6" in ended.stderr
        assert "which goes on from step 4" in ended.stderr
        assert_same_bits(runs, "restarted")
        assert [e["step"] for e in runs.metrics("restarted")] == list(range(1, STEPS + 1))
        assert losses(runs, "restarted") == losses(runs, "undisturbed")

    @pytest.mark.thorough
    def test_out_of_memory_in_an_exchange_begins_again_in_smaller_slices(self, runs: Runs) -> None:
        settings = ["training.timeout_seconds=4", DDP]
        ended = runs.torchrun("out", "memory 1 6", *settings, restarts=1)
        assert ended.returncode == 0, ended.stderr
        assert "out of memory at step 6 on rank 1; start all ranks again" in ended.stderr
        assert [(e["step"], e["slices"]) for e in runs.metrics("out", "out_of_memory")] == [(6, 4)]
        assert_ends_like_one(runs, "out")


@pytest.mark.parametrize("world", [1, 2, 4, 3])
def test_the_rows_of_all_ranks_are_the_batch(world: int, prepared: Prepared) -> None:
    batches = Batches(prepared.train, batch_tokens=512, row_length=64, seed=1)
    batch, _ = next(batches.stream())
    for whole, *parts in zip(
        batch.arrays(), *(batch.rows(rank, world).arrays() for rank in range(world)), strict=True
    ):
        rows = sorted(row.tobytes() for part in parts for row in part)
        assert rows == sorted(row.tobytes() for row in whole)
