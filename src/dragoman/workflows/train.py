"""Training begins with random weights, or adapts a model; a run of either kind is resumed here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.config import Config, load_preset, parse_assignments
from dragoman.data import Progress
from dragoman.errors import ConfigError, TrainingError
from dragoman.model_directory import find_model_directory, open_model
from dragoman.training import run as training_run
from dragoman.training.distributed.ranks import environment_world_size
from dragoman.training.run import Outcome
from dragoman.workflows.adaptation.adapt import adapt, is_adaptation
from dragoman.workflows.adaptation.adapt import resume as resume_adaptation
from dragoman.workflows.adaptation.plan import Plan
from dragoman.workflows.adaptation.schedule import PARSER_PASSES, make_parser_schedule

__all__ = ["Outcome", "resume", "train"]


def train(
    config: Config | str | None,
    *files: Path | str,
    valid: Sequence[Path | str] = (),
    tests: Sequence[Sequence[Path | str]] = (),
    run: Path | str | None = None,
    start_from: Path | str | None = None,
    replay: Sequence[Path | str] = (),
    assignments: Sequence[str] = (),
    epochs: float | None = None,
    quiet: bool = False,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Train a model on files: two aligned ones, one .tsv, .jsonl or .tmx, or a prepared directory.

    `config` is a Config or the name of a preset, changed by `assignments` such as
    "training.steps=1000". What a prepared directory was made with holds, whatever the config says;
    an assignment that contradicts it is refused. `epochs` takes the place of training.steps.
    Without `valid`, some pairs are held out; `tests` are more sets, never chosen by. Everything is
    written under `run`, by default a new directory in runs/.

    With `start_from`, a model directory, run or name, that model is adapted to the files. Its
    tokeniser and [model] hold, and without a config so does a schedule made for the set. `replay`
    is general text that it must not forget: pairs, a prepared directory, or text of the source
    language, which the model translates itself. The outcome has a report of before and after. A
    prepared directory with a config is trained on as ever, from the model's weights alone.
    """
    several = environment_world_size() > 1
    if isinstance(config, str):
        config = load_preset(config)
    task = parse_assignments(assignments).get("data", {}).get("task", "translation")
    parses = task == "parsing" if config is None else config.data.task == "parsing"
    if parses and config is None and start_from is not None:
        config = make_parser_schedule(open_model(start_from).config, assignments)
        if epochs is None and "steps" not in parse_assignments(assignments).get("training", {}):
            epochs = PARSER_PASSES
    # who prepared the data and made the schedule wants the weights to begin with, and no more
    plain = config is not None and len(files) == 1 and Path(files[0]).is_dir() and not replay
    if start_from is None or parses or several or plain:
        if replay:
            raise ConfigError(
                "--replay protects a translator that is adapted by one process; "
                + ("leave it out" if start_from else "add --from MODEL, or leave it out")
            )
        if config is None:
            raise ConfigError(
                "several processes need a schedule; name it with --preset"
                if several
                else "name a preset, or a model to start from"
            )
        return training_run.train(
            config,
            *files,
            valid=valid,
            tests=tests,
            run=run,
            start_from=start_from,
            assignments=assignments,
            epochs=epochs,
            quiet=quiet,
            progress=progress,
        )
    plan = Plan(
        model=find_model_directory(start_from),
        files=[Path(file) for file in files],
        valid=[Path(file) for file in valid],
        tests=[[Path(file) for file in test] for test in tests],
        replay=[Path(file) for file in replay],
        config=config,
        languages=() if config is None else config.data.languages,
        assignments=assignments,
        epochs=epochs,
    )
    place = Path(run) if run is not None else Path("runs") / time.strftime("%Y-%m-%d-%H%M%S")
    return adapt(
        plan,
        place,
        quiet=quiet,
        tell=tell or _show_message,
        progress=progress or _no_progress,
    )


def resume(
    run: Path | str,
    assignments: Sequence[str] = (),
    *,
    epochs: float | None = None,
    quiet: bool = False,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Continue a run where it stopped, with changed settings if any are given.

    `epochs` counts from the run's beginning. One that ended before its first checkpoint begins
    again.
    """
    directory = Path(run)
    if not is_adaptation(directory):
        return training_run.resume(directory, assignments, epochs=epochs, quiet=quiet)
    if environment_world_size() > 1:
        raise TrainingError(f"{directory}: adapts a model, which one process does; resume it alone")
    return resume_adaptation(
        directory,
        assignments,
        epochs=epochs,
        quiet=quiet,
        tell=tell or _show_message,
        progress=progress or _no_progress,
    )


def _show_message(message: str) -> None:
    from dragoman.training.progress import ProgressDisplay

    ProgressDisplay(steps=0).show_message(message)


def _no_progress(stage: str, done: int, total: int | None) -> None:
    """Ignore how far long work has come: the caller wants to see nothing of it."""
