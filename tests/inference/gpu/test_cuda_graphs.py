"""On a GPU: recorded steps in bf16 find what the plain search finds, but for close calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dragoman.inference.gpu import GpuEngine, small_gemm
from dragoman.models import Model
from dragoman.models.weights import get_weights
from dragoman.search import SearchOptions, search
from dragoman.search.batching import source_rows

from .tree_helpers import assert_trees, plain, sentences, targets

pytestmark = pytest.mark.gpu

Make = Callable[..., Model]
Sources = Callable[..., list[list[int]]]


def engine(model: Model, **settings: Any) -> GpuEngine:
    config: Any = model.config
    return GpuEngine(get_weights(model), config, model.targets, "cuda", **settings)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_replayed_steps_in_full_precision_find_what_the_search_finds(
    norm: str, beam: int, make: Make, sources: Sources
) -> None:
    model = make(eagerness=2.5 if beam > 1 else 3.5, norm=norm)
    options = SearchOptions(beam=beam, n_best=min(beam, 2), max_extra=12, length_penalty=1.0)
    sentences = sources(200, longest=40)
    wanted = search(model, source_rows(sentences, torch.device("cpu")), options)
    for use_graphs in (False, True):
        ours = engine(model, dtype=torch.float32, use_graphs=use_graphs)
        ours.slots = 64
        found = ours.search(sentences, options)
        same = sum(
            [h.ids for h in a] == [h.ids for h in b] for a, b in zip(found, wanted, strict=True)
        )
        assert same >= 196, "TF32 and other orders of summation decide next to nothing"


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize(
    "limits", [{"min_length": 9}, {"no_repeat_ngram": 2}, {"repetition_penalty": 1.3}]
)
def test_replayed_steps_keep_to_a_least_length_and_limits_on_repetition(
    limits: dict[str, Any], beam: int, make: Make, sources: Sources
) -> None:
    model = make(eagerness=6.0 if "min_length" in limits else 1.0)
    options = SearchOptions(beam=beam, max_extra=12, **limits)
    sentences = sources(60, longest=20)
    wanted = search(model, source_rows(sentences, torch.device("cpu")), options)
    ours = engine(model, dtype=torch.float32)
    found = ours.search(sentences, options)
    assert sum(a[0].ids == b[0].ids for a, b in zip(found, wanted, strict=True)) >= 56
    alone = [ours.search([one], options)[0] for one in sentences[:10]]  # kernels of few rows
    assert sum(a[0].ids == b[0].ids for a, b in zip(alone, wanted[:10], strict=True)) >= 9
    for (a, *_), (b, *_) in zip(found, wanted, strict=True):
        if a.ids == b.ids:
            assert a.log_probs == pytest.approx(b.log_probs, abs=0.05)


@pytest.mark.parametrize("beam", [1, 4])
def test_one_sentence_is_found_as_among_many(beam: int, make: Make, sources: Sources) -> None:
    model, options = make(), SearchOptions(beam=beam, max_extra=12)
    sentences = sources(30)
    ours = engine(model)
    whole = ours.search(sentences, options)
    alone = [ours.search([one], options)[0] for one in sentences]
    again = [ours.search([one], options)[0] for one in sentences]
    assert alone == again
    assert sum(a[0].ids == b[0].ids for a, b in zip(whole, alone, strict=True)) >= 24


@pytest.mark.parametrize("beam", [1, 4])
def test_rounded_numbers_decide_close_calls_only(beam: int, make: Make, sources: Sources) -> None:
    model = make(eagerness=2.5 if beam > 1 else 3.5)
    options = SearchOptions(beam=beam, max_extra=12, length_penalty=1.0)
    sentences = sources(200, longest=40)
    wanted = search(model, source_rows(sentences, torch.device("cpu")), options)
    found = engine(model).search(sentences, options)
    gaps = [b[0].score - a[0].score for a, b in zip(found, wanted, strict=True)]
    assert abs(sum(gaps) / len(gaps)) < 0.05
    assert sum(a[0].ids == b[0].ids for a, b in zip(found, wanted, strict=True)) >= 160


@pytest.mark.parametrize("beam", [1, 2, 3, 4])
def test_kernels_that_overlap_compute_the_same(beam: int, make: Make, sources: Sources) -> None:
    """To the last bit, and every time."""
    if not small_gemm.can_overlap(torch.device("cuda")):
        pytest.skip("this device, or this Triton, cannot")
    model, options = make(eagerness=1.0), SearchOptions(beam=beam, max_extra=12)
    alone = sources(8, longest=30)
    apart, ours = engine(model, overlap=False), engine(model, overlap=True)
    wanted = [apart.search([one], options)[0] for one in alone]
    for _ in range(20):
        assert [ours.search([one], options)[0] for one in alone] == wanted


@pytest.mark.parametrize("beam", [1, 2, 3, 4])
def test_few_rows_are_summed_as_they_are_multiplied(
    beam: int, make: Make, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, options = make(), SearchOptions(beam=beam, max_extra=12)
    alone = sources(20)
    summed = engine(model, dtype=torch.float32)
    found = [summed.search([one], options)[0][0] for one in alone]
    monkeypatch.setattr(small_gemm, "MAX_SUMMED_ROWS", 0)
    multiplied = engine(model, dtype=torch.float32)
    wanted = [multiplied.search([one], options)[0][0] for one in alone]
    assert sum(a.ids == b.ids for a, b in zip(found, wanted, strict=True)) >= 19


@pytest.mark.parametrize(
    ("order", "beam", "announced"),
    [
        ("brackets", 21, True),
        ("in-order", 1, True),
        ("in-order", 21, True),
        ("bottom-up", 4, False),
        ("bottom-up", 21, True),
    ],
)
def test_replayed_steps_make_the_trees_of_the_plain_search(
    order: str, beam: int, announced: bool, make: Make
) -> None:
    words = [n % 40 + 1 for n in range(0, 60, 2)]
    ids, to_parse = sentences(order, words, announced=announced)
    model = make(targets=targets(to_parse), shared_embeddings=False)
    options = SearchOptions(beam=beam, max_extra=40)
    wanted = plain(model, ids, to_parse, options)
    ours = engine(model, dtype=torch.float32)
    found = ours.search(ids, options, to_parse)
    assert_trees(found, to_parse)
    same = sum(a[0].ids == b[0].ids for a, b in zip(found, wanted, strict=True))
    assert same >= 26, "other orders of summation decide next to nothing"
    rounded = engine(model).search(ids, options, to_parse)
    assert_trees(rounded, to_parse)
    gaps = [a[0].score - b[0].score for a, b in zip(rounded, wanted, strict=True)]
    assert abs(sum(gaps) / len(gaps)) < 0.5
