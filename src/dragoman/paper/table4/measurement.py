"""Table 4: constituency parsers, trained here or elsewhere, on one test set with one scorer.

Each preset is trained as it is or, as in §6.3, in a few variants, of which the one that parses the
development trees best is taken; its beam is chosen there too. The test trees are parsed by what
was chosen alone. Where trees and their sections are found is in table4_treebanks.py, how parsers
are scored in table4_scores.py, how the table is shown in table4_view.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from dragoman.config import Config, load_preset
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.treebank import treebank
from dragoman.errors import ConfigError
from dragoman.paper import sweep
from dragoman.paper.result_cache import file_fingerprint, fingerprint
from dragoman.paper.table4.results import Row, Table4, Tried, size
from dragoman.paper.table4.scores import Scores, Subject, read_guesses, score
from dragoman.paper.table4.text import draw, grids, paper_grid, render
from dragoman.paper.table4.treebanks import LICENCE, Gold, Treebanks

__all__ = [
    "LICENCE",
    "PRESETS",
    "Row",
    "Table4",
    "Treebanks",
    "draw",
    "grids",
    "load_presets",
    "measure",
    "paper_grid",
    "render",
]

Say: TypeAlias = Callable[[str], None]

PRESETS: Final = ("parsing", "parsing-small")
DROPOUTS: Final = (0.1, 0.2, 0.3)
RATES: Final = (0.5, 1.0, 2.0)
"""Times the preset's own learning rate."""
BEAMS: Final = (1, 4, 10, 21)


def load_presets(names: Sequence[str], assignments: Sequence[str] = ()) -> dict[str, Config]:
    """The rows to be trained, by their names; a file's is its name without .toml."""
    presets: dict[str, Config] = {}
    for name in names:
        config = load_preset(name).overridden(assignments)
        if config.data.task != "parsing":
            raise ConfigError(f"preset {name}: a translator's; Table 4 is of parsers, try parsing")
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
    say: Say = lambda message: None,
    command: str = "dragoman paper table4",
) -> Table4:
    """Train each preset on the treebank and score it, and parsers and trees that are there already.

    With `search`, dropout, learning rate and beam are chosen on the validation trees. Run again
    with the same arguments, it continues what was interrupted: training and scoring.
    """
    models, trees = models or {}, trees or {}
    _check_names([*presets, *models, *trees])
    if presets and not treebanks.train:
        raise ConfigError("nothing to train on; give --trees and --valid, or --no-train")
    test = Gold.read(treebanks.test or treebanks.valid)
    valid = Gold.read(treebanks.valid) if search else None
    given = {
        name: Subject(path, out / "given" / name, _named(name, say))
        for name, path in models.items()
    }
    guesses = {name: read_guesses(file, test) for name, file in trees.items()}
    prepared = {name: _prepared(name, presets[name], treebanks, out, say) for name in presets}
    rows = [
        *(
            _trained(
                _Sweep(name, config, prepared[name], out, jobs, _named(name, say)), valid, test
            )
            for name, config in presets.items()
        ),
        *(
            _scored(_row(name, subject, subject.config.search.beam), subject, test)
            for name, subject in given.items()
        ),
        *(Row(parser=name, scores=score(test, found)) for name, found in guesses.items()),
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


def _named(name: str, say: Say) -> Say:
    """Say who it is about."""
    return lambda message: say(f"{name}: {message}")


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise ConfigError("no parsers; name some with --preset, --model or --trees-of")
    for name in names:
        if not re.fullmatch(r"\w[\w .+-]*", name):
            raise ConfigError(f"'{name}' cannot name a row; use letters, digits, space and .+-")
        if names.count(name) > 1:
            raise ConfigError(f"two rows are called {name}; give one another name")


# --- training ---


@dataclass(frozen=True, slots=True)
class _Sweep:
    """A preset, and what its variants are trained on."""

    name: str
    config: Config
    data: Prepared
    out: Path
    jobs: int
    say: Say

    def run(self, variants: Sequence[_Variant]) -> list[sweep.Finished]:
        trials = [sweep.Trial(variant.name, variant.of(self.config)) for variant in variants]
        place = self.out / self.name
        return sweep.run(trials, self.data.path, place, jobs=self.jobs, say=self.say)


@dataclass(frozen=True, slots=True)
class _Variant:
    """A preset with another dropout, and its learning rate times a factor."""

    dropout: float
    rate: float

    @property
    def name(self) -> str:
        return f"dropout-{self.dropout:g}-rate-{self.rate:g}"

    @property
    def words(self) -> str:
        return f"dropout {self.dropout:g}, learning rate × {self.rate:g}"

    def of(self, config: Config) -> Config:
        rate = config.training.learning_rate * self.rate
        return config.updated(
            {"model": {"dropout": self.dropout}, "training": {"learning_rate": rate}}
        )


def _prepared(name: str, config: Config, treebanks: Treebanks, out: Path, say: Say) -> Prepared:
    """The treebank in the preset's pieces; presets that cut alike share it."""
    files = [file_fingerprint(file) for file in (*treebanks.train, *treebanks.valid)]
    cut = [str(asdict(part)) for part in (config.tokenizer, config.trees, config.data)]
    place = out / f"data-{fingerprint(files, cut)[:8]}"
    if (place / "report.json").exists():
        return Prepared.open(place)
    try:
        valid = treebank(treebanks.valid)
        found = prepare(treebank(treebanks.train), place, config, valid=valid, replace=True)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    say(f"{place}: {len(found.train):,} trees for {name}")
    return found


def _trained(row: _Sweep, valid: Gold | None, test: Gold) -> Row:
    """A preset as it is, or with what is best on the validation trees, on the test trees."""
    own = _Variant(row.config.model.dropout, 1.0)
    variants = [own]
    if valid is not None:
        grid = [_Variant(dropout, rate) for dropout in DROPOUTS for rate in RATES]
        variants = grid if own in grid else [own, *grid]
    runs = row.run(variants)
    subjects = {
        variant: Subject(run.model, run.run, _named(run.name, row.say))
        for variant, run in zip(variants, runs, strict=True)
        if run.model is not None
    }
    empty = Row(
        parser=row.name,
        size=size(row.config),
        failure=next((run.failure for run in runs if run.failure), None),
    )
    if not subjects:
        return empty
    best, beam = own, row.config.search.beam
    tried: tuple[Tried, ...] = ()
    if valid is not None:
        if (chosen := _search(variants, subjects, valid)) is None:
            return replace(empty, failure="no variant of it could be scored")
        best, beam, tried = chosen
    run = runs[variants.index(best)]
    done = replace(
        _row(row.name, subjects[best], beam),
        minutes=run.seconds / 60,
        tried=tried,
    )
    return _scored(done, subjects[best], test)


def _search(
    variants: Sequence[_Variant], subjects: Mapping[_Variant, Subject], valid: Gold
) -> tuple[_Variant, int, tuple[Tried, ...]] | None:
    """The variant that is best when greedy, then its best beam; of equals the first."""
    found: dict[_Variant, float] = {}
    for variant, subject in subjects.items():
        if isinstance(scores := _attempt(subject, valid, "valid", 1), Scores):
            found[variant] = scores.f1
        subject.let_go()
    if not found:
        return None
    best = max(found, key=lambda variant: found[variant])
    by_beam = {1: found[best]}
    beams = sorted({*BEAMS, subjects[best].config.search.beam})
    for beam in beams[1:]:
        if isinstance(scores := _attempt(subjects[best], valid, "valid", beam), Scores):
            by_beam[beam] = scores.f1
    winner = max(by_beam, key=lambda beam: by_beam[beam])
    tried = [Tried(v.words, found.get(v), v == best) for v in variants]
    tried += [Tried(f"beam {beam}", by_beam.get(beam), beam == winner) for beam in beams]
    return best, winner, tuple(tried)


# --- scoring ---


def _row(name: str, subject: Subject, beam: int) -> Row:
    """What is known of a parser before it has parsed."""
    config, trees = subject.config, subject.card.get("training_pairs", 0)
    return Row(
        parser=name,
        training=f"{trees:,} trees" if trees else "",
        size=size(config),
        parameters=int(subject.card.get("parameters", 0)),
        steps=int(subject.card.get("steps", 0)),
        dropout=config.model.dropout,
        learning_rate=config.training.learning_rate,
        beam=beam,
        length_penalty=config.search.length_penalty,
    )


def _scored(row: Row, subject: Subject, test: Gold) -> Row:
    assert row.beam is not None
    greedy, scores = (_attempt(subject, test, "test", beam) for beam in (1, row.beam))
    subject.let_go()
    if isinstance(greedy, str):
        return replace(row, failure=greedy)
    if isinstance(scores, str):
        return replace(row, greedy=greedy, failure=scores)
    return replace(row, greedy=greedy, scores=scores)


def _attempt(subject: Subject, gold: Gold, part: str, beam: int) -> Scores | str:
    """The scores, or why there are none; out of memory for one, the others are still told."""
    try:
        return subject.score(gold, part, beam)
    except Exception as error:
        reason = sweep.first_line(error)
        subject.say(f"could not be scored with beam {beam} ({reason})")
        return reason
