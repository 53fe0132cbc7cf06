"""Footnote 4: what the division by √d_k is for."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from dragoman.errors import ConfigError, DragomanError
from dragoman.paper.figures.formulas import DotProducts, draw_dot_products, measure_dot_products

WIDTHS = (1, 4, 16, 64, 256)


@pytest.fixture(scope="module")
def found() -> DotProducts:
    return measure_dot_products(WIDTHS, queries=1000, keys=16, seed=7)


def test_the_variance_is_d_k_and_scaled_it_is_1(found: DotProducts) -> None:
    assert [width.d_k for width in found.widths] == list(WIDTHS)
    for width in found.widths:
        # A query's keys share it: Var(mean of (q·k)²) / d_k² = 2 / (Q d_k) + (2 + 4 / d_k) / (Q N).
        error = math.sqrt(2 / (1000 * width.d_k) + (2 + 4 / width.d_k) / 16_000)
        assert width.plain.variance / width.d_k == pytest.approx(1, abs=4 * error)
        assert width.scaled.variance == pytest.approx(width.plain.variance / width.d_k)


def test_without_scaling_the_gradient_vanishes_and_with_it_it_does_not(found: DotProducts) -> None:
    by_width = {width.d_k: width for width in found.widths}
    plain = [by_width[d_k].plain for d_k in (16, 64, 256)]
    assert plain[0].gradient > 2 * plain[1].gradient > 8 * plain[2].gradient
    assert plain[0].mean_gradient > plain[1].mean_gradient > plain[2].mean_gradient
    assert plain[0].weight < plain[1].weight < plain[2].weight
    assert plain[2].weight > 0.85
    scaled = [by_width[d_k].scaled for d_k in (16, 64, 256)]
    for one in scaled:
        assert one.gradient == pytest.approx(scaled[0].gradient, rel=0.05)
        assert one.weight == pytest.approx(scaled[0].weight, rel=0.1)
    assert scaled[2].gradient > 10 * plain[2].gradient


def test_at_a_width_of_1_there_is_nothing_to_scale(found: DotProducts) -> None:
    assert found.widths[0].plain == found.widths[0].scaled


def test_the_gradient_is_that_of_autograd() -> None:
    (width,) = measure_dot_products((3,), queries=1, keys=5, seed=1).widths
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(3, generator=generator), torch.randn(5, 3, generator=generator)
    jacobian = torch.autograd.functional.jacobian(lambda x: x.softmax(-1), k @ q / 3**0.5)
    assert width.scaled.gradient == pytest.approx(float(jacobian.norm()), rel=1e-5)
    assert width.scaled.weight == pytest.approx(float((k @ q / 3**0.5).softmax(-1).max()))


def test_memory_is_bounded_and_parts_are_all_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dragoman.paper.figures.formulas._MAX_NUMBERS", 3 * 2 * 8
    )  # 3 queries at a time
    (width,) = measure_dot_products((8,), queries=500, keys=2).widths
    assert width.scaled.variance == pytest.approx(1, abs=0.3)


def test_a_measurement_survives_json_and_is_the_same_again(found: DotProducts) -> None:
    assert DotProducts.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert measure_dot_products(WIDTHS, queries=1000, keys=16, seed=7) == found
    assert measure_dot_products(WIDTHS, queries=1000, keys=16, seed=8) != found


def test_the_table_has_a_line_for_each_width(found: DotProducts) -> None:
    table = found.to_table()
    assert [line[0] for line in table.rows] == [str(d_k) for d_k in WIDTHS]
    last, width = table.rows[-1], found.widths[-1]
    assert list(last[1:5]) == [
        f"{width.plain.variance:.2f}",
        f"{width.scaled.variance:.2f}",
        f"{width.plain.weight:.3f}",
        f"{width.scaled.weight:.3f}",
    ]
    assert float(last[5]) == pytest.approx(width.plain.gradient, rel=0.05), "not 0.0000"
    assert "1,000 random queries, 16 keys each" in table.note


def test_both_curves_are_in_every_panel(found: DotProducts, tmp_path: Path) -> None:
    draw_dot_products(found, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for kind in ("plain", "scaled"):
        for name in ("variance", "weight", "gradient"):
            assert f'id="{kind}-{name}"' in text


def test_what_cannot_be_measured_is_refused(found: DotProducts, tmp_path: Path) -> None:
    for wrong in ({"widths": ()}, {"widths": (0,)}, {"keys": 1}, {"queries": 0}):
        with pytest.raises(ConfigError, match="d_k ≥ 1"):
            measure_dot_products(**{"widths": (2,), **wrong})  # type: ignore[arg-type]
    with pytest.raises(DragomanError, match=r"one of \.png"):
        draw_dot_products(found, tmp_path / "a.gif")
