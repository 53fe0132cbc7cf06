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

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from dragoman.config import Config
from dragoman.data.cleaning import HashSet, pair_hash
from dragoman.data.prepare import Progress, prepare
from dragoman.data.readers.parallel import Concatenated, check_rereadable, open_text
from dragoman.data.readers.treebank import treebank
from dragoman.errors import ConfigError, DataError
from dragoman.inference.parser import Parser, load_parser
from dragoman.model_directory import open_model
from dragoman.system.atomic_files import atomic_directory, atomic_write, explained, remove_leftovers
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.run import Outcome, resume, train
from dragoman.trees.bracketing import bracketing
from dragoman.workflows.stages import difference, listed, read_record

__all__ = [
    "KEEP",
    "REASONS",
    "Plan",
    "Result",
    "begin",
    "choose",
    "gather",
    "load_parsers",
    "parse_text",
    "parsed_trees",
    "selftrain",
]


# PART selftrain.plan: What to parse, with what, and what to make of it.


KEEP: Final = 0.5
"""The share of the trees that are kept; docs/selftraining.md has what was measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The options of self-training, checked."""

    models: Sequence[Path]
    """One parser; or several, trained on one prepared treebank: an ensemble."""
    trees: Sequence[Path]
    """Gold ones to train on."""
    text: Sequence[Path]
    """Raw text, a sentence a line."""
    valid: Sequence[Path] = ()
    """Gold trees to validate on; not needed if nothing is trained."""
    test: Sequence[Path] = ()
    """Gold trees that are scored at every validation and never chosen by, each file by itself."""
    tokenized: bool = False
    """Whether the words of the text have spaces between them already."""
    shortest: int = 3
    """Sentences of fewer words are passed over."""
    longest: int = 60
    """And those of more."""
    limit: int | None = None
    """Parse so many sentences at most."""
    beam: int = 1
    """Hypotheses kept while parsing."""
    agree: bool = False
    """Take only trees that every model finds by itself, as tri-training does."""
    window: int = 2000
    """Sentences parsed between two savings."""
    keep: float | None = None
    """Share of the trees to keep, the most confident; see `share`."""
    threshold: float | None = None
    """Keep the trees of at least this confidence instead."""
    gold_weight: int = 1
    """How often a gold tree is seen for each time an automatic one is."""
    new_tokenizer: bool = False
    """Learn pieces and labels from gold and automatic trees; else they are the first model's."""
    config: Config | None = None
    """Of the new parser; without one, the first model's."""
    assignments: Sequence[str] = ()
    """What to change in it, as section.key=value."""

    def __post_init__(self) -> None:
        if not self.models or not self.trees or not self.text:
            raise ConfigError("name a parser, --trees to learn from, and --text to parse")
        if self.agree and len(self.models) < 2:
            raise ConfigError("--agree compares models; name two at least")
        if self.keep is not None and self.threshold is not None:
            raise ConfigError("--keep is a share and --threshold a confidence; choose one")
        for name in ("keep", "threshold"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise ConfigError(f"{_option(name)} {share} must be above 0 and at most 1")
        for name in ("shortest", "limit", "beam", "window", "gold_weight"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ConfigError(f"{_option(name)} {count} must be at least 1")
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
        """Of the trees, if there is no threshold: half, but all that several models agree on."""
        return self.keep or (1.0 if self.agree else KEEP)

    def settled(self, own: Config) -> Config:
        """The config of the new parser, where the first model's is `own`."""
        config = (self.config or own).overridden(self.assignments)
        if not self.new_tokenizer:
            config = dataclasses.replace(config, tokenizer=own.tokenizer, trees=own.trees)
        # Were duplicates dropped, a gold tree would be seen once, whatever its weight.
        return config.updated({"data": {"task": "parsing", "drop_duplicates": False}})

    def stages(self, config: Config, digests: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What each stage depends on besides those before it, by the names a user knows."""
        files = ("trees", "valid", "test", "text")
        names = {
            "text": ("tokenized", "shortest", "longest", "limit"),
            "parsed": ("beam", "agree", "window"),
            "automatic": ("keep", "threshold"),
            "data": ("gold_weight", "new_tokenizer"),
            "run": (),
        }
        stages = {
            stage: {_option(name): getattr(self, name) for name in options}
            for stage, options in names.items()
        }
        stages["text"] |= {_option(name): list(map(_file, getattr(self, name))) for name in files}
        stages["parsed"]["models"] = list(digests)
        for section, settings in config.to_dict().items():
            stage = "data" if section in ("tokenizer", "trees", "data") else "run"
            stages[stage] |= {f"{section}.{key}": value for key, value in settings.items()}
        return stages


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _file(path: Path) -> list[Any]:
    """A file, or all of a directory, wherever it is moved to."""
    if path.is_dir():
        sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
        return [path.name, len(sizes), sum(sizes)]
    check_rereadable(path)
    return [path.name, path.stat().st_size]


# PART selftrain.parsing: Raw text to trees, a window at a time.


def load_parsers(plan: Plan, device: str) -> tuple[list[Parser], list[str]]:
    """One ensemble, or each model by itself if they are to agree; and a digest of each model."""
    groups = [[one] for one in plan.models] if plan.agree else [plan.models]
    parsers = [load_parser(*group, device=device) for group in groups]
    digests = []
    for path in plan.models:
        with open_model(path).weights.open("rb") as file:
            digests.append(hashlib.file_digest(file, "blake2b").hexdigest()[:16])
    return parsers, digests


def parse_text(
    parsers: Sequence[Parser], plan: Plan, total: int, out: Path, progress: Progress
) -> None:
    """Parse what has not been parsed; a file of `out`/parsed is whole or not there."""
    with closing(open_text(out / "text" / "sentences.txt")) as lines:
        for start in range(0, total, plan.window):
            window = [line.split(" ") for line in islice(lines, plan.window)]
            file = out / "parsed" / f"{start // plan.window:06}.tsv"
            if not file.exists():
                atomic_write(file, "".join(_lines(parsers, window, plan.beam)))
            progress("parsing", start + len(window), total)


def _lines(parsers: Sequence[Parser], sentences: list[list[str]], beam: int) -> Iterator[str]:
    """One for each sentence; where parsers disagree, it has no tree."""
    for found in zip(*(parser.parse(sentences, beam=beam) for parser in parsers), strict=True):
        parses = [one for one in found if one is not None]
        trees = {bracketing(one.tree) for one in parses}
        confidence = math.prod(one.confidence for one in parses) ** (1 / len(parses))
        yield f"{confidence:.8f}\t{trees.pop() if len(trees) == 1 else ''}\n"


def parsed_trees(out: Path) -> Iterator[tuple[float, str]]:
    """Confidence and tree of all sentences, in the order of the text; no tree is an empty one."""
    for file in sorted((out / "parsed").glob("*.tsv")):
        for line in open_text(file):
            confidence, _, tree = line.partition("\t")
            yield float(confidence), tree


# PART selftrain.choice: Which automatic trees are good enough to learn from.


def choose(plan: Plan, out: Path) -> dict[str, Any]:
    """Write the confident trees to automatic/trees.txt, in the order of the text; how many."""
    place = out / "automatic"
    if not place.exists():
        found = np.fromiter(
            (confidence if tree else np.nan for confidence, tree in parsed_trees(out)), np.float64
        )
        confidences = np.sort(found[~np.isnan(found)])[::-1]
        if not len(confidences):
            raise DataError(
                f"{out}: the models agree on none of {len(found):,} trees; leave out --agree"
            )
        kept = _count(plan, confidences)
        least = float(confidences[kept - 1])
        with atomic_directory(place) as directory:
            ties = kept - int((confidences > least).sum())
            with (directory / "trees.txt").open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{tree}\n" for tree in _confident(out, least, ties))
            counts = {"parsed": len(found), "agreed": len(confidences), "kept": kept}
            text = json.dumps({**counts, "confidence": round(least, 6)})
            (directory / "counts.json").write_text(text, encoding="utf-8")
    return cast(dict[str, Any], json.loads((place / "counts.json").read_text(encoding="utf-8")))


def _confident(out: Path, least: float, ties: int) -> Iterator[str]:
    """The trees above a confidence, and the first so many of those that just have it."""
    for confidence, tree in parsed_trees(out):
        if tree and confidence >= least:
            ties -= confidence == least
            if confidence > least or ties >= 0:
                yield tree


def _count(plan: Plan, confidences: npt.NDArray[np.float64]) -> int:
    """How many of the trees to keep, the most confident being the first."""
    if plan.threshold is None:
        return max(1, round(plan.share * len(confidences)))
    count = int((confidences >= plan.threshold).sum())
    if not count:
        raise DataError(
            f"no tree has a confidence of {plan.threshold}; the highest is "
            f"{confidences[0]:.4f}: lower --threshold"
        )
    return count


# PART selftrain.record: Knowing how the stages in a directory were made, so that no two ways
# are mixed.


_RECORD: Final = "selftrain.json"


def begin(out: Path, stages: dict[str, dict[str, Any]]) -> None:
    """Note how each stage is made, in their order; what was made in another way is refused."""
    wanted: dict[str, dict[str, Any]] = json.loads(json.dumps(stages))  # tuples become lists
    record = out / _RECORD
    with explained(out):
        if out.exists() and not record.exists() and any(out.iterdir()):
            raise ConfigError(f"{out}: not made by dragoman selftrain; choose another --out")
        made = read_record(record) if record.exists() else {}
        order = list(wanted)
        for place, stage in enumerate(order):
            stale = [later for later in order[place:] if (out / later).exists()]
            if stale and (name := difference(made.get(stage, {}), wanted[stage])):
                raise ConfigError(
                    f"{out / stage}: made with another {name}; choose another --out, or remove "
                    f"{listed(stale)} in it to make that again"
                )
        atomic_write(record, json.dumps(wanted, indent=2, ensure_ascii=False) + "\n")
        for directory in (out, out / "parsed"):
            remove_leftovers(directory)


# PART selftrain.sentences: Which sentences of raw text are worth parsing.


REASONS: Final = ("too short", "too long", "in the gold trees", "duplicate")
"""Why a sentence is not parsed; the first that applies is the one that counts."""


Split: TypeAlias = Callable[[str], list[str]]


def gather(plan: Plan, split: Split, place: Path, progress: Progress) -> dict[str, int]:
    """Write the sentences to sentences.txt, words between spaces; the counts of all.

    `split` cuts running text, unless the plan says that this is done.
    """
    if not place.exists():
        counts = dict.fromkeys(("read", "to parse", *REASONS), 0)
        with atomic_directory(place) as directory:
            with (directory / "sentences.txt").open("w", encoding="utf-8", newline="\n") as file:
                for sentence in islice(_sentences(plan, split, counts), plan.limit):
                    file.write(f"{sentence}\n")
                    counts["to parse"] += 1
                    progress("reading", counts["read"], None)
            if not counts["to parse"]:
                reasons = ", ".join(f"{reason}: {counts[reason]}" for reason in REASONS)
                raise DataError(
                    f"{' + '.join(map(str, plan.text))}: nothing is left to parse ({reasons}); "
                    "change --shortest or --longest, or bring other text"
                )
            (directory / "counts.json").write_text(json.dumps(counts), encoding="utf-8")
    text = (place / "counts.json").read_text(encoding="utf-8")
    return cast(dict[str, int], json.loads(text))


def _sentences(plan: Plan, split: Split, counts: dict[str, int]) -> Iterator[str]:
    gold = {
        _key(pair.source.split(" "))
        for files in (plan.trees, plan.valid, plan.test)
        if files
        for pair in treebank(files)
    }
    seen = HashSet()  # small, for text may have millions of lines
    cut = str.split if plan.tokenized else split
    for file in plan.text:
        for line in open_text(file):
            counts["read"] += 1
            words = cut(line)
            if len(words) < plan.shortest:
                counts["too short"] += 1
            elif len(words) > plan.longest:
                counts["too long"] += 1
            elif (key := _key(words)) in gold:
                counts["in the gold trees"] += 1
            elif not seen.add(np.array([key], np.uint64))[0]:
                counts["duplicate"] += 1
            else:
                yield " ".join(words)


def _key(words: Sequence[str]) -> int:
    """What copies of a sentence share, however they are cut and their quotes are written."""
    return pair_hash("".join(words).replace("``", '"').replace("''", '"'), "")


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
