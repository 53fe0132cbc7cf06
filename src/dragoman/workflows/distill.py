"""In sequence-level distillation (Kim and Rush, 2016), a fast student learns from a teacher.

The teacher translates the training sources, and the student is trained on its translations. Each
stage is a directory, and one that is there is not made again:

    text/        the sources, each once, and how people translated them
    translated/  a file for each window of them: the teacher's translations
    pairs/       sources and translations, line by line
    data/        the same, prepared with the teacher's pieces
    run/         the training run; run/model is the student

All but translated/ and run/ appear when they are complete; those two are continued. Several
processes may translate, and several students may learn from one data/, each in a run of its name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from dragoman.config import Config, DataConfig
from dragoman.data import Progress
from dragoman.data.cleaning import HashSet, pair_hash
from dragoman.data.readers import group_files, open_corpus
from dragoman.data.readers.parallel import ParallelFiles, open_text
from dragoman.errors import ConfigError, DataError
from dragoman.inference import Translation, Translator, load
from dragoman.messages import counted
from dragoman.system.atomic_files import remove_leftovers
from dragoman.text.bleu import make_bleu
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.distributed.ranks import environment_world_size
from dragoman.training.run import Outcome
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

SHARED_STAGES: Final = ("text", "translated", "pairs", "data")
"""The stages that all students of a directory share."""
_PREPARATION_KEYS: Final = (
    *("max_length", "max_ratio", "drop_duplicates", "drop_copies"),
    *("task", "languages", "identify_languages"),
)
"""The settings of config section data that data/ depends on; the student's run has the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Hold the options of distillation, checked."""

    teachers: Sequence[Path]
    """One translator, or several of the same pieces as an ensemble."""
    files: Sequence[Path]
    """The training pairs: two aligned files, or one .tsv, .jsonl or .tmx."""
    text: Sequence[Path] = ()
    """More source text, a sentence a line, that nobody has translated."""
    valid: Sequence[Path] = ()
    """Pairs to validate on, translated by people; not needed if nothing is trained."""
    test: Sequence[Path] = ()
    """More such pairs, scored at every validation and never chosen by."""
    beam: int = 4
    """The number of hypotheses that the teacher keeps."""
    length_penalty: float | None = None
    """GNMT's α; None: the teacher's."""
    n_best: int = 1
    """Of so many translations the one nearest to the reference is taken, where there is one."""
    window: int = 2000
    """The number of sentences translated between two savings."""
    shards: int = 1
    """The number of processes that translate."""
    shard: int = 1
    """Which of them this is, from 1."""
    keep_originals: bool = False
    """Whether the student is also trained on the pairs as people translated them."""
    name: str = "run"
    """The name of the student's run directory."""
    config: Config | None = None
    """The student's config; without one, the first teacher's."""
    assignments: Sequence[str] = ()
    """Changes to it, as section.key=value."""

    def __post_init__(self) -> None:
        if not self.teachers or not self.files:
            raise ConfigError("give a teacher, and the pairs it learned from")
        for name in ("beam", "n_best", "window", "shards"):
            count = getattr(self, name)
            if count < 1:
                raise ConfigError(f"{option_name(name)} {count} must be at least 1")
        if self.n_best > self.beam:
            raise ConfigError(
                f"--n-best {self.n_best} is above --beam {self.beam}; a beam has no more candidates"
            )
        if not 1 <= self.shard <= self.shards:
            raise ConfigError(
                f"--shard {self.shard} of --shards {self.shards}: they are counted from 1"
            )
        if (
            self.name in SHARED_STAGES
            or Path(self.name).name != self.name
            or self.name.startswith(".")
        ):
            raise ConfigError(f"--name {self.name}: cannot be a run's directory here; try 6-2")
        for one in self.assignments:
            if one.startswith("tokenizer."):
                raise ConfigError(f"--set {one}: the pieces are the teacher's; leave it out")

    def resolve_config(self, teacher: Config) -> Config:
        """Return the student's config, where `teacher` is that of the first teacher.

        Pieces, languages and the longest sentence are the teacher's, whatever a preset says.
        """
        config = self.config or teacher
        longest = teacher.data.max_length
        same = {
            "task": "translation",
            "languages": teacher.data.languages,
            "max_length": longest,
            "row_length": max(config.data.row_length, longest + 1),
        }
        config = config.updated({"data": same}).overridden(self.assignments)
        return dataclasses.replace(config, tokenizer=teacher.tokenizer)

    def stage_settings(self, config: Config, teacher: Config) -> dict[str, dict[str, Any]]:
        """Return what each stage depends on besides those before it, by names that users know."""
        files = {
            option_name(name): list(map(identify_file, getattr(self, name)))
            for name in ("text", "valid", "test")
        }
        options = {
            option_name(name): getattr(self, name)
            for name in ("beam", "n_best", "window", "length_penalty")
        }
        stages: dict[str, dict[str, Any]] = {
            "text": {
                "corpus": list(map(identify_file, self.files)),
                **files,
                "data.max_length of the teacher": teacher.data.max_length,
            },
            "translated": {"teacher": list(map(identify_model, self.teachers)), **options},
            "pairs": {},
            "data": {"--keep-originals": self.keep_originals},
            self.name: {},
        }
        sections = config.to_dict()
        del sections["trees"]  # of no meaning to a translator
        for section, settings in sections.items():
            for key, value in settings.items():
                prepares = section == "data" and key in _PREPARATION_KEYS
                stage = "data" if prepares or section == "tokenizer" else self.name
                stages[stage][f"{section}.{key}"] = value
        return stages


@dataclass(frozen=True, slots=True)
class Result:
    """Hold what has been made."""

    text: dict[str, int]
    """How many sentences were read, how many are to be translated, and why the others are not."""
    missing: int
    """The windows that other shards have not translated yet; until then nothing else is made."""
    pairs: Path | None
    """The directory of sources and translations, if no window is missing."""
    model: Path | None
    """The student, if it was wanted and training was not interrupted."""
    outcome: Outcome | None
    """The outcome of training, if there was any in this call."""


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
    """Do what has not been done yet of the plan in the directory `out`.

    Killed at any moment, the same call continues; at most one window is translated again. Of
    several shards, the one that ends last goes on to train. The student begins with random weights.
    """
    if environment_world_size() > 1:
        raise ConfigError(
            "torchrun is for training; translate with --shards, without torchrun, until "
            f"{out / 'data'} is there, then train on that"
        )
    if not plan.valid and not translate_only:
        raise ConfigError("--valid is missing: give pairs translated by people, not by the teacher")
    teacher = load(*plan.teachers, device=device)
    tokenizer, teacher_config = teacher.tokenizer, teacher.config
    config = plan.resolve_config(teacher_config)
    stages = plan.stage_settings(config, teacher_config)
    check_directory(out, command="distill")
    with exclusive_lock(out / ".lock", wait=True):
        record_stages(out, stages, command="distill")
        text = _collect_sentences(plan, tokenizer, teacher_config.data, out / "text", progress)
    tell(describe_selection(text, "to translate", DROP_REASONS))

    teacher.warn = tell
    missing = _translate_windows(teacher, plan, text["to translate"], out, progress)
    del teacher  # frees its memory for training
    if missing:
        tell(
            f"shard {plan.shard} of {plan.shards} is done; other shards have "
            f"{counted(missing, 'window')} left, and the last one to finish continues"
        )
        return Result(text, missing, None, None, None)
    with exclusive_lock(out / ".lock", wait=True):
        remove_leftovers(out / "translated")
        counts = _write_pairs(out)
        same = f"{counts['as the reference']:,} the same as in the corpus"
        tell(f"{counted(counts['pairs'], 'pair')}, {same}")
        if translate_only:
            return Result(text, 0, out / "pairs", None, None)
        if not (out / "data").exists():
            pairs = ParallelFiles(out / "pairs" / "source.txt", out / "pairs" / "target.txt")
            originals = [open_corpus(plan.files, config.data)] if plan.keep_originals else []
            prepare_stage(
                out / "data",
                [pairs, *originals],
                config,
                valid=open_corpus(plan.valid, config.data),
                tokenizer=tokenizer,
                tell=tell,
                progress=progress,
            )
    run = out / plan.name
    with exclusive_lock(out / f".lock-{plan.name}", wait=False) as lock:
        if lock is None:
            tell(f"{run}: another process is training it")
            return Result(text, 0, out / "pairs", None, None)
        tests = group_files(plan.test, config.data)
        model, outcome = train_stage(run, config, out / "data", tests=tests, quiet=quiet)
    return Result(text, 0, out / "pairs", model, outcome)


# text/: which sentences the teacher translates.

DROP_REASONS: Final = ("empty", "too long", "in validation or test", "duplicate")
"""Why a sentence is not translated; the first that applies is counted."""
_CHUNK: Final = 2000

Counts: TypeAlias = dict[str, int]


class Sentence(NamedTuple):
    """Hold a sentence to translate and its translation in the corpus, empty if it has none."""

    source: str
    reference: str


def _collect_sentences(
    plan: Plan, tokenizer: Tokenizer, config: DataConfig, place: Path, progress: Progress
) -> Counts:
    """Write the sentences to source.txt and reference.txt, each source once, and count them."""

    def make(directory: Path) -> Counts:
        counts = dict.fromkeys(("read", "to translate", *DROP_REASONS), 0)
        with (
            (directory / "source.txt").open("w", encoding="utf-8", newline="\n") as sources,
            (directory / "reference.txt").open("w", encoding="utf-8", newline="\n") as references,
        ):
            for source, reference in _select_sentences(plan, tokenizer, config, counts):
                sources.write(f"{source}\n")
                references.write(f"{reference}\n")
                counts["to translate"] += 1
                progress("reading", counts["read"], None)
        if not counts["to translate"]:
            reasons = ", ".join(f"{reason}: {counts[reason]}" for reason in DROP_REASONS)
            raise DataError(
                f"{' + '.join(map(str, (*plan.files, *plan.text)))}: nothing is left to "
                f"translate ({reasons}); give other text"
            )
        return counts

    return make_stage(place, make)


def _select_sentences(
    plan: Plan, tokenizer: Tokenizer, config: DataConfig, counts: Counts
) -> Iterator[Sentence]:
    """Yield the sentences to translate, and count why the others are dropped."""
    held_out = {
        pair_hash(tokenizer.normalize(pair.source), "")
        for files in [plan.valid, *group_files(plan.test, config)]
        if files
        for pair in open_corpus(files, config)
    }
    seen = HashSet()  # compact, for a text may have millions of lines
    sentences = _read_corpus(plan, config)
    while chunk := list(islice(sentences, _CHUNK)):
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


def _read_corpus(plan: Plan, config: DataConfig) -> Iterator[Sentence]:
    pairs = (Sentence(pair.source, pair.target) for pair in open_corpus(plan.files, config))
    lines: Iterable[str] = chain.from_iterable(open_text(file) for file in plan.text)
    return chain(pairs, (Sentence(line, "") for line in lines))


def _read_sentences(place: Path) -> Iterator[Sentence]:
    """Yield what `_collect_sentences` wrote."""
    files = (open_text(place / name) for name in ("source.txt", "reference.txt"))
    return (Sentence(*lines) for lines in zip(*files, strict=True))


# translated/: the teacher's translations, a window at a time.


def _translate_windows(
    teacher: Translator, plan: Plan, total: int, out: Path, progress: Progress
) -> int:
    """Translate this shard's windows that are not there; return how many windows are missing."""
    # effective_order: a sentence of three words has no 4-grams to score.
    bleu = make_bleu(teacher.config.data.target_language, effective_order=True)

    def choose(found: Translation, reference: str) -> str:
        """Return the candidate with the best BLEU, or the most probable without a reference.

        This is interpolated distillation (Kim and Rush, 2016, §3.3).
        """
        if not found.alternatives or not reference:
            return found.text
        texts = [found.text, *(other.text for other in found.alternatives)]
        return max(texts, key=lambda text: bleu.sentence_score(text, [reference]).score)

    def make(window: list[Sentence]) -> str:
        found = teacher.translate(
            [one.source for one in window],
            beam=plan.beam,
            n_best=plan.n_best,
            length_penalty=plan.length_penalty,
            raw=True,
        )
        texts = map(choose, found, (one.reference for one in window))
        return "".join(f"{text}\n" for text in texts)

    return fill_windows(
        out / "translated",
        _read_sentences(out / "text"),
        total,
        plan.window,
        make,
        progress=progress,
        activity="translating",
        share=(plan.shard, plan.shards),
    )


# pairs/: what the student learns from.


def _write_pairs(out: Path) -> Counts:
    """Write the sources and their translations side by side to pairs/, and count them."""

    def make(directory: Path) -> Counts:
        counts = {"pairs": 0, "as the reference": 0}
        with (
            (directory / "source.txt").open("w", encoding="utf-8", newline="\n") as sources,
            (directory / "target.txt").open("w", encoding="utf-8", newline="\n") as targets,
        ):
            sentences, texts = _read_sentences(out / "text"), read_windows(out / "translated")
            for (source, reference), text in zip(sentences, texts, strict=True):
                sources.write(f"{source}\n")
                targets.write(f"{text}\n")
                counts["pairs"] += 1
                counts["as the reference"] += text == reference
        return counts

    return make_stage(out / "pairs", make)
