"""These commands score translators and parsers, and calibrate their confidence."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.console import (
    is_system,
    load_parser,
    load_system,
    load_translator,
    print_result,
    read_aligned_lines,
    read_lines,
    sampling_options,
)
from dragoman.cli.options import (
    Beam,
    Candidates,
    Device,
    Epsilon,
    Json,
    LengthPenalty,
    LengthReward,
    Mbr,
    Model,
    Rerank,
    RerankWeight,
    With,
)
from dragoman.errors import ConfigError


def evaluate(
    model: Annotated[
        Path | None, typer.Argument(help="A model or run directory; or use --hypotheses.")
    ] = None,
    with_: With = None,
    source: Annotated[
        Path | None, typer.Option(help="The source file, one sentence per line.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="The file of correct translations.")
    ] = None,
    hypotheses: Annotated[
        Path | None, typer.Option(help="Score this file instead of a model.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="A model or a file of translations to compare with.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the translations here.")] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    mbr: Mbr = None,
    rerank: Rerank = None,
    candidates: Candidates = None,
    rerank_weight: RerankWeight = None,
    length_reward: LengthReward = None,
    sample: Annotated[
        int, typer.Option(help="With --mbr or --rerank: draw so many candidates.")
    ] = 0,
    epsilon: Epsilon = 0.0,
    seed: Annotated[int, typer.Option(help="With --sample: the random seed.")] = 1,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    tokenize: Annotated[str | None, typer.Option(help="A tokeniser of sacreBLEU.")] = None,
    task: Annotated[
        str,
        typer.Option(
            "--task", metavar="TASK", help="translation, or parsing if the files are trees."
        ),
    ] = "translation",
    evalb: Annotated[
        Path | None, typer.Option(metavar="FILE", help="EVALB's parameter file, for trees.")
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score a translator, a parser, or translations.

    Translations get BLEU, chrF and TER with sacreBLEU's signatures, and perplexity; trees, with
    --task parsing, precision, recall and F1 of labelled brackets by EVALB's rules.
    """
    if reference is None:
        raise ConfigError("--reference is missing: name the file of correct translations, or trees")
    if (model is None) == (hypotheses is None):
        raise ConfigError("give either a model or --hypotheses with translations")
    if model is None and with_:
        raise ConfigError("--with adds models to an ensemble; name the first model, too")
    models = [model, *(with_ or ())] if model is not None else []
    if task == "parsing":
        given = {
            "source": source,
            "against": against,
            "tokenize": tokenize,
            "lowercase": lowercase,
            "mbr": mbr,
            "rerank": rerank,
            "sample": sample,
        }
        for name, value in given.items():
            if value:
                raise ConfigError(f"--{name} does not apply to trees; leave it out")
        _evaluate_parser(
            models,
            reference,
            hypotheses,
            out=out,
            beam=beam,
            length_penalty=length_penalty,
            parameters=evalb,
            device=device,
            as_json=as_json,
        )
        return
    if task != "translation":
        raise ConfigError(f"--task {task}: choose translation or parsing")
    if evalb is not None:
        raise ConfigError("--evalb applies to trees; add --task parsing")
    if source is None and (model is not None or (against is not None and is_system(against))):
        raise ConfigError("--source is missing: name the file to translate")
    if sample and mbr is None and rerank is None:
        raise ConfigError("--sample draws candidates; add --mbr or --rerank to choose among them")
    from dragoman.evaluation.evaluate import evaluate as measure
    from dragoman.system.atomic_files import atomic_write

    translator = load_translator(*models, device=device) if models else None
    options: dict[str, Any] = {"beam": beam, "length_penalty": length_penalty}
    choice = {
        "mbr": mbr,
        "rerank": None if rerank is None else load_translator(Path(rerank), device=device),
        "candidates": candidates,
        "rerank_weight": rerank_weight,
        "length_reward": length_reward,
    }
    options |= {name: value for name, value in choice.items() if value is not None}
    if sample and translator is not None:
        options["sampling"] = sampling_options(
            translator, samples=sample, epsilon=epsilon, seed=seed
        )
    found = measure(
        translator or list(read_lines([hypotheses or Path("-")])),
        list(read_lines([reference])),
        list(read_lines([source])) if source is not None else [],
        baseline=load_system(against, device),
        lowercase=lowercase,
        tokenize=tokenize,
        **options,
    )
    if out is not None:
        atomic_write(out, "".join(f"{line}\n" for line in found.hypotheses))
    print_result(found.to_json() if as_json else str(found))


def _evaluate_parser(
    models: list[Path],
    reference: Path,
    hypotheses: Path | None,
    *,
    out: Path | None,
    beam: int | None,
    length_penalty: float | None,
    parameters: Path | None,
    device: str,
    as_json: bool,
) -> None:
    """Score the brackets of a parser, or of trees in a file, by EVALB's rules."""
    from dragoman.evaluation.bracket_f1 import clean_trees, evaluate_trees
    from dragoman.system.atomic_files import atomic_write
    from dragoman.trees.bracketing import write_tree
    from dragoman.trees.evalb import PREDICTED_TAGS, read_parameters

    gold = clean_trees(read_lines([reference]), str(reference))
    rules = PREDICTED_TAGS if parameters is None else read_parameters(parameters)
    if models:
        system = load_parser(models, device)
        options = {"beam": beam, "length_penalty": length_penalty}
        trees, scores = evaluate_trees(system, gold, rules, **options)
    else:
        assert hypotheses is not None
        guesses = clean_trees(read_lines([hypotheses]), str(hypotheses))
        trees, scores = evaluate_trees(guesses, gold, rules)
    if out is not None:
        atomic_write(out, "".join(f"{write_tree(tree) if tree else ''}\n" for tree in trees))
    print_result(scores.to_json() if as_json else str(scores))


def calibrate(
    model: Model,
    source: Annotated[Path, typer.Option(help="Source lines that the model was not trained on.")],
    reference: Annotated[Path, typer.Option(help="Their correct translations, line by line.")],
    beam: Beam = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Learn what a model's probabilities mean, so that translations say how sure they are.

    What is learned goes into the model's directory. The errors that are printed were measured on
    sentences that it was not learned from.
    """
    from dragoman.inference.confidence import CALIBRATION_FILE, calibrate

    sources, references = read_aligned_lines(source, reference)
    translator = load_translator(model, device=device)
    translator.require_one_model("calibrating")
    found = list(translator.translate_lines(sources, raw=True, beam=beam))
    learned = calibrate(found, references)
    learned.save(translator.path)
    if as_json:
        print_result(asdict(learned))
        return
    print_result(
        f"{translator.path / CALIBRATION_FILE}: learned from {learned.sentence_count:,} sentences; "
        f"expected calibration error {learned.word_error:.3f} for words and "
        f"{learned.sentence_error:.3f} for sentences"
    )
