"""In self-training (§6.3), a parser parses raw text, and a new one learns its confident trees too.

Each stage is a directory, and one that is there is not made again:

    text/       the sentences to parse, their words between spaces
    parsed/     a file for each window of them: confidence, tab, tree
    automatic/  the trees that are kept
    data/       gold and automatic trees, prepared
    run/        the training run; run/model is the new parser

All but parsed/ and run/ appear when they are complete; those two are continued.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dragoman.config import Config
from dragoman.data import Progress
from dragoman.data.cleaning import HashSet, pair_hash
from dragoman.data.readers.parallel import open_text
from dragoman.data.readers.treebank import open_treebank
from dragoman.errors import ConfigError, DataError
from dragoman.inference.parser import Parser, load_parser
from dragoman.messages import counted
from dragoman.system.atomic_files import remove_leftovers
from dragoman.training.distributed.ranks import environment_world_size
from dragoman.training.run import Outcome
from dragoman.trees.bracketing import write_tree
from dragoman.workflows.stages import (
    check_directory,
    describe_selection,
    exclusive_lock,
    fill_windows,
    identify_file,
    identify_model,
    make_stage,
    option_name,
    prepare_stage,
    read_windows,
    record_stages,
    train_stage,
)

DEFAULT_SHARE: Final = 0.5
"""The share of the trees that are kept; docs/selftraining.md has what was measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Hold the options of self-training, checked."""

    models: Sequence[Path]
    """One parser, or several trained on one prepared treebank as an ensemble."""
    trees: Sequence[Path]
    """Gold trees to train on."""
    text: Sequence[Path]
    """Raw text, a sentence a line."""
    valid: Sequence[Path] = ()
    """Gold trees to validate on; not needed if nothing is trained."""
    test: Sequence[Path] = ()
    """Gold trees that are scored at every validation and never chosen by, each file by itself."""
    tokenized: bool = False
    """Whether the words of the text have spaces between them already."""
    shortest: int = 3
    """Sentences of fewer words are skipped."""
    longest: int = 60
    """Sentences of more words are skipped."""
    limit: int | None = None
    """So many sentences are parsed at most."""
    beam: int = 1
    """The number of hypotheses kept while parsing."""
    agree: bool = False
    """Whether only trees are taken that every model finds by itself, as in tri-training."""
    window: int = 2000
    """The number of sentences parsed between two savings."""
    keep: float | None = None
    """The share of the trees to keep, the most confident ones; see `share`."""
    threshold: float | None = None
    """The least confidence of the trees to keep, in place of a share."""
    gold_weight: int = 1
    """How often a gold tree is seen for each time an automatic one is."""
    new_tokenizer: bool = False
    """Whether pieces and labels are learned from all trees; else they are the first model's."""
    config: Config | None = None
    """The new parser's config; without one, the first model's."""
    assignments: Sequence[str] = ()
    """Changes to it, as section.key=value."""

    def __post_init__(self) -> None:
        if not self.models or not self.trees or not self.text:
            raise ConfigError("give a parser, --trees to learn from, and --text to parse")
        if self.agree and len(self.models) < 2:
            raise ConfigError("--agree compares models; give at least two")
        if self.keep is not None and self.threshold is not None:
            raise ConfigError("--keep is a share and --threshold a confidence; choose one")
        for name in ("keep", "threshold"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise ConfigError(f"{option_name(name)} {share} must be above 0 and at most 1")
        for name in ("shortest", "limit", "beam", "window", "gold_weight"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ConfigError(f"{option_name(name)} {count} must be at least 1")
        if self.shortest > self.longest:
            raise ConfigError(f"--shortest {self.shortest} is above --longest {self.longest}")
        if not self.new_tokenizer:
            for one in self.assignments:
                if one.startswith(("tokenizer.", "trees.")):
                    raise ConfigError(
                        f"--set {one}: pieces and labels are the model's; add --new-tokenizer"
                    )

    @property
    def share(self) -> float:
        """Return the share of trees to keep without a threshold: all, if models agree on them."""
        return self.keep or (1.0 if self.agree else DEFAULT_SHARE)

    def resolve_config(self, model: Config) -> Config:
        """Return the new parser's config, where `model` is that of the first model."""
        config = (self.config or model).overridden(self.assignments)
        if not self.new_tokenizer:
            config = dataclasses.replace(config, tokenizer=model.tokenizer, trees=model.trees)
        # Were duplicates dropped, a gold tree would be seen once, whatever its weight.
        return config.updated({"data": {"task": "parsing", "drop_duplicates": False}})

    def stage_settings(self, config: Config) -> dict[str, dict[str, Any]]:
        """Return what each stage depends on besides those before it, by names that users know."""
        options = {
            "text": ("tokenized", "shortest", "longest", "limit"),
            "parsed": ("beam", "agree", "window"),
            "automatic": ("keep", "threshold"),
            "data": ("gold_weight", "new_tokenizer"),
            "run": (),
        }
        stages: dict[str, dict[str, Any]] = {
            stage: {option_name(name): getattr(self, name) for name in names}
            for stage, names in options.items()
        }
        stages["text"] |= {
            option_name(name): list(map(identify_file, getattr(self, name)))
            for name in ("trees", "valid", "test", "text")
        }
        stages["parsed"]["models"] = list(map(identify_model, self.models))
        for section, settings in config.to_dict().items():
            stage = "data" if section in ("tokenizer", "trees", "data") else "run"
            stages[stage] |= {f"{section}.{key}": value for key, value in settings.items()}
        return stages


@dataclass(frozen=True, slots=True)
class Result:
    """Hold what has been made."""

    text: dict[str, int]
    """How many lines were read, how many are to be parsed, and why the others are not."""
    automatic: dict[str, Any]
    """How many trees were parsed, agreed on and kept, and from which confidence on."""
    trees: Path
    """The automatic trees, one a line."""
    model: Path | None
    """The new parser, if it was wanted and training was not interrupted."""
    outcome: Outcome | None
    """The outcome of training, if there was any in this call."""


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
    """Do what has not been done yet of the plan in the directory `out`.

    Killed at any moment, the same call continues; at most one window is parsed again. The new
    parser is trained from random weights.
    """
    if environment_world_size() > 1:
        raise ConfigError(
            f"torchrun is for training; run without it until {out / 'data'} is there, then train "
            "on that"
        )
    if not plan.valid and not parse_only:
        raise ConfigError("--valid is missing: give gold trees, not automatic ones")
    # One ensemble, or each model by itself if they are to agree.
    groups = [[model] for model in plan.models] if plan.agree else [plan.models]
    parsers = [load_parser(*group, device=device) for group in groups]
    tokenizer, config = parsers[0].tokenizer, plan.resolve_config(parsers[0].config)
    stages = plan.stage_settings(config)
    check_directory(out, command="selftrain")
    with exclusive_lock(out / ".lock", wait=False) as lock:
        if lock is None:
            raise ConfigError(f"{out}: another process is training here; wait until it ends")
        record_stages(out, stages, command="selftrain")
        remove_leftovers(out / "parsed")

        text = collect_sentences(plan, parsers[0].split, out / "text", progress)
        tell(describe_selection(text, "to parse", DROP_REASONS))
        for parser in parsers:
            parser.warn = tell
        _parse_windows(parsers, plan, text["to parse"], out, progress)
        parsers.clear()  # frees their memory for training

        automatic = select_trees(plan, out)
        agreed = f"{automatic['agreed']:,} agreed on, " if plan.agree else ""
        tell(
            f"{counted(automatic['parsed'], 'tree')}, {agreed}{automatic['kept']:,} kept, with a "
            f"confidence of at least {automatic['confidence']:.4f}"
        )
        trees = out / "automatic" / "trees.txt"
        if parse_only:
            return Result(text, automatic, trees, None, None)
        if not (out / "data").exists():
            prepare_stage(
                out / "data",
                [*[open_treebank(plan.trees)] * plan.gold_weight, open_treebank([trees])],
                config,
                valid=open_treebank(plan.valid),
                tokenizer=None if plan.new_tokenizer else tokenizer,
                tell=tell,
                progress=progress,
            )
        tests = [[file] for file in plan.test]
        model, outcome = train_stage(out / "run", config, out / "data", tests=tests, quiet=quiet)
        return Result(text, automatic, trees, model, outcome)


# text/: which sentences of raw text are worth parsing.

DROP_REASONS: Final = ("too short", "too long", "in the gold trees", "duplicate")
"""Why a sentence is not parsed; the first that applies is counted."""

Split: TypeAlias = Callable[[str], list[str]]


def collect_sentences(plan: Plan, split: Split, place: Path, progress: Progress) -> dict[str, int]:
    """Write the sentences to sentences.txt, words between spaces, and count them.

    `split` cuts running text into words, unless the plan says that this is done.
    """

    def make(directory: Path) -> dict[str, int]:
        counts = dict.fromkeys(("read", "to parse", *DROP_REASONS), 0)
        with (directory / "sentences.txt").open("w", encoding="utf-8", newline="\n") as file:
            for sentence in islice(_select_sentences(plan, split, counts), plan.limit):
                file.write(f"{sentence}\n")
                counts["to parse"] += 1
                progress("reading", counts["read"], None)
        if not counts["to parse"]:
            reasons = ", ".join(f"{reason}: {counts[reason]}" for reason in DROP_REASONS)
            raise DataError(
                f"{' + '.join(map(str, plan.text))}: nothing is left to parse ({reasons}); "
                "change --shortest or --longest, or give other text"
            )
        return counts

    return make_stage(place, make)


def _select_sentences(plan: Plan, split: Split, counts: dict[str, int]) -> Iterator[str]:
    """Yield the sentences to parse, and count why the others are dropped."""
    gold = {
        _sentence_key(pair.source.split(" "))
        for files in (plan.trees, plan.valid, plan.test)
        if files
        for pair in open_treebank(files)
    }
    seen = HashSet()  # compact, for a text may have millions of lines
    split_line = str.split if plan.tokenized else split
    for file in plan.text:
        for line in open_text(file):
            counts["read"] += 1
            words = split_line(line)
            if len(words) < plan.shortest:
                counts["too short"] += 1
            elif len(words) > plan.longest:
                counts["too long"] += 1
            elif (key := _sentence_key(words)) in gold:
                counts["in the gold trees"] += 1
            elif not seen.add(np.array([key], np.uint64))[0]:
                counts["duplicate"] += 1
            else:
                yield " ".join(words)


def _sentence_key(words: Sequence[str]) -> int:
    """Return what copies of a sentence share, however they are cut and their quotes are written."""
    return pair_hash("".join(words).replace("``", '"').replace("''", '"'), "")


# parsed/: trees of the text, a window at a time.


def _parse_windows(
    parsers: Sequence[Parser], plan: Plan, total: int, out: Path, progress: Progress
) -> None:
    """Parse the windows that are not there."""

    def make(window: list[str]) -> str:
        sentences = [line.split(" ") for line in window]
        return "".join(_parsed_lines(parsers, sentences, plan.beam))

    fill_windows(
        out / "parsed",
        open_text(out / "text" / "sentences.txt"),
        total,
        plan.window,
        make,
        progress=progress,
        activity="parsing",
        suffix=".tsv",
    )


def _parsed_lines(
    parsers: Sequence[Parser], sentences: list[list[str]], beam: int
) -> Iterator[str]:
    """Yield one line for each sentence; where parsers disagree, it has no tree."""
    for found in zip(*(parser.parse(sentences, beam=beam) for parser in parsers), strict=True):
        parses = [one for one in found if one is not None]
        trees = {write_tree(one.tree) for one in parses}
        confidence = math.prod(one.confidence for one in parses) ** (1 / len(parses))
        yield f"{confidence:.8f}\t{trees.pop() if len(trees) == 1 else ''}\n"


def _read_parsed(out: Path) -> Iterator[tuple[float, str]]:
    """Yield confidence and tree of all sentences, in order; a missing tree is an empty string."""
    for line in read_windows(out / "parsed", ".tsv"):
        confidence, _, tree = line.partition("\t")
        yield float(confidence), tree


# automatic/: which trees are good enough to learn from.


def select_trees(plan: Plan, out: Path) -> dict[str, Any]:
    """Write the confident trees to automatic/trees.txt, in the order of the text; count them."""

    def make(directory: Path) -> dict[str, Any]:
        found = np.fromiter(
            (confidence if tree else np.nan for confidence, tree in _read_parsed(out)), np.float64
        )
        confidences = np.sort(found[~np.isnan(found)])[::-1]
        if not len(confidences):
            raise DataError(
                f"{out}: the models agree on none of {len(found):,} trees; leave out --agree"
            )
        kept = _count_to_keep(plan, confidences)
        least = float(confidences[kept - 1])
        ties = kept - int((confidences > least).sum())
        with (directory / "trees.txt").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{tree}\n" for tree in _confident_trees(out, least, ties))
        counts = {"parsed": len(found), "agreed": len(confidences), "kept": kept}
        return {**counts, "confidence": round(least, 6)}

    return make_stage(out / "automatic", make)


def _count_to_keep(plan: Plan, confidences: npt.NDArray[np.float64]) -> int:
    """Return how many trees to keep, where the most confident comes first."""
    if plan.threshold is None:
        return max(1, round(plan.share * len(confidences)))
    count = int((confidences >= plan.threshold).sum())
    if not count:
        raise DataError(
            f"no tree has a confidence of {plan.threshold}; the highest is "
            f"{confidences[0]:.4f}: lower --threshold"
        )
    return count


def _confident_trees(out: Path, least: float, ties: int) -> Iterator[str]:
    """Yield the trees above a confidence, and the first `ties` of those that just reach it."""
    for confidence, tree in _read_parsed(out):
        if tree and confidence >= least:
            ties -= confidence == least
            if confidence > least or ties >= 0:
                yield tree
