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

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from dragoman.config import Config, DataConfig
from dragoman.data.cleaning import HashSet, pair_hash
from dragoman.data.prepare import Progress, prepare
from dragoman.data.readers.open_corpus import open_corpus, sets_of
from dragoman.data.readers.parallel import Concatenated, ParallelFiles, open_text
from dragoman.errors import ConfigError, DataError
from dragoman.inference import Translation, Translator
from dragoman.system.atomic_files import atomic_directory, remove_leftovers
from dragoman.text.languages import bleu_tokenizer
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.run import Outcome, resume, train
from dragoman.workflows.stages import alone, begin, facts, fill, load_known, option, window_file

__all__ = [
    "REASONS",
    "Plan",
    "Result",
    "Sentence",
    "assemble",
    "distill",
    "gather",
    "sentences",
    "translate_text",
]


# PART distill.plan: What to translate, with what, and which student learns from it.


STAGES: Final = ("text", "translated", "pairs", "data")
"""What all students of a directory share."""
_PREPARING: Final = ("max_length", "max_ratio", "drop_duplicates", "drop_copies")
_PREPARING_TOO: Final = ("task", "languages", "identify_languages")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The options of distillation, checked."""

    teachers: Sequence[Path]
    """One translator; or several of the same pieces: an ensemble."""
    files: Sequence[Path]
    """The training pairs: two aligned files, or one .tsv, .jsonl or .tmx."""
    text: Sequence[Path] = ()
    """More source text, a sentence a line, that nobody has translated."""
    valid: Sequence[Path] = ()
    """Pairs to validate on, translated by people; not needed if nothing is trained."""
    test: Sequence[Path] = ()
    """More of them, scored at every validation and never chosen by."""
    beam: int = 4
    """Hypotheses the teacher keeps."""
    length_penalty: float | None = None
    """GNMT's α; None: the teacher's."""
    n_best: int = 1
    """Of so many translations the one nearest to the reference is taken, where there is one."""
    window: int = 2000
    """Sentences translated between two savings."""
    shards: int = 1
    """How many processes translate."""
    shard: int = 1
    """Which of them this is, from 1."""
    keep_originals: bool = False
    """Whether the student sees the pairs as people translated them, too."""
    name: str = "run"
    """Of the student: its run's directory."""
    config: Config | None = None
    """Of the student; without one, the first teacher's."""
    assignments: Sequence[str] = ()
    """What to change in it, as section.key=value."""

    def __post_init__(self) -> None:
        if not self.teachers or not self.files:
            raise ConfigError("name a teacher, and the pairs it learned from")
        for name in ("beam", "n_best", "window", "shards"):
            count = getattr(self, name)
            if count < 1:
                raise ConfigError(f"{option(name)} {count} must be at least 1")
        if self.n_best > self.beam:
            raise ConfigError(
                f"--n-best {self.n_best} is above --beam {self.beam}; a beam has no more candidates"
            )
        if not 1 <= self.shard <= self.shards:
            raise ConfigError(
                f"--shard {self.shard} of --shards {self.shards}: they are counted from 1"
            )
        if self.name in STAGES or Path(self.name).name != self.name or self.name.startswith("."):
            raise ConfigError(f"--name {self.name}: cannot be a run's directory here; try 6-2")
        for one in self.assignments:
            if one.startswith("tokenizer."):
                raise ConfigError(f"--set {one}: the pieces are the teacher's; leave it out")

    def settled(self, own: Config) -> Config:
        """The config of the student, where the first teacher's is `own`.

        Pieces, languages and the longest sentence are the teacher's, whatever a preset says.
        """
        config = self.config or own
        longest = own.data.max_length
        same = {
            "task": "translation",
            "languages": own.data.languages,
            "max_length": longest,
            "row_length": max(config.data.row_length, longest + 1),
        }
        config = config.updated({"data": same}).overridden(self.assignments)
        return dataclasses.replace(config, tokenizer=own.tokenizer)

    def stages(
        self, config: Config, longest: int, digests: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        """What each stage depends on besides those before it, by the names a user knows."""
        files = {option(name): list(map(facts, getattr(self, name))) for name in ("text", "valid")}
        stages: dict[str, dict[str, Any]] = {
            "text": {
                "corpus": list(map(facts, self.files)),
                **files,
                "--test": list(map(facts, self.test)),
                "data.max_length of the teacher": longest,
            },
            "translated": {
                "teacher": list(digests),
                **{option(name): getattr(self, name) for name in ("beam", "n_best", "window")},
                "--length-penalty": self.length_penalty,
            },
            "pairs": {},
            "data": {"--keep-originals": self.keep_originals},
            self.name: {},
        }
        sections = config.to_dict()
        del sections["trees"]  # of no meaning to a translator
        for section, settings in sections.items():
            for key, value in settings.items():
                prepares = section == "data" and key in _PREPARING + _PREPARING_TOO
                stage = "data" if prepares or section == "tokenizer" else self.name
                stages[stage][f"{section}.{key}"] = value
        return stages


# PART distill.sources: Which sentences the teacher translates.


REASONS: Final = ("empty", "too long", "in validation or test", "duplicate")
"""Why a sentence is not translated; the first that applies is the one that counts."""
_CHUNK: Final = 2000

Counts: TypeAlias = dict[str, int]


class Sentence(NamedTuple):
    """What is translated, and how somebody has; empty if nobody has."""

    source: str
    reference: str


def gather(
    plan: Plan, tokenizer: Tokenizer, config: DataConfig, place: Path, progress: Progress
) -> Counts:
    """Write the sentences to source.txt and reference.txt, each source once; the counts of all."""
    if not place.exists():
        counts = dict.fromkeys(("read", "to translate", *REASONS), 0)
        with atomic_directory(place) as directory:
            with (
                (directory / "source.txt").open("w", encoding="utf-8", newline="\n") as sources,
                (directory / "reference.txt").open("w", encoding="utf-8", newline="\n") as refs,
            ):
                for source, reference in _chosen(plan, tokenizer, config, counts):
                    sources.write(f"{source}\n")
                    refs.write(f"{reference}\n")
                    counts["to translate"] += 1
                    progress("reading", counts["read"], None)
            if not counts["to translate"]:
                reasons = ", ".join(f"{reason}: {counts[reason]}" for reason in REASONS)
                raise DataError(
                    f"{' + '.join(map(str, (*plan.files, *plan.text)))}: nothing is left to "
                    f"translate ({reasons}); bring other text"
                )
            (directory / "counts.json").write_text(json.dumps(counts), encoding="utf-8")
    return cast(Counts, json.loads((place / "counts.json").read_text(encoding="utf-8")))


def sentences(place: Path) -> Iterator[Sentence]:
    """What `gather` wrote."""
    files = (open_text(place / name) for name in ("source.txt", "reference.txt"))
    return (Sentence(*lines) for lines in zip(*files, strict=True))


def _chosen(
    plan: Plan, tokenizer: Tokenizer, config: DataConfig, counts: Counts
) -> Iterator[Sentence]:
    held_out = {
        pair_hash(tokenizer.normalize(pair.source), "")
        for files in [plan.valid, *sets_of(plan.test, config)]
        if files
        for pair in open_corpus(files, config)
    }
    seen = HashSet()  # small, for text may have millions of lines
    reading = _all(plan, config)
    while chunk := list(islice(reading, _CHUNK)):
        counts["read"] += len(chunk)
        texts = [tokenizer.normalize(one.source) for one in chunk]
        pieces = tokenizer.encode_normalized(texts)
        for text, ids, one in zip(texts, pieces, chunk, strict=True):
            key = pair_hash(text, "")
            if not text:
                counts["empty"] += 1
            elif len(ids) > config.max_length:
                counts["too long"] += 1
            elif key in held_out:
                counts["in validation or test"] += 1
            elif not seen.add(np.array([key], np.uint64))[0]:
                counts["duplicate"] += 1
            else:
                yield Sentence(text, tokenizer.normalize(one.reference))


def _all(plan: Plan, config: DataConfig) -> Iterator[Sentence]:
    pairs = (Sentence(pair.source, pair.target) for pair in open_corpus(plan.files, config))
    raw: Iterable[str] = chain.from_iterable(open_text(file) for file in plan.text)
    return chain(pairs, (Sentence(line, "") for line in raw))


# PART distill.translating: The teacher's translations, a window at a time.


def translate_text(
    teacher: Translator, plan: Plan, total: int, out: Path, progress: Progress
) -> int:
    """Translate this shard's windows that are not there; how many windows are missing then."""
    nearest = _Nearest(teacher.config.data.languages)

    def make(window: list[Sentence]) -> str:
        found = teacher.translate(
            [one.source for one in window],
            beam=plan.beam,
            n_best=plan.n_best,
            length_penalty=plan.length_penalty,
            align=False,
        )
        texts = map(nearest, found, (one.reference for one in window))
        return "".join(f"{text}\n" for text in texts)

    return fill(
        out / "translated",
        sentences(out / "text"),
        total,
        plan.window,
        make,
        progress=progress,
        doing="translating",
        share=(plan.shard, plan.shards),
    )


class _Nearest:
    """Chooses among candidates, as interpolated distillation does (Kim and Rush, 2016, §3.3)."""

    def __init__(self, languages: Sequence[str]) -> None:
        # effective_order: a sentence of three words has no 4-grams to score.
        self._bleu = BLEU(
            tokenize=bleu_tokenizer(next(iter(languages[1:]), None)), effective_order=True
        )

    def __call__(self, found: Translation, reference: str) -> str:
        """The candidate with the best BLEU, or the most probable if there is no reference."""
        if not found.alternatives or not reference:
            return found.text
        texts = [found.text, *(other.text for other in found.alternatives)]
        return max(texts, key=lambda text: self._bleu.sentence_score(text, [reference]).score)


def assemble(out: Path) -> dict[str, int]:
    """Lay the sources and their translations side by side in pairs/; how many there are."""
    place = out / "pairs"
    if not place.exists():
        counts = {"pairs": 0, "as the reference": 0}
        with atomic_directory(place) as directory:
            with (
                (directory / "source.txt").open("w", encoding="utf-8", newline="\n") as sources,
                (directory / "target.txt").open("w", encoding="utf-8", newline="\n") as targets,
            ):
                lines = zip(sentences(out / "text"), _translations(out), strict=True)
                for (source, reference), text in lines:
                    sources.write(f"{source}\n")
                    targets.write(f"{text}\n")
                    counts["pairs"] += 1
                    counts["as the reference"] += text == reference
            (directory / "counts.json").write_text(json.dumps(counts), encoding="utf-8")
    return cast(dict[str, int], json.loads((place / "counts.json").read_text(encoding="utf-8")))


def _translations(out: Path) -> Iterator[str]:
    number = 0
    while (file := window_file(out / "translated", number)).exists():
        yield from open_text(file)
        number += 1


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
