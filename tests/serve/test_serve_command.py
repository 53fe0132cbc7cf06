"""`dragoman serve` says what it takes, and in one line what is wrong."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import main


def refused(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: object) -> str:
    """What the command says before it ends with status 2."""
    monkeypatch.setattr(sys, "argv", ["dragoman", "serve", *map(str, arguments)])
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # as main does, but not for other tests
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said: str = capsys.readouterr().err
    return said


def test_help_names_the_limits_and_where_it_listens() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "serve", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    for wanted in ("127.0.0.1", "--queue", "--deadline", "--max-body", "--keys", "--cors"):
        assert wanted in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no model is installed to be served; get one, as in: dragoman get en-de, or give"),
        (["nowhere"], "nowhere: no such model"),
        (["nowhere", "--queue", "0"], "queue = 0 admits no request; raise it"),
        (["nowhere", "--port", "70000"], "port = 70000 is not a port; choose one from 0 to 65535"),
        (["nowhere", "--pair", "news"], "--pair news: write a model's name and two codes"),
        (["nowhere", "--keys", "none"], "none: cannot be read"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(monkeypatch, capsys, "--port", 0, *arguments)
    assert said.startswith(f"dragoman: {message}")
    assert said.count("\n") == 1


def test_a_port_in_use_is_known_before_the_models_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused(monkeypatch, capsys, "nowhere", "--port", port)
    assert said == (
        f"dragoman: 127.0.0.1 port {port}: cannot listen there (Address already in use); "
        "choose another --port\n"
    )


def test_the_command_is_imported_without_them() -> None:
    script = (
        "import sys; import dragoman.cli.serve\n"
        "heavy = {'fastapi', 'uvicorn', 'torch', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
