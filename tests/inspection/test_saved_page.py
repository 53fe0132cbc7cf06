"""A page of one sentence that needs nothing else."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from dragoman.cli import inspect
from dragoman.errors import ConfigError
from dragoman.inspection import PAGE
from dragoman.inspection.saved_page import Inspection, bundle

from .small_translators import SENTENCE, translator


@pytest.fixture(scope="module")
def page() -> Inspection:
    return translator().inspect(SENTENCE)


def test_it_loads_nothing(page: Inspection) -> None:
    text = page.html()
    allowed = "http://www.w3.org/2000/svg"  # a name, which is not fetched
    assert not re.findall(r"https?://", text.replace(allowed, ""))
    assert not re.findall(r"<(?:link|img|iframe|script[^>]+src)", text)
    assert "import " not in re.sub(r"//.*|\"[^\"\n]*\"", "", bundle("saved_page"))


def test_its_policy_allows_its_own_script_and_style_only(page: Inspection) -> None:
    text = page.html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    for tag in ("script", "style"):
        inside = text.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        wanted = f"'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'"
        assert f"{tag}-src {wanted};" in policy[1]
    assert policy[1].startswith("default-src 'none';")
    assert "unsafe" not in policy[1]


def test_its_data_are_those_of_the_sentence(page: Inspection) -> None:
    inside = page.html().split('id="data">')[1].split("</script>")[0]
    data = json.loads(inside)
    assert data["attention"]["text"] == SENTENCE
    assert {part: len(layers) for part, layers in data["steps"].items()} == {
        "encoder": 2,
        "decoder": 2,
        "cross": 2,
    }
    assert data["beam"]["results"]


def test_a_sentence_cannot_break_out_of_it() -> None:
    hostile = "dog </script><script>alert(1)</script> <!--"
    text = translator().inspect(hostile, translation="god").html()
    assert text.count("</script>") == 2
    assert "<script>alert" not in text
    assert json.loads(text.split('id="data">')[1].split("</script>")[0])["attention"]["text"] == (
        hostile
    )


def test_a_notebook_shows_it_in_a_frame(page: Inspection) -> None:
    shown = page._repr_html_()
    inside = re.fullmatch(r'<iframe srcdoc="([^"]*)" [^>]*></iframe>', shown)
    assert inside is not None
    assert html.unescape(inside[1]) == page.html()


def test_of_a_recurrent_model_there_are_no_formulas() -> None:
    one = translator("model.architecture=recurrent", "model.source_attention=dot")
    assert "steps" not in one.inspect("dog", translation="god").data


def test_a_bundle_has_what_every_module_exports() -> None:
    text = bundle("main")
    for file in PAGE.glob("*.js"):
        if file.stem not in ("saved_page", "reference"):  # pages of their own
            assert text.count(f"const page_{file.stem} = ") == 1, file
    assert not re.search(r"^(?:import|export) ", text, re.MULTILINE)
    asked = re.findall(r"const \{ ([\w, ]+) \} = page_(\w+);", text)
    assert asked
    for names, module in asked:
        (given,) = re.findall(
            rf"const page_{module} = .*?\nreturn \{{ ([\w, ]*) \}};\n\}}\)\(\);", text, re.DOTALL
        )
        assert set(names.split(", ")) <= set(given.split(", ")), module


def test_the_command_writes_it(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    inspect.inspect(trained, "the red dog", out, device="cpu")
    assert capsys.readouterr().out == f"{out}: {out.stat().st_size / 1e6:.1f} MB\n"
    assert "the red dog" in out.read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match=r"name it page\.html"):
        inspect.inspect(trained, "the red dog", tmp_path / "page.png", device="cpu")
