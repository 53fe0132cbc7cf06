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
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, cast

from dragoman.config import Config
from dragoman.errors import DragomanError, ModelError, first_line
from dragoman.model_directory import (
    CARD_FILE,
    CONFIG_FILE,
    LoadedModel,
    count_weights,
    open_model,
    read_description,
)
from dragoman.models.supported_settings import unsupported
from dragoman.system.atomic_files import explain_os_errors
from dragoman.system.installed_models import (
    ENTRY_POINTS,
    describe_missing_model,
    distribution_name,
    find_installed_model,
    model_packages,
    nearest_name,
    package_name,
)
from dragoman.workflows.model_index import (
    IndexedWheel,
    RemoteFile,
    download_wheel,
    find_wheel,
    list_models,
    wheel_version,
)

_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LARGEST: Final = 1 << 30
"""No file of a model's wheel is larger than this."""
_SPARE: Final = 20_000_000
"""So many bytes are left on the disk when a model is installed."""
_NO_NETWORK: Final = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|connection broken by",
    re.IGNORECASE,
)
"""pip says so where it could not reach an index, whatever it concludes from that."""
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
    problem: str = ""
    """This says why it cannot be used, if it cannot."""

    @classmethod
    def from_card(
        cls, name: str, config: Config, card: dict[str, Any], size: int, path: str
    ) -> ModelDescription:
        """Describe a model by its settings and its card."""
        data = config.data
        return cls(
            name=name,
            languages=data.languages,
            task=data.task,
            megabytes=round(size / 1e6, 1),
            scores=dict(card.get("scores") or card.get("validation") or {}),
            license=str(card.get("license", "not stated")),
            path=path,
        )

    @classmethod
    def of_unusable(cls, name: str, size: int, path: str, error: DragomanError) -> ModelDescription:
        """Describe a model that is there and cannot be used, by the error that says why."""
        return cls(name, (), "unknown", round(size / 1e6, 1), {}, "", path, str(error))


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
    with _damage_explained(path), zipfile.ZipFile(path) as wheel, _unpacking_folder() as folder:
        package = _check_files(path, wheel)
        directory = folder / package
        with explain_os_errors(folder):
            directory.mkdir()
            for item in wheel.infolist():
                file = PurePosixPath(item.filename)
                if file.parts[0] == package:
                    (directory / file.name).write_bytes(wheel.read(item))
        name = _named_model(path, wheel, package)
        try:
            loaded = open_model(directory)
            if not unsupported(loaded.config.model, "cpu engine"):
                count_weights(loaded)
        except ModelError as error:
            # The folder it was unpacked in is gone when the message is read.
            message = str(error).replace(f"{directory}/", "").replace(str(directory), name)
            raise ModelError(f"{path}: {message}") from None
        yield name, loaded


@contextmanager
def _unpacking_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


@contextmanager
def _damage_explained(path: Path | str) -> Iterator[None]:
    """Say in one line of a wheel that is not whole that it is damaged."""
    damage = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError)
    try:
        yield
    except damage as error:
        raise ModelError(f"{path}: a damaged wheel ({first_line(error)}); fetch it again") from None


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
        size = path.stat().st_size
        return ModelDescription.from_card(name, loaded.config, loaded.card, size, str(path))


def describe_directory(name: str, directory: Path) -> ModelDescription:
    """Return what a list of models says about an installed model."""
    size = sum(file.stat().st_size for file in directory.iterdir() if file.is_file())
    try:
        loaded = open_model(directory)
    except DragomanError as error:
        return ModelDescription.of_unusable(name, size, str(directory), error)
    return ModelDescription.from_card(name, loaded.config, loaded.card, size, str(directory))


def _describe_indexed(wheel: IndexedWheel) -> ModelDescription:
    """Return what a list of models says about a wheel of an index, of which little is fetched."""
    file = RemoteFile(wheel.url)
    try:
        with (
            _damage_explained(wheel.url),
            zipfile.ZipFile(cast(IO[bytes], file)) as opened,
            _unpacking_folder() as folder,
        ):
            for name in (CARD_FILE, CONFIG_FILE):
                content = opened.read(f"{package_name(wheel.name)}/{name}")
                (folder / name).write_bytes(content)
            config, card = read_description(folder)
    except DragomanError as error:
        return ModelDescription.of_unusable(wheel.name, file.size, wheel.url, error)
    return ModelDescription.from_card(wheel.name, config, card, file.size, wheel.url)


def list_origin(origin: str) -> Sequence[ModelDescription]:
    """Describe the models of a folder of wheels, of one wheel, or of an index."""
    if is_address(origin):
        if origin.endswith(".whl"):
            with _unpacking_folder() as folder:
                return [describe_wheel(download_wheel(IndexedWheel("", origin), folder))]
        names = list_models(origin)
        if not names:
            raise ModelError(f"{origin}: has no model of Dragoman; give the address of an index")
        return [_describe_indexed(find_wheel(origin, name)) for name in names]
    place = Path(origin)
    if place.is_file():
        return [describe_wheel(place)]
    paths = sorted(place.glob("dragoman_*.whl")) if place.is_dir() else []
    if not paths:
        raise ModelError(f"{origin}: no wheel of a model is there")
    return [_describe_or_say_why(path) for path in paths]


def _describe_or_say_why(path: Path) -> ModelDescription:
    try:
        return describe_wheel(path)
    except ModelError as error:
        name = path.name.split("-")[0].removeprefix(package_name("")).replace("_", "-")
        return ModelDescription.of_unusable(name, path.stat().st_size, str(path), error)


def is_address(origin: str) -> bool:
    """Return whether something is the address of an index or a wheel, and no path."""
    return re.match(r"https?://", origin) is not None


# --- installing ---


def install_model(name: str, origin: str | None = None, *, force: bool = False) -> ModelDescription:
    """Fetch the wheel of a model, examine it, and install it with pip.

    The origin is a folder of wheels, a wheel, or the address of an index or of a wheel; by default
    pip's own index. A model that is there is replaced only by `force`.
    """
    check_name(name)
    there = find_installed_model(name)
    if there is not None and not force:
        package = model_packages().get(name)
        how = f"dragoman remove {name} removes it, and --force installs it anew"
        what = (
            f"is installed already, version {package.version}; {how}"
            if package
            else (f"lies in {there} already; it is used from there")
        )
        raise ModelError(f"{name}: {what}")
    with _unpacking_folder() as folder:
        wheel = _fetch(name, origin, folder)
        with opened_wheel(wheel) as (found, loaded):
            if found != name:
                raise ModelError(f"{wheel.name}: holds the model {found}, not {name}")
            size = wheel.stat().st_size
            described = ModelDescription.from_card(name, loaded.config, loaded.card, size, "")
        _install(name, wheel)
    return described


def _install(name: str, wheel: Path) -> None:
    """Install a wheel with pip, whole or not at all."""
    place = Path(sysconfig.get_path("purelib"))
    with zipfile.ZipFile(wheel) as opened:
        needed = sum(item.file_size for item in opened.infolist())
    free = shutil.disk_usage(place if place.exists() else Path.cwd()).free
    if free < needed + _SPARE:
        raise DragomanError(
            f"{name}: takes {needed / 1e6:.0f} MB, and {place} has {free / 1e6:.0f} MB left; free "
            "some space, and run the same command again"
        )
    parts = package_name(name), f"{package_name(name)}-{wheel.name.split('-')[1]}.dist-info"
    places = [Path(folder, part) for folder in sys.path for part in parts]
    before = {one for one in places if one.exists()}
    try:
        _pip("install", "--no-deps", "--no-index", "--force-reinstall", str(wheel))
    except DragomanError:
        for one in places:
            if one not in before:
                shutil.rmtree(one, ignore_errors=True)
        raise


def remove_model(name: str) -> None:
    """Uninstall a model with pip."""
    if name not in model_packages():
        there = find_installed_model(name)
        if there is None:
            raise ModelError(describe_missing_model(name))
        raise ModelError(f"{name}: was not installed; it lies in {there}, which can be deleted")
    _pip("uninstall", "--yes", distribution_name(name))


def _fetch(name: str, origin: str | None, directory: Path) -> Path:
    """Return the path of a model's wheel, brought into a directory if it was not on disk."""
    if origin is None:
        return _fetch_with_pip(name, directory)
    if is_address(origin):
        indexed = IndexedWheel(name, origin)
        if not origin.endswith(".whl"):
            indexed = find_wheel(origin, name)
        return download_wheel(indexed, directory)
    place = Path(origin)
    if place.is_file():
        return place
    if not place.is_dir():
        raise ModelError(f"{origin}: no such file or folder, nor an address of an index")
    wheels = sorted(place.glob(f"{package_name(name)}-*.whl"))
    if wheels:
        return max(wheels, key=lambda one: wheel_version(one.name))
    names = [path.name.split("-")[0] for path in place.glob("dragoman_*.whl")]
    known = [one.removeprefix(package_name("")).replace("_", "-") for one in names]
    near = nearest_name(name, known)
    advice = f"did you mean {near}?" if near else f"see dragoman models --from {origin}"
    raise ModelError(f"{origin}: has no wheel of {name}; {advice}")


def _fetch_with_pip(name: str, directory: Path) -> Path:
    """Fetch a model's wheel from the index that pip is set up to use."""
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(directory)]
    try:
        _pip("download", *options, distribution_name(name))
    except DragomanError as error:
        if "No matching distribution" in str(error):
            raise ModelError(
                f"{name}: pip's index has no {distribution_name(name)}; --from takes another "
                "index, or a folder of wheels"
            ) from None
        raise
    return next(directory.glob("*.whl"))


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
    if _NO_NETWORK.search(done.stderr):
        raise DragomanError(
            "pip's index cannot be reached; look at the network, or give a folder of wheels with "
            "--from"
        )
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    reason = (lines or done.stderr.splitlines() or ["no reason given"])[-1]
    raise DragomanError(f"pip {arguments[0]}: {reason.removeprefix('ERROR: ')}")


# --- lists ---


def description_lines(models: Sequence[ModelDescription]) -> list[str]:
    """Return a table of models for people."""
    if not models:
        return ["no model is installed; dragoman get NAME installs one"]
    lines = []
    for model in models:
        languages = " → ".join(model.languages) or model.task
        if model.problem:
            lines.append(f"{model.name:<12} cannot be used: {model.problem}")
            continue
        scores = ", ".join(
            f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}"
            for key, value in model.scores.items()
        )
        size = f"{model.megabytes:>6.1f} MB"
        lines.append(f"{model.name:<12} {languages:<10} {size}  {model.license}; {scores}")
    return lines


def to_json(models: Sequence[ModelDescription]) -> str:
    """Return a list of models for programs."""
    return json.dumps([asdict(model) for model in models], indent=1, ensure_ascii=False)
