"""Table 2 on equal terms: every model on the same data at the same budget.

All contenders are trained by the same loop on the same batches of the same pieces, with the
data's own dropout, label smoothing and schedule, and translate with the same beam. Each brings
its architecture, its peak learning rate and its clipping. Its rate stands to the Transformer's as
in their presets; its layers, too, so that a preset of 12 beside the Transformer's 6 becomes 4
beside 2; its width follows from the number of parameters. A second round gives everyone the
Transformer's training FLOPs in place of its number of steps.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from dragoman.bench.training.flops import counted_flops
from dragoman.config import Config, ModelConfig, load_preset
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.parallel import corpus
from dragoman.models import count_parameters
from dragoman.paper import sweep
from dragoman.paper.result_cache import corpus_fingerprint, fingerprint, kept
from dragoman.paper.table2.parameter_budget import TOLERANCE, active_parameters, off_by, widen
from dragoman.paper.table2.picture import draw
from dragoman.paper.table2.recipes import for_steps, peak_rate, recipe
from dragoman.paper.table2.results import CONTENDERS, VALIDATION, Budget, Contender, Row, Table2
from dragoman.paper.table2.scores import Scores, Task
from dragoman.paper.table2.speed import SPEED, Speed, first_batches, measure_speed
from dragoman.paper.table2.text import grids, render, verdict
from dragoman.phrasebook import generate
from dragoman.system.atomic_files import atomic_write
from dragoman.training.distributed.ranks import describe_device, pick_device

__all__ = [
    "CONTENDERS",
    "VALIDATION",
    "Contender",
    "Row",
    "Table2",
    "draw",
    "grids",
    "measure",
    "phrasebook",
    "recipe",
    "render",
    "verdict",
]

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Plan:
    """A row and the trial it comes from."""

    row: Row
    trial: sweep.Trial
    name: str
    """Of the model, which both budgets share."""
    sized: Config
    """Its config before anyone said how long it trains."""


def measure(
    data: Path,
    out: Path,
    *,
    parameters: int,
    steps: int,
    test: tuple[Path, Path] | None = None,
    jobs: int = 1,
    say: Say = lambda message: None,
    budgets: Sequence[Budget] = ("parameters", "flops"),
    contenders: Sequence[Contender] = CONTENDERS,
) -> Table2:
    """Train every contender on a prepared corpus, once for `steps` and once for equal FLOPs.

    `test` are a source file and its references, by default the corpus's validation set. Run again
    with the same arguments, it continues what was interrupted: training, timing and scoring. Row
    by row the last contender's FLOPs are everybody's in the second round.
    """
    prepared = Prepared.open(data)
    task = Task.of(prepared, test)
    plans = _plan(prepared, parameters, steps, budgets, contenders, say)
    trials = {plan.trial.name: plan.trial for plan in plans}
    scored: dict[str, Scores | str] = {}

    def score(found: sweep.Finished) -> None:  # at once: its scores stay where its weights may not
        scored[found.name] = _scored(found, task, say)

    every = sweep.run(list(trials.values()), data, out, jobs=jobs, say=say, then=score)
    finished = {found.name: found for found in every}
    speeds = _speeds([p for p in plans if finished[p.trial.name].model], prepared, out, say)
    scored |= {f.name: _scored(f, task, say) for f in every if f.name not in scored}
    devices = dict.fromkeys(speed.device for speed in speeds.values())
    signatures = (scores.signature for scores in scored.values() if isinstance(scores, Scores))
    return Table2(
        data=str(data),
        pairs=len(prepared.train),
        test=VALIDATION if test is None else shlex.join(map(str, test)),
        sentences=len(task.sources),
        parameters=parameters,
        steps=steps,
        beam=task.search.beam,
        length_penalty=task.search.length_penalty,
        signature=next(signatures, ""),
        device="; ".join(devices) or describe_device(pick_device("auto")),
        speed=SPEED,
        rows=tuple(
            _filled(p.row, finished[p.trial.name], scored[p.trial.name], speeds.get(p.name))
            for p in plans
        ),
    )


def _speeds(plans: Sequence[_Plan], prepared: Prepared, out: Path, say: Say) -> dict[str, Speed]:
    """The speed of each model, measured once; of one that cannot be measured there is none."""
    corpus_is = corpus_fingerprint(prepared)
    speeds = {}
    for name, sized in {plan.name: plan.sized for plan in plans}.items():

        def find(name: str = name, sized: Config = sized) -> dict[str, Any]:
            say(f"{name}: timing its steps alone")
            return asdict(measure_speed(sized, prepared))

        of = {"corpus": corpus_is, "config": fingerprint([sized.to_toml()])}
        try:
            speeds[name] = Speed(**kept(out / f"{name}.speed.json", of, find))
        except Exception as error:  # out of memory for one: the others' results are still told
            say(f"{name}: could not be timed ({sweep.first_line(error)})")
    return speeds


def _scored(found: sweep.Finished, task: Task, say: Say) -> Scores | str:
    """The scores, or why there are none."""
    if found.model is None:
        return found.failure or "it left no model"
    try:
        file = found.run.with_name(f"{found.name}.scores.json")
        return task.score(
            found.model,
            file,
            lambda: say(f"{found.name}: translating {len(task.sources):,} sentences"),
        )
    except Exception as error:  # as above
        say(f"{found.name}: could not be scored ({sweep.first_line(error)})")
        return sweep.first_line(error)


def _plan(
    prepared: Prepared,
    parameters: int,
    steps: int,
    budgets: Sequence[Budget],
    contenders: Sequence[Contender],
    say: Say,
) -> list[_Plan]:
    vocabulary, [batch] = len(prepared.tokenizer), first_batches(prepared, 1)
    meta = prepared.train.meta
    mean = (meta.source_pieces + meta.target_pieces) / (2 * max(1, len(prepared.train)))
    sized: dict[str, Config] = {}
    for contender in contenders:
        plain = recipe(contender, prepared.config, vocabulary=vocabulary, mean=mean)
        sized[contender.name] = wide = widen(plain, vocabulary, parameters)
        if abs(error := off_by(wide, vocabulary, parameters)) > TOLERANCE:
            say(f"{contender.name}: its parameters are {error:+.1%} off the {parameters:,} wanted")
    cost = {name: counted_flops(config, batch) for name, config in sized.items()}
    allowed = cost[contenders[-1].name] * steps
    plans = []
    for budget in budgets:
        for contender in contenders:
            taken = (
                steps if budget == "parameters" else max(1, round(allowed / cost[contender.name]))
            )
            if abs(taken / steps - 1) <= TOLERANCE:
                taken = steps  # as good as the first round's run, which is not repeated
            config = for_steps(sized[contender.name], taken)
            m = config.model
            row = Row(
                model=contender.name,
                preset=contender.preset,
                family=contender.family,
                budget=budget,
                size=_size(m),
                parameters=count_parameters(m, vocabulary),
                active=active_parameters(m, vocabulary),
                learning_rate=peak_rate(config),
                steps=taken,
                flops=float(cost[contender.name]) * taken,
            )
            name = f"{contender.preset}-{parameters // 1000}k"
            trial = sweep.Trial(f"{name}-{taken}", config)
            plans.append(_Plan(row, trial, name, sized[contender.name]))
    return plans


def _size(model: ModelConfig) -> str:
    return f"{model.encoder_layers}+{model.decoder_layers} × {model.d_model}"


def _filled(row: Row, found: sweep.Finished, scores: Scores | str, speed: Speed | None) -> Row:
    if isinstance(scores, str):
        return replace(row, failure=scores)
    return replace(
        row,
        tokens_per_second=0.0 if speed is None else speed.tokens_per_second,
        seconds=found.seconds,
        perplexity=scores.perplexity,
        bleu=scores.bleu,
        by_length=scores.by_length,
    )


# --- the phrasebook ---


def phrasebook(
    out: Path,
    *,
    language: str = "de",
    pairs: int = 60_000,
    sentences: int = 1000,
    parameters: int = 1_000_000,
    steps: int = 300,
    jobs: int = 2,
    say: Say = lambda message: None,
    budgets: Sequence[Budget] = ("parameters", "flops"),
    contenders: Sequence[Contender] = CONTENDERS,
) -> Table2:
    """The comparison on the embedded phrasebook, at a scale for two cores of a CPU.

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
        prepare(corpus(files["train"]), data, config, valid=corpus(files["valid"]), replace=True)
        say(f"{data}: {pairs:,} pairs of the phrasebook")
    source, reference = files["test"]
    return measure(
        data,
        out / "trials",
        parameters=parameters,
        steps=steps,
        test=(source, reference),
        jobs=jobs,
        say=say,
        budgets=budgets,
        contenders=contenders,
    )
