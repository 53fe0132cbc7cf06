"""`dragoman bench train`, from the command line."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable

import pytest
import torch

from dragoman.bench.training import benchmark
from dragoman.bench.training.peers import PeerModel
from dragoman.bench.training.profile import GAPS, MATRIX
from dragoman.cli import main
from dragoman.config import Config
from dragoman.models import count_parameters

from ...conftest import Result

Command = Callable[..., Result]


@pytest.fixture(scope="module")
def arguments(tiny: Config, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("preset") / "tiny.toml"
    file.write_text(tiny.to_toml(), encoding="utf-8")
    return ["bench", "train", "--preset", str(file), "--steps", "2"]


def good(result: Result) -> str:
    assert result.status == 0, result.err
    return result.out


def test_every_benchmark_has_help(command: Command) -> None:
    assert "train" in good(command("bench", "--help"))
    text = good(command("bench", "train", "--help"))
    assert all(option in text for option in ("--preset", "--against", "--steps", "--json", "--set"))


@pytest.fixture(scope="module")
def measured(arguments: list[str]) -> Result:
    """What the command says with everything that it can measure here; that takes seconds."""
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        patch.setattr(sys, "argv", ["dragoman", *arguments, "--against", "--json"])
        with pytest.raises(SystemExit) as left:
            main()
    assert isinstance(left.value.code, int)
    return Result(left.value.code, out.getvalue(), err.getvalue())


@pytest.mark.slow
def test_a_step_is_measured_and_told_in_plain_lines(arguments: list[str], command: Command) -> None:
    settings = ["--set", "model.d_model=64", "--set", "training.accumulate=2"]
    text = good(command(*arguments, *settings))
    for line in (
        r"device: CPU, 1 thread, torch \S+, fp32",
        r"preset: \S+tiny.toml, 0.\d\dM parameters",
        r"speed: [\d,]+ target tokens/s \(median of 3 rounds of 2 steps, spread [\d.]+%\)",
        r"step: [\d.]+ ms for \d+ target tokens in 2 slices "
        r"\(fill: source 0.9\d+, target 0.9\d+\)",
        r"arithmetic: [\d.]+ GFLOP/s on real tokens, [\d.]+% of the [\d.]+ .*matrix product",
        r"matrix products +[\d.]+ +[\d.]+%",
    ):
        assert re.search(f"^{line}$", text, re.M), line
    assert "against" not in text


@pytest.mark.slow
def test_the_figures_of_the_json_fit_together(measured: Result, tiny: Config) -> None:
    found = json.loads(good(measured))
    assert found["parameters"] == count_parameters(tiny.model, 330)
    assert (found["steps"], found["rounds"], found["slices"]) == (2, 3, 1)
    seconds = found["milliseconds_a_step"] / 1000
    speed = found["target_tokens_per_second"]
    assert speed == pytest.approx(found["target_tokens_a_step"] / seconds)
    assert found["target_fill"] == pytest.approx(found["target_tokens_a_step"] / (8 * 64))
    assert found["share_of_limit"] == pytest.approx(
        found["flops_a_step"] / seconds / found["limit"]
    )
    assert 0 < found["share_of_limit"] < 1
    assert sum(line["share"] for line in found["kernels"]) == pytest.approx(1)
    assert MATRIX in [line["name"] for line in found["kernels"]]
    assert (found["peak_memory"], found["host_overhead"]) == (None, None), "of a GPU only"


def test_a_deterministic_run_is_timed_as_such(
    tiny: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def measure(*arguments: object) -> None:
        seen.append(torch.are_deterministic_algorithms_enabled())

    monkeypatch.setattr(benchmark, "_measure", measure)
    for setting in ("true", "false"):
        benchmark.measure(tiny.overridden([f"training.deterministic={setting}"]), "tiny")
    assert seen == [True, False]


@pytest.mark.slow
def test_against_peers_who_take_turns_with_ours(measured: Result) -> None:
    found = json.loads(good(measured))
    assert [peer["name"] for peer in found["peers"]] == [
        "Hugging Face Marian",
        "torch.nn.Transformer",
    ]
    for peer in found["peers"]:
        assert peer["failed"] is None
        assert peer["target_tokens_per_second"] > 0
        assert (peer["steps"], peer["sorted_sentences"]) == (2, 80_000)
        assert peer["warm_up_steps"] >= 2 * peer["steps"]
        ratio = peer["ours_in_turn"] / peer["target_tokens_per_second"]
        assert peer["times_as_fast"] == pytest.approx(ratio)
        assert f"timing {peer['name']}: " in measured.err


@pytest.mark.gpu
@pytest.mark.filterwarnings("default")  # of the compiler, about somebody else's model
def test_on_a_gpu_everything_is_measured(arguments: list[str], command: Command) -> None:
    options = ["--set", "training.device=cuda", "--against", "--json"]
    found = json.loads(good(command(*arguments, *options)))
    assert found["precision"] == "bf16"
    assert found["peak_memory"] > 0
    assert 0 < found["host_overhead"] < 1
    assert found["limit"] > 1e12
    assert found["kernels"][-1]["name"] == GAPS
    assert MATRIX in [line["name"] for line in found["kernels"]]
    assert [peer["failed"] for peer in found["peers"]] == [None] * 3


@pytest.mark.slow
def test_a_peer_that_fails_costs_only_its_own_figure(
    arguments: list[str], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(config: Config) -> None:
        raise RuntimeError("CUDA out of memory\nand more")

    monkeypatch.setattr(benchmark, "peer_models", lambda device: [PeerModel("Somebody", make)])  # type: ignore[arg-type]
    text = good(command(*arguments, "--against"))
    assert text.splitlines()[-1] == "Somebody  did not run: CUDA out of memory"
    assert "target tokens/s (median" in text


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("--preset bsae", "there is no preset 'bsae'; did you mean 'base'?"),
        ("--steps 0", "invalid value for '--steps': "),
        ("--set model.headz=3", "--set: there is no setting 'model.headz'; did you mean 'heads'?"),
        ("--set model.d_k=8 --against", "model.d_k = 8: the peers have no such model; leave out"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    mistake: str, message: str, arguments: list[str], command: Command
) -> None:
    result = command(*arguments, *mistake.split())
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"dragoman: {message}")
    assert result.err.count("\n") == 1
