"""Test that models are packed, examined, installed and found by name."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

import dragoman
from dragoman.errors import DragomanError, ModelError
from dragoman.model_directory import open_model, write_int8_model
from dragoman.system.installed_models import installed_models, model_folders
from dragoman.workflows import model_packages
from dragoman.workflows.model_packages import (
    _record_hash,
    build_wheel,
    describe_wheel,
    install_model,
    list_origin,
    opened_wheel,
    remove_model,
)

from ..kernel import needs_kernel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Path:
    return build_wheel(trained, "xx-yy", "1.2", tmp_path_factory.mktemp("wheels"))


def test_a_wheel_holds_the_model(wheel: Path, trained: Path, tmp_path: Path) -> None:
    assert wheel.name == "dragoman_xx_yy-1.2-py3-none-any.whl"
    with opened_wheel(wheel) as (name, loaded):
        assert name == "xx-yy"
        assert loaded.config.data.task == "translation"
    assert describe_wheel(wheel).megabytes == round(wheel.stat().st_size / 1e6, 1)
    assert [model.name for model in list_origin(str(wheel.parent))] == ["xx-yy"]
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


def test_get_installs_with_pip(
    wheel: Path, tmp_path: Path, installing: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    run = installing
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
    with pytest.raises(ModelError, match=r"has no wheel of xx-yz; did you mean xx-yy\?"):
        install_model("xx-yz", str(wheel.parent))


# --- an index ---


class Index(ThreadingHTTPServer):
    """A simple index of wheels: PEP 503, and PEP 691 where JSON is asked for and allowed."""

    def __init__(self, folder: Path, *, as_json: bool = True, ranges: bool = True) -> None:
        self.folder, self.as_json, self.ranges = folder, as_json, ranges
        self.digest: str | None = None
        """What the index says of every file, instead of the truth."""
        self.sent = 0
        super().__init__(("127.0.0.1", 0), _IndexHandler)
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/simple"

    def files(self) -> dict[str, list[Path]]:
        projects: dict[str, list[Path]] = {"numpy": []}
        for path in sorted(self.folder.glob("*.whl")):
            projects.setdefault(path.name.split("-")[0].replace("_", "-"), []).append(path)
        return projects


class _IndexHandler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        if self.path.startswith("/files/"):
            self._send_file((self.server.folder / self.path.removeprefix("/files/")).read_bytes())
            return
        wants_json = self.server.as_json and "v1+json" in self.headers["Accept"]
        project = self.path.removeprefix("/simple").strip("/")
        files = self.server.files()
        if project and project not in files:
            self.send_error(404)
        elif wants_json:
            self._send(json.dumps(self._describe(project)), "application/vnd.pypi.simple.v1+json")
        else:
            self._send(self._page(project), "text/html")

    def _digest(self, path: Path) -> str:
        return self.server.digest or hashlib.sha256(path.read_bytes()).hexdigest()

    def _describe(self, project: str) -> dict[str, Any]:
        files = self.server.files()
        if not project:
            return {"meta": {"api-version": "1.0"}, "projects": [{"name": one} for one in files]}
        return {
            "name": project,
            "files": [
                {
                    "filename": path.name,
                    "url": f"/files/{path.name}",
                    "hashes": {"sha256": self._digest(path)},
                    "yanked": "-9.9-" in path.name,
                }
                for path in files[project]
            ],
        }

    def _page(self, project: str) -> str:
        files = self.server.files()
        if not project:
            links = [f'<a href="/simple/{one}/">{one}</a>' for one in files]
        else:
            links = [
                f'<a href="/files/{path.name}#sha256={self._digest(path)}"'
                f"{' data-yanked' if '-9.9-' in path.name else ''}>{path.name}</a>"
                for path in files[project]
            ]
        return f"<!DOCTYPE html><html><body>{'<br/>'.join(links)}</body></html>"

    def _send_file(self, content: bytes) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        if not asked or not self.server.ranges:
            self._send(content, "application/octet-stream")
            return
        part = content[int(asked[1]) : int(asked[2]) + 1]
        place = f"bytes {asked[1]}-{int(asked[1]) + len(part) - 1}/{len(content)}"
        self._send(part, "application/octet-stream", 206, {"Content-Range": place})

    def _send(
        self, body: str | bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in ({"Content-Type": kind} | (headers or {})).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.server.sent += len(content)

    def log_message(self, *_: Any) -> None:
        """Keep the requests out of the output of the tests."""


@pytest.fixture(scope="module")
def shelf(wheel: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels: two versions of xx-yy, one that was withdrawn, and one of another."""
    folder = tmp_path_factory.mktemp("shelf")
    shutil.copy(wheel, folder)
    for name, version in (
        ("xx-yy", "1.10"),
        ("xx-yy", "1.11rc1"),
        ("xx-yy", "9.9"),
        ("aa-bb", "1"),
    ):
        build_wheel(trained, name, version, folder)
    return folder


@pytest.fixture(params=["json", "html", "html without ranges"])
def index(request: pytest.FixtureRequest, shelf: Path) -> Iterator[Index]:
    server = Index(shelf, as_json=request.param == "json", ranges="without" not in request.param)
    yield server
    server.shutdown()
    server.server_close()


def test_an_index_is_listed(index: Index, shelf: Path) -> None:
    found = {one.name: one for one in list_origin(index.url)}
    assert list(found) == ["aa-bb", "xx-yy"]
    wheels = {name: describe_wheel(next(shelf.glob(f"*{name}-1*"))) for name in ("aa_bb",)}
    listed, whole = found["aa-bb"], wheels["aa_bb"]
    assert listed == replace(whole, path=listed.path)
    assert found["xx-yy"].path.endswith("/dragoman_xx_yy-1.10-py3-none-any.whl"), "newest and final"


def test_a_list_takes_little_of_large_wheels(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Index(shelf)
    monkeypatch.setattr("dragoman.workflows.model_index._BLOCK", 2048)
    try:
        list_origin(server.url)
        total = sum(path.stat().st_size for path in shelf.iterdir())
        assert server.sent < total / 3
    finally:
        server.shutdown()
        server.server_close()


def test_get_installs_from_an_index(
    index: Index, installing: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = installing("get", "xx-yy", "--from", index.url)
    assert done.returncode == 0, done.stderr
    [info] = tmp_path.glob("dragoman_xx_yy-*.dist-info")
    assert info.name == "dragoman_xx_yy-1.10.dist-info"
    again = installing("get", "xx-yy", "--from", index.url)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == (
        "dragoman: xx-yy: is installed already, version 1.10; dragoman remove xx-yy removes it, "
        "and --force installs it anew\n"
    )


def test_what_an_index_gets_wrong_is_refused_and_nothing_is_installed(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_packages, "_pip", _no_pip)
    server = Index(shelf)
    try:
        with pytest.raises(ModelError, match=r"xx-yz: http.* no such model; did you mean xx-yy"):
            install_model("xx-yz", server.url)
        with pytest.raises(ModelError, match="has no such model; see dragoman models --from http"):
            install_model("zebra", server.url)
        server.digest = "0" * 64
        with pytest.raises(ModelError, match="whl: does not have the sha256 of the index"):
            install_model("xx-yy", server.url)
        with pytest.raises(DragomanError, match="answers 404"):
            list_origin(server.url.replace("simple", "nowhere"))
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(DragomanError, match=r"cannot be reached \(.*refused\); look at the addr"):
        install_model("xx-yy", server.url)


def _no_pip(*arguments: str) -> None:
    raise AssertionError(f"pip must not be called: {arguments}")


# --- what goes wrong ---


@pytest.fixture
def installing(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run dragoman where pip installs into this test's folder."""
    environment = {
        **os.environ,
        "PIP_TARGET": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "dragoman", *arguments],
            env=environment | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def _sealed(wheel: Path, out: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Write a copy of a wheel whose files are changed, with the hashes that they then have."""

    def seal(files: dict[str, bytes]) -> None:
        change(files)
        record = "dragoman_xx_yy-1.2.dist-info/RECORD"
        rows = [f"{name},{_record_hash(data)},{len(data)}" for name, data in files.items()]
        files[record] = "\n".join([*rows, f"{record},,"]).encode()

    return _rewritten(wheel, out, seal)


def _newer_format(files: dict[str, bytes]) -> None:
    card = json.loads(files["dragoman_xx_yy/card.json"])
    files["dragoman_xx_yy/card.json"] = json.dumps(card | {"format": 99}).encode()


def _unknown_setting(files: dict[str, bytes]) -> None:
    files["dragoman_xx_yy/config.toml"] += b"flying = true\n"


def _other_layout(files: dict[str, bytes]) -> None:
    """Give it int8 weights of another layout."""
    header = json.dumps({"__metadata__": {"layout": "99"}}).encode()
    files["dragoman_xx_yy/int8.safetensors"] = len(header).to_bytes(8, "little") + header


def _half_the_weights(files: dict[str, bytes]) -> None:
    weights = files["dragoman_xx_yy/weights.safetensors"]
    files["dragoman_xx_yy/weights.safetensors"] = weights[: len(weights) // 2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_newer_format, r"made by a newer Dragoman \(format 99, this one reads 1\); update Dragom"),
        (_unknown_setting, "is not a model of this version"),
        (_half_the_weights, "weights.safetensors"),
    ],
)
def test_a_model_of_another_version_is_refused_before_it_is_installed(
    wheel: Path,
    tmp_path: Path,
    change: Callable[[dict[str, bytes]], None],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_packages, "_pip", _no_pip)
    changed = _sealed(wheel, tmp_path, change)
    with pytest.raises(ModelError, match=reason) as caught:
        install_model("xx-yy", str(changed))
    assert "\n" not in str(caught.value)
    assert "/tmp" not in str(caught.value).replace(str(changed), "")
    [listed] = list_origin(str(tmp_path))
    assert listed.problem == str(caught.value), "a list says so too, and goes on"


@needs_kernel
def test_int8_weights_of_another_version_are_refused(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_packages, "_pip", _no_pip)
    small = tmp_path / "small"
    write_int8_model(open_model(trained), small)
    whole = build_wheel(small, "xx-yy", "1.2", tmp_path)
    (tmp_path / "changed").mkdir()
    changed = _sealed(whole, tmp_path / "changed", _other_layout)
    with pytest.raises(ModelError, match="written by another version of Dragoman"):
        install_model("xx-yy", str(changed))


def test_a_damaged_byte_is_refused_in_one_line_or_changes_nothing(
    wheel: Path, tmp_path: Path
) -> None:
    content, whole = wheel.read_bytes(), describe_wheel(wheel)
    changed, refused = tmp_path / wheel.name, []
    for place in range(0, len(content), len(content) // 40):
        changed.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            found = describe_wheel(changed)
        except DragomanError as error:
            refused.append(str(error))
        else:  # a date of a file in the archive, which nobody reads
            assert found == replace(whole, path=found.path)
    assert len(refused) >= 36
    assert not any("\n" in message for message in refused)


def test_a_full_disk_is_noticed_before_anything_is_written(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_packages, "_pip", _no_pip)
    usage = SimpleNamespace(free=1000)
    monkeypatch.setattr(model_packages.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DragomanError, match=r"xx-yy: takes \d+ MB, and .* has 0 MB left; free"):
        install_model("xx-yy", str(wheel))


def test_what_pip_leaves_half_done_is_removed(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    kept = tmp_path / "dragoman_zz_zz"
    kept.mkdir()

    def fail(*arguments: str) -> None:
        (tmp_path / "dragoman_xx_yy").mkdir()
        (tmp_path / "dragoman_xx_yy" / "card.json").write_text("{}")
        raise DragomanError("pip install: [Errno 28] No space left on device")

    monkeypatch.setattr(model_packages, "_pip", fail)
    with pytest.raises(DragomanError, match="No space left on device"):
        install_model("xx-yy", str(wheel))
    assert list(tmp_path.iterdir()) == [kept]


def test_no_room_to_unpack_is_one_line(
    wheel: Path, installing: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    resource = pytest.importorskip("resource")
    command = [sys.executable, "-m", "dragoman", "get", "xx-yy", "--from", str(wheel)]
    done = subprocess.run(
        command,
        env=os.environ | {"PIP_TARGET": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n"
            "ERROR: No matching distribution found for dragoman-en-ko\n",
            "pip's index cannot be reached; look at the network",
        ),
        (
            "ERROR: No matching distribution found for dragoman-en-ko\n",
            "en-ko: pip's index has no dragoman-en-ko; --from takes another index",
        ),
        ("/usr/bin/python: No module named pip\n", "has no pip; install dragoman-en-ko by hand"),
        ("ERROR: first\nERROR: the last\n", "pip download: the last"),
    ],
)
def test_what_pip_says_is_one_line(
    stderr: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = SimpleNamespace(returncode=1, stderr=stderr)
    monkeypatch.setattr(model_packages.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(DragomanError, match=message):
        install_model("en-ko")


def test_a_model_of_a_folder_is_neither_installed_nor_removed(
    trained: Path, tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(trained / "model", tmp_path / "xx-yy")
    monkeypatch.setenv("DRAGOMAN_MODELS", f"nowhere{os.pathsep}{tmp_path}")
    monkeypatch.setattr(model_packages, "_pip", _no_pip)
    assert installed_models() == {"xx-yy": tmp_path / "xx-yy"}
    with pytest.raises(ModelError, match=r"xx-yy: lies in .* already; it is used from there"):
        install_model("xx-yy", str(wheel))
    with pytest.raises(ModelError, match=r"xx-yy: was not installed; it lies in "):
        remove_model("xx-yy")
    assert dragoman.load("xx-yy").path == tmp_path / "xx-yy"


def test_a_clone_has_its_own_folder_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_MODELS")
    assert model_folders() == [Path(__file__).resolve().parents[2] / "models"]
    monkeypatch.setenv("DRAGOMAN_MODELS", "")
    assert model_folders() == []
