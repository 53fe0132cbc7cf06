"""The command line translates running text, lines, documents, and files in parts."""

from __future__ import annotations

import json
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from dragoman.cli.console import (
    TranslationProgress,
    open_output,
    print_message,
    print_result,
    progress_counter,
    read_lines,
)
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.messages import counted

if TYPE_CHECKING:
    from dragoman.cli.findings import Findings
    from dragoman.inference import Translation, Translator

BLOCK_LINES: Final = 50
"""Lines that no blank line divides are translated about so many at a time."""
MAX_BLOCK_LINES: Final = 200
"""Where no line ends with a sentence, so many lines are translated at a time."""

SAMPLE_CHARACTERS: Final = 4000
"""So much of an input is looked at to tell its language."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Hold what is to be translated, with what, and where the translation goes."""

    translator: Translator
    texts: list[str]
    """The texts on the command line."""
    files: list[Path]
    """The files to read; without any, and without texts, standard input is read."""
    out: Path | None
    """The translation goes here; None means standard output, or beside a document."""
    findings: Findings
    options: dict[str, Any]
    """The options of `Translator.translate`."""
    window: int | None = None

    @property
    def is_typed(self) -> bool:
        """Return whether the user types what is translated, and waits for each line."""
        return not self.files and not self.texts and sys.stdin.isatty()

    def translate(self, texts: Iterable[str]) -> Iterator[Translation]:
        """Yield the translations of texts as they are ready."""
        window = 1 if self.is_typed else self.window
        return self.translator.translate_lines(texts, window=window, **self.options)

    def progress(self) -> TranslationProgress:
        """Return what shows the progress, unless the translation itself is seen."""
        seen = self.out is None and sys.stdout.isatty()
        return TranslationProgress(self.files, self.out, shown=not seen and not self.is_typed)


# --- the language of the input ---


def sample_text(texts: Sequence[str], files: Sequence[Path]) -> str:
    """Return enough of what is to be translated to tell its language.

    Of several files the first that has letters speaks for all; of standard input, what is there.
    """
    if texts:
        return texts[0]
    for file in _all_files(files or [Path("-")]):
        sample = _sample_stdin() if str(file) == "-" else "".join(_sample_file(file))
        if any(map(str.isalpha, sample)):
            return sample
    return ""


def _all_files(files: Sequence[Path]) -> Iterator[Path]:
    """Yield files, and the documents of directories."""
    from dragoman.inference.documents.formats import MEDIA_TYPES

    for file in files:
        if not file.is_dir():
            yield file
            continue
        for one in sorted(file.rglob("*")):
            if one.suffix[1:].lower() in MEDIA_TYPES and one.is_file():
                yield one


def _sample_stdin() -> str:
    """Return the beginning of standard input, which can still be read as a whole."""
    coming = sys.stdin.buffer
    start: bytes = coming.peek(SAMPLE_CHARACTERS) if hasattr(coming, "peek") else b""
    return start[:SAMPLE_CHARACTERS].decode("utf-8", "ignore")


def _sample_file(path: Path) -> Iterator[str]:
    """Yield the beginning of a text, or of a document's units; a broken document has none."""
    from dragoman.inference.documents.formats import MEDIA_TYPES

    lines: Iterable[str]
    if path.suffix[1:].lower() in set(MEDIA_TYPES) - {"txt"}:
        from dragoman.workflows.translate_files import read_texts

        lines = ()
        with suppress(DragomanError):  # the translation will say what is wrong with it
            lines = [f"{text}\n" for text in read_texts(path)]
    else:
        lines = _read_with_ends([path])
    count = 0
    for line in lines:
        yield line[:SAMPLE_CHARACTERS]
        count += len(line)
        if count >= SAMPLE_CHARACTERS:
            return


# --- running text ---


def translate_text(job: Job) -> None:
    """Translate running text as it comes; what is translated when the user stops it is kept."""
    lines: Iterable[str] = job.texts or _read_with_ends(job.files or [Path("-")])
    # Who writes to a pipe may wait for the answer to a paragraph.
    least = BLOCK_LINES // 2 if job.files else 1
    blocks = lines if job.is_typed or job.options["lines"] else _join_blocks(lines, least)
    ended = True
    with job.progress() as progress, open_output(job.out, job.files) as file:
        for found in job.translate(blocks):
            job.findings.add(found, progress.lines + 1)
            progress.add(found.source)
            file.write(found.text)
            ended = found.text.endswith("\n")
            file.flush()
        if not ended:  # the text of an argument
            file.write("\n")


def _read_with_ends(files: Sequence[Path]) -> Iterator[str]:
    from dragoman.data.readers.parallel import open_text

    for file in files:
        _refuse_binary(file)
        line = "\n"
        for line in open_text(file, keep_ends=True):
            if line.endswith("\n"):
                yield line
        if not line.endswith("\n"):
            yield f"{line}\n"


def _refuse_binary(path: Path) -> None:
    """Raise DataError for a file that is not text, and say what it is, if its first bytes do."""
    from dragoman.inference.documents.file_signatures import recognize
    from dragoman.inference.documents.formats import MEDIA_TYPES

    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(1 << 16)
    kind, _, advice = recognize(start).partition("; ")
    if not kind and b"\0" in start and not _is_unicode(start):
        kind = "a binary file"
    if kind and kind not in ("a gzip file", "an XML file", "a web page"):
        formats = ", ".join(f".{one}" for one in MEDIA_TYPES)
        raise DataError(f"{path}: {kind}, not text; {advice or f'documents are {formats}'}")


def _is_unicode(start: bytes) -> bool:
    """Return whether the start of a file may be text in UTF-8, or in UTF-16 with its mark."""
    if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return True
    try:
        getincrementaldecoder("utf-8")().decode(start)  # a character may be cut at the end
    except UnicodeDecodeError:
        return False
    return True


def _join_blocks(lines: Iterable[str], least: int) -> Iterator[str]:
    """Yield lines that may belong together as one text: up to a blank line, and at most a page.

    A text has at least so many lines, unless it ends before; paragraphs tell each other's width.
    """
    from dragoman.text.sentence_splitting import ends_sentence

    block: list[str] = []
    try:
        for line in lines:
            block.append(line)
            most = BLOCK_LINES if ends_sentence(line.rstrip()) else MAX_BLOCK_LINES
            if (len(block) >= least and not line.strip()) or len(block) >= most:
                yield "".join(block)
                block = []
    except DragomanError:  # what was read before the fault is translated
        yield "".join(block)
        raise
    if block:
        yield "".join(block)


# --- line by line ---


def translate_by_line(job: Job, *, as_json: bool, alignments: Path | None) -> None:
    """Translate each line by itself, and print its translations with what belongs to them."""
    lines = job.texts or read_lines(job.files or [Path("-")])
    chosen = not (job.options["mbr"] is None and "rerank" not in job.options)
    several = job.options["n_best"] > 1 or ("sampling" in job.options and not chosen)
    with (
        job.progress() as progress,
        open_output(job.out, job.files) as output,
        open_output(alignments, job.files) as pairs,
    ):
        for number, found in enumerate(job.translate(lines), 1):
            job.findings.add(found, number)
            progress.add(found.source)
            if as_json:
                table = found.to_dict() | job.findings.flag(found)
                if job.translator.through:
                    table["through"] = job.translator.through
                print(json.dumps(table, ensure_ascii=False), file=output)
            elif several:
                for one in (found, *found.alternatives):
                    print(f"{number}\t{one.score:.4f}\t{one.text}", file=output)
            else:
                print(found.text, file=output)
            output.flush()
            if alignments is not None:
                pairs.write(f"{found.pharaoh}\n")


# --- documents ---


def are_documents(files: Sequence[Path], out: Path | None) -> bool:
    """Return whether results are written file by file; plain text alone goes to standard output."""
    if not files:
        return False
    from dragoman.inference.documents.formats import MEDIA_TYPES

    extensions = {file.suffix[1:].lower() for file in files}
    if any(file.is_dir() for file in files) or extensions & set(MEDIA_TYPES) - {"txt"}:
        return True
    return out is not None and (out.is_dir() or str(out).endswith(("/", "\\")))


def translate_documents(job: Job, **plan: Any) -> None:
    """Translate documents to documents; print the path of each result.

    The `plan` has further options of `translate_files`.
    """
    from dragoman.workflows.translate_files import translate_files

    count = failed = 0
    try:
        with progress_counter("texts") as progress:
            for done in translate_files(
                job.translator, job.files, job.out, progress=progress, **plan, **job.options
            ):
                for found in done.translations:
                    job.findings.add(found, where=done.source)
                if done.error:
                    failed += 1
                    print_message(done.error)
                elif done.result is not None:
                    count += 1
                    print_result(str(done.result))
    except KeyboardInterrupt:
        print_message(f"stopped after {counted(count, 'file')}")
        raise
    if failed:
        raise typer.Exit(2)


# --- whole files in parts ---


def translate_in_parts(
    models: list[Path], files: list[Path], out: Path | None, *, as_json: bool, **options: Any
) -> None:
    """Translate files and directories to files of the same names, in parts that can be resumed.

    The options are those of `translate_directory`.
    """
    from dragoman.workflows.bulk import translate_directory

    if out is None or not files:
        raise ConfigError(
            "--engine translates files to files: name them, or a directory, and --out"
        )
    try:
        with progress_counter("parts") as progress:
            found = translate_directory(
                models, files, out, tell=print_message, progress=progress, **options
            )
    except KeyboardInterrupt:
        print_message(f"stopped; run the same command again to continue in {out}")
        raise
    paths = list(map(str, found.files))
    print_result(asdict(found) | {"files": paths} if as_json else "\n".join(paths))
