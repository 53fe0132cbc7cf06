"""The demo trains a translator or a parser on the embedded phrasebook in minutes, and tries it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from dragoman.config import load_preset
from dragoman.errors import TrainingError
from dragoman.evaluation.bracket_f1 import evaluate_trees
from dragoman.evaluation.evaluate import evaluate
from dragoman.inference import Translator, load
from dragoman.inference.parser import load_parser
from dragoman.inference.source_attention import last_layer_attention, source_attention
from dragoman.inspection.attention import draw_attention
from dragoman.inspection.plotting import has_missing_glyphs
from dragoman.inspection.sentence_pair import piece_labels
from dragoman.phrasebook import Example, generate
from dragoman.system.atomic_files import atomic_write
from dragoman.text.languages import language_name
from dragoman.training.run import resume, train
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.drawing import draw_tree, draw_tree_svg
from dragoman.trees.tree import leaves

SPLIT_SIZES: Final = {"train": 60_000, "valid": 300, "test": 1000}
TRANSLATIONS_SHOWN: Final = 6


def run_demo(directory: Path, language: str = "de", steps: int | None = None) -> None:
    """Train on the phrasebook, score on its compositional test split, translate, draw attention."""
    files = {split: _write_pairs(directory, language, split) for split in SPLIT_SIZES}
    _say_sizes(f"English-{language_name(language)} pairs")
    run = directory / "run"
    model = _train("phrasebook", files["train"], files["valid"], run, steps)
    translator = load(model)
    test = _examples(language, "test")
    found = evaluate(translator, [e.target for e in test], [e.source for e in test])
    _say(str(found))
    _show_translations(test, found.hypotheses)
    _draw_attention(translator, _choose_example(test), directory / "attention.png")
    _say(
        f"Try your own:  echo '{test[0].source}' | {_program()} translate {model}\n"
        f"See the curves: {_program()} plot {run}"
    )


def run_parsing_demo(directory: Path, steps: int | None = None) -> None:
    """Train on the phrasebook's English trees, score on its compositional test split, draw one."""
    files = {split: _write_trees(directory, split) for split in SPLIT_SIZES}
    _say_sizes("English trees")
    model = _train("phrasebook-trees", files["train"], files["valid"], directory / "run", steps)
    gold = [parse_tree(example.source_tree) for example in _examples("de", "test")]
    found, scores = evaluate_trees(load_parser(model), gold)
    _say(str(scores))
    tree = max(
        (tree for tree in found if tree is not None and len(list(leaves(tree))) <= 14),
        key=lambda tree: len(list(leaves(tree))),
    )
    picture = directory / "tree.svg"
    atomic_write(picture, draw_tree_svg(tree))
    _say(f"\n{draw_tree(tree)}\n\n{picture}")
    words = " ".join(leaf.word for leaf in leaves(tree))
    _say(f"Try your own:  echo '{words}' | {_program()} parse {model} --pretty")


def _train(preset: str, files: list[Path], valid: list[Path], run: Path, steps: int | None) -> Path:
    """Train in a run directory, or continue there, and return the model."""
    if (run / "run.json").exists():
        _say(f"{run} already exists and is continued; remove it to start again.")
        outcome = resume(run)
    else:
        assignments = [] if steps is None else [f"training.steps={steps}"]
        config = load_preset(preset).overridden(assignments)
        outcome = train(config, *files, valid=valid, run=run)
    if outcome.signal is not None:
        raise SystemExit(128 + outcome.signal)
    if outcome.model is None:
        raise TrainingError("the demo trains in one process; run it without torchrun")
    _say(f"Trained in {outcome.seconds / 60:.1f} minutes. Now the test sentences, with beam 4:")
    return outcome.model


def _examples(language: str, split: str) -> list[Example]:
    return list(generate(language, split, SPLIT_SIZES[split]))


def _write_pairs(directory: Path, language: str, split: str) -> list[Path]:
    """Write a split of the phrasebook as the two aligned files that any user would have."""
    examples = _examples(language, split)
    paths = [directory / f"{split}.{code}" for code in ("en", language)]
    atomic_write(paths[0], "".join(f"{e.source}\n" for e in examples))
    atomic_write(paths[1], "".join(f"{e.target}\n" for e in examples))
    return paths


def _write_trees(directory: Path, split: str) -> list[Path]:
    """Write the English trees of a split, one a line."""
    path = directory / f"{split}.trees"
    atomic_write(path, "".join(f"{example.source_tree}\n" for example in _examples("de", split)))
    return [path]


def _show_translations(test: list[Example], hypotheses: list[str]) -> None:
    """Print some translations, long sentences first, with the reference where it differs."""
    order = sorted(range(len(test)), key=lambda i: -len(test[i].source.split()))
    for i in order[:: max(1, len(order) // TRANSLATIONS_SHOWN)][:TRANSLATIONS_SHOWN]:
        _say(f"  {test[i].source}\n  → {hypotheses[i]}")
        if hypotheses[i] != test[i].target:
            _say(f"    (expected: {test[i].target})")


def _choose_example(test: list[Example]) -> Example:
    """Return a sentence short enough for a picture whose words change places in translation."""
    return max(
        (e for e in test if 8 <= len(e.source.split()) <= 11),
        key=lambda e: sum(abs(i - j) for i, j in e.alignment),
        default=test[0],
    )


def _draw_attention(translator: Translator, example: Example, path: Path) -> None:
    tokenizer = translator.tokenizer
    source = tokenizer.encode(example.source)
    target = tokenizer.encode(translator.translate(example.source, raw=True).text)
    (attention,) = source_attention(translator.model, [source], [target])
    draw_attention(
        last_layer_attention(attention).numpy(),
        piece_labels(tokenizer, source),
        piece_labels(tokenizer, target),
        path,
        title="Where the decoder looks to say each word (last layer)",
    )
    _say(f"Attention of “{example.source}”: {path}")
    if has_missing_glyphs(example.target):
        _say("  (no font here has its letters; install one, such as Noto Sans CJK, and run again)")


def _program() -> str:
    """Return how the user called this program."""
    return sys.argv[0] if Path(sys.argv[0]).name == "dragoman" else "dragoman"


def _say_sizes(what: str) -> None:
    _say(
        f"The phrasebook: {SPLIT_SIZES['train']:,} {what} to train on, {SPLIT_SIZES['test']:,} to "
        "test on.\n"
        "Every test sentence combines words or structures that never meet in training."
    )


def _say(message: str) -> None:
    print(message, flush=True)
