"""Train a translator of this directory: a teacher, and the student that is given away.

    python models/train_translator.py CORPUS OUT --languages en de --valid dev.en dev.de

CORPUS is what build_corpus.py made. Each stage is a command of Dragoman or a file of text, and is
not repeated if its result is there:

    tokenizer   pieces of both languages, from the corpus and the monolingual text
    back        a model of the other direction, and its translations of monolingual target text
    teacher     learns from the corpus and, marked and twice, from those translations
    distilled   the teacher's translations of source text
    student     learns from them, from short entries, and from the translations of stage "back"
    model       the student in int8

On an H200 a base teacher makes 41 steps a second, and the student 95. ``--until`` ends after a
stage, so that what the next one needs can be brought meanwhile.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MARK = "<bt>"
"""Sources that a model has written begin with this piece, so that people's are told apart."""
SHORT = 3
"""Entries of at most so many words are learned as they are: a teacher translates words badly."""


@dataclass(frozen=True)
class Recipe:
    """Hold what is trained, and for how long."""

    corpus: Path
    out: Path
    source: str
    target: str
    valid: list[Path]
    tokenizer: Path | None
    teacher: Path | None
    back_steps: int
    teacher_steps: int
    student_steps: int
    sentences: int
    beam: int
    processes: int

    def path(self, name: str) -> Path:
        """Return the path of a stage's result."""
        return self.out / name

    def pair(self, stem: str, folder: Path | None = None) -> tuple[Path, Path]:
        """Return the files of source and target with this stem."""
        folder = folder or self.out
        return folder / f"{stem}.{self.source}", folder / f"{stem}.{self.target}"


HERE = Path(__file__).resolve().parent


def dragoman(*arguments: object) -> None:
    """Run a command of Dragoman, and stop if it fails."""
    words = [str(argument) for argument in arguments]
    begin = time.monotonic()
    subprocess.run([sys.executable, "-m", "dragoman", *words], check=True)
    print(f"{time.monotonic() - begin:.0f} s: dragoman {words[0]}", flush=True)


def read(path: Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def write(path: Path, lines: Sequence[str]) -> None:
    """Write lines to a file that appears when it is complete."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    unfinished.replace(path)


def translate(recipe: Recipe, model: Path, texts: Sequence[str], beam: int) -> list[str]:
    """Return unchecked translations of lines, made by several processes."""
    folder, processes = recipe.path("parts"), recipe.processes
    folder.mkdir(exist_ok=True)
    running = []
    for part in range(processes):
        given, made = folder / f"{part}.in", folder / f"{part}.out"
        write(given, texts[part::processes])
        options = ["--lines", "--raw", "--beam", str(beam), "--window", "60000", "--force"]
        command = [sys.executable, "-m", "dragoman", "translate", str(model), str(given)]
        running.append((subprocess.Popen([*command, "--out", str(made), *options]), made))
    result = [""] * len(texts)
    for part, (process, made) in enumerate(running):
        if process.wait():
            raise SystemExit(f"translating with {model} failed")
        result[part::processes] = read(made)
    return result


def is_plausible(source: str, target: str) -> bool:
    """Return whether a machine's translation may be learned from, by its length in bytes."""
    shorter, longer = sorted((len(source.encode()), len(target.encode())))
    return bool(shorter) and longer <= 2.2 * shorter + 20


def make_tokenizer(recipe: Recipe) -> Path:
    """Learn the pieces, unless a tokeniser is given or made already."""
    found = recipe.tokenizer or recipe.path("tokenizer")
    if not found.exists():
        mono = sorted(recipe.corpus.glob("mono.*"))
        more = [option for file in mono for option in ("--add", file, "--add", file)]
        settings = ["tokenizer.character_coverage=0.99999", f'tokenizer.symbols=["{MARK}"]']
        dragoman(
            *("tokenizer", "train", *recipe.pair("corpus", recipe.corpus), *more, "--out", found),
            *("--preset", HERE / "teacher.toml"),
            *(word for setting in settings for word in ("--set", setting)),
        )
    return found


def train(
    recipe: Recipe, name: str, preset: str, pairs: Sequence[tuple[Path, Path]], steps: int
) -> Path:
    """Prepare these pairs and train on them; return the run."""
    run, data = recipe.path(name), recipe.path(f"{name}-data")
    if (run / "model").exists():
        return run
    reverse = name == "back"
    valid = recipe.valid[::-1] if reverse else recipe.valid
    first, *others = [pair[::-1] if reverse else pair for pair in pairs]
    more = [word for pair in others for file in pair for word in ("--add", file)]
    tokenizer = make_tokenizer(recipe)
    if not data.exists():
        dragoman(
            *("prepare", *first, *more, "--out", data, "--tokenizer", tokenizer),
            *("--valid", *valid, "--preset", HERE / preset),
        )
    settings = [f"training.validate_every={steps}", "training.validate_sentences=400"]
    settings += ["training.checkpoint_every=100000", "training.log_every=100"]
    dragoman(
        *("train", data, "--out", run, "--preset", HERE / preset, "--steps", steps),
        *(word for setting in settings for word in ("--set", setting)),
    )
    return run


def back_translate(recipe: Recipe) -> list[tuple[Path, Path]]:
    """Translate monolingual target text to the source language; return the pairs, if any."""
    mono = recipe.corpus / f"mono.{recipe.target}"
    result = recipe.pair("back")
    if not mono.exists():
        return []
    if not result[1].exists():
        corpus, part = recipe.pair("corpus", recipe.corpus), recipe.pair("third")
        for whole, third in zip(corpus, part, strict=True):
            if not third.exists():
                with whole.open(encoding="utf-8") as lines:
                    write(third, [line.rstrip("\n") for line in islice(lines, 0, None, 3)])
        model = train(recipe, "back", "teacher.toml", [part], recipe.back_steps)
        texts = read(mono)
        found = translate(recipe, model, texts, beam=1)
        kept = [pair for pair in zip(found, texts, strict=True) if is_plausible(*pair)]
        write(result[0], [f"{MARK} {source}" for source, _ in kept])
        write(result[1], [target for _, target in kept])
    return [result]


def distil(recipe: Recipe, teacher: Path) -> list[tuple[Path, Path]]:
    """Translate source text with the teacher; return pairs of that and of short entries."""
    result, short = recipe.pair("distilled"), recipe.pair("short")
    if result[1].exists():
        return [result, short]
    corpus = zip(*map(read, recipe.pair("corpus", recipe.corpus)), strict=True)
    seen: set[str] = set()
    twice, once, entries = [], [], []
    for source, target in corpus:
        if len(source.split()) <= SHORT:
            entries.append((source, target))
        elif source not in seen:
            seen.add(source)
            once.append(source)
        else:  # given twice: text like that to be translated
            twice.append(source)
    chance = random.Random(1)
    wanted = dict.fromkeys(twice)
    rest = [source for source in once if source not in wanted]
    chance.shuffle(rest)
    mono = recipe.corpus / f"mono.{recipe.source}"
    sources = [*(read(mono) if mono.exists() else []), *wanted, *rest][: recipe.sentences]
    chance.shuffle(sources)  # so that the processes end together
    found = translate(recipe, teacher, sources, recipe.beam)
    kept = [pair for pair in zip(sources, found, strict=True) if is_plausible(*pair)]
    write(short[0], [source for source, _ in entries])
    write(short[1], [target for _, target in entries])
    write(result[0], [source for source, _ in kept])
    write(result[1], [target for _, target in kept])
    return [result, short]


def unmark(recipe: Recipe, pairs: Sequence[tuple[Path, Path]]) -> list[tuple[Path, Path]]:
    """Return the back-translated pairs without their mark, as the student learns them."""
    for source, _ in pairs:
        plain = recipe.path(f"plain.{recipe.source}")
        write(plain, [line.removeprefix(f"{MARK} ") for line in read(source)])
        return [(plain, pairs[0][1])]
    return []


def main() -> None:
    """Read the arguments and run the stages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--languages", nargs=2, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--valid", nargs=2, type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--teacher", type=Path, help="a teacher that was trained before")
    parser.add_argument("--back-steps", type=int, default=3700)
    parser.add_argument("--teacher-steps", type=int, default=22_000)
    parser.add_argument("--student-steps", type=int, default=20_000)
    parser.add_argument("--sentences", type=int, default=1_500_000, help="that the teacher does")
    parser.add_argument("--beam", type=int, default=4, help="of the teacher's translations")
    parser.add_argument("--processes", type=int, default=6, help="that translate at a time")
    stages = ("back", "teacher", "distilled", "model")
    parser.add_argument("--until", choices=stages, default="model", help="end after this stage")
    values = vars(parser.parse_args())
    until = values.pop("until")
    source, target = values.pop("languages")
    recipe = Recipe(source=source, target=target, **values)
    recipe.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    back = back_translate(recipe)
    if until == "back":
        return
    corpus = recipe.pair("corpus", recipe.corpus)
    teacher = recipe.teacher or train(
        recipe, "teacher", "teacher.toml", [corpus, *back, *back], recipe.teacher_steps
    )
    if until == "teacher":
        return
    pairs = [*distil(recipe, teacher), *unmark(recipe, back)]
    if until == "distilled":
        return
    student = train(recipe, "student", "student.toml", pairs, recipe.student_steps)
    if not recipe.path("model").exists():
        dragoman("quantize", student, "--out", recipe.path("model"))


if __name__ == "__main__":
    main()
