"""Build the wheels of every platform on this machine: python build_wheels.py dist, or make wheels.

The kernel has no Python in it, so that a wheel for each platform is all there is. Zig compiles for
all of them and brings their C libraries; it comes with `pip install '.[wheels]'`. Each wheel is
built from the sdist, in a directory of its own, and is refused unless the kernel is in it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent
TARGETS = {
    # The oldest glibc that both processors have has all that the kernel calls.
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_1_x86_64": "x86_64-linux-musl",
    "musllinux_1_1_aarch64": "aarch64-linux-musl",
    "macosx_10_13_x86_64": "x86_64-macos.10.13",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}
"""What Zig calls the platforms of the wheels."""


def main(words: list[str]) -> int:
    """Build all wheels, or those of the platforms that are named, and the sdist."""
    if not words or set(words[1:]) - set(TARGETS):
        print(f"python build_wheels.py DIRECTORY [PLATFORM ...], of {', '.join(TARGETS)}")
        return 2
    out = Path(words[0]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dragoman-wheels-") as name:
        sdist = build(ROOT, Path(name), "--sdist")
        for platform in words[1:] or TARGETS:
            wheel = build_wheel(sdist, platform, Path(name) / platform)
            wheel.replace(out / wheel.name)
            print(out / wheel.name, flush=True)
        sdist.replace(out / sdist.name)
    print(out / sdist.name)
    return 0


def build_wheel(sdist: Path, platform: str, place: Path) -> Path:
    """Build the wheel of a platform in the new directory `place`, and return it."""
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    (source,) = place.iterdir()
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[platform], "-s"]
    if platform.startswith("macosx"):
        zig += ["-Wl,-install_name,@rpath/_kernel.dylib"]  # not where it was linked
    option = f"--config-setting=--build-option=--plat-name={platform}"
    wheel = build(source, place, "--wheel", option, CC=shlex.join(zig))
    with zipfile.ZipFile(wheel) as archive:
        kernels = [one for one in archive.namelist() if "/_kernel" in one]
    if len(kernels) != 1:
        sys.exit(f"{wheel.name}: the kernel was not compiled: it has {kernels or 'none'}")
    return wheel


def build(source: Path, out: Path, *options: str, **environment: str) -> Path:
    """Run the build of a distribution with what is installed, and return the file it makes."""
    before = set(out.iterdir())
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *options]
    done = subprocess.run(
        [*command, str(source)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\n{shlex.join(options)}: the build failed; what it said is above")
    (made,) = set(out.iterdir()) - before
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
