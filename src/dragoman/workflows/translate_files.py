"""Documents are translated to documents, one by one or a directory of them with its structure.

Each result is written whole or not at all, so that what is there when the work is stopped is
complete. In a directory of results `.dragoman.json` remembers what each was made of; the same call
goes on with those that are missing or whose source has changed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dragoman.data import Progress
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.inference import Translation, Translator
from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.formats import MEDIA_TYPES, open_document
from dragoman.inference.documents.options import ALL_COLUMNS, DocumentOptions
from dragoman.inference.documents.unit_translation import translate_units
from dragoman.system.atomic_files import atomic_write, explain_os_errors
from dragoman.workflows.stages import identify_model

MAX_BYTES: Final = 1 << 30
"""A compressed document may unpack to so much."""
RECORD: Final = ".dragoman.json"
"""This file of a directory of results remembers what they were made of."""
FIRST_UNITS: Final = 50
"""So many texts of a document are translated before progress is reported first."""
MAX_UNITS: Final = 500
"""At most so many are translated between two reports of progress."""


@dataclass(frozen=True, slots=True)
class TranslatedFile:
    """Say what became of one file."""

    source: Path
    result: Path | None = None
    """The translated document is here; None where there is none."""
    error: str = ""
    """This line says why there is none."""
    translations: list[Translation] = field(default_factory=list)
    """These were made for it; none if its result was there already, or it was copied."""


def translate_document(
    document: Document,
    translate: Callable[[list[str], bool], list[Translation]],
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[bytes, list[Translation]]:
    """Return the document with its texts translated, and the translations.

    `translate` is given texts, and whether it has to align their words; it is called for some texts
    at a time, with `progress` told how many units are done.
    """
    made: list[Translation] = []

    def remember(texts: list[str], align: bool) -> list[Translation]:
        found = translate(texts, align)
        made.extend(found)
        return found

    units: list[Unit] = []
    count = FIRST_UNITS
    while len(units) < len(document.units):
        units += translate_units(document.units[len(units) : len(units) + count], remember)
        progress(len(units))
        count = min(2 * count, MAX_UNITS)
    return document.fill(units), made


def translate_files(
    translator: Translator,
    inputs: Sequence[Path],
    out: Path | None = None,
    *,
    columns: Sequence[str] = (),
    overwrite: bool = False,
    force: bool = False,
    progress: Progress = lambda stage, done, total: None,
    **options: Any,
) -> Iterator[TranslatedFile]:
    """Translate documents and directories of them; yield what became of each as it is done.

    A document's result stands beside it, with the target's language in its name, or at `out`. The
    files of a directory go to the same places of the directory `out`; what is no document is
    copied. A result that exists beside its source is overwritten only by `force`; what a catalogue
    of messages has translated already only by `overwrite`. `options` are those of
    `Translator.translate`.
    """
    plan = _plan_results(inputs, out, translator.config.data.target_language, force)
    source, target = translator.config.data.languages or (None, None)
    settings = DocumentOptions(
        columns=tuple(columns),
        join_lines=not options.get("lines"),
        overwrite=overwrite,
        source_language=source,
        target_language=target,
    )
    record = _Record(out, translator, settings, options) if out is not None else None

    def translate(texts: list[str], align: bool) -> list[Translation]:
        asked = options | {"align": align or bool(options.get("align"))}
        return translator.translate(texts, **asked)

    for path, result in plan:
        try:
            if record is not None and record.has(path, result):
                yield TranslatedFile(path, result)
                continue
            if _extension(path) not in MEDIA_TYPES:
                _copy(path, result)
                yield TranslatedFile(path, result)
                continue
            document = _read_document(path, settings)
            translated, made = translate_document(
                document, translate, _report_units(progress, path, document)
            )
            atomic_write(result, translated)
            if record is not None:
                record.add(path, result)
            yield TranslatedFile(path, result, translations=made)
        except DragomanError as error:
            yield TranslatedFile(path, error=str(error))


def read_texts(path: Path) -> list[str]:
    """Return the texts of a document, of all columns if it is a table."""
    settings = DocumentOptions(columns=(ALL_COLUMNS,))
    return [unit.text for unit in _read_document(path, settings).units]


def _read_document(path: Path, settings: DocumentOptions) -> Document:
    with explain_os_errors(path):
        content = path.read_bytes()
    try:
        return open_document(_extension(path), content, max_bytes=MAX_BYTES, options=settings)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _report_units(progress: Progress, path: Path, document: Document) -> Callable[[int], None]:
    total = len(document.units)
    return lambda done: progress(path.name, done, total)


def _extension(path: Path) -> str:
    return path.suffix[1:].lower()


def _extensions() -> str:
    return f"one of {', '.join(f'.{one}' for one in sorted(MEDIA_TYPES))}"


def _copy(path: Path, result: Path) -> None:
    with explain_os_errors(result):
        result.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, result)


# --- where results go ---


def _plan_results(
    inputs: Sequence[Path], out: Path | None, language: str | None, force: bool
) -> list[tuple[Path, Path]]:
    """Return each file with the place of its result; refuse what would overwrite something."""
    plan: list[tuple[Path, Path]] = []
    for path in inputs:
        if path.is_dir():
            plan += _plan_directory(path, out, alone=len(inputs) == 1)
        elif _extension(path) not in MEDIA_TYPES:
            raise DataError(f"{path}: cannot be translated; use {_extensions()}")
        elif out is None:
            plan.append((path, path.with_name(result_name(path, language))))
        elif len(inputs) > 1 or out.is_dir() or str(out).endswith("/"):
            plan.append((path, out / path.name))
        else:
            plan.append((path, out))
    places: dict[Path, Path] = {}
    for path, result in plan:
        resolved = result.resolve()
        if resolved == path.resolve():
            raise ConfigError(f"{path}: would be overwritten by its translation; choose --out")
        if resolved in places:
            raise ConfigError(f"{path} and {places[resolved]} would both become {result}")
        places[resolved] = path
        if out is None and result.exists() and not force:
            raise ConfigError(f"{result}: already exists; add --force to overwrite it, or --out")
    return plan


def result_name(path: Path, language: str | None) -> str:
    """Return the name of a translation: letter.de.docx for letter.docx and for letter.en.docx."""
    stem, name = path.stem, language or "translated"
    first, dot, code = stem.rpartition(".")
    if dot and len(code) in (2, 3) and code.isalpha() and code.islower():
        stem = first
    return f"{stem}.{name}{path.suffix}"


def _plan_directory(path: Path, out: Path | None, *, alone: bool) -> list[tuple[Path, Path]]:
    if out is None:
        raise ConfigError(f"{path}: a directory is translated to a directory; name it with --out")
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: is a file; --out must be a directory, as {path} is")
    place, root = out.resolve(), path.resolve()
    if place == root:
        raise ConfigError(f"{path}: would be overwritten by its translation; choose another --out")
    files = [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file() and place not in file.resolve().parents and file.name != RECORD
    ]
    if not any(_extension(file) in MEDIA_TYPES for file in files):
        raise DataError(f"{path}: contains no document that can be translated; use {_extensions()}")
    top = out if alone else out / path.name
    return [(file, top / file.relative_to(path)) for file in files]


def _identify_option(value: Any) -> str:
    """Return what says that an option has the same value as in another process."""
    if isinstance(value, Translator):
        return repr([identify_model(one.path) for one in value._loaded])
    return repr(value)


class _Record:
    """Remember in a directory of results what each was made of, and with which settings."""

    def __init__(
        self, out: Path, translator: Translator, settings: DocumentOptions, options: dict[str, Any]
    ) -> None:
        self._out = out
        # A memory grows with every file, and would have all of them translated again.
        given = {
            name: name if name == "memory" else _identify_option(value)
            for name, value in options.items()
            if value not in (None, ())
        }
        model = [identify_model(one.path) for one in translator._loaded]
        facts = json.dumps([model, repr(settings), given], sort_keys=True)
        self._settings = hashlib.sha256(facts.encode()).hexdigest()
        self._made: dict[str, str] = {}
        if not out.is_dir():
            return
        with suppress(OSError, ValueError, AttributeError):
            self._made = dict(json.loads((out / RECORD).read_text(encoding="utf-8")).items())

    def has(self, path: Path, result: Path) -> bool:
        """Return whether the result is there, made of the same file with the same settings."""
        name = self._name(result)
        return name in self._made and result.is_file() and self._made[name] == self._key(path)

    def add(self, path: Path, result: Path) -> None:
        """Remember a result that was just written."""
        if not self._out.is_dir():  # --out names a single file
            return
        self._made[self._name(result)] = self._key(path)
        atomic_write(self._out / RECORD, json.dumps(self._made, indent=1, sort_keys=True) + "\n")

    def _name(self, result: Path) -> str:
        return result.relative_to(self._out).as_posix() if self._out.is_dir() else result.name

    def _key(self, path: Path) -> str:
        with explain_os_errors(path):
            content = hashlib.sha256(path.read_bytes())
        content.update(self._settings.encode())
        return content.hexdigest()
