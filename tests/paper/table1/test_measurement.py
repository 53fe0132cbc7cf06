"""Table 1: layers, operations, chains and paths as worked out by hand, and how they are shown."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from dragoman.errors import ConfigError, DragomanError
from dragoman.models.api import Rows
from dragoman.models.attention import self_mask
from dragoman.paper.table1 import measurement
from dragoman.paper.table1.layers import (
    CONVOLUTIONAL,
    DILATED,
    LAYERS,
    RECURRENT,
    RESTRICTED,
    SELF_ATTENTION,
    Convolutional,
    Recurrent,
    RestrictedSelfAttention,
    build_layer,
)
from dragoman.paper.table1.measurement import (
    TRACED_WIDTH,
    count_operations,
    count_sequential_operations,
    layers_to_connect,
    longest_product_chain,
    measure,
    measure_path_length,
)
from dragoman.paper.table1.rendering import draw, render
from dragoman.paper.table1.results import PassTime, Table1, find_crossover, fit_exponent, upper_half

KERNEL, WINDOW = 3, 4
LENGTHS, WIDTHS = (8, 16, 32, 64), (16, 32)


@pytest.fixture(scope="module")
def result() -> Table1:
    return measure(LENGTHS, WIDTHS, kernel=KERNEL, window=WINDOW, repeats=1)


# --------------------------------------------------------------------------------- the layers


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_maps_n_vectors_to_n_vectors(layer: str) -> None:
    x_BLD = torch.randn(2, 11, 16)
    assert build_layer(layer, 16, window=WINDOW)(x_BLD).shape == x_BLD.shape


@pytest.mark.parametrize("length", [1, 2, 4, 7, 8, 9, 30])
@pytest.mark.parametrize("window", [1, 3, 4, 50])
def test_restricted_attention_is_full_attention_under_the_mask(length: int, window: int) -> None:
    layer = RestrictedSelfAttention(128, window).double()
    x_BLD = torch.randn(3, length, 128, dtype=torch.float64, requires_grad=True)
    ones_BL = torch.ones(3, length, dtype=torch.long)
    positions_BL = torch.arange(length).expand(3, -1)
    mask = self_mask(Rows(ones_BL, ones_BL, positions_BL), causal=False, window=window)
    full_BLD = layer.attention.attend(*layer.project(x_BLD), mask)
    near_BLD = layer(x_BLD)
    torch.testing.assert_close(near_BLD, full_BLD)
    wish_BLD = torch.randn_like(full_BLD)
    near, full = (torch.autograd.grad(y, x_BLD, wish_BLD)[0] for y in (near_BLD, full_BLD))
    torch.testing.assert_close(near, full)


def test_restricted_attention_grows_with_its_window() -> None:
    counts = [
        count_operations(build_layer(RESTRICTED, 16, window=w), 256, 16)[0].mixing
        for w in (4, 8, 16)
    ]
    assert counts == [4 * 256 * 16 * 3 * w for w in (4, 8, 16)]


def test_steps_of_the_recurrence_are_the_recurrent_layer() -> None:
    """n applications of the recurrence to all positions, begun with nothing, are the layer."""
    layer = Recurrent(8)
    inputs_1ND, states_1ND = torch.randn(1, 5, 8), torch.zeros(1, 5, 8)
    for _ in range(5):
        states_1ND = layer.propagate_once(states_1ND, inputs_1ND)
    torch.testing.assert_close(states_1ND, layer(inputs_1ND))


def test_layers_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="kernel = 1 sees no neighbour; try 3"):
        build_layer(CONVOLUTIONAL, 8, kernel=1)
    with pytest.raises(ConfigError, match="window = 0 sees no neighbour; try 16"):
        build_layer(RESTRICTED, 8, window=0)
    with pytest.raises(ConfigError, match="no layer 'pooling' in Table 1"):
        build_layer("pooling", 8)


# --------------------------------------------------------------------------------- operations


def test_operations_are_those_worked_out_by_hand() -> None:
    n, d = 32, 128
    by_hand = {
        SELF_ATTENTION: (4 * n * n * d, 8 * n * d * d),
        RECURRENT: (4 * n * d * d, 0),
        CONVOLUTIONAL: (2 * KERNEL * n * d * d, 0),
        RESTRICTED: (4 * n * 3 * WINDOW * d, 8 * n * d * d),
    }
    for layer, (mixing, projections) in by_hand.items():
        forward, training = count_operations(
            build_layer(layer, d, kernel=KERNEL, window=WINDOW), n, d
        )
        assert (forward.mixing, forward.projections) == (mixing, projections), layer
        # Both factors of each product have a gradient; only the state before the first has none.
        spared = 2 * d * d if layer == RECURRENT else 0
        assert training.all == 3 * forward.all - spared, layer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "of_n", "of_d"),
    [(SELF_ATTENTION, 2, 1), (RECURRENT, 1, 2), (CONVOLUTIONAL, 1, 2), (RESTRICTED, 1, 1)],
)
def test_the_exponents_are_the_papers(result: Table1, layer: str, of_n: float, of_d: float) -> None:
    by_n = fit_exponent(upper_half(result.by_length("mixing", layer, WIDTHS[0])))
    by_d = result.by_width("mixing", layer)
    assert by_n == pytest.approx(of_n, abs=0.1)
    assert fit_exponent(by_d) == pytest.approx(of_d, abs=0.1)


@pytest.mark.slow
def test_projections_raise_the_exponent_of_the_width(result: Table1) -> None:
    found = fit_exponent(result.by_width("operations", SELF_ATTENTION))
    assert found is not None
    assert 1.2 < found < 2


# --------------------------------------------------------------------------------- sequential


def test_only_the_recurrent_layer_waits_for_every_position(result: Table1) -> None:
    assert result.sequential(RECURRENT) == {n: n for n in LENGTHS}
    # Projection, scores, weighted values, output.
    assert result.sequential(SELF_ATTENTION) == dict.fromkeys(LENGTHS, 4)
    assert result.sequential(RESTRICTED) == dict.fromkeys(LENGTHS, 4)
    assert result.sequential(CONVOLUTIONAL) == dict.fromkeys(LENGTHS, 1)


def test_a_chain_is_what_depends_not_what_is_computed() -> None:
    x, w = torch.randn(4, 4), torch.randn(4, 4)
    assert longest_product_chain(lambda x: x + 1, x) == 0
    assert longest_product_chain(lambda x: (x @ w) + (x @ w) + (x @ w), x) == 1
    assert longest_product_chain(lambda x: ((x @ w).relu() @ w).T @ w, x) == 3

    def written_in_parts(x: Tensor) -> Tensor:
        out = torch.zeros(3, 4, 4)
        for place in range(3):
            x = x @ w
            out[place] = x
        return out.sum(0)

    assert longest_product_chain(written_in_parts, x) == 3


def test_a_layer_computed_step_by_step_is_noticed() -> None:
    class StepByStep(Convolutional):
        def forward(self, x_BLD: Tensor) -> Tensor:
            last, out = torch.zeros_like(x_BLD[:, :1]), []
            for x_B1D in x_BLD.split(1, 1):
                last = super().forward(x_B1D + last)
                out.append(last)
            return torch.cat(out, 1)

    assert count_sequential_operations(StepByStep(8, KERNEL), 12, 8) == 12


# --------------------------------------------------------------------------------------- paths


def test_paths_are_the_papers(result: Table1) -> None:
    def by_hand(length: int) -> dict[str, int]:
        return {
            SELF_ATTENTION: 1,
            RECURRENT: length - 1,
            CONVOLUTIONAL: math.ceil((length - 1) / (KERNEL - 1)),
            DILATED: next(i for i in range(length) if KERNEL**i >= length),
            RESTRICTED: math.ceil((length - 1) / WINDOW),
        }

    for n in LENGTHS:
        assert {layer: result.path(layer)[n] for layer in by_hand(n)} == by_hand(n)


@pytest.mark.parametrize("n", [2, 3, 5, 9, 10, 27, 28])
@pytest.mark.parametrize("layer", [SELF_ATTENTION, CONVOLUTIONAL, DILATED, RESTRICTED])
def test_the_walk_agrees_with_the_gradient_of_a_whole_stack(layer: str, n: int) -> None:
    torch.manual_seed(0)
    x_1ND = torch.randn(1, n, TRACED_WIDTH, dtype=torch.float64, requires_grad=True)
    y_1ND: Tensor = x_1ND
    for depth in range(n):
        y_1ND = build_layer(
            layer, TRACED_WIDTH, kernel=KERNEL, window=WINDOW, depth=depth
        ).double()(y_1ND)
        (gradient_1ND,) = torch.autograd.grad(y_1ND[0, -1].sum(), x_1ND, retain_graph=True)
        if gradient_1ND[0, 0].any():
            break
    assert measure_path_length(layer, n, kernel=KERNEL, window=WINDOW) == depth + 1


def test_long_paths_do_not_vanish_in_the_arithmetic() -> None:
    assert measure_path_length(CONVOLUTIONAL, 600, kernel=2, window=1) == 599


def test_a_wider_kernel_is_noticed() -> None:
    paths = [
        measure_path_length(CONVOLUTIONAL, 33, kernel=kernel, window=1) for kernel in (2, 3, 5, 9)
    ]
    assert paths == [32, 16, 8, 4]
    wrong = layers_to_connect(lambda depth: Convolutional(TRACED_WIDTH, KERNEL + (depth == 1)), 33)
    assert wrong == 16  # 2, 5, then by twos to 33: one position to spare
    assert (
        layers_to_connect(lambda depth: Convolutional(TRACED_WIDTH, KERNEL + 2 * (depth == 1)), 33)
        == 15
    )


def test_a_layer_that_leads_nowhere_is_refused() -> None:
    class Blind(Convolutional):
        def forward(self, x_BLD: Tensor) -> Tensor:
            return 2 * x_BLD

    with pytest.raises(DragomanError, match="the last of 5 never sees the first"):
        layers_to_connect(lambda depth: Blind(TRACED_WIDTH, KERNEL), 5)


# ---------------------------------------------------------------------------------- the result


def test_every_layer_is_timed_at_every_size(result: Table1) -> None:
    cells = {(one.layer, one.n, one.d) for one in result.times}
    assert cells == {(layer, n, d) for layer in LAYERS for n in LENGTHS for d in WIDTHS}
    assert all(one.training > 0 and one.forward > 0 for one in result.times)
    assert result.notes == ()


def test_what_takes_too_long_is_skipped_with_a_note() -> None:
    found = measure((4, 8), (8,), window=2, repeats=1, limit=1e-9)
    assert {one.n for one in found.times} == {4}
    assert len(found.notes) == 4
    assert found.notes[0].startswith("self-attention, n = 8, d = 8: not timed, a training pass")
    assert "and the limit is 1e-09 s" in render(found)


def test_widths_are_compared_at_a_length_that_all_have(result: Table1) -> None:
    assert result.longest_shared("mixing") == 32  # beyond the widest only the narrowest is counted
    assert result.longest_shared("training") == 64
    times = tuple(t for t in result.times if (t.layer, t.n, t.d) != (RECURRENT, 64, 32))
    short = replace(result, times=times)
    assert short.longest_shared("training") == 32
    assert short.by_width("training", SELF_ATTENTION) == {
        t.d: t.training for t in times if t.layer == SELF_ATTENTION and t.n == 32
    }
    assert replace(result, times=()).by_width("training", SELF_ATTENTION) == {}


def test_running_out_of_memory_is_a_note() -> None:
    class Hungry(nn.Module):
        def forward(self, x_BLD: Tensor) -> Tensor:
            raise torch.OutOfMemoryError("no memory left")

    timer = measurement._LayerTimer(torch.device("cpu"), 1, 10.0)
    timer.time({RECURRENT: build_layer(RECURRENT, 4), SELF_ATTENTION: Hungry()}, 4, 4)  # type: ignore[dict-item]
    assert [one.layer for one in timer.times] == [RECURRENT]
    assert timer.notes == ["self-attention, n = 4, d = 4: not timed, out of memory"]


def test_measuring_leaves_the_random_numbers_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    measure((4, 8), (8,), window=2, repeats=1)
    assert torch.equal(torch.rand(3), expected)


def test_sizes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"lengths = \[1\] must be numbers from 2 on"):
        measure((1,), (8,))
    with pytest.raises(ConfigError, match=r"widths = \[\] must be numbers from 1 on"):
        measure((4,), ())
    with pytest.raises(ConfigError, match="repeats = 0 measures nothing"):
        measure((4,), (8,), repeats=0)


def test_the_result_round_trips_through_json(result: Table1) -> None:
    assert Table1.from_json(json.loads(json.dumps(result.to_json()))) == result


@pytest.mark.parametrize("text", ["[]", "{}", '{"counts": [{"layer": 1}]}'])
def test_another_file_is_not_taken_for_a_result(text: str) -> None:
    with pytest.raises((KeyError, TypeError)):
        Table1.from_json(json.loads(text))


def test_an_exponent_is_the_slope_in_logarithms() -> None:
    assert fit_exponent({n: 7 * n**1.5 for n in (2, 8, 32)}) == pytest.approx(1.5)
    assert fit_exponent({4: 1.0}) is None
    assert list(upper_half(dict.fromkeys((1, 2, 4, 8), 1.0))) == [2, 4, 8]
    assert list(upper_half(dict.fromkeys(range(9), 1.0))) == [4, 5, 6, 7, 8]


def test_a_crossing_is_found_between_the_lengths_measured() -> None:
    lengths = (16, 64, 256, 1024)
    squares, lines = {n: n * n for n in lengths}, {n: 100 * n for n in lengths}
    assert find_crossover(squares, lines) == pytest.approx(100)
    assert find_crossover(lines, squares) == math.inf
    assert find_crossover(lines, dict.fromkeys(lengths, 1)) == 0
    assert find_crossover({16: 1}, {32: 1}) is None


def test_attention_and_recurrence_cost_the_same_at_n_equal_to_d(result: Table1) -> None:
    for d in WIDTHS:
        lines = [result.by_length("mixing", layer, d) for layer in (SELF_ATTENTION, RECURRENT)]
        assert find_crossover(*lines) == pytest.approx(d)


# ------------------------------------------------------------------------- the text, the picture


def with_times(result: Table1) -> Table1:
    """Times by a formula: attention n²·d, the others n·d²/2, nanoseconds."""
    seconds = [
        (layer, n, d, 1e-9 * (n * n * d if layer == SELF_ATTENTION else n * d * d / 2))
        for layer in LAYERS
        for n in LENGTHS
        for d in WIDTHS
    ]
    times = (
        PassTime(layer=layer, n=n, d=d, forward=t, training=3 * t) for layer, n, d, t in seconds
    )
    return replace(result, times=tuple(times))


def test_the_text_has_the_papers_and_the_measured(result: Table1) -> None:
    lines = render(with_times(result)).splitlines()
    rows = [" ".join(line.split()) for line in lines]
    assert "self-attention O(n²·d) 2.00 1.00" in " ".join(rows)
    assert any(row.startswith("recurrent O(n·d²) 1.00 2.00 1.00 2.00 1.00 2.00") for row in rows)
    assert any(row.startswith("convolutional O(k·n·d²) 1.00 2.00") for row in rows)
    assert any(row.startswith("restricted self-attention O(r·n·d) 1.00 1.00") for row in rows)
    assert "recurrent 0.13 0.13 0.39" in rows  # 4·32·32²
    assert "paper n = 8 n = 16 n = 32 n = 64" in rows
    assert "recurrent O(n) 8 16 32 64" in rows
    assert "recurrent O(n) 7 15 31 63" in rows
    assert "convolutional O(n/k) 4 8 16 32" in rows
    assert "convolutional, dilated O(logₖ n) 2 3 4 4" in rows
    assert "restricted self-attention O(n/r) 2 4 8 16" in rows
    assert "16 for n < 16 at no n at no n" in rows
    assert "32 for n < 32 for n < 16 for n < 16" in rows
    assert any("At d = 32 it is so for n < 32 by the FLOPs of mixing" in row for row in rows)
    assert "and for n < 16 by the clock of a training pass." in rows
    assert max(map(len, lines)) <= 120


def test_lengths_that_one_of_two_lacks_are_not_compared(result: Table1) -> None:
    timed = with_times(result)
    times = [
        replace(t, training=t.forward / 1e6) if t.layer == SELF_ATTENTION else t
        for t in timed.times
    ]
    short = replace(timed, times=tuple(t for t in times if (t.layer, t.n) != (RECURRENT, 64)))
    assert "at every n to 32 by the clock of a training pass" in render(short)


def test_the_picture_names_every_line(result: Table1, tmp_path: Path) -> None:
    draw(with_times(result), tmp_path / "deep" / "table1.svg")
    text = (tmp_path / "deep" / "table1.svg").read_text(encoding="utf-8")
    for name in (
        *("operations of mixing, d = 16", "sequential operations", "maximum path length"),
        *("milliseconds of a training pass, d = 16", "self-attention, restricted", "dilated"),
        *("n = d", RECURRENT, CONVOLUTIONAL),
    ):
        assert f">{name}<" in text
    assert "mathdefault" not in text
    with pytest.raises(DragomanError, match=r"one of \.png, \.svg, \.pdf"):
        draw(result, tmp_path / "table1.bmp")


def test_names_do_not_overlap() -> None:
    from matplotlib.figure import Figure

    from dragoman.paper.table1.rendering import NAME_SPACING, _panel

    axes = Figure().subplots()
    _panel(axes, {layer: {8: 1.0, 16: 2.0 + 0.001 * i} for i, layer in enumerate(LAYERS)})
    heights = sorted(text.xy[1] for text in axes.texts)
    assert len(heights) == 4
    assert all(high - low >= NAME_SPACING - 1e-9 for low, high in pairwise(heights))
