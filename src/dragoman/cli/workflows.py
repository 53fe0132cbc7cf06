"""These commands run long workflows in stages; each can be stopped and continued."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from dragoman.cli.console import message_printer, print_result, progress_counter
from dragoman.cli.options import Json, LengthPenalty, Quiet, Set, Tokenized

if TYPE_CHECKING:
    from dragoman.training.run import Outcome


class Result(Protocol):
    """Describe the result of a workflow, which may have trained a model."""

    @property
    def outcome(self) -> Outcome | None:
        """Return how training ended, if the workflow trained a model this time."""


R = TypeVar("R", bound=Result)


def run_workflow(
    do: Callable[..., R], plan: Any, out: Path, *, device: str, quiet: bool, **options: Any
) -> R:
    """Run the stages of a plan that `out` does not have yet; if stopped, say how to go on."""
    tell = message_printer(quiet)
    try:
        with progress_counter("sentences") as progress:
            found = do(
                plan, out, device=device, quiet=quiet, tell=tell, progress=progress, **options
            )
    except KeyboardInterrupt:
        tell(f"stopped; run the same command again to continue in {out}")
        raise
    if found.outcome is not None and found.outcome.signal is not None:
        raise typer.Exit(128 + found.outcome.signal)
    return found


def distill(
    teacher: Annotated[Path, typer.Argument(help="A model or run directory.")],
    files: Annotated[
        list[Path],
        typer.Argument(help="The training pairs: two aligned files; or one .tsv, .jsonl or .tmx."),
    ],
    out: Annotated[
        Path, typer.Option(help="The directory for all stages; continued if it exists.")
    ],
    also: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", metavar="MODEL", help="Another teacher, for an ensemble; can be repeated."
        ),
    ] = None,
    valid: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILES", help="Validation pairs, translated by people."),
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILES", help="Test pairs, scored at every validation but never used to choose."
        ),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="More source text, one sentence per line; can be repeated."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="The student's preset: 12-1, 6-2, … or a .toml file; default: the teacher's."
        ),
    ] = None,
    set_: Set = None,
    name: Annotated[
        str, typer.Option(help="Name of the student's run in --out, if there are several.")
    ] = "run",
    beam: Annotated[int, typer.Option(help="Hypotheses the teacher keeps; 1 is greedy.")] = 4,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[
        int, typer.Option(help="Of this many translations, take the nearest to the reference.")
    ] = 1,
    keep_originals: Annotated[
        bool, typer.Option("--keep-originals", help="Learn from the original pairs, too.")
    ] = False,
    shards: Annotated[int, typer.Option(help="How many processes translate.")] = 1,
    shard: Annotated[int, typer.Option(help="Which of them this is, counted from 1.")] = 1,
    translate_only: Annotated[
        bool, typer.Option("--translate-only", help="Stop when the pairs are translated.")
    ] = False,
    window: Annotated[int, typer.Option(help="Sentences translated before each save.")] = 2000,
    device: Annotated[
        str, typer.Option(help="Translate on cpu, cuda, or auto: the GPU if there is one.")
    ] = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a fast student of a translator.

    It learns from the teacher's translations of the training sources.
    If it is interrupted, the same command continues; see docs/distillation.md.
    """
    from dragoman.config import load_preset
    from dragoman.system.packages import require_package

    require_package("torch", "training")
    from dragoman.workflows.distill import Plan
    from dragoman.workflows.distill import distill as teach

    plan = Plan(
        teachers=[teacher, *(also or ())],
        files=files,
        text=text or (),
        valid=valid or (),
        test=test or (),
        beam=beam,
        length_penalty=length_penalty,
        n_best=n_best,
        window=window,
        shards=shards,
        shard=shard,
        keep_originals=keep_originals,
        name=name,
        config=load_preset(preset) if preset else None,
        assignments=set_ or (),
    )
    found = run_workflow(
        teach, plan, out, device=device, quiet=quiet, translate_only=translate_only
    )
    made = found.model or found.pairs
    if as_json:
        print_result(
            {"text": found.text, "missing": found.missing}
            | {"pairs": found.pairs and str(found.pairs)}
            | {"model": found.model and str(found.model)}
        )
    elif made is not None:
        print_result(str(made))


def selftrain(
    models: Annotated[
        list[Path], typer.Argument(help="A parser, or several trained on one prepared treebank.")
    ],
    trees: Annotated[
        list[Path], typer.Option("--trees", metavar="TREES", help="Gold trees to learn from.")
    ],
    text: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Raw text, one sentence per line; can be repeated."),
    ],
    out: Annotated[
        Path, typer.Option(help="The directory for all stages; continued if it exists.")
    ],
    valid: Annotated[
        list[Path] | None, typer.Option(metavar="TREES", help="Gold trees to validate on.")
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="TREES", help="Test trees, scored at every validation but never used to choose."
        ),
    ] = None,
    tokenized: Tokenized = False,
    shortest: Annotated[int, typer.Option(help="Skip sentences with fewer words.")] = 3,
    longest: Annotated[int, typer.Option(help="Skip sentences with more words.")] = 60,
    limit: Annotated[int | None, typer.Option(help="Parse at most this many sentences.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept; 1 is greedy.")] = 1,
    agree: Annotated[
        bool, typer.Option("--agree", help="Keep only trees that all models agree on.")
    ] = False,
    keep: Annotated[
        float | None,
        typer.Option(
            help="Share of trees to keep, the most confident; default: 0.5, or all with --agree."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Instead of --keep: keep trees of at least this confidence."),
    ] = None,
    gold_weight: Annotated[
        int, typer.Option(help="How often a gold tree is seen for each automatic one.")
    ] = 1,
    new_tokenizer: Annotated[
        bool, typer.Option("--new-tokenizer", help="Learn pieces and labels anew from all trees.")
    ] = False,
    preset: Annotated[
        str | None, typer.Option(help="A preset or a .toml file; default: the model's settings.")
    ] = None,
    set_: Set = None,
    parse_only: Annotated[
        bool, typer.Option("--parse-only", help="Stop when the automatic trees are written.")
    ] = False,
    window: Annotated[int, typer.Option(help="Sentences parsed before each save.")] = 2000,
    device: Annotated[
        str, typer.Option(help="Parse on cpu, cuda, or auto: the GPU if there is one.")
    ] = ("auto"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a parser on gold and automatic trees (§6.3).

    The automatic trees are those that a parser finds in raw text.
    If it is interrupted, the same command continues; see docs/selftraining.md.
    """
    from dragoman.config import load_preset
    from dragoman.system.packages import require_package

    require_package("torch", "training")
    from dragoman.workflows.selftrain import Plan
    from dragoman.workflows.selftrain import selftrain as teach

    plan = Plan(
        models=models,
        trees=trees,
        text=text,
        valid=valid or (),
        test=test or (),
        tokenized=tokenized,
        shortest=shortest,
        longest=longest,
        limit=limit,
        beam=beam,
        agree=agree,
        window=window,
        keep=keep,
        threshold=threshold,
        gold_weight=gold_weight,
        new_tokenizer=new_tokenizer,
        config=load_preset(preset) if preset else None,
        assignments=set_ or (),
    )
    found = run_workflow(teach, plan, out, device=device, quiet=quiet, parse_only=parse_only)
    if as_json:
        print_result(
            {"text": found.text, "automatic": found.automatic, "trees": str(found.trees)}
            | {"model": found.model and str(found.model)}
        )
    else:
        print_result(str(found.model or found.trees))
