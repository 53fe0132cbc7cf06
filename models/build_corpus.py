"""Build the corpus that the translators in this directory are trained on.

    python models/build_corpus.py DATA OUT --pair en-de

DATA holds Europarl, Tatoeba, web/ and mono/ as their README describes. OUT gets corpus.en and
corpus.de, filtered by ``dragoman filter``; general.en and general.de, the part of them that is most
like the text people translate; and text without translations: mono.de is worth
imitating, and is translated back; talk.ko is only worth understanding; mono.en is English of other
pairs, much of it for Korean, whose own pairs are nearly all about software.
"""

from __future__ import annotations

import argparse
import lzma
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from dragoman.data.filtering import LikenessScorer, Selection, filter_corpus
from dragoman.data.readers.parallel import ParallelFiles

LEFT_OUT = {
    "en-de": {"bible"},  # archaic German
    "en-ko": {"bible"},  # archaic Korean
}
GENERAL_TWICE = {"tatoeba", "korsts", "cocoa"}
"""Sources of everyday sentences, given twice: there are few of them."""
TALK = ("e9t/nsmc", "warnikchow/3i4k", "storidient/KoCoNovel")
"""Sources of Korean that is not to be imitated: reviews with errors, commands without marks, and
fiction of a hundred years ago."""
SPEECHES = ("mathias-goebel/plenarsitzungsprotokolle",)
"""Sources of German that Europarl has enough of."""
GENERAL_SHARE = 0.3
"""This share of the sentences, the most like encyclopaedias and talk, is learned last."""
OTHER_SHARE = 0.1
"""This share of all else is learned with them, so that it is not forgotten."""
SENTENCE_WORDS = 6
"""What has fewer words may be an entry of a word list."""
PHRASES = Path(__file__).with_name("everyday_phrases.tsv")
PHRASES_GIVEN = 20
"""Greetings and the like are said more often than the sources say them, and are given so often."""
ENGLISH_SENTENCES = 320_000
"""How many sentences of Europarl are taken as English text for Korean, beside all of Tatoeba."""

_ACCELERATOR = re.compile(r"(?<![\w&_])([&_])(?=\w)|(?<=\w)([&_])(?=\w)")
_KOREAN_ACCELERATOR = re.compile(r"\s?\([&_]?[A-Z]\)")
_ADDRESS = re.compile(r"((?:Herr|Frau|Sehr geehrte|Liebe|Meine|Werte)[^.,:;!?]{0,60})! (\w+)")
_PARTICLE_CUT_OFF = re.compile(r"(?<=[\w)\]\"'`”’]) (을|를|은|는|의|와|과|에서|으로)(?=[ ,.]|$)")
"""Particles that are words of their own nowhere else; 이, 가, 로 and 에 may be."""


def read(path: Path) -> Iterator[str]:
    """Yield the lines of a compressed file."""
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


def read_pairs(data: Path, pair: str) -> Iterator[tuple[str, str, str]]:
    """Yield source of the pair, English text and its translation."""
    other = pair.removeprefix("en-")
    files = [("web", "train", None)]
    if pair == "en-de":
        files += [("tatoeba", "train", "tatoeba")]
        files += [("europarl", f"train{part}", "europarl") for part in (1, 2, 3, 4)]
    for folder, name, source in files:
        stem = f"{data}/{folder}/{name}.{pair}"
        english, translated = read(Path(f"{stem}.en.xz")), read(Path(f"{stem}.{other}.xz"))
        if source is None:
            names = read(Path(f"{stem}.source.xz"))
        else:
            names = iter(lambda source=source: source, None)
        yield from zip(names, english, translated, strict=False)


def read_english(data: Path, pair: str) -> list[str]:
    """Return general sentences in English that other pairs than this have, each once."""
    general: dict[str, None] = {}
    if pair == "en-de":
        known = set(read(data / "tatoeba/train.en-de.en.xz"))
        texts = chain(
            read(data / "tatoeba/train.en-fr.en.xz"),
            (english for source, english, _ in read_pairs(data, "en-ko") if source == "korsts"),
        )
        return list(
            dict.fromkeys(one for one in texts if 12 <= len(one) <= 400 and one not in known)
        )
    formal: dict[str, None] = {}
    for source, english, _ in read_pairs(data, "en-de"):
        if 12 <= len(english) <= 400 and source in ("tatoeba", "suttacentral"):
            general[english] = None
        elif 40 <= len(english) <= 300 and source == "europarl":
            formal[english] = None
    return [*general, *islice(formal, ENGLISH_SENTENCES)]


def read_phrases(language: str) -> list[tuple[str, str]]:
    """Return everyday phrases in English and another language."""
    column = ("en", "de", "ko").index(language)
    rows = [line.split("\t") for line in PHRASES.read_text(encoding="utf-8").splitlines()]
    return [(row[0], row[column]) for row in rows]


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def strip_accelerators(english: str, translated: str) -> tuple[str, str]:
    """Remove the marks of keyboard accelerators, as in "_Open" and "Ö_ffnen" or "열기(_O)"."""
    if len(english) > 60 or not re.search(r"[&_]\w", english):
        return english, translated
    if len(_ACCELERATOR.findall(english)) != 1:
        return english, translated
    translated = _KOREAN_ACCELERATOR.sub("", translated)
    return _ACCELERATOR.sub("", english), _ACCELERATOR.sub("", translated)


class GermanSpelling:
    """Bring German to the spelling of today, and forms of address to the source's comma."""

    def __init__(self, modern: Iterator[str]) -> None:
        self._words = Counter(word for text in modern for word in re.findall(r"\w+", text))

    def __call__(self, english: str, german: str) -> str:
        """Return the German side of a pair as it would be written today."""
        if "ß" in german:
            german = re.sub(r"\w*ß\w*", self._modern, german)
        if "!" not in english and "," in english:
            german = _ADDRESS.sub(self._with_comma, german, count=1)
        return german

    def _modern(self, found: re.Match[str]) -> str:
        old = found[0]
        new = old.replace("ß", "ss")
        return new if self._words[new] >= 3 and self._words[new] > 5 * self._words[old] else old

    def _with_comma(self, found: re.Match[str]) -> str:
        word = found[2]
        lower = word[:1].lower() + word[1:]
        return f"{found[1]}, {lower if self._words[lower] > self._words[word] / 2 else word}"


def korean(_: str, text: str) -> str:
    """Put particles back that stripped markup has cut off their nouns."""
    return _PARTICLE_CUT_OFF.sub(r"\1", text)


def build(data: Path, out: Path, pair: str, *, repeat: float, leave_out: float) -> None:
    """Write the filtered corpus and the monolingual text to a directory."""
    other = pair.removeprefix("en-")
    names = read(data / f"mono/{other}.source.xz")
    texts = read(data / f"mono/{other}.txt.xz")
    found = [
        (name, text) for name, text in zip(names, texts, strict=True) if 20 <= len(text) <= 600
    ]
    mono = [text for name, text in found if not name.startswith(TALK)]
    talk = [text for name, text in found if name.startswith(TALK)]
    mend: Callable[[str, str], str] = GermanSpelling(iter(mono)) if other == "de" else korean
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        raw = ParallelFiles(Path(temporary, "raw.en"), Path(temporary, f"raw.{other}"))
        sample = Path(temporary, "sample")
        write(sample, [*mono, *talk])
        with (
            raw.source.open("w", encoding="utf-8") as left,
            raw.target.open("w", encoding="utf-8") as right,
        ):
            for source, *texts in read_pairs(data, pair):
                if source in LEFT_OUT[pair]:
                    continue
                english, translated = strip_accelerators(*texts)
                left.write(f"{english}\n")
                right.write(f"{mend(english, translated)}\n")
        selection = Selection(sample, repeat, leave_out)
        files = ("corpus.en", f"corpus.{other}")
        report = filter_corpus(raw, out, files, selection=selection)
    with (
        (out / files[0]).open("a", encoding="utf-8") as left,
        (out / files[1]).open("a", encoding="utf-8") as right,
    ):
        for source, english, translated in read_pairs(data, pair):
            if source in GENERAL_TWICE:
                left.write(f"{english}\n")
                right.write(f"{mend(english, translated)}\n")
        for english, translated in read_phrases(other) * PHRASES_GIVEN:
            left.write(f"{english}\n")
            right.write(f"{translated}\n")
    wanted = [text for name, text in found if not name.startswith((*TALK, *SPEECHES))]
    write_general(out, files, wanted)
    write(out / f"mono.{other}", mono)
    if talk:
        write(out / f"talk.{other}", talk)
    write(out / "mono.en", read_english(data, pair))
    print("\n".join(chain(report.lines(), [f"{len(found):,} sentences of monolingual text"])))


def write_general(out: Path, files: Sequence[str], wanted: Sequence[str]) -> None:
    """Write the pairs of the corpus that are most like some text, and a few of the others."""
    sides = [(out / file).read_text(encoding="utf-8").splitlines() for file in files]
    scorer = LikenessScorer(wanted, sides[1])
    others, sentences = [], {}
    for pair in dict.fromkeys(zip(*sides, strict=True)):
        if len(pair[0].split()) < SENTENCE_WORDS:
            others.append(pair)
        else:
            sentences[pair] = scorer.score(pair[1])
    best = sorted(sentences, key=sentences.__getitem__, reverse=True)
    cut = int(GENERAL_SHARE * len(best))
    others += best[cut:]
    chosen = [*best[:cut], *random.Random(1).sample(others, int(OTHER_SHARE * len(others)))]
    for side, file in enumerate(files):
        write(out / file.replace("corpus", "general"), [pair[side] for pair in chosen])


def main() -> None:
    """Read the arguments and build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pair", choices=list(LEFT_OUT), required=True)
    parser.add_argument("--repeat", type=float, default=0.25)
    parser.add_argument("--leave-out", type=float, default=0.08)
    values = parser.parse_args()
    build(values.data, values.out, values.pair, repeat=values.repeat, leave_out=values.leave_out)


if __name__ == "__main__":
    main()
