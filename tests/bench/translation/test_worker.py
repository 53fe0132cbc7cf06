"""Systems in processes of their own translate as ours does in this one."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dragoman.bench.translation.systems import (
    OTHER_SYSTEMS,
    write_lexical_shortlist,
    write_vocabulary_map,
)
from dragoman.bench.translation.worker import handle_requests, peak_memory, reset_peak_memory
from dragoman.bench.translation.worker_client import Worker, WorkerError, worker_environment
from dragoman.inference import load
from dragoman.inference.cpu import why_no_cpu_engine
from dragoman.interop.export import PACKAGES, export
from dragoman.interop.sentencepiece_model import all_pieces
from dragoman.model_directory import LoadedModel, load_model

from ...conftest import reversals
from ...shortlist_helpers import give_shortlist

TEXTS = [source for source, _ in reversals(5, seed=8)]
SEARCH = {"length_penalty": 0.6, "max_extra": 8}


@pytest.fixture(scope="module")
def loaded(trained: Path) -> LoadedModel:
    return load_model(trained)


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker(threads=1) as one:
        yield one


def start(worker: Worker, name: str, path: Path, **changes: Any) -> dict[str, Any]:
    options: dict[str, Any] = {
        "path": str(path),
        "model": str(path),
        "precision": "float32",
        "shortlist": False,
        "search": SEARCH,
        "settings": {},
        "threads": 1,
        "text": TEXTS[0],
    }
    return worker.load(name, **(options | changes))


def ours(loaded: LoadedModel, beam: int = 1, **options: Any) -> list[str]:
    translator = load(loaded.path, device="cpu", precision="float32")
    found = translator.translate(TEXTS, beam=beam, raw=True, **options)
    return [one.text for one in found]


@pytest.mark.slow
def test_ours_translates_and_is_measured(worker: Worker, loaded: LoadedModel) -> None:
    found = start(worker, "dragoman", loaded.path)
    assert found["imports_seconds"] > 0.05, "PyTorch takes longer than that"
    assert found["load_seconds"] > 0
    assert found["memory"] > 2**26
    worker.apply_settings({})
    for beam in (1, 4):
        answer = worker.translate(TEXTS, beam)
        assert answer["texts"] == ours(loaded, beam)
        assert 0 < answer["cpu_seconds"] < 20 * answer["seconds"] + 1
        assert answer["memory"] > 2**26
    alone = worker.translate_one_by_one(TEXTS, 1)
    assert len(alone["seconds"]) == len(TEXTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["ctranslate2-float32", pytest.param("huggingface", marks=pytest.mark.thorough)]
)
def test_others_translate_as_ours(
    name: str, worker: Worker, loaded: LoadedModel, tmp_path: Path
) -> None:
    system = OTHER_SYSTEMS[name]
    assert system.export is not None
    for package in PACKAGES[system.export]:
        pytest.importorskip(package, reason=f"{package} is not installed: dragoman[export]")
    export(loaded, tmp_path / "there", system.export)
    path = tmp_path / "there"
    start(worker, system.worker, path, model=str(loaded.path), settings=system.default_settings(1))
    for batch in (32, 2):
        worker.apply_settings(system.default_settings(1) | {"batch": batch})
        theirs = worker.translate(TEXTS, 1)["texts"]
        # A model that has learned little does not end; ours stops it sooner in a short sentence.
        for found, expected in zip(theirs, ours(loaded, max_extra=8), strict=True):
            assert found.startswith(expected), "in the order of the texts"
    worker.apply_settings(system.single_settings(1))
    assert len(worker.translate_one_by_one(TEXTS[:2], 4)["seconds"]) == 2


def test_ctranslate2_is_spared_pytorch(worker: Worker, loaded: LoadedModel, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: dragoman[export]")
    system = OTHER_SYSTEMS["ctranslate2"]
    export(loaded, tmp_path / "there", "ctranslate2", quantization="int8")
    path = tmp_path / "there"
    found = start(
        worker,
        "ctranslate2",
        path,
        model=str(loaded.path),
        settings=system.default_settings(1),
        precision="int8",
    )
    assert found["memory"] < 150 * 2**20, "PyTorch alone takes more"


@pytest.mark.slow
def test_marian_translates_as_ours(worker: Worker, loaded: LoadedModel, tmp_path: Path) -> None:
    if find_spec("pymarian") is None:
        pytest.skip("pymarian is not installed: dragoman[marian]")
    path = tmp_path / "a folder"  # options are separated by spaces
    export(loaded, path, "marian")
    alone = OTHER_SYSTEMS["marian"].single_settings(1)
    start(worker, "marian", path, model=str(loaded.path), settings=alone)
    theirs = worker.translate(TEXTS, 1)["texts"]
    for found, expected in zip(theirs, ours(loaded, max_extra=8), strict=True):
        assert found.startswith(expected) or expected.startswith(found)
        assert found
    worker.apply_settings(alone | {"cpu_threads": 2})
    assert worker.translate(TEXTS, 1)["texts"] == theirs, "in the order of the texts"
    assert len(worker.translate_one_by_one(TEXTS[:2], 4)["seconds"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dragoman", "ctranslate2", "marian"])
def test_a_shortlist_is_kept_to(
    name: str, worker: Worker, loaded: LoadedModel, tmp_path: Path
) -> None:
    """Three pieces, and those of the sources: whichever system it is, it finds no others."""
    path = Path(shutil.copytree(loaded.path, tmp_path / "model"))
    few = give_shortlist(path, 3)
    settings: dict[str, Any] = {}
    if name == "ctranslate2":
        pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: dragoman[export]")
        export(loaded, tmp_path / "there", "ctranslate2", quantization="int8")
        path, settings = tmp_path / "there", OTHER_SYSTEMS["ctranslate2"].default_settings(1)
        write_vocabulary_map(path, few)
    elif name == "marian":
        if find_spec("pymarian") is None:
            pytest.skip("pymarian is not installed: dragoman[marian]")
        export(loaded, tmp_path / "there", "marian")
        path, settings = tmp_path / "there", OTHER_SYSTEMS["marian"].single_settings(1)
        write_lexical_shortlist(path, few, all_pieces(loaded.tokenizer))
    elif why_no_cpu_engine(loaded.config.model):
        pytest.skip("the kernel of the int8 engine is not compiled")
    found = {}
    for given in (False, True):
        options = {"settings": settings, "precision": "int8", "shortlist": given}
        start(worker, name, path, model=str(loaded.path), **options)
        found[given] = worker.translate(TEXTS, 1)["texts"]
    assert found[True] != found[False]
    ids = [*few.common.tolist(), *(id_ for text in TEXTS for id_ in loaded.tokenizer.encode(text))]
    letters = {" ", *"".join(loaded.tokenizer.pieces(ids))}
    assert {*"".join(found[True])} <= letters


def test_the_peak_is_forgotten_between_phases() -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not forget a process's peak")
    much = bytearray(2**28)
    del much
    most = peak_memory()
    reset_peak_memory()
    assert peak_memory() < most - 2**27


# --- what goes wrong ---


def test_what_a_system_cannot_do_is_told(worker: Worker, tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"no-model: no such model; give a directory"):
        start(worker, "dragoman", tmp_path / "no-model")


def test_a_worker_that_dies_leaves_its_last_words(worker: Worker) -> None:
    assert worker._process.stdin is not None
    worker._process.stdin.write("this is no JSON\n")
    with pytest.raises(
        WorkerError, match=r"its process ended with status 1: json.*Expecting value"
    ):
        worker.apply_settings({})


def test_a_worker_that_is_killed_is_told(worker: Worker) -> None:
    worker._process.kill()
    with pytest.raises(WorkerError, match="its process was ended by signal 9"):
        worker.apply_settings({})


def test_the_last_answer_is_what_went_wrong() -> None:
    lines = [json.dumps({"do": "fly", "with": {}}) + "\n"] * 2
    assert list(handle_requests(io.StringIO("".join(lines)))) == [{"error": "'fly'"}]


def test_others_are_held_to_the_instruction_set_that_we_are_held_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MKL_ENABLE_INSTRUCTIONS", raising=False)
    monkeypatch.delenv("DRAGOMAN_ISA", raising=False)
    assert "MKL_ENABLE_INSTRUCTIONS" not in worker_environment(1)
    monkeypatch.setenv("DRAGOMAN_ISA", "avx2")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    found = worker_environment(1)
    assert found["MKL_ENABLE_INSTRUCTIONS"] == found["CT2_FORCE_CPU_ISA"] == "AVX2"
    assert found["ONEDNN_MAX_CPU_ISA"] == "SSE41", "what a user has set stays"
