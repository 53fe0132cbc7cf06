"""`dragoman bench translate`, whole: sentences in, a report out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dragoman.bench.translation import benchmark
from dragoman.bench.translation.conversion import convert_models
from dragoman.bench.translation.systems import DRAGOMAN_SYSTEMS, OTHER_SYSTEMS, with_shortlists
from dragoman.cli.bench import bench_translate
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.inference.cpu import why_no_cpu_engine
from dragoman.model_directory import load_model

from ...conftest import reversals, write_pairs
from ...shortlist_helpers import give_shortlist


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    pairs = [*reversals(6, seed=9), ("", ""), ("the " * 100, "eht")]
    return write_pairs(tmp_path, pairs, "test")


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "LOAD_REPEATS", 1)


def bench(model: Path, source: Path, **options: Any) -> None:
    given = {"rounds": 2, "threads": 1, "alone": 2, "against": "", "beam": [1]}
    bench_translate(model, source, **(given | options))


@pytest.mark.slow
def test_ours_and_ctranslate2_on_the_same_sentences(
    trained: Path, files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: dragoman[export]")
    bench(trained, files[0], reference=files[1], against="ctranslate2", as_json=True)
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["sentences"], found["left_out"], found["threads"]) == (6, 2, 1)
    results = {one["name"]: one for one in found["results"]}
    assert list(results) == ["dragoman int8", "dragoman float32", "CTranslate2 int8"]
    for name in ("dragoman float32", "CTranslate2 int8"):
        one = results[name]
        assert one["failed"] is None
        [speed], [latency] = one["speeds"], one["latencies"]
        assert (speed["sentences"], len(speed["seconds"]), speed["beam"]) == (6, 2, 1)
        assert speed["target_tokens"] > 6
        assert speed["bleu"] >= 0
        assert [len(each) for each in latency["seconds"]] == [2, 2]
        assert len(one["loading"]["load_seconds"]) == 1
        assert one["size"] > 10_000
    assert "2 rounds of 6 sentences, greedy, in turn" in told.err
    assert "CTranslate2 int8: converted; " in told.err


@pytest.mark.slow
def test_without_a_shortlist_there_is_none_to_time(trained: Path, files: list[Path]) -> None:
    with pytest.raises(ModelError, match="has no shortlist; make one with: dragoman shortlist"):
        bench(trained, files[0], shortlist=True)


@pytest.mark.slow
def test_a_model_is_converted_once(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: dragoman[export]")
    loaded = load_model(trained)
    if why_no_cpu_engine(loaded.config.model):
        pytest.skip("the kernel of the int8 engine is not compiled")
    path = Path(shutil.copytree(loaded.path, tmp_path / "model"))
    give_shortlist(path, 1)
    loaded = load_model(path)
    systems = with_shortlists([*DRAGOMAN_SYSTEMS, OTHER_SYSTEMS["ctranslate2"]])
    for word in ("converted", "converted before"):
        told: list[str] = []
        directories = [path for _, path in convert_models(loaded, systems, tmp_path, told.append)]
        ours = ["dragoman-int8", "dragoman-int8", "model"]
        theirs = ["ctranslate2-int8", "ctranslate2-int8-shortlist"]
        assert [path.name for path in directories] == [*ours, *theirs]
        assert f"CTranslate2 int8: {word}" in "\n".join(told)
    assert (tmp_path / "dragoman-int8" / "int8.safetensors").exists()
    assert [(tmp_path / name / "vmap.txt").exists() for name in theirs] == [False, True]
    assert not (loaded.path / "int8.safetensors").exists(), "nothing is left in the model"
    (tmp_path / "ctranslate2-int8.json").write_text('"another"', encoding="utf-8")
    with pytest.raises(DataError, match="made from another model; choose another --out"):
        list(convert_models(loaded, systems, tmp_path, told.append))


@pytest.mark.slow
def test_a_system_that_fails_costs_only_its_own_figures(
    trained: Path,
    files: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    load = benchmark.Worker.load

    def broken(self: benchmark.Worker, name: str, **options: Any) -> dict[str, Any]:
        if options["precision"] == "float32":
            raise benchmark.WorkerError("out of memory")
        return load(self, name, **options)

    monkeypatch.setattr(benchmark.Worker, "load", broken)
    bench(trained, files[0], alone=0, sentences=3)
    text = capsys.readouterr().out
    assert ", 3 sentences, " in text
    assert "one by one" not in text
    assert "dragoman float32 did not run: out of memory" in text
    assert "dragoman int8" in text.partition("sentences/s")[2]


def test_the_best_settings_are_taken(monkeypatch: pytest.MonkeyPatch, trained: Path) -> None:
    class Fake:
        """Twice as fast with more threads inside, and with batches of 128."""

        def __init__(self, **options: Any) -> None: ...
        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *error: object) -> None: ...
        def load(self, name: str, **options: Any) -> dict[str, Any]:
            return {}

        def apply_settings(self, settings: dict[str, Any]) -> None:
            self.settings = settings

        def translate(self, texts: list[str], beam: int) -> dict[str, Any]:
            s = self.settings
            best = s["intra_threads"] == 2, (s["batch"], s["batch_type"]) == (128, "examples")
            return {"seconds": 4 / 2 ** sum(best)}

    monkeypatch.setattr(benchmark, "Worker", Fake)
    task = benchmark.BenchmarkTask(
        model=trained, sentences=["a"] * 300, search={}, count_tokens=len, threads=2, beams=(1,)
    )
    tuned = benchmark.SystemBenchmark(
        task, OTHER_SYSTEMS["ctranslate2"], trained, benchmark.ExitStack()
    )
    said: list[str] = []
    tuned.tune(said.append)
    best = "inter_threads 1, intra_threads 2, batches of 128 sentences"
    assert said == [f"CTranslate2 int8, greedy: {best}, the best on 256 sentences"]


def test_rounds_take_turns(monkeypatch: pytest.MonkeyPatch, trained: Path) -> None:
    turns: list[str] = []

    class Fake:
        def __init__(self, **options: Any) -> None: ...
        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *error: object) -> None: ...
        def load(self, name: str, *, precision: str, **options: Any) -> dict[str, Any]:
            self.name = precision
            return {"imports_seconds": 1.0, "load_seconds": 1.0, "memory": 1}

        def apply_settings(self, settings: dict[str, Any]) -> None: ...
        def translate(self, texts: list[str], beam: int) -> dict[str, Any]:
            if len(texts) > benchmark.WARM_UP_SENTENCES:
                turns.append(self.name)
            return {"seconds": 1.0, "cpu_seconds": 1.0, "texts": texts, "memory": 1}

    monkeypatch.setattr(benchmark, "Worker", Fake)
    task = benchmark.BenchmarkTask(
        model=trained,
        sentences=["a"] * 20,
        search={},
        count_tokens=len,
        threads=1,
        beams=(1,),
        single_sentences=0,
    )
    benchmark.measure(task, [(one, trained) for one in DRAGOMAN_SYSTEMS])
    assert turns == ["int8", "float32"] * 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"against": "fairseq"}, ConfigError, "--against fairseq: there is no such system; choose"),
        ({"threads": 4096}, ConfigError, r"--threads 4096: this machine has \d+ cores?"),
    ],
)
def test_a_mistake_is_told_before_anything_is_loaded(
    options: dict[str, Any], error: type[Exception], message: str, files: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        bench(tmp_path / "nothing", files[0], **options)


def test_texts_that_cannot_be_timed_are_refused(
    trained: Path, files: list[Path], tmp_path: Path
) -> None:
    short = tmp_path / "short.de"
    short.write_text("x\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"test.en has 8 lines and .*short.de has 1; they must"):
        bench(trained, files[0], reference=short)
    short.write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"short.de: no line has 1 to 63 pieces; there is nothing"):
        bench(trained, short)


def test_a_missing_package_is_named(
    trained: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.interop import export

    monkeypatch.setattr(export, "has_package", lambda name: False)
    with pytest.raises(ConfigError, match=r"not installed; .* pip install 'dragoman\[export\]'"):
        bench(trained, files[0], against="ctranslate2")
