"""Measure quality and speed of a teacher and its students on one test set, on this CPU.

    python benchmarks/students.py base=runs/teacher 6-2=distilled/6-2 --source test.en \
        --reference test.de --out students.png

Every model translates the whole test set through the public `Translator`, as `dragoman translate`
would: loading is not timed, tokenising is. In each of `--rounds` rounds every model has its turn,
so that a machine that is busy for a while is busy for all of them; the speed is that of the median
round, and the bar reaches from the slowest to the fastest. The first sentences are translated once
before that, untimed. BLEU is `dragoman evaluate`'s. Beams are the models' own, or `--beam` for
each: `--beam 4 --beam 1` measures both.

The table goes to standard output, the picture to `--out`, and with `--json` all figures to a file.
A figure of speed is worth the machine it was measured on: say which, and how many threads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from dragoman.data.readers.parallel import open_text
from dragoman.evaluation.metrics import score
from dragoman.inference import Translator, load
from dragoman.inspection.plotting import TEXT_COLOUR, check_format, save_figure, style

COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")
MARKERS = "osD^v"
WARM_UP = 20
"""How many sentences are translated before the clock starts."""


@dataclass
class ModelSpeed:
    """Hold what was measured of a model with one beam."""

    name: str
    layers: str
    parameters: int
    beam: int
    bleu: float = 0.0
    signature: str = ""
    words: int = 0
    """Counts the words of its translations."""
    seconds: list[float] = field(default_factory=list)
    """Holds the time of each round."""

    def sentences_per_second(self, sentences: int) -> tuple[float, float, float]:
        """Return the speed of the slowest, the median and the fastest round."""
        worst, best = max(self.seconds), min(self.seconds)
        return sentences / worst, sentences / statistics.median(self.seconds), sentences / best


def measure(
    models: dict[str, Translator],
    sources: Sequence[str],
    references: Sequence[str],
    beams: Sequence[int | None],
    rounds: int,
) -> list[ModelSpeed]:
    """Time every model with every beam, each once in every round."""
    turns = []
    for name, translator in models.items():
        config = translator.config
        layers = f"{config.model.encoder_layers}-{config.model.decoder_layers}"
        count = sum(weights.numel() for weights in translator.model.parameters())
        for beam in dict.fromkeys(beam or config.search.beam for beam in beams):
            turns.append((translator, ModelSpeed(name, layers, count, beam)))
            translator.translate(sources[:WARM_UP], beam=beam, align=False)
    for number in range(rounds):
        for translator, found in turns:
            start = time.perf_counter()
            texts = [one.text for one in translator.translate_lines(sources, beam=found.beam)]
            found.seconds.append(time.perf_counter() - start)
            if number == 0:
                language = next(iter(translator.config.data.languages[1:]), None)
                scores = score(texts, references, language=language, metrics=["bleu"])
                found.bleu, found.signature = scores["bleu"], scores.values["bleu"].signature
                found.words = sum(len(text.split()) for text in texts)
    return [found for _, found in turns]


def markdown_table(measured: Sequence[ModelSpeed], sentences: int) -> str:
    """Return the figures in Markdown; the others are compared with the first row."""
    rows = [
        "| model | layers | parameters | beam | BLEU | sentences/s | words/s | times the first |",
        "|---|---|---|---|---|---|---|---|",
    ]
    _, first, _ = measured[0].sentences_per_second(sentences)
    for one in measured:
        _, speed, _ = one.sentences_per_second(sentences)
        rows.append(
            f"| {one.name} | {one.layers} | {one.parameters / 1e6:.1f}M | {one.beam} | "
            f"{one.bleu:.1f} | {speed:.1f} | {speed * one.words / sentences:.0f} | "
            f"{speed / first:.2f} |"
        )
    return "\n".join(rows)


def draw(measured: Sequence[ModelSpeed], sentences: int, path: Path, title: str) -> None:
    """Draw BLEU over speed, with a colour for each model and a shape for each beam."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    names = list(dict.fromkeys(one.name for one in measured))
    beams = sorted({one.beam for one in measured}, reverse=True)
    with style("".join(names) + title):
        figure = Figure(figsize=(6.4, 3.6))
        axes = figure.add_subplot()
        for name in names:
            colour = COLOURS[names.index(name) % len(COLOURS)]
            own = [one for one in measured if one.name == name]
            points = []
            for one in own:
                slow, middle, fast = one.sentences_per_second(sentences)
                points.append((middle, one.bleu))
                marker = MARKERS[beams.index(one.beam) % len(MARKERS)]
                axes.plot([slow, fast], [one.bleu] * 2, color=colour, alpha=0.4, linewidth=3)
                axes.plot(middle, one.bleu, marker, color=colour, markersize=7)
            label = name if own[0].layers in name else f"{name} ({own[0].layers})"
            label += f", {own[0].parameters / 1e6:.1f}M"
            axes.plot(*zip(*points, strict=True), color=colour, alpha=0.6, label=label)
        if len(beams) > 1:
            for number, beam in enumerate(beams):
                marker = MARKERS[number % len(MARKERS)]
                axes.plot([], [], marker, color=TEXT_COLOUR, label=f"beam {beam}")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(
            FixedLocator([n * 10**k for k in range(-2, 6) for n in (1, 2, 5)])
        )
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.margins(x=0.1, y=0.15)
        axes.set_xlabel("sentences a second (logarithmic)")
        axes.set_ylabel("BLEU")
        axes.set_title(title)
        save_figure(figure, path)


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL", help="the first is the measure")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("students.png"), help="the picture")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--beam", type=int, action="append", help="again for more than one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--title", default="")
    options = parser.parse_args()
    check_format(options.out)
    torch.set_num_threads(options.threads)
    named: dict[str, Translator] = {}
    for one in options.models:
        name, equals, place = one.partition("=")
        if not equals or name in named:
            parser.error(f"{one}: write NAME=MODEL, each name once")
        named[name] = load(place, device=options.device)
    sources, references = (list(open_text(p)) for p in (options.source, options.reference))
    measured = measure(named, sources, references, options.beam or [None], options.rounds)
    print(markdown_table(measured, len(sources)))
    threads = "1 thread" if options.threads == 1 else f"{options.threads} threads"
    print(f"\n{len(sources):,} sentences, {threads}, {measured[0].signature}")
    default = f"{len(sources):,} sentences of {options.source.name}, {options.device}, {threads}"
    draw(measured, len(sources), options.out, options.title or default)
    if options.json is not None:
        facts: dict[str, Any] = {"sentences": len(sources), "threads": options.threads}
        facts["models"] = [asdict(one) for one in measured]
        options.json.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
