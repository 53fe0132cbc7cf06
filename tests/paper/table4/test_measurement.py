"""Table 4: the treebank's layouts, scores, the choice on validation trees, a small sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import Config
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.inference.parser import Parser
from dragoman.paper import sweep, table4
from dragoman.paper.paper_values import TABLE_4
from dragoman.paper.table4.measurement import BEAMS, EvaluatedParser
from dragoman.paper.table4.results import (
    Bucket,
    Row,
    Scores,
    Table4,
    TriedSetting,
    compute_scores,
    read_predicted_trees,
)
from dragoman.paper.table4.treebanks import GoldTrees, Treebanks
from dragoman.phrasebook import generate
from dragoman.training.run import train
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.evalb import PREDICTED_TAGS
from dragoman.trees.tree import Tree

from ...conftest import Result
from ..test_report import read

Command = Callable[..., Result]

SETTINGS = [
    "data.task=parsing",
    "tokenizer.vocabulary=400",
    "data.max_length=120",
    "data.row_length=128",
    "data.max_ratio=0",
    "model.dropout=0.1",
    "training.steps=6",
    "training.validate_sentences=0",
    "training.average=1",
    "search.beam=2",
    "search.length_penalty=0.3",
    "search.max_extra=40",
]


def lines(split: str, count: int) -> str:
    return "".join(f"{example.source_tree}\n" for example in generate("de", split, count))


@pytest.fixture(scope="module")
def toy(tiny: Config) -> Config:
    """A parser that trains in a second."""
    return tiny.overridden(SETTINGS)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A treebank of the phrasebook; do not write to it."""
    directory = tmp_path_factory.mktemp("bank")
    for split, count in (("train", 300), ("valid", 5), ("test", 8)):
        (directory / f"{split}.txt").write_text(lines(split, count), encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def parser(bank: Path, toy: Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a parser that has learned little; do not write to it."""
    run = tmp_path_factory.mktemp("parser") / "run"
    train(toy, bank / "train.txt", valid=[bank / "valid.txt"], run=run, quiet=True)
    return run


@pytest.fixture
def preset(toy: Config, tmp_path: Path) -> Path:
    file = tmp_path / "toy.toml"
    file.write_text(toy.to_toml(), encoding="utf-8")
    return file


def banks(directory: Path) -> Treebanks:
    paths = [[directory / f"{split}.txt"] for split in ("train", "valid", "test")]
    return Treebanks.from_files(*paths)


# --- where the trees are ---

SECTIONS = [f"{number:02d}" for number in range(25)]


def lay_out(directory: Path, pattern: str, sections: Sequence[str] = SECTIONS) -> None:
    for section in sections:
        file = directory / pattern.format(section)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"( (S (NN s{section})))\n", encoding="utf-8")


def words(files: Sequence[Path]) -> list[str]:
    return [word for sentence in GoldTrees.read(files).words for word in sentence]


@pytest.mark.parametrize(
    "pattern",
    [
        "parsed/mrg/wsj/{0}/wsj_{0}01.mrg",
        "treebank_3/parsed/mrg/wsj/{0}/wsj_{0}01.mrg",
        "TREEBANK_3/PARSED/MRG/WSJ/{0}/WSJ_{0}01.MRG",
        "{0}/wsj_{0}01.mrg",
        "{0}/trees",
        "{0}.mrg",
        "wsj_{0}.trees",
        "wsj/section-{0}.txt",
        "wsj_{0}99.mrg",
    ],
)
def test_the_standard_sections_are_found_in_the_usual_layouts(pattern: str, tmp_path: Path) -> None:
    lay_out(tmp_path, pattern)
    lay_out(tmp_path, "tagged/wsj/{0}/wsj_{0}01.pos")
    lay_out(tmp_path, "raw/wsj/{0}/wsj_{0}01")
    (tmp_path / "readme.1st").write_text("Read me.", encoding="utf-8")
    found = Treebanks.from_wsj(tmp_path)
    assert words(found.train) == [f"s{section}" for section in SECTIONS[2:22]]
    assert (words(found.valid), words(found.test)) == (["s22"], ["s23"])
    assert (found.name, found.wsj) == ("wsj", tmp_path)


def test_one_file_may_hold_all_that_one_trains_on(tmp_path: Path) -> None:
    lay_out(tmp_path, "{0}.auto.clean", ["02-21.10way", "22", "23", "24"])
    (tmp_path / "02-21.10way.auto.clean").rename(tmp_path / "02-21.10way.clean")
    found = Treebanks.from_wsj(tmp_path)
    assert [file.name for file in found.train] == ["02-21.10way.clean"]
    assert words(found.test) == ["s23"]


def test_a_section_has_all_its_texts_and_nothing_else(tmp_path: Path) -> None:
    lay_out(tmp_path, "{0}/wsj_{0}01.mrg")
    lay_out(tmp_path, "{0}/wsj_{0}00.mrg")
    lay_out(tmp_path, "{0}/notes.txt")
    lay_out(tmp_path, "{0}/.hidden.mrg")
    found = Treebanks.from_wsj(tmp_path)
    assert [file.name for file in found.test] == ["wsj_2300.mrg", "wsj_2301.mrg"]
    assert len(found.train) == 40


def test_missing_sections_are_named_in_one_line_with_the_licence(
    command: Command, tmp_path: Path
) -> None:
    lay_out(tmp_path / "wsj", "{0}/a.mrg", [s for s in SECTIONS if s not in ("07", "23")])
    for place, missing in (
        (tmp_path / "wsj", "section 07, 23 not found;"),
        (tmp_path / "no", "no such dir"),
    ):
        found = command("paper", "table4", "--wsj", place, "--out", tmp_path / "out")
        assert (found.status, found.err.count("\n")) == (2, 1)
        assert missing in found.err
        assert "LDC99T42" in found.err
        assert "does not include" in found.err


def test_a_table_has_its_treebanks_name(tmp_path: Path) -> None:
    for name in ("gum.train.txt.xz", "craft/train.mrg", "x/my trees"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    at = tmp_path / "x"
    names = [
        Treebanks.from_files([tmp_path / "gum.train.txt.xz"], [at]).name,
        Treebanks.from_files([tmp_path / "craft/train.mrg"], [at]).name,
        Treebanks.from_files([], [], [tmp_path / "x/my trees"]).name,
    ]
    assert names == ["gum", "craft", "my-trees"]
    with pytest.raises(ConfigError, match="needs --valid"):
        Treebanks.from_files([at], [])
    with pytest.raises(DataError, match="nowhere: not a file of trees"):
        Treebanks.from_files([], [], [tmp_path / "nowhere"])


# --- scores ---


def gold(*texts: str) -> GoldTrees:
    trees: list[Tree] = [parse_tree(text) for text in texts]
    return GoldTrees(trees, [["w"]] * len(trees))


DOG = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"
WRONG = "(S (NP (DT the)) (VP (NN dog) (VBZ barks)))"


def test_scores_are_as_counted_by_hand() -> None:
    found = compute_scores(gold(DOG, DOG), [parse_tree(DOG), parse_tree(WRONG)])
    assert found.f1 == pytest.approx(100 * 2 * 4 / 12)
    assert (found.complete_match, found.left_out) == (50.0, 0)
    assert found.tagging_accuracy == 100.0
    assert found.signature == PREDICTED_TAGS.signature
    assert found.low == pytest.approx(100 / 3)  # both times the wrong one
    assert found.high == 100.0


def test_another_parsers_trees_may_lack_some(tmp_path: Path) -> None:
    file = tmp_path / "theirs.txt"
    right = gold(DOG, DOG, DOG)
    for none in ("", "(())"):
        file.write_text(f"(ROOT {DOG})\n{none}\n{WRONG}\n", encoding="utf-8")
        found = compute_scores(right, read_predicted_trees(file, right))
        assert found.left_out == 1
        assert found.f1 == pytest.approx(100 * 2 * 4 / 12)
        assert found.f1_all_lines == pytest.approx(100 * 2 * 4 / 15)
    file.write_text(f"{DOG}\n" * 2 + DOG.replace(" (VP", "\n  (VP"), encoding="utf-8")
    assert compute_scores(right, read_predicted_trees(file, right)).f1 == 100


def test_trees_that_do_not_belong_to_the_test_set_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "theirs.txt"
    file.write_text(f"{DOG}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"theirs\.txt: 1 trees, and the test set has 2"):
        read_predicted_trees(file, gold(DOG, DOG))
    file.write_text(f"{DOG}\n(S (NP\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"theirs\.txt, line 2"):
        read_predicted_trees(file, gold(DOG, DOG))


def test_short_and_long_sentences_are_counted_apart() -> None:
    long = "(S (NP (DT the) (NN dog)) (VP " + "(VBZ barks) " * 10 + "))"
    found = compute_scores(
        gold(*[DOG] * 40, *[long] * 31),
        [*[parse_tree(WRONG)] * 40, *[parse_tree(long)] * 31],
    )
    assert [(b.lengths, b.sentences, round(b.f1, 2)) for b in found.by_length] == [
        ("3", 40, 33.33),
        ("12", 31, 100.0),
    ]
    few = compute_scores(gold(*[DOG] * 40, long), [*[parse_tree(WRONG)] * 40, parse_tree(long)])
    assert [(b.lengths, b.sentences) for b in few.by_length] == [("3–12", 41)]


@pytest.mark.slow
def test_what_was_scored_is_not_parsed_again_unless_something_has_changed(
    parser: Path, bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    test, valid = (GoldTrees.read([bank / f"{split}.txt"]) for split in ("test", "valid"))

    def scored(trees: GoldTrees, beam: int) -> Scores:
        return EvaluatedParser(parser, tmp_path / "scores" / "mine", said.append).score(
            trees, "test", beam
        )

    first = scored(test, 1)
    assert said == ["parsing 8 test sentences, greedy"]
    assert first.seconds is not None
    assert first.seconds > 0
    assert first.left_out == 0
    assert scored(test, 1) == first
    assert len(said) == 1
    scored(test, 2)
    scored(valid, 1)
    assert len(said) == 3
    assert scored(test, 2).by_length[0].sentences == 8
    assert len(said) == 3, "one beam's scores must not push out another's"


def test_a_model_must_be_a_parser(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="a translator"):
        EvaluatedParser(trained, tmp_path / "a", print)
    with pytest.raises(ModelError, match="not a parser"):
        EvaluatedParser(tmp_path, tmp_path / "a", print)


# --- the choice ---


class Runs:
    """Training and parsing that only pretend: F1 by variant and beam, and a list of who parsed."""

    def __init__(self, f1: dict[str, float], beams: dict[int, float], parser: Path) -> None:
        self.f1, self.beams, self.parser = f1, beams, parser
        self.trials: list[sweep.Trial] = []
        self.scored: list[tuple[str, str, int]] = []

    def run(
        self, trials: Sequence[sweep.Trial], data: Path, out: Path, **options: Any
    ) -> list[sweep.TrialResult]:
        self.trials = list(trials)
        return [
            sweep.TrialResult(t.name, out / t.name, t.config, self.parser / "model")
            if t.name in self.f1
            else sweep.TrialResult(t.name, out / t.name, t.config, failure="killed by signal 9")
            for t in trials
        ]

    def score(self, parser: EvaluatedParser, trees: GoldTrees, part: str, beam: int) -> Scores:
        name = parser.scores.name
        self.scored.append((name, part, beam))
        return scores(f1=self.f1[name] + self.beams.get(beam, 0.0))


def scores(**changes: Any) -> Scores:
    plain = Scores(
        f1=80.0,
        low=78.0,
        high=82.0,
        precision=81.0,
        recall=79.0,
        complete_match=30.5,
        tagging_accuracy=95.25,
        short_f1=80.5,
        left_out=0,
        f1_all_lines=80.0,
        by_length=(Bucket(3, 10, 40, 90.0, 88.0, 92.0), Bucket(11, 44, 60, 70.0, 66.0, 72.0)),
        signature="evalb|prm:COLLINS",
        seconds=2.0,
        device="a fast one",
    )
    return replace(plain, **changes)


def pretend(
    monkeypatch: pytest.MonkeyPatch, f1: dict[str, float], beams: dict[int, float], parser: Path
) -> Runs:
    runs = Runs(f1, beams, parser)
    monkeypatch.setattr(sweep, "run_sweep", runs.run)
    monkeypatch.setattr(EvaluatedParser, "score", lambda self, *given: runs.score(self, *given))
    return runs


VARIANTS = {
    f"dropout-{dropout:g}-rate-{rate:g}": 50.0
    for dropout in (0.1, 0.2, 0.3)
    for rate in (0.5, 1, 2)
}


def test_settings_are_chosen_on_validation_trees_and_only_the_chosen_one_is_tested(
    monkeypatch: pytest.MonkeyPatch, bank: Path, toy: Config, parser: Path, tmp_path: Path
) -> None:
    f1 = {**VARIANTS, "dropout-0.3-rate-0.5": 60.0}
    del f1["dropout-0.2-rate-2"]  # fails
    runs = pretend(monkeypatch, f1, {10: 3.0, 21: 3.0}, parser)
    found = table4.measure(banks(bank), tmp_path, presets={"toy": toy}, search=True)
    assert [trial.name for trial in runs.trials] == list(VARIANTS)
    chosen = next(t.config for t in runs.trials if t.name == "dropout-0.3-rate-0.5")
    assert chosen.model.dropout == 0.3
    assert chosen.training.learning_rate == pytest.approx(toy.training.learning_rate / 2)
    assert next(t.config for t in runs.trials if t.name == "dropout-0.1-rate-1") == toy
    on_test = [one for one in runs.scored if one[1] == "test"]
    assert on_test == [("dropout-0.3-rate-0.5", "test", 1), ("dropout-0.3-rate-0.5", "test", 10)]
    beams = {beam for name, part, beam in runs.scored if part == "valid"}
    assert beams == {*BEAMS, toy.search.beam}
    [row] = found.rows
    assert row.beam == 10, "of equals the smaller"
    assert row.failure is None
    assert [one for one in row.tried if one.chosen] == [
        TriedSetting("dropout 0.3, learning rate × 0.5", 60.0, True),
        TriedSetting("beam 10", 63.0, True),
    ]
    assert TriedSetting("dropout 0.2, learning rate × 2", None) in row.tried
    tried = table4.render(found).partition("Chosen on")[2]
    assert "learning rate × 2    failed" in tried


def test_a_presets_own_settings_are_tried_wherever_they_are(
    monkeypatch: pytest.MonkeyPatch, bank: Path, toy: Config, parser: Path, tmp_path: Path
) -> None:
    runs = pretend(monkeypatch, {**VARIANTS, "dropout-0.15-rate-1": 51.0}, {}, parser)
    other = toy.overridden(["model.dropout=0.15"])
    [row] = table4.measure(banks(bank), tmp_path, presets={"toy": other}, search=True).rows
    assert len(runs.trials) == 10
    assert row.tried[0] == TriedSetting("dropout 0.15, learning rate × 1", 51.0, True)


def test_without_a_search_a_preset_is_as_it_is_and_validation_trees_are_not_parsed(
    monkeypatch: pytest.MonkeyPatch, bank: Path, toy: Config, parser: Path, tmp_path: Path
) -> None:
    runs = pretend(monkeypatch, VARIANTS, {2: 1.5}, parser)
    [row] = table4.measure(banks(bank), tmp_path, presets={"toy": toy}).rows
    assert [trial.config for trial in runs.trials] == [toy]
    assert [(part, beam) for _, part, beam in runs.scored] == [("test", 1), ("test", 2)]
    assert row.greedy is not None
    assert row.scores is not None
    assert (row.greedy.f1, row.scores.f1) == (50.0, 51.5)


@pytest.mark.slow
def test_a_failure_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch, bank: Path, toy: Config, parser: Path, tmp_path: Path
) -> None:
    pretend(monkeypatch, {}, {}, parser)
    trees = {"gold": bank / "test.txt"}
    found = table4.measure(banks(bank), tmp_path, presets={"toy": toy}, trees=trees)
    failed, right = found.rows
    assert (failed.scores, failed.failure) == (None, "killed by signal 9")
    assert right.scores is not None
    assert right.scores.f1 == 100
    assert "toy: killed by signal 9" in table4.render(found)
    table4.draw(found, tmp_path / "a.svg")
    with pytest.raises(ConfigError, match="no parser to draw"):
        table4.draw(replace(found, rows=(failed,)), tmp_path / "b.svg")


def test_a_parser_that_cannot_parse_is_a_failed_row(
    monkeypatch: pytest.MonkeyPatch, bank: Path, parser: Path, tmp_path: Path
) -> None:
    def parse(*given: object, **options: object) -> None:
        raise RuntimeError("out of memory\nand more")

    monkeypatch.setattr(Parser, "parse", parse)
    said: list[str] = []
    [row] = table4.measure(
        banks(bank), tmp_path, presets={}, models={"mine": parser}, print_message=said.append
    ).rows
    assert row.failure == "out of memory"
    assert said[-1] == "mine: could not be scored with beam 2 (out of memory)"


# --- the table ---


def table(*rows: Row, **changes: Any) -> Table4:
    plain = Table4(
        name="gum",
        wsj=False,
        held_out=True,
        sentences=100,
        words=2000,
        rows=rows,
        command="dragoman paper table4 --trees gum.txt",
    )
    return replace(plain, **changes)


def row(parser: str = "parsing", **changes: Any) -> Row:
    plain = Row(
        parser=parser,
        training="9,000 trees",
        size="4+4 × 1024",
        parameters=134_000_000,
        steps=6000,
        minutes=12.34,
        beam=21,
        length_penalty=0.3,
        scores=scores(),
        greedy=scores(f1=79.0, seconds=0.5),
    )
    return replace(plain, **changes)


def cells(text: str, start: str) -> list[str]:
    return next(line for line in text.split("\n") if line.startswith(start)).split()


def test_the_papers_rows_are_all_there_with_their_figures() -> None:
    assert len(TABLE_4) == 12
    ours = {r.training: r.f1 for r in TABLE_4 if r.parser.startswith("Transformer")}
    assert ours == {"WSJ only": 91.3, "semi-supervised": 92.7}
    assert max(TABLE_4, key=lambda r: r.f1).training == "generative"


def test_the_table_prints_what_was_measured_beside_the_papers_figures() -> None:
    text = table4.render(table(row(), row("benepar", beam=None, greedy=None)))
    figures = ["80.00", "2.00", "81.00", "79.00", "30.50", "95.25", "80.50"]
    assert cells(text, "parsing ")[3:] == [*figures, "91.3"]
    assert cells(text, "benepar ")[3:] == figures, "the paper has no such row"
    assert cells(text, "Luong")[-1] == "93.0"
    speed = text.partition("Size and speed")[2]
    assert cells(speed, "parsing ") == [
        "parsing", "4+4", "×", "1024", "134.00M", "6,000", "12.3",
        "79.00", "4,000", "200.0", "21", "0.3", "80.00", "1,000", "50.0",
    ]  # fmt: skip
    assert "On a fast one" in speed
    assert "90.0 ± 2.0" in text
    assert "11–44 (60)" in text
    assert "F1|evalb|prm:COLLINS" in text


def test_the_papers_figures_are_said_to_be_of_another_treebank_unless_they_are_not() -> None:
    other = "another treebank than ours"
    assert other in table4.render(table(row()))
    assert other not in table4.render(table(row(), wsj=True))


def test_a_table_says_when_it_was_scored_on_what_it_was_chosen_on() -> None:
    tried = (TriedSetting("beam 4", 80.0, chosen=True),)
    assert "test set had no part" in table4.render(table(row(tried=tried)))
    text = table4.render(table(row(tried=tried), held_out=False))
    assert "100 validation sentences, for want of a test set" in text
    assert "Chosen on the trees that are scored above" in text


def test_sentences_that_were_left_out_are_told() -> None:
    text = table4.render(table(row(scores=scores(left_out=3, f1_all_lines=75.5))))
    assert "parsing: 3 sentences without a tree of their words count nowhere" in text
    assert "75.50" in text


def test_a_table_survives_json() -> None:
    found = table(row(tried=(TriedSetting("beam 4", None),)), Row(parser="x", failure="killed"))
    assert Table4.from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.slow
def test_the_picture_has_every_parser_and_the_papers(tmp_path: Path) -> None:
    drawn = table4.draw(table(row(), row("mine")), tmp_path / "a.svg").read_text(encoding="utf-8")
    assert drawn.count(">mine<") == 2  # in the legend and beside its F1
    assert drawn.count(">Transformer (4 layers), semi-supervised<") == 1
    assert "ours on gum" in drawn


@pytest.mark.slow
def test_the_report_has_the_table_and_its_command(command: Command, tmp_path: Path) -> None:
    found = table(row())
    (tmp_path / "table4-gum.json").write_text(json.dumps(found.to_json()), encoding="utf-8")
    table4.draw(found, tmp_path / "table4-gum.png")
    assert command("paper", "report", "--out", tmp_path).status == 0
    page = read(tmp_path / "report.html")
    assert page.links == page.anchors
    assert "#table-4-gum" in page.anchors
    assert "dragoman paper table4 --trees gum.txt" in page.text
    assert "does not include" in page.text


# --- the command ---


def test_without_trees_the_papers_rows_are_shown_with_the_licence(command: Command) -> None:
    found = command("paper", "table4")
    assert "Dyer et al. (2016)              generative       93.3" in found.out
    assert "LDC99T42" in found.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trees", "BANK/train.txt"], "--trees needs --valid"),
        (["--test", "BANK/test.txt"], "no parsers; name some"),
        (
            ["--trees", "BANK/train.txt", "--valid", "BANK/valid.txt", "--no-train"],
            "no parsers; name some",
        ),
        (["--model", "mine=x"], "no trees; give a file"),
        (["--test", "BANK/test.txt", "--model", "mine"], "--model mine: needs a name"),
        (["--test", "BANK/test.txt", "--model", "a=x"], "x: not a parser"),
        (["--test", "BANK/test.txt", "--model", "a/b=x"], "'a/b' cannot name a row"),
        (["--test", "BANK/test.txt", "--trees-of", "a=nowhere"], "nowhere: no such file"),
        (["--test", "BANK/test.txt", "--preset", "parsing"], "there are no training trees"),
        (["--wsj", "BANK", "--test", "BANK/test.txt"], "--wsj brings its own"),
        (
            ["--trees", "BANK/train.txt", "--valid", "BANK/valid.txt", "--preset", "base"],
            "preset base: for a translator",
        ),
    ],
)
def test_wrong_arguments_get_one_line(
    arguments: list[str], message: str, command: Command, bank: Path, tmp_path: Path
) -> None:
    words = [word.replace("BANK", str(bank)) for word in arguments]
    found = command("paper", "table4", *words, "--out", tmp_path)
    assert found.status == 2
    assert message in found.err
    assert found.err.count("\n") == 1


@pytest.mark.slow
def test_parsers_and_trees_that_are_there_are_scored_without_training(
    command: Command, bank: Path, parser: Path, tmp_path: Path
) -> None:
    arguments = ["--test", bank / "test.txt", "--model", f"mine={parser}", "--trees-of"]
    arguments += [f"gold={bank / 'test.txt'}", "--out", tmp_path, "--json"]
    found = command("paper", "table4", *arguments)
    assert found.status == 0
    printed = json.loads(found.out)
    assert [r["parser"] for r in printed["rows"]] == ["mine", "gold"]
    mine, right = printed["rows"]
    assert (mine["beam"], mine["length_penalty"], mine["steps"]) == (2, 0.3, 6)
    assert mine["parameters"] > 10_000
    assert right["scores"]["f1"] == 100
    name = f"table4-{bank.name}"
    assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")) == printed
    assert (tmp_path / f"{name}.png").exists()
    assert printed["command"] == " ".join(
        [
            *("dragoman paper table4 --test", str(bank / "test.txt"), f"--model mine={parser}"),
            f"--trees-of gold={bank / 'test.txt'}",
        ]
    )


@pytest.mark.slow
def test_a_preset_is_trained_on_the_sections_and_taken_up_again(
    command: Command, preset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, section in enumerate(SECTIONS[2:24]):
        file = tmp_path / "parsed/mrg/wsj" / section / f"wsj_{section}01.mrg"
        file.parent.mkdir(parents=True)
        trees = list(generate("de", "train", 20, seed=number))
        file.write_text("".join(f"( {e.source_tree})\n\n" for e in trees), encoding="utf-8")
    arguments = ["paper", "table4", "--wsj", tmp_path, "--preset", preset]
    arguments += ["--set", "training.steps=5", "--out", tmp_path / "out", "--json"]
    first = command(*arguments)
    assert first.status == 0
    found = json.loads(first.out)
    [made] = found["rows"]
    assert found["wsj"]
    assert found["held_out"]
    assert (found["sentences"], made["steps"], made["parser"]) == (20, 5, "toy")
    assert made["minutes"] > 0
    assert int(made["training"].split()[0]) <= 400
    assert first.err.count("parsing 20 test sentences") == 2

    monkeypatch.setattr(sweep._Sweep, "_start", lambda self, trial: pytest.fail("trained again"))
    monkeypatch.setattr(Parser, "parse", lambda self, *given: pytest.fail("parsed again"))
    again = command(*arguments)
    assert json.loads(again.out) == found
    assert "another treebank" not in table4.render(Table4.from_json(found))
