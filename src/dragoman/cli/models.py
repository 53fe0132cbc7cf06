"""These commands describe, quantise, export and import model directories."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman import __version__
from dragoman.cli.console import (
    format_value,
    print_message,
    print_result,
    progress_counter,
    read_lines,
)
from dragoman.cli.options import Json, Model
from dragoman.errors import ConfigError, DataError, ModelError

if TYPE_CHECKING:
    from dragoman.data.prepare import Prepared
    from dragoman.inference.shortlist_training import ShortlistComparison
    from dragoman.model_directory import LoadedModel


def info(
    path: Annotated[
        Path | None,
        typer.Argument(help="The directory of a model, a run or a prepared corpus."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Describe a model, a run or a prepared corpus, or else this installation."""
    facts = _describe_installation() if path is None else _describe(path)
    lines = (f"{key.replace('_', ' ')}: {format_value(value)}" for key, value in facts.items())
    print_result(facts if as_json else "\n".join(lines))


def _describe(path: Path) -> dict[str, Any]:
    """Return what there is to say of a model, a run or a prepared corpus."""
    if (path / "run.json").exists():
        from dragoman.run_directory import describe_run

        return describe_run(path)
    if (path / "report.json").exists():
        return _describe_corpus(path)
    return _describe_model(path)


def _describe_installation() -> dict[str, Any]:
    from dragoman.inference.loading import describe_cpu_path

    return {
        "dragoman": __version__,
        "python": platform.python_version(),
        "pytorch": _version_of("torch"),
        "on this CPU": describe_cpu_path(),
    }


def _version_of(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _describe_model(path: Path) -> dict[str, Any]:
    from dragoman.inference.loading import describe_cpu_path
    from dragoman.model_directory import count_weights, open_model
    from dragoman.trees.tree_tokenizer import TreeTokenizer

    loaded = open_model(path)
    m = loaded.config.model
    languages = loaded.config.data.languages
    tokenizer = loaded.tokenizer
    actions = tokenizer.actions if isinstance(tokenizer, TreeTokenizer) else None
    task = (
        {"languages": " → ".join(languages) if languages else "not stated"}
        if actions is None
        else {"task": "parsing", "actions": f"{len(actions)} ({actions.order.name})"}
    )
    return {
        "kind": "model",
        **task,
        "architecture": f"{m.architecture}, {m.encoder_layers}+{m.decoder_layers} layers, d_model "
        f"{m.d_model}, d_ff {m.d_ff}, {m.heads} heads",
        "pieces": f"{len(loaded.tokenizer):,} ({loaded.tokenizer.kind})",
        "parameters": f"{count_weights(loaded):,}" + (", in int8 only" * loaded.has_only_int8),
        "on this CPU": describe_cpu_path(m),
        **{
            key: ", ".join(map(str, value)) if key == "formality" else value
            for key, value in loaded.card.items()
            if key not in ("format", "parameters")
        },
    }


def _describe_corpus(path: Path) -> dict[str, Any]:
    from dragoman.data.prepare import Prepared

    prepared = Prepared.open(path)
    if len(prepared.train) == 0:
        raise ModelError(f"{path}: contains no pairs")
    first, *rest = prepared.lines()
    facts: dict[str, Any] = {"kind": "prepared corpus", "cleaning": first}
    for line in rest:
        key, colon, value = line.partition(": ")
        if colon:
            facts[key.strip()] = value
    return facts


def quantize(
    model: Model,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Make a model of int8 weights alone here, to use."
        ),
    ] = None,
) -> None:
    """Save a model's weights in int8, so that it loads faster on a CPU.

    With --out the model itself stays as it is, and a smaller one is made that can be used, but
    not exported.
    """
    from dragoman.model_directory import INT8_FILE, open_model, write_int8_file, write_int8_model

    loaded = open_model(model)
    if out is None:
        write_int8_file(loaded)
    else:
        write_int8_model(loaded, out)
    file = (loaded.path if out is None else out) / INT8_FILE
    before = loaded.weights_file.stat().st_size
    print_result(f"{file}: {file.stat().st_size / 1e6:,.1f} MB, instead of {before / 1e6:,.1f} MB")


def shortlist(
    model: Model,
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Its training pairs: aligned files, or a directory that dragoman prepare made."
        ),
    ],
    common: Annotated[
        int,
        typer.Option(min=1, help="How many of the most frequent pieces every sentence may use."),
    ] = 4096,
    most: Annotated[
        int, typer.Option(min=0, help="How many further pieces each piece of the source adds.")
    ] = 50,
    sentences: Annotated[int, typer.Option(min=1, help="Validation sentences to try it on.")] = 500,
    as_json: Json = False,
) -> None:
    """List the pieces that translations may need.

    They depend on the pieces of the source, and make decoding faster.
    The effect is measured and printed; dragoman translate --shortlist uses it. See docs/engine.md.
    """
    from dragoman.inference.cpu.shortlist import write_shortlist
    from dragoman.inference.shortlist_training import (
        check_supports_shortlist,
        compare_with_shortlist,
        make_shortlist,
    )
    from dragoman.model_directory import open_model
    from dragoman.system.packages import describe_need, has_package

    loaded = open_model(model)
    check_supports_shortlist(loaded)
    if not has_package("sacrebleu"):
        print_message(
            describe_need("sacrebleu", "to measure its effect on BLEU, dragoman shortlist")
        )
    with progress_counter() as progress, _open_or_prepare(loaded, files, progress) as data:
        if not len(data.valid):
            raise DataError(f"{data.path}: contains no validation pairs to try a shortlist on")
        made = make_shortlist(loaded, data, common=common, most=most, progress=progress)
        figures = [
            _figures(one, loaded.config.data.target_language)
            for one in compare_with_shortlist(loaded, made, data.valid, sentences)
        ]
    file = write_shortlist(loaded, made, {"tried": figures})
    if as_json:
        print_result({"file": str(file), "common": len(made.common), "tried": figures})
        return
    listed = len(made.targets) / (len(made.starts) - 1)
    print_result(
        f"{file}: {file.stat().st_size / 1e6:,.1f} MB; {len(made.common):,} pieces for all, "
        f"{listed:.1f} more for each piece of the source"
    )
    for one in figures:
        name = "greedy" if one["beam"] == 1 else f"beam {one['beam']}"
        bleu = f"BLEU {one['BLEU']:.2f} to {one['BLEU with it']:.2f}, " if "BLEU" in one else ""
        print_result(
            f"{name}: {one['changed']:,} of {one['sentences']:,} translations change, {bleu}"
            f"{one['speed']:.2f} times as fast"
        )


@contextmanager
def _open_or_prepare(loaded: LoadedModel, files: list[Path], progress: Any) -> Iterator[Prepared]:
    """Open a prepared corpus, or prepare one in the model's pieces in a temporary directory."""
    from dragoman.data.prepare import Prepared, prepare
    from dragoman.data.readers import group_files, open_corpus

    if len(files) == 1 and files[0].is_dir():
        yield Prepared.open(files[0])
        return
    config = loaded.config
    first, *more = group_files(files, config.data)
    corpus = open_corpus(first, config.data, [file for one in more for file in one])
    with tempfile.TemporaryDirectory(prefix="dragoman-shortlist-") as place:
        yield prepare(
            corpus, Path(place) / "data", config, tokenizer=loaded.tokenizer, progress=progress
        )


def _figures(one: ShortlistComparison, language: str | None) -> dict[str, Any]:
    """Return what a shortlist changes; without sacreBLEU, not whether BLEU does."""
    from dragoman.system.packages import has_package

    figures = {"beam": one.beam, "sentences": len(one.whole), "changed": one.changed}
    if not has_package("sacrebleu"):
        return figures | {"speed": one.speed}
    from dragoman.evaluation.metrics import bleu

    before, after = (
        bleu(some, one.references, language=language) for some in (one.whole, one.short)
    )
    return figures | {"BLEU": before, "BLEU with it": after, "speed": one.speed}


def export(
    model: Annotated[
        str, typer.Argument(help="A model or run directory; without DIR, also a preset.")
    ],
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="The directory to make; if it exists, it must be empty."
        ),
    ] = None,
    to: Annotated[
        str, typer.Option(help="huggingface, ctranslate2, onnx or marian.")
    ] = "huggingface",
    quantization: Annotated[
        str | None,
        typer.Option(help="For ctranslate2: int8, float16 and others; for marian: int8."),
    ] = None,
    sample: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="More sentences to compare on.")
    ] = None,
) -> None:
    """Write a model for another runtime, and compare the two.

    The directory is written only if the runtime translates a sample as Dragoman does. Without DIR,
    the command only says whether such a model can be exported.
    """
    from dragoman.interop.export import PACKAGES, check_exportable, require_packages

    if quantization is not None and to not in ("ctranslate2", "marian"):
        raise ConfigError(
            f"--quantization works only with --to ctranslate2 or marian, not {to}; leave it out"
        )
    if directory is None:
        from dragoman.config import Config, load_preset
        from dragoman.system.installed_models import find_installed_model

        path = Path(model)
        installed = find_installed_model(model)
        if installed is not None and not path.is_dir():
            path = installed
        config = Config.load(path / "config.toml") if path.is_dir() else load_preset(model)
        check_exportable(config, to, quantization)
        print_result(f"{model} can be exported to {to}")
        return
    from dragoman.interop.export import export as export_model
    from dragoman.model_directory import open_model

    loaded = open_model(Path(model))
    loaded.require_whole_weights("exporting")
    check_exportable(loaded.config, to, quantization)
    require_packages(*PACKAGES[to])
    options = {"quantization": quantization} if quantization is not None else {}
    texts = list(read_lines(sample)) if sample else []
    found = export_model(loaded, directory, to, texts=texts, **options)
    print_message(f"compared with {to}: {found}")
    print_result(str(directory))


def import_model(
    source: Annotated[
        Path, typer.Argument(help="A downloaded Marian model in Hugging Face's format.")
    ],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The model directory to make.")],
    sample: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="More sentences to compare on.")
    ] = None,
) -> None:
    """Import a Marian model, such as OPUS-MT's.

    A model directory is made from it, and the two are compared.
    Only weights are read, never code. The model translates, is evaluated and continues training
    like any other.
    """
    from dragoman.interop.export import require_packages

    require_packages("transformers")
    from dragoman.interop.marian_import import import_marian

    texts = list(read_lines(sample)) if sample else []
    found = import_marian(source, directory, texts=texts)
    print_message(f"compared with huggingface: {found}")
    print_result(str(directory))
