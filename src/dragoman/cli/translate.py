"""This command translates text, files and directories."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.console import load_chain, load_translator, print_message, sampling_options
from dragoman.cli.findings import Findings
from dragoman.cli.inputs import path_exists, sort_inputs
from dragoman.cli.options import (
    Beam,
    Candidates,
    Device,
    Epsilon,
    Json,
    LengthPenalty,
    LengthReward,
    Mbr,
    Precision,
    Rerank,
    RerankWeight,
    Shortlist,
    Window,
    With,
)
from dragoman.cli.translation_modes import (
    Job,
    are_documents,
    sample_text,
    translate_by_line,
    translate_documents,
    translate_in_parts,
    translate_text,
)
from dragoman.errors import ConfigError, ModelError
from dragoman.messages import counted
from dragoman.system.numpy_threads import import_numpy_without_threads
from dragoman.text.formality import Wish

if TYPE_CHECKING:
    from dragoman.inference import Translator
    from dragoman.inference.model_chains import ModelChain
    from dragoman.inference.translation_memory import TranslationMemory


def translate(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A model or run directory, or a name; with --to or --from none is given."
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES]...",
            help="Text or documents, directories of them, or the text itself; default: stdin.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="CODE", help="Translate to this language with an installed model."
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="CODE", help="The language of the text; default: it is detected."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE|DIR",
            help="Where the translation goes; default: stdout, or beside the documents.",
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Each line is one sentence; none is joined or split.")
    ] = False,
    protect: Annotated[
        bool,
        typer.Option(
            help="Keep numbers, URLs, addresses, tags, placeholders and unknown characters."
        ),
    ] = True,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print what search finds for each line, unchecked.")
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A column of a table, or a field of JSON lines, to translate; can be repeated.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite translated files that already exist.")
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Translate again what a .po or XLIFF file has already translated."
        ),
    ] = False,
    memory: Annotated[
        Path | None,
        typer.Option(
            metavar="TMX",
            help="Translation memory; a .tmx learns new sentences, a .jsonl is only read.",
        ),
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Terms and their translations, .tsv or .csv."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what was found wrong, as JSON; - means stderr."),
    ] = None,
    flag_below: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Print each sentence whose confidence is below this to stderr."
        ),
    ] = None,
    with_: With = None,
    beam: Beam = None,
    n_best: Annotated[int, typer.Option(help="Translations of each line, best first.")] = 1,
    diverse: Annotated[
        int, typer.Option(metavar="GROUPS", help="Groups of hypotheses that avoid each other.")
    ] = 1,
    diversity: Annotated[
        float | None, typer.Option(help="How strongly the groups avoid each other; default: 2.")
    ] = None,
    length_penalty: LengthPenalty = None,
    min_length: Annotated[
        int | None, typer.Option(help="Fewest pieces that a translation may have.")
    ] = None,
    max_extra: Annotated[
        int | None, typer.Option(help="How many pieces longer than its source it may be.")
    ] = None,
    no_repeat_ngram: Annotated[
        int | None, typer.Option(metavar="N", help="No N pieces occur twice in a translation.")
    ] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(help="Above 1, pieces that have occurred become less likely.")
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="How every translation must begin.")] = None,
    must: Annotated[
        list[str] | None,
        typer.Option(metavar="WORDS", help="What every translation must contain; can be repeated."),
    ] = None,
    must_not: Annotated[
        list[str] | None,
        typer.Option(metavar="WORDS", help="What no translation may contain; can be repeated."),
    ] = None,
    sample: Annotated[
        int, typer.Option(help="Draw this many random translations of each line.")
    ] = 0,
    temperature: Annotated[
        float, typer.Option(help="With --sample: below 1 is less random.")
    ] = 1.0,
    top_k: Annotated[
        int, typer.Option(help="With --sample: draw from the k likeliest pieces; 0 means all.")
    ] = 0,
    top_p: Annotated[
        float,
        typer.Option(help="With --sample: draw from the likeliest pieces of this total."),
    ] = 1.0,
    epsilon: Epsilon = 0.0,
    seed: Annotated[int, typer.Option(help="With --sample: the random seed.")] = 1,
    mbr: Mbr = None,
    rerank: Rerank = None,
    candidates: Candidates = None,
    rerank_weight: RerankWeight = None,
    length_reward: LengthReward = None,
    formality: Annotated[
        Wish | None,
        typer.Option(help="How the reader is addressed, by a model that learned it with tags."),
    ] = None,
    align: Annotated[
        bool, typer.Option("--align", help="Add word alignments to what --json prints.")
    ] = False,
    alignments: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write each line's word alignment here, as 0-0 1-2 …"),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="Translate whole files to --out in parts, by local or ray."),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="With --engine: number of workers.")] = None,
    part: Annotated[int, typer.Option(help="With --engine: lines in a part.")] = 2000,
    window: Window = None,
    device: Device = "auto",
    precision: Precision = "auto",
    draft: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="A small model that guesses ahead; use --window 1 --beam 1."
        ),
    ] = None,
    shortlist: Shortlist = False,
    interactive: Annotated[
        bool,
        typer.Option(
            "--interactive", "-i", help="Translate lines typed at a prompt; :help explains it."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Translate text, files and directories, with a model or to a language.

    dragoman translate en-de letter.docx, or: dragoman translate letter.docx --to de

    Text keeps its lines and its layout. Documents (.docx .pptx .odt .epub .html .md .srt .vtt .po
    .xliff .json .csv …) are written beside the originals. With --n-best or --sample, each line
    becomes several: its number, score and text, separated by tabs.
    """
    import_numpy_without_threads()
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
        "mbr": mbr,
        "candidates": candidates,
        "rerank_weight": rerank_weight,
        "length_reward": length_reward,
        "formality": formality,
        "align": align or alignments is not None,
    }
    if glossary is not None:
        from dragoman.inference import Glossary

        options["glossary"] = Glossary.read(glossary)
    by_line = raw or as_json or n_best > 1 or alignments is not None
    by_line |= sample > 0 and mbr is None and rerank is None
    if interactive and (
        inputs or (model and (to or from_)) or engine or sample or alignments or as_json or out
    ):
        raise ConfigError(
            "-i translates at a prompt; leave out files, --engine, --sample, --json, --out"
        )
    words = [*([] if model is None else [model]), *(inputs or ())]
    named, rest = split_model(words, chosen_by_language=to is not None or from_ is not None)
    texts, files = sort_inputs(rest, "translate")
    chain = None if named is not None else _choose_chain(texts, files, from_, to, interactive)
    if chain is not None and (with_ or draft or (engine is not None and len(chain.models) > 1)):
        raise ConfigError(
            "--with, --draft and --engine need one model; name it, and leave out --to"
        )
    path = Path(named or "") if chain is None else chain.models[0].path
    if engine is not None:
        _refuse_with_engine(
            {
                "--n-best": n_best > 1,
                "--sample": sample > 0,
                "--rerank": rerank is not None,
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
            [path, *(with_ or ())],
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
    if chain is not None:
        translator = load_chain(chain, device=device, precision=precision)
    else:
        translator = load_translator(
            path, *(with_ or ()), device=device, precision=precision, draft=draft
        )
    if shortlist:
        translator.use_shortlist()
    if draft is not None and (beam or translator.config.search.beam) != 1:
        raise ConfigError("--draft works with greedy search only; add --beam 1")
    if (align or alignments) and not translator.aligns:
        option = "--align" if align else "--alignments"
        raise ModelError(
            f"{path}: has no attention to its source, so no alignments; leave out {option}"
        )
    translator.find_tag(formality)  # refuses what the model has not learned, before any output
    if rerank is not None:
        options["rerank"] = load_translator(Path(rerank), device=device, precision=precision)
    if interactive:
        from dragoman.cli.interactive import run_prompt

        run_prompt(translator, options)
        return
    if sample:
        options["sampling"] = sampling_options(
            translator,
            samples=sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            epsilon=epsilon,
            seed=seed,
            max_extra=max_extra,
            min_length=min_length or 0,
        )
    findings = Findings(translator, report, flag_below, check_language=not raw)
    with _open_memory(memory, translator) as options["memory"]:
        job = Job(
            translator=translator,
            texts=texts,
            files=files,
            out=out,
            findings=findings,
            options=options,
            window=window,
        )
        if are_documents(files, out):
            if by_line or texts:
                raise ConfigError(
                    "documents are translated to documents; leave out --json, --n-best, --sample, "
                    "--alignments and texts beside them"
                )
            translate_documents(job, columns=column or (), overwrite=overwrite, force=force)
        elif by_line:
            translate_by_line(job, as_json=as_json, alignments=alignments)
        else:
            translate_text(job)
    findings.finish()


# --- which model ---


def split_model(words: Sequence[str], *, chosen_by_language: bool) -> tuple[str | None, list[str]]:
    """Return the model that the first of the arguments names, if it does, and the other arguments.

    It does if it can: a directory of a model or a run, or a name of an installed model or a pair of
    languages. What has spaces, or is a file, is something to translate. Any other word was meant
    for a model. Where a language chooses the model, all arguments are texts or files, and a model
    among them is refused.
    """
    from dragoman.inference.model_chains import find_named_chain
    from dragoman.model_directory import names_a_model
    from dragoman.system.installed_models import describe_missing_model

    if not words:
        if not chosen_by_language and sys.stdin.isatty():
            raise ConfigError("give a model, or a text and --to; see dragoman translate --help")
        return None, []
    first, *rest = words
    if chosen_by_language:
        if (names_a_model(first) or find_named_chain(first)) and not Path(first).is_file():
            raise ConfigError(
                f"{first}: names a model, and --to and --from choose one; leave out either, or "
                f"write the text to stdin: echo {first} | dragoman translate --to …"
            )
        return None, list(words)
    is_model = path_exists(first) and (Path(first).is_dir() or names_a_model(first))
    if not is_model and (first == "-" or path_exists(first) or len(first.split()) != 1):
        return None, list(words)
    if not rest and first.isalpha() and not is_model and not names_a_model(first):
        raise ModelError(f"{describe_missing_model(first)}; to translate this word, add --to")
    return first, rest


def _choose_chain(
    texts: Sequence[str],
    files: Sequence[Path],
    source: str | None,
    target: str | None,
    interactive: bool,
) -> ModelChain:
    """Return the installed models for what is to be translated, by its language."""
    from dragoman.inference.model_chains import choose_chain

    for option, code in (("--from", source), ("--to", target)):
        if code is not None and not re.fullmatch(r"[A-Za-z]{2,3}([-_]\w+)?", code):
            raise ConfigError(f"{option} {code}: write a language's code, as in {option} de")
    if interactive and source is None:
        raise ConfigError("-i needs a model, or --from and --to")
    return choose_chain("" if source is not None else sample_text(texts, files), source, target)


def _refuse_with_engine(given: dict[str, bool]) -> None:
    if refused := [name for name, used in given.items() if used]:
        raise ConfigError(
            f"--engine writes a line for a line and chooses how to compute; leave out {refused[0]}"
        )


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
            print_message(f"{counted(memory.added, 'new translation')} added to {path}")
