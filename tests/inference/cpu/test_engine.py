"""The CPU engine finds what the search finds, over the same numbers rounded in PyTorch."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.errors import ModelError
from dragoman.inference.cpu import CpuEngine, kernel_library, why_no_cpu_engine
from dragoman.inference.cpu.engine import deal_sentences
from dragoman.inference.cpu.kv_cache import PAGE_POSITIONS, SPARE_PAGES, KVCache
from dragoman.models.int8_weights import pack_weights
from dragoman.search import SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.text.special_tokens import EOS, FIRST_PIECE

from ...kernel import needs_kernel
from .small_models import BASE, VOCABULARY, arrays, engine, in_int8, made

pytestmark = needs_kernel

KINDS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"norm": "post"},
    "learned positions": {"positions": "learned", "max_positions": 64},
    "gelu": {"activation": "gelu"},
    "swish and biases": {"activation": "swish", "attention_bias": True, "output_bias": True},
    "three matrices": {"shared_embeddings": False},
    "wide heads": {"d_k": 24, "d_v": 24},
    "no whole blocks": {"d_ff": 36},
}


def sources(count: int, seed: int = 0, longest: int = 20) -> list[list[int]]:
    draw = random.Random(seed)
    return [
        [draw.randrange(FIRST_PIECE, VOCABULARY) for _ in range(draw.randint(1, longest))]
        for _ in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_finds_what_the_search_finds_over_rounded_numbers(
    kind: str, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(BASE, **KINDS[kind])
    model = made(config)
    options = SearchOptions(beam=beam, n_best=min(beam, 2), max_extra=12)
    sentences = sources(12)
    found = engine(model, config).search(sentences, options)
    with in_int8(model, monkeypatch):
        wanted = search(model, source_rows(sentences, torch.device("cpu")), options)
    same = 0
    for ours, theirs in zip(found, wanted, strict=True):
        assert len(ours) == len(theirs)
        if ours[0].ids == theirs[0].ids:
            assert ours[0].score == pytest.approx(theirs[0].score, abs=0.02, rel=0.02)
            same += 1
        elif beam > 1:  # as good as it, and reached by a close call
            assert ours[0].score == pytest.approx(theirs[0].score, abs=0.1)
        assert [h.score for h in ours] == sorted((h.score for h in ours), reverse=True)
    assert same >= 7, "keys and values in bf16 decide a few close calls, not most"


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", [VOCABULARY, 1300])
@pytest.mark.parametrize("beam", [1, 3])
def test_batch_mates_workers_and_places_change_nothing(beam: int, vocabulary: int) -> None:
    model = made(BASE, vocabulary, vocabulary=vocabulary)
    options = SearchOptions(beam=beam, max_extra=20)
    sentences = sources(150, longest=30)
    whole = engine(model, BASE, workers=2).search(sentences, options)
    single = engine(model, BASE)
    alone = [single.search([one], options)[0] for one in sentences[::17]]
    assert whole[::17] == alone
    backwards = engine(model, BASE, workers=3).search(sentences[::-1], options)
    assert backwards[::-1] == whole


@pytest.mark.parametrize("name", kernel_library.DESCRIPTIONS)
def test_every_version_of_the_kernel_computes_the_same(name: str) -> None:
    model, options = made(BASE), SearchOptions(beam=2, max_extra=10)
    sentences = sources(10)
    best = engine(model, BASE).search(sentences, options)
    library = kernel_library.load_kernel()
    if name not in kernel_library.find_instruction_sets(library):
        pytest.skip(f"this machine has no {kernel_library.DESCRIPTIONS[name]}")
    try:
        kernel_library.use_instruction_set(library, name)
        assert kernel_library.used_instruction_set() == kernel_library.DESCRIPTIONS[name]
        found = engine(model, BASE).search(sentences, options)
    finally:
        kernel_library.use_instruction_set(library)
    for one, other in zip(best, found, strict=True):
        assert one[0].ids == other[0].ids
        # Floats are added up in other orders: now and then an input is rounded otherwise.
        assert one[0].score == pytest.approx(other[0].score, rel=3e-4)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("extra", [0, 1, 7])
def test_no_translation_is_longer_than_it_may_be(beam: int, extra: int) -> None:
    options = SearchOptions(beam=beam, max_extra=extra)
    sentences = sources(20, longest=5)
    results = engine(made(BASE), BASE).search(sentences, options)
    for source, found in zip(sentences, results, strict=True):
        assert len(found[0].ids) <= len(source) + extra
        assert EOS not in found[0].ids
        assert min(found[0].ids, default=FIRST_PIECE) >= FIRST_PIECE
    short = replace(options, max_length=2)
    assert all(len(row[0].ids) <= 2 for row in engine(made(BASE), BASE).search(sentences, short))


def test_each_worker_begins_with_its_share_of_the_long_sentences() -> None:
    assert deal_sentences(range(10), workers=2, slots=3) == [0, 2, 4, 1, 3, 5, 6, 7, 8, 9]
    assert deal_sentences(range(5), workers=2, slots=3) == [0, 2, 4, 1, 3]
    assert deal_sentences(range(3), workers=1, slots=2) == [0, 1, 2]


def test_only_targets_are_produced() -> None:
    model = made(BASE, targets=70)
    for found in engine(model, BASE).search(sources(20), SearchOptions(beam=2)):
        assert max(found[0].ids, default=0) < 70


def test_sentences_longer_than_any_before_have_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(BASE)
    sentences = [sources(1, longest=1)[0] * 1500]
    options = SearchOptions(beam=1, max_length=3)
    found = engine(model, BASE).search(sentences, options)
    with in_int8(model, monkeypatch):
        wanted = search(model, source_rows(sentences, torch.device("cpu")), options)
    assert found[0][0].score == pytest.approx(wanted[0][0].score, abs=0.05)


def test_what_the_kernel_lacks_is_named_by_its_setting() -> None:
    assert why_no_cpu_engine(BASE) == ""
    assert why_no_cpu_engine(replace(BASE, positions="rotary")) == "model.positions = rotary"
    assert why_no_cpu_engine(replace(BASE, window=3)) == "model.window = 3"
    assert (
        why_no_cpu_engine(replace(BASE, architecture="recurrent"))
        == "model.architecture = recurrent"
    )
    assert why_no_cpu_engine(replace(BASE, activation="swiglu")) == "model.activation = swiglu"


def test_weights_that_are_no_numbers_are_refused() -> None:
    model = made(BASE)
    with torch.no_grad():
        model.get_parameter("decoder.0.around_source.norm.weight")[3] = torch.nan
    with pytest.raises(
        ModelError, match=r"decoder.0.around_source.norm.weight holds infinite numbers or NaN"
    ):
        engine(model, BASE)


def test_arrays_of_another_model_are_refused() -> None:
    packed = pack_weights(arrays(made(BASE)), BASE, VOCABULARY)
    with pytest.raises(
        ModelError, match=r"embedding.weight is missing, or belongs to another model"
    ):
        CpuEngine(packed, replace(BASE, d_model=16, d_k=16, d_v=16), VOCABULARY)


def test_pages_are_taken_and_freed() -> None:
    cache = KVCache(layers=1, width=8, beams=2, positions=3 * PAGE_POSITIONS)
    assert cache.free_positions == 3 * PAGE_POSITIONS
    first, second = cache.take_page(), cache.take_page()
    assert {first, second} == {0, 2 * PAGE_POSITIONS}
    cache.free_pages([first])
    assert cache.free_positions == 2 * PAGE_POSITIONS
    assert cache.take_page() == first
    assert cache.memory_LNW.shape == (1, 6 * PAGE_POSITIONS, 8)
    assert cache.memory_LNW.dtype == np.uint16


@pytest.mark.skipif(sys.platform != "linux", reason="other systems may keep it for a while")
def test_memory_goes_back_when_many_pages_are_freed() -> None:
    cache = KVCache(layers=2, width=256, beams=2, positions=80 * PAGE_POSITIONS)
    firsts = [cache.take_page() for _ in range(80)]
    cache.memory_LNW[:] = 7

    def kept() -> list[int]:
        """Pages of the first layer, and of the second, that still are as they were written."""
        pages = cache.memory_LNW.reshape(2, 80, -1)
        return [int((layer == 7).all(axis=1).sum()) for layer in pages]

    cache.free_pages(firsts[:20])
    assert kept() == [80, 80], "as spare pages"
    cache.free_pages(firsts[20:40])
    assert kept() == [40 + SPARE_PAGES + 10] * 2
    assert cache.free_positions == 40 * PAGE_POSITIONS
    again = [cache.take_page() for _ in range(30)]
    assert len({*again, *firsts[40:]}) == 70
    cache.free_pages(again + firsts[40:])
    assert kept() == [SPARE_PAGES, SPARE_PAGES]
    assert cache.free_positions == 80 * PAGE_POSITIONS
