"""These commands train models, and list what there is to train."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.console import (
    parse_languages,
    print_message,
    print_result,
    progress_counter,
    read_config,
)
from dragoman.cli.options import Json, Languages, Quiet, Set, Task, TaskPreset, Valid
from dragoman.errors import ConfigError


def train(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Aligned files, or a directory that dragoman prepare made."),
    ] = None,
    valid: Valid = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILES",
            help="Test pairs, scored at each validation (--from: before and after) but never used "
            "to choose; can be repeated.",
        ),
    ] = None,
    task: Task = None,
    preset: TaskPreset = None,
    set_: Set = None,
    languages: Languages = None,
    steps: Annotated[
        int | None, typer.Option(help="Optimiser steps; short for --set training.steps=STEPS.")
    ] = None,
    epochs: Annotated[
        float | None, typer.Option(help="Passes over the corpus, instead of --steps.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's directory; default: runs/DATE.")
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Adapt this model, run or installed model to the files; see docs/adaptation.md.",
        ),
    ] = None,
    replay: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILES",
            help="General text that --from must not forget: pairs, a prepared directory, or text "
            "in the source language; can be repeated.",
        ),
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Continue this run.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a model, adapt one to your own text, or continue a run.

    dragoman train corpus.en corpus.de --preset small --out runs/mine

    dragoman train mine.en mine.de --from en-de --replay general.en
    """
    from dragoman.config import DataConfig
    from dragoman.data.readers import group_files
    from dragoman.system.packages import require_package

    require_package("torch", "training")
    from dragoman.workflows import train as runs

    assignments = _collect_assignments(set_ or [], languages, steps, epochs)
    given = (files, valid, test, out, languages, preset, task, start_from, replay)
    if resume is not None and any(given):
        raise ConfigError(
            "--resume RUN takes only --set, --steps and --epochs; the run knows its files and "
            "preset"
        )
    with progress_counter() as progress:
        if resume is not None:
            outcome = runs.resume(
                *(resume, assignments),
                epochs=epochs,
                quiet=quiet,
                progress=progress,
                tell=print_message,
            )
        else:
            config = None
            if start_from is None or preset is not None:
                config = read_config(preset, set_, languages, files or [], task)
            elif task is not None:
                assignments.append(f"data.task={task}")
            kind = DataConfig(task="parsing") if task == "parsing" else DataConfig()
            outcome = runs.train(
                *(config, *(files or ())),
                valid=valid or (),
                tests=group_files(test or [], kind if config is None else config.data),
                run=out,
                start_from=start_from,
                replay=replay or (),
                assignments=assignments,
                epochs=epochs,
                quiet=quiet,
                progress=progress,
                tell=print_message,
            )
    if outcome.signal is not None:
        raise typer.Exit(128 + outcome.signal)
    if outcome.model is not None:
        print_result(
            {"run": str(outcome.run), "model": str(outcome.model), "steps": outcome.step}
            | {"seconds": round(outcome.seconds, 1), "score": outcome.score}
            | {"perplexity": outcome.perplexity}
            | ({} if outcome.report is None else {"report": outcome.report})
            if as_json
            else str(outcome.model)
        )


def _collect_assignments(
    assignments: list[str], languages: str | None, steps: int | None, epochs: float | None
) -> list[str]:
    """Return what the options change, as --set would; raise ConfigError where they contradict."""
    from dragoman.config import parse_assignments

    collected = list(assignments)
    if languages is not None:
        collected.append(f"data.languages={json.dumps(parse_languages(languages))}")
    given = {
        "--steps": steps is not None,
        "--epochs": epochs is not None,
        "--set training.steps": "steps" in parse_assignments(assignments).get("training", {}),
    }
    if sum(given.values()) > 1:
        names = " and ".join(name for name, is_given in given.items() if is_given)
        raise ConfigError(f"{names} contradict each other; give only one of them")
    return collected if steps is None else [*collected, f"training.steps={steps}"]


def average(
    paths: Annotated[
        list[Path],
        typer.Argument(help="A run, or several checkpoints or models of the same shape."),
    ],
    out: Annotated[Path, typer.Option(help="The model directory to make.")],
    last: Annotated[int, typer.Option(help="How many of a run's last checkpoints to average.")] = 5,
) -> None:
    """Average checkpoints into a model (§6.1)."""
    from dragoman.training.checkpoints.averaging import average_checkpoints as average_models

    print_result(average_models(paths, out, last=last))


def presets(
    name: Annotated[str | None, typer.Argument(help="Print all settings of this preset.")] = None,
    as_json: Json = False,
) -> None:
    """List the presets with their parameters beside the paper's."""
    from dragoman import config as configs

    if name is not None:
        config = configs.load_preset(name)
        print_result(config.to_dict() if as_json else config.to_toml())
        return
    counts = configs.preset_parameters()
    rows = []
    for preset in configs.preset_names():
        paper = configs.preset_paper_figures(preset).get("parameters")
        rows.append((preset, counts[preset], paper, configs.preset_title(preset)))
    if as_json:
        keys = ("name", "parameters", "paper_millions", "title")
        print_result([dict(zip(keys, row, strict=True)) for row in rows])
        return
    width = max(len(row[0]) for row in rows)
    print_result(f"{'preset':{width}}  {'parameters':>10}  {'paper':>5}")
    for preset, count, paper, title in rows:
        shown = f"{paper:.0f}M" if paper else ""
        print_result(f"{preset:{width}}  {count / 1e6:9.2f}M  {shown:>5}  {title}")


def demo(
    out: Annotated[
        Path | None, typer.Option(help="Directory for everything; default: runs/demo-LANGUAGE.")
    ] = None,
    language: Annotated[
        str, typer.Option(help="Language to translate English to: de or ko.")
    ] = "de",
    task: Annotated[
        str,
        typer.Option("--task", metavar="TASK", help="translation, or parsing to train a parser."),
    ] = "translation",
    steps: Annotated[
        int | None, typer.Option(help="Training steps; default: the preset's.")
    ] = None,
    training: Annotated[
        bool, typer.Option(help="Train; else only try the translators that are installed.")
    ] = True,
) -> None:
    """Try the installed translators; then train and try one, or a parser, on the phrasebook.

    This takes minutes on a laptop. A demo that was interrupted is continued.
    """
    from dragoman.system.packages import require_package
    from dragoman.workflows.installed_demo import try_installed_translators

    if task == "translation" and not try_installed_translators() and not training:
        raise ConfigError("no translator is installed; get one, as in: dragoman get en-de")
    if not training:
        return
    require_package("torch", "training")
    if task == "parsing":
        from dragoman.workflows.demo import run_parsing_demo

        run_parsing_demo(out or Path("runs/demo-trees"), steps)
        return
    if task != "translation":
        raise ConfigError(f"--task {task}: choose translation or parsing")
    from dragoman.workflows.demo import run_demo

    run_demo(out or Path(f"runs/demo-{language}"), language, steps)
