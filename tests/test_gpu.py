"""What must hold on a GPU as it does on the CPU; skipped where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dragoman.config import Config, ModelConfig
from dragoman.data.batching.batches import Batches
from dragoman.data.prepare import Prepared
from dragoman.models import Rows, build
from dragoman.run_directory import list_checkpoints
from dragoman.search import SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.training.checkpoints.checkpoint import Checkpoint
from dragoman.training.checkpoints.writer import HostSnapshot
from dragoman.training.distributed.parallel import all_rows
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.loop import fit
from dragoman.training.loss import Criterion, TensorBatch
from dragoman.training.precision import Bf16Copy
from dragoman.training.step import Stepper

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "relative"])
def test_a_model_gives_on_the_gpu_what_it_gives_on_the_cpu(positions: str) -> None:
    torch.manual_seed(1)
    config = ModelConfig(
        encoder_layers=2,
        decoder_layers=2,
        d_model=64,
        d_ff=128,
        heads=4,
        positions=positions,  # type: ignore[arg-type]
    )
    model = build(config, 50).eval()
    segments = torch.tensor([[1] * 7 + [2] * 6 + [0] * 3]).repeat(2, 1)
    positions_RL = torch.tensor([[*range(7), *range(6), 0, 0, 0]]).repeat(2, 1)
    rows = Rows(torch.randint(4, 50, (2, 16)), segments, positions_RL)
    expected = model(rows, rows)
    device = torch.device("cuda")
    found = model.to(device)(rows.to(device), rows.to(device)).cpu()
    real = segments > 0
    torch.testing.assert_close(found[real], expected[real], atol=2e-3, rtol=1e-3)


def test_search_finds_on_the_gpu_what_it_finds_on_the_cpu() -> None:
    torch.manual_seed(2)
    model = build(ModelConfig(encoder_layers=2, decoder_layers=2, d_model=64, heads=4), 50).eval()
    sentences = [[5, 6, 7], [8, 9], [10, 11, 12, 13, 14]]
    options = SearchOptions(beam=4, n_best=2, max_extra=5)
    results = []
    for name in ("cpu", "cuda"):
        device = torch.device(name)
        results.append(search(model.to(device), source_rows(sentences, device), options))
    for here, there in zip(*results, strict=True):
        assert [h.ids for h in here] == [h.ids for h in there]
        assert [h.score for h in here] == pytest.approx([h.score for h in there], abs=1e-3)


def settings(tiny: Config, *assignments: str) -> Config:
    return tiny.overridden(
        [
            "training.device=cuda",
            "training.checkpoint_every=5",
            "training.validate_every=10",
            *assignments,
        ]
    )


def test_training_in_bf16_learns_as_in_fp32(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    losses = {}
    for precision in ("fp32", "bf16"):
        config = settings(tiny, "training.steps=100", f"training.precision={precision}")
        outcome = fit(config, prepared, tmp_path / precision, quiet=True)
        assert outcome.perplexity is not None
        losses[precision] = outcome.perplexity
    assert losses["bf16"] < 60
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.15)


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_run_resumed_on_the_gpu_ends_where_the_uninterrupted_one_does(
    deterministic: bool, tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    """Bit for bit if that is asked for, and otherwise closely."""
    more = (f"training.deterministic={str(deterministic).lower()}", "training.ema=0.9")
    whole, half = (settings(tiny, f"training.steps={n}", *more) for n in (20, 10))
    fit(whole, prepared, tmp_path / "whole", quiet=True)
    fit(half, prepared, tmp_path / "cut", quiet=True)
    fit(whole, prepared, tmp_path / "cut", resume=True, quiet=True)
    ends = [
        Checkpoint(list_checkpoints(tmp_path / name)[-1]).read_weights()
        for name in ("whole", "cut")
    ]
    for name in ends[0]:
        if deterministic:
            assert torch.equal(ends[0][name], ends[1][name]), name
        torch.testing.assert_close(ends[0][name], ends[1][name], atol=5e-3, rtol=5e-2)


VARIANTS = {
    "the paper's": {},
    "pre-norm": {"norm": "pre"},
    "rms": {"norm": "pre", "norm_kind": "rms"},
    "restricted": {"window": 4},
    "learned": {"positions": "learned"},
    "rotary": {"positions": "rotary"},
    "relative": {"positions": "relative"},
    "swiglu": {"activation": "swiglu"},
    "unshared": {"shared_embeddings": False},
    "narrow heads": {"heads": 16},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_fast_path_equals_the_plain_one(variant: str, prepared: Prepared) -> None:
    """Loss within 0.5 %, every gradient within 5 % of its norm: bf16 has 8 bits."""
    torch.manual_seed(3)
    changes = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 128, "d_ff": 256, "heads": 4}
    config = ModelConfig(**{**changes, "dropout": 0.0, **VARIANTS[variant]})  # type: ignore[arg-type]
    device = torch.device("cuda", 0)
    model = build(config, len(prepared.tokenizer)).to(device)
    bf16 = Bf16Copy(model).model
    batches = Batches(prepared.train, batch_tokens=2048, row_length=96, seed=1)
    batch = TensorBatch.from_batch(next(batches.epoch()), device)
    scale = torch.tensor(1e-3, device=device)
    losses = []
    for each in (model, bf16):
        loss, _ = Criterion(each, label_smoothing=0.1)(batch, scale)
        loss.backward()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=5e-3)
    for (name, plain), fast in zip(model.named_parameters(), bf16.parameters(), strict=True):
        assert plain.grad is not None
        assert fast.grad is not None
        error = (fast.grad.float() - plain.grad).norm() / plain.grad.norm()
        assert error < 0.05, f"{name}: {error:.3f}"


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_replayed_step_is_the_step_itself(
    accumulate: int, tiny: Config, prepared: Prepared
) -> None:
    config = settings(tiny, f"training.accumulate={accumulate}", "model.dropout=0.2")
    found = []
    for use_graphs in (False, True):
        torch.manual_seed(4)
        device = torch.device("cuda", 0)
        model = build(config.model, len(prepared.tokenizer)).to(device)
        stepper = Stepper(config, model, device, Ranks())
        assert stepper.uses_cuda_graphs
        stepper.uses_cuda_graphs = use_graphs
        batches = Batches(prepared.train, batch_tokens=2048, row_length=96, seed=1)
        for step, (batch, _) in zip(range(1, 7), batches.stream(), strict=False):
            stepper.run(batch, step)
        results = list(stepper.take_results(wait=True))
        assert [r.step for r in results] == [1, 2, 3, 4, 5, 6]
        found.append(([r.loss for r in results], stepper.bf16_copy.weights.clone()))  # type: ignore[union-attr]
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    torch.testing.assert_close(found[0][1], found[1][1], atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), 100.0])
def test_the_guard_leaves_everything_untouched_on_the_gpu(
    poison: float, tiny: Config, prepared: Prepared
) -> None:
    device = torch.device("cuda", 0)
    torch.manual_seed(5)
    config = settings(tiny)
    model = build(config.model, len(prepared.tokenizer)).to(device)
    stepper = Stepper(config, model, device, Ranks())
    batches = Batches(prepared.train, batch_tokens=2048, row_length=96, seed=1)
    stream = batches.stream()
    for step in (1, 2, 3):
        stepper.run(next(stream)[0], step)
    before = {name: t.clone() for name, t in stepper.optimizer.state_tensors().items()}
    weights = [p.detach().clone() for p in model.parameters()]
    with torch.no_grad():  # a graph is replayed: only what it reads can be poisoned
        stepper.bf16_copy.bf16_weights.mul_(poison)  # type: ignore[union-attr]
    stepper.run(next(stream)[0], 4)
    assert [r.skipped for r in stepper.take_results(wait=True)] == [False, False, False, True]
    assert all(torch.equal(before[n], t) for n, t in stepper.optimizer.state_tensors().items())
    assert all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))
    stepper.refresh_bf16_copy()
    stepper.run(next(stream)[0], 5)
    assert [r.skipped for r in stepper.take_results(wait=True)] == [False]


def test_a_snapshot_is_of_its_moment_whatever_is_queued_around_it() -> None:
    weights = torch.zeros(4096, 4096, device="cuda")
    snapshot = HostSnapshot()
    for moment in (1.0, 2.0):  # the second into the memory of the first
        for _ in range(50):
            weights.mul_(0.5)  # keeps the device busy
        weights.fill_(moment)
        copy = snapshot.take({"weights/w": all_rows(weights)})["weights/w"].tensor
        weights.fill_(99.0)
        snapshot.wait()
        assert copy.is_pinned()
        assert torch.equal(copy, torch.full((4096, 4096), moment))
