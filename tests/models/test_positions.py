"""Every position encoding against its formula."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.models import Rows, build
from dragoman.models.positions import (
    LearnedPositions,
    SinusoidalPositions,
    position_table,
    sinusoids,
)


def _small() -> dict[str, int]:
    return {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 4}


def test_sinusoids_are_the_equations_of_section_3_5() -> None:
    table = sinusoids(50, 512)
    for position, i in [(0, 0), (7, 0), (7, 3), (49, 255)]:
        angle = position / 10000 ** (2 * i / 512)
        assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
        assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_sentence_longer_than_the_table_is_read_all_the_same() -> None:
    model = build(ModelConfig(**{**_small(), "max_positions": 4}), 20).eval()
    ids = torch.randint(4, 20, (1, 11))
    out = model(Rows.one_a_row(ids, torch.tensor([11])), Rows.one_a_row(ids, torch.tensor([11])))
    assert out.isfinite().all()


def test_relative_positions_depend_on_distance_alone() -> None:
    config = ModelConfig(**{**_small(), "positions": "relative"})
    model = build(config, 20).eval()
    for name, parameter in model.named_parameters():
        if "relative" in name:
            nn.init.normal_(parameter)
    ids = torch.randint(4, 20, (1, 6))
    near = Rows.one_a_row(ids, torch.tensor([6]))
    far = Rows(near.ids_RL, near.segments_RL, near.positions_RL + 100)
    torch.testing.assert_close(model(near, near), model(far, far))


def test_rotary_positions_depend_on_distance_alone() -> None:
    model = build(ModelConfig(**{**_small(), "positions": "rotary"}), 20).double().eval()
    ids = torch.randint(4, 20, (1, 6))
    near = Rows.one_a_row(ids, torch.tensor([6]))
    far = Rows(near.ids_RL, near.segments_RL, near.positions_RL + 100)
    torch.testing.assert_close(model(near, near), model(far, far), atol=1e-4, rtol=1e-4)


def in_torch(length: int, d_model: int) -> Tensor:
    """The formula in PyTorch, in double precision and rounded once."""
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = positions * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


@pytest.mark.parametrize("d_model", [6, 32, 512, 1024])
def test_the_sinusoids_of_numpy_are_those_of_torch_bit_for_bit(d_model: int) -> None:
    assert torch.equal(sinusoids(1500, d_model), in_torch(1500, d_model))


def test_sinusoids_without_a_table_are_those_of_the_table() -> None:
    layer = SinusoidalPositions(64)
    positions = torch.tensor([[0, 3, 299], [7, 1, 2]])
    expected = layer(positions, 300)
    torch.testing.assert_close(layer.compute(positions), expected, atol=1e-6, rtol=0)
    assert "table" not in layer.state_dict()


def test_positions_past_the_last_learned_one_share_it() -> None:
    layer = LearnedPositions(5, 8)
    found = layer(torch.tensor([3, 4, 5, 99]))
    assert torch.equal(found, layer.weight[[3, 4, 4, 4]])
    assert torch.equal(position_table(7, 8, layer.weight), layer.weight[[0, 1, 2, 3, 4, 4, 4]])
    assert torch.equal(position_table(7, 8, None), sinusoids(7, 8))
