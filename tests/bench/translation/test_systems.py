"""Figures of translation, worked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dragoman.bench import sample_evenly
from dragoman.bench.translation import benchmark
from dragoman.bench.translation.benchmark import CpuUsage
from dragoman.bench.translation.report import Latency, Ratio, Speed, compute_ratio, percentile
from dragoman.bench.translation.systems import (
    DRAGOMAN_SYSTEMS,
    OTHER_SYSTEMS,
    describe_settings,
    parse_systems,
    size_on_disk,
    with_shortlists,
    write_lexical_shortlist,
)
from dragoman.errors import ConfigError
from dragoman.inference.cpu.shortlist import Shortlist
from dragoman.text.special_tokens import EOS


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert (percentile(values, 50), percentile(values, 95)) == (50.0, 95.0)
    assert (percentile([3.0, 1.0, 2.0], 50), percentile([3.0, 1.0, 2.0], 95)) == (2.0, 3.0)
    assert percentile([7.0], 50) == 7.0


def test_a_ratio_is_of_medians_and_its_spread_of_rounds() -> None:
    # The medians are of different rounds: 4 / 2, while the rounds give 1, 4 and 2.5.
    assert compute_ratio([4.0, 8.0, 2.5], [4.0, 2.0, 1.0]) == Ratio(2.0, 1.0, 4.0)


def test_speed_is_of_the_median_round() -> None:
    speed = Speed(beam=1, settings={}, sentences=10, target_tokens=200)
    speed.seconds, speed.cpu_seconds = [2.0, 1.0, 5.0], [3.0, 4.0, 2.0]
    assert speed.tokens_per_second == 100
    assert speed.sentences_per_second == 5
    assert speed.cpu_seconds_per_token == pytest.approx(0.015)
    assert speed.spread == 2.0


def test_latency_is_of_the_sentences_of_all_rounds() -> None:
    latency = Latency(beam=1, settings={}, seconds=[[1.0, 2.0], [3.0, 4.0]])
    assert (latency.p50, latency.p95) == (2.0, 4.0)


def test_a_sample_is_spread_over_all() -> None:
    assert sample_evenly(range(10), 2) == [2, 7]
    assert sample_evenly(range(3), 9) == [0, 1, 2]


def test_what_others_take_is_what_is_busy_and_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([(10.0, 100.0), (40.0, 140.0), (50.0, 200.0), (60.0, 220.0)])
    monkeypatch.setattr(benchmark, "_read_cpu_seconds", lambda: next(counts))
    monkeypatch.setattr(benchmark.time, "process_time", lambda: 5.0)
    usage = CpuUsage()
    assert usage.others is None
    with usage:
        usage.ours += 15.0
    assert usage.others == (30 - 15) / 40
    with usage:
        usage.ours += 10.0
    assert usage.others == (40 - 25) / 60, "what happens between two blocks does not count"


def test_a_system_that_does_not_count_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "_read_cpu_seconds", lambda: None)
    usage = CpuUsage()
    with usage:
        pass
    assert usage.others is None


# --- systems ---


def test_systems_are_chosen_by_name_and_once() -> None:
    assert parse_systems("") == []
    names = [one.name for one in parse_systems("huggingface, ctranslate2,huggingface")]
    assert names == ["Hugging Face float32", "CTranslate2 int8"]
    with pytest.raises(ConfigError, match=r"--against fairseq: there is no such .* ctranslate2, "):
        parse_systems("ctranslate2,fairseq")


def test_ctranslate2_may_divide_the_cores_and_batch_as_it_likes() -> None:
    threads, batches = OTHER_SYSTEMS["ctranslate2"].candidates(2, 256)
    assert [(one["inter_threads"], one["intra_threads"]) for one in threads] == [(1, 2), (2, 1)]
    assert [(one["batch"], one["batch_type"]) for one in batches] == [
        *((size, "examples") for size in (16, 32, 64, 128)),
        *((size, "tokens") for size in (512, 1024, 2048, 4096)),
    ]
    threads, _ = OTHER_SYSTEMS["ctranslate2"].candidates(2, 30)
    assert [one["batch"] for one in threads] == [30, 15], "each of two has a batch"
    alone = OTHER_SYSTEMS["ctranslate2"].single_settings(2)
    assert (alone["inter_threads"], alone["intra_threads"]) == (1, 2)


def test_marian_has_a_batch_for_each_thread() -> None:
    marian = OTHER_SYSTEMS["marian"]
    [group] = marian.candidates(2, 128)
    assert [one["batch"] for one in group] == [8, 16, 32, 64]
    [group] = marian.candidates(2, 20)
    assert [one["batch"] for one in group] == [8, 16], "two batches of ten"
    assert marian.default_settings(3)["cpu_threads"] == 3
    assert marian.single_settings(3) == {"cpu_threads": 1, "batch": 1, "batch_type": "examples"}


def test_a_shortlist_is_written_as_a_lexicon(tmp_path: Path) -> None:
    pieces = ["<pad>", "<s>", "</s>", "<unk>", "a", "b", "c", "d"]
    common, none = np.array([EOS, 5], np.int32), np.zeros(0, np.int32)
    starts = np.array([0, 0, 0, 0, 0, 2, 2, 3, 3], np.int32)
    lists = Shortlist(7, common, none, starts, np.array([6, 7, 4], np.int32))
    write_lexical_shortlist(tmp_path, lists, pieces)
    lines = (tmp_path / "shortlist.txt").read_text(encoding="utf-8").splitlines()
    assert lines == [
        "</s> </s> 1",
        "b </s> 1",
        "c a 1",
        "d a 1",
        "a a 1",
        "b b 1",
        "a c 1",
        "c c 1",
    ], "what all may use, then each list and the piece itself, if it can be an output"
    assert json.loads((tmp_path / "shortlist.json").read_text()) == [4, 3, 0]


@pytest.mark.parametrize(("sentences", "sizes"), [(16, [16]), (17, [16, 32]), (64, [16, 32, 64])])
def test_batches_that_hold_all_sentences_are_tried_once(sentences: int, sizes: list[int]) -> None:
    [group] = OTHER_SYSTEMS["huggingface"].candidates(2, sentences)
    assert [one["batch"] for one in group] == sizes


def test_settings_are_described() -> None:
    settings = {"inter_threads": 2, "intra_threads": 1, "batch": 2048, "batch_type": "tokens"}
    assert (
        describe_settings(settings) == "inter_threads 2, intra_threads 1, batches of 2,048 tokens"
    )
    assert describe_settings({"cpu_threads": 2, "batch": 8}) == (
        "cpu-threads 2, batches of 8 sentences"
    )
    assert describe_settings({"batch": 16}) == "batches of 16 sentences"
    assert describe_settings({}) == ""


def test_weights_of_the_other_precision_do_not_count(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = tmp_path_factory.mktemp("model")
    (place / "weights.safetensors").write_bytes(b"w" * 1000)
    (place / "tokenizer.model").write_bytes(b"t" * 10)
    rounded, exact = DRAGOMAN_SYSTEMS
    assert size_on_disk(place, rounded) == size_on_disk(place, exact) == 1010
    (place / "int8.safetensors").write_bytes(b"i" * 250)
    assert (size_on_disk(place, rounded), size_on_disk(place, exact)) == (260, 1010)
    (place / "shortlist.safetensors").write_bytes(b"s" * 5)
    _, listed = with_shortlists([rounded])
    assert (size_on_disk(place, rounded), size_on_disk(place, listed)) == (260, 265)


def test_what_is_in_int8_runs_with_a_shortlist_too() -> None:
    others = ("ctranslate2", "huggingface", "marian")
    systems = [*DRAGOMAN_SYSTEMS, *(OTHER_SYSTEMS[name] for name in others)]
    assert [(one.name, one.shortlist) for one in with_shortlists(systems)] == [
        ("dragoman int8", False),
        ("dragoman int8, shortlist", True),
        ("dragoman float32", False),
        ("CTranslate2 int8", False),
        ("CTranslate2 int8, shortlist", True),
        ("Hugging Face float32", False),
        ("Marian int8", False),
        ("Marian int8, shortlist", True),
    ]
