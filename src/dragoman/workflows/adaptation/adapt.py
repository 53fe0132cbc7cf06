"""A model is trained further on a user's own pairs, in a run of stages that each can be continued.

    adaptation.json  the plan
    sets/            the user's pairs, general text, and what is held out of both
    before/          what the first model makes of the held-out text
    translated/      general text in its own translations, if it came without any
    data/            pairs and general text, prepared with the model's pieces
    config.toml …    the training run, as any other
    trained/         what training has made, while the model is being chosen
    model/           the chosen weights
    report.json      before and after

The user's pairs are repeated in data/ as often as they are learned from, with fresh general text
between them. A corpus that is prepared already, and has no general text beside it, is trained on
where it lies.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dragoman.config import Config, parse_assignments
from dragoman.data import Progress
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers import fill_in_languages, open_corpus
from dragoman.data.readers.parallel import ConcatenatedCorpus, Corpus, Pair, open_parallel_corpus
from dragoman.errors import ConfigError, DataError, TrainingError
from dragoman.inference import Translator, load
from dragoman.messages import counted
from dragoman.model_directory import LoadedModel, load_model, open_model, save_model
from dragoman.models.weights import get_weights
from dragoman.system.atomic_files import atomic_write, explain_os_errors, remove_leftovers
from dragoman.training import run as training_run
from dragoman.training.distributed.ranks import pick_device
from dragoman.training.loop import Outcome, make_batches
from dragoman.workflows.adaptation.checks import (
    check_language,
    check_languages,
    check_task,
    check_text,
)
from dragoman.workflows.adaptation.choice import (
    Judgement,
    MeasuredSet,
    choose_share,
    mix_weights,
    translate_set,
)
from dragoman.workflows.adaptation.plan import PLAN_FILE, REPORT_FILE, Plan
from dragoman.workflows.adaptation.report import compare_set, find_faults, write_lines
from dragoman.workflows.adaptation.schedule import (
    count_passes,
    general_share,
    make_schedule,
    set_steps,
)
from dragoman.workflows.adaptation.text_sets import (
    CHOICE,
    MEASURED,
    Splitter,
    TextSet,
    check_enough,
    check_enough_general,
    domain_sizes,
    general_sizes,
    hash_sources,
    open_domain,
    open_general,
    read_set,
    write_set,
)
from dragoman.workflows.stages import (
    exclusive_lock,
    fill_windows,
    make_stage,
    read_windows,
)

Tell = Callable[[str], None]

_MOST_TRANSLATED: Final = {"cpu": 20_000, "cuda": 300_000}
"""At most so many general sentences are translated by the model itself; then they are repeated."""
_CHOSEN_BY: Final = {"cpu": 200, "cuda": 500}
"""The model is chosen by so many pairs of --valid at most; all of them are in the report."""
_WINDOW: Final = 1000


def adapt(
    plan: Plan,
    run: Path,
    *,
    quiet: bool = False,
    tell: Tell = lambda message: None,
    progress: Progress = lambda stage, done, total: None,
) -> Outcome:
    """Adapt a model in a new run. What cannot be adapted is refused before anything is written."""
    if (run / PLAN_FILE).exists() or (run / "config.toml").exists():
        raise TrainingError(
            f"{run}: already contains a run; continue it with: dragoman train --resume {run}, or "
            "choose another --out"
        )
    with explain_os_errors(run):
        there = run.iterdir() if run.is_dir() else [run] if run.exists() else []
        if any(path == run or not path.name.startswith(".") for path in there):
            raise TrainingError(f"{run}: already exists and is not empty; choose another --out")
    plan = _check(plan, tell)
    with explain_os_errors(run):
        run.mkdir(parents=True, exist_ok=True)
        plan.save(run)
    return _Adaptation(plan, run, quiet, tell, progress).make()


def resume(
    run: Path,
    assignments: Sequence[str] = (),
    *,
    epochs: float | None = None,
    quiet: bool = False,
    tell: Tell = lambda message: None,
    progress: Progress = lambda stage, done, total: None,
) -> Outcome:
    """Continue an adaptation; with changed settings one that was finished is trained on."""
    adaptation = _Adaptation(Plan.load(run), run, quiet, tell, progress)
    if assignments or epochs is not None:
        adaptation.change(assignments, epochs)
    return adaptation.make()


def is_adaptation(run: Path) -> bool:
    """Return whether a run adapts a model."""
    return (run / PLAN_FILE).exists()


def _check(plan: Plan, tell: Tell) -> Plan:
    """Refuse what cannot work, and return the plan with what the files say."""
    first = load_model(plan.model)
    check_task(first, plan.files)
    config = _base_config(plan, first.config)
    training_run.with_settings_of(first, config, plan.assignments)
    if plan.epochs is not None:
        training_run.check_epochs(plan.epochs, config, plan.assignments)
    pick_device(config.training.device)
    named_by_option = "languages" in parse_assignments(plan.assignments).get("data", {})
    languages = config.data.languages if named_by_option else plan.languages
    prepared = plan.files[0].is_dir() if plan.files else False
    if not plan.files:
        raise ConfigError("nothing to adapt to; give two aligned files: corpus.en corpus.de")
    if prepared and plan.valid:
        raise ConfigError(f"{plan.files[0]}: has its own validation set; leave out --valid")
    if not languages:
        data = dataclasses.replace(config.data, languages=())
        languages = (
            Prepared.open(plan.files[0]).config.data.languages
            if prepared
            else fill_in_languages(data, plan.files).languages
        )
    check_languages(first, languages, plan.files)
    named = languages or first.config.data.languages
    config = config.updated({"data": {"languages": list(named)}})
    if prepared and not plan.replay:
        data_set = Prepared.open(plan.files[0])
        if data_set.config.data.task != "translation":
            check_task(first, plan.files)
        training_run.check_same_pieces(first, data_set)
        data_set.refuse_contradictions(plan.assignments)
    domain = open_domain(plan.files, config.data)
    sources = check_text(first, domain, config, tell)
    if not prepared:
        check_enough(domain, sources)
    if plan.valid:
        _read_corpus(open_corpus(plan.valid, config.data))
    _read_tests(plan, config)
    if plan.replay:
        general, translated = open_general(plan.replay, named)
        sample = [pair for pair, _ in zip(general, range(20_000), strict=False)]
        if named:
            check_language([pair.source for pair in sample], named[0], where=general.name)
            if translated:
                check_language([pair.target for pair in sample], named[1], where=general.name)
        check_enough_general(general, len({pair.source for pair in sample}))
    return dataclasses.replace(plan, model=first.path, languages=tuple(named))


def _base_config(plan: Plan, model: Config) -> Config:
    """Return the config that a plan changes: the preset's, or the model's."""
    config = model if plan.config is None else plan.config
    table = {"task": "translation"}
    return config.overridden(plan.assignments).updated({"data": table})


def _read_corpus(corpus: Corpus) -> TextSet:
    """Read a whole set that is scored; one with no pairs, or with bad ones, is refused."""
    pairs = [(pair.source, pair.target) for pair in corpus]
    if corpus.malformed:
        raise DataError(corpus.malformed[0])
    if not pairs:
        raise DataError(f"{corpus.name}: contains no pairs")
    return TextSet([source for source, _ in pairs], [target for _, target in pairs])


def _read_tests(plan: Plan, config: Config) -> dict[str, TextSet]:
    """Read the test sets by their names."""
    tests: dict[str, TextSet] = {}
    for files in plan.tests:
        name = files[0].name.split(".")[0]
        if name in tests:
            raise DataError(f"{files[0]}: another --test is called {name}; rename one")
        tests[name] = _read_corpus(open_corpus(files, config.data))
    return tests


class _Translated(Corpus):
    """Read general text with the model's own translations of it."""

    def __init__(self, sources: Path, windows: Path) -> None:
        self.sources, self.windows, self.name = sources, windows, str(windows)

    def read(self, on_error: Callable[[DataError], None] | None = None) -> Iterator[Pair]:
        """Yield the pairs; where a translation is empty, cleaning drops the pair."""
        texts = (pair.source for pair in open_parallel_corpus([self.sources]))
        found = zip(texts, read_windows(self.windows), strict=True)
        return (Pair(source, target, n) for n, (source, target) in enumerate(found, 1))


@dataclass(slots=True)
class _Adaptation:
    """Make the stages of a plan that a run does not have yet."""

    plan: Plan
    run: Path
    quiet: bool
    tell: Tell
    progress: Progress

    # --- the stages in their order ---

    def make(self) -> Outcome:
        """Do what has not been done yet; if stopped, say how to go on."""
        try:
            return self._make_stages()
        except KeyboardInterrupt:
            self.tell(f"stopped; continue with: dragoman train --resume {self.run}")
            raise

    def _make_stages(self) -> Outcome:
        run = self.run
        with exclusive_lock(run / ".lock", wait=False) as lock:
            if lock is None:
                raise TrainingError(f"{run}: another process works on it; wait until it ends")
            with explain_os_errors(run):
                remove_leftovers(run)
                if (run / REPORT_FILE).exists():
                    return self._finished()
                counts = self._make_sets()
                self._translate_before(counts)
                self._translate_general(counts)
                self._tell_general(counts)
                data = self._prepare(counts)
                if not (run / "trained").exists():
                    outcome = self._train(data, counts)
                    if outcome is not None and outcome.model is None:
                        return outcome
                    (run / "model").rename(run / "trained")
                chosen = self._choose()
                self._report(counts, chosen)
                return self._finished()

    def change(self, assignments: Sequence[str], epochs: float | None) -> None:
        """Let training go on with other settings, whatever was made of it before."""
        run = self.run
        if not (run / "config.toml").exists():
            raise TrainingError(
                f"{run}: has not begun to train; resume it without --set, --steps and --epochs"
            )
        changes = list(assignments)
        config = Config.load(run / "config.toml").overridden(changes)
        if epochs is not None:
            training_run.check_epochs(epochs, config, changes)
            counts = self._make_sets()
            data = self._prepare(counts)
            changes.append(f"training.steps={self._count_steps(config, data, counts, epochs)}")
        if (run / "trained").exists() or (run / "model").exists():
            for name in ("trained", "model"):
                shutil.rmtree(run / name, ignore_errors=True)
            (run / REPORT_FILE).unlink(missing_ok=True)
        changed = config.overridden(changes)
        atomic_write(run / "config.toml", changed.to_toml())

    # --- sets/ ---

    def _make_sets(self) -> dict[str, Any]:
        return make_stage(self.run / "sets", self._write_sets)

    def _set_file(self, name: str) -> Path:
        return self.run / "sets" / f"{name}.jsonl"

    def _read_set(self, name: str) -> TextSet:
        return read_set(self._set_file(name))

    def _write_sets(self, directory: Path) -> dict[str, Any]:
        """Write all sets; return how large they are, and how the pairs are to be repeated."""
        plan, first = self.plan, open_model(self.plan.model)
        config = self._data_config(first)
        tokenizer = first.tokenizer

        def file(name: str) -> Path:
            return directory / f"{name}.jsonl"

        device = pick_device(config.training.device).type
        tests = _read_tests(plan, config)
        prepared = Prepared.open(plan.files[0]) if plan.files[0].is_dir() else None
        if prepared is not None:
            given = TextSet(prepared.valid_source, prepared.valid_target)
        elif plan.valid:
            given = _read_corpus(open_corpus(plan.valid, config.data))
        else:
            given = TextSet([], [])
        for name, one in tests.items():
            write_set(file(f"test-{name}"), zip(one.source, one.target, strict=True))
        outside = hash_sources(tokenizer, given, *tests.values())
        counts: dict[str, Any] = {"tests": list(tests), "device": device}
        if given:
            write_set(file(MEASURED), zip(given.source, given.target, strict=True))
            some = given.first(_CHOSEN_BY[device])
            write_set(file(CHOICE), zip(some.source, some.target, strict=True))
        if prepared is not None and not plan.replay:
            return counts | {"prepared": True, "pairs": len(prepared.train), "copies": 1}
        domain = Splitter(open_domain(plan.files, config.data), tokenizer, outside, self.progress)
        check_enough(domain.corpus, len(domain))
        sizes = domain_sizes(len(domain))
        sets = domain.split(dataclasses.replace(sizes, measured=0, choice=0) if given else sizes)
        names = {name: file(name) for name in (MEASURED, CHOICE)} | {"learned": file("domain")}
        pairs = domain.write(sets, names)["learned"]
        passes = count_passes(pairs, device) if plan.epochs is None else math.ceil(plan.epochs)
        counts |= {"prepared": False, "pairs": pairs, "copies": passes}
        if not plan.replay:
            return counts | {"copies": 1}
        held_out = np.concatenate([outside, sets[MEASURED], sets[CHOICE], sets["learned"]])
        corpus, translated = open_general(plan.replay, config.data.languages)
        general = Splitter(corpus, tokenizer, held_out, self.progress)
        wanted = max(1, round(passes * general_share(device) * pairs))
        most = wanted if translated else min(wanted, _MOST_TRANSLATED[device])
        check_enough_general(corpus, len(general))
        parts = general.split(general_sizes(len(general), most, translated=translated))
        names = {name: file(f"general-{name}") for name in (MEASURED, CHOICE)}
        learned = general.write(parts, names | {"learned": file("general")})["learned"]
        return counts | {
            "general": learned,
            "translated": translated,
            "general copies": max(1, round(wanted / max(1, learned))),
        }

    def _data_config(self, first: LoadedModel) -> Config:
        config = _base_config(self.plan, first.config)
        return config.updated({"data": {"languages": list(self.plan.languages)}})

    def _device(self) -> str:
        """Return what this process computes on, wherever the run was begun."""
        config = self._data_config(open_model(self.plan.model))
        return pick_device(config.training.device).type

    # --- before/ and translated/ ---

    def _measured_sets(self, counts: dict[str, Any]) -> list[str]:
        """Return the names of all held-out sets."""
        names = [MEASURED, CHOICE, f"general-{MEASURED}", f"general-{CHOICE}"]
        names += [f"test-{name}" for name in counts["tests"]]
        return [name for name in names if self._set_file(name).exists()]

    def _translate_before(self, counts: dict[str, Any]) -> None:
        """Translate the held-out text with the first model."""

        def make(directory: Path) -> dict[str, Any]:
            names = self._measured_sets(counts)
            translator = load(self.plan.model, device=self._device())
            done = total = 0
            total = sum(len(self._read_set(name)) for name in names)
            for name in names:
                found = translate_set(translator, self._read_set(name))
                text = "".join(f"{line}\n" for line in found)
                (directory / f"{name}.txt").write_bytes(text.encode())
                done += len(found)
                self.progress("translating held-out text", done, total)
            return {"sentences": total}

        make_stage(self.run / "before", make)

    def _read_before(self, name: str) -> MeasuredSet:
        lines = (self.run / "before" / f"{name}.txt").read_bytes().decode().split("\n")[:-1]
        return MeasuredSet(self._read_set(name), lines)

    def _translate_general(self, counts: dict[str, Any]) -> None:
        """Let the model translate general text that came without translations."""
        if counts.get("translated", True) or (self.run / "data").exists():
            return
        translator: Translator | None = None

        def make(window: list[str]) -> str:
            nonlocal translator
            if translator is None:
                translator = load(self.plan.model, device=self._device())
            found = translator.translate(window, beam=1, raw=True)
            return "".join(f"{one.text}\n" for one in found)

        place = self.run / "translated"
        remove_leftovers(place)
        sources = (pair.source for pair in open_parallel_corpus([self._set_file("general")]))
        fill_windows(
            *(place, sources, counts["general"], _WINDOW, make),
            progress=self.progress,
            activity="translating general text",
        )

    def _tell_general(self, counts: dict[str, Any]) -> None:
        """Say what protects the model from forgetting."""
        if "general" not in counts:
            said = "no --replay: no general text is learned beside yours"
            if self.plan.config is None:
                said += "; instead the model goes no further from the first one than it needs to"
            self.tell(said)
            return
        whose = "with their translations" if counts["translated"] else "translated by the model"
        self.tell(f"general text: {counted(counts['general'], 'sentence')} {whose}")

    # --- data/ ---

    def _prepare(self, counts: dict[str, Any]) -> Prepared:
        """Prepare pairs and general text as one corpus, or open the one that was given."""
        if counts["prepared"]:
            return Prepared.open(self.plan.files[0])
        place = self.run / "data"
        if (place / "report.json").exists():
            return Prepared.open(place)
        first = open_model(self.plan.model)
        config = self._data_config(first).updated({"data": {"drop_duplicates": False}})
        parts: list[Corpus] = [open_parallel_corpus([self._set_file("domain")])] * counts["copies"]
        if "general" in counts:
            file = self._set_file("general")
            general: Corpus = open_parallel_corpus([file])
            if not counts["translated"]:
                general = _Translated(file, self.run / "translated")
            parts += [general] * counts["general copies"]
        prepared = prepare(
            ConcatenatedCorpus(parts),
            place,
            config,
            valid=open_parallel_corpus([self._set_file(CHOICE)]),
            tokenizer=first.tokenizer,
            progress=self.progress,
            replace=True,
        )
        shutil.rmtree(self.run / "translated", ignore_errors=True)
        if dropped := prepared.report.read - prepared.report.kept:
            share = f"{dropped:,} of {prepared.report.read:,}"
            reasons = ", ".join(f"{k}: {n:,}" for k, n in prepared.report.dropped.items())
            self.tell(f"{share} pairs, repeated ones counted, are not learned from ({reasons})")
        return prepared

    # --- the run ---

    def _train(self, data: Prepared, counts: dict[str, Any]) -> Outcome | None:
        """Train, or continue to; return None if training had ended before."""
        run, plan = self.run, self.plan
        if (run / "model").exists():
            return None
        if (run / "config.toml").exists():
            return training_run.resume(run, quiet=self.quiet)
        first = open_model(plan.model)
        if first.has_only_int8:
            self.tell(
                f"{first.path}: has int8 weights alone; training begins with them as they were "
                f"rounded, and dragoman quantize {run} rounds the result"
            )
        config = self._make_config(first, data, counts)
        passes = plan.epochs or count_passes(counts["pairs"], counts["device"])
        if plan.config is None and plan.epochs is None:
            own = "steps" not in parse_assignments(plan.assignments).get("training", {})
            said = f"{passes:g} passes over " if own else ""
            self.tell(
                f"{said}{counted(counts['pairs'], 'pair')}: "
                f"{counted(config.training.steps, 'step')} of "
                f"{config.training.tokens:,} positions"
            )
        return training_run.train(
            *(config, data.path),
            run=run,
            start_from=plan.model,
            assignments=plan.assignments,
            quiet=self.quiet,
        )

    def _make_config(self, first: LoadedModel, data: Prepared, counts: dict[str, Any]) -> Config:
        """Return the config to train with."""
        plan = self.plan
        config = self._data_config(first)
        changed = parse_assignments(plan.assignments).get("training", {})
        if plan.config is None:
            pieces = data.train.meta.target_pieces // counts["copies"]
            model = first.config.updated({"data": {"languages": list(plan.languages)}})
            config = make_schedule(model, pieces, counts["device"]).overridden(plan.assignments)
        if plan.config is None or plan.epochs is not None:
            passes = plan.epochs or count_passes(counts["pairs"], counts["device"])
            steps = self._count_steps(config, data, counts, passes)
            if plan.config is None:
                steps = changed.get("steps", steps)
                return set_steps(config, steps, set(changed))
            return config.updated({"training": {"steps": steps}})
        return config

    def _count_steps(
        self, config: Config, data: Prepared, counts: dict[str, Any], passes: float
    ) -> int:
        """Return how many steps so many passes over the user's pairs take."""
        each = make_batches(config, data).batches_an_epoch
        copies: int = counts["copies"]
        return max(1, round(each * passes / copies))

    # --- model/ ---

    def _choose(self) -> list[Judgement]:
        """Choose the weights of the model, and write it."""
        run, plan = self.run, self.plan
        if (run / "model").exists():
            card = open_model(run / "model").card
            return [Judgement(**one) for one in card["adaptation"]["candidates"]]
        first, trained = load_model(plan.model), load_model(run / "trained")
        if plan.config is None:
            general = None
            if self._set_file(f"general-{CHOICE}").exists():
                general = self._read_before(f"general-{CHOICE}")
            judged = choose_share(
                first,
                trained,
                self._read_before(CHOICE),
                general,
                run=run,
                device=self._device(),
                tell=self.tell,
            )
        else:  # with a preset of the user's the weights are what it makes of them
            judged = [Judgement(1.0, 0.0, None)]
        share = judged[0].share
        weights = get_weights(first.model)
        if share:
            weights = mix_weights(weights, get_weights(trained.model), share)
        card = {key: value for key, value in trained.card.items() if key != "format"}
        if 0 < share < 1:
            card["made_of"] += f", {100 * share:.0f}%, and the first model"
        elif not share:
            card["made_of"] = "the first model: nothing that was learned made it better"
        if share != 1:
            card.pop("validation", None)  # of the weights as they were trained
        if "license" in first.card:
            card["license"] = first.card["license"]
        card["adaptation"] = {
            "from": first.path.name,
            "candidates": [one.to_json() for one in judged],
        }
        save_model(run / "model", weights, trained.config, trained.tokenizer, card)
        return judged

    # --- report.json ---

    def _report(self, counts: dict[str, Any], judged: list[Judgement]) -> None:
        """Translate the held-out text once more, compare, and write the report."""
        run = self.run
        model = open_model(run / "model")
        translator = load(run / "model", device=self._device())
        language = model.config.data.target_language

        def measure(name: str) -> dict[str, Any] | None:
            if not self._set_file(name).exists():
                return None
            measured = self._read_before(name)
            return compare_set(measured, translate_set(translator, measured.texts), language)

        report: dict[str, Any] = {
            "from": str(self.plan.model),
            "pairs": counts["pairs"],
            "general pairs": counts.get("general", 0),
            "general translated by the model": not counts.get("translated", True),
            "steps": model.card["steps"],
            "training_minutes": model.card["training_minutes"],
            "share": judged[0].share,
            "candidates": [one.to_json() for one in judged],
            "domain": measure(MEASURED),
            "general": measure(f"general-{MEASURED}"),
            "tests": {name: measure(f"test-{name}") for name in counts["tests"]},
        }
        report["findings"] = find_faults(report)
        text = json.dumps(report, indent=2, ensure_ascii=False)
        atomic_write(run / REPORT_FILE, text + "\n")

    def _finished(self) -> Outcome:
        """Show the report, and return how the run ended."""
        run = self.run
        shutil.rmtree(run / "trained", ignore_errors=True)
        try:
            report = json.loads((run / REPORT_FILE).read_text(encoding="utf-8"))
            lines = write_lines(report)
        except (OSError, ValueError, KeyError, TypeError):
            raise TrainingError(
                f"{run / REPORT_FILE}: cannot be read; remove it, and resume to make it again"
            ) from None
        if not self.quiet:
            for line in lines:
                self.tell(line)
        else:  # what a user must know is a warning
            for line in report["findings"]:
                if line.split(":")[0].isupper():
                    self.tell(line)
        card = open_model(run / "model").card.get("validation", {})
        return Outcome(
            run=run,
            model=run / "model",
            step=report["steps"],
            seconds=60 * report["training_minutes"],
            score=card.get("greedy BLEU"),
            perplexity=card.get("perplexity"),
            signal=None,
            report=report,
        )
