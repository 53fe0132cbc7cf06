"""A simple index, as pip has them, is asked which models it has, and for their wheels.

Such an index (PEP 503, and PEP 691 for JSON) has a page that lists its projects, and a page for
each that lists its files with their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import io
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

from dragoman.errors import DragomanError, ModelError
from dragoman.system.atomic_files import explain_os_errors
from dragoman.system.installed_models import distribution_name, nearest_name, package_name

_ACCEPTED: Final = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.01"
)
_SECONDS: Final = 20.0
"""The index has this long to answer."""
_LARGEST_PAGE: Final = 1 << 27
_BLOCK: Final = 1 << 16
"""Parts of a wheel are read so many bytes at a time at least."""


@dataclass(frozen=True, slots=True)
class IndexedWheel:
    """Hold where an index has the wheel of a model."""

    name: str
    url: str
    hashes: dict[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """Return the name of the wheel's file."""
        return unquote(urlsplit(self.url).path.rpartition("/")[2])


def list_models(index: str) -> list[str]:
    """Return the names of the models that an index has."""
    prefix = distribution_name("")
    projects = (re.sub(r"[-_.]+", "-", one).lower() for one in _read_projects(_page(index)))
    return sorted(one.removeprefix(prefix) for one in projects if one.startswith(prefix))


def find_wheel(index: str, name: str) -> IndexedWheel:
    """Return the newest wheel of a model; raise ModelError where the index has none."""
    page = _page(f"{index.rstrip('/')}/{distribution_name(name)}", missing=True)
    if page is None:
        near = nearest_name(name, list_models(index))
        advice = f"did you mean {near}?" if near else f"see dragoman models --from {index}"
        raise ModelError(f"{name}: {index} has no such model; {advice}")
    wheels = [one for one in _read_files(page, name) if one.file_name.endswith(".whl")]
    wheels = [one for one in wheels if one.file_name.startswith(f"{package_name(name)}-")]
    if not wheels:
        raise ModelError(f"{name}: {index} has no wheel of this model, and nothing else is used")
    return max(wheels, key=lambda one: wheel_version(one.file_name))


def wheel_version(file_name: str) -> tuple[bool, list[int]]:
    """Return a wheel's version, to be compared; one that is not final comes before all others."""
    version = file_name.split("-")[1]
    return version.replace(".", "").isdigit(), [int(part) for part in re.findall(r"\d+", version)]


def download_wheel(wheel: IndexedWheel, directory: Path) -> Path:
    """Fetch a wheel into a directory; refuse one that does not have the hash of the index."""
    with _open(wheel.url) as coming:
        content = coming.read()
    for name, digest in wheel.hashes.items():
        if _is_known(name) and hashlib.new(name, content).hexdigest() != digest.lower():
            raise ModelError(
                f"{wheel.url}: does not have the {name} of the index; fetch it again, and if that "
                "does not help, do not use this index"
            )
    path = directory / wheel.file_name
    with explain_os_errors(path):
        path.write_bytes(content)
    return path


def _is_known(name: str) -> bool:
    return name in hashlib.algorithms_guaranteed and not name.startswith("shake")


# --- reading a wheel without fetching all of it ---


class RemoteFile(io.RawIOBase):
    """Read parts of a file that a server has, as `zipfile` asks for them.

    A server that gives no parts gives all of it, which is kept.
    """

    def __init__(self, url: str) -> None:
        self._url, self._place, self._blocks = url, 0, dict[int, bytes]()
        self.size = 0
        self._fetch(0)

    def _fetch(self, block: int) -> bytes:
        """Return a block of the file, from the server if it was not read before."""
        if block not in self._blocks:
            start = block * _BLOCK
            with _open(self._url, {"Range": f"bytes={start}-{start + _BLOCK - 1}"}) as coming:
                found = re.fullmatch(r"bytes \d+-\d+/(\d+)", coming.headers["content-range"] or "")
                content = coming.read(_BLOCK if found else -1)
            if found:
                self.size = int(found[1])
                self._blocks[block] = content
            else:
                self.size = len(content)
                count = range(0, max(1, len(content)), _BLOCK)
                self._blocks = {i // _BLOCK: content[i : i + _BLOCK] for i in count}
        return self._blocks.get(block, b"")

    def seekable(self) -> bool:
        """Return True: any part can be asked for."""
        return True

    def readable(self) -> bool:
        """Return True: a wheel is only read."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte that is read."""
        return self._place

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to another place."""
        self._place = max(0, offset + (0, self._place, self.size)[whence])
        return self._place

    def read(self, count: int | None = -1) -> bytes:
        """Return the bytes that come next, as many as asked for or as there are."""
        end = self.size if count is None or count < 0 else min(self.size, self._place + count)
        parts = []
        while self._place < end:
            block, start = divmod(self._place, _BLOCK)
            part = self._fetch(block)[start : start + end - self._place]
            if not part:
                raise DragomanError(f"{self._url}: ended early; try again")
            parts.append(part)
            self._place += len(part)
        return b"".join(parts)


# --- pages ---


@dataclass(frozen=True, slots=True)
class _Page:
    """Hold a page of an index as it came."""

    url: str
    content: Any
    """What its JSON says, or its HTML."""


class _Links(HTMLParser):
    """Collect the links of a page: where they lead, and what they are called."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, str | None], str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the attributes of a link; its text follows."""
        if tag == "a":
            self.found.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        """Take the text of the last link; what follows it is white space."""
        if self.found:
            attributes, text = self.found[-1]
            self.found[-1] = attributes, text + data.strip()


def _page(url: str, *, missing: bool = False) -> _Page | None:
    """Return a page of an index, or None if it may be missing and is."""
    url = f"{url.rstrip('/')}/"
    try:
        with _open(url, {"Accept": _ACCEPTED}, missing=missing) as coming:
            content = coming.read(_LARGEST_PAGE)
            kind, final = coming.headers.get_content_type(), coming.geturl()
    except _MissingError:
        return None
    try:
        text = content.decode("utf-8", "replace")
        return _Page(final, json.loads(text) if kind.endswith("json") else text)
    except ValueError:
        raise DragomanError(f"{url}: not a page of an index; give the address of one") from None


def _read_projects(page: _Page | None) -> list[str]:
    assert page is not None
    if isinstance(page.content, str):
        return [text for _, text in _Links(page.content).found]
    projects = page.content.get("projects", []) if isinstance(page.content, dict) else []
    return [str(one["name"]) for one in projects if isinstance(one, dict) and "name" in one]


def _read_files(page: _Page, name: str) -> Iterator[IndexedWheel]:
    """Yield the files of a project that are not withdrawn."""
    if isinstance(page.content, str):
        for attributes, _ in _Links(page.content).found:
            url, fragment = urldefrag(urljoin(page.url, attributes.get("href") or ""))
            algorithm, _, digest = fragment.partition("=")
            if "data-yanked" not in attributes:
                yield IndexedWheel(name, url, {algorithm: digest} if digest else {})
        return
    files = page.content.get("files", []) if isinstance(page.content, dict) else []
    for one in files:
        if not one.get("yanked"):
            yield IndexedWheel(name, urljoin(page.url, one["url"]), dict(one.get("hashes") or {}))


# --- asking ---


class _MissingError(Exception):
    """Say that the server has nothing there."""


@contextmanager
def _open(
    url: str, headers: dict[str, str] | None = None, *, missing: bool = False
) -> Iterator[http.client.HTTPResponse]:
    """Ask for an address; what goes wrong is one line, or _MissingError where that may happen."""
    parts = urlsplit(url)
    headers = dict(headers or {}) | {"User-Agent": "dragoman"}
    shown = url
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    try:
        with urllib.request.urlopen(
            urllib.request.Request(shown, headers=headers), timeout=_SECONDS
        ) as coming:
            yield coming
    except urllib.error.HTTPError as error:
        with error:
            if missing and error.code == 404:
                raise _MissingError from None
            raise DragomanError(f"{shown}: answers {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DragomanError(
            f"{shown}: cannot be reached ({reason}); look at the address and the network"
        ) from None
