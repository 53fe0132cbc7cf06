"""The products of every instruction set are the same whole numbers, and one can be chosen."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from dragoman.inference.cpu import kernel_library

from ...kernel import needs_kernel

PROGRAM = Path(__file__).with_name("kernel_products.c")
SOURCES = Path(kernel_library.__file__).parent
# Compilers, what runs their programs on this machine, and the instruction sets that must be there.
MACHINES = {
    "this machine": (["cc", "-pthread"], [], ["plain"]),
    "ARM": (
        ["aarch64-linux-gnu-gcc", "-pthread", "-static"],
        ["qemu-aarch64-static", "-cpu", "max"],
        ["plain", "neon", "neon_dotprod", "neon_i8mm"],
    ),
    "WebAssembly": (
        [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-msimd128"],
        ["node", "--no-warnings", str(Path(__file__).with_name("run_wasi.mjs"))],
        ["plain", "wasm_simd128"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_products_are_the_same_whole_numbers(machine: str, tmp_path: Path) -> None:
    compiler, runner, instruction_sets = MACHINES[machine]
    for program in (compiler[0], *runner[:1]):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    if "ziglang" in compiler and find_spec("ziglang") is None:
        pytest.skip("needs the Python package ziglang")
    file = tmp_path / "products"
    command = [*compiler, "-O2", "-I", str(SOURCES), "-o", str(file), str(PROGRAM), "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([*runner, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert names[: len(instruction_sets)] == instruction_sets


@needs_kernel
def test_every_instruction_set_has_a_description() -> None:
    library = kernel_library.load_kernel()
    number = 0
    while (name := library.dragoman_instruction_set(number)) is not None:
        assert name.decode() in kernel_library.DESCRIPTIONS
        number += 1
    assert number > 1 or platform.machine() not in ("x86_64", "aarch64", "arm64")


def test_a_kernel_that_cannot_be_loaded_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "_kernel.so"
    file.write_bytes(b"")
    monkeypatch.setattr(kernel_library, "_find_library", lambda: file)
    library, reason = kernel_library._load.__wrapped__()
    assert library is None
    assert "file too short" in reason
    assert str(file) in reason


@needs_kernel
def test_the_environment_chooses_the_instruction_set() -> None:
    fastest = list(kernel_library.find_instruction_sets(kernel_library.load_kernel()))[-1]
    assert _run_with("plain") == "any machine"
    assert _run_with("") == kernel_library.DESCRIPTIONS[fastest]
    refusal = "DRAGOMAN_ISA=abacus: this machine or this build has no such instruction set; it has"
    assert refusal in _run_with("abacus")


@needs_kernel
@pytest.mark.parametrize(
    ("forced", "there", "reason"),
    [
        ("plain", ["plain"], "DRAGOMAN_ISA=plain says so"),
        ("", ["plain"], "this processor has none of "),
        ("", ["plain", "fast"], ""),
    ],
)
def test_a_slow_instruction_set_is_explained(
    forced: str, there: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = _FakeLibrary(["plain", "fast", "faster"], used=len(there) - 1)
    monkeypatch.setenv(kernel_library.FORCED_ISA, forced)
    monkeypatch.setattr(kernel_library, "load_kernel", lambda: library)
    monkeypatch.setattr(
        kernel_library, "DESCRIPTIONS", {"plain": "any", "fast": "Fast", "faster": "Faster"}
    )
    expected = f"{reason}Fast, Faster" if reason.endswith(" ") else reason
    assert kernel_library.why_slow() == expected


class _FakeLibrary:
    """Stand in for a library compiled for some instruction sets that the machine has in part."""

    def __init__(self, names: list[str], used: int) -> None:
        self.names, self.used = names, used

    def dragoman_instruction_set(self, number: int) -> bytes | None:
        return self.names[number].encode() if number < len(self.names) else None

    def dragoman_used_instruction_set(self) -> int:
        return self.used


def _run_with(name: str) -> str:
    """Return what a process says that is told to use an instruction set."""
    program = "from dragoman.inference.cpu.kernel_library import *; print(used_instruction_set())"
    environment = os.environ | {kernel_library.FORCED_ISA: name}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()
