"""Score the parser of this directory and write its card: card.json for programs, README.md to read.

    python models/write_parser_card.py models/parse-en DATA

DATA holds the treebanks as their README describes. What the parser does badly is told by hand, in
models/limits/, and becomes a part of its README.md.
"""

from __future__ import annotations

import argparse
import lzma
import time
from pathlib import Path
from typing import Any

from sources import GROUPS, TREEBANKS
from write_card import table

from dragoman.data.readers.treebank import Treebank
from dragoman.evaluation.bracket_f1 import clean_trees, evaluate_trees
from dragoman.inference.parser import Parser, load_parser
from dragoman.model_directory import INT8_FILE, open_model, replace_card
from dragoman.system.cores import available_cores
from dragoman.trees.bracketing import write_tree
from dragoman.trees.tree import Tree

HERE = Path(__file__).resolve().parent
LICENSE = "CC BY 4.0"
BEAMS = (1, 4)
EXAMPLE = "The cat sat on the mat."
COLUMNS = ("F1", "precision", "recall", "complete match", "tags")


def read_trees(data: Path, treebank: str) -> list[Tree]:
    """Return the development trees of a treebank, cleaned."""
    path = data / "trees" / f"{treebank}.dev.txt.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return clean_trees(lines, str(path))


def score(parser: Parser, gold: list[Tree]) -> dict[str, Any]:
    """Return what a parser makes of the words of gold trees, greedily and with a beam."""
    found: dict[str, Any] = {"sentences": len(gold)}
    for beam in BEAMS:
        begin = time.monotonic()
        _, scores = evaluate_trees(parser, gold, beam=beam)
        speed = len(gold) / (time.monotonic() - begin)
        every = scores.all
        values = (
            every.f1,
            every.precision,
            every.recall,
            every.complete_match,
            every.tagging_accuracy,
        )
        for name, value in zip(COLUMNS, values, strict=True):
            found[f"{name}, beam {beam}"] = round(value, 2)
        found[f"sentences a second, beam {beam}"] = round(speed, 1)
        found["signature"] = scores.parameters.signature
    return found


def count_trees(data: Path) -> dict[str, int]:
    """Return how many trees of each treebank there are to learn from."""
    paths = {name: data / "trees" / f"{name}.train.txt.xz" for name in TREEBANKS}
    return {name: sum(1 for _ in Treebank(path).read()) for name, path in paths.items()}


def render(card: dict[str, Any], parser: Parser, directory: Path) -> str:
    """Return the card as a page for people."""
    name, sets = directory.name, card["test_sets"]
    [parse] = parser.parse([parser.split(EXAMPLE)])
    assert parse is not None
    model = parser.config.model
    rows = [
        [test, f"{one['sentences']:,}", "greedy" if beam == 1 else f"beam {beam}"]
        + [str(one[f"{column}, beam {beam}"]) for column in COLUMNS]
        for test, one in sets.items()
        for beam in BEAMS
    ]
    size = (directory / INT8_FILE).stat().st_size / 1e6
    speeds = sets["GUM dev"]
    data = [
        [TREEBANKS[key][0], TREEBANKS[key][1], f"{count:,} trees", *TREEBANKS[key][2:]]
        for key, count in card["data"].items()
    ]
    more = " --selftrain" * card["self_trained"]
    if card["self_trained"]:
        data += [
            [key, f"{GROUPS[key][0]}, parsed by a model", "", GROUPS[key][1], ""]
            for key in ("Tatoeba", "Europarl")
        ]
    parts = [
        "# English to constituency trees",
        f"```console\n$ dragoman parse {name} '{EXAMPLE}'\n{write_tree(parse.tree)}\n```",
        f"A Transformer of {card['parameters']:,} parameters ({model.encoder_layers}+"
        f"{model.decoder_layers} layers, d_model {model.d_model}) in int8, {size:.1f} MB. "
        f"License: {card['license']}.",
        "## Scores",
        table(["", "sentences", "search", *COLUMNS], rows),
        "Labelled brackets of the treebanks' own words, in percent, counted as EVALB does "
        f"(`{speeds['signature']}`). A beam of {parser.config.search.beam} is the default. On "
        f"{card['cores']} cores GUM's sentences took "
        + " and ".join(
            f"{1000 / speeds[f'sentences a second, beam {beam}']:.1f} ms each "
            + ("greedily" if beam == 1 else f"with a beam of {beam}")
            for beam in BEAMS
        )
        + ".",
        "## What it does badly",
        (HERE / f"limits/{name}.md").read_text(encoding="utf-8").strip(),
        "## What it learned from",
        table(["source", "what", "", "terms", "by"], data),
        "## How it was made",
        "```console\n"
        "$ python models/train_parser.py OUT --data DATA --until data\n"
        f"$ python models/train_parser.py OUT --steps {card['steps']}{more}\n"
        f"$ python models/write_parser_card.py models/{name} DATA"
        + " --self-trained" * card["self_trained"]
        + "\n```",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Read the arguments, score and write."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("model", type=Path)
    arguments.add_argument("data", type=Path)
    arguments.add_argument(
        "--self-trained", action="store_true", help="it was made with --selftrain"
    )
    given = arguments.parse_args()
    loaded = open_model(given.model)
    parser = load_parser(given.model, device="cpu")
    scores: dict[str, dict[str, Any]] = {}
    for key, (name, *_) in TREEBANKS.items():
        scores[f"{name} dev"] = score(parser, read_trees(given.data, key))
        print(name, scores[f"{name} dev"], flush=True)
    beam = parser.config.search.beam
    card = loaded.card | {
        "license": LICENSE,
        "language": "en",
        "scores": {f"{name} F1": one[f"F1, beam {beam}"] for name, one in scores.items()},
        "test_sets": scores,
        "cores": available_cores(),
        "data": count_trees(given.data),
        "self_trained": given.self_trained,
    }
    replace_card(loaded, card, render(card, parser, given.model))


if __name__ == "__main__":
    main()
