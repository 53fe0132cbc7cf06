"""Without the packages of the service its tests cannot run; this says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .conftest import MISSING


def test_the_packages_of_the_service_are_there() -> None:
    if MISSING:
        pytest.skip(f"serving needs {', '.join(MISSING)}: pip install 'dragoman[serve]'")


def test_without_them_the_command_says_what_to_install() -> None:
    script = (
        "import sys, typer; sys.modules['fastapi'] = None\n"
        "from dragoman.cli_serve import serve\n"
        "from dragoman.errors import DragomanError\n"
        "from pathlib import Path\n"
        "try: serve([Path('model')])\n"
        "except DragomanError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'dragoman[serve]'" in done.stdout
    assert done.stdout.count("\n") == 1


def test_the_command_is_imported_without_them() -> None:
    script = (
        "import sys; import dragoman.cli_serve\n"
        "heavy = {'fastapi', 'uvicorn', 'torch', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
