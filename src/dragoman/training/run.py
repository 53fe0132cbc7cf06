"""A run is started from files or from a prepared corpus, and resumed."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dragoman.config import Config, load_preset, parse_assignments
from dragoman.data import Progress
from dragoman.data.prepare import FIXED_DATA_SETTINGS, Prepared, prepare
from dragoman.data.readers import fill_in_languages, open_corpus
from dragoman.data.readers.parallel import Corpus
from dragoman.errors import ConfigError, TrainingError
from dragoman.messages import counted
from dragoman.model_directory import LoadedModel, load_model
from dragoman.run_directory import list_checkpoints
from dragoman.system.atomic_files import explain_os_errors
from dragoman.training.distributed.ranks import (
    environment_rank,
    environment_world_size,
    is_restart_of,
    job_id,
)
from dragoman.training.loop import Outcome, fit, make_batches
from dragoman.training.progress import ProgressDisplay
from dragoman.training.run_json import RunFile
from dragoman.training.validation import copy_test_sets

__all__ = ["Outcome", "resume", "train"]


def train(
    config: Config | str,
    *files: Path | str,
    valid: Sequence[Path | str] = (),
    tests: Sequence[Sequence[Path | str]] = (),
    run: Path | str | None = None,
    start_from: Path | str | None = None,
    assignments: Sequence[str] = (),
    epochs: float | None = None,
    quiet: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Train a model on files: two aligned ones, one .tsv, .jsonl or .tmx, or a prepared directory.

    `config` is a Config or the name of a preset, changed by `assignments` such as
    "training.steps=1000". What a prepared directory was made with holds, whatever the config says;
    an assignment that contradicts it is refused. `epochs` takes the place of training.steps.
    Without `valid`, some pairs are held out; `tests` are more sets, scored at every validation and
    never chosen by. Everything is written under `run`, by default a new directory in runs/.
    `start_from` is a model whose weights training begins with, to adapt it to other text; it gives
    the tokeniser, and [model] of the config.
    """
    if isinstance(config, str):
        config = load_preset(config)
    config = config.overridden(assignments)
    first = None if start_from is None else load_model(start_from)
    if first is not None:
        config = with_settings_of(first, config, assignments)
    check_epochs(epochs, config, assignments)
    directory = Path(run) if run is not None else _new_run()
    if (directory / "config.toml").exists():
        if is_restart_of(directory):
            return resume(directory, quiet=quiet)
        raise TrainingError(
            f"{directory}: already contains a run; continue it with: dragoman train --resume "
            f"{directory}, or choose another --out"
        )
    paths = [Path(file) for file in files]
    if len(paths) == 1 and _is_prepared(paths[0], config):
        if valid:
            raise ConfigError(f"{paths[0]}: has its own validation set; leave out --valid")
        data = Prepared.open(paths[0])
        if data.config.data.task != config.data.task:
            raise ConfigError(
                f"{paths[0]}: prepared for {data.config.data.task}, but the preset is for "
                f"{config.data.task}; choose another preset, or add --task {data.config.data.task}"
            )
        data.refuse_contradictions(assignments)
    else:
        if environment_world_size() > 1:
            raise TrainingError(
                "several ranks cannot prepare a corpus; run dragoman prepare first and train on "
                "its directory"
            )
        _refuse_other_data(directory / "data")
        config, pairs = _open_files(config, paths)
        valid_corpus = open_corpus(valid, config.data) if valid else None
        existed = directory.exists()
        try:
            data = prepare(
                pairs,
                directory / "data",
                config,
                valid=valid_corpus,
                progress=progress,
                show_message=None if quiet else ProgressDisplay(steps=0).show_message,
                replace=True,
                tokenizer=None if first is None else first.tokenizer,
            )
        except BaseException:
            if not existed:
                with suppress(OSError):  # an empty directory would look like a run
                    directory.rmdir()
            raise
    if not quiet and (message := data.describe_too_long()) and environment_rank() == 0:
        ProgressDisplay(steps=0).show_message(message)
    with explain_os_errors(directory):
        copy_test_sets(
            directory, [[Path(file) for file in files] for files in tests], data.config.data
        )
        if first is not None:
            check_same_pieces(first, data)
        config = _resolve_config(config, data, directory, first)
        config = _set_epochs(config, data, epochs, quiet=quiet)
        return fit(config, data, directory, start_from=first, quiet=quiet)


def resume(
    run: Path | str,
    assignments: Sequence[str] = (),
    *,
    epochs: float | None = None,
    quiet: bool = False,
) -> Outcome:
    """Continue a run from its newest checkpoint, with changed settings if any are given.

    `epochs` counts from the run's beginning. One that ended before its first checkpoint begins
    again.
    """
    directory = Path(run)
    run_file = RunFile.read(directory)
    if run_file is None:
        raise TrainingError(f"{directory}: not a run that dragoman train started")
    if not (directory / "config.toml").exists():
        raise TrainingError(
            f"{directory}: ended before its first step; start it again with the original command "
            f"and --out {directory}"
        )
    config = Config.load(directory / "config.toml").overridden(assignments)
    check_epochs(epochs, config, assignments)
    data = Prepared.open(directory / run_file.data)
    data.refuse_contradictions(assignments)
    config = _set_epochs(config, data, epochs, quiet=quiet)
    has_checkpoint = bool(list_checkpoints(directory))
    first = None
    if run_file.start_from is not None and not has_checkpoint:
        first = load_model(directory / run_file.start_from)
    with explain_os_errors(directory):
        return fit(config, data, directory, resume=has_checkpoint, start_from=first, quiet=quiet)


def with_settings_of(model: LoadedModel, config: Config, assignments: Sequence[str]) -> Config:
    """Return the config with what the first model fixes; refuse assignments that contradict it."""
    if model.config.data.task != config.data.task:
        raise ConfigError(
            f"{model.path}: a model for {model.config.data.task}, not for {config.data.task}; "
            f"choose another preset, or add --task {model.config.data.task}"
        )
    for section in ("model", "tokenizer", "trees"):
        fixed = getattr(model.config, section)
        for key, value in parse_assignments(assignments).get(section, {}).items():
            # Dropout is no property of the weights: another amount of it may suit other text.
            if "dropout" not in key and value != getattr(fixed, key):
                raise ConfigError(
                    f"{section}.{key} = {value} contradicts {model.path}, which has "
                    f"{getattr(fixed, key)}; leave it out, or train without --from"
                )
    dropouts = ("dropout", "attention_dropout", "activation_dropout")
    kept = {name: getattr(config.model, name) for name in dropouts}
    return dataclasses.replace(
        config,
        model=dataclasses.replace(model.config.model, **kept),
        tokenizer=model.config.tokenizer,
        trees=model.config.trees,
    )


def check_same_pieces(model: LoadedModel, data: Prepared) -> None:
    """Raise ConfigError if a prepared corpus has other pieces than the model."""
    if model.tokenizer.fingerprint != data.tokenizer.fingerprint:
        raise ConfigError(
            f"{data.path}: prepared with another tokeniser than that of {model.path}; prepare it "
            f"with: dragoman prepare … --tokenizer {model.path}"
        )


def _is_prepared(path: Path, config: Config) -> bool:
    """Return whether this is a prepared corpus; a treebank may be a directory too, text may not."""
    trees = config.data.task == "parsing"
    return (path / "report.json").is_file() if trees else path.is_dir()


def _refuse_other_data(directory: Path) -> None:
    """Raise TrainingError if preparing would replace anything but what a killed run left here."""
    if (directory / "report.json").exists() or not directory.exists():
        return
    if not directory.is_dir() or any(directory.iterdir()):
        raise TrainingError(
            f"{directory}: not a prepared corpus, and would be replaced by one; choose another "
            "--out"
        )


def _open_files(config: Config, paths: Sequence[Path]) -> tuple[Config, Corpus]:
    if not paths:
        raise ConfigError(
            "nothing to train on; give two aligned files, as in: dragoman train corpus.en "
            "corpus.de, or a file of trees with --task parsing"
        )
    config = dataclasses.replace(config, data=fill_in_languages(config.data, paths))
    return config, open_corpus(paths, config.data)


def _resolve_config(
    config: Config, data: Prepared, directory: Path, first: LoadedModel | None
) -> Config:
    """Return the run's config, with what preparing has fixed, and write its run file."""
    prepared = data.config
    kept = {name: getattr(prepared.data, name) for name in FIXED_DATA_SETTINGS}
    kept["languages"] = prepared.data.languages or config.data.languages
    resolved = dataclasses.replace(
        config,
        tokenizer=prepared.tokenizer,
        trees=prepared.trees,
        data=dataclasses.replace(
            config.data,
            row_length=max(config.data.row_length, prepared.data.max_length + 1),
            **kept,
        ),
    )
    if environment_rank() == 0:
        directory.mkdir(parents=True, exist_ok=True)
        place = os.path.relpath(data.path.resolve(), directory.resolve())
        start = (
            first if first is None else os.path.relpath(first.path.resolve(), directory.resolve())
        )
        RunFile(place, job_id(), start).write(directory)
    return resolved


def check_epochs(epochs: float | None, config: Config, assignments: Sequence[str]) -> None:
    """Raise ConfigError if a number of epochs is impossible or contradicts the settings."""
    if epochs is None:
        return
    if not 0 < epochs < math.inf:
        raise ConfigError(f"{epochs:g} epochs are impossible; give a number above 0")
    if "steps" in parse_assignments(assignments).get("training", {}):
        raise ConfigError("epochs and steps contradict each other; give only one of them")
    if config.training.batch_tokens == "auto":
        raise ConfigError(
            "with training.batch_tokens=auto the steps of an epoch are not known beforehand; "
            "give steps instead of epochs, or a number of tokens"
        )


def _set_epochs(config: Config, data: Prepared, epochs: float | None, *, quiet: bool) -> Config:
    """Return the config with as many steps as make so many passes over the corpus."""
    if epochs is None:
        return config
    each = make_batches(config, data).batches_an_epoch
    steps = max(1, round(epochs * each))
    if not quiet and environment_rank() == 0:
        ProgressDisplay(steps=0).show_message(
            f"{epochs:g} {'epoch' if epochs == 1 else 'epochs'}: {counted(steps, 'step')}, "
            f"{each:,} for each pass over {counted(len(data.train), 'pair')}"
        )
    return config.updated({"training": {"steps": steps}})


def _new_run() -> Path:
    if environment_world_size() > 1:
        raise TrainingError("several ranks need one directory to write to; give it with --out")
    return Path("runs") / time.strftime("%Y-%m-%d-%H%M%S")
