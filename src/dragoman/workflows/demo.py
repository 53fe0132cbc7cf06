"""The main job in minutes: a translator trained on the embedded phrasebook, and tried."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman.config import load_preset
from dragoman.errors import TrainingError
from dragoman.evaluation.bracket_f1 import evaluate_trees
from dragoman.evaluation.evaluate import evaluate
from dragoman.inference import Translator, load
from dragoman.inference.alignment import predicting, source_attention
from dragoman.inference.parser import load_parser
from dragoman.inspection.attention_plot import draw_attention
from dragoman.inspection.plotting import unreadable
from dragoman.phrasebook import Example, generate
from dragoman.system.atomic_files import atomic_write
from dragoman.training.run import resume, train
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.drawing import tree_svg, tree_text
from dragoman.trees.tree import leaves

__all__ = [
    "run_demo",
    "run_parsing_demo",
    "trained",
]


TRAIN, VALID, TEST = 60_000, 300, 1000
SHOWN = 6
LANGUAGES = {"de": "German", "ko": "Korean"}


def run_demo(directory: Path, language: str = "de", steps: int | None = None) -> None:
    """Train on the phrasebook, score on its compositional test split, translate, draw."""
    splits = _write_splits(directory, language)
    name = LANGUAGES[language]
    _say(
        f"The phrasebook: {TRAIN:,} English-{name} pairs to train on, {TEST:,} to test on.\n"
        "Every test sentence combines words or structures that never meet in training."
    )
    run = directory / "run"
    model = trained("phrasebook", splits["train"], splits["valid"], run, steps)
    translator = load(model)
    test = list(generate(language, "test", TEST))
    found = evaluate(translator, [e.target for e in test], [e.source for e in test])
    _say(str(found))
    _show(test, found.hypotheses)
    _draw(translator, _interesting(test), directory / "attention.png")
    program = sys.argv[0] if Path(sys.argv[0]).name == "dragoman" else "dragoman"
    _say(
        f"Try your own:  echo '{test[0].source}' | {program} translate {model}\n"
        f"See the curves: {program} plot {run}"
    )


def trained(
    preset: str, files: list[Path], valid: list[Path], run: Path, steps: int | None
) -> Path:
    """The model of a run, which is begun, continued or done already."""
    if (run / "run.json").exists():
        _say(f"{run} is there already and is continued; remove it to start anew.")
        outcome = resume(run)
    else:
        assignments = [] if steps is None else [f"training.steps={steps}"]
        config = load_preset(preset).overridden(assignments)
        outcome = train(config, *files, valid=valid, run=run)
    if outcome.signal is not None:
        raise SystemExit(128 + outcome.signal)
    if outcome.model is None:
        raise TrainingError("the demo trains in one process; leave torchrun out")
    _say(f"Trained in {outcome.seconds / 60:.1f} minutes. Now the test sentences, with beam 4:")
    return outcome.model


def _write_splits(directory: Path, language: str) -> dict[str, list[Path]]:
    """The phrasebook as the two aligned files any user would have."""
    splits: dict[str, list[Path]] = {}
    for split, count in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        examples = list(generate(language, split, count))
        paths = [directory / f"{split}.{code}" for code in ("en", language)]
        atomic_write(paths[0], "".join(f"{e.source}\n" for e in examples))
        atomic_write(paths[1], "".join(f"{e.target}\n" for e in examples))
        splits[split] = paths
    return splits


def _show(test: list[Example], hypotheses: list[str]) -> None:
    """Some translations, long sentences first, with what should have come where it differs."""
    order = sorted(range(len(test)), key=lambda i: -len(test[i].source.split()))
    for i in order[:: max(1, len(order) // SHOWN)][:SHOWN]:
        _say(f"  {test[i].source}\n  → {hypotheses[i]}")
        if hypotheses[i] != test[i].target:
            _say(f"    (expected: {test[i].target})")


def _interesting(test: list[Example]) -> Example:
    """A sentence of a length that reads well in a picture, with words that change places."""
    return max(
        (e for e in test if 8 <= len(e.source.split()) <= 11),
        key=lambda e: sum(abs(i - j) for i, j in e.alignment),
        default=test[0],
    )


def _draw(translator: Translator, example: Example, path: Path) -> None:
    source = translator.tokenizer.encode(example.source)
    target = translator.tokenizer.encode(translator.translate(example.source).text)
    (attention,) = source_attention(translator.model, [source], [target])
    draw_attention(
        predicting(attention).numpy(),
        _readable(translator, source),
        _readable(translator, target),
        path,
        title="Where the decoder looks to say each word (last layer)",
    )
    _say(f"Attention of “{example.source}”: {path}")
    if unreadable(example.target):
        _say("  (no font here has its letters; install one, such as Noto Sans CJK, and run again)")


def _readable(translator: Translator, ids: list[int]) -> list[str]:
    return [piece.replace("▁", " ").strip() or "␣" for piece in translator.tokenizer.pieces(ids)]


def _say(message: str) -> None:
    print(message, flush=True)


# PART demo_parsing: Parsing in minutes: a parser trained on the phrasebook's trees, and tried.


TRAIN, VALID, TEST = 60_000, 300, 1000


def run_parsing_demo(directory: Path, steps: int | None = None) -> None:
    """Train on the phrasebook's English trees, score on its compositional test split, draw one."""
    files = _write_tree_splits(directory)
    print(
        f"The phrasebook: {TRAIN:,} English trees to train on, {TEST:,} to test on.\n"
        "Every test sentence combines words or structures that never meet in training.",
        flush=True,
    )
    run = directory / "run"
    model = trained("phrasebook-trees", [files["train"]], [files["valid"]], run, steps)
    parser = load_parser(model)
    gold = [parse_tree(e.source_tree) for e in generate("de", "test", TEST)]
    found, scores = evaluate_trees(parser, gold)
    print(scores)
    example = max(
        (tree for tree in found if tree is not None and len(list(leaves(tree))) <= 14),
        key=lambda tree: len(list(leaves(tree))),
    )
    picture = directory / "tree.svg"
    atomic_write(picture, tree_svg(example))
    print(f"\n{tree_text(example)}\n\n{picture}")
    program = sys.argv[0] if Path(sys.argv[0]).name == "dragoman" else "dragoman"
    words = " ".join(leaf.word for leaf in leaves(example))
    print(f"Try your own:  echo '{words}' | {program} parse {model} --pretty")


def _write_tree_splits(directory: Path) -> dict[str, Path]:
    files = {}
    for split, count in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        files[split] = directory / f"{split}.trees"
        trees = (f"{example.source_tree}\n" for example in generate("de", split, count))
        atomic_write(files[split], "".join(trees))
    return files
