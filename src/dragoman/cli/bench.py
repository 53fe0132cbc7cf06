"""These commands measure how fast this machine trains and translates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.console import print_message, print_result, read_config
from dragoman.cli.options import Json, Model, Preset, Set
from dragoman.errors import ConfigError, ModelError
from dragoman.messages import counted


def bench_train(
    preset: Preset = "base",
    set_: Set = None,
    against: Annotated[
        bool, typer.Option("--against", help="Compare with Marian and nn.Transformer.")
    ] = False,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps in each round.")] = None,
    as_json: Json = False,
) -> None:
    """Time training steps on made-up sentences.

    It prints the speed, the share of what the device can do, and where the time goes; see
    docs/bench.md.
    """
    config = read_config(preset, set_, None, [])
    from dragoman.bench.training.benchmark import measure

    report = measure(config, preset, steps=steps, against=against, print_message=print_message)
    print_result(report.to_dict() if as_json else "\n".join(report.lines()))


def bench_translate(
    model: Model,
    source: Annotated[Path, typer.Option(help="Sentences to translate, one per line.")],
    reference: Annotated[Path | None, typer.Option(help="Their translations, for BLEU.")] = None,
    against: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="ctranslate2, ctranslate2-float32, huggingface, marian."
        ),
    ] = "",
    beam: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Hypotheses kept; can be repeated. Default: 1 and 4."),
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, help="Use only this many, spread evenly over the file.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds for each system, taken in turn.")] = 3,
    alone: Annotated[
        int, typer.Option(min=0, help="Sentences translated one by one, for latency.")
    ] = 50,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Number of threads; default: all cores.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep converted models here; by default they are removed.")
    ] = None,
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Measure with the model's shortlist, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Time translation on a CPU, in int8 and float32, and other systems with the same model.

    It prints the speed, latency, memory, time to load, size and BLEU of each; see docs/bench.md.
    """
    from dragoman.bench.translation.benchmark import (
        BUSY_LOAD,
        BenchmarkTask,
        load_average,
        measure,
        processor,
    )
    from dragoman.bench.translation.conversion import (
        BenchmarkText,
        conversion_directory,
        convert_models,
        package_versions,
    )
    from dragoman.bench.translation.report import TranslationReport
    from dragoman.bench.translation.systems import DRAGOMAN_SYSTEMS, parse_systems, with_shortlists
    from dragoman.system.cores import available_cores
    from dragoman.system.packages import describe_need, has_package, require_package

    systems = [*DRAGOMAN_SYSTEMS, *parse_systems(against)]
    available = available_cores()
    if threads is not None and threads > available:
        raise ConfigError(f"--threads {threads}: this machine has {counted(available, 'core')}")
    load = load_average()
    if load is not None and load > BUSY_LOAD * available:
        print_message(
            f"the load average is {load:.1f} on {counted(available, 'core')}: other processes are "
            "running, so times are less reliable; CPU ms/token is affected less"
        )
    from dragoman.inference.cpu.kernel_library import used_instruction_set, why_no_kernel
    from dragoman.inference.cpu.shortlist import read_shortlist
    from dragoman.interop.export import PACKAGES, check_exportable, require_packages
    from dragoman.model_directory import count_weights, open_model

    loaded = open_model(model)
    parameters = count_weights(loaded)  # and weights that do not fit are refused now
    if loaded.config.data.task != "translation":
        raise ModelError(f"{model} is a parser; this benchmark measures translation")
    if reference is not None:
        require_package("sacrebleu", "--reference")
    if loaded.has_only_int8:
        systems = [one for one in systems if one.export or one.precision == "int8"]
    elif not has_package("torch"):
        print_message(describe_need("torch", "only int8 is measured, since float32"))
        systems = [one for one in systems if one.export or one.precision == "int8"]
    for system in systems:
        if system.export is not None:
            loaded.require_whole_weights("comparing it with others")
            check_exportable(loaded.config, system.export, system.precision)
            require_packages(*PACKAGES[system.export])
    if shortlist:
        read_shortlist(loaded)  # refused now, if there is none
        systems = with_shortlists(systems)
    text = BenchmarkText(loaded, source, reference, sentences)
    with conversion_directory(out, print_message) as place:
        converted = list(convert_models(loaded, systems, place, print_message))
        search = loaded.config.search
        task = BenchmarkTask(
            model=loaded.path,
            sentences=text.sources,
            search={"length_penalty": search.length_penalty, "max_extra": search.max_extra},
            count_tokens=text.count_tokens,
            threads=threads or available,
            beams=tuple(dict.fromkeys(beam or (1, 4))),
            rounds=rounds,
            single_sentences=alone,
        )
        measured = measure(task, converted, print_message=print_message)
    text.score(measured)
    report = TranslationReport(
        model=str(model),
        parameters=parameters,
        source=str(source),
        sentences=len(text.sources),
        source_tokens=text.count_tokens(text.sources),
        left_out=text.left_out,
        processor=processor(),
        instruction_set=None if why_no_kernel() else used_instruction_set(),
        threads=task.threads,
        rounds=rounds,
        load_average=load,
        others=measured.others,
        versions=package_versions(systems),
        results=measured.results,
    )
    print_result(report.to_dict() if as_json else "\n".join(report.lines()))
