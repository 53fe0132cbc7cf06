"""Train benepar on the trees that Dragoman's parser learns from, and score it by the same rules.

benepar (Kitaev and Klein, 2018) has a self-attentive encoder, a score for every span and a chart
that finds the best tree. Its models on offer hold pretrained weights. Dragoman's start from
nothing, so here the peer does too: words as characters through an LSTM, eight layers, and all else
as its authors publish it for a parser without pretraining (`--use-chars-lstm --use-encoder
--num-layers 8 --batch-size 250 --learning-rate 0.0008`). The package has the model, its loss and
its decoder, which are used as they are, and no training loop, which is here.

    pip install --no-deps benepar==0.2.0 torch-struct==0.5
    pip install nltk transformers
    python benchmarks/parsing_benepar.py --train T --dev D --minutes 30 --out DIR

Same trees: Dragoman reads and cleans both files. Function tags and traces go; a training tree that
cannot be read is left out, and the dev set must be whole. Same task: the parser is given words
alone, and predicts tags and brackets; `--no-tags` trains it on brackets alone, as the authors do
without pretraining. Same score: `dragoman evaluate`'s, EVALB with the gold tree's tags saying which
words are punctuation.

The authors halve the learning rate when the dev score has stood still for five passes, which a
short run does not live to see. Here it rises over 160 steps as theirs does, then falls with the
clock along a cosine, to nothing at the end. What costs time and changes no figure is done for the
peer: trees become charts once and not in every pass, batches are made in the background. Products
are in TF32.

`--minutes` is all there is, from the start of the program to the last score. The best dev score is
kept: DIR/dev.trees has its trees, one a line, for `dragoman paper table4 --trees-of
benepar=DIR/dev.trees`, and DIR/benepar.json its figures.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nltk
import torch
from benepar import char_lstm, decode_chart, nkutil, parse_base, parse_chart, subbatching

from dragoman.data.readers.parallel import open_text
from dragoman.data.readers.treebank import open_treebank
from dragoman.evaluation.bracket_f1 import clean_trees, evaluate_trees
from dragoman.trees.bracketing import parse_tree, write_tree
from dragoman.trees.cleaning import add_root, clean_tree
from dragoman.trees.evalb import BracketScores
from dragoman.trees.tree import Leaf, Node, Tree, leaves

STARTED = time.perf_counter()
LEARNING_RATE = 0.0008
WARMUP_STEPS = 160
SETTINGS = {
    "use_chars_lstm": True,
    "d_char_emb": 64,
    "char_lstm_input_dropout": 0.2,
    "use_pretrained": False,
    "use_encoder": True,
    "d_model": 1024,
    "num_layers": 8,
    "num_heads": 8,
    "d_kv": 64,
    "d_ff": 2048,
    "encoder_max_len": 512,
    "morpho_emb_dropout": 0.2,
    "attention_dropout": 0.2,
    "relu_dropout": 0.1,
    "residual_dropout": 0.2,
    "d_label_hidden": 256,
    "d_tag_hidden": 256,
    "tag_loss_scale": 5.0,
}
"""From the authors' repository: EXPERIMENTS.md, and the defaults in src/main.py."""

Batch = list[dict[str, Any]]
"""The type of what one step learns from, in parts of similar length."""


@dataclass(frozen=True, slots=True)
class Sentence(parse_base.BaseInputExample):
    """Hold what benepar takes: words, and their tree to learn from."""

    words: list[str]
    tree: nltk.Tree | None = None
    space_after: None = None  # only pretrained models ask

    def leaves(self) -> list[str]:
        """Return the words."""
        return self.words

    def pos(self) -> list[tuple[str, str]]:
        """Return words with their tags, which are unknown where there is no tree."""
        return [(word, "XX") for word in self.words] if self.tree is None else self.tree.pos()


def read_trees(path: Path) -> list[Tree]:
    """Read the trees that `dragoman prepare` finds in a file."""
    corpus = open_treebank([path])
    trees = [parse_tree(pair.target) for pair in corpus.read()]
    print_line(f"{path}: {len(trees):,} trees; {len(corpus.malformed)} could not be read")
    return trees


def tree_words(tree: Tree) -> list[str]:
    """Return the words of a tree."""
    return [leaf.word for leaf in leaves(tree)]


def to_nltk(tree: Tree) -> nltk.Tree:
    """Convert a tree of ours to benepar's."""
    if isinstance(tree, Leaf):
        return nltk.Tree(tree.tag, [tree.word])
    return nltk.Tree(tree.label, [to_nltk(child) for child in tree.children])


def from_nltk(tree: nltk.Tree) -> Tree:
    """Convert a tree of benepar's to ours."""
    if isinstance(tree[0], str):
        return Leaf(tree.label(), tree[0])
    return Node(tree.label(), tuple(map(from_nltk, tree)))


def new_parser(train: Sequence[Sentence], settings: dict[str, Any]) -> parse_chart.ChartParser:
    """Return an untrained parser that knows the characters, labels and tags of the training set."""
    trees = [sentence.tree for sentence in train]
    tags = sorted({tag for sentence in train for _, tag in sentence.pos()})
    rooted = decode_chart.ChartDecoder.infer_force_root_constituent(trees)
    return parse_chart.ChartParser(
        tag_vocab={tag: id_ for id_, tag in enumerate(["UNK", *tags])},
        label_vocab=decode_chart.ChartDecoder.build_vocab(trees),
        char_vocab=char_lstm.RetokenizerForCharLSTM.build_vocab([one.words for one in train]),
        hparams=nkutil.HParams(**settings, force_root_constituent=rooted),
    )


def batches(
    parser: parse_chart.ChartParser, encoded: Sequence[dict[str, Any]], size: int, spans: int
) -> Iterator[Batch]:
    """Batches without end, each pass in an order of its own.

    A part of a batch has at most so many spans, padding among them, unless it is one sentence.
    """
    while True:
        for chosen in torch.randperm(len(encoded)).split(size):
            some = [encoded[index] for index in chosen.tolist()]
            lengths = [len(one["span_labels"]) for one in some]
            whole = {"batch_size": len(some), "batch_num_tokens": sum(lengths)}
            squares = [length**2 for length in lengths]
            yield [
                whole
                | {
                    key: copy_to_device(it, parser.device)
                    for key, it in parser.pad_encoded(part).items()
                }
                for _, part in subbatching.split(some, costs=squares, max_cost=spans)
            ]


def copy_to_device(value: Any, device: torch.device) -> Any:
    """Copy a tensor to the device without waiting for it."""
    return value.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else value


def prefetch(items: Iterator[Batch], count: int = 4) -> Iterator[Batch]:
    """Yield the same items, the next few of which are made in the background."""
    with ThreadPoolExecutor(1) as worker:
        waiting = deque(worker.submit(next, items) for _ in range(count))
        while True:
            yield waiting.popleft().result()
            waiting.append(worker.submit(next, items))


@dataclass(slots=True)
class Clock:
    """Measure how much of the time is gone; some is set aside for the last evaluation."""

    end: float
    start: float = field(default_factory=time.perf_counter)
    evaluating: float = 0.0
    longest: float = 0.0
    """Is the time of the longest evaluation so far."""

    def progress(self) -> float:
        """Return from 0 to 1 how near the last evaluation is."""
        available = self.end - self.start - 1.2 * self.longest - 1
        return min(1.0, (time.perf_counter() - self.start) / max(1e-9, available))

    def add_evaluation(self, seconds: float) -> None:
        """Add the time of an evaluation."""
        self.evaluating += seconds
        self.longest = max(self.longest, seconds)

    @property
    def training_seconds(self) -> float:
        """Return the seconds of training alone."""
        return time.perf_counter() - self.start - self.evaluating


def learning_rate(step: int, progress: float) -> float:
    """Return a rate that rises over the first steps, as the authors', and falls with time."""
    return LEARNING_RATE * min(1.0, step / WARMUP_STEPS) * (1 + math.cos(math.pi * progress)) / 2


class Trainer:
    """Train with the authors' optimiser: Adam, and gradients that are not clipped."""

    def __init__(self, parser: parse_chart.ChartParser, feed: Iterator[Batch]) -> None:
        self.parser, self.feed = parser, feed
        self.optimizer = torch.optim.Adam(
            parser.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=parser.device.type == "cuda"
        )
        self.steps = 0
        self.sentences = 0

    def train(self, clock: Clock, until: float) -> float:
        """Train until the clock has come so far, at least one step, and return the mean loss."""
        self.parser.train()
        before, loss = self.steps, torch.zeros((), device=self.parser.device)
        while self.steps == before or clock.progress() < until:
            self.steps += 1
            rate = learning_rate(self.steps, clock.progress())
            self.optimizer.param_groups[0]["lr"] = rate
            batch = next(self.feed)
            for part in batch:
                part_loss = self.parser.compute_loss(part)
                part_loss.backward()
                loss += part_loss.detach()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.sentences += batch[0]["batch_size"]
        return loss.item() / (self.steps - before)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Hold benepar's trees of the dev set at one time, and their score."""

    trees: list[Tree | None]
    scores: BracketScores
    sentences_per_second: float
    """Is the speed from words to benepar's own trees."""

    @classmethod
    def of(cls, parser: parse_chart.ChartParser, gold: Sequence[Tree], spans: int) -> Evaluation:
        """Parse the words of gold trees, and score the result."""
        sentences = [Sentence(tree_words(tree)) for tree in gold]
        squares = [len(sentence.words) ** 2 for sentence in sentences]
        begun = time.perf_counter()
        found = subbatching.map(parser.parse, sentences, costs=squares, max_cost=spans)
        speed = len(gold) / (time.perf_counter() - begun)
        trees, scores = evaluate_trees([clean_tree(from_nltk(tree)) for tree in found], gold)
        return cls(trees, scores, speed)


def run(options: argparse.Namespace) -> None:
    """Read, train, evaluate now and then, and write the best trees and figures."""
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    torch.distributions.Distribution.set_default_validate_args(False)  # the peer states no limits
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train = [
        Sentence(tree_words(tree), to_nltk(add_root(tree)))  # it wants an outermost bracket
        for tree in read_trees(options.train)[: options.trees]
    ]
    gold = clean_trees(open_text(options.dev), str(options.dev))[: options.trees]
    settings = SETTINGS | dict(options.set) | {"predict_tags": options.tags}
    parser = new_parser(train, settings).to(device)
    figures: dict[str, Any] = {
        "parameters": sum(weights.numel() for weights in parser.parameters()),
        "training_trees": len(train),
        "dev_trees": len(gold),
        "batch": options.batch,
        "seed": options.seed,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "settings": parser.config["hparams"],
    }
    print_line(
        f"{figures['parameters']:,} parameters, {len(parser.label_vocab)} labels, on {device}"
    )

    encoded = [parser.encode(sentence) for sentence in train]
    trainer = Trainer(parser, prefetch(batches(parser, encoded, options.batch, options.spans)))
    clock = Clock(STARTED + 60 * options.minutes)
    options.out.mkdir(parents=True, exist_ok=True)
    history: list[dict[str, float]] = []
    for part in range(1, options.evaluations + 1):
        loss = trainer.train(clock, until=part / options.evaluations)
        trained, begun = clock.training_seconds, time.perf_counter()
        now = Evaluation.of(parser, gold, options.spans)
        clock.add_evaluation(time.perf_counter() - begun)
        history.append(
            {
                "f1": now.scores.f1,
                "minutes": trained / 60,
                "steps": trainer.steps,
                "passes": trainer.sentences / len(train),
                "loss": loss,
                "sentences_per_second": now.sentences_per_second,
            }
        )
        print_line(
            f"step {trainer.steps:,}, pass {trainer.sentences / len(train):.1f}, "
            f"{1000 * trained / trainer.steps:.0f} ms a step, loss {loss:.3f}, "
            f"dev F1 {now.scores.f1:.2f}, {now.sentences_per_second:.0f} sentences/s parsed"
        )
        best = max(history, key=lambda one: one["f1"])
        if best is history[-1]:
            lines = [write_tree(tree) if tree else "(())" for tree in now.trees]
            (options.out / "dev.trees").write_text("\n".join(lines) + "\n", encoding="utf-8")
            kept = now.scores.to_json()
        report = best | {"of": history, "scores": kept} | figures
        (options.out / "benepar.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    print_line(f"best dev F1 {best['f1']:.2f}, after {best['minutes']:.1f} minutes of training")


def print_line(line: str) -> None:
    """Print a line that a log shows at once."""
    print(f"{time.perf_counter() - STARTED:6.1f} s  {line}", flush=True)


def parse_setting(text: str) -> tuple[str, float]:
    """Parse one of benepar's settings, as in d_model=128."""
    name, _, value = text.partition("=")
    if name not in SETTINGS:
        raise argparse.ArgumentTypeError(f"there is no '{name}'; there are: {', '.join(SETTINGS)}")
    return name, json.loads(value)


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--train", type=Path, required=True, help="trees to learn from")
    parser.add_argument("--dev", type=Path, required=True, help="trees to be scored on")
    parser.add_argument("--minutes", type=float, required=True, help="for everything")
    parser.add_argument("--out", type=Path, required=True, help="a directory for the results")
    parser.add_argument("--evaluations", type=int, default=10, help="the last is at the end")
    parser.add_argument("--batch", type=int, default=250, help="sentences a step")
    parser.add_argument(
        "--spans", type=int, default=500_000, help="at once; 500,000 take about 20 GB"
    )
    parser.add_argument(
        "--tags", action=argparse.BooleanOptionalAction, default=True, help="predict tags too"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trees", type=int, help="use only the first so many of each file")
    parser.add_argument(
        "--set", type=parse_setting, action="append", default=[], metavar="NAME=VALUE"
    )
    run(parser.parse_args())


if __name__ == "__main__":
    main()
