"""A parser taught by parsers (§6.3): parse raw text, keep the confident trees, train on them too.

Each stage is a directory, and one that is there is not made again:

    text/       the sentences to parse, their words between spaces
    parsed/     a file for each window of them: confidence, tab, tree
    automatic/  the trees that are kept
    data/       gold and automatic trees, prepared
    run/        the training run; run/model is the new parser

All but parsed/ and run/ appear when they are complete; those two go on where they were.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import Config
from dragoman.data.prepare import Progress, prepare
from dragoman.data.readers import Concatenated
from dragoman.data.treebank import treebank
from dragoman.errors import ConfigError
from dragoman.selftrain.choice import choose
from dragoman.selftrain.parsing import load_parsers, parse_text
from dragoman.selftrain.plan import Plan
from dragoman.selftrain.record import begin
from dragoman.selftrain.sentences import REASONS, gather
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.run import Outcome, resume, train

__all__ = ["Plan", "Result", "selftrain"]


@dataclass(frozen=True, slots=True)
class Result:
    """What has been made."""

    text: dict[str, int]
    """How many lines were read, how many are to be parsed, and why the others are not."""
    automatic: dict[str, Any]
    """How many trees were parsed, agreed on and kept, and from which confidence on."""
    trees: Path
    """The automatic trees, one a line."""
    model: Path | None
    """The new parser, if it was wanted and training was not interrupted."""
    outcome: Outcome | None
    """Of training, if there was any this time."""


def selftrain(
    plan: Plan,
    out: Path,
    *,
    device: str = "auto",
    parse_only: bool = False,
    quiet: bool = False,
    tell: Callable[[str], None] = lambda message: None,
    progress: Progress = lambda stage, done, total: None,
) -> Result:
    """Do what of the plan has not been done yet in the directory `out`.

    Killed at any moment, the same call goes on; at most one window is parsed again. The new parser
    is trained from random weights.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            f"several ranks cannot parse one text; run without torchrun until {out / 'data'} is "
            "there, then train on that"
        )
    if not plan.valid and not parse_only:
        raise ConfigError("--valid is needed: gold trees, for automatic ones are no test")
    parsers, digests = load_parsers(plan, device)
    tokenizer, config = parsers[0].tokenizer, plan.settled(parsers[0].config)
    begin(out, plan.stages(config, digests))

    text = gather(plan, parsers[0].split, out / "text", progress)
    dropped = [f"; {reason}: {text[reason]:,}" for reason in REASONS if text[reason]]
    tell(f"{text['read']:,} lines read, {text['to parse']:,} to parse{''.join(dropped)}")
    for parser in parsers:
        parser.warn = tell
    parse_text(parsers, plan, text["to parse"], out, progress)
    parsers.clear()  # their memory is the training's

    automatic = choose(plan, out)
    agreed = f"{automatic['agreed']:,} agreed on, " if plan.agree else ""
    tell(
        f"{automatic['parsed']:,} trees, {agreed}{automatic['kept']:,} kept, of confidence "
        f"{automatic['confidence']:.4f} and more"
    )
    trees = out / "automatic" / "trees.txt"
    if parse_only:
        return Result(text, automatic, trees, None, None)
    if not (out / "data").exists():
        _prepare(plan, config, trees, out / "data", tokenizer, tell, progress)
    if (model := out / "run" / "model").exists():
        return Result(text, automatic, trees, model, None)
    outcome = _train(plan, config, out, quiet)
    return Result(text, automatic, trees, outcome.model, outcome)


def _prepare(
    plan: Plan,
    config: Config,
    trees: Path,
    place: Path,
    tokenizer: Tokenizer,
    tell: Callable[[str], None],
    progress: Progress,
) -> None:
    gold = treebank(plan.trees)
    prepared = prepare(
        Concatenated([*[gold] * plan.gold_weight, treebank([trees])]),
        place,
        config,
        valid=treebank(plan.valid),
        tokenizer=None if plan.new_tokenizer else tokenizer,
        progress=progress,
    )
    for line in prepared.lines():
        tell(line)


def _train(plan: Plan, config: Config, out: Path, quiet: bool) -> Outcome:
    run = out / "run"
    if (run / "config.toml").exists():
        return resume(run, quiet=quiet)
    tests = [[file] for file in plan.test]
    return train(config, out / "data", tests=tests, run=run, quiet=quiet)
