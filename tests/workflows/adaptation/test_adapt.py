"""Adapting a model: what it gains and keeps, what is refused, going on after a kill."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import WORDS, Result, write_pairs

from dragoman.config import Config
from dragoman.data.prepare import prepare
from dragoman.data.readers import open_corpus
from dragoman.data.store import META_FILE
from dragoman.inference import load
from dragoman.model_directory import load_model, open_model, write_int8_file, write_int8_model
from dragoman.models.weights import get_weights
from dragoman.training.run import train as train_anew
from dragoman.workflows.adaptation import adapt as adapt_module
from dragoman.workflows.adaptation.choice import Judgement, rank
from dragoman.workflows.adaptation.plan import Plan
from dragoman.workflows.adaptation.text_sets import read_set
from dragoman.workflows.train import resume, train

SETTINGS = ["training.threads=1", "training.device=cpu", "training.learning_rate=0.005"]
SETTINGS += ["training.batch_tokens=512", "training.steps=300"]
Pairs = list[tuple[str, str]]


NEW = ("house", "tree")
KNOWN = tuple(word for word in WORDS if word not in NEW)


def sentences(count: int, seed: int, new: int = 0) -> list[str]:
    """Different sentences, each with so many words that the first model has never seen."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        words = draw.choices(KNOWN, k=draw.randint(3, 5)) + draw.choices(NEW, k=new)
        draw.shuffle(words)
        found[" ".join(words)] = None
    return list(found)


def translate(source: str) -> str:
    """Return every word spelt backwards."""
    return " ".join(word[::-1] for word in source.split())


def general_pairs(count: int, seed: int) -> Pairs:
    return [(source, translate(source)) for source in sentences(count, seed)]


def domain_pairs(count: int, seed: int) -> Pairs:
    return [(source, translate(source)) for source in sentences(count, seed, new=2)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, tiny: Config) -> Path:
    """A model that has learned the general language."""
    directory = tmp_path_factory.mktemp("base")
    files = write_pairs(directory, general_pairs(1500, 1))
    settings = ["training.steps=220", "training.learning_rate=0.01", "training.batch_tokens=1024"]
    settings += ["training.validate_every=500", "search.beam=1", "training.average=1"]
    outcome = train_anew(tiny, *files, run=directory / "run", assignments=settings, quiet=True)
    assert outcome.model is not None
    return outcome.model


@pytest.fixture
def domain(tmp_path: Path) -> list[Path]:
    return write_pairs(tmp_path, domain_pairs(300, 2), "mine")


@pytest.fixture
def general(tmp_path: Path) -> list[Path]:
    return write_pairs(tmp_path, general_pairs(800, 3), "general")


def adapt(base: Path, files: list[Path], run: Path, **options: Any) -> Any:
    options.setdefault("assignments", SETTINGS)
    return train(None, *files, run=run, start_from=base, quiet=True, **options)


def weights(model: Path) -> dict[str, Any]:
    return get_weights(load_model(model).model)


def same_weights(one: Path, other: Path) -> bool:
    first, second = weights(one), weights(other)
    return all(first[name].equal(second[name]) for name in first)


def test_a_model_learns_the_users_text_and_the_report_says_so(
    tmp_path: Path, base: Path, domain: list[Path], general: list[Path]
) -> None:
    outcome = adapt(base, domain, tmp_path / "run", replay=general)
    report = outcome.report
    assert report == json.loads((tmp_path / "run" / "report.json").read_text())
    bleu = report["domain"]["bleu"]
    assert bleu["delta"] > 5
    assert bleu["p_value"] < 0.05
    assert report["domain"]["chrf"]["delta"] > 0
    assert "the gain on your text is significant" in report["findings"]
    assert report["general"]["bleu"]["delta"] > -15
    texts = [load(model).translate("red tree cat dog").text for model in (base, outcome.model)]
    assert ["eert" in text for text in texts] == [False, True]
    assert not (tmp_path / "run" / "trained").exists()


def test_no_held_out_sentence_is_learned_from(
    tmp_path: Path, base: Path, domain: list[Path], general: list[Path]
) -> None:
    (tmp_path / "test.en").write_text("\n".join(s for s, _ in domain_pairs(300, 2)[:7]) + "\n")
    (tmp_path / "test.de").write_text("\n".join(t for _, t in domain_pairs(300, 2)[:7]) + "\n")
    tests = [[tmp_path / "test.en", tmp_path / "test.de"]]
    run = tmp_path / "run"
    options = {"assignments": [*SETTINGS, "training.steps=1"], "tests": tests}
    adapt(base, domain, run, replay=[*general, *domain], **options)
    sets = {file.stem: read_set(file) for file in (run / "sets").glob("*.jsonl")}
    assert sets.keys() == {
        *("domain", "measured", "choice", "test-test"),
        *("general", "general-measured", "general-choice"),
    }
    everything = [source for one in sets.values() for source in one.source]
    assert len(everything) == len(set(everything))
    assert len(sets["domain"]) + len(sets["measured"]) + len(sets["choice"]) == 293
    adapt(base, domain, tmp_path / "again", replay=[*general, *domain], **options)
    for name, one in sets.items():
        assert read_set(tmp_path / "again" / "sets" / f"{name}.jsonl") == one


def test_general_text_without_translations_is_translated_by_the_model_first(
    tmp_path: Path, base: Path, domain: list[Path], general: list[Path]
) -> None:
    outcome = adapt(base, domain, tmp_path / "run", replay=general[:1])
    assert outcome.report["general translated by the model"]
    agreement = outcome.report["general"]["agreement"]["bleu"]["score"]
    assert 0 < agreement <= 100
    prepared = tmp_path / "run" / "data"
    assert json.loads((prepared / "train" / META_FILE).read_text())["pairs"] > 2 * 255


def test_a_prepared_corpus_serves_as_general_text_whatever_its_pieces(
    tmp_path: Path, base: Path, tiny: Config, domain: list[Path], general: list[Path]
) -> None:
    config = tiny.overridden(["tokenizer.vocabulary=305"])
    prepare(open_corpus(general, config.data), tmp_path / "data", config, workers=0)
    outcome = adapt(
        *(base, domain, tmp_path / "run"),
        replay=[tmp_path / "data"],
        assignments=[*SETTINGS, "training.steps=1"],
    )
    assert outcome.report["general pairs"] > 100
    learned = read_set(tmp_path / "run" / "sets" / "general.jsonl")
    assert set(zip(learned.source, learned.target, strict=True)) <= set(general_pairs(800, 3))


def test_a_model_of_int8_weights_alone_is_adapted_and_rounded_again(
    tmp_path: Path, base: Path, domain: list[Path]
) -> None:
    write_int8_model(open_model(base), tmp_path / "small")
    outcome = adapt(tmp_path / "small", domain, tmp_path / "run")
    assert outcome.report["domain"]["bleu"]["delta"] > 5
    write_int8_file(open_model(outcome.model))
    assert "eert" in load(outcome.model).translate("red tree cat dog").text


def test_a_model_that_only_gets_worse_stays_what_it_was(tmp_path: Path, base: Path) -> None:
    pairs = general_pairs(120, 5)
    turned = [(s, t) for (s, _), (_, t) in zip(pairs, pairs[::-1], strict=True)]
    files = write_pairs(tmp_path, turned, "mine")
    valid = write_pairs(tmp_path, general_pairs(40, 6), "dev")
    said: list[str] = []
    outcome = adapt(base, files, tmp_path / "run", valid=valid, tell=said.append)
    assert outcome.report["share"] == 0
    assert [line for line in said if line.startswith("NOT ADAPTED")]  # though it is quiet
    assert same_weights(outcome.model, base)


class Killed(BaseException):
    """Stands for a process that ends."""


STAGES = ["_make_sets", "_translate_before", "_translate_general", "_prepare", "_train"]


@pytest.mark.slow
def test_killed_after_any_stage_a_resumed_run_ends_as_an_uninterrupted_one(
    tmp_path: Path,
    base: Path,
    domain: list[Path],
    general: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = [*SETTINGS, "training.steps=6"]
    whole = adapt(*(base, domain, tmp_path / "whole"), replay=general[:1], assignments=steps)
    run = tmp_path / "run"
    own = adapt_module._Adaptation

    def start() -> None:
        if run.exists():
            resume(run, quiet=True)
        else:
            adapt(base, domain, run, replay=general[:1], assignments=steps)

    for name in [*STAGES, "_choose", "_report"]:
        before: Callable[..., Any] = getattr(own, name)

        def kill(*arguments: Any, before: Callable[..., Any] = before) -> None:
            before(*arguments)
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(own, name, kill)
            with pytest.raises(Killed):
                start()
    for file in domain:
        file.unlink()  # they are not needed any more
    outcome = resume(run, quiet=True)
    assert same_weights(outcome.model, whole.model)
    minutes = {"training_minutes": 0}
    assert outcome.report | minutes == whole.report | minutes
    assert resume(run, quiet=True).report == outcome.report


def test_who_stops_it_is_told_how_to_go_on(
    tmp_path: Path, base: Path, domain: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    said: list[str] = []
    monkeypatch.setattr(adapt_module._Adaptation, "_translate_before", stop)
    with pytest.raises(KeyboardInterrupt):
        adapt(base, domain, tmp_path / "run", tell=said.append)
    assert said == [f"stopped; continue with: dragoman train --resume {tmp_path / 'run'}"]


def test_a_finished_run_can_be_trained_on(tmp_path: Path, base: Path, domain: list[Path]) -> None:
    run = tmp_path / "run"
    first = adapt(base, domain, run, assignments=[*SETTINGS, "training.steps=2"])
    more = resume(run, ["training.steps=5"], quiet=True)
    assert (first.step, more.step) == (2, 5)
    assert more.report["steps"] == 5


def test_of_candidates_the_nearest_that_is_about_as_good_is_chosen() -> None:
    far, near = Judgement(1.0, 10.0, 0.9), Judgement(0.5, 9.6, 0.1)
    assert rank([far, near])[0] == near
    assert rank([far, Judgement(0.5, 9.0, 0.1)])[0] == far
    forgetful = Judgement(1.0, 10.0, 2.5)
    assert rank([forgetful, Judgement(0.5, 6.0, 1.0)])[0].share == 0.5
    assert rank([Judgement(1.0, 1.0, 1.3), Judgement(0.5, -0.1, None)])[0].share == 0


def test_a_plan_is_read_as_it_was_written(tmp_path: Path, tiny: Config) -> None:
    plan = Plan(
        model=tmp_path / "model",
        files=[tmp_path / "mine.en", tmp_path / "mine.de"],
        tests=[[tmp_path / "a.tsv"], [tmp_path / "b.en", tmp_path / "b.de"]],
        replay=[tmp_path / "data"],
        config=tiny,
        languages=("en", "de"),
        assignments=("training.steps=3",),
        epochs=2.5,
        valid=[tmp_path / "dev.tsv"],
    )
    (tmp_path / "run").mkdir()
    plan.save(tmp_path / "run")
    assert Plan.load(tmp_path / "run") == plan


# --- what is refused ---


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


GERMAN = "Der alte Mann hat gestern mit seiner Frau über die neue Wohnung gesprochen, die {} kostet"
ENGLISH = "The old man spoke with his wife about the new flat yesterday, which costs {} each month"
RUSSIAN = "Старик вчера говорил со своей женой о новой квартире, которая стоит {} рублей в месяц"


def refused_files(place: Path) -> dict[str, tuple[list[Any], str]]:
    """Return arguments that are refused, and what is said."""
    numbered = {
        name: [text.format(n) for n in range(80)]
        for name, text in (("de", GERMAN), ("en", ENGLISH), ("ru", RUSSIAN))
    }
    three = [write(place / "three.en", ["a b", "c d", "e f"])]
    three += [write(place / "three.de", ["b a", "d c", "f e"])]
    good = [write(place / "good.en", numbered["en"]), write(place / "good.de", numbered["de"])]
    wrong = [write(place / "w.en", numbered["de"]), write(place / "w.de", numbered["en"])]
    starred = [f"{line} ☃☃☃☃☃☃☃♞" for line in numbered["en"]]
    alien = [write(place / "alien.en", starred), write(place / "alien.de", numbered["de"])]
    russian = [write(place / "x.1", numbered["ru"]), write(place / "x.2", numbered["de"])]
    empty = [write(place / "empty.en", []), write(place / "empty.de", [])]
    write(place / "short.de", ["only one"])
    (place / "nothing").mkdir()
    return {
        "three pairs": (three, r"three\.en: 3 different sentences are too few to adapt a model to"),
        "turned round": (good[::-1], r"translates from English to German, but .* the other order"),
        "another language": ([*good, "--languages", "fr,de"], "are French and German"),
        "text of the other side": (wrong, r"w\.en: is in German, and the model has English"),
        "no pieces": (
            alien,
            r"alien\.en: 640 of [\d,]+ characters \(\d+\.\d%\) have no piece .*: ☃ ♞;",
        ),
        "another script": (russian, r"x\.1: is in Russian, and the model has English"),
        "no pairs": (empty, "contains no pairs"),
        "unequal": ([good[0], place / "short.de"], "must be aligned line by line"),
        "missing": ([place / "no.en", place / "no.de"], "no such file"),
        "model setting": ([*good, "--set", "model.heads=4"], r"model\.heads = 4 contradicts"),
        "nothing": ([], "nothing to adapt to"),
        "general in German": ([*good, "--replay", good[1]], r"good\.de: is in German"),
        "general unprepared": ([*good, "--replay", place / "nothing"], "not a prepared corpus"),
        "one-sided": (good[:1], "give the file of its translations as well"),
        "epochs": ([*good, "--epochs", "0"], "epochs are impossible"),
        "steps twice": ([*good, "--epochs", 1, "--steps", 2], "contradict each other"),
    }


@pytest.fixture(scope="module")
def speller(tmp_path_factory: pytest.TempPathFactory, tiny: Config) -> Path:
    """A model that has pieces for English and German, and knows nothing."""
    directory = tmp_path_factory.mktemp("speller")
    pairs = [(ENGLISH.format(n), GERMAN.format(n)) for n in range(200)]
    settings = ["training.steps=1", "training.validate_sentences=0"]
    files = write_pairs(directory, pairs)
    return train_anew(tiny, *files, run=directory / "run", assignments=settings, quiet=True).run


def test_what_a_model_cannot_be_adapted_to_is_refused_with_one_line_and_nothing_is_written(
    tmp_path: Path, speller: Path, command: Callable[..., Result]
) -> None:
    for name, (arguments, message) in refused_files(tmp_path).items():
        found = command("train", *arguments, "--from", speller, "--out", tmp_path / "run")
        assert found.status == 2, name
        assert found.err.count("\n") == 1, (name, found.err)
        assert re.search(message, found.err), (name, found.err)
        assert not (tmp_path / "run").exists(), name


def test_a_parser_is_not_adapted_to_translations(
    tmp_path: Path, domain: list[Path], command: Callable[..., Result]
) -> None:
    parser = Path(__file__).parents[3] / "models" / "parse-en"
    found = command("train", *domain, "--from", parser, "--out", tmp_path / "run")
    assert found.status == 2
    assert "a parser, and" in found.err
    assert not (tmp_path / "run").exists()


def test_a_damaged_model_is_refused(
    tmp_path: Path, base: Path, domain: list[Path], command: Callable[..., Result]
) -> None:
    shutil.copytree(base, tmp_path / "model")
    file = tmp_path / "model" / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    found = command("train", *domain, "--from", tmp_path / "model", "--out", tmp_path / "run")
    assert (found.status, found.err.count("\n")) == (2, 1)
    assert "weights.safetensors: truncated" in found.err
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_there_is_left_alone(
    tmp_path: Path, base: Path, domain: list[Path], command: Callable[..., Result]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("mine")
    found = command("train", *domain, "--from", base, "--out", tmp_path / "run")
    assert found.status == 2
    assert "already exists and is not empty" in found.err
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["letter.txt"]
    place = tmp_path / "run" / "letter.txt" / "run"
    found = command("train", *domain, "--from", base, "--out", place)
    assert (found.status, found.err.count("\n")) == (2, 1)
    assert "is a file, not a directory" in found.err


@pytest.mark.slow
def test_a_parser_goes_on_learning_in_small_steps(
    tmp_path: Path, command: Callable[..., Result]
) -> None:
    nouns = ("cat", "dog", "house", "tree")
    lines = [f"(S (NP (DT The) (NN {noun})) (VP (VBD sat)) (. .))" for noun in nouns] * 20
    trees = write(tmp_path / "my.trees", lines)
    parser = Path(__file__).parents[3] / "models" / "parse-en"
    settings = ["training.threads=1", "data.drop_duplicates=false", "training.steps=1"]
    words = [word for setting in settings for word in ("--set", setting)]
    words += ["--task", "parsing", "--out", tmp_path / "run"]
    assert command("train", trees, "--from", parser, *words).status == 0
    config = load_model(tmp_path / "run").config
    assert config.data.task == "parsing"
    assert config.training.learning_rate <= 4e-4
    found = command(
        "train", trees, "--from", parser, "--replay", trees, *words[:-1], tmp_path / "b"
    )
    assert (found.status, "--replay protects a translator" in found.err) == (2, True)
