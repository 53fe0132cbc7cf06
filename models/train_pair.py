"""Train the two translators of a pair of languages: teachers, and the students given away.

    python models/train_pair.py CORPUS OUT --languages en ko --valid dev.en dev.ko

CORPUS is what build_corpus.py made. Below, the languages are en and ko; each stage is a command of
Dragoman or a file of text, and is not repeated if its result is there:

    tokenizer       pieces of both languages
    first.ko-en     learns from the corpus alone, and translates mono.ko
    teacher.en-ko   learns from the corpus and, marked and twice, from those translations; it
                    translates mono.en
    teacher.ko-en   goes on from first.ko-en with the corpus and those translations
    distilled.*     the teachers' translations of source text
    student.*       learn from them, from short entries, and from the translations of the reverse
    model.*         the students in int8

Translating keeps the processors busy and the GPU half idle, so that a teacher's translations are
made while the next model is trained. On an H200 a base teacher makes 41 steps a second, and a
student 95. ``--until first`` ends early, so that what the rest needs can be brought meanwhile.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from korean_style import formal

HERE = Path(__file__).resolve().parent
MARK = "<bt>"
"""Sources that a model has written begin with this piece, so that people's are told apart."""
SHORT = 3
"""Entries of at most so many words are learned as they are: a teacher translates words badly."""
STYLES = {"ko": formal}
"""What is done to text of a language before a model learns to write like it."""

Texts = tuple[Path, Path]
"""A file of source text, and one of its translations."""


@dataclass(frozen=True)
class Steps:
    """Hold how long each kind of model is trained."""

    first: int
    teacher: int
    other_teacher: int
    student: int
    other_student: int
    end: float
    """The time by which the last student is to be trained, if need be for fewer steps."""

    def of_last_student(self) -> int:
        """Return how many steps the last student has, 85 a second in the time that is left."""
        return max(1000, min(self.other_student, int(85 * (self.end - time.time() - 50))))


@dataclass(frozen=True)
class Direction:
    """Hold the stages of one direction; the results are files and directories in `out`."""

    corpus: Path
    out: Path
    source: str
    target: str
    valid: Texts
    sentences: int
    processes: int

    @property
    def name(self) -> str:
        """Return the languages, as in en-ko."""
        return f"{self.source}-{self.target}"

    def files(self, stem: str) -> Texts:
        """Return the files of source and target that a stage of this direction makes."""
        source, target = (self.out / f"{stem}.{self.name}.{code}" for code in self.languages)
        return source, target

    @property
    def languages(self) -> tuple[str, str]:
        """Return the language of the source and of the target."""
        return self.source, self.target

    def read_corpus(self) -> list[tuple[str, str]]:
        """Return the pairs of the corpus, written as this direction is to write."""
        source, target = (read(self.corpus / f"corpus.{language}") for language in self.languages)
        return list(zip(source, map(self.style, target), strict=True))

    def style(self, text: str) -> str:
        """Return a text of the target language as it is to be written."""
        change = STYLES.get(self.target)
        return text if change is None else change(text)

    # --- stages ---

    def write_corpus(self) -> Texts:
        """Write the corpus as this direction learns it."""
        files = self.files("corpus")
        if not files[1].exists():
            write_pairs(files, self.read_corpus())
        return files

    def train(
        self,
        name: str,
        preset: str,
        texts: Sequence[Texts],
        steps: int,
        start_from: Path | None = None,
    ) -> Path:
        """Prepare these texts and train on them; return the run."""
        run, data = self.out / f"{name}.{self.name}", self.out / f"{name}-data.{self.name}"
        if (run / "model").exists():
            return run
        first, *others = texts
        more = [word for files in others for file in files for word in ("--add", file)]
        if not data.exists():
            dragoman(
                *("prepare", *first, *more, "--out", data, "--tokenizer", self.out / "tokenizer"),
                *("--valid", *self.valid, "--preset", HERE / preset),
                *("--languages", ",".join(self.languages)),
            )
        settings = [f"training.validate_every={steps}", "training.validate_sentences=400"]
        settings += ["training.checkpoint_every=100000", "training.log_every=200"]
        dragoman(
            *("train", data, "--out", run, "--preset", HERE / preset, "--steps", steps),
            *(word for setting in settings for word in ("--set", setting)),
            *(("--from", start_from) if start_from else ()),
        )
        return run

    def translate(self, model: Path, texts: Sequence[str], beam: int) -> list[str]:
        """Return unchecked translations of lines, made by several processes."""
        folder = self.out / f"parts.{self.name}"
        folder.mkdir(exist_ok=True)
        running = []
        for part in range(self.processes):
            given, made = folder / f"{part}.in", folder / f"{part}.out"
            write(given, texts[part :: self.processes])
            options = ["--lines", "--raw", "--beam", str(beam), "--window", "60000", "--force"]
            command = [sys.executable, "-m", "dragoman", "translate", str(model), str(given)]
            running.append((subprocess.Popen([*command, "--out", str(made), *options]), made))
        result = [""] * len(texts)
        for part, (process, made) in enumerate(running):
            if process.wait():
                raise SystemExit(f"translating with {model} failed")
            result[part :: self.processes] = read(made)
        return result

    def translate_mono(self, model: Path, beam: int) -> Texts | None:
        """Translate monolingual text of the source language, if there is any."""
        mono, files = self.corpus / f"mono.{self.source}", self.files("mono")
        if not mono.exists():
            return None
        if not files[1].exists():
            texts = read(mono)
            begin = time.monotonic()
            found = self.translate(model, texts, beam)
            print(f"{time.monotonic() - begin:.0f} s: {len(texts):,} translated", flush=True)
            write_pairs(files, filter(is_plausible, zip(texts, found, strict=True)))
        return files

    def distil(self, teacher: Path, more: Sequence[Path] = ()) -> list[Texts]:
        """Translate the corpus and more with the teacher; return that, and short entries."""
        files, short = self.files("distilled"), self.files("short")
        if files[1].exists():
            return [files, short]
        seen: set[str] = set()
        twice, once, entries = {}, [], []
        for source, target in self.read_corpus():
            if len(source.split()) <= SHORT:
                entries.append((source, target))
            elif source not in seen:
                seen.add(source)
                once.append(source)
            else:  # given twice: text like that to be translated
                twice[source] = None
        chance = random.Random(1)
        rest = [source for source in once if source not in twice]
        chance.shuffle(rest)
        general = [text for file in more if file.exists() for text in read(file)]
        sources = [*general, *twice, *rest][: self.sentences]
        chance.shuffle(sources)  # so that the processes end together
        found = self.translate(teacher, sources, beam=4)
        write_pairs(short, entries)
        write_pairs(files, filter(is_plausible, zip(sources, found, strict=True)))
        return [files, short]


def reverse_of(direction: Direction, mono: Texts | None, *, mark: bool) -> list[Texts]:
    """Return translations of the other direction as pairs of this one, the source marked or not."""
    if mono is None:
        return []
    files = direction.files("marked" if mark else "back")
    if not files[1].exists():
        targets, sources = map(read, mono)
        begin = f"{MARK} " if mark else ""
        pairs = zip(sources, targets, strict=True)
        write_pairs(files, ((begin + source, direction.style(text)) for source, text in pairs))
    return [files]


def dragoman(*arguments: object) -> None:
    """Run a command of Dragoman, and stop if it fails."""
    words = [str(argument) for argument in arguments]
    begin = time.monotonic()
    subprocess.run([sys.executable, "-m", "dragoman", *words], check=True)
    print(f"{time.monotonic() - begin:.0f} s: dragoman {words[0]} {words[1]}", flush=True)


def read(path: Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file that appears when it is complete."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    unfinished.replace(path)


def write_pairs(files: Texts, pairs: Iterable[tuple[str, str]]) -> None:
    """Write sources and targets to a file each."""
    found = list(pairs)
    write(files[0], [source for source, _ in found])
    write(files[1], [target for _, target in found])


def is_plausible(pair: tuple[str, str]) -> bool:
    """Return whether a machine's translation may be learned from, by its length in bytes."""
    shorter, longer = sorted(len(text.encode()) for text in pair)
    return bool(shorter) and longer <= 2.2 * shorter + 20


def make_tokenizer(corpus: Path, out: Path, languages: Sequence[str]) -> None:
    """Learn the pieces of both languages, unless that is done."""
    if (out / "tokenizer").exists():
        return
    mono = sorted(corpus.glob("mono.*"))
    more = [option for file in mono for option in ("--add", file, "--add", file)]
    settings = ["tokenizer.character_coverage=0.99995", f'tokenizer.symbols=["{MARK}"]']
    dragoman(
        *("tokenizer", "train", *(corpus / f"corpus.{language}" for language in languages)),
        *(*more, "--out", out / "tokenizer", "--preset", HERE / "teacher.toml"),
        *(word for setting in settings for word in ("--set", setting)),
    )


def finish(direction: Direction, student: Path) -> None:
    """Write a student in int8."""
    model = direction.out / f"model.{direction.name}"
    if not model.exists():
        dragoman("quantize", student, "--out", model)


def train_first(back: Direction, steps: Steps) -> Path:
    """Train the model that translates monolingual text for the first teacher."""
    return back.train("first", "teacher.toml", [back.write_corpus()], steps.first)


def run_stages(there: Direction, back: Direction, steps: Steps) -> None:
    """Train both directions, the first named one first."""
    corpus = {direction: direction.write_corpus() for direction in (back, there)}
    first = train_first(back, steps)
    mono_back = back.translate_mono(first, beam=1)
    marked = reverse_of(there, mono_back, mark=True)
    teacher = there.train(
        "teacher", "teacher.toml", [corpus[there], *marked, *marked], steps.teacher
    )
    mono_there = there.translate_mono(teacher, beam=4)
    marked = reverse_of(back, mono_there, mark=True)
    with ThreadPoolExecutor() as beside:
        distilling = beside.submit(there.distil, teacher)
        other_teacher = back.train(
            *("teacher", "teacher.toml", [corpus[back], *marked], steps.other_teacher),
            start_from=first,
        )
        own = [mono_there] if mono_there else []
        texts = [*distilling.result(), *own, *reverse_of(there, mono_back, mark=False)]
        more = [back.corpus / f"{kind}.{back.source}" for kind in ("mono", "talk")]
        distilling = beside.submit(back.distil, other_teacher, more)
        finish(there, there.train("student", "student.toml", texts, steps.student))
        texts = [*distilling.result(), *reverse_of(back, mono_there, mark=False)]
    finish(back, back.train("student", "student.toml", texts, steps.of_last_student()))


def main() -> None:
    """Read the arguments and run the stages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--languages", nargs=2, required=True)
    parser.add_argument("--valid", nargs=2, type=Path, required=True)
    parser.add_argument("--first-steps", type=int, default=5500)
    parser.add_argument("--teacher-steps", type=int, default=15_500)
    parser.add_argument("--other-teacher-steps", type=int, default=10_000)
    parser.add_argument("--student-steps", type=int, default=16_000)
    parser.add_argument("--other-student-steps", type=int, default=16_000)
    parser.add_argument("--minutes", type=float, default=1e6, help="by when all is to be done")
    parser.add_argument("--until", choices=("first", "model"), default="model")
    parser.add_argument("--sentences", type=int, default=1_300_000, help="that a teacher does")
    parser.add_argument("--processes", type=int, default=6, help="that translate at a time")
    values = parser.parse_args()
    values.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    make_tokenizer(values.corpus, values.out, values.languages)
    shared = {"sentences": values.sentences, "processes": values.processes}
    one, other = values.languages
    there = Direction(values.corpus, values.out, one, other, tuple(values.valid), **shared)
    back = Direction(values.corpus, values.out, other, one, tuple(values.valid[::-1]), **shared)
    steps = Steps(
        values.first_steps,
        values.teacher_steps,
        values.other_teacher_steps,
        values.student_steps,
        values.other_student_steps,
        time.time() + 60 * values.minutes,
    )
    if values.until == "first":
        train_first(back, steps)
    else:
        run_stages(there, back, steps)


if __name__ == "__main__":
    main()
