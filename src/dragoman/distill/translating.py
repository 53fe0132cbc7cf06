"""The teacher's translations, a window at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from sacrebleu.metrics.bleu import BLEU

from dragoman.data.languages import tokenizer_for
from dragoman.data.prepare import Progress
from dragoman.data.readers import open_text
from dragoman.distill.plan import Plan
from dragoman.distill.sources import Sentence, sentences
from dragoman.files import atomic_directory
from dragoman.stages import fill, window_file
from dragoman.translate import Translation, Translator

__all__ = ["assemble", "translate_text"]


def translate_text(
    teacher: Translator, plan: Plan, total: int, out: Path, progress: Progress
) -> int:
    """Translate this shard's windows that are not there; how many windows are missing then."""
    nearest = _Nearest(teacher.config.data.languages)

    def make(window: list[Sentence]) -> str:
        found = teacher.translate(
            [one.source for one in window],
            beam=plan.beam,
            n_best=plan.n_best,
            length_penalty=plan.length_penalty,
            align=False,
        )
        texts = map(nearest, found, (one.reference for one in window))
        return "".join(f"{text}\n" for text in texts)

    return fill(
        out / "translated",
        sentences(out / "text"),
        total,
        plan.window,
        make,
        progress=progress,
        doing="translating",
        share=(plan.shard, plan.shards),
    )


class _Nearest:
    """Chooses among candidates, as interpolated distillation does (Kim and Rush, 2016, §3.3)."""

    def __init__(self, languages: Sequence[str]) -> None:
        # effective_order: a sentence of three words has no 4-grams to score.
        self._bleu = BLEU(
            tokenize=tokenizer_for(next(iter(languages[1:]), None)), effective_order=True
        )

    def __call__(self, found: Translation, reference: str) -> str:
        """The candidate with the best BLEU, or the most probable if there is no reference."""
        if not found.alternatives or not reference:
            return found.text
        texts = [found.text, *(other.text for other in found.alternatives)]
        return max(texts, key=lambda text: self._bleu.sentence_score(text, [reference]).score)


def assemble(out: Path) -> dict[str, int]:
    """Lay the sources and their translations side by side in pairs/; how many there are."""
    place = out / "pairs"
    if not place.exists():
        counts = {"pairs": 0, "as the reference": 0}
        with atomic_directory(place) as directory:
            with (
                (directory / "source.txt").open("w", encoding="utf-8", newline="\n") as sources,
                (directory / "target.txt").open("w", encoding="utf-8", newline="\n") as targets,
            ):
                lines = zip(sentences(out / "text"), _translations(out), strict=True)
                for (source, reference), text in lines:
                    sources.write(f"{source}\n")
                    targets.write(f"{text}\n")
                    counts["pairs"] += 1
                    counts["as the reference"] += text == reference
            (directory / "counts.json").write_text(json.dumps(counts), encoding="utf-8")
    return cast(dict[str, int], json.loads((place / "counts.json").read_text(encoding="utf-8")))


def _translations(out: Path) -> Iterator[str]:
    number = 0
    while (file := window_file(out / "translated", number)).exists():
        yield from open_text(file)
        number += 1
