"""How long an output may become, by the one rule that every search and engine follows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.continuous_batching import ContinuousBatchingEngine
from dragoman.inference.cpu.engine import CpuEngine
from dragoman.inference.gpu.engine import GpuEngine
from dragoman.models import Model, build
from dragoman.models.weights import get_weights
from dragoman.search import SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.search.options import longest_output

CONFIG = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, heads=2, dropout=0.0)
SENTENCES = [[5, 6, 7], [8]]


@pytest.mark.parametrize(
    ("settings", "least", "expected"),
    [
        ({}, 0, 53),
        ({"max_extra": 2}, 0, 5),
        ({"max_extra": 2, "max_length": 4}, 0, 4),
        ({"max_extra": 2, "max_length": 9}, 0, 5),
        ({"max_length": 0}, 0, 0),
        ({"max_length": 0}, 6, 6),
        ({"max_extra": 0, "min_length": 8}, 0, 8),
    ],
)
def test_the_source_and_the_limits_decide_how_long_an_output_may_be(
    settings: dict[str, int], least: int, expected: int
) -> None:
    assert longest_output(3, SearchOptions(**settings), least) == expected


@pytest.fixture(scope="module")
def model() -> Model:
    torch.manual_seed(1)
    return build(CONFIG, 40).eval()


def by_search(model: Model, options: SearchOptions) -> list[list[int]]:
    found = search(model, source_rows(SENTENCES, torch.device("cpu")), options)
    return [row[0].ids for row in found]


def by_cpu_engine(model: Model, options: SearchOptions) -> list[list[int]]:
    if kernel_library.load_kernel() is None:
        pytest.skip("the kernel is not compiled")
    return [row[0].ids for row in cpu_engine(model).search(SENTENCES, options)]


def by_continuous_batching(model: Model, options: SearchOptions) -> list[list[int]]:
    if kernel_library.load_kernel() is None:
        pytest.skip("the kernel is not compiled")
    stream = ContinuousBatchingEngine(cpu_engine(model), 100).start_batch(options)
    numbered: Sequence[tuple[int, list[int]]] = list(enumerate(SENTENCES))
    stream.admit(numbered)
    found: dict[int, list[int]] = {}
    while len(stream):
        found |= {number: row[0].ids for number, row in stream.step()}
    return [found[number] for number, _ in numbered]


def by_gpu_engine(model: Model, options: SearchOptions) -> list[list[int]]:
    engine = GpuEngine(get_weights(model), CONFIG, model.targets, "cpu")
    return [row[0].ids for row in engine.search(SENTENCES, options)]


def cpu_engine(model: Model) -> CpuEngine:
    weights = {name: weight.numpy() for name, weight in get_weights(model).items()}
    return CpuEngine.from_weights(weights, CONFIG, model.targets)


@pytest.mark.parametrize("beam", [1, 2])
@pytest.mark.parametrize("find", [by_search, by_cpu_engine, by_continuous_batching, by_gpu_engine])
def test_a_length_of_nothing_gives_nothing_in_every_engine(
    find: object, beam: int, model: Model
) -> None:
    assert callable(find)
    assert find(model, SearchOptions(beam=beam, max_length=0)) == [[], []]
    assert all(len(ids) <= 1 for ids in find(model, SearchOptions(beam=beam, max_length=1)))
