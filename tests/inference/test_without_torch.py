"""On a CPU, with the int8 variant, PyTorch is not imported; what needs it imports it then."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dragoman.model_directory import open_model, write_int8_file

from ..kernel import needs_kernel

pytestmark = needs_kernel

API = """
import sys
import dragoman

translator = dragoman.load(sys.argv[1], device=sys.argv[2])
found = {call}
assert found, found
"""
COMMANDS = """
import io, json, sys
from dragoman.cli import main

model, device, several = sys.argv[1:]
for options in json.loads(several):
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"the old dog\\n\\nred cat\\n"))
    sys.argv = ["dragoman", "translate", model, "--device", device, *options]
    try:
        main()
    except SystemExit as left:
        assert left.code == 0, left.code
    assert "torch" not in sys.modules, options
"""
COMMAND = """
import sys
from dragoman.cli import main

sys.argv = ["dragoman", *sys.argv[1:]]
try:
    main()
except SystemExit as left:
    assert left.code == 0, left.code
"""
REPORT = """
print("PyTorch" if "torch" in sys.modules else "nothing", file=sys.stderr)
"""
DEVICES = [
    "cpu",
    pytest.param(
        "auto",
        marks=pytest.mark.skipif(torch.cuda.is_available(), reason="auto is the GPU here"),
    ),
]


@pytest.fixture(scope="module")
def rounded(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its variant."""
    copy = tmp_path_factory.mktemp("rounded") / "model"
    shutil.copytree(trained / "model", copy)
    write_int8_file(open_model(copy))
    return copy


@pytest.fixture(scope="module")
def plain(rounded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without it."""
    copy = tmp_path_factory.mktemp("plain") / "model"
    return Path(shutil.copytree(rounded, copy, ignore=shutil.ignore_patterns("int8*")))


def imported(code: str, *arguments: object) -> str:
    """What a process of its own imported while it did this."""
    done = subprocess.run(
        [sys.executable, "-c", code if LISTED in code else code + REPORT, *map(str, arguments)],
        input="",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1]


CALLS = """
for found in (
    translator.translate("the old dog"),
    translator.translate(["the old dog", "", "x" * 500], beam=1),
    translator.translate("the old dog", beam=8, n_best=3).alternatives,
    list(translator.translate_lines(["red cat"], length_penalty=1.0, max_extra=5)),
):
    assert found, found
"""


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_the_engine_translates_without_it(device: str, rounded: Path) -> None:
    assert imported(API.format(call="True") + CALLS, rounded, device) == "nothing"


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_the_command_translates_without_it(device: str, rounded: Path) -> None:
    several = json.dumps([[], ["--beam", "1"], ["--n-best", "3"], ["--json"]])
    assert imported(COMMANDS, rounded, device, several) == "nothing"


@pytest.mark.slow
def test_weights_are_rounded_without_it(plain: Path, tmp_path: Path) -> None:
    assert imported(API.format(call='translator.translate("dog")'), plain, "cpu") == "nothing"
    copy = shutil.copytree(plain, tmp_path / "model")
    assert imported(COMMAND, "quantize", copy) == "nothing"


LISTED = """
print(*sorted(sys.modules), file=sys.stderr)
"""
NEEDED_BY_OTHERS = {
    # Documents, trees, glossaries and memories.
    *("lxml", "markdown_it", "html", "xml"),
    *("dragoman.inference.documents", "dragoman.trees.tree", "dragoman.inference.glossary"),
    *("dragoman.inference.translation_memory", "dragoman.inference.parser"),
    # The service, other commands, and what draws on a terminal.
    *("fastapi", "starlette", "uvicorn", "dragoman.serve", "dragoman.workflows", "dragoman.data"),
    *("dragoman.training", "dragoman.evaluation", "dragoman.inspection", "rich", "pygments"),
    # The tables of all languages.
    *("py3langid", "asyncio", "multiprocessing", "http"),
    *("torch", "sacrebleu", "matplotlib", "tensorboard", "sqlite3", "unittest"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["Hello", "The museum is closed on Mondays, but the garden is open every day."]
)
def test_a_plain_translation_imports_nothing_that_others_need(text: str, rounded: Path) -> None:
    names = imported(COMMAND + LISTED, "translate", rounded, text, "--device", "cpu").split()
    # Typer imports pydantic from 0.29 on, and that the metadata of packages.
    metadata = set() if "pydantic" in names else {"importlib.metadata", "email"}
    assert (NEEDED_BY_OTHERS | metadata).intersection(names) == set()
    ours = [name for name in names if name.partition(".")[0] == "dragoman"]
    assert len(ours) < 105, "see that no more is imported than a plain translation takes"


@pytest.mark.slow
def test_help_imports_nothing_that_computes() -> None:
    names = imported(COMMAND + LISTED, "--help").split()
    assert {"numpy", "sentencepiece", "rich", "dragoman.inference"}.intersection(names) == set()


LATER = """
translator.translate("the old dog")
assert "torch" not in sys.modules
assert translator.translate("the old dog", align=True).alignment
assert translator.translate("<b>the</b> old {0} dog, 3.5 😀\\n\\nTHE DOG!", n_best=2).text
for options in (
    {"must": ["tac"]},
    {"must_not": ["god"], "beam": 1},
    {"prefix": "tac"},
    {"glossary": dragoman.Glossary([("dog", "Dackel", 1)])},
):
    assert translator.translate("the old dog {0}", **options).text
assert translator.score(["dog"], ["god"])
assert translator.alternatives("dog")
assert "torch" not in sys.modules
for options in ({"n_best": 2, "diverse": 2}, {"sampling": SamplingOptions()}):
    assert translator.translate("the old dog {0}", **options).text
assert "torch" in sys.modules
"""


@pytest.mark.slow
def test_what_the_engine_cannot_do_is_done_with_it(rounded: Path) -> None:
    code = API.format(call="True") + "from dragoman.search import SamplingOptions\n" + LATER
    assert imported(code, rounded, "cpu") == "PyTorch"
