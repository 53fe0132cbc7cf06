"""The command that makes a shortlist of a model's training pairs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.console import counter, show
from dragoman.cli.options import Json, Model
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.prepare import Prepared
    from dragoman.inference.shortlist_training import Compared
    from dragoman.model_directory import LoadedModel

__all__ = ["shortlist"]


def shortlist(
    model: Model,
    files: Annotated[
        list[Path],
        typer.Argument(help="Its training pairs: aligned files, or what dragoman prepare made."),
    ],
    common: Annotated[
        int, typer.Option(min=1, help="Pieces that every sentence may use, the most frequent.")
    ] = 4096,
    most: Annotated[int, typer.Option(min=0, help="More for each piece of a source.")] = 50,
    sentences: Annotated[
        int, typer.Option(min=1, help="Validation sentences it is tried on.")
    ] = 500,
    as_json: Json = False,
) -> None:
    """List the pieces a translation may need by those of its source, for faster decoding.

    What that changes is tried and said; dragoman translate --shortlist uses it. docs/engine.md.
    """
    from dragoman.inference.cpu.shortlist import write_shortlist
    from dragoman.inference.shortlist_training import check, compare, make_shortlist
    from dragoman.model_directory import open_model

    loaded = open_model(model)
    check(loaded)
    with counter() as progress, _prepared(loaded, files, progress) as data:
        if not len(data.valid):
            raise DataError(f"{data.path}: has no validation pairs to try a shortlist on")
        made = make_shortlist(loaded, data, common=common, most=most, progress=progress)
        figures = [_figures(one, loaded) for one in compare(loaded, made, data.valid, sentences)]
    file = write_shortlist(loaded, made, {"tried": figures})
    if as_json:
        show({"file": str(file), "common": len(made.common), "tried": figures})
        return
    listed = len(made.targets) / (len(made.starts) - 1)
    show(
        f"{file}: {file.stat().st_size / 1e6:,.1f} MB; {len(made.common):,} pieces for all, "
        f"{listed:.1f} for each piece of a source"
    )
    for one in figures:
        name = "greedy" if one["beam"] == 1 else f"beam {one['beam']}"
        show(
            f"{name}: of {one['sentences']:,} translations {one['changed']:,} change, BLEU "
            f"{one['BLEU']:.2f} to {one['BLEU with it']:.2f}, {one['speed']:.2f} times as fast"
        )


@contextmanager
def _prepared(loaded: LoadedModel, files: list[Path], progress: Any) -> Iterator[Prepared]:
    """A corpus in the model's pieces: the one that is there, or one that is made for now."""
    from dragoman.data.prepare import Prepared, prepare
    from dragoman.data.readers.open_corpus import open_corpus, sets_of

    if len(files) == 1 and files[0].is_dir():
        yield Prepared.open(files[0])
        return
    config = loaded.config
    first, *more = sets_of(files, config.data)
    corpus = open_corpus(first, config.data, [file for one in more for file in one])
    with tempfile.TemporaryDirectory(prefix="dragoman-shortlist-") as place:
        yield prepare(
            corpus, Path(place) / "data", config, tokenizer=loaded.tokenizer, progress=progress
        )


def _figures(one: Compared, loaded: LoadedModel) -> dict[str, Any]:
    from dragoman.evaluation.metrics import bleu

    languages = loaded.config.data.languages
    language = languages[1] if languages else None
    return {
        "beam": one.beam,
        "sentences": len(one.whole),
        "changed": one.changed,
        "BLEU": bleu(one.whole, one.references, language=language),
        "BLEU with it": bleu(one.short, one.references, language=language),
        "speed": one.speed,
    }
