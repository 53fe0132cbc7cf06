"""These commands translate, score given translations, and list alternatives."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO

import typer

from dragoman.cli.console import (
    TranslationProgress,
    load_translator,
    print_message,
    print_result,
    progress_counter,
    read_lines,
)
from dragoman.cli.options import Device, Json, Model, Precision, Shortlist, Window, With
from dragoman.errors import ConfigError, DataError, DragomanError, ModelError

if TYPE_CHECKING:
    from dragoman.inference import Translation, Translator
    from dragoman.inference.translation_memory import TranslationMemory
    from dragoman.search import SamplingOptions

LIKE_A_FILE: Final = re.compile(r"\S*(?:[/\\]\S*|\w\.\w{1,5})")
"""A word that looks like the name of a file: it has a slash or an extension."""
JUDGED_CHARACTERS: Final = 2000
"""So much of an input is enough to tell its language."""
LINES_OF_A_BLOCK: Final = 200
"""Lines that no blank line divides are translated so many at a time."""


def translate(
    model: Model,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES]...",
            help="Text or documents, directories of them, or the text itself; default: stdin.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE|DIR", help="Where the translation goes."),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Each line is one sentence; none is joined or split.")
    ] = False,
    protect: Annotated[
        bool,
        typer.Option(help="Keep numbers, URLs, addresses, tags, placeholders, unknown characters."),
    ] = True,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print what search finds for each line, unchecked.")
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column of a table, or a field of JSON lines; again."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite translated files that exist.")
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Also what a .po or XLIFF file has translated already."),
    ] = False,
    memory: Annotated[
        Path | None,
        typer.Option(metavar="TMX", help="A translation memory; new sentences are added to it."),
    ] = None,
    glossary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Terms and translations, .tsv or .csv.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what was found wrong, as JSON; - is stderr."),
    ] = None,
    flag_below: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Name the lines with less confidence than this."),
    ] = None,
    with_: With = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.")] = None,
    n_best: Annotated[int, typer.Option(help="Translations of each line, best first.")] = 1,
    diverse: Annotated[
        int, typer.Option(metavar="GROUPS", help="Groups of hypotheses that avoid each other.")
    ] = 1,
    diversity: Annotated[float | None, typer.Option(help="How much they do; default: 2.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's α.")] = None,
    min_length: Annotated[int | None, typer.Option(help="Fewest pieces.")] = None,
    max_extra: Annotated[int | None, typer.Option(help="Most pieces beyond the source's.")] = None,
    no_repeat_ngram: Annotated[
        int | None, typer.Option(metavar="N", help="No N pieces occur twice in a translation.")
    ] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(help="Above 1: pieces that occurred become less likely.")
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="How every translation must begin.")] = None,
    must: Annotated[
        list[str] | None,
        typer.Option(metavar="WORDS", help="What each must contain; may be given again."),
    ] = None,
    must_not: Annotated[
        list[str] | None,
        typer.Option(metavar="WORDS", help="What none may contain; may be given again."),
    ] = None,
    sample: Annotated[int, typer.Option(help="Draw so many translations of each line.")] = 0,
    temperature: Annotated[float, typer.Option(help="Of sampling; below 1 is less random.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Sample from the k likeliest pieces.")] = 0,
    top_p: Annotated[float, typer.Option(help="Sample from the likeliest of this mass.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 1,
    align: Annotated[bool, typer.Option("--align", help="Word alignments, with --json.")] = False,
    alignments: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write word alignments here: 0-0 1-2 …, a line each."),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Whole files to --out, in parts that are kept: local, ray.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="With --engine: how many translate.")] = None,
    part: Annotated[int, typer.Option(help="With --engine: lines of a part.")] = 2000,
    window: Window = None,
    device: Device = "auto",
    precision: Precision = "auto",
    draft: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="A small model that guesses ahead; --window 1 --beam 1."
        ),
    ] = None,
    shortlist: Shortlist = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Ask for lines at a prompt; :help there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Translate text, files and directories.

    Text keeps its lines and its layout. Documents (.docx .pptx .odt .epub .html .md .srt .vtt .po
    .xliff .json .csv …) are written beside the originals. With --n-best or --sample a line becomes
    several: its number, score and text between tabs.
    """
    options: dict[str, Any] = {
        "beam": beam,
        "n_best": n_best,
        "diverse": diverse,
        "diversity": diversity,
        "length_penalty": length_penalty,
        "min_length": min_length,
        "max_extra": max_extra,
        "no_repeat_ngram": no_repeat_ngram,
        "repetition_penalty": repetition_penalty,
        "prefix": prefix,
        "must": must or (),
        "must_not": must_not or (),
        "lines": lines,
        "protect": protect,
        "raw": raw,
        "align": align or alignments is not None,
    }
    if glossary is not None:
        from dragoman.inference import Glossary

        options["glossary"] = Glossary.read(glossary)
    by_line = raw or as_json or n_best > 1 or bool(sample) or alignments is not None
    if interactive and (inputs or engine or sample or alignments or as_json or out):
        raise ConfigError(
            "-i translates at a prompt; leave out files, --engine, --sample, --json, --out"
        )
    texts, files = _sort_inputs(inputs or ())
    if engine is not None:
        _refuse_with_engine(
            {
                "--n-best": n_best > 1,
                "--sample": sample > 0,
                "--align": align,
                "--alignments": alignments is not None,
                "--precision": precision != "auto",
                "--draft": draft is not None,
                "--shortlist": shortlist,
                "--memory": memory is not None,
                "--report": report is not None,
                "--flag-below": flag_below is not None,
            }
        )
        translate_in_parts(
            [model, *(with_ or ())],
            files,
            out,
            engine=engine,
            workers=workers,
            part=part,
            device=device,
            as_json=as_json,
            **options,
        )
        return
    translator = load_translator(
        model, *(with_ or ()), device=device, precision=precision, draft=draft
    )
    if shortlist:
        translator.use_shortlist()
    if draft is not None and (beam or translator.config.search.beam) != 1:
        raise ConfigError("--draft works with greedy search only; add --beam 1")
    if (align or alignments) and not translator.aligns:
        option = "--align" if align else "--alignments"
        raise ModelError(
            f"{model}: has no attention to its source, so no alignments; leave out {option}"
        )
    if interactive:
        from dragoman.cli.interactive import run_prompt

        run_prompt(translator, options)
        return
    if sample:
        options["sampling"] = _sampling(
            translator,
            samples=sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            max_extra=max_extra,
            min_length=min_length or 0,
        )
    findings = Findings(translator, report, flag_below)
    with _open_memory(memory, translator) as options["memory"]:
        if _are_documents(files, out):
            if by_line or texts:
                raise ConfigError(
                    "documents are translated to documents; leave out --json, --n-best, --sample, "
                    "--alignments and texts beside them"
                )
            plan = {"columns": column or (), "overwrite": overwrite, "force": force}
            _translate_documents(translator, files, out, findings, plan | options)
        elif by_line:
            _translate_by_line(
                translator, texts, files, out, alignments, window, as_json, findings, options
            )
        else:
            _translate_text(translator, texts, files, out, window, findings, options)
    findings.finish()


def _sort_inputs(inputs: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Return which arguments are texts, and which name files or directories.

    What names no file is a text, unless it looks like the name of one.
    """
    texts, files = [], []
    for one in inputs:
        if one == "-" or _exists(one):
            files.append(Path(one))
        elif LIKE_A_FILE.fullmatch(one):
            raise DataError(f"{one}: no such file")
        else:
            texts.append(one)
    if texts and files:
        raise ConfigError(f"'{texts[0]}' is not a file; give files, or a text to translate")
    return [" ".join(texts)] if texts else [], files


def _exists(name: str) -> bool:
    try:
        return bool(name) and Path(name).exists()
    except (OSError, ValueError):  # too long for a name, or with a character that none has
        return False


def _refuse_with_engine(given: dict[str, bool]) -> None:
    if refused := [name for name, used in given.items() if used]:
        raise ConfigError(
            f"--engine writes a line for a line and chooses how to compute; leave out {refused[0]}"
        )


def _are_documents(files: Sequence[Path], out: Path | None) -> bool:
    """Return whether results are written file by file; plain text alone goes to standard output."""
    from dragoman.inference.documents.formats import MEDIA_TYPES

    extensions = {file.suffix[1:].lower() for file in files}
    if any(file.is_dir() for file in files) or extensions & set(MEDIA_TYPES) - {"txt"}:
        return True
    into_directory = out is not None and (out.is_dir() or str(out).endswith(("/", "\\")))
    return bool(files) and into_directory


# --- text ---


def _translate_text(
    translator: Translator,
    texts: list[str],
    files: list[Path],
    out: Path | None,
    window: int | None,
    findings: Findings,
    options: dict[str, Any],
) -> None:
    """Translate running text as it comes; what is translated when the user stops it is kept."""
    waits = not files and not texts and sys.stdin.isatty()
    lines: Iterable[str] = texts or _read_with_ends(files or [Path("-")])
    blocks = lines if waits or options["lines"] else _join_blocks(lines)
    progress = TranslationProgress(files, shown=out is not None or not sys.stdout.isatty())
    ended = True
    try:
        with _open_output(out, files) as file, progress:
            for found in translator.translate_lines(
                blocks, window=1 if waits else window, **options
            ):
                findings.add(found, progress.lines + 1)
                progress.add(found.source)
                file.write(found.text)
                ended = found.text.endswith("\n")
                file.flush()
            if not ended:  # the text of an argument
                file.write("\n")
    except KeyboardInterrupt:
        print_message(f"stopped after {progress.describe()}{'' if out is None else f', in {out}'}")
        raise


def _read_with_ends(files: Sequence[Path]) -> Iterator[str]:
    from dragoman.data.readers.parallel import open_text

    for file in files:
        refuse_binary(file)
        line = "\n"
        for line in open_text(file, keep_ends=True):
            if line.endswith("\n"):
                yield line
        if not line.endswith("\n"):
            yield f"{line}\n"


def refuse_binary(path: Path) -> None:
    """Raise DataError for a file that is no text, and say what it is, if its first bytes do."""
    from dragoman.inference.documents.file_signatures import recognize
    from dragoman.inference.documents.formats import MEDIA_TYPES

    if not path.is_file():
        return
    with path.open("rb") as file:
        kind, _, advice = recognize(file.read(1 << 16)).partition("; ")
    if kind and kind not in ("a gzip file", "an XML file", "a web page"):
        formats = ", ".join(f".{one}" for one in MEDIA_TYPES)
        raise DataError(f"{path}: {kind}, not text; {advice or f'documents are {formats}'}")


def _join_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that may belong together as one text: up to a blank line, and at most a page."""
    block: list[str] = []
    try:
        for line in lines:
            block.append(line)
            if not line.strip() or len(block) >= LINES_OF_A_BLOCK:
                yield "".join(block)
                block = []
    except DragomanError:  # what was read before the fault is translated
        yield "".join(block)
        raise
    if block:
        yield "".join(block)


def _translate_by_line(
    translator: Translator,
    texts: list[str],
    files: list[Path],
    out: Path | None,
    alignments: Path | None,
    window: int | None,
    as_json: bool,
    findings: Findings,
    options: dict[str, Any],
) -> None:
    """Translate each line by itself, and print its translations with what belongs to them."""
    lines = texts or read_lines(files or [Path("-")])
    waits = not files and not texts and sys.stdin.isatty()
    found = translator.translate_lines(lines, window=1 if waits else window, **options)
    several = options["n_best"] > 1 or "sampling" in options
    with _open_output(out, files) as output, _open_output(alignments, files) as pairs:
        for number, translation in enumerate(found, 1):
            findings.add(translation, number)
            ranked = (translation, *translation.alternatives)
            if as_json:
                table = translation.to_dict() | findings.flag(translation)
                print(json.dumps(table, ensure_ascii=False), file=output)
            elif several:
                for one in ranked:
                    print(f"{number}\t{one.score:.4f}\t{one.text}", file=output)
            else:
                print(translation.text, file=output)
            if output.isatty():
                output.flush()
            if alignments is not None:
                pairs.write(f"{translation.pharaoh}\n")


# --- documents ---


def _translate_documents(
    translator: Translator,
    files: list[Path],
    out: Path | None,
    findings: Findings,
    options: dict[str, Any],
) -> None:
    """Translate documents to documents; print the path of each result."""
    from dragoman.workflows.translate_files import translate_files

    failed = 0
    try:
        with progress_counter("texts") as progress:
            for done in translate_files(translator, files, out, progress=progress, **options):
                for found in done.translations:
                    findings.add(found, where=done.source)
                if done.error:
                    failed += 1
                    print_message(done.error)
                elif done.result is not None:
                    print_result(str(done.result))
    except KeyboardInterrupt:
        print_message("stopped; the files named above are complete")
        raise
    if failed:
        raise typer.Exit(2)


# --- what was found wrong ---


class Findings:
    """Count what was found wrong with translations, and tell the user what matters."""

    def __init__(
        self, translator: Translator, report: Path | None, flag_below: float | None
    ) -> None:
        self._languages = translator.config.data.languages
        self._report, self._flag_below = report, flag_below
        self._counts: Counter[tuple[str, bool]] = Counter()
        self._details: list[dict[str, Any]] = []
        self._lines = self._flagged = 0
        self._unjudged: dict[str, str] = {}
        """This is the beginning of each input whose language has not been judged yet."""
        self._judged: set[str] = set()

    def add(self, found: Translation, line: int | None = None, where: Path | None = None) -> None:
        """Note a translation that began on this line of the input, or stood in this file."""
        self._lines += sum(1 for one in found.source.splitlines() if one.strip())
        place = f"{where}" if where is not None else f"line {line}"
        for issue in found.issues:
            self._counts[issue.kind, issue.repaired] += 1
            if self._report is not None:
                self._details.append({"where": place, **issue.to_dict()})
        name = "" if where is None else f"{where}: "
        if self._languages and name not in self._judged:
            self._unjudged[name] = f"{self._unjudged.get(name, '')}{found.source}\n"
            if len(self._unjudged[name]) >= JUDGED_CHARACTERS:
                self._judge_language(name)
        if self.flag(found):
            self._flagged += 1
            print_message(f"{place}: confidence {found.confidence:.2f}: {_shorten(found.text)}")

    def flag(self, found: Translation) -> dict[str, bool]:
        """Return what JSON says of a translation with little confidence."""
        if self._flag_below is None or found.confidence is None:
            return {}
        return {"flagged": True} if found.confidence < self._flag_below else {}

    def finish(self) -> None:
        """Write the report, and say what could not be mended."""
        sys.stdout.flush()  # judging a language takes a moment
        for name in list(self._unjudged):
            self._judge_language(name)
        lost = self._counts["item", False]
        if lost:
            some = "1 number or other item" if lost == 1 else f"{lost:,} numbers or other items"
            print_message(f"{some} may not have come through; --report FILE names them")
        if self._report is None:
            return
        kinds = sorted({kind for kind, _ in self._counts})
        table = {
            "lines": self._lines,
            "flagged": self._flagged,
            "issues": {
                kind: {
                    "found": self._counts[kind, True] + self._counts[kind, False],
                    "repaired": self._counts[kind, True],
                }
                for kind in kinds
            },
            "details": self._details,
        }
        text = json.dumps(table, ensure_ascii=False, indent=2)
        if str(self._report) == "-":
            print(text, file=sys.stderr)
        else:
            with _open_output(self._report) as file:
                file.write(text + "\n")

    def _judge_language(self, name: str) -> None:
        """Say once for each input that it is in another language than the model translates from."""
        from dragoman.text.languages import language_name
        from dragoman.text.wrong_language import find_other_language

        self._judged.add(name)
        other = find_other_language(self._unjudged.pop(name), self._languages[0])
        if other is not None:
            self._counts["language", False] += 1
            print_message(
                f"{name}this seems to be {language_name(other)}, and the model translates from "
                f"{language_name(self._languages[0])}"
            )


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:60]}…"


@contextmanager
def _open_memory(path: Path | None, translator: Translator) -> Iterator[TranslationMemory | None]:
    """Give the translation memory, and write back what was added to it, also when stopped."""
    if path is None:
        yield None
        return
    from dragoman.inference.translation_memory import TranslationMemory

    source, target = translator.config.data.languages or ("", "")
    memory = TranslationMemory.open(path, source, target)
    try:
        yield memory
    finally:
        if memory.added:
            memory.write(path)
            print_message(f"{memory.added:,} new translations are in {path}")


@contextmanager
def _open_output(path: Path | None, inputs: Sequence[Path] = ()) -> Iterator[TextIO]:
    """Open a file to write, or give standard output; what was there stays if nothing is written.

    The file is written under another name first, so that a failure leaves what there was; when the
    user stops the program, what is done is kept.
    """
    if path is None:
        yield sys.stdout
        return
    if any(_same_file(path, one) for one in inputs):
        raise ConfigError(f"{path}: would be overwritten by its translation; choose another --out")
    unfinished = path.with_name(f"{path.name}.unfinished")
    special = path.exists() and not path.is_file()
    place = path if special else unfinished
    try:
        file = place.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror or error})") from None
    try:
        with file:
            yield file
    except KeyboardInterrupt:
        if not special:
            unfinished.replace(path)
        raise
    except BaseException:
        if not special:
            unfinished.unlink(missing_ok=True)
        raise
    if not special:
        unfinished.replace(path)


def _same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def score(
    model: Model,
    source: Annotated[Path, typer.Option(help="Source lines.")],
    target: Annotated[Path, typer.Option(help="A translation of each.")],
    with_: With = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Every piece, too.")] = False,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's α.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Print the log-probability of each given translation.

    With --json also the score, which search ranks by.
    """
    translator = load_translator(model, *(with_ or ()), device=device)
    sources, targets = list(read_lines([source])), list(read_lines([target]))
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources)} lines and {target} has {len(targets)}; line n of each "
            "must belong together"
        )
    for one in translator.score(sources, targets, length_penalty=length_penalty):
        if as_json:
            print_result(json.dumps(one.to_dict(tokens=tokens), ensure_ascii=False))
        elif tokens:
            pieces = zip(one.tokens, one.log_probs, strict=True)
            listed = " ".join(f"{piece} {price:.4f}" for piece, price in pieces)
            print_result(f"{one.log_prob:.4f}\t{listed}")
        else:
            print_result(f"{one.log_prob:.4f}")


def alternatives(
    model: Model,
    text: Annotated[str, typer.Argument(help="A sentence.")],
    prefix: Annotated[str, typer.Option(help="How its translation begins, in words.")] = "",
    count: Annotated[int, typer.Option(help="How many words.")] = 5,
    with_: With = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """List the words that could come next in a translation, and where each leads."""
    found = load_translator(model, *(with_ or ()), device=device).alternatives(text, prefix, count)
    if as_json:
        print_result([one.to_dict() for one in found])
        return
    width = max((len(one.word) for one in found), default=0)
    for one in found:
        print_result(f"{one.probability:.4f}  {one.word:{width}}  {one.translation}")


def _sampling(translator: Translator, *, max_extra: int | None, **options: Any) -> SamplingOptions:
    from dragoman.search import SamplingOptions

    extra = translator.config.search.max_extra if max_extra is None else max_extra
    return SamplingOptions(max_extra=extra, **options)


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
        print_message(f"stopped; the same command goes on in {out}")
        raise
    paths = list(map(str, found.files))
    print_result(asdict(found) | {"files": paths} if as_json else "\n".join(paths))
