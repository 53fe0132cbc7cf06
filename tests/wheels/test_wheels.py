"""Each wheel is what its name says, needs nothing that its platform lacks, and its kernel computes.

`make wheels` builds the wheels and runs these tests on them: WHEELS names their directory. Kernels
of other machines are run by an emulator where there is one: qemu-aarch64-static with
libc6-arm64-cross, musl and wine, as Debian calls them. Nothing here runs those for macOS.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from dragoman import __version__
from dragoman.inference.cpu.kernel_library import INTERFACE_VERSION

ROOT = Path(__file__).parents[2]
WHEELS = Path(os.environ.get("WHEELS", "."))
SOURCES = ROOT / "src" / "dragoman" / "inference" / "cpu"
TARGETS: dict[str, str] = runpy.run_path(str(ROOT / "build_wheels.py"))["TARGETS"]
FUNCTIONS = set(
    re.findall(r"^EXPORTED .*?(dragoman_\w+)\(", (SOURCES / "kernel.c").read_text(), re.MULTILINE)
)
LINUX = [one for one in TARGETS if "linux" in one]
MACOS = [one for one in TARGETS if one.startswith("macosx")]
X86_LINUX = platform.machine() == "x86_64" and sys.platform == "linux"

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif("WHEELS" not in os.environ, reason="needs wheels: make wheels"),
]


def wheel_of(target: str) -> Path:
    return WHEELS / f"dragoman-{__version__}-py3-none-{target}.whl"


def kernel_of(target: str) -> bytes:
    """Return the library that is in a wheel."""
    kinds = {"macosx": ".dylib", "win": ".dll"}
    suffix = next((kinds[kind] for kind in kinds if target.startswith(kind)), ".so")
    with zipfile.ZipFile(wheel_of(target)) as archive:
        return archive.read(f"dragoman/inference/cpu/_kernel{suffix}")


# --- what is in a wheel ---


@pytest.mark.parametrize("target", TARGETS)
def test_a_wheel_is_what_its_name_says(target: str) -> None:
    info = f"dragoman-{__version__}.dist-info"
    with zipfile.ZipFile(wheel_of(target)) as archive:
        names = archive.namelist()
        tags = message_from_bytes(archive.read(f"{info}/WHEEL"))
        about = message_from_bytes(archive.read(f"{info}/METADATA"))
        record = list(csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode())))
        for name, digest, size in record:
            if name != f"{info}/RECORD":
                content = archive.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
                assert (digest, int(size)) == (
                    f"sha256={expected.decode().rstrip('=')}",
                    len(content),
                )
    assert tags.get_all("Tag") == [f"py3-none-{target}"]
    assert tags["Root-Is-Purelib"] == "false"
    assert about["Requires-Python"] == "<3.14,>=3.11"
    assert sorted(row[0] for row in record) == sorted(names)
    assert {name.split("/")[0] for name in names} == {"dragoman", info}
    binary = [name for name in names if name.endswith((".so", ".dylib", ".dll", ".pyd"))]
    assert len(binary) == 1
    assert not [name for name in names if name.endswith((".c", ".h", ".pyc"))]
    assert {"dragoman/py.typed", "dragoman/presets/base.toml"} <= set(names)


@pytest.mark.parametrize("target", LINUX)
def test_on_linux_the_kernel_needs_the_c_library_alone(target: str) -> None:
    file = pytest.importorskip("elftools.elf.elffile").ELFFile(io.BytesIO(kernel_of(target)))
    machine = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}[file.header.e_machine]
    assert target.endswith(machine)
    dynamic = list(file.get_section_by_name(".dynamic").iter_tags())
    needed = {one.needed for one in dynamic if one.entry.d_tag == "DT_NEEDED"}
    if "musllinux" in target:
        assert needed == {"libc.so"}  # the name by which musl's loader knows itself
    else:
        assert needed <= {"libc.so.6", "libm.so.6", "libpthread.so.0"}
        limit = tuple(int(part) for part in target.split("_")[1:3])
        versions = [
            tuple(int(part) for part in version.name.removeprefix("GLIBC_").split("."))
            for _, of_library in file.get_section_by_name(".gnu.version_r").iter_versions()
            for version in of_library
        ]
        assert versions
        assert max(versions) <= limit
    assert not {"DT_RPATH", "DT_RUNPATH", "DT_TEXTREL"} & {one.entry.d_tag for one in dynamic}
    (stack,) = (one for one in file.iter_segments() if one.header.p_type == "PT_GNU_STACK")
    assert not stack.header.p_flags & 1  # cannot be executed
    symbols = list(file.get_section_by_name(".dynsym").iter_symbols())
    assert {one.name for one in symbols if one.entry.st_shndx != "SHN_UNDEF"} == FUNCTIONS


@pytest.mark.parametrize("target", MACOS)
def test_on_macos_the_kernel_needs_the_system_alone(target: str, tmp_path: Path) -> None:
    macho = pytest.importorskip("macholib.MachO")
    file = tmp_path / "_kernel.dylib"
    file.write_bytes(kernel_of(target))
    (header,) = macho.MachO(str(file)).headers
    machine = {0x01000007: "x86_64", 0x0100000C: "arm64"}[header.header.cputype]
    assert target.endswith(machine)
    commands: dict[str, list[tuple[Any, bytes]]] = {}
    for load, command, data in header.commands:
        name = load.get_cmd_name()
        commands.setdefault(str(name), []).append((command, data))
    loaded = [data.rstrip(b"\0") for _, data in commands["LC_LOAD_DYLIB"]]
    assert loaded == [b"/usr/lib/libSystem.B.dylib"]
    assert commands["LC_ID_DYLIB"][0][1].rstrip(b"\0") == b"@rpath/_kernel.dylib"
    if "LC_BUILD_VERSION" in commands:
        oldest = commands["LC_BUILD_VERSION"][0][0].minos
    else:
        oldest = commands["LC_VERSION_MIN_MACOSX"][0][0].version
    major, minor = (int(part) for part in target.split("_")[1:3])
    assert int(oldest) == major << 16 | minor << 8
    # a processor of Apple's runs nothing that is not signed, if only by the linker
    assert machine == "x86_64" or "LC_CODE_SIGNATURE" in commands
    table = pytest.importorskip("macholib.SymbolTable").SymbolTable(macho.MachO(str(file)))
    defined = {name.decode() for entry, name in table.nlists if entry.n_type == 0x0F}
    by_the_linker = {"__mh_dylib_header", "___dso_handle"}
    assert defined - by_the_linker == {f"_{name}" for name in FUNCTIONS}


def test_on_windows_the_kernel_needs_the_system_alone() -> None:
    file = pytest.importorskip("pefile").PE(data=kernel_of("win_amd64"))
    assert file.FILE_HEADER.Machine == 0x8664
    needed = {one.dll.decode().lower() for one in file.DIRECTORY_ENTRY_IMPORT}
    others = {one for one in needed if not one.startswith("api-ms-win-crt-")}
    assert others <= {"kernel32.dll"}
    exported = {one.name.decode() for one in file.DIRECTORY_ENTRY_EXPORT.symbols}
    assert exported == FUNCTIONS


# --- what the kernels compute ---

ARM = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", "-cpu"]
X86 = ["qemu-x86_64-static", "-cpu"]
RUNS = {
    # the wheel, what runs its program, a file that this takes, and the instruction sets
    "this machine": ("manylinux_2_17_x86_64", [], "/lib64/ld-linux-x86-64.so.2", None),
    "before AVX2": (
        "manylinux_2_17_x86_64",
        [*X86, "Nehalem"],
        "/lib64/ld-linux-x86-64.so.2",
        ["plain", "sse2"],
    ),
    "AVX2": (
        *("manylinux_2_17_x86_64", [*X86, "Haswell"], "/lib64/ld-linux-x86-64.so.2"),
        ["plain", "sse2", "avx2"],
    ),
    "ARM": (
        *("manylinux_2_17_aarch64", [*ARM, "max"], "/usr/aarch64-linux-gnu/lib"),
        ["plain", "neon", "neon_dotprod", "neon_i8mm"],
    ),
    "ARM before dot products": (
        *("manylinux_2_17_aarch64", [*ARM, "cortex-a72"], "/usr/aarch64-linux-gnu/lib"),
        ["plain", "neon"],
    ),
    "musl": ("musllinux_1_1_x86_64", [], "/lib/ld-musl-x86_64.so.1", None),
    "Windows": ("win_amd64", ["wine"], "/usr/lib/wine", None),
}


EXPECTED = """
    66:-1.9839 55:-2.5354 112:-2.8535 112:-2.4185 110:-2.7064 113:-2.7625 66:-0.0742 55:-5.0505
    48:-5.7275 112:-0.0756 94:-4.3756 80:-4.5779 66:-0.0725 55:-4.6161 17:-5.8271 112:-0.1108
    94:-3.8979 80:-3.9611 66:-0.0660 55:-5.0303 86:-5.4858 112:-0.1127 80:-3.9888 94:-4.1573
"""
"""What the plain kernel of GCC found on x86-64: pieces, and their log-probabilities."""


@pytest.mark.skipif(not X86_LINUX, reason="needs Linux on x86-64")
@pytest.mark.parametrize("machine", RUNS)
def test_the_kernel_computes_the_same_everywhere(machine: str, tmp_path: Path) -> None:
    target, runner, file, instruction_sets = RUNS[machine]
    if runner and shutil.which(runner[0]) is None:
        pytest.skip(f"needs {runner[0]}")
    if not Path(file).exists():
        pytest.skip(f"needs {file}")
    lines = run_kernel(target, runner, tmp_path)
    assert lines.pop("interface") == [str(INTERFACE_VERSION)]
    assert next(iter(lines)) == "plain"
    assert instruction_sets in (None, list(lines))
    expected = [pair.split(":") for pair in EXPECTED.split()]
    numbers = [float(number) for _, number in expected]
    for line in lines.values():
        found = [pair.split(":") for pair in line]
        assert [piece for piece, _ in found] == [piece for piece, _ in expected]
        assert [float(number) for _, number in found] == pytest.approx(numbers, abs=2e-3)


def run_kernel(target: str, runner: list[str], place: Path) -> dict[str, list[str]]:
    """Compile run_kernel.c for a platform, and return what it prints of the kernel in its wheel."""
    library = place / ("_kernel.dll" if target.startswith("win") else "_kernel.so")
    library.write_bytes(kernel_of(target))
    program = place / "run_kernel.exe"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[target], "-O1"]
    libraries = [] if target.startswith("win") else ["-dynamic", "-ldl", "-lpthread"]
    source = str(Path(__file__).with_name("run_kernel.c"))
    command = [*compiler, "-I", str(SOURCES), "-o", str(program), source, *libraries]
    subprocess.run(command, check=True)
    environment = os.environ | {"WINEPREFIX": str(place / "wine"), "WINEDEBUG": "-all"}
    done = subprocess.run(
        [*runner, str(program), str(library)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


# --- installed ---


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel of this machine, and what it needs, in an empty environment."""
    if not X86_LINUX:
        pytest.skip("needs Linux on x86-64")
    place = tmp_path_factory.mktemp("installed") / "environment"
    venv.create(place, with_pip=True)
    target = "musllinux_1_1_x86_64" if not platform.libc_ver()[0] else "manylinux_2_17_x86_64"
    command = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*command, str(wheel_of(target))], env=clean, check=True)
    return place


def info(environment: Path, *runner: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `dragoman info` where no compiler is on the path."""
    program = str(environment / "bin" / "python")
    return subprocess.run(
        [*runner, program, "-m", "dragoman", "info"],
        env={"PATH": str(environment / "bin"), **variables},
        cwd=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_installed_without_a_compiler_it_takes_the_fast_path(environment: Path) -> None:
    line = info(environment).stdout
    assert "the CPU engine computes in int8, with instructions for " in line
    fast = "avx2" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    assert ("slow" in line) is not fast


def test_on_a_processor_without_avx2_it_says_that_it_is_slow(environment: Path) -> None:
    qemu = shutil.which("qemu-x86_64-static")
    if qemu is None:
        pytest.skip("needs qemu-x86_64-static")
    old = [qemu, "-cpu", "Nehalem"]
    line = info(environment, *old).stdout
    assert "with instructions for SSE2" in line
    assert "slow, because this processor has none of AVX2, AVX-512" in line
    refused = info(environment, *old, DRAGOMAN_ISA="avx2")
    assert refused.returncode == 2
    assert refused.stderr == (
        "dragoman: DRAGOMAN_ISA=avx2: this machine or this build has no such instruction set; it "
        "has plain, sse2\n"
    )
