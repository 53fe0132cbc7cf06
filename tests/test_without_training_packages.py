"""Where only what using a model takes is installed: everything that uses one, and what is said."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from dragoman.cli.main import app
from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.model_directory import open_model, save_model, write_int8_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.system.packages import OPTIONAL_PACKAGES

from .conftest import reversals, write_pairs
from .kernel import needs_kernel
from .serve.service_fixtures import parser as make_parser
from .serve.service_fixtures import translator as make_translator

pytestmark = [needs_kernel, pytest.mark.slow]

EXTRAS = {*OPTIONAL_PACKAGES, "triton"}
MISSING = """
import sys
for name in {}:
    sys.modules[name] = None  # so that importing it fails, and find_spec finds nothing
"""
COMMANDS = """
import io, json, sys
from dragoman.cli import main

said = []
for words, text in json.loads(sys.argv[1]):
    sys.argv = ["dragoman", *words]
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    sys.stdout = io.TextIOWrapper(io.BytesIO())
    sys.stderr = io.TextIOWrapper(io.BytesIO())
    try:
        main()
    except SystemExit as left:
        status = left.code
    texts = []
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    said.append([status, *texts])
sys.__stdout__.write(json.dumps(said))
"""


class Done(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


def run(code: str, *arguments: str, there: str = "") -> str:
    """Run a program where no extra is installed, nor in what it starts; return what it prints.

    One package can be `there`.
    """
    with tempfile.TemporaryDirectory() as place:
        # Python imports this before anything else.
        (Path(place) / "sitecustomize.py").write_text(MISSING.format(sorted(EXTRAS - {there})))
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([place, *map(str, sys.path)])},
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands(*asked: tuple[list[object], str], there: str = "") -> list[Done]:
    """Run commands one after another in one process, each with its standard input."""
    several = [[list(map(str, words)), text] for words, text in asked]
    return [Done(*one) for one in json.loads(run(COMMANDS, json.dumps(several), there=there))]


@pytest.fixture(scope="module")
def model(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator of int8 weights alone; do not write to it."""
    place = tmp_path_factory.mktemp("small") / "model"
    write_int8_model(open_model(trained), place)
    return place


TEXT = "the old dog sees\n\nred cat\n"


def test_commands_that_use_a_model_do(model: Path, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>the <b>old</b> dog</p>", encoding="utf-8")
    (tmp_path / "read.md").write_text("# the old dog\n\n*red* cat\n", encoding="utf-8")
    shutil.copy(tmp_path / "read.md", tmp_path / "read.txt")
    terms = tmp_path / "terms.tsv"
    terms.write_text("dog\tDackel\n", encoding="utf-8")
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    source.write_text("red cat\n", encoding="utf-8")
    target.write_text("tac der\n", encoding="utf-8")
    files = [tmp_path / name for name in ("page.html", "read.md", "read.txt")]
    found = commands(
        (["translate", model], TEXT),
        (["translate", trained], TEXT),
        (["translate", model, "--n-best", "3", "--json", "--align"], TEXT),
        (["translate", model, "--prefix", "tac"], "red cat\n"),
        (["translate", model, "--must", "tac", "--must-not", "der"], "red cat\n"),
        (["translate", model, "--glossary", terms], "the dog\n"),
        (["translate", model, *files, "--out", tmp_path / "out"], ""),
        (["score", model, "--source", source, "--target", target], ""),
        (["alternatives", model, "red cat"], ""),
        (["info", model], ""),
        (["info", trained / "model"], ""),
        (["quantize", trained, "--out", tmp_path / "again"], ""),
        (["doctor", source, target], ""),
        (["--help"], ""),
    )
    assert [one for one in found[:-2] if one.status != 0] == []
    plain, whole, several, prefix, must, glossary, *_ = (one.out for one in found)
    assert plain == whole
    assert plain.count("\n") == 3
    assert len(json.loads(several.splitlines()[0])["alternatives"]) == 2
    assert prefix.startswith("tac")
    assert "tac" in must.split()
    assert "Dackel" in glossary
    assert (tmp_path / "out/page.html").read_text(encoding="utf-8").startswith("<p>")
    assert (tmp_path / "out/read.md").read_text(encoding="utf-8").startswith("# ")
    assert ", in int8 only\n" in found[9].out
    assert (tmp_path / "again/int8.safetensors").exists()


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser of int8 weights alone; do not write to it."""
    place = tmp_path_factory.mktemp("parser")
    write_int8_model(open_model(make_parser(place / "whole")), place / "model")
    return place / "model"


@pytest.fixture
def pairs(tmp_path: Path) -> list[Path]:
    """Write two aligned files to prepare and train on, and return their paths."""
    return write_pairs(tmp_path, reversals(120, seed=9))


def test_runs_corpora_and_presets_are_described(
    trained: Path, prepared: Prepared, tmp_path: Path
) -> None:
    found = commands(
        (["info"], ""),
        (["info", trained], ""),
        (["info", prepared.path], ""),
        (["presets"], ""),
        (["presets", "tiny"], ""),
        (["export", "base", "--to", "marian"], ""),
    )
    assert [one for one in found if one.status != 0] == []
    here, run_facts, corpus, presets, tiny, export = (one.out for one in found)
    assert "pytorch: " in here
    assert "checkpoints: step-00000020, step-00000040\n" in run_facts
    assert "last train: step 40, " in run_facts
    assert "kind: prepared corpus" in corpus
    assert re.search(r"^base +63\.05M +65M  The paper's base model", presets, re.MULTILINE)
    assert "[model]" in tiny
    assert export == "base can be exported to marian\n"


def test_a_model_is_evaluated_with_one_package_more(model: Path, pairs: list[Path]) -> None:
    options = ["--source", pairs[0], "--reference", pairs[1]]
    [done] = commands(
        (["evaluate", model, *options, "--beam", "1", "--json"], ""), there="sacrebleu"
    )
    found = json.loads(done.out)
    assert found["sentences"] == 120
    assert {"bleu", "chrf", "ter"} <= found.keys()
    assert found["perplexity"]["pieces"] > 120


def test_a_parser_is_evaluated_with_nothing_more(parser: Path, tmp_path: Path) -> None:
    trees = tmp_path / "gold.trees"
    trees.write_text("(S (NP (PRP He)) (VP (VBZ sleeps)) (. .))\n" * 2, encoding="utf-8")
    asked = ["evaluate", parser, "--task", "parsing", "--reference", trees, "--json"]
    parsed, [done] = commands((["parse", parser], "He sleeps.\n")), commands((asked, ""))
    assert parsed[0].out.startswith("(")
    assert json.loads(done.out)["sentences"] == 2


def test_speed_is_measured_in_int8(model: Path, trained: Path, pairs: list[Path]) -> None:
    options = ["--source", pairs[0], "--sentences", "4", "--rounds", "1", "--alone", "1"]
    options += ["--beam", "1"]
    alone, whole = commands(
        (["bench", "translate", model, *options, "--json"], ""),
        (["bench", "translate", trained, *options], ""),
    )
    found = json.loads(alone.out)
    assert [one["name"] for one in found["results"]] == ["dragoman int8"]
    assert not found["results"][0].get("failed")
    assert whole.status == 0
    assert "dragoman: only int8 is measured, since float32 needs PyTorch; pip install" in whole.err


def test_a_shortlist_is_made_without_its_bleu(
    model: Path, pairs: list[Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(model, tmp_path / "copy")
    [done] = commands((["shortlist", copy, *pairs, "--common", "50"], ""))
    assert (copy / "shortlist.safetensors").exists()
    assert re.search(
        r"^greedy: \d of \d translations change, [\d.]+ times as fast$", done.out, re.M
    )
    assert "needs sacreBLEU; pip install 'dragoman[evaluate]'" in done.err


# --- what is refused ---

TORCH = "pip install 'dragoman[train]'"


def all_commands(program: typer.Typer = app) -> Iterator[str]:
    """Yield every command by its words."""
    for one in program.registered_commands:
        yield one.name or getattr(one.callback, "__name__", "")
    for group in program.registered_groups:
        assert group.typer_instance is not None
        yield from (f"{group.name} {name}" for name in all_commands(group.typer_instance))


def test_every_command_works_or_says_in_one_line_what_to_install(
    model: Path, trained: Path, parser: Path, pairs: list[Path], tmp_path: Path
) -> None:
    source, target = pairs
    out = tmp_path / "out"
    trees = tmp_path / "gold.trees"
    trees.write_text("(S (NP (PRP He)) (VP (VBZ sleeps)) (. .))\n", encoding="utf-8")
    aligned = ["--source", source, "--reference", target]
    vocabulary = ["--set", "tokenizer.vocabulary=330", "--set", "data.max_length=63"]
    calibrated = shutil.copytree(model, tmp_path / "calibrated")
    works: dict[str, list[object]] = {
        "prepare": [source, target, "--out", tmp_path / "data", *vocabulary],
        "filter": [source, target, "--out", tmp_path / "kept"],
        "translate": [model, "the dog"],
        "score": [model, "--source", source, "--target", target],
        "quantize": [trained, "--out", tmp_path / "int8"],
        "shortlist": [shutil.copytree(model, tmp_path / "short"), source, target],
        "alternatives": [model, "red cat"],
        "parse": [parser],
        "calibrate": [calibrated, *aligned, "--beam", "1"],
        "models": [],
        "presets": [],
        "info": [model],
        "tokenizer train": [source, target, "--out", tmp_path / "pieces", *vocabulary],
        "tokenizer encode": [model],
        "bench translate": [model, "--source", source, "--sentences", "2", "--rounds", "1"],
    }
    refused: dict[str, tuple[list[object], str]] = {
        "demo": ([], f"training needs PyTorch; {TORCH}"),
        "train": ([source, target], f"training needs PyTorch; {TORCH}"),
        "average": ([trained, "--out", out], f"training needs PyTorch; {TORCH}"),
        "export": (
            [trained, out],
            "transformers is not installed; install it with: pip install 'dragoman[export]'",
        ),
        "import": (
            [trained, out],
            "transformers is not installed; install it with: pip install 'dragoman[export]'",
        ),
        "selftrain": (
            [parser, "--trees", trees, "--text", source, "--out", out],
            f"training needs PyTorch; {TORCH}",
        ),
        "distill": ([model, source, target, "--out", out], f"training needs PyTorch; {TORCH}"),
        "inspect": (
            [model, "dog", "-o", tmp_path / "x.html"],
            f"dragoman inspect needs PyTorch; {TORCH}",
        ),
        "evaluate": (
            [model, *aligned],
            "dragoman evaluate needs sacreBLEU; pip install 'dragoman[evaluate]'",
        ),
        "plot": ([trained], f"dragoman plot needs Matplotlib; {TORCH}"),
        "bench train": ([], f"dragoman bench train needs PyTorch; {TORCH}"),
        "paper table1": ([], f"dragoman paper table1 needs PyTorch; {TORCH}"),
        "paper table2": ([], f"dragoman paper table2 needs PyTorch; {TORCH}"),
        "paper table3": ([], f"training needs PyTorch; {TORCH}"),
        "paper table4": (["--out", out], f"training needs PyTorch; {TORCH}"),
        "paper figures": (["--out", out], f"dragoman paper figures needs PyTorch; {TORCH}"),
        "paper report": ([], f"dragoman paper report needs PyTorch; {TORCH}"),
        # What these need is no package: ids, a model, an index.
        "tokenizer decode": ([model], "standard input, line 1: these are not ids"),
        "serve": ([out], f"{out}: no such model;"),
        "get": (["en-de", "--from", out], f"{out}: "),
        "remove": (["en-de"], "en-de: no such model"),
    }
    others: list[object] = ["doctor"]  # warns of so small a corpus
    assert {*works, *refused, *map(str, others)} == {*all_commands()}
    asked = [[*name.split(), *words] for name, words in works.items()]
    asked += [[*name.split(), *words] for name, (words, _) in refused.items()]
    asked += [["doctor", source, target]]
    done = dict(
        zip((*works, *refused, *others), commands(*((w, TEXT) for w in asked)), strict=True)
    )
    for name, one in done.items():
        assert "Traceback" not in one.err, name
    assert {name: done[name].err for name in works if done[name].status != 0} == {}
    for name, (_, message) in refused.items():
        assert done[name].status == 2, name
        assert done[name].err.splitlines()[-1].startswith(f"dragoman: {message}"), done[name].err
    assert not out.exists()


def test_options_that_need_more_say_so_in_one_line(
    model: Path, pairs: list[Path], tmp_path: Path
) -> None:
    packed = tmp_path / "a.en.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd")
    asked: list[tuple[list[object], str]] = [
        (["translate", model, "--device", "cuda"], f"device cuda needs PyTorch; {TORCH}"),
        (
            ["translate", model, "--precision", "float32"],
            f"{model}: float32 needs PyTorch; {TORCH}",
        ),
        (
            ["translate", model, "--diverse", "2"],
            "such a search (samples, diverse beams, more than 64 hypotheses) needs PyTorch; "
            + TORCH,
        ),
        (
            ["translate", model, pairs[0], "--engine", "ray", "--out", tmp_path / "out"],
            "--engine ray needs Ray; pip install 'dragoman[ray]'",
        ),
        (
            ["translate", model, packed],
            f"{packed}: reading .zst needs zstandard; pip install 'dragoman[zstd]'",
        ),
        (
            ["bench", "translate", model, "--source", pairs[0], "--reference", pairs[1]],
            "--reference needs sacreBLEU; pip install 'dragoman[evaluate]'",
        ),
    ]
    found = commands(*((words, "red cat\n") for words, _ in asked))
    for (words, message), done in zip(asked, found, strict=True):
        assert (done.status, done.err.splitlines()[-1:]) == (2, [f"dragoman: {message}"]), words
        assert "Traceback" not in done.err, words


API = """
import sys
import dragoman

translator = dragoman.load(sys.argv[1])
assert list(translator.translate_lines(["the dog", "red cat"], beam=1))
for use in (lambda: dragoman.train, lambda: dragoman.evaluate):
    try:
        use()
    except dragoman.DragomanError as error:
        print(error)
"""


def test_the_api_says_so_too(model: Path) -> None:
    assert run(API, str(model)).splitlines() == [
        "training needs PyTorch; pip install 'dragoman[train]'",
        "dragoman.evaluate needs sacreBLEU; pip install 'dragoman[evaluate]'",
    ]


def test_a_model_that_only_pytorch_runs_says_so(
    tiny: Config, trained: Path, tmp_path: Path
) -> None:
    config = tiny.overridden(["model.positions=rotary"])
    tokenizer = open_model(trained).tokenizer
    weights = get_weights(build(config.model, len(tokenizer)))
    save_model(tmp_path / "model", weights, config, tokenizer, {})
    [done] = commands((["translate", tmp_path / "model"], TEXT))
    assert done.err == (
        f"dragoman: {tmp_path / 'model'}: a model that the CPU engine cannot run "
        "(model.positions = rotary) needs PyTorch; pip install 'dragoman[train]'\n"
    )


SERVE = """
import json, sys
from starlette.testclient import TestClient
from dragoman.serve.app import build_app, wrap_in_middleware
from dragoman.serve.limits import Limits
from dragoman.serve.service import TranslationService
from dragoman.serve.settings import NamedModel, Settings

models = tuple(map(NamedModel.parse, sys.argv[1:]))
service = TranslationService(Settings(models=models, device="cpu", limits=Limits(), threads=2))
client = TestClient(wrap_in_middleware(build_app(service)), raise_server_exceptions=False)
pair = {"source": "en", "target": "de"}
answers = [client.get("/")]
for path, body in (
    ("/translate", {"q": "the dog"}),
    ("/v1/translate", {"text": ["the dog"], "n_best": 2, "align": True}),
    ("/v1/translate", {"text": ["the dog"], "prefix": "god"}),
    ("/v1/translate", {"text": ["the dog"], "must": ["tac"]}),
    ("/v1/translate/stream", {"text": "the dog"}),
    ("/v1/score", {"text": ["the dog"], "translation": ["god eht"]}),
    ("/v1/alternatives", {"text": "the dog"}),
    ("/v1/attention", {"text": "the dog"}),
):
    answers.append(client.post(path, json={**pair, **body}))
answers.append(client.post("/v1/parse", json={"text": ["He sleeps."]}))
print(json.dumps([[one.status_code, one.text] for one in answers]))
service.close()
"""


def test_the_service_answers(parser: Path, tmp_path: Path) -> None:
    whole = make_translator(tmp_path / "whole", "en-de", 1)
    write_int8_model(open_model(whole), tmp_path / "ende")
    said = json.loads(run(SERVE, str(tmp_path / "ende"), str(parser)))
    *good, (status, refusal), parsed = said
    assert [status for status, _ in (*good, parsed)] == [200] * 9, said
    assert status == 501
    assert json.loads(refusal) == {
        "error": "this needs PyTorch; pip install 'dragoman[train]' where the service runs"
    }
    assert json.loads(parsed[1])["parses"]
