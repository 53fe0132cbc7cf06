"""The report of `dragoman bench translate`, from figures made by hand."""

from __future__ import annotations

import pytest

from dragoman.bench.translation.report import Latency, Loading, Result, Speed, TranslationReport


def result(name: str, precision: str, seconds: list[float], bleu: float | None) -> Result:
    """Ten sentences that became 100 tokens, and one that was translated alone."""
    return Result(
        name=name,
        precision=precision,
        size=2**20,
        loading=Loading(imports_seconds=[1.0], load_seconds=[0.5], memory=2**28),
        speeds=[
            Speed(
                beam=1,
                settings={},
                sentences=10,
                target_tokens=100,
                seconds=seconds,
                cpu_seconds=seconds,
                memory=2**29,
                bleu=bleu,
            )
        ],
        latencies=[Latency(beam=1, settings={}, seconds=[[each] for each in seconds])],
    )


def report(results: list[Result]) -> TranslationReport:
    return TranslationReport(
        model="m",
        parameters=10**6,
        source="text.en",
        sentences=10,
        source_tokens=90,
        left_out=0,
        processor="a processor",
        instruction_set="AVX2",
        threads=2,
        rounds=3,
        load_average=0.1,
        others=0.02,
        versions={"torch": "2"},
        results=results,
    )


@pytest.fixture
def found() -> TranslationReport:
    ours = result("dragoman int8", "int8", [1.0, 2.0, 3.0], bleu=20.0)
    exact = result("dragoman float32", "float32", [3.0, 6.0, 9.0], bleu=20.125)
    theirs = result("CTranslate2 int8", "int8", [2.0, 3.0, 4.0], bleu=19.5)
    failed = result("Hugging Face float32", "float32", [], bleu=None)
    failed.failed = "out of memory"
    return report([ours, exact, theirs, failed])


def test_everything_is_told_in_plain_lines(found: TranslationReport) -> None:
    lines = list(found.lines())
    assert "machine: a processor, 2 threads, instructions for AVX2" in lines
    assert "Hugging Face float32 did not run: out of memory" in lines
    greedy = lines.index(next(line for line in lines if line.startswith("greedy  ")))
    assert lines[greedy].endswith("BLEU  dragoman int8 is")
    assert lines[greedy + 1].split() == [
        "dragoman",
        "int8",
        "50",
        "5.00",
        "100.0%",
        "20.000",
        "20.00",
    ]
    assert lines[greedy + 3].endswith("1.50 (1.33 to 2.00) times as fast")
    alone = lines.index(next(line for line in lines if line.startswith("greedy, one by one")))
    assert lines[alone + 1].split() == ["dragoman", "int8", "2000.0", "3000.0"]
    assert lines[alone + 3].endswith("0.67 (0.50 to 0.75) times as long")
    assert lines[-1] == "dragoman int8: BLEU -0.12 against float32, greedy"


def test_the_json_has_the_rounds_and_the_ratios(found: TranslationReport) -> None:
    table = found.to_dict()
    assert table["compared_with"] == "dragoman int8"
    ours, exact, theirs, failed = table["results"]
    assert "against" not in ours
    assert exact["against"]["times_as_fast"]["greedy"]["value"] == 3.0
    assert theirs["against"]["times_as_fast"]["greedy"] == {"value": 1.5, "least": 4 / 3, "most": 2}
    assert theirs["speeds"][0]["seconds"] == [2.0, 3.0, 4.0]
    assert failed == {"name": failed["name"], "precision": "float32", "failed": "out of memory"}
    assert table["rounding"] == [{"name": "dragoman int8", "beam": 1, "difference": -0.125}]


def test_without_references_there_is_no_bleu(found: TranslationReport) -> None:
    for one in found.results:
        for speed in one.speeds:
            speed.bleu = None
    assert not any("BLEU" in line for line in found.lines())


def test_where_int8_does_not_run_float32_is_compared(found: TranslationReport) -> None:
    found.results[0].failed = "no engine"
    assert found.to_dict()["compared_with"] == "dragoman float32"
    assert any(line.endswith("dragoman float32 is") for line in found.lines())
    found.results[1].failed = "nothing"
    assert list(found.lines())[-1].endswith("did not run: out of memory")


def test_shortlists_are_compared_like_with_like_and_with_nothing() -> None:
    results = [
        result("dragoman int8", "int8", [2.0], bleu=20.0),
        result("dragoman int8, shortlist", "int8", [1.0], bleu=19.0),
        result("dragoman float32", "float32", [8.0], bleu=20.5),
        result("CTranslate2 int8", "int8", [4.0], bleu=20.0),
        result("CTranslate2 int8, shortlist", "int8", [3.0], bleu=20.0),
    ]
    lines = list(report(results).lines())
    ours = "dragoman int8, shortlist, greedy"
    assert f"{ours}: 4.00 (4.00 to 4.00) times as fast as CTranslate2 int8" in lines
    assert f"{ours}: 3.00 (3.00 to 3.00) times as fast as CTranslate2 int8, shortlist" in lines
    assert "dragoman int8, shortlist: BLEU -1.50 against float32, greedy" in lines
    without = [one for one in results if one.name != "dragoman int8, shortlist"]
    assert not [line for line in report(without).lines() if line.startswith(ours)]
