"""The speed of parsing on a GPU, and its F1: the engine, and the search that knows no model.

    python benchmarks/gpu_parse.py MODEL test.mrg --beam 21 --beam 1 --against plain --limit 1700

Both parse through `load_parser`: words in, trees out, tokenising and building trees included. The
engine is what `--precision auto` means, the plain search `float32`. In each of `--rounds` rounds
every system has its turn; of the file the plain search parses `--their-limit` sentences, spread
over all its lengths, and F1 is of those for both.

Lines of JSON go to standard output as they are measured, a table at the end to standard error.
It runs on a CPU too, to see that it runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dragoman.data.readers.parallel import open_text
from dragoman.evaluation.bracket_f1 import clean_trees
from dragoman.inference.parser import Parser, load_parser
from dragoman.trees.evalb import PREDICTED_TAGS, score_trees
from dragoman.trees.tree import Tree, leaves


def say(**facts: Any) -> dict[str, Any]:
    """A line of JSON."""
    print(json.dumps(facts), flush=True)
    return facts


class Bench:
    """One treebank, several parsers."""

    def __init__(self, trees: Sequence[Tree], their_limit: int, device: torch.device) -> None:
        self.trees, self.device = trees, device
        self.words = [[leaf.word for leaf in leaves(tree)] for tree in trees]
        # Every so many of them, ordered by length: the same mixture.
        order = sorted(range(len(trees)), key=lambda i: -len(self.words[i]))
        self.few = sorted(order[:: max(1, -(-len(trees) // their_limit))])

    def wait(self) -> None:
        """For the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def turn(self, name: str, parser: Parser, beam: int, number: int) -> dict[str, Any]:
        """One round of one system."""
        chosen = range(len(self.trees)) if name == "engine" else self.few
        sentences = [self.words[i] for i in chosen]
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        self.wait()
        start = time.perf_counter()
        found = parser.parse(sentences, beam=beam)
        self.wait()
        seconds = time.perf_counter() - start
        facts: dict[str, Any] = {
            "system": name,
            "beam": beam,
            "round": number,
            "sentences": len(sentences),
            "words": sum(map(len, sentences)),
            "actions": sum(one.actions for one in found if one is not None),
            "seconds": round(seconds, 3),
            "sentences_per_second": round(len(sentences) / seconds, 1),
        }
        if self.device.type == "cuda":
            facts["peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        if number == 1:
            by_place = dict(zip(chosen, found, strict=True))
            parses = [one for i in self.few if (one := by_place[i]) is not None]
            gold = [self.trees[i] for i in self.few]
            report = score_trees(gold, [one.tree for one in parses], PREDICTED_TAGS)
            facts["f1"] = round(report.f1, 2)
            facts["mean_score"] = round(statistics.fmean(one.score for one in parses), 5)
        return say(**facts)


def table(turns: Sequence[dict[str, Any]]) -> str:
    """The medians in Markdown."""
    rows = ["| system | beam | sentences/s | F1 | GiB |", "|---|---|---|---|---|"]
    for name, beam in dict.fromkeys((one["system"], one["beam"]) for one in turns):
        own = [one for one in turns if (one["system"], one["beam"]) == (name, beam)]
        speed = statistics.median(one["sentences_per_second"] for one in own)
        memory = max(one.get("peak_gib", 0.0) for one in own)
        rows.append(f"| {name} | {beam} | {speed:,.0f} | {own[0]['f1']} | {memory} |")
    return "\n".join(rows)


def main() -> None:
    """Load, warm up, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("trees", type=Path, help="a treebank in brackets")
    parser.add_argument("--beam", type=int, action="append", help="again for more than one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, help="sentences of the file")
    parser.add_argument("--against", action="append", default=[], help="plain")
    parser.add_argument("--their-limit", type=int, default=500, help="sentences of the other")
    parser.add_argument("--rows", type=int, help="hypotheses of a step")
    parser.add_argument("--profile", action="store_true", help="what a search is made of")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    beams = options.beam or [21, 1]
    trees = clean_trees(open_text(options.trees), str(options.trees))[: options.limit]
    bench = Bench(trees, options.their_limit, device)
    systems = {"engine": load_parser(options.model, device=options.device)}
    if "plain" in options.against:
        plain = load_parser(options.model, device=options.device, precision="float32")
        systems["plain"] = plain
    engine: Any = systems["engine"]._engine
    if options.rows:
        engine.max_rows = options.rows
    config = systems["engine"].config.model
    say(
        device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        torch=torch.__version__,
        model=str(options.model),
        engine=type(engine).__name__,
        d_model=config.d_model,
        layers=[config.encoder_layers, config.decoder_layers],
        actions=len(systems["engine"].tokenizer.actions),
        sentences=len(trees),
    )
    for beam in beams:
        start = time.perf_counter()
        systems["engine"].parse(bench.words, beam=beam)
        say(first=beam, seconds=round(time.perf_counter() - start, 2))
        if options.profile:
            print(_profile(systems["engine"], bench, beam), file=sys.stderr, flush=True)
    if "plain" in systems:
        systems["plain"].parse([bench.words[i] for i in bench.few[:16]], beam=beams[0])
    turns = [
        bench.turn(name, system, beam, number)
        for number in range(1, options.rounds + 1)
        for beam in beams
        for name, system in systems.items()
        if number == 1 or name == "engine"
    ]
    print(table(turns), file=sys.stderr)


def _profile(parser: Parser, bench: Bench, beam: int) -> str:
    """The kernels of a search that take most of it, and the time on the host."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    cuda = torch.cuda.is_available()
    kinds = [ProfilerActivity.CUDA] if cuda else [ProfilerActivity.CPU]
    start = time.perf_counter()
    with profiler(activities=kinds) as seen:
        parser.parse(bench.words[:512], beam=beam)
        bench.wait()
    seconds = time.perf_counter() - start
    name = "self_device_time_total" if cuda else "self_cpu_time_total"
    events = sorted(seen.key_averages(), key=lambda one: -getattr(one, name))
    total = sum(getattr(one, name) for one in events)
    lines = [
        f"{getattr(one, name) / 1000:9.1f} {one.count:7} x {one.key[:80]}" for one in events[:24]
    ]
    head = f"beam {beam}: {1000 * seconds:.0f} ms, {total / 1000:.0f} of them in kernels"
    return "\n".join([head, *lines])


if __name__ == "__main__":
    main()
