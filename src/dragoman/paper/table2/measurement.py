"""Train, time and score every model of Table 2 on the same data at the same budget.

In the first round all models are trained for the same steps, in the second for the Transformer's
training FLOPs. Each is scored on the test set with the same beam as soon as it is trained, and its
training steps are timed with the device to itself. What was trained, scored or timed is kept, so
that an interrupted measurement is continued by running it again.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

import torch

from dragoman.bench.training.flops import count_flops
from dragoman.bench.training.timing import (
    DragomanTraining,
    free_device_memory,
    time_in_turns,
    warm_up,
)
from dragoman.config import Config, SearchConfig, load_preset
from dragoman.data.batching.batches import Batch, Batches
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.errors import first_line
from dragoman.evaluation.bleu_by_length import Bucket, bleu_by_length
from dragoman.evaluation.evaluate import evaluate
from dragoman.inference import load
from dragoman.models import count_parameters
from dragoman.paper import sweep
from dragoman.paper.result_cache import (
    corpus_fingerprint,
    file_fingerprint,
    fingerprint,
    load_or_compute,
)
from dragoman.paper.sweep import PrintMessage
from dragoman.paper.table2.models import (
    COMPARED_MODELS,
    TOLERANCE,
    ComparedModel,
    active_parameters,
    budget_error,
    build_config,
    fit_width,
    peak_learning_rate,
    with_steps,
)
from dragoman.paper.table2.results import VALIDATION, Budget, Row, Table2, describe_size
from dragoman.phrasebook import generate
from dragoman.system.atomic_files import atomic_write
from dragoman.system.malloc import keep_freed_memory
from dragoman.training.distributed.ranks import describe_device, pick_device
from dragoman.training.precision import deterministic_algorithms


@dataclass(frozen=True, slots=True)
class _PlannedRow:
    """Hold a row without its results, and the trial they come from."""

    row: Row
    trial: sweep.Trial
    name: str
    """Names the model, which both budgets share."""
    sized: Config
    """Is the model's config before it is known how long it trains."""


def measure(
    data: Path,
    out: Path,
    *,
    parameters: int,
    steps: int,
    test: tuple[Path, Path] | None = None,
    jobs: int = 1,
    print_message: PrintMessage = lambda message: None,
    budgets: Sequence[Budget] = ("parameters", "flops"),
    models: Sequence[ComparedModel] = COMPARED_MODELS,
) -> Table2:
    """Train every model on a prepared corpus, once for `steps` and once for equal FLOPs.

    `test` are a source file and its references, by default the corpus's validation set. In the
    second round every model is given the training FLOPs of the last one.
    """
    prepared = Prepared.open(data)
    test_set = EvaluationSet.load(prepared, test)
    plans = _plan_trials(prepared, parameters, steps, budgets, models, print_message)
    trials = {plan.trial.name: plan.trial for plan in plans}
    scored: dict[str, TranslationScores | str] = {}

    def score(result: sweep.TrialResult) -> None:  # now, as its weights may not be kept for long
        scored[result.name] = _score_trial(result, test_set, print_message)

    results = sweep.run_sweep(
        list(trials.values()), data, out, jobs=jobs, print_message=print_message, on_trained=score
    )
    finished = {result.name: result for result in results}
    speeds = _measure_speeds(
        [p for p in plans if finished[p.trial.name].model], prepared, out, print_message
    )
    for result in results:
        if result.name not in scored:
            score(result)
    devices = dict.fromkeys(speed.device for speed in speeds.values())
    signatures = (
        scores.signature for scores in scored.values() if isinstance(scores, TranslationScores)
    )
    return Table2(
        data=str(data),
        pairs=len(prepared.train),
        test=VALIDATION if test is None else shlex.join(map(str, test)),
        sentences=len(test_set.sources),
        parameters=parameters,
        steps=steps,
        beam=test_set.search.beam,
        length_penalty=test_set.search.length_penalty,
        signature=next(signatures, ""),
        device="; ".join(devices) or describe_device(pick_device("auto")),
        speed=SPEED_DEFINITION,
        rows=tuple(
            _fill_row(p.row, finished[p.trial.name], scored[p.trial.name], speeds.get(p.name))
            for p in plans
        ),
    )


def _measure_speeds(
    plans: Sequence[_PlannedRow], prepared: Prepared, out: Path, print_message: PrintMessage
) -> dict[str, TrainingSpeed]:
    """Return the training speed of each model that can be timed; each is measured once."""
    corpus_hash = corpus_fingerprint(prepared)
    speeds = {}
    for name, sized in {plan.name: plan.sized for plan in plans}.items():

        def compute(name: str = name, sized: Config = sized) -> dict[str, Any]:
            print_message(f"{name}: timing its steps alone")
            return asdict(measure_speed(sized, prepared))

        file = out / f"{name}.speed.json"
        inputs = {"corpus": corpus_hash, "config": fingerprint([sized.to_toml()])}
        try:
            speeds[name] = TrainingSpeed(**load_or_compute(file, inputs, compute))
        except Exception as error:  # out of memory for one: the others' results still count
            print_message(f"{name}: could not be timed ({first_line(error)})")
    return speeds


def _score_trial(
    result: sweep.TrialResult, test_set: EvaluationSet, print_message: PrintMessage
) -> TranslationScores | str:
    """Return the scores of a trained model, or why there are none."""
    if result.model is None:
        return result.failure or "it left no model"
    try:
        file = result.run_directory.with_name(f"{result.name}.scores.json")
        return test_set.score(
            result.model,
            file,
            lambda: print_message(
                f"{result.name}: translating {len(test_set.sources):,} sentences"
            ),
        )
    except Exception as error:  # as above
        print_message(f"{result.name}: could not be scored ({first_line(error)})")
        return first_line(error)


def _plan_trials(
    prepared: Prepared,
    parameters: int,
    steps: int,
    budgets: Sequence[Budget],
    models: Sequence[ComparedModel],
    print_message: PrintMessage,
) -> list[_PlannedRow]:
    """Size every model, and find out how many steps each is trained for at each budget."""
    vocabulary, [batch] = len(prepared.tokenizer), first_batches(prepared, 1)
    meta = prepared.train.meta
    mean = (meta.source_pieces + meta.target_pieces) / (2 * max(1, len(prepared.train)))
    sized: dict[str, Config] = {}
    for model in models:
        plain = build_config(model, prepared.config, vocabulary=vocabulary, mean_length=mean)
        sized[model.name] = wide = fit_width(plain, vocabulary, parameters)
        if abs(error := budget_error(wide, vocabulary, parameters)) > TOLERANCE:
            print_message(
                f"{model.name}: its parameters are {error:+.1%} off the {parameters:,} wanted"
            )
    cost = {name: count_flops(config, batch) for name, config in sized.items()}
    allowed = cost[models[-1].name] * steps
    plans = []
    for budget in budgets:
        for model in models:
            taken = steps if budget == "parameters" else max(1, round(allowed / cost[model.name]))
            if abs(taken / steps - 1) <= TOLERANCE:
                taken = steps  # as good as the first round's run, which is not repeated
            config = with_steps(sized[model.name], taken)
            row = Row(
                model=model.name,
                preset=model.preset,
                family=model.family,
                budget=budget,
                size=describe_size(config.model),
                parameters=count_parameters(config.model, vocabulary),
                active=active_parameters(config.model, vocabulary),
                learning_rate=peak_learning_rate(config),
                steps=taken,
                flops=float(cost[model.name]) * taken,
            )
            name = f"{model.preset}-{parameters // 1000}k"
            trial = sweep.Trial(f"{name}-{taken}", config)
            plans.append(_PlannedRow(row, trial, name, sized[model.name]))
    return plans


def _fill_row(
    row: Row,
    result: sweep.TrialResult,
    scores: TranslationScores | str,
    speed: TrainingSpeed | None,
) -> Row:
    if isinstance(scores, str):
        return replace(row, failure=scores)
    return replace(
        row,
        tokens_per_second=0.0 if speed is None else speed.tokens_per_second,
        seconds=result.seconds,
        perplexity=scores.perplexity,
        bleu=scores.bleu,
        by_length=scores.by_length,
    )


# --- scores on the test set ---


@dataclass(frozen=True, slots=True)
class TranslationScores:
    """Hold the scores of a model on a test set."""

    bleu: float
    perplexity: float
    """Is the perplexity a piece."""
    by_length: tuple[Bucket, ...]
    signature: str
    """Is sacreBLEU's signature of BLEU."""

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """Return the scores of which JSON holds the fields."""
        buckets = tuple(Bucket(**bucket) for bucket in table["by_length"])
        return cls(**{**table, "by_length": buckets})


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """Hold the sentences that all models translate, and the search they do it with."""

    sources: Sequence[str]
    references: Sequence[str]
    language: str | None
    """Is the language of the references."""
    search: SearchConfig

    @classmethod
    def load(cls, prepared: Prepared, files: tuple[Path, Path] | None) -> Self:
        """Read a source file and its references, or take the corpus's validation set."""
        config = prepared.config
        language = config.data.target_language
        if files is None:
            return cls(prepared.valid_source, prepared.valid_target, language, config.search)
        pairs = list(open_parallel_corpus(files))
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        return cls(sources, references, language, config.search)

    def score(self, model: Path, file: Path, begin: Callable[[], None]) -> TranslationScores:
        """Return the scores in `file` or, if there are none, call `begin`, translate and score.

        The scores must be of the same texts, search and model; the model is known by its card, so
        that scores remain when weights are gone.
        """

        def compute() -> dict[str, Any]:
            begin()
            return self._translate_and_score(model)

        inputs = {
            "model": file_fingerprint(model / "card.json"),
            "test": fingerprint(self.sources, self.references),
            "language": self.language,
            "beam": self.search.beam,
            "length_penalty": self.search.length_penalty,
        }
        return TranslationScores.from_json(load_or_compute(file, inputs, compute))

    def _translate_and_score(self, model: Path) -> dict[str, Any]:
        found = evaluate(
            load(model),
            self.references,
            self.sources,
            language=self.language,
            metrics=["bleu"],
            beam=self.search.beam,
            length_penalty=self.search.length_penalty,
        )
        assert found.perplexity is not None
        buckets = bleu_by_length(
            self.sources, found.hypotheses, self.references, language=self.language
        )
        return {
            "bleu": found.scores["bleu"],
            "perplexity": found.perplexity.per_piece,
            "by_length": list(map(asdict, buckets)),
            "signature": found.scores.values["bleu"].signature,
        }


# --- training speed ---


SPEED_DEFINITION: Final = (
    "target tokens a second of training steps on batches of this corpus, one model at a time with "
    "the device to itself, the first steps not counted, the median round"
)
"""What a speed is, in the words of the table's note."""


@dataclass(frozen=True, slots=True)
class _TimingPlan:
    """Say how much is timed on a kind of device."""

    batches: int
    """Counts the batches of a round, a step each."""
    warm_up: int
    """Counts the steps that are at least not timed: kernels are compiled in them."""
    min_rounds: int


_GPU: Final = _TimingPlan(batches=8, warm_up=10, min_rounds=3)
_CPU: Final = _TimingPlan(batches=2, warm_up=1, min_rounds=1)
_WANTED_SECONDS: Final = 2.0
"""How long the rounds should take together."""
_MAX_ROUNDS: Final = 20


@dataclass(frozen=True, slots=True)
class TrainingSpeed:
    """Hold how fast a model is trained on a device."""

    tokens_per_second: float
    device: str


def first_batches(prepared: Prepared, count: int) -> list[Batch]:
    """Return the first batches that every model learns from."""
    config = prepared.config
    batches = Batches(
        prepared.train,
        batch_tokens=config.training.tokens,
        row_length=max(config.data.row_length, config.data.max_length + 1),  # as a run has it
        seed=config.training.seed,
    )
    stream = batches.stream()
    try:
        return [batch for batch, _ in islice(stream, count)]
    finally:
        stream.close()


def measure_speed(config: Config, prepared: Prepared) -> TrainingSpeed:
    """Train a new model for a few seconds on a GPU, or a few steps on a CPU, and time it."""
    device = pick_device(config.training.device)
    plan = _GPU if device.type == "cuda" else _CPU
    with _exclusive_device(config, device):
        rate = _tokens_per_second(config, first_batches(prepared, plan.batches), device, plan)
        return TrainingSpeed(rate, describe_device(device))


def _tokens_per_second(
    config: Config, batches: Sequence[Batch], device: torch.device, plan: _TimingPlan
) -> float:
    training = DragomanTraining(config, batches, device)
    warm_up(training, device, plan.warm_up)
    [first] = time_in_turns([training], device, 1)
    wanted = math.ceil(_WANTED_SECONDS / first.seconds[0])
    rounds = min(_MAX_ROUNDS, max(plan.min_rounds, wanted)) - 1
    [timed] = time_in_turns([training], device, rounds)
    timed.seconds += first.seconds
    return timed.tokens_per_second


@contextmanager
def _exclusive_device(config: Config, device: torch.device) -> Iterator[None]:
    """Set the device up as for training, with no memory left to models before or after."""
    threads = torch.get_num_threads()
    free_device_memory(device)  # a model that failed was still held by its error when it ended
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        keep_freed_memory()
    try:
        torch.set_num_threads(config.training.threads or threads)
        with deterministic_algorithms(config.training.deterministic):
            yield
    finally:
        torch.set_num_threads(threads)
        free_device_memory(device)


# --- the phrasebook ---


def measure_phrasebook(
    out: Path,
    *,
    language: str = "de",
    pairs: int = 60_000,
    sentences: int = 1000,
    parameters: int = 1_000_000,
    steps: int = 300,
    jobs: int = 2,
    print_message: PrintMessage = lambda message: None,
    budgets: Sequence[Budget] = ("parameters", "flops"),
    models: Sequence[ComparedModel] = COMPARED_MODELS,
) -> Table2:
    """Compare the models on the embedded phrasebook, at a scale for two cores of a CPU.

    The test sentences combine words or structures that never meet in training.
    """
    data = out / "data"
    files = {
        split: tuple(out / f"{split}.{code}" for code in ("en", language))
        for split in ("train", "valid", "test")
    }
    if not (data / "report.json").exists():
        for split, count in (("train", pairs), ("valid", 300), ("test", sentences)):
            examples = list(generate(language, split, count))
            atomic_write(files[split][0], "".join(f"{e.source}\n" for e in examples))
            atomic_write(files[split][1], "".join(f"{e.target}\n" for e in examples))
        config = load_preset("phrasebook").updated({"data": {"languages": ["en", language]}})
        prepare(
            open_parallel_corpus(files["train"]),
            data,
            config,
            valid=open_parallel_corpus(files["valid"]),
            replace=True,
        )
        print_message(f"{data}: {pairs:,} pairs of the phrasebook")
    source, reference = files["test"]
    return measure(
        data,
        out / "trials",
        parameters=parameters,
        steps=steps,
        test=(source, reference),
        jobs=jobs,
        print_message=print_message,
        budgets=budgets,
        models=models,
    )
