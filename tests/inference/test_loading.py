"""Where the compiled kernel cannot be used, everyone is told so once, with what to do."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import dragoman
from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.inference import loading
from dragoman.inference.cpu import kernel_library
from dragoman.inference.loading import describe_cpu_path

from ..conftest import Result
from ..kernel import needs_kernel

ADVICE = (
    "so PyTorch computes on the CPU, about 7 times slower; install a C compiler and run: "
    "pip install --force-reinstall --no-deps --no-cache-dir dragoman"
)
MISSING = f"the compiled kernel is missing, {ADVICE}"
LIBRARY = kernel_library._find_library()


def forget() -> None:
    kernel_library._load.cache_clear()
    loading._warn_of_missing_kernel.cache_clear()


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path | None], None]]:
    """Make another file, or none, the compiled kernel."""

    def use(file: Path | None) -> None:
        monkeypatch.setattr(kernel_library, "_find_library", lambda: file)
        forget()

    forget()
    yield use
    forget()


def test_without_the_kernel_pytorch_translates_and_says_so_once(
    trained: Path,
    library: Callable[[Path | None], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    library(None)
    translator = dragoman.load(trained, device="cpu")
    assert translator._engine is None
    assert translator.translate("the old dog").text
    dragoman.load(trained, device="cpu")
    assert caplog.record_tuples == [("dragoman.inference", logging.WARNING, f"dragoman: {MISSING}")]


def test_with_neither_kernel_nor_pytorch_one_line_says_what_to_do(
    trained: Path, library: Callable[[Path | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    library(None)
    monkeypatch.setattr(loading, "has_package", lambda name: name != "torch")
    neither = (
        "the compiled kernel is missing, and PyTorch, which could compute instead, is not "
        f"installed; {loading.COMPILE_KERNEL}"
    )
    assert describe_cpu_path() == neither
    for precision in ("auto", "float32"):
        with pytest.raises(ConfigError) as refused:
            dragoman.load(trained, device="cpu", precision=precision)
        assert str(refused.value) == f"{trained / 'model'}: nothing can run it: {neither}"


def test_what_asks_for_pytorch_is_told_nothing(
    trained: Path, library: Callable[[Path | None], None], caplog: pytest.LogCaptureFixture
) -> None:
    library(None)
    dragoman.load(trained, device="cpu", precision="float32")
    dragoman.load(trained, trained, device="cpu")
    assert not caplog.records
    with pytest.raises(ConfigError, match=r"cannot run in int8 \(the compiled kernel is missing\)"):
        dragoman.load(trained, device="cpu", precision="int8")


@pytest.mark.slow
def test_the_commands_say_so(
    trained: Path, library: Callable[[Path | None], None], command: Callable[..., Result]
) -> None:
    """On stderr, in a process of its own, where nobody has set up logging."""
    script = (
        "import sys; from dragoman.inference.cpu import kernel_library;"
        "kernel_library._find_library = lambda: None;"
        "from dragoman.cli import main; main()"
    )
    line = [sys.executable, "-c", script, "translate", str(trained), "--device", "cpu"]
    done = subprocess.run(line, input="a dog\n", capture_output=True, text=True, check=True)
    assert done.stdout.strip()
    assert done.stderr == f"dragoman: {MISSING}\n"
    library(None)
    assert f"on this CPU: {MISSING}\n" in command("info", trained / "model").out


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not a library", r"cannot be loaded on this machine \(.*_kernel\.so: .*\)"),
        (None, r"is of another version of Dragoman \(_kernel\.so\)"),
    ],
)
@needs_kernel
def test_a_library_that_does_not_fit_is_not_used(
    content: bytes | None,
    reason: str,
    tmp_path: Path,
    library: Callable[[Path | None], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "_kernel.so"
    if content is None:
        assert LIBRARY is not None
        shutil.copy(LIBRARY, file)
        monkeypatch.setattr(kernel_library, "INTERFACE_VERSION", -1)
    else:
        file.write_bytes(content)
    library(file)
    assert kernel_library.load_kernel() is None
    assert re.match(rf"the compiled kernel {reason}, so PyTorch", describe_cpu_path())


@needs_kernel
def test_the_path_that_is_used_is_described() -> None:
    assert describe_cpu_path().startswith(
        f"the CPU engine computes in int8, with instructions for "
        f"{kernel_library.used_instruction_set()}, in "
    )
    rotary = replace(ModelConfig(), positions="rotary")
    assert describe_cpu_path(rotary) == (
        "PyTorch computes in float32, because the CPU engine does not support "
        "model.positions = rotary"
    )
