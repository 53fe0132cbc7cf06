"""A model is packed into a wheel, and such a wheel is examined, installed and removed.

The wheel is pure data: one package that is a model directory, and an entry point that names it.
pip installs it; before that its files are compared with their hashes, and the model in it opened,
so that nothing is installed that could not be used.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from dragoman.errors import DragomanError, ModelError
from dragoman.model_directory import CARD_FILE, LoadedModel, open_model
from dragoman.system.installed_models import ENTRY_POINTS, distribution_name, package_name

_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LARGEST: Final = 1 << 30
"""No file of a model's wheel is larger than this."""
_FIXED_DATE: Final = (2020, 1, 1, 0, 0, 0)
"""Files in a wheel get this date, so that the same model makes the same bytes."""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """Hold what a list of models says about one of them."""

    name: str
    languages: tuple[str, ...]
    task: str
    megabytes: float
    scores: dict[str, Any]
    license: str
    path: str

    @classmethod
    def from_model(cls, name: str, loaded: LoadedModel, size: int, path: str) -> ModelDescription:
        """Describe an opened model."""
        data, card = loaded.config.data, loaded.card
        return cls(
            name=name,
            languages=data.languages,
            task=data.task,
            megabytes=round(size / 1e6, 1),
            scores=dict(card.get("scores") or card.get("validation") or {}),
            license=str(card.get("license", "not stated")),
            path=path,
        )


# --- making ---


def build_wheel(model: Path, name: str, version: str, out: Path) -> Path:
    """Write the wheel of a model directory, and return its path."""
    check_name(name)
    loaded = open_model(model)
    package = package_name(name)
    info = f"{package}-{version}.dist-info"
    license_name = str(loaded.card.get("license", "see the model's card"))
    files = {
        f"{package}/{file.name}": file.read_bytes()
        for file in sorted(loaded.path.iterdir())
        if file.is_file() and not file.name.startswith(".")
    }
    files[f"{package}/__init__.py"] = f'"""The model {name} of Dragoman."""\n'.encode()
    readme = files.get(f"{package}/README.md", b"").decode()
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {distribution_name(name)}",
        f"Version: {version}",
        f"Summary: The model {name} of Dragoman",
        f"License: {license_name}",
        "Description-Content-Type: text/markdown",
        "",
        readme,
    ]
    files[f"{info}/METADATA"] = "\n".join(metadata).encode()
    tags = "Wheel-Version: 1.0\nGenerator: dragoman\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/WHEEL"] = tags.encode()
    files[f"{info}/entry_points.txt"] = f"[{ENTRY_POINTS}]\n{name} = {package}\n".encode()
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{package}-{version}-py3-none-any.whl"
    temporary = path.with_suffix(".unfinished")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file_name, content in files.items():
            wheel.writestr(zipfile.ZipInfo(file_name, _FIXED_DATE), content, zipfile.ZIP_DEFLATED)
        record = io.StringIO()
        rows = [[file_name, _record_hash(data), len(data)] for file_name, data in files.items()]
        csv.writer(record, lineterminator="\n").writerows([*rows, [f"{info}/RECORD", "", ""]])
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", _FIXED_DATE), record.getvalue())
    temporary.replace(path)
    return path


def check_name(name: str) -> None:
    """Raise ModelError if no model can have this name."""
    if not _NAME.fullmatch(name):
        raise ModelError(
            f"{name}: not a model's name; it has lower-case letters, digits and hyphens, as en-de"
        )


def _record_hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


# --- examining ---


@contextmanager
def opened_wheel(path: Path) -> Iterator[tuple[str, LoadedModel]]:
    """Give a wheel's name and model, unpacked for the time being; refuse what is no model's wheel.

    Every file is compared with its hash. A wheel that brings anything but a model directory and its
    own description is refused, since installing it could run code.
    """
    try:
        with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as temporary:
            package = _check_files(path, wheel)
            directory = Path(temporary, "model")
            directory.mkdir()
            for item in wheel.infolist():
                file = PurePosixPath(item.filename)
                if file.parts[0] == package:
                    (directory / file.name).write_bytes(wheel.read(item))
            name = _named_model(path, wheel, package)
            yield name, open_model(directory)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{path}: a damaged wheel ({error}); fetch it again") from None


def _check_files(path: Path, wheel: zipfile.ZipFile) -> str:
    """Return the wheel's package, if its files are those of a model and have their hashes."""
    items = {item.filename: item for item in wheel.infolist()}
    folders = {PurePosixPath(name).parts[0] for name in items}
    info = [folder for folder in folders if folder.endswith(".dist-info")]
    packages = [folder for folder in folders if re.fullmatch(r"dragoman_[a-z0-9_]+", folder)]
    if len(info) != 1 or len(packages) != 1 or len(folders) != 2:
        raise ModelError(f"{path}: not the wheel of a model")
    [package] = packages
    if f"{package}/{CARD_FILE}" not in items:
        raise ModelError(f"{path}: not the wheel of a model: it has no {CARD_FILE}")
    for name, item in items.items():
        parts = PurePosixPath(name).parts
        if len(parts) != 2 or ".." in parts or item.file_size > _LARGEST:
            raise ModelError(f"{path}: not the wheel of a model: it has {name}")
    record = wheel.read(f"{info[0]}/RECORD").decode() if f"{info[0]}/RECORD" in items else ""
    hashes = {row[0]: row[1] for row in csv.reader(record.splitlines()) if len(row) == 3}
    for name in items:
        if name != f"{info[0]}/RECORD" and hashes.get(name) != _record_hash(wheel.read(name)):
            raise ModelError(f"{path}: {name} does not have its hash; fetch the wheel again")
    return package


def _named_model(path: Path, wheel: zipfile.ZipFile, package: str) -> str:
    """Return the name that the entry point gives the model."""
    for item in wheel.namelist():
        if item.endswith(".dist-info/entry_points.txt"):
            pattern = rf"\[{re.escape(ENTRY_POINTS)}\]\s+([a-z0-9-]+) = {re.escape(package)}\s*"
            if (found := re.fullmatch(pattern, wheel.read(item).decode())) and (
                package_name(found[1]) == package
            ):
                return found[1]
    raise ModelError(f"{path}: not the wheel of a model: its entry point names none")


def describe_wheel(path: Path) -> ModelDescription:
    """Return what a list of models says about a wheel."""
    with opened_wheel(path) as (name, loaded):
        return ModelDescription.from_model(name, loaded, path.stat().st_size, str(path))


def describe_directory(name: str, directory: Path) -> ModelDescription:
    """Return what a list of models says about an installed model."""
    loaded = open_model(directory)
    size = sum(file.stat().st_size for file in loaded.path.iterdir() if file.is_file())
    return ModelDescription.from_model(name, loaded, size, str(directory))


# --- installing ---


def install_model(name: str, origin: str | None = None) -> ModelDescription:
    """Fetch the wheel of a model, examine it, and install it with pip.

    The origin is a folder of wheels, a wheel, or the address of an index or of a wheel; by default
    pip's own index.
    """
    check_name(name)
    with tempfile.TemporaryDirectory() as temporary:
        wheel = _fetch(name, origin, Path(temporary))
        with opened_wheel(wheel) as (found, loaded):
            if found != name:
                raise ModelError(f"{wheel.name}: holds the model {found}, not {name}")
            described = ModelDescription.from_model(name, loaded, wheel.stat().st_size, "")
        _pip("install", "--no-deps", "--no-index", "--force-reinstall", str(wheel))
    return described


def remove_model(name: str) -> None:
    """Uninstall a model with pip."""
    check_name(name)
    _pip("uninstall", "--yes", distribution_name(name))


def _fetch(name: str, origin: str | None, directory: Path) -> Path:
    """Return the path of a model's wheel, brought into a directory if it was not on disk."""
    if origin is not None and Path(origin).is_file():
        return Path(origin)
    if origin is not None and Path(origin).is_dir():
        wheels = sorted(Path(origin).glob(f"{package_name(name)}-*.whl"))
        if wheels:
            return max(wheels, key=_wheel_version)
        raise ModelError(f"{origin}: has no wheel of {name}; see dragoman models --from {origin}")
    if origin is not None and not re.match(r"(https?|file)://", origin):
        raise ModelError(f"{origin}: no such file or folder, nor an address of an index")
    what, options = distribution_name(name), ["--no-deps", "--only-binary", ":all:"]
    if origin is not None and origin.endswith(".whl"):
        what = origin
    elif origin is not None:
        options += ["--index-url", origin]
    _pip("download", *options, "--dest", str(directory), what)
    wheels = list(directory.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelError(f"{what}: no wheel was fetched")
    return wheels[0]


def _wheel_version(path: Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", path.name.split("-")[1])]


def _pip(*arguments: str) -> None:
    """Run pip quietly; what it refuses is one line."""
    command = [sys.executable, "-m", "pip", *arguments]
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1"]
    if arguments[0] == "uninstall":
        quiet = quiet[:3]
    done = subprocess.run([*command, *quiet], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    if "No module named pip" in done.stderr:
        raise DragomanError(f"{sys.executable} has no pip; install {arguments[-1]} by hand")
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    reason = (lines or done.stderr.splitlines() or ["no reason given"])[-1]
    raise DragomanError(f"pip {arguments[0]}: {reason.removeprefix('ERROR: ')}")


def list_wheels(origin: Path) -> Sequence[ModelDescription]:
    """Describe the wheels of models in a folder, or one wheel."""
    paths = sorted(origin.glob("dragoman_*.whl")) if origin.is_dir() else [origin]
    if not paths or not paths[0].exists():
        raise ModelError(f"{origin}: no wheel of a model is there")
    return [describe_wheel(path) for path in paths]


def description_lines(models: Sequence[ModelDescription]) -> list[str]:
    """Return a table of models for people."""
    if not models:
        return ["no model is installed; dragoman get NAME installs one"]
    lines = []
    for model in models:
        languages = " → ".join(model.languages) or model.task
        scores = ", ".join(
            f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}"
            for key, value in model.scores.items()
        )
        size = f"{model.megabytes:>6.1f} MB"
        lines.append(f"{model.name:<12} {languages:<10} {size}  {model.license}; {scores}")
    return lines


def to_json(models: Sequence[ModelDescription]) -> str:
    """Return a list of models for programs."""
    keys = ("name", "languages", "task", "megabytes", "scores", "license", "path")
    return json.dumps([{key: getattr(model, key) for key in keys} for model in models], indent=1)
