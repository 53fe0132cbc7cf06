"""Several commands share these options and arguments, and the way their files are read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from dragoman.errors import ConfigError, DragomanError

if TYPE_CHECKING:
    from dragoman.config import Config


def complete_preset(incomplete: str) -> list[str]:
    """Return the presets whose names begin so, for the shell's completion."""
    from dragoman.config import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]


Beam = Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: the GPU if there is one.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LengthPenalty = Annotated[float | None, typer.Option(help="α of GNMT's length penalty.")]
Candidates = Annotated[
    int | None,
    typer.Option(help="With --mbr or --rerank: how many translations to choose from; default: 16."),
]
Epsilon = Annotated[
    float, typer.Option(help="With --sample: never draw pieces less probable than this.")
]
LengthReward = Annotated[
    float | None, typer.Option(help="With --rerank: what each piece adds to the score; default: 0.")
]
Mbr = Annotated[
    str | None,
    typer.Option(
        metavar="chrf|bleu", help="Choose what agrees most with the other candidates, by this."
    ),
]
Model = Annotated[Path, typer.Argument(help="A model or run directory, or a name.")]
Precision = Annotated[
    str,
    typer.Option(help="auto (int8 on a CPU, bf16 on a GPU, if the model allows), float32 or int8."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only warnings and results.")]
Rerank = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="Choose also by how probable the source is to a model back from it."
    ),
]
RerankWeight = Annotated[
    float | None, typer.Option(help="With --rerank: how much that counts; default: 0.25.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="SECTION.KEY=VALUE", help="Change a setting; see docs/config.md."
    ),
]
Shortlist = Annotated[
    bool, typer.Option("--shortlist", help="Consider likely pieces only; see dragoman shortlist.")
]
Window = Annotated[
    int | None,
    typer.Option(help="Lines read before the first is written; default: 2000, or 20000 on a GPU."),
]

Files = Annotated[
    list[Path],
    typer.Argument(
        help="Two aligned files, or one .tsv, .jsonl or .tmx; all may be .gz .bz2 .xz .zst."
    ),
]
Add = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILES", help="More pairs, in the same formats; can be repeated."),
]
Valid = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILES", help="Validation pairs; without them, some pairs are held out."),
]
Preset = Annotated[
    str,
    typer.Option(
        help="A preset (dragoman presets) or a .toml file.", autocompletion=complete_preset
    ),
]
TaskPreset = Annotated[
    str | None,
    typer.Option(
        help="A preset (dragoman presets) or a .toml file; default: base, or parsing.",
        autocompletion=complete_preset,
    ),
]
Task = Annotated[  # named, since Typer 0.27 takes a metavar that spells the option for its name
    str | None,
    typer.Option("--task", metavar="TASK", help="translation, or parsing if the files are trees."),
]
Languages = Annotated[
    str | None,
    typer.Option(
        metavar="EN,DE", help="Source and target language, if the files do not name them."
    ),
]
With = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        metavar="MODEL",
        help="Another model with the same tokeniser, for an ensemble; can be repeated.",
    ),
]
Tokenized = Annotated[
    bool, typer.Option("--tokenized", help="The words are already separated by spaces.")
]


class PairedFilesCommand(TyperCommand):
    """Let a command's options of parallel text take two words: ``--valid dev.en dev.de``.

    Typer's options take a fixed number of words. Here ``--valid dev.en dev.de`` is read as
    ``--valid dev.en --valid dev.de``, while a treebank, a TSV, a JSON-lines or a TMX file, which
    holds both sides, comes alone.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat each such option before its second file, then parse as usual."""
        return super().parse_args(ctx, expand_paired_files(args))


def _is_about_trees(words: Sequence[str]) -> bool:
    """Return whether --task or the preset of a command line says that its files are trees."""
    from dragoman.config import load_preset

    values = {name: value for name, value in pairwise(words) if name in ("--task", "--preset")}
    values |= dict(w.split("=", 1) for w in words if w.startswith(("--task=", "--preset=")))
    if "--task" in values:
        return values["--task"] == "parsing"
    try:
        return "--preset" in values and load_preset(values["--preset"]).data.task == "parsing"
    except DragomanError:  # the command will say what is wrong with the preset
        return False


def expand_paired_files(words: Sequence[str]) -> list[str]:
    """Return a command line in which each option of files stands before each of its files."""
    options = ("--valid", "--test", "--add", "--replay")
    if not any(word in options for word in words) or _is_about_trees(words):
        return list(words)
    from dragoman.data.readers import holds_both_sides

    repeated: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        repeated.append(word)
        if word in options and rest:
            first = rest.pop(0)
            repeated.append(first)
            prepared = word == "--replay" and Path(first).is_dir()
            alone = prepared or holds_both_sides(Path(first))
            if not alone and rest and not rest[0].startswith("-"):
                repeated += [word, rest.pop(0)]
    return repeated


def refuse_parsing(config: Config, advice: str) -> None:
    """Raise ConfigError with `advice` if the config is a parser's."""
    if config.data.task == "parsing":
        raise ConfigError(advice)
