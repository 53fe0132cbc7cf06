"""Train the parser of this directory, from CRAFT's and GUM's trees.

    python models/train_parser.py OUT --data DATA --until data
    python models/train_parser.py OUT

DATA holds the corpora as their README describes, and is needed only for the first stage. Each stage
is a command of Dragoman or some files of text, and is not repeated if its result is there:

    trees        the cleaned trees of both treebanks, variants of them, and raw text
    data         the trees, prepared; GUM's twice
    parser       learns from them
    selftrained  learns from them and from the first parser's trees of raw text (--selftrain)
    model        the last parser in int8

``--until`` ends after a stage: the first two need no GPU, and the others no DATA.
"""

from __future__ import annotations

import argparse
import lzma
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dragoman.data.readers.treebank import Treebank
from dragoman.trees.bracketing import parse_tree, write_tree
from dragoman.trees.tree import Leaf, Node, Tree

HERE = Path(__file__).resolve().parent
PRESET = HERE / "parser.toml"
TREEBANKS = {"craft": 1, "gum": 2}
"""How often the trees of each treebank are given: most of what people parse is no biology."""
VARIED = 2
"""Of so many of GUM's trees one is also given without its final mark, or in letters of one case.
CRAFT's are not: what is typed so is no heading or caption of an article."""
TEXTS = {"tatoeba/train.en-de.en.xz": 60_000, "europarl/train1.en-de.en.xz": 40_000}
"""Raw text to learn from as well, and how many sentences of it."""
STAGES = ("trees", "data", "parser", "model")


def dragoman(*arguments: object) -> None:
    """Run a command of Dragoman, and stop if it fails."""
    words = [str(argument) for argument in arguments]
    begin = time.monotonic()
    subprocess.run([sys.executable, "-m", "dragoman", *words], check=True)
    print(f"{time.monotonic() - begin:.0f} s: dragoman {words[0]}", flush=True)


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a compressed file that appears when it is complete."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with lzma.open(unfinished, "wt", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
    unfinished.replace(path)


def trees_path(out: Path, name: str) -> Path:
    """Return the path of a file of the first stage."""
    return out / "trees" / f"{name}.xz"


# --- trees ---


def read_treebank(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each sentence of a treebank and its tree, both on one line, cleaned."""
    for pair in Treebank(path).read():
        yield pair.source, pair.target


def change_words(tree: Tree, words: Iterator[str]) -> Tree | None:
    """Return a tree over other words, in order; a word that is "" goes with what held it alone."""
    if isinstance(tree, Leaf):
        word = next(words)
        return Leaf(tree.tag, word) if word else None
    children = tuple(
        changed for child in tree.children if (changed := change_words(child, words)) is not None
    )
    return Node(tree.label, children) if children else None


def vary(sentence: str, tree: str, chance: random.Random) -> str | None:
    """Return the tree as people may type its sentence: no final mark, or letters of one case."""
    words = sentence.split(" ")
    kind = chance.choice(["open", "open", "lower", "lower", "upper"])
    if words[-1] in (".", "?", "!") and (kind == "open" or chance.random() < 0.5):
        words[-1] = ""
    if kind != "open":
        words = [word.lower() if kind == "lower" else word.upper() for word in words]
    if words == sentence.split(" ") or not any(words):
        return None
    changed = change_words(parse_tree(tree), iter(words))
    return changed and write_tree(changed)


def read_text(path: Path, count: int) -> list[str]:
    """Return so many different sentences of a compressed file, drawn from all over it."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        found = sorted({line.strip() for line in lines if 3 <= len(line.split()) <= 45})
    random.Random(1).shuffle(found)
    return found[:count]


def make_trees(data: Path, out: Path) -> None:
    """Write the trees that are learned from, those that are scored on, and raw text."""
    (out / "trees").mkdir(parents=True, exist_ok=True)
    held_out: set[str] = set()
    for name in TREEBANKS:
        pairs = list(read_treebank(data / "trees" / f"{name}.dev.txt.xz"))
        held_out |= {sentence for sentence, _ in pairs}
        write(trees_path(out, f"{name}.dev.trees"), (tree for _, tree in pairs))
    chance = random.Random(1)
    varied: list[str] = []
    for name in TREEBANKS:
        pairs = list(read_treebank(data / "trees" / f"{name}.train.txt.xz"))
        pairs = [pair for pair in pairs if pair[0] not in held_out]
        write(trees_path(out, f"{name}.trees"), (tree for _, tree in pairs))
        print(f"{name}: {len(pairs):,} trees", flush=True)
        if name == "gum":
            drawn = chance.sample(pairs, len(pairs) // VARIED)
            changed = [vary(sentence, tree, chance) for sentence, tree in drawn]
            varied = [tree for tree in changed if tree is not None]
    write(trees_path(out, "varied.trees"), varied)
    texts = [text for file, count in TEXTS.items() for text in read_text(data / file, count)]
    chance.shuffle(texts)
    write(trees_path(out, "text.txt"), texts)
    print(f"{len(varied):,} trees are varied; {len(texts):,} sentences have none", flush=True)


def training_trees(out: Path) -> list[Path]:
    """Return the files that are learned from, each as often as it is given."""
    names = [name for name, times in TREEBANKS.items() for _ in range(times)]
    return [trees_path(out, f"{name}.trees") for name in (*names, "varied")]


# --- training ---


def options(name: str, values: Iterable[object]) -> list[object]:
    """Return an option repeated with each value."""
    return [word for value in values for word in (name, value)]


def prepare(out: Path, settings: Sequence[str]) -> None:
    """Learn the pieces and the actions, and encode the trees."""
    first, *others = training_trees(out)
    dragoman(
        *("prepare", first, *options("--add", others), "--task", "parsing"),
        *("--valid", trees_path(out, "gum.dev.trees"), "--preset", PRESET),
        *("--out", out / "data", *options("--set", settings)),
    )


def training_settings(steps: int, settings: Sequence[str]) -> list[object]:
    """Return the options of a run that is scored once, at its end."""
    known = [f"training.steps={steps}", f"training.validate_every={steps}"]
    known += ["training.validate_sentences=200", "training.checkpoint_every=100000"]
    return options("--set", [*known, "training.log_every=200", *settings])


def main() -> None:
    """Read the arguments and run the stages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, help="the corpora, for the first stage")
    parser.add_argument("--steps", type=int, default=14_000)
    parser.add_argument("--selftrain", action="store_true", help="learn from raw text, too")
    parser.add_argument("--sentences", type=int, default=100_000, help="of raw text to parse")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--until", choices=STAGES, default="model", help="end after this stage")
    given = parser.parse_args()
    out: Path = given.out
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    if not trees_path(out, "text.txt").exists():  # it is written last
        if given.data is None:
            raise SystemExit(f"{out} has no trees; --data names the corpora to take them from")
        make_trees(given.data, out)
    if given.until == "trees":
        return
    if not (out / "data").exists():
        prepare(out, given.set)
    if given.until == "data":
        return
    last = out / "parser"
    settings = training_settings(given.steps, given.set)
    if not (last / "model").exists():
        dragoman("train", out / "data", "--out", last, "--preset", PRESET, *settings)
    if given.until == "parser":
        return
    if given.selftrain:
        teacher, last = last, out / "selftrained" / "run"
        if not (last / "model").exists():
            dragoman(
                *("selftrain", teacher, "--out", out / "selftrained", "--preset", PRESET),
                *options("--trees", training_trees(out)),
                *("--valid", trees_path(out, "gum.dev.trees"), "--text"),
                *(trees_path(out, "text.txt"), "--limit", given.sentences, "--gold-weight", 2),
                *settings,
            )
    model = out / ("selftrained-model" if given.selftrain else "model")
    if not model.exists():
        dragoman("quantize", last, "--out", model)


if __name__ == "__main__":
    main()
