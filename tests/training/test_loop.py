"""Training as a whole, in this process."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import dragoman
from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import ModelError, TrainingError
from dragoman.models.weights import read_tensors
from dragoman.run_directory import list_checkpoints
from dragoman.training import loop
from dragoman.training.checkpoints import checkpoint
from dragoman.training.checkpoints.averaging import average_checkpoints
from dragoman.training.checkpoints.checkpoint import Checkpoint
from dragoman.training.loop import fit
from dragoman.training.loss import Criterion
from dragoman.training.run import resume, train
from dragoman.training.validation import ValidationResult

from ..conftest import reversals, write_pairs


def weights(run: Path) -> dict[str, Tensor]:
    return Checkpoint(list_checkpoints(run)[-1]).shards.read_all("weights/")


def metrics(run: Path, kind: str = "train") -> list[dict[str, float]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if entry["kind"] == kind]


def settings(tiny: Config, *assignments: str, steps: int = 6) -> Config:
    return tiny.overridden(
        [
            f"training.steps={steps}",
            "training.validate_every=3",
            "training.checkpoint_every=2",
            *assignments,
        ]
    )


@pytest.mark.slow
def test_a_small_model_learns_to_translate(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    config = settings(
        tiny,
        "training.validate_every=100",
        "training.checkpoint_every=50",
        "training.batch_tokens=1024",
        "training.learning_rate=0.006",
        "training.warmup_steps=50",
        "model.d_model=64",
        "model.dropout=0.0",
        steps=300,
    )
    outcome = fit(config, prepared, tmp_path / "run", quiet=True)
    assert outcome.score is not None
    assert outcome.score > 80
    assert outcome.model is not None
    translator = dragoman.load(outcome.model)
    assert translator.translate("the old dog sees").text == "sees god dlo eht"


@pytest.mark.slow
def test_a_run_is_a_directory_of_known_things(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    outcome = fit(settings(tiny), prepared, run, quiet=True)
    assert outcome.step == 6
    assert Config.load(run / "config.toml") == settings(tiny)
    assert [entry["step"] for entry in metrics(run)] == [1, 2, 3, 4, 5, 6]
    assert [entry["step"] for entry in metrics(run, "valid")] == [3, 6]
    assert any((run / "tensorboard").iterdir())
    names = {path.name for path in (run / "model").iterdir()}
    assert names == {
        "config.toml",
        "weights.safetensors",
        "tokenizer.model",
        "tokenizer.json",
        "card.json",
        "README.md",
    }


@pytest.mark.slow
@pytest.mark.parametrize(("ema", "optimizer"), [(0.0, "adam"), (0.9, "adam"), (0.9, "muon")])
def test_resumed_equals_uninterrupted_bit_for_bit(
    ema: float,
    optimizer: str,
    tiny: Config,
    prepared: Prepared,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    more = (f"training.ema={ema}", f"training.optimizer={optimizer}", "data.subword_sampling=0.1")
    config = settings(tiny, *more)
    fit(config, prepared, tmp_path / "whole", quiet=True)

    def dies(trainer: loop.Trainer, result: object) -> None:
        if trainer.state.step == 5:
            raise InterruptedError

    run = tmp_path / "cut"
    monkeypatch.setattr(loop.Trainer, "_check_for_bad_step", dies)
    with pytest.raises(InterruptedError):
        fit(config, prepared, run, quiet=True)
    monkeypatch.undo()
    assert list_checkpoints(run)[-1].name == "step-00000004"
    torch.rand(100)  # whatever the process did in between must not matter
    fit(config, prepared, run, resume=True, quiet=True)
    whole, cut = (
        Checkpoint(r / "checkpoints/step-00000006").shards.read_all()
        for r in (tmp_path / "whole", run)
    )
    kinds = {"weights", "optimizer", "generators", *(["average"] if ema else [])}
    assert {name.partition("/")[0] for name in whole} == kinds
    assert whole.keys() == cut.keys()
    assert [name for name in whole if not torch.equal(whole[name], cut[name])] == []
    models = [read_tensors(r / "model/weights.safetensors") for r in (tmp_path / "whole", run)]
    assert all(torch.equal(models[0][key], models[1][key]) for key in models[0])
    for kind in ("train", "valid"):
        curves = [
            [(m["step"], m["loss"]) for m in metrics(r, kind)] for r in (tmp_path / "whole", run)
        ]
        assert curves[0] == curves[1], "each step is recorded once, with the same loss"


@pytest.mark.slow
def test_slices_of_a_batch_give_the_same_weights(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    for slices in (1, 4):
        config = settings(tiny, f"training.accumulate={slices}", "model.dropout=0.0")
        fit(config, prepared, tmp_path / str(slices), quiet=True)
    one, four = weights(tmp_path / "1"), weights(tmp_path / "4")
    for name in one:
        torch.testing.assert_close(one[name], four[name], atol=2e-4, rtol=1e-3)


def poison(monkeypatch: pytest.MonkeyPatch, steps: set[int]) -> None:
    """Make the loss of some training steps not a number."""
    plain = Criterion.forward
    count = 0

    def forward(self: Criterion, *inputs: object) -> tuple[Tensor, Tensor]:
        nonlocal count
        loss, nll = plain(self, *inputs)  # type: ignore[arg-type]
        if not self.training:
            return loss, nll
        count += 1
        return (loss * math.nan, nll) if count in steps else (loss, nll)

    monkeypatch.setattr(Criterion, "forward", forward)


@pytest.mark.slow
def test_a_step_whose_loss_is_not_finite_is_skipped_and_said(
    tiny: Config,
    prepared: Prepared,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    poison(monkeypatch, {3, 4})
    run = tmp_path / "run"
    fit(settings(tiny, "training.checkpoint_every=1"), prepared, run, quiet=True)
    saved = [Checkpoint(p).shards.read_all("weights/") for p in list_checkpoints(run)]
    assert all(tensor.isfinite().all() for tensor in saved[-1].values())
    # Checkpoints 2 to 6 are kept: 3 and 4 must equal 2.
    assert all(torch.equal(saved[0][n], saved[1][n]) for n in saved[0])
    assert all(torch.equal(saved[0][n], saved[2][n]) for n in saved[0])
    assert not all(torch.equal(saved[0][n], saved[3][n]) for n in saved[0])
    assert [entry["step"] for entry in metrics(run, "skipped")] == [3, 4]
    assert "step 3: the loss is not finite; the step is skipped" in capsys.readouterr().err


@pytest.mark.slow
def test_too_many_such_steps_end_the_run_with_advice(
    tiny: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, set(range(3, 100)))
    with pytest.raises(TrainingError, match=r"not finite for 5 steps in a row, the last at step 7"):
        fit(settings(tiny, steps=20), prepared, tmp_path / "run", quiet=True)


@pytest.mark.slow
def test_patience_ends_a_run_that_gets_no_better(
    tiny: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([1.0, 5.0, 4.0, 3.0, 3.0, 3.0])
    monkeypatch.setattr(loop, "validate", lambda *_: ValidationResult(loss=1.0, score=next(scores)))
    config = settings(tiny, "training.validate_every=1", "training.patience=2", steps=100)
    outcome = fit(config, prepared, tmp_path / "run", quiet=True)
    assert outcome.step == 4
    card = json.loads((tmp_path / "run/model/card.json").read_text())
    assert card["made_of"] == "best step, 2"


@pytest.mark.slow
def test_the_limit_in_minutes_is_kept(tiny: Config, prepared: Prepared, tmp_path: Path) -> None:
    config = settings(tiny, "training.minutes=0.02", steps=1_000_000)
    outcome = fit(config, prepared, tmp_path / "run", quiet=True)
    assert 1.0 <= outcome.seconds < 30
    assert outcome.model is not None


@pytest.mark.slow
def test_a_run_is_never_overwritten(tiny: Config, prepared: Prepared, tmp_path: Path) -> None:
    train(settings(tiny), prepared.path, run=tmp_path / "run", quiet=True)
    with pytest.raises(TrainingError, match="already contains a run; continue it with"):
        train(settings(tiny), prepared.path, run=tmp_path / "run", quiet=True)


@pytest.mark.slow
def test_a_finished_run_goes_on_with_more_steps(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    train(settings(tiny, steps=4), prepared.path, run=tmp_path / "run", quiet=True)
    outcome = resume(tmp_path / "run", ["training.steps=6"], quiet=True)
    assert outcome.step == 6
    train(settings(tiny, steps=6), prepared.path, run=tmp_path / "whole", quiet=True)
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            weights(tmp_path / "run").values(), weights(tmp_path / "whole").values(), strict=True
        )
    )


def test_resuming_what_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="not a run that dragoman train started"):
        resume(tmp_path)


@pytest.mark.slow
def test_a_run_killed_before_it_had_a_config_is_begun_again(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"data": str(prepared.path)}))
    with pytest.raises(TrainingError, match=f"ended before its first step.* --out {run}"):
        resume(run)
    assert train(settings(tiny), prepared.path, run=run, quiet=True).step == 6


@pytest.fixture(scope="module")
def finished(tiny: Config, prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("finished") / "run"
    train(settings(tiny), prepared.path, run=run, quiet=True)
    return run


def copy(run: Path, to: Path) -> Path:
    shutil.copytree(run, to)
    place = json.loads((run / "run.json").read_text())["data"]
    (to / "run.json").write_text(json.dumps({"data": str((run / place).resolve())}))
    return to


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncate", "flip a byte", "empty state", "remove a file"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    damage: str, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copy(finished, tmp_path / "run")
    newest = list_checkpoints(run)[-1]
    file = newest / "rank-0000.safetensors"
    if damage == "truncate":
        file.write_bytes(file.read_bytes()[:-100])
    elif damage == "flip a byte":
        data = bytearray(file.read_bytes())
        data[-7] ^= 1
        file.write_bytes(data)
    elif damage == "empty state":
        (newest / "state.json").write_text("")
    else:
        file.unlink()
    outcome = resume(run, quiet=True)
    assert outcome.step == 6
    assert "using the checkpoint before it instead" in capsys.readouterr().err
    whole, again = weights(finished), weights(run)
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_only_damaged_checkpoints_are_an_error(finished: Path, tmp_path: Path) -> None:
    run = copy(finished, tmp_path / "run")
    for path in list_checkpoints(run):
        (path / "rank-0000.safetensors").write_bytes(b"")
    with pytest.raises(TrainingError, match="every checkpoint is damaged"):
        resume(run, quiet=True)


def test_weights_of_another_model_are_refused(finished: Path, tmp_path: Path) -> None:
    run = copy(finished, tmp_path / "run")
    text = (run / "config.toml").read_text().replace("d_ff = 64", "d_ff = 128")
    (run / "config.toml").write_text(text)
    with pytest.raises(ModelError, match=r"does not fit its config.*should be 128.* and is 64"):
        resume(run, quiet=True)


@pytest.mark.slow
def test_a_full_disk_leaves_the_previous_checkpoint_and_one_clear_line(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copy(finished, tmp_path / "run")
    before = {p.name: weights(run) for p in list_checkpoints(run)}

    def full(tensors: object, path: Path, metadata: object) -> None:
        path.write_bytes(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_tensors", full)
    with pytest.raises(TrainingError) as refused:
        resume(run, ["training.steps=8"], quiet=True)
    assert str(refused.value) == (
        f"{run}/checkpoints/step-00000008: no space left on device; the newest checkpoint is step "
        f"6; fix this, then: dragoman train --resume {run}"
    )
    monkeypatch.undo()
    assert {p.name for p in list_checkpoints(run)} == set(before)
    assert not list((run / "checkpoints").glob(".tmp*"))
    assert resume(run, ["training.steps=8"], quiet=True).step == 8


def test_averaging_is_the_mean_and_makes_a_model(finished: Path, tmp_path: Path) -> None:
    average_checkpoints([finished], tmp_path / "model", last=2)
    made = read_tensors(tmp_path / "model/weights.safetensors")
    two = [Checkpoint(path).read_weights() for path in list_checkpoints(finished)[-2:]]
    for name, tensor in made.items():
        torch.testing.assert_close(tensor, (two[0][name] + two[1][name]) / 2)
    assert dragoman.load(tmp_path / "model").translate("the dog").tokens is not None


def test_models_of_different_shapes_are_not_averaged(finished: Path, tmp_path: Path) -> None:
    other = copy(finished, tmp_path / "other")
    save_file({"a": torch.zeros(2)}, other / "model/weights.safetensors")
    with pytest.raises(ModelError, match="not the same model"):
        average_checkpoints([finished / "model", other / "model"], tmp_path / "out")


@pytest.mark.slow
def test_what_is_too_long_is_told_before_the_first_step(
    tiny: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = reversals(300)
    pairs[122] = ("red " * 200, "der " * 200)
    files = write_pairs(tmp_path, pairs)
    train(settings(tiny, steps=1), *files, run=tmp_path / "run")
    said = capsys.readouterr().err
    long = said.index("1 of 300 pairs have more than data.max_length = 63 pieces")
    assert f"{files[0]}, line 123\n" in said[long:]
    assert long < said.index("step 1 of 1")
