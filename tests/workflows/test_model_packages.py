"""Test that models are packed, examined, installed and found by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import dragoman
from dragoman.errors import DragomanError, ModelError
from dragoman.system.installed_models import installed_models
from dragoman.workflows.model_packages import (
    build_wheel,
    describe_wheel,
    install_model,
    list_wheels,
    opened_wheel,
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Path:
    return build_wheel(trained, "xx-yy", "1.2", tmp_path_factory.mktemp("wheels"))


def test_a_wheel_holds_the_model(wheel: Path, trained: Path, tmp_path: Path) -> None:
    assert wheel.name == "dragoman_xx_yy-1.2-py3-none-any.whl"
    with opened_wheel(wheel) as (name, loaded):
        assert name == "xx-yy"
        assert loaded.config.data.task == "translation"
    assert describe_wheel(wheel).megabytes == round(wheel.stat().st_size / 1e6, 1)
    assert [model.name for model in list_wheels(wheel.parent)] == ["xx-yy"]
    again = build_wheel(trained, "xx-yy", "1.2", tmp_path)
    assert again.read_bytes() == wheel.read_bytes()


def test_an_installed_model_is_found_by_name(
    wheel: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installed_models() == {"xx-yy": tmp_path / "dragoman_xx_yy"}
    text = "the cat sleeps"
    expected = dragoman.load(trained).translate(text).text
    assert dragoman.load("xx-yy").translate(text).text == expected
    with pytest.raises(ModelError, match=r"xx-yz: no such model; did you mean xx-yy\?"):
        dragoman.load("xx-yz")
    with pytest.raises(ModelError, match="zebra: no such model; installed: xx-yy"):
        dragoman.load("zebra")


def test_get_installs_with_pip(wheel: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PIP_TARGET": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dragoman", *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    done = run("get", "xx-yy", "--from", str(wheel.parent))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("xx-yy ")
    [listed] = json.loads(run("models", "--json").stdout)
    assert listed["name"] == "xx-yy"
    assert listed["path"] == str(tmp_path / "dragoman_xx_yy")
    assert run("remove", "xx-yz").stderr == "dragoman: xx-yz: no such model; did you mean xx-yy?\n"


def _rewritten(wheel: Path, out: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Write a copy of a wheel whose files are changed."""
    with zipfile.ZipFile(wheel) as file:
        files = {name: file.read(name) for name in file.namelist()}
    change(files)
    path = out / wheel.name
    with zipfile.ZipFile(path, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


def _damage(files: dict[str, bytes]) -> None:
    files["dragoman_xx_yy/card.json"] += b" "


def _add_start_up_code(files: dict[str, bytes]) -> None:
    files["evil.pth"] = b"import os"


def _add_code_in_a_folder(files: dict[str, bytes]) -> None:
    files["dragoman_xx_yy/../evil.py"] = b""


def _unname(files: dict[str, bytes]) -> None:
    files["dragoman_xx_yy-1.2.dist-info/entry_points.txt"] = b""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_damage, "card.json does not have its hash; fetch the wheel again"),
        (_add_start_up_code, "not the wheel of a model"),
        (_add_code_in_a_folder, "not the wheel of a model: it has dragoman_xx_yy/../evil.py"),
        (_unname, "entry_points.txt does not have its hash"),
    ],
)
def test_what_is_not_a_models_wheel_is_refused(
    wheel: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], reason: str
) -> None:
    changed = _rewritten(wheel, tmp_path, change)
    with pytest.raises(ModelError, match=reason):
        install_model("xx-yy", str(changed))


def test_refusals(wheel: Path, tmp_path: Path) -> None:
    truncated = tmp_path / "dragoman_xx_yy-1-py3-none-any.whl"
    truncated.write_bytes(wheel.read_bytes()[:5000])
    with pytest.raises(ModelError, match="damaged wheel"):
        describe_wheel(truncated)
    with pytest.raises(ModelError, match="holds the model xx-yy, not en-ko"):
        install_model("en-ko", str(wheel))
    with pytest.raises(ModelError, match="has no wheel of en-ko"):
        install_model("en-ko", str(tmp_path))
    with pytest.raises(ModelError, match="no such file or folder"):
        install_model("en-ko", str(tmp_path / "nowhere"))
    with pytest.raises(ModelError, match="not a model's name"):
        install_model("../x")
    with pytest.raises(DragomanError, match="pip download"):
        install_model("en-ko", "file:///nowhere/simple")
