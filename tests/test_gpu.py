"""What must hold on a GPU as it does on the CPU; skipped where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dragoman.config import Config, ModelConfig
from dragoman.data.prepare import Prepared
from dragoman.models import Rows, build
from dragoman.models.weights import read_tensors
from dragoman.search import SearchOptions, search
from dragoman.search.many import source_rows
from dragoman.training.checkpoint import list_checkpoints
from dragoman.training.loop import fit

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


def test_a_run_resumed_on_the_gpu_ends_close_to_the_uninterrupted_one(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    fit(settings(tiny, "training.steps=20"), prepared, tmp_path / "whole", quiet=True)
    fit(settings(tiny, "training.steps=10"), prepared, tmp_path / "cut", quiet=True)
    fit(settings(tiny, "training.steps=20"), prepared, tmp_path / "cut", resume=True, quiet=True)
    ends = [
        read_tensors(list_checkpoints(tmp_path / name)[-1] / "weights.safetensors")
        for name in ("whole", "cut")
    ]
    for name in ends[0]:
        torch.testing.assert_close(ends[0][name], ends[1][name], atol=5e-3, rtol=5e-2)
