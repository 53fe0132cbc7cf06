"""Which device a model is put on, and when PyTorch has to be asked."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import torch

from dragoman.errors import ConfigError
from dragoman.inference import loading
from dragoman.inference.loading import choose_device

LOADABLE = {"win32": "kernel32.dll", "darwin": "libSystem.dylib"}.get(sys.platform, "libc.so.6")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """One where nothing has imported PyTorch, which is built for CUDA; and no driver."""
    package = tmp_path / "torch"
    package.mkdir()
    version(package, cuda="'13.0'", hip=None)
    spec = ModuleSpec("torch", None, origin=str(package / "__init__.py"))
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(loading, "find_spec", lambda name: spec if name == "torch" else None)
    monkeypatch.setattr(loading, "CUDA_DRIVER", "no-such-library.so.1")
    monkeypatch.setattr(loading, "DRIVER_FILES", (str(tmp_path / "driver"),))
    return package


def version(package: Path, **built: str | None) -> None:
    lines = ["from typing import Optional", "__version__ = '9.9.9'"]
    lines += [f"{name}: Optional[str] = {value}" for name, value in built.items()]
    (package / "version.py").write_text("\n".join(lines), encoding="utf-8")


def asks() -> bool:
    """Whether PyTorch would be asked."""
    return loading._may_have_gpu()


def test_without_a_driver_there_is_no_gpu(machine: Path) -> None:
    assert not asks()
    assert choose_device("auto") == "cpu"
    assert "torch" not in sys.modules


def test_where_the_drivers_library_is_pytorch_is_asked(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "CUDA_DRIVER", LOADABLE)
    assert asks()


def test_where_the_driver_runs_pytorch_is_asked(machine: Path) -> None:
    machine.with_name("driver").touch()
    assert asks()


def test_a_pytorch_for_cpus_is_not_asked(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "CUDA_DRIVER", LOADABLE)
    version(machine, cuda=None, hip=None)
    assert not asks()


def test_a_pytorch_for_amd_is_asked(machine: Path) -> None:
    version(machine, cuda=None, hip="'7.0'")
    assert asks()


@pytest.mark.parametrize("text", ["", "cuda = None", "hip = None", "import nothing_at_all", "1 +"])
def test_where_it_says_not_what_it_is_built_for_it_is_asked(
    text: str, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "CUDA_DRIVER", LOADABLE)
    (machine / "version.py").write_text(text, encoding="utf-8")
    assert asks()
    (machine / "version.py").unlink()
    assert asks()


def test_where_there_is_no_pytorch_there_is_no_gpu(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "CUDA_DRIVER", LOADABLE)
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    assert choose_device("auto") == "cpu"


@pytest.mark.parametrize("there", [True, False])
def test_when_it_is_imported_already_its_word_counts(
    there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert choose_device("auto") == ("cuda" if there else "cpu")


def test_what_this_machine_has_is_what_pytorch_says(monkeypatch: pytest.MonkeyPatch) -> None:
    there = torch.cuda.is_available()
    monkeypatch.delitem(sys.modules, "torch")
    assert asks() or not there


def test_a_device_by_its_name_is_there_or_refused() -> None:
    assert choose_device("cpu") == "cpu"
    with pytest.raises(ConfigError, match="there is no device 'nonsense' here; try cpu or auto"):
        choose_device("nonsense")
