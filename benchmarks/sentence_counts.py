"""Count the sentences of paragraphs before and after translation.

    python benchmarks/sentence_counts.py MODEL news.en manual.en speeches.en --paragraphs 40

Each file is a kind of text, one sentence a line. Paragraphs of 2 to 7 lines are translated, and
their sentences counted by Dragoman's own splitter.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import dragoman
from dragoman.text.sentence_splitting import sentence_spans


def make_paragraphs(lines: list[str], count: int, language: str, seed: int) -> list[str]:
    """Join lines to paragraphs; a line that is not one sentence by itself is left out."""
    chance = random.Random(seed)
    whole = [
        line
        for line in dict.fromkeys(map(str.strip, lines))
        if line[-1:] in tuple(".!?") and len(sentence_spans(line, language)) == 1
    ]
    paragraphs: list[str] = []
    for _ in range(count):
        size = chance.randint(2, 7)
        start = chance.randrange(max(1, len(whole) - size))
        paragraph = " ".join(whole[start : start + size])
        if len(sentence_spans(paragraph, language)) == size:
            paragraphs.append(paragraph)
    return paragraphs


def main() -> None:
    """Print how many paragraphs have as many sentences as before, by file and in all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--paragraphs", type=int, default=40, help="of each file")
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print those that differ")
    given = parser.parse_args()
    translator = dragoman.load(given.model)
    source, target = translator.config.data.languages or ("", "")
    total = equal = sentences = 0
    for file in given.files:
        lines = file.read_text(encoding="utf-8").splitlines()
        texts = make_paragraphs(lines, given.paragraphs, source, given.seed)
        found = translator.translate(texts, beam=given.beam)
        counts = [
            (len(sentence_spans(text, source)), len(sentence_spans(one.text, target)))
            for text, one in zip(texts, found, strict=True)
        ]
        more, fewer = (sum(b > a for a, b in counts), sum(b < a for a, b in counts))
        print(
            f"{file.name}: {len(texts)} paragraphs, {more} with more sentences, {fewer} with fewer"
        )
        for (before, after), text, one in zip(counts, texts, found, strict=True):
            if given.show and before != after:
                print(f"  {before} → {after}\n    {text}\n    {one.text}")
        total, equal = total + len(texts), equal + len(texts) - more - fewer
        sentences += sum(a for a, _ in counts)
    print(f"{equal} of {total} paragraphs ({equal / total:.1%}), {sentences} sentences")


if __name__ == "__main__":
    main()
