"""Where only what using a model takes is installed: everything that uses one, and what is said."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.config import Config
from dragoman.model_directory import open_model, save_model, write_int8_model
from dragoman.models import build
from dragoman.models.weights import get_weights

from .kernel import needs_kernel
from .serve.service_fixtures import parser as make_parser
from .serve.service_fixtures import translator as make_translator

pytestmark = [needs_kernel, pytest.mark.slow]

MISSING = """
import sys
for name in ("torch", "sacrebleu", "tensorboard", "matplotlib", "triton"):
    sys.modules[name] = None  # so that importing it fails, and find_spec finds nothing
"""
COMMANDS = """
import io, json
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


def run(code: str, *arguments: str) -> str:
    """Run a program where those packages are missing, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", MISSING + code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands(*asked: tuple[list[object], str]) -> list[Done]:
    """Run commands one after another in one process, each with its standard input."""
    several = [[list(map(str, words)), text] for words, text in asked]
    return [Done(*one) for one in json.loads(run(COMMANDS, json.dumps(several)))]


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


def test_what_needs_more_says_so_in_one_line(model: Path, trained: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    source.write_text("red cat\n", encoding="utf-8")
    target.write_text("tac der\n", encoding="utf-8")
    pairs = ["--source", source, "--reference", target]
    install = "pip install 'dragoman[train]'"
    asked: list[tuple[list[object], str]] = [
        (["train", source, target], "training needs PyTorch"),
        (["demo"], "dragoman demo needs sacreBLEU"),
        (["average", trained, "--out", tmp_path / "x"], "training needs PyTorch"),
        (["evaluate", model, *pairs], "dragoman evaluate needs sacreBLEU"),
        (["shortlist", model, source, target], "dragoman shortlist needs sacreBLEU"),
        (["inspect", model, "dog", "-o", tmp_path / "x.html"], "dragoman inspect needs PyTorch"),
        (["presets"], "dragoman presets needs PyTorch"),
        (["plot", trained], "dragoman plot needs Matplotlib"),
        (["paper", "table3"], "training needs PyTorch"),
        (["translate", model, "--device", "cuda"], "device cuda needs PyTorch"),
        (["translate", model, "--precision", "float32"], f"{model}: float32 needs PyTorch"),
        (
            ["translate", model, "--diverse", "2"],
            "such a search (samples, diverse beams, more than 64 hypotheses) needs PyTorch",
        ),
    ]
    found = commands(*((words, "red cat\n") for words, _ in asked))
    for (words, message), done in zip(asked, found, strict=True):
        assert (done.status, done.err.splitlines()[-1:]) == (2, [f"dragoman: {message}; {install}"])
        assert "Traceback" not in done.err, words
    assert not (tmp_path / "x").exists()


API = """
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
        "dragoman.evaluate needs sacreBLEU; pip install 'dragoman[train]'",
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
import json
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


def test_the_service_answers(tmp_path: Path) -> None:
    for name, whole in (
        ("ende", make_translator(tmp_path / "whole", "en-de", 1)),
        ("trees", make_parser(tmp_path / "parser")),
    ):
        write_int8_model(open_model(whole), tmp_path / name)
    said = json.loads(run(SERVE, str(tmp_path / "ende"), str(tmp_path / "trees")))
    *good, (status, refusal), parsed = said
    assert [status for status, _ in (*good, parsed)] == [200] * 9, said
    assert status == 501
    assert json.loads(refusal) == {
        "error": "this needs PyTorch; pip install 'dragoman[train]' where the service runs"
    }
    assert json.loads(parsed[1])["parses"]
    [done] = commands((["parse", tmp_path / "trees"], "He sleeps.\n"))
    assert done.out.startswith("(")
