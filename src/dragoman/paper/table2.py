"""Table 2 on equal terms: every model on the same data at the same budget.

All contenders are trained by the same loop on the same batches of the same pieces, with the
data's own dropout, label smoothing and schedule, and translate with the same beam. Each brings
its architecture, its peak learning rate and its clipping. Its rate stands to the Transformer's as
in their presets; its layers, too, so that a preset of 12 beside the Transformer's 6 becomes 4
beside 2; its width follows from the number of parameters. A second round gives everyone the
Transformer's training FLOPs in place of its number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

import torch

from dragoman.bench.counted import counted_flops
from dragoman.bench.stream import MEAN
from dragoman.config import Config, ModelConfig, load_preset
from dragoman.data.batches import Batch, Batches
from dragoman.data.phrasebook import generate
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers import corpus
from dragoman.errors import ConfigError
from dragoman.evaluation.by_length import Bucket, by_length
from dragoman.evaluation.evaluate import evaluate
from dragoman.files import atomic_write
from dragoman.inspection.drawing import INK, check_format, style, write
from dragoman.models import count_parameters
from dragoman.paper import sweep
from dragoman.paper.budgets import TOLERANCE, active_parameters, off_by, widen
from dragoman.paper.facts import TABLE_2
from dragoman.paper.grid import Grid
from dragoman.translate import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
Budget: TypeAlias = Literal["parameters", "flops"]
Family: TypeAlias = Literal["fixed", "attention", "other"]


@dataclass(frozen=True, slots=True)
class Contender:
    """A row to be: whose preset it is, and how it comes to know its source."""

    name: str
    preset: str
    family: Family
    """By one fixed vector, by attention, or otherwise."""
    paper: str | None = None
    """The row of the paper's Table 2 that corresponds."""


CONTENDERS: Final = (
    Contender("feed-forward", "feed-forward", "other"),
    Contender("RNN", "rnn", "fixed"),
    Contender("GRU", "gru", "fixed"),
    Contender("LSTM", "lstm", "fixed"),
    Contender("LSTM + dot attention", "lstm-dot", "attention"),
    Contender("LSTM + additive attention", "lstm-additive", "attention"),
    Contender("GNMT", "gnmt", "attention", "GNMT + RL"),
    Contender("ByteNet", "bytenet", "other", "ByteNet"),
    Contender("ConvS2S", "convs2s", "attention", "ConvS2S"),
    Contender("mixture of experts", "moe", "attention", "MoE"),
    Contender("restricted self-attention", "restricted", "attention"),
    Contender("Transformer", "base", "attention", "Transformer (base)"),
)
"""In the order of the story; the last sets the FLOPs."""


# --- what is found ---


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One model at one budget; without a model there is a failure, and the figures are 0."""

    model: str
    preset: str
    family: Family
    budget: Budget
    size: str
    """Layers and widths, in words."""
    parameters: int
    active: int
    """Those a position uses: fewer than all only with experts."""
    learning_rate: float
    steps: int
    flops: float
    """Of all training."""
    tokens_per_second: float = 0.0
    """Target tokens in training, the median."""
    seconds: float = 0.0
    perplexity: float = 0.0
    """Of the test set, a piece."""
    bleu: float = 0.0
    by_length: tuple[Bucket, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Table2:
    """All rows, and what they have in common."""

    data: str
    pairs: int
    test: str
    sentences: int
    parameters: int
    """The budget of each."""
    steps: int
    """Of the first round; the Transformer's of both."""
    beam: int
    length_penalty: float
    signature: str
    """Of BLEU, by sacreBLEU."""
    device: str
    rows: tuple[Row, ...]

    def at(self, budget: Budget) -> tuple[Row, ...]:
        """The rows of one budget that have a model."""
        return tuple(r for r in self.rows if r.budget == budget and r.failure is None)

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        rows = [
            Row(**{**row, "by_length": tuple(Bucket.from_json(b) for b in row["by_length"])})
            for row in table["rows"]
        ]
        return cls(**{**table, "rows": tuple(rows)})


# --- the recipes ---

SHARED: Final = {
    *("d_model", "heads", "d_k", "d_v"),
    *("dropout", "attention_dropout", "activation_dropout"),
}
"""Settings of a model that are the data's, not the preset's."""


def recipe(contender: Contender, data: Config, *, vocabulary: int, mean: float = MEAN) -> Config:
    """A contender at the scale of the data's own Transformer, before it is sized.

    `mean` is the sentences' mean length in pieces; a window shrinks with it.
    """
    paper, own = load_preset("base"), load_preset(contender.preset)
    changed: dict[str, Any] = {
        f.name: getattr(own.model, f.name)
        for f in fields(ModelConfig)
        if f.name not in SHARED and getattr(own.model, f.name) != getattr(paper.model, f.name)
    }
    for name in ("encoder_layers", "decoder_layers"):
        share = getattr(own.model, name) / getattr(paper.model, name)
        changed[name] = max(1, round(share * getattr(data.model, name)))
    ratio = own.model.d_ff / own.model.d_model / (paper.model.d_ff / paper.model.d_model)
    changed["d_ff"] = max(8, round(ratio * data.model.d_ff))
    if own.model.window:
        changed["window"] = max(1, round(own.model.window * mean / MEAN))
    rate = _peak(own) / _peak(paper)
    training = replace(
        data.training,
        batch_tokens=data.training.tokens,  # "auto" would differ from model to model
        clip_norm=own.training.clip_norm or data.training.clip_norm,
        learning_rate=data.training.learning_rate * rate,
    )
    tokenizer = replace(data.tokenizer, vocabulary=vocabulary)
    model = replace(data.model, **changed)
    return replace(data, tokenizer=tokenizer, model=model, training=training)


def _peak(config: Config) -> float:
    """The highest learning rate; of the paper's schedule, that of eq. 3 at the end of warm-up."""
    training = config.training
    if training.schedule != "paper":
        return training.learning_rate
    scale = (config.model.d_model * training.warmup_steps) ** -0.5
    return float(training.learning_rate * scale)


def _for_steps(config: Config, steps: int) -> Config:
    """Trained for so long, and looked at once, at the end."""
    training = config.training
    return replace(
        config,
        training=replace(
            training,
            steps=steps,
            minutes=0.0,
            patience=0,
            patience_metric="loss",
            warmup_steps=min(training.warmup_steps, max(1, steps // 4)),
            validate_every=steps,
            validate_sentences=0,
            checkpoint_every=min(training.checkpoint_every, max(1, steps // 8)),
            log_every=min(training.log_every, max(1, steps // 20)),
        ),
    )


# --- measuring ---


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
        device=_device(),
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
            config = _for_steps(sized[contender.name], taken)
            m = config.model
            row = Row(
                model=contender.name,
                preset=contender.preset,
                family=contender.family,
                budget=budget,
                size=_size(m),
                parameters=count_parameters(m, vocabulary),
                active=active_parameters(m, vocabulary),
                learning_rate=_peak(config),
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


def _device() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"CPU, {torch.get_num_threads()} threads"


# --- on paper ---


def render(table: Table2) -> str:
    """All of it for a terminal."""
    return "\n\n".join(grid.text() for grid in grids(table)) + f"\n\n{verdict(table)}"


def grids(table: Table2) -> list[Grid]:
    """A table of scores for each budget, and one of BLEU by length."""
    titles: dict[Budget, str] = {
        "parameters": f"Same parameters, same data: {table.steps:,} steps each",
        "flops": "Same parameters, same training FLOPs: the Transformer's",
    }
    found = [
        _scores(table, budget, title)
        for budget, title in titles.items()
        if any(row.budget == budget for row in table.rows)
    ]
    return [*found, *_lengths(table)]


def _scores(table: Table2, budget: Budget, title: str) -> Grid:
    paper = {c.preset: next((s for s in TABLE_2 if s.model == c.paper), None) for c in CONTENDERS}
    header = ["model", "layers × width", "parameters", "steps", "FLOPs", "tokens/s", "min", "rate"]
    header += ["PPL", "BLEU", "the paper's", "its FLOPs"]
    rows = []
    for row in table.rows:
        if row.budget != budget:
            continue
        theirs = paper.get(row.preset)
        of_paper = (
            "" if theirs is None or theirs.en_de is None else f"{theirs.en_de:g}",
            "" if theirs is None or theirs.flops_en_de is None else f"{theirs.flops_en_de:.1e}",
        )
        found = (
            f"{row.tokens_per_second:,.0f}",
            f"{row.seconds / 60:.1f}",
            f"{row.learning_rate:.2g}",
            f"{row.perplexity:.2f}",
            f"{row.bleu:.2f}",
        )
        if row.failure is not None:
            found = ("", "", f"{row.learning_rate:.2g}", "", "failed")
        cost = (f"{row.steps:,}", f"{row.flops:.2e}")
        rows.append((row.model, row.size, _millions(row), *cost, *found, *of_paper))
    failures = [f"{r.model}: {r.failure}" for r in table.rows if r.failure and r.budget == budget]
    note = (
        f"{table.data}: {table.pairs:,} pairs; test: {table.test}, {table.sentences:,} sentences, "
        f"beam {table.beam}, α {table.length_penalty:g}; BLEU|{table.signature}; {table.device}; "
        "one seed. Experts are sized by the parameters a position uses; the paper's figures are "
        "newstest2014 en-de."
    )
    return Grid(title, header, rows, "\n".join([note, *failures]), words=2)


def _millions(row: Row) -> str:
    total = f"{row.parameters / 1e6:.2f}M"
    return total if row.active == row.parameters else f"{row.active / 1e6:.2f}M of {total}"


def _lengths(table: Table2) -> list[Grid]:
    rows = _first_round(table)
    if not rows:
        return []
    heads = [f"{bucket.lengths} ({bucket.sentences})" for bucket in rows[0].by_length]
    cells = [
        (row.model, *(f"{b.bleu:.1f} ± {(b.high - b.low) / 2:.1f}" for b in row.by_length))
        for row in rows
    ]
    note = "Source words between white space (sentences of that length); ± half the 95% interval."
    return [Grid("BLEU by sentence length", ("model", *heads), cells, note)]


def _first_round(table: Table2) -> tuple[Row, ...]:
    """The rows of the first round, or of the second if that is all there is."""
    return table.at("parameters") or table.at("flops")


def verdict(table: Table2) -> str:
    """Whether one fixed vector falls with length faster than attention does, with the figures."""
    rows = [row for row in _first_round(table) if len(row.by_length) > 1]
    fixed = [f for row in rows if row.family == "fixed" and (f := _Fall.of(row))]
    attention = [f for row in rows if row.family == "attention" and (f := _Fall.of(row))]
    if not fixed or not attention:
        return (
            "Whether one fixed vector falls with length faster than attention cannot be told: "
            "there must be models of both kinds that translate, and sentences of two lengths."
        )
    low, high = (sorted(getattr(f, end) for f in fixed)[len(fixed) // 2] for end in ("low", "high"))
    lows, highs = (sorted(getattr(f, end) for f in attention) for end in ("low", "high"))
    middle = len(attention) // 2
    if high < lows[middle]:
        answer = "one fixed vector falls with length faster than attention does"
    elif low > highs[middle]:
        answer = "one fixed vector falls with length less than attention does"
    else:
        answer = "one fixed vector and attention fall alike, as far as these sentences tell"
    short, long = rows[0].by_length[0].lengths, rows[0].by_length[-1].lengths
    return (
        f"From {short} to {long} words, {answer}: of its BLEU keep {_named(fixed)}, "
        f"and with attention {_named(attention)}."
    )


@dataclass(frozen=True, slots=True)
class _Fall:
    """What is left of a model's BLEU from the shortest bucket to the longest."""

    model: str
    before: float
    after: float
    low: float
    high: float

    @classmethod
    def of(cls, row: Row) -> Self | None:
        """None for a model that cannot translate short sentences either."""
        short, long = row.by_length[0], row.by_length[-1]
        if short.low < 1:
            return None
        return cls(row.model, short.bleu, long.bleu, long.low / short.high, long.high / short.low)


def _named(falls: Iterable[_Fall]) -> str:
    return ", ".join(
        f"{f.model} {f.after / f.before:.0%} ({f.before:.1f} → {f.after:.1f})" for f in falls
    )


# --- the picture ---

SHADES: Final = {
    "fixed": ("#f0a35e", "#dd6b20", "#a8401a"),
    "attention": ("#8fbfe8", "#4fa3a5", "#2f8f6b", "#5b8def", "#7a6fd0", "#3f9fb5", "#1f4e9c"),
    "other": ("#9aa3b0", "#a5478f"),
}
"""Warm for one fixed vector, cool for attention."""


def draw(table: Table2, path: Path) -> Path:
    """BLEU against training FLOPs, and BLEU by sentence length, a line a model."""
    from matplotlib.figure import Figure

    check_format(path)
    if not _first_round(table):
        raise ConfigError("there is no model to draw; see why all of them failed")
    with style():
        figure = Figure(figsize=(12.4, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_flops(left, table)
        _draw_lengths(right, _first_round(table))
        write(figure, path)
    return path


def _colours(rows: Iterable[Row]) -> dict[str, str]:
    left = {family: list(shades) for family, shades in SHADES.items()}
    return {row.model: left[row.family].pop(0) if left[row.family] else INK for row in rows}


def _draw_flops(axes: Axes, table: Table2) -> None:
    rows = [*table.at("parameters"), *table.at("flops")]
    colours = _colours(_first_round(table))
    for row in rows:
        colour = colours.get(row.model, INK)
        face = colour if row.budget == "parameters" else "white"
        axes.plot(row.flops, row.bleu, "o", color=colour, markerfacecolor=face, markersize=7)
    least, most = min(r.flops for r in rows), max(r.flops for r in rows)
    reach = (most / least) ** 0.08 * 1.02
    names_at = most * reach**1.5
    axes.set_xscale("log")
    axes.set_xlim(least / reach, names_at * (names_at / least) ** 0.6 * reach)  # room for the names
    axes.set_xticks(
        ticks := _ticks(least, most), [f"{tick:.2g}".replace("e+", "e") for tick in ticks]
    )
    axes.set_xticks([], minor=True)
    axes.set_xlabel("training FLOPs")
    axes.set_title("BLEU against training FLOPs (filled: same steps, open: same FLOPs)")
    axes.tick_params(length=0)
    axes.margins(y=0.08)
    _name(
        axes, names_at, [(r.model, r.flops, r.bleu, colours[r.model]) for r in _first_round(table)]
    )


def _ticks(least: float, most: float) -> list[float]:
    """Round numbers on a logarithmic axis, the coarsest of which there are three or more."""
    decades = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.2, 1.4, 1.6, 2, 2.5, 3, 4, 5, 6, 8)):
        ticks = [m * 10.0**d for d in decades for m in steps]
        ticks = [tick for tick in ticks if least / 1.1 <= tick <= most * 1.1]
        if len(ticks) >= 3:
            break
    return ticks


def _draw_lengths(axes: Axes, rows: Sequence[Row]) -> None:
    colours = _colours(rows)
    heads = [bucket.lengths for bucket in rows[0].by_length]
    last = len(heads) - 1
    for row in rows:
        values = [bucket.bleu for bucket in row.by_length]
        looks: Any = {"color": colours[row.model], "marker": "o", "markersize": 3.5}
        axes.plot(range(len(values)), values, **looks, linewidth=1.6)
    span = max(last, 1)
    axes.set_xticks(range(len(heads)), heads)
    axes.set_xlim(-0.05 * span, last + 0.55 * span)
    axes.set_xlabel("source words")
    axes.set_title("BLEU by sentence length")
    axes.tick_params(length=0)
    axes.set_ylim(bottom=0)
    ends = [(r.model, last, r.by_length[-1].bleu, colours[r.model]) for r in rows]
    _name(axes, last + 0.06 * span, ends)


def _name(axes: Axes, x: float, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Each name at x, level with its point or moved up or down where two would overlap."""
    low, high = axes.get_ylim()
    gap = (high - low) * 0.05
    ordered = sorted(ends, key=lambda end: end[2])
    places = [end[2] for end in ordered]
    for _ in range(100):  # push neighbours apart until all have room
        for i in range(1, len(places)):
            if (missing := gap - (places[i] - places[i - 1])) > 0:
                places[i - 1] -= missing / 2
                places[i] += missing / 2
        places[0] = max(places[0], low + gap / 2)
    for (name, at, value, colour), place in zip(ordered, places, strict=True):
        axes.plot([at, x], [value, place], color=colour, linewidth=0.6, alpha=0.5)
        looks: Any = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(name, (x, place), **looks, color=colour, fontsize=8)


# --- the phrasebook ---


def phrasebook(
    out: Path,
    *,
    language: str = "de",
    pairs: int = 60_000,
    sentences: int = 1000,
    parameters: int = 1_000_000,
    steps: int = 400,
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
