"""Table 2 on equal terms: every model on the same data at the same budget.

All contenders are trained by the same loop on the same batches of the same pieces, with the
data's own dropout, label smoothing and schedule, and translate with the same beam. Each brings
its architecture, its peak learning rate and its clipping. Its rate stands to the Transformer's as
in their presets; its layers, too, so that a preset of 12 beside the Transformer's 6 becomes 4
beside 2; its width follows from the number of parameters. A second round gives everyone the
Transformer's training FLOPs in place of its number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from dragoman.bench.counted import counted_flops
from dragoman.config import Config, ModelConfig, load_preset
from dragoman.data.batches import Batch, Batches
from dragoman.data.phrasebook import generate
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers import corpus
from dragoman.evaluation.by_length import by_length
from dragoman.evaluation.evaluate import evaluate
from dragoman.files import atomic_write
from dragoman.models import count_parameters
from dragoman.paper import sweep
from dragoman.paper.budgets import TOLERANCE, active_parameters, off_by, widen
from dragoman.paper.table2_picture import draw
from dragoman.paper.table2_recipes import for_steps, peak_rate, recipe
from dragoman.paper.table2_rows import CONTENDERS, Budget, Contender, Row, Table2
from dragoman.paper.table2_view import grids, render, verdict
from dragoman.training.distribution import describe_device, pick_device
from dragoman.translate import load

__all__ = [
    "CONTENDERS",
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
    with the same arguments, it continues what was interrupted. Row by row the last contender's
    FLOPs are everybody's in the second round.
    """
    prepared = Prepared.open(data)
    plans = _plan(prepared, parameters, steps, budgets, contenders, say)
    trials = {plan.trial.name: plan.trial for plan in plans}
    finished = {f.name: f for f in sweep.run(list(trials.values()), data, out, jobs=jobs, say=say)}
    sources, references = _test_set(prepared, test)
    scored: dict[str, tuple[dict[str, Any], str]] = {}
    for name, found in finished.items():
        if found.model is not None:
            say(f"{name}: translating {len(sources):,} sentences")
            scored[name] = _score(found.model, sources, references, prepared.config)
    rows = [_filled(p, finished[p.trial.name], scored.get(p.trial.name)) for p in plans]
    search = prepared.config.search
    return Table2(
        data=str(data),
        pairs=len(prepared.train),
        test="the validation set" if test is None else str(test[0]),
        sentences=len(sources),
        parameters=parameters,
        steps=steps,
        beam=search.beam,
        length_penalty=search.length_penalty,
        signature=next((signature for _, signature in scored.values()), ""),
        device=describe_device(pick_device("auto")),
        rows=tuple(rows),
    )


def _plan(
    prepared: Prepared,
    parameters: int,
    steps: int,
    budgets: Sequence[Budget],
    contenders: Sequence[Contender],
    say: Say,
) -> list[_Plan]:
    vocabulary, batch = len(prepared.tokenizer), _batch(prepared)
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
            name = f"{contender.preset}-{parameters // 1000}k-{taken}"
            plans.append(_Plan(row, sweep.Trial(name, config)))
    return plans


def _batch(prepared: Prepared) -> Batch:
    config = prepared.config
    batches = Batches(
        prepared.train,
        batch_tokens=config.training.tokens,
        row_length=config.data.row_length,
        seed=config.training.seed,
    )
    stream = batches.stream()
    try:
        return next(stream)[0]
    finally:
        stream.close()


def _size(model: ModelConfig) -> str:
    return f"{model.encoder_layers}+{model.decoder_layers} × {model.d_model}"


def _test_set(
    prepared: Prepared, test: tuple[Path, Path] | None
) -> tuple[Sequence[str], Sequence[str]]:
    if test is None:
        return prepared.valid_source, prepared.valid_target
    pairs = list(corpus(test))
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _score(
    model: Path, sources: Sequence[str], references: Sequence[str], config: Config
) -> tuple[dict[str, Any], str]:
    """A row's figures of the test set, and the signature of its BLEU."""
    language = next(iter(config.data.languages[1:]), None)
    search = config.search
    found = evaluate(
        load(model),
        references,
        sources,
        language=language,
        metrics=["bleu"],
        beam=search.beam,
        length_penalty=search.length_penalty,
    )
    assert found.perplexity is not None
    figures = {
        "bleu": found.scores["bleu"],
        "perplexity": found.perplexity.per_piece,
        "by_length": by_length(sources, found.hypotheses, references, language=language),
    }
    return figures, found.scores.values["bleu"].signature


def _filled(plan: _Plan, found: sweep.Finished, scored: tuple[dict[str, Any], str] | None) -> Row:
    if scored is None:
        return replace(plan.row, failure=found.failure or "it left no model")
    return replace(
        plan.row,
        tokens_per_second=found.tokens_per_second,
        seconds=found.seconds,
        **scored[0],
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
