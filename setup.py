"""The one part that is compiled; everything else about the package is in pyproject.toml.

The kernel is a plain shared library, which knows nothing of Python: one wheel serves every Python
of a platform. It is compiled by `cc`, or by what the environment variable CC says; build_wheels.py
compiles for other platforms that way.
"""

import os
import platform
import shlex
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

ENGINE = Path("src/dragoman/inference/cpu")
FLAGS = """
    -O3 -fno-math-errno -fno-trapping-math -fassociative-math -fno-signed-zeros -freciprocal-math
    -ffinite-math-only -fvisibility=hidden -fPIC -pthread -shared
"""


class BuildKernel(build_ext):
    """Compile the kernel in one command, without the flags of Python extensions."""

    def build_extension(self, extension: Extension) -> None:
        """Compile and link the library, unless it is newer than its sources."""
        library = Path(self.get_ext_fullpath(extension.name))
        if not self.force and not newer_group([*extension.sources, *extension.depends], library):
            return
        library.parent.mkdir(parents=True, exist_ok=True)
        compiler = shlex.split(os.environ.get("CC") or "cc")
        self.spawn([*compiler, *FLAGS.split(), "-o", str(library), *extension.sources, "-lm"])

    def get_ext_filename(self, name: str) -> str:
        """Return the library's path; kernel_library.py looks for the same name."""
        wheel = self.distribution.get_command_obj("bdist_wheel", create=False)
        target = (wheel and wheel.plat_name) or self.plat_name
        kinds = {"macosx": ".dylib", "win": ".dll"}
        suffix = next((kinds[kind] for kind in kinds if target.startswith(kind)), ".so")
        return str(Path(*name.split("."))) + suffix


class TagWheel(bdist_wheel):
    """Tag a wheel as one for any Python of a platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return what the wheel's name says of Python, its binary interface, and the platform."""
        # On macOS Python may be for two processors; the kernel is for this one.
        target = super().get_tag()[2]
        return "py3", "none", target.replace("universal2", platform.machine())


setup(
    cmdclass={"build_ext": BuildKernel, "bdist_wheel": TagWheel},
    ext_modules=[
        Extension(
            "dragoman.inference.cpu._kernel",
            sources=[str(ENGINE / "kernel.c")],
            depends=sorted(str(header) for header in ENGINE.glob("*.h")),
            optional=True,  # without a C compiler PyTorch can translate, more slowly
        )
    ],
)
