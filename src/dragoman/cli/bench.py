"""The commands that measure how fast this machine trains and translates."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.console import print_message, print_result, read_config, read_lines
from dragoman.cli.options import Json, Model, Preset, Set
from dragoman.errors import ConfigError, DataError, ModelError

if TYPE_CHECKING:
    from dragoman.bench.translation.benchmark import Measurement
    from dragoman.bench.translation.systems import System
    from dragoman.model_directory import LoadedModel


def bench_train(
    preset: Preset = "base",
    set_: Set = None,
    against: Annotated[
        bool, typer.Option("--against", help="Compare with Marian and nn.Transformer.")
    ] = False,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of a round.")] = None,
    as_json: Json = False,
) -> None:
    """Time training steps on made-up sentences.

    Speed, share of what the device can do, and where the time goes; docs/bench.md.
    """
    config = read_config(preset, set_, None, [])
    from dragoman.bench.training.benchmark import measure

    report = measure(config, preset, steps=steps, against=against, print_message=print_message)
    print_result(report.to_dict() if as_json else "\n".join(report.lines()))


def bench_translate(
    model: Model,
    source: Annotated[Path, typer.Option(help="Sentences to translate, one a line.")],
    reference: Annotated[Path | None, typer.Option(help="Their translations, for BLEU.")] = None,
    against: Annotated[
        str, typer.Option(metavar="NAMES", help="ctranslate2, ctranslate2-float32, huggingface.")
    ] = "",
    beam: Annotated[
        list[int] | None, typer.Option(min=1, help="May be given again; default: 1 and 4.")
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, help="Only so many, evenly from all.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Of every system, in turn.")] = 3,
    alone: Annotated[
        int, typer.Option(min=0, help="Sentences translated one by one, for latency.")
    ] = 50,
    threads: Annotated[int | None, typer.Option(min=1, help="Default: all cores.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep converted models here; default: they are removed.")
    ] = None,
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="With the model's shortlist too, and without.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Time translation on a CPU, in int8 and float32, and others with the same model.

    Speed, latency, memory, time to load, size and BLEU of each; docs/bench.md.
    """
    from dragoman.bench.translation.benchmark import (
        BUSY_LOAD,
        BenchmarkTask,
        load_average,
        measure,
        processor,
    )
    from dragoman.bench.translation.report import TranslationReport
    from dragoman.bench.translation.systems import DRAGOMAN_SYSTEMS, parse_systems, with_shortlists
    from dragoman.system.cores import available_cores

    systems = [*DRAGOMAN_SYSTEMS, *parse_systems(against)]
    available = available_cores()
    if threads is not None and threads > available:
        raise ConfigError(f"--threads {threads}: there are {available} cores")
    load = load_average()
    if load is not None and load > BUSY_LOAD * available:
        print_message(
            f"the load average is {load:.1f} on {available} cores: other processes are running, "
            "and times will suffer; CPU ms/token suffers less"
        )
    from dragoman.inference.cpu.shortlist import read_shortlist
    from dragoman.interop.export import PACKAGES, check_exportable, require_packages
    from dragoman.model_directory import load_model

    loaded = load_model(model)
    if loaded.config.data.task != "translation":
        raise ModelError(f"{model}: a parser; this benchmark is of translation")
    for system in systems:
        if system.export is not None:
            check_exportable(loaded.config, system.export)
            require_packages(*PACKAGES[system.export])
    if shortlist:
        read_shortlist(loaded)  # refused now, if there is none
        systems = with_shortlists(systems)
    text = _Text(loaded, source, reference, sentences)
    with _conversion_directory(out) as place:
        converted = list(_convert_models(loaded, systems, place))
        search = loaded.config.search
        task = BenchmarkTask(
            model=loaded.path,
            sentences=text.sources,
            search={"length_penalty": search.length_penalty, "max_extra": search.max_extra},
            count_tokens=text.tokens,
            threads=threads or available,
            beams=tuple(dict.fromkeys(beam or (1, 4))),
            rounds=rounds,
            single_sentences=alone,
        )
        measured = measure(task, converted, print_message=print_message)
    text.score(measured)
    report = TranslationReport(
        model=str(model),
        parameters=sum(p.numel() for p in loaded.model.parameters()),
        source=str(source),
        sentences=len(text.sources),
        source_tokens=text.tokens(text.sources),
        left_out=text.left_out,
        processor=processor(),
        threads=task.threads,
        rounds=rounds,
        load_average=load,
        others=measured.others,
        versions=_versions(systems),
        results=measured.results,
    )
    print_result(report.to_dict() if as_json else "\n".join(report.lines()))


class _Text:
    """Hold the sentences that every system can translate, and their references."""

    def __init__(
        self, loaded: LoadedModel, source: Path, reference: Path | None, count: int | None
    ) -> None:
        from dragoman.bench import sample_evenly

        self._tokenizer, self._languages = loaded.tokenizer, loaded.config.data.languages
        lines = list(read_lines([source]))
        answers = list(read_lines([reference])) if reference is not None else None
        if answers is not None and len(answers) != len(lines):
            raise DataError(
                f"{source} has {len(lines)} lines and {reference} {len(answers)}; "
                "line n of each must belong together"
            )
        limit = loaded.config.data.max_length
        lengths = map(len, self._tokenizer.encode_batch(lines))
        fit = [i for i, length in enumerate(lengths) if 0 < length <= limit]
        if not fit:
            raise DataError(f"{source}: no line has 1 to {limit} pieces; there is nothing to time")
        self.left_out = len(lines) - len(fit)
        taken = sample_evenly(fit, count or len(fit))
        self.sources = [lines[i] for i in taken]
        self._references = [answers[i] for i in taken] if answers is not None else None

    def tokens(self, texts: Iterable[str]) -> int:
        """Count the pieces of texts, and an end for each."""
        return sum(len(ids) + 1 for ids in self._tokenizer.encode_batch(list(texts)))

    def score(self, measured: Measurement) -> None:
        """Give every speed the BLEU of its translations, if there are references."""
        if self._references is None:
            return
        from dragoman.evaluation.metrics import bleu

        language = self._languages[1] if self._languages else None
        for result in measured.results:
            for speed in result.speeds:
                texts = measured.translations.get((result.name, speed.beam))
                if texts is not None:
                    speed.bleu = bleu(texts, self._references, language=language)


@contextmanager
def _conversion_directory(out: Path | None) -> Iterator[Path]:
    """Give the directory of converted models, which is removed at the end unless it was named."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as temporary:
        print_message(
            f"converted models are in {temporary} until the end; keep them with --out DIR"
        )
        yield Path(temporary)


def _convert_models(
    loaded: LoadedModel, systems: list[System], place: Path
) -> Iterator[tuple[System, Path]]:
    """Yield the directory of each system's model; what was converted before is used again."""
    from dragoman.system.atomic_files import atomic_write

    made_of = _fingerprint(loaded.path)
    for system in systems:
        convert = _converter(loaded, system)
        if convert is None:
            yield system, loaded.path
            continue
        name = f"{system.worker}-{system.precision}"
        if system.export is not None and system.shortlist:
            name += "-shortlist"
        directory, stamp = place / name, place / f"{name}.json"
        if directory.exists() and stamp.exists():
            if json.loads(stamp.read_text(encoding="utf-8")) != made_of:
                raise DataError(f"{directory}: made of another model; choose another --out")
            print_message(f"{system.name}: converted before, in {directory}")
        else:
            print_message(f"{system.name}: converted{convert(directory)}")
            atomic_write(stamp, json.dumps(made_of) + "\n")
        yield system, directory


def _converter(loaded: LoadedModel, system: System) -> Callable[[Path], str] | None:
    """Return a function that converts the model for a system, or None if nothing is to convert."""
    from dragoman.bench.translation.systems import write_vocabulary_map
    from dragoman.inference.cpu import INT8_FILE, why_no_cpu_engine, write_int8_file
    from dragoman.inference.cpu.shortlist import read_shortlist
    from dragoman.interop.export import export
    from dragoman.model_directory import load_model
    from dragoman.system.atomic_files import atomic_directory

    options = {"quantization": system.precision} if system.export == "ctranslate2" else {}

    def exported(directory: Path) -> str:
        assert system.export is not None
        done = export(loaded, directory, system.export, **options)
        if system.shortlist:
            write_vocabulary_map(directory, read_shortlist(loaded))
        return f"; {done}"

    def rounded(directory: Path) -> str:
        """Quantise a copy, since a benchmark leaves nothing in the model it is given."""
        with atomic_directory(directory) as temporary:
            for file in loaded.path.iterdir():
                if file.is_file():
                    shutil.copy(file, temporary)
            write_int8_file(load_model(temporary))
        return ""

    if system.export is not None:
        return exported
    there = (loaded.path / INT8_FILE).exists() or why_no_cpu_engine(loaded.config.model)
    return rounded if system.precision == "int8" and not there else None


def _fingerprint(directory: Path) -> str:
    """Return a hash that is equal for models with the same weights, pieces and shortlist."""
    from dragoman.inference.cpu.shortlist import SHORTLIST_FILE

    digest = hashlib.sha256()
    for name in ("weights.safetensors", "tokenizer.model", "config.toml", SHORTLIST_FILE):
        if name != SHORTLIST_FILE or (directory / name).exists():
            digest.update((directory / name).read_bytes())
    return digest.hexdigest()


def _versions(systems: list[System]) -> dict[str, str]:
    from importlib.metadata import version

    from dragoman import __version__
    from dragoman.interop.export import PACKAGES

    packages = [name for system in systems if system.export for name in PACKAGES[system.export]]
    return {"dragoman": __version__} | {name: version(name) for name in ("torch", *packages)}
