"""Train the parsers of Table 4, and score them and others on one test set.

Each preset is trained as it is or, as in §6.3, in a few variants, of which the one that parses the
development trees best is taken; its beam is chosen there too. The test trees are parsed only by
what was chosen.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dragoman.config import Config, load_preset
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.treebank import open_treebank
from dragoman.errors import ConfigError, ModelError, first_line
from dragoman.inference.parser import Parser, load_parser
from dragoman.paper import sweep
from dragoman.paper.result_cache import file_fingerprint, fingerprint, load_or_compute
from dragoman.paper.sweep import PrintMessage
from dragoman.paper.table2.results import describe_size
from dragoman.paper.table4.results import (
    Row,
    Scores,
    Table4,
    TriedSetting,
    compute_scores,
    read_predicted_trees,
)
from dragoman.paper.table4.treebanks import GoldTrees, Treebanks
from dragoman.training.distributed.ranks import describe_device
from dragoman.trees.evalb import PREDICTED_TAGS

PRESETS: Final = ("parsing", "parsing-small")
DROPOUTS: Final = (0.1, 0.2, 0.3)
RATES: Final = (0.5, 1.0, 2.0)
"""The factors of the preset's own learning rate that are tried."""
BEAMS: Final = (1, 4, 10, 21)


def load_presets(names: Sequence[str], assignments: Sequence[str] = ()) -> dict[str, Config]:
    """Load the presets to be trained, by their names; a file's is its name without .toml."""
    presets: dict[str, Config] = {}
    for name in names:
        config = load_preset(name).overridden(assignments)
        if config.data.task != "parsing":
            raise ConfigError(
                f"preset {name}: for a translator, but Table 4 compares parsers; try parsing"
            )
        presets[Path(name).stem if name.endswith(".toml") else name] = config
    return presets


def measure(
    treebanks: Treebanks,
    out: Path,
    *,
    presets: Mapping[str, Config],
    models: Mapping[str, Path] | None = None,
    trees: Mapping[str, Path] | None = None,
    search: bool = False,
    jobs: int = 1,
    print_message: PrintMessage = lambda message: None,
    command: str = "dragoman paper table4",
) -> Table4:
    """Train each preset on the treebank and score it; also score existing `models` and `trees`.

    With `search`, dropout, learning rate and beam are chosen on the validation trees. Run again
    with the same arguments, it continues what was interrupted: training and scoring.
    """
    models, trees = models or {}, trees or {}
    _check_names([*presets, *models, *trees])
    if presets and not treebanks.train:
        raise ConfigError("there are no training trees; give --trees and --valid, or --no-train")
    test = GoldTrees.read(treebanks.test or treebanks.valid)
    valid = GoldTrees.read(treebanks.valid) if search else None
    given = {
        name: EvaluatedParser(path, out / "given" / name, _with_name(name, print_message))
        for name, path in models.items()
    }
    predicted = {name: read_predicted_trees(file, test) for name, file in trees.items()}
    prepared = {
        name: _prepare_treebank(name, presets[name], treebanks, out, print_message)
        for name in presets
    }
    rows = [
        *(
            _train_and_score(
                _PresetTraining(
                    name, config, prepared[name], out, jobs, _with_name(name, print_message)
                ),
                valid,
                test,
            )
            for name, config in presets.items()
        ),
        *(
            _score_row(_describe_parser(name, parser, parser.config.search.beam), parser, test)
            for name, parser in given.items()
        ),
        *(
            Row(parser=name, scores=compute_scores(test, found))
            for name, found in predicted.items()
        ),
    ]
    return Table4(
        name=treebanks.name,
        wsj=treebanks.wsj is not None,
        held_out=bool(treebanks.test) and treebanks.test != treebanks.valid,
        sentences=len(test.trees),
        words=test.word_count,
        rows=tuple(rows),
        command=command,
    )


def _with_name(name: str, print_message: PrintMessage) -> PrintMessage:
    """Return a function that puts a name before every message."""
    return lambda message: print_message(f"{name}: {message}")


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise ConfigError("there are no parsers; name some with --preset, --model or --trees-of")
    for name in names:
        if not re.fullmatch(r"\w[\w .+-]*", name):
            raise ConfigError(f"'{name}' cannot name a row; use letters, digits, space and .+-")
        if names.count(name) > 1:
            raise ConfigError(f"two rows are called {name}; give one another name")


# --- training ---


@dataclass(frozen=True, slots=True)
class _PresetTraining:
    """Train variants of a preset on its prepared treebank."""

    name: str
    config: Config
    data: Prepared
    out: Path
    jobs: int
    print_message: PrintMessage

    def run(self, variants: Sequence[_Variant]) -> list[sweep.TrialResult]:
        trials = [sweep.Trial(variant.name, variant.apply(self.config)) for variant in variants]
        out = self.out / self.name
        return sweep.run_sweep(
            trials, self.data.path, out, jobs=self.jobs, print_message=self.print_message
        )


@dataclass(frozen=True, slots=True)
class _Variant:
    """Change a preset's dropout, and multiply its learning rate."""

    dropout: float
    rate: float

    @property
    def name(self) -> str:
        return f"dropout-{self.dropout:g}-rate-{self.rate:g}"

    @property
    def description(self) -> str:
        return f"dropout {self.dropout:g}, learning rate × {self.rate:g}"

    def apply(self, config: Config) -> Config:
        rate = config.training.learning_rate * self.rate
        return config.updated(
            {"model": {"dropout": self.dropout}, "training": {"learning_rate": rate}}
        )


def _prepare_treebank(
    name: str, config: Config, treebanks: Treebanks, out: Path, print_message: PrintMessage
) -> Prepared:
    """Prepare the treebank in the preset's pieces; presets with equal settings of data share it."""
    files = [file_fingerprint(file) for file in (*treebanks.train, *treebanks.valid)]
    settings = [str(asdict(part)) for part in (config.tokenizer, config.trees, config.data)]
    data = out / f"data-{fingerprint(files, settings)[:8]}"
    if (data / "report.json").exists():
        return Prepared.open(data)
    try:
        valid = open_treebank(treebanks.valid)
        prepared = prepare(
            open_treebank(treebanks.train),
            data,
            config,
            valid=valid,
            show_message=lambda message: print_message(f"{name}: {message}"),
            replace=True,
        )
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    print_message(f"{data}: {len(prepared.train):,} trees for {name}")
    return prepared


def _train_and_score(training: _PresetTraining, valid: GoldTrees | None, test: GoldTrees) -> Row:
    """Train a preset as it is, or as is best on the validation trees, and score the test trees."""
    own = _Variant(training.config.model.dropout, 1.0)
    variants = [own]
    if valid is not None:
        grid = [_Variant(dropout, rate) for dropout in DROPOUTS for rate in RATES]
        variants = grid if own in grid else [own, *grid]
    runs = training.run(variants)
    parsers = {
        variant: EvaluatedParser(
            run.model, run.run_directory, _with_name(run.name, training.print_message)
        )
        for variant, run in zip(variants, runs, strict=True)
        if run.model is not None
    }
    empty = Row(
        parser=training.name,
        size=describe_size(training.config.model),
        failure=next((run.failure for run in runs if run.failure), None),
    )
    if not parsers:
        return empty
    best, beam = own, training.config.search.beam
    tried: tuple[TriedSetting, ...] = ()
    if valid is not None:
        if (chosen := _search_settings(variants, parsers, valid)) is None:
            return replace(empty, failure="none of its variants could be scored")
        best, beam, tried = chosen
    run = runs[variants.index(best)]
    done = replace(
        _describe_parser(training.name, parsers[best], beam),
        minutes=run.seconds / 60,
        tried=tried,
    )
    return _score_row(done, parsers[best], test)


def _search_settings(
    variants: Sequence[_Variant], parsers: Mapping[_Variant, EvaluatedParser], valid: GoldTrees
) -> tuple[_Variant, int, tuple[TriedSetting, ...]] | None:
    """Find the variant that is best when greedy, then its best beam; the first among equals."""
    found: dict[_Variant, float] = {}
    for variant, parser in parsers.items():
        if isinstance(scores := _try_score(parser, valid, "valid", 1), Scores):
            found[variant] = scores.f1
        parser.unload()
    if not found:
        return None
    best = max(found, key=lambda variant: found[variant])
    by_beam = {1: found[best]}
    beams = sorted({*BEAMS, parsers[best].config.search.beam})
    for beam in beams[1:]:
        if isinstance(scores := _try_score(parsers[best], valid, "valid", beam), Scores):
            by_beam[beam] = scores.f1
    winner = max(by_beam, key=lambda beam: by_beam[beam])
    tried = [TriedSetting(v.description, found.get(v), v == best) for v in variants]
    tried += [TriedSetting(f"beam {beam}", by_beam.get(beam), beam == winner) for beam in beams]
    return best, winner, tuple(tried)


# --- scoring ---


def _describe_parser(name: str, parser: EvaluatedParser, beam: int) -> Row:
    """Return a row with what is known of a parser before it has parsed."""
    config, trees = parser.config, parser.card.get("training_pairs", 0)
    return Row(
        parser=name,
        training=f"{trees:,} trees" if trees else "",
        size=describe_size(config.model),
        parameters=int(parser.card.get("parameters", 0)),
        steps=int(parser.card.get("steps", 0)),
        dropout=config.model.dropout,
        learning_rate=config.training.learning_rate,
        beam=beam,
        length_penalty=config.search.length_penalty,
    )


def _score_row(row: Row, parser: EvaluatedParser, test: GoldTrees) -> Row:
    assert row.beam is not None
    greedy, scores = (_try_score(parser, test, "test", beam) for beam in (1, row.beam))
    parser.unload()
    if isinstance(greedy, str):
        return replace(row, failure=greedy)
    if isinstance(scores, str):
        return replace(row, greedy=greedy, failure=scores)
    return replace(row, greedy=greedy, scores=scores)


def _try_score(parser: EvaluatedParser, gold: GoldTrees, part: str, beam: int) -> Scores | str:
    """Return the scores, or why there are none: one that fails must not cost the others."""
    try:
        return parser.score(gold, part, beam)
    except Exception as error:
        reason = first_line(error)
        parser.print_message(f"could not be scored with beam {beam} ({reason})")
        return reason


class EvaluatedParser:
    """Score a parser on disk, which is loaded only when there is something to parse."""

    def __init__(self, path: Path, scores: Path, print_message: PrintMessage) -> None:
        """Open a model or run directory; names of files of scores begin with `scores`."""
        places = (path, path / "model", path / "best")
        found = next((place for place in places if (place / "card.json").is_file()), None)
        if found is None:
            raise ModelError(f"{path}: not a parser; give a directory that dragoman train made")
        self.path, self.scores, self.print_message = found, scores, print_message
        self.config = Config.load(found / "config.toml")
        if self.config.data.task != "parsing":
            raise ModelError(f"{path}: a translator, but Table 4 compares parsers")

    @cached_property
    def card(self) -> dict[str, Any]:
        """Return the model card."""
        return dict(json.loads((self.path / "card.json").read_text(encoding="utf-8")))

    @cached_property
    def _parser(self) -> Parser:
        parser = load_parser(self.path)
        parser.warn = self.print_message
        return parser

    def unload(self) -> None:
        """Free the weights; they are loaded again if there is more to parse."""
        self.__dict__.pop("_parser", None)

    def score(self, gold: GoldTrees, part: str, beam: int) -> Scores:
        """Parse and score, unless a file holds the scores already.

        They must be of the same trees, search and model; the model is known by its card, so that
        scores remain when weights are gone.
        """

        def compute() -> dict[str, Any]:
            how = "greedy" if beam == 1 else f"beam {beam}"
            self.print_message(f"parsing {len(gold.words):,} {part} sentences, {how}")
            return asdict(self._parse_and_score(gold, beam))

        inputs = {
            "model": file_fingerprint(self.path / "card.json"),
            "trees": fingerprint(gold.texts),
            "beam": beam,
            "length_penalty": self.config.search.length_penalty,
            "signature": PREDICTED_TAGS.signature,
        }
        file = self.scores.with_name(f"{self.scores.name}.{part}-beam-{beam}.json")
        return Scores.from_json(load_or_compute(file, inputs, compute))

    def _parse_and_score(self, gold: GoldTrees, beam: int) -> Scores:
        parser = self._parser
        parser.parse(gold.words[:8], beam=beam)  # the first is slower
        begun = time.perf_counter()
        trees = [found.tree if found else None for found in parser.parse(gold.words, beam=beam)]
        seconds = time.perf_counter() - begun
        device = describe_device(next(parser.model.parameters()).device)
        return compute_scores(gold, trees, seconds=seconds, device=device)
