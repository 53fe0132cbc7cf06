"""The GPU engine in plain PyTorch on the CPU finds exactly what the search finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.errors import ModelError
from dragoman.inference.gpu import batch_state, cuda_graphs, scheduler, why_no_gpu_engine
from dragoman.models import Model
from dragoman.search import SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.text.special_tokens import EOS

from .small_engines import assert_same, engine

Make = Callable[..., Model]
Sources = Callable[..., list[list[int]]]

CPU = torch.device("cpu")
KINDS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"norm": "post"},
    "learned positions": {"positions": "learned", "max_positions": 16},
    "gelu": {"activation": "gelu"},
    "swish and biases": {"activation": "swish", "attention_bias": True, "norm": "post"},
    "three matrices, no bias": {"shared_embeddings": False, "output_bias": False},
    "wide heads": {"d_k": 24, "d_v": 24},
    "more layers below than above": {"encoder_layers": 3, "decoder_layers": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_is_searched_as_by_itself(
    kind: str, beam: int, make: Make, sources: Sources
) -> None:
    model = make(eagerness=2.5 if beam > 1 else 3.5, **KINDS[kind])
    options = SearchOptions(beam=beam, max_extra=12, length_penalty=1.0)
    sentences = sources(24)
    found = engine(model).search(sentences, options)
    assert_same(found, search(model, source_rows(sentences, CPU), options))


@pytest.mark.parametrize("beam", [1, 4])
def test_some_sentences_end_early_and_others_where_they_must(
    beam: int, make: Make, sources: Sources
) -> None:
    """So that the other tests say something."""
    model = make(eagerness=2.5 if beam > 1 else 3.5)
    sentences = sources(24)
    options = SearchOptions(beam=beam, max_extra=12, length_penalty=1.0)
    found = engine(model).search(sentences, options)
    lengths = [len(one[0].ids) for one in found]
    full = sum(n == len(ids) + 12 for n, ids in zip(lengths, sentences, strict=True))
    assert 2 < full < 22
    assert len(set(lengths)) > 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beam", "best", "alpha", "early"),
    [
        *[(2, 1, 0.6, True), (4, 3, 0.0, False), (4, 3, 2.0, True), (7, 7, 0.6, False)],
        *(
            pytest.param(*one, marks=pytest.mark.thorough)
            for one in [(2, 1, 2.0, False), (4, 3, 0.6, True), (7, 7, 0.0, True)]
        ),
    ],
)
def test_the_best_are_the_same_and_in_the_same_order(
    beam: int, best: int, alpha: float, early: bool, make: Make, sources: Sources
) -> None:
    options = SearchOptions(
        beam=beam, n_best=best, length_penalty=alpha, stop_early=early, max_extra=10
    )
    model, sentences = make(eagerness=3.0), sources(16)
    wanted = search(model, source_rows(sentences, CPU), options)
    assert_same(engine(model).search(sentences, options), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("slots", [1, 2, 16, None])
def test_how_many_are_searched_at_a_time_changes_nothing(
    slots: int | None, beam: int, make: Make, sources: Sources
) -> None:
    model, options = make(), SearchOptions(beam=beam, max_extra=8)
    sentences = sources(12)
    wanted = search(model, source_rows(sentences, CPU), options)
    assert_same(engine(model, slots).search(sentences, options), wanted)


@pytest.mark.parametrize("steps", [1, 3])
def test_how_often_the_host_looks_changes_nothing(steps: int, make: Make, sources: Sources) -> None:
    model, options = make(), SearchOptions(beam=5, max_extra=8)
    sentences = sources(40)
    ours = engine(model, 16)
    ours.steps_between_checks = steps
    wanted = search(model, source_rows(sentences, CPU), options)
    assert_same(ours.search(sentences, options), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_sentences_of_very_different_lengths_live_side_by_side(beam: int, make: Make) -> None:
    model, options = make(), SearchOptions(beam=beam, max_extra=5)
    sentences = [[7] * 90, [8], [], [9, 10] * 30, [11], [12, 13], [14] * 45, []]
    wanted = search(model, source_rows(sentences, CPU), options)
    assert_same(engine(model, 2).search(sentences, options), wanted)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("limits", [{"max_extra": 0}, {"max_extra": 1}, {"max_length": 2}])
def test_no_translation_is_longer_than_it_may_be(
    limits: dict[str, int], beam: int, make: Make, sources: Sources
) -> None:
    options = SearchOptions(beam=beam, n_best=beam, **limits)
    model, sentences = make(eagerness=0.0), sources(12, longest=5)
    found = engine(model).search(sentences, options)
    assert_same(found, search(model, source_rows(sentences, CPU), options))
    for source, hypotheses in zip(sentences, found, strict=True):
        most = options.max_length or len(source) + options.max_extra
        assert all(len(h.ids) <= most and EOS not in h.ids for h in hypotheses)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize(
    "limits",
    [
        {"min_length": 1},
        {"min_length": 9, "max_extra": 4},
        {"no_repeat_ngram": 1},
        {"no_repeat_ngram": 2, "min_length": 3},
        {"repetition_penalty": 1.4},
    ],
)
def test_a_least_length_and_limits_on_repetition_are_those_of_the_search(
    limits: dict[str, Any], beam: int, make: Make, sources: Sources
) -> None:
    options = SearchOptions(beam=beam, n_best=beam, **{"max_extra": 9, **limits})
    # Some models would end at once, and others would go on and on with the same.
    eagerness = 6.0 if "min_length" in limits else 1.0
    model, sentences = make(eagerness=eagerness), sources(12, longest=6)
    free = search(model, source_rows(sentences, CPU), SearchOptions(beam=beam, max_extra=9))
    wanted = search(model, source_rows(sentences, CPU), options)
    assert [row[0].ids for row in free] != [row[0].ids for row in wanted], "or nothing is tested"
    ours = engine(model)
    assert_same(ours.search(sentences, options), wanted)
    assert min(len(one.ids) for row in wanted for one in row) >= options.min_length
    # What one search forbids, the next one in the same slots may find.
    assert_same(ours.search(sentences, SearchOptions(beam=beam, max_extra=9)), free)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 3])
def test_what_recording_runs_changes_nothing(
    beam: int, make: Make, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU nothing is recorded, but what is run for it is run."""
    recorded = []

    def capture(run: Callable[[], None], pool: Any) -> tuple[Callable[[], None], Any]:
        recorded.append(run)
        for _ in range(3):
            run()
        return run, pool

    monkeypatch.setattr(cuda_graphs, "capture", capture)
    model, options, sentences = make(), SearchOptions(beam=beam, max_extra=8), sources(9)
    wanted = search(model, source_rows(sentences, CPU), options)
    ours = engine(model, use_graphs=True)
    assert_same(ours.search(sentences, options), wanted)
    steps = len(recorded)
    assert steps >= 3, "8 sentences, then fewer"
    for _ in range(2):
        assert_same([ours.search([one], options)[0] for one in sentences], wanted)
    assert len(recorded) > steps


def test_only_targets_are_produced(make: Make, sources: Sources) -> None:
    model, options, sentences = make(targets=70), SearchOptions(beam=3), sources(6)
    found = engine(model).search(sentences, options)
    assert_same(found, search(model, source_rows(sentences, CPU), options))
    assert max(max(h[0].ids, default=0) for h in found) < 70


@pytest.mark.slow
def test_a_search_leaves_nothing_behind_for_the_next(make: Make, sources: Sources) -> None:
    model, sentences = make(), sources(10)
    ours = engine(model)
    for options in (
        SearchOptions(beam=4, max_extra=9),
        SearchOptions(beam=1, max_extra=30),
        SearchOptions(beam=4, max_extra=9, length_penalty=0.0),
        SearchOptions(beam=4, n_best=2, max_extra=90),
        SearchOptions(beam=4, max_extra=3),
    ):
        wanted = search(model, source_rows(sentences, CPU), options)
        assert_same(ours.search(sentences, options), wanted)
    assert ours.search([], options) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slots", "little"),
    [
        *[(2, 0), (16, 1 << 20)],
        *(pytest.param(*one, marks=pytest.mark.thorough) for one in [(2, 1 << 20), (16, 0)]),
    ],
)
def test_nothing_is_read_before_it_has_arrived(
    slots: int, little: int, make: Make, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that is late: copies arrive when something asked for after them is waited for."""
    underway: list[tuple[Tensor, Tensor]] = []

    def copy_async(here: Tensor, there: Tensor) -> None:
        underway.append((here.fill_(1), there.clone()))

    def record_event(device: torch.device) -> Callable[[], None]:
        asked = list(underway)
        underway.clear()
        before = waits[-1] if waits else None

        def wait() -> None:
            idle.append(wait is waits[-1])
            if before is not None and asked:
                before()
            for here, there in asked:
                here.copy_(there)
            asked.clear()

        waits.append(wait)
        return wait

    waits: list[Callable[[], None]] = []
    idle: list[bool] = []
    monkeypatch.setattr(batch_state, "WHOLE_REPORT_BYTES", little)
    for module in (batch_state, scheduler):
        monkeypatch.setattr(module, "copy_async", copy_async)
        monkeypatch.setattr(module, "record_event", record_event)
    model, options, sentences = make(), SearchOptions(beam=3, max_extra=8), sources(20)
    wanted = search(model, source_rows(sentences, CPU), options)
    ours = engine(model, slots)
    assert_same(ours.search(sentences, options), wanted)
    assert_same(ours.search(sentences, options), wanted)
    assert len(idle) > 20
    assert sum(idle) <= (2 if little == 0 else 0), "or the device would wait for the host"


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 20])
def test_how_much_a_copy_tells_changes_nothing(
    count: int, make: Make, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, options = make(), SearchOptions(beam=3, n_best=2, max_extra=8)
    sentences = sources(count)
    wanted = search(model, source_rows(sentences, CPU), options)
    for little in (0, 1 << 30):
        monkeypatch.setattr(batch_state, "WHOLE_REPORT_BYTES", little)
        ours = engine(model, None)
        assert_same(ours.search(sentences, options), wanted)
        assert (ours._runners[0].host_copies[0].report is None) == (little == 0)


def test_what_comes_from_the_device_in_any_order_is_ranked(make: Make) -> None:
    """Best first, of equals the older; what was not filled is nothing."""
    figures = [[-2.0, -4.0, 2.0, 3.0], [-1.0, -2.0, 1.0, 1.0], [-2.0, -5.0, 3.0, 0.0]]
    figures.append([-torch.inf, -torch.inf, 0.0, -4.0])
    ids = torch.tensor([[[5, 6, 9], [7, 9, 9], [8, 8, 8], [9, 9, 9]]])
    sums = torch.tensor([[[-1.0, -3.0, 9], [-1.5, 9, 9], [-2.0, -3.0, -4.5], [9, 9, 9]]])
    finished = scheduler.FinishedSentences(
        0, [0], torch.tensor([figures]).double(), ids, sums, torch.tensor([3])
    )
    ((number, found),) = scheduler.read_hypotheses(finished, scheduler.SourceQueue([[4]], [9]))
    assert number == 0
    assert [h.ids for h in found] == [[7], [8, 8, 8], [5, 6]]
    assert [h.log_prob for h in found] == [-2.0, -5.0, -4.0]
    assert [h.log_probs for h in found] == [[-1.5, -0.5], [-2, -1, -1.5, -0.5], [-1, -2, -1]]


@pytest.mark.slow
def test_slots_are_used_again_and_made_anew_only_where_they_are_too_small(
    make: Make, sources: Sources
) -> None:
    ours, options = engine(make()), SearchOptions(beam=2, max_extra=9)
    ours.search(sources(10), options)
    first = ours._runners[-1]
    ours.search(sources(4), options)
    assert ours._runners == [first]
    ours.search([[5] * 100], options)
    assert first not in ours._runners
    assert len(ours._runners) == 1


@pytest.mark.slow
def test_one_sentence_has_other_slots_than_many_and_both_are_kept(
    make: Make, sources: Sources
) -> None:
    ours, options = engine(make(), None), SearchOptions(beam=2, max_extra=9)
    for _ in range(2):
        ours.search(sources(20), options)
        ours.search(sources(1), options)
    assert [one.state.count for one in ours._runners] == [32, 8]
    for beam in (3, 4, 5, 6):
        ours.search(sources(1), SearchOptions(beam=beam, max_extra=9))
    assert [one.state.beams for one in ours._runners] == [3, 4, 5, 6]


def test_a_model_that_computes_no_numbers_is_refused(make: Make, sources: Sources) -> None:
    model = make()
    with torch.no_grad():
        model.get_parameter("decoder.0.around_source.norm.weight")[3] = torch.nan
    for beam in (1, 3):
        with pytest.raises(ModelError, match="not numbers"):
            engine(model).search(sources(3), SearchOptions(beam=beam))


def test_it_says_which_searches_it_does_not_serve(make: Make) -> None:
    ours = engine(make())
    assert ours.supports(SearchOptions(beam=32))
    assert not ours.supports(SearchOptions(beam=33))
    assert not ours.supports(SearchOptions(beam=4, groups=2))
    assert ours.supports(SearchOptions(min_length=1, no_repeat_ngram=3, repetition_penalty=1.2))


def test_what_it_cannot_compute_is_named_by_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    base = ModelConfig()
    assert why_no_gpu_engine(base, "cpu") == "no GPU with bf16, or no Triton"
    monkeypatch.setattr("dragoman.inference.gpu.engine.supported", lambda device: True)
    assert why_no_gpu_engine(base) == ""
    assert why_no_gpu_engine(replace(base, norm="pre", activation="gelu")) == ""
    assert why_no_gpu_engine(replace(base, positions="rotary")) == "model.positions = rotary"
    assert why_no_gpu_engine(replace(base, architecture="gnmt")) == "model.architecture = gnmt"
    assert why_no_gpu_engine(replace(base, d_k=512, d_v=512)) == "model.d_k = 512"
