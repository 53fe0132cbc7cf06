"""A fast student of a good teacher: translate the training sources, learn from the translations.

Sequence-level distillation (Kim and Rush, 2016). Each stage is a directory, and one that is there
is not made again:

    text/        the sources, each once, and how people translated them
    translated/  a file for each window of them: the teacher's translations
    pairs/       sources and translations, line by line
    data/        the same, prepared with the teacher's pieces
    run/         the training run; run/model is the student

All but translated/ and run/ appear when they are complete; those two go on where they were. Several
processes may translate, and several students may learn from one data/, each in a run of its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dragoman.config import Config
from dragoman.data.corpora import open_corpus, sets_of
from dragoman.data.prepare import Progress, prepare
from dragoman.data.readers import Concatenated, ParallelFiles
from dragoman.distill.plan import Plan
from dragoman.distill.sources import REASONS, gather
from dragoman.distill.translating import assemble, translate_text
from dragoman.errors import ConfigError
from dragoman.files import remove_leftovers
from dragoman.stages import alone, begin, load_known
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.run import Outcome, resume, train

__all__ = ["Plan", "Result", "distill"]


@dataclass(frozen=True, slots=True)
class Result:
    """What has been made."""

    text: dict[str, int]
    """How many sentences were read, how many are to be translated, and why the others are not."""
    missing: int
    """Windows that other shards have not translated yet; nothing is made of them before that."""
    pairs: Path | None
    """The directory of sources and translations, if none is missing."""
    model: Path | None
    """The student, if it was wanted and training was not interrupted."""
    outcome: Outcome | None
    """Of training, if there was any this time."""


def distill(
    plan: Plan,
    out: Path,
    *,
    device: str = "auto",
    translate_only: bool = False,
    quiet: bool = False,
    tell: Callable[[str], None] = lambda message: None,
    progress: Progress = lambda stage, done, total: None,
) -> Result:
    """Do what of the plan has not been done yet in the directory `out`.

    Killed at any moment, the same call goes on; at most one window is translated again. Of several
    shards, the one that ends last goes on to train. The student begins with random weights.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "ranks are for training; translate with --shards, without torchrun, until "
            f"{out / 'data'} is there, then train on that"
        )
    if not plan.valid and not translate_only:
        raise ConfigError("--valid is needed: pairs by people, for a teacher's are no test")
    teacher, digests = load_known(plan.teachers, device)
    tokenizer, own = teacher.tokenizer, teacher.config
    config = plan.settled(own)
    stages = plan.stages(config, own.data.max_length, digests)
    with alone(out / ".lock", wait=True):
        begin(out, stages, command="distill")
        text = gather(plan, tokenizer, own.data, out / "text", progress)
    dropped = [f"; {reason}: {text[reason]:,}" for reason in REASONS if text[reason]]
    tell(f"{text['read']:,} lines read, {text['to translate']:,} to translate{''.join(dropped)}")

    teacher.warn = tell
    missing = translate_text(teacher, plan, text["to translate"], out, progress)
    del teacher  # its memory is the training's
    if missing:
        tell(
            f"shard {plan.shard} of {plan.shards} is done; {missing:,} windows of others are not, "
            "and the last to end goes on"
        )
        return Result(text, missing, None, None, None)
    with alone(out / ".lock", wait=True):
        remove_leftovers(out / "translated")
        counts = assemble(out)
        tell(f"{counts['pairs']:,} pairs, {counts['as the reference']:,} as in the corpus")
        if translate_only:
            return Result(text, 0, out / "pairs", None, None)
        if not (out / "data").exists():
            _prepare(plan, config, out, tokenizer, tell, progress)
    with alone(out / f".lock-{plan.name}", wait=False) as first:
        if not first:
            tell(f"{out / plan.name}: another process trains it")
            return Result(text, 0, out / "pairs", None, None)
        if (model := out / plan.name / "model").exists():
            return Result(text, 0, out / "pairs", model, None)
        outcome = _train(plan, config, out, quiet)
    return Result(text, 0, out / "pairs", outcome.model, outcome)


def _prepare(
    plan: Plan,
    config: Config,
    out: Path,
    tokenizer: Tokenizer,
    tell: Callable[[str], None],
    progress: Progress,
) -> None:
    pairs = [ParallelFiles(out / "pairs" / "source.txt", out / "pairs" / "target.txt")]
    originals = [open_corpus(plan.files, config.data)] if plan.keep_originals else []
    prepared = prepare(
        Concatenated([*pairs, *originals]),
        out / "data",
        config,
        valid=open_corpus(plan.valid, config.data),
        tokenizer=tokenizer,
        progress=progress,
    )
    for line in prepared.lines():
        tell(line)


def _train(plan: Plan, config: Config, out: Path, quiet: bool) -> Outcome:
    run = out / plan.name
    if (run / "config.toml").exists():
        return resume(run, quiet=quiet)
    tests = sets_of(plan.test, config.data)
    return train(config, out / "data", tests=tests, run=run, quiet=quiet)
