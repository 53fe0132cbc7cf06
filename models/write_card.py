"""Score a model of this directory and write its card: card.json for programs, README.md to read.

    python models/write_card.py models/ko-en DATA --teacher "17.26 BLEU with a beam of 4"

DATA holds the corpora as their README describes. What a model does badly is told by hand, in
models/limits/, and becomes a part of the model's README.md.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from build_corpus import LEFT_OUT, read, read_english, read_pairs
from sources import GROUPS, group_of

import dragoman
from dragoman.evaluation import metrics
from dragoman.model_directory import INT8_FILE, open_model, replace_card

HERE = Path(__file__).resolve().parent
LICENSE = "CC BY-SA 4.0"
BEAMS = (1, 4)
FEWEST = 50
"""A domain with fewer sentences gets no score of its own."""
EXAMPLES = {
    "en": "The house is small, but the garden is large.",
    "de": "Das Haus ist klein, aber der Garten ist groß.",
    "ko": "집은 작지만 정원은 넓습니다.",
}
NAMES = {"en": "English", "de": "German", "ko": "Korean"}


def test_sets(data: Path, source: str, target: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return sources and references by the name of the set; web/ is divided by domain."""
    other = target if source == "en" else source
    pair = f"en-{other}"

    def pairs(stem: str) -> tuple[list[str], list[str]]:
        return list(read(data / f"{stem}.{source}.xz")), list(read(data / f"{stem}.{target}.xz"))

    flores = [
        (data / f"flores/dev.{language}").read_text(encoding="utf-8").splitlines()
        for language in (source, target)
    ]
    found = {"FLORES-200 dev": (flores[0], flores[1])}
    if other == "de":
        found["newstest2013"] = pairs(f"newstest/newstest2013.{pair}")
        found["Europarl dev"] = pairs(f"europarl/dev.{pair}")
        found["Tatoeba dev"] = pairs(f"tatoeba/dev.{pair}")
    domains: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    names = read(data / f"web/dev.{pair}.source.xz")
    for name, *texts in zip(names, *pairs(f"web/dev.{pair}"), strict=True):
        if name not in LEFT_OUT[pair]:
            for side, text in zip(domains[group_of(name)], texts, strict=True):
                side.append(text)
    large = {name: texts for name, texts in domains.items() if len(texts[0]) >= FEWEST}
    return found | dict(sorted(large.items()))


def count_pairs(data: Path, pair: str) -> dict[str, int]:
    """Return how many pairs, or sentences, there are of each group before filtering."""
    sources = (source for source, *_ in read_pairs(data, pair))
    counts = Counter(group_of(source) for source in sources if source not in LEFT_OUT[pair])
    counts["English of other pairs"] = len(read_english(data, pair))
    counts["Wikipedia and others"] = sum(1 for _ in read(data / f"mono/{pair[3:]}.txt.xz"))
    return {name: counts[name] for name in GROUPS if counts[name]}


def score(
    directory: Path, sets: dict[str, tuple[list[str], list[str]]]
) -> dict[str, dict[str, Any]]:
    """Return BLEU and chrF2 of every set, greedily and with a beam, and their signatures."""
    translator = dragoman.load(directory, device="cpu")
    target = translator.config.data.languages[1]
    scores: dict[str, dict[str, Any]] = {}
    for name, (sources, references) in sets.items():
        scores[name] = {"sentences": len(sources)}
        for beam in BEAMS:
            found = [one.text for one in translator.translate_lines(sources, beam=beam)]
            scored = metrics.score(found, references, language=target, metrics=["bleu", "chrf"])
            for one in scored.values.values():
                scores[name][f"{one.name}, beam {beam}"] = round(one.value, 2)
                scores[name][f"{one.name} signature"] = one.signature
        print(name, scores[name], flush=True)
    return scores


def render(card: dict[str, Any], source: str, target: str, directory: Path) -> str:
    """Return the card as a page for people."""
    sets = card["test_sets"]
    signatures = next(iter(sets.values()))
    columns = [(metric, beam) for metric in ("BLEU", "chrF2") for beam in BEAMS]
    head = [f"{metric}, {'greedy' if beam == 1 else f'beam {beam}'}" for metric, beam in columns]
    rows = [
        [name, f"{one['sentences']:,}"]
        + [str(one[f"{metric}, beam {beam}"]) for metric, beam in columns]
        for name, one in sets.items()
    ]
    data = [
        [name, GROUPS[name][0], f"{count:,}", GROUPS[name][1]]
        for name, count in card["data"].items()
    ]
    example, name = EXAMPLES[source], directory.name
    translated = dragoman.load(directory, device="cpu").translate(example).text
    other = target if source == "en" else source
    last_of_others = "newstest2013" if other == "de" else "the first"
    parts = [
        f"# {NAMES[source]} to {NAMES[target]}",
        f"```console\n$ dragoman translate {name} '{example}'\n{translated}\n```",
        f"A Transformer of {card['parameters']:,} parameters (6+2 layers, d_model 384) in int8, "
        f"{(directory / INT8_FILE).stat().st_size / 1e6:.1f} MB, taught by a larger one. "
        f"License: {card['license']}.",
        "## Scores",
        table(["", "sentences", *head], rows),
        "Translated as `dragoman translate --lines` does, scored by sacreBLEU ("
        + ", ".join(f"`{signatures[f'{metric} signature']}`" for metric in ("BLEU", "chrF2"))
        + f"). Its teacher has, on FLORES-200 dev, {card['teacher']}. The sets after "
        f"{last_of_others} are of the same sources as the training text.",
        "## What it does badly",
        (HERE / f"limits/{name}.md").read_text(encoding="utf-8").strip(),
        "## What it learned from",
        "Pairs before filtering; for the monolingual text, sentences.",
        table(["source", "what", "pairs", "terms"], data),
        "## How it was made",
        "```console\n"
        f"$ python models/build_corpus.py DATA corpus --pair en-{other}\n"
        f"$ python models/train_translator.py corpus out --languages {source} {target} "
        f"--valid flores.{source} flores.{target} --reverse models/{target}-{source}\n"
        f"$ python models/write_card.py models/{name} DATA --teacher '{card['teacher']}'\n```",
    ]
    return "\n\n".join(parts) + "\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table as Markdown has it."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Read the arguments, score and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--teacher", required=True, help="its score on FLORES, and how")
    given = parser.parse_args()
    loaded = open_model(given.model)
    source, target = loaded.config.data.languages
    other = target if source == "en" else source
    counts = count_pairs(given.data, f"en-{other}")
    scores = score(given.model, test_sets(given.data, source, target))
    flores = scores["FLORES-200 dev"]
    metric = "chrF2" if target == "ko" else "BLEU"  # words are no unit of Korean
    card = loaded.card | {
        "license": LICENSE,
        "scores": {f"FLORES-200 dev {metric}": flores[f"{metric}, beam 4"]},
        "teacher": given.teacher,
        "test_sets": scores,
        "data": counts,
    }
    replace_card(loaded, card, render(card, source, target, given.model))


if __name__ == "__main__":
    main()
