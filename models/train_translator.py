"""Train a translator of this directory: a teacher, and the student that is given away.

    python models/train_translator.py CORPUS OUT --languages de en --valid dev.de dev.en

CORPUS is what build_corpus.py made. Below, German is translated into English; each stage is a
command of Dragoman or a file of text, and is not repeated if its result is there:

    tokenizer           pieces of both languages for the teacher, and fewer for the student
    reversed            mono.en in German, by the model that --reverse names
    first               learns from the corpus and, marked, from those translations
    teacher             goes on from it with general text, while the rate falls to 0
    pretrained          a student that learns what the first did, while the teacher translates
    distilled           the teacher's translations of source text
    student             goes on from the pretrained one with them, and with short entries
    model               the student in int8

Translating keeps the processors busy and the GPU half idle, so that the student learns meanwhile.
With ``--formality 0.5`` both learn to address their reader as they are asked to, by tags before so
large a share of the sources; the student also learns what the teacher says when it is asked.
``--until`` ends after a stage, so that what the next one needs can be brought, or made elsewhere.
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

from dragoman.text.formality import formality_of

HERE = Path(__file__).resolve().parent
STAGES = ("tokenizer", "reversed", "teacher", "model")
MARK = "<bt>"
"""Sources that a model has written begin with this piece, so that people's are told apart."""
SHORT = 3
"""Entries of at most so many words are learned as they are: a teacher translates words badly."""
STYLES = {"ko": formal}
"""What is done to text of a language before a model learns to write like it."""
STUDENT_STEPS_A_SECOND = 85
"""What an H200 makes of the student's steps, evaluation and compilation apart."""
ASKED = {"more": "formal", "less": "informal"}
"""What the teacher is asked for, and what is then learned from, where formality is learned."""
ONE_RATE = ("--set", "training.schedule=constant")
"""The settings of a model that another goes on from."""

Texts = tuple[Path, Path]
"""A file of source text, and one of its translations."""


@dataclass(frozen=True)
class Recipe:
    """Hold what is trained, from what, and for how long; the results are in `out`."""

    corpus: Path
    out: Path
    source: str
    target: str
    valid: Texts
    reverse: str | None
    first_steps: int
    teacher_steps: int
    pretraining_minutes: float
    student_steps: int
    end: float
    """The time by which the student is to be trained, if need be for fewer steps."""
    sentences: int
    processes: int
    formality: float = 0.0
    """The share of the sources with tags, where a known formality can be asked for."""

    def files(self, stem: str) -> Texts:
        """Return the files of source and target that a stage makes."""
        return self.out / f"{stem}.{self.source}", self.out / f"{stem}.{self.target}"

    def style(self, text: str) -> str:
        """Return a text of the target language as it is to be written; tags need all its styles."""
        change = None if self.formality else STYLES.get(self.target)
        return text if change is None else change(text)

    def read_corpus(self, name: str = "corpus") -> list[tuple[str, str]]:
        """Return the pairs of the corpus, written as the model is to write."""
        source, target = (
            read(self.corpus / f"{name}.{language}") for language in (self.source, self.target)
        )
        return list(zip(source, map(self.style, target), strict=True))

    # --- stages ---

    def make_tokenizers(self) -> None:
        """Learn the pieces of both languages, for the teacher and for the student."""
        mono = sorted(self.corpus.glob("mono.*"))
        more = [option for file in mono for option in ("--add", file, "--add", file)]
        corpus = [self.corpus / f"corpus.{language}" for language in (self.source, self.target)]
        for name in ("teacher", "student"):
            tokenizer = self.out / f"{name}-tokenizer"
            if tokenizer.exists():
                continue
            settings = ["tokenizer.character_coverage=0.99995"]
            settings += [f'tokenizer.symbols=["{MARK}"]'] if name == "teacher" else []
            settings += [f"data.formality={self.formality}"] if self.formality else []
            dragoman(
                *("tokenizer", "train", *corpus, *more, "--out", tokenizer),
                *("--preset", HERE / f"{name}.toml"),
                *("--languages", f"{self.source},{self.target}"),
                *(word for setting in settings for word in ("--set", setting)),
            )

    def translate_back(self) -> list[Texts]:
        """Translate text of the target language by the reverse model, if there are both."""
        mono, files = self.corpus / f"mono.{self.target}", self.files("reversed")
        if not files[1].exists():
            if self.reverse is None or not mono.exists():
                return []
            targets = read(mono)
            sources = self.translate(self.reverse, targets, beam=1)
            pairs = zip(sources, map(self.style, targets), strict=True)
            write_pairs(files, filter(is_plausible, pairs))
        return [files]

    def mark(self, reverse: Sequence[Texts]) -> list[Texts]:
        """Return the translations of the reverse model with their sources marked."""
        files = self.files("marked")
        if reverse and not files[1].exists():
            sources, targets = map(read, reverse[0])
            write_pairs(files, zip((f"{MARK} {one}" for one in sources), targets, strict=True))
        return [files] if reverse else []

    def write_corpus(self, name: str = "corpus") -> Texts:
        """Write the corpus, or the general part of it, as this direction learns it."""
        files = self.files(name)
        if not files[1].exists():
            write_pairs(files, self.read_corpus(name))
        return files

    def prepare(self, name: str, preset: str, texts: Sequence[Texts]) -> Path:
        """Encode these texts for a model; return the data's directory."""
        data = self.out / f"{name}-data"
        if not data.exists():
            first, *others = texts
            more = [word for files in others for file in files for word in ("--add", file)]
            dragoman(
                *("prepare", *first, *more, "--out", data, "--valid", *self.valid),
                *("--tokenizer", self.out / f"{preset}-tokenizer"),
                *("--preset", HERE / f"{preset}.toml", "--languages"),
                f"{self.source},{self.target}",
                *(("--set", f"data.formality={self.formality}") if self.formality else ()),
            )
        return data

    def train(self, name: str, preset: str, data: Path, steps: int, *options: object) -> Path:
        """Train on prepared data; return the run."""
        run = self.out / name
        if not (run / "model").exists():
            settings = [f"training.validate_every={steps}", "training.validate_sentences=400"]
            settings += ["training.checkpoint_every=100000", "training.log_every=200"]
            dragoman(
                *("train", data, "--out", run, "--preset", HERE / f"{preset}.toml"),
                *("--steps", steps, *options),
                *(word for setting in settings for word in ("--set", setting)),
            )
        return run

    def translate(
        self, model: Path | str, texts: Sequence[str], beam: int, wish: str = "default"
    ) -> list[str]:
        """Return unchecked translations of lines, made by several processes."""
        folder = self.out / "parts"
        folder.mkdir(exist_ok=True)
        begin = time.monotonic()
        running = []
        for part in range(self.processes):
            given, made = folder / f"{part}.in", folder / f"{part}.out"
            write(given, texts[part :: self.processes])
            options = ["--lines", "--raw", "--beam", str(beam), "--window", "60000", "--force"]
            options += ["--formality", wish]
            command = [sys.executable, "-m", "dragoman", "translate", str(model), str(given)]
            running.append((subprocess.Popen([*command, "--out", str(made), *options]), made))
        result = [""] * len(texts)
        for part, (process, made) in enumerate(running):
            if process.wait():
                raise SystemExit(f"translating with {model} failed")
            result[part :: self.processes] = read(made)
        print(f"{time.monotonic() - begin:.0f} s: {len(texts):,} translated", flush=True)
        return result

    def distil(self, teacher: Path) -> list[Texts]:
        """Translate text of the source language with the teacher; return that, and short entries.

        What is translated is text without translations and what the corpus has twice, because it
        is like that; then the rest of the corpus, up to so many sentences.
        """
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
            else:
                twice[source] = None
        chance = random.Random(1)
        rest = [source for source in once if source not in twice]
        chance.shuffle(rest)
        more = [self.corpus / f"{kind}.{self.source}" for kind in ("mono", "talk")]
        general = [text for file in more if file.exists() for text in read(file)]
        sources = [*general, *twice, *rest][: self.sentences]
        chance.shuffle(sources)  # so that the processes end together
        found = self.translate(teacher, sources, beam=4)
        pairs = [*zip(sources, found, strict=True), *self.ask_for_formality(teacher, sources)]
        write_pairs(short, entries)
        write_pairs(files, filter(is_plausible, pairs))
        return [files, short]

    def ask_for_formality(self, teacher: Path, sources: Sequence[str]) -> list[tuple[str, str]]:
        """Return a quarter of the sources with what the teacher says where it is asked and obeys.

        By itself it would say nearly everything in one way.
        """
        some, pairs = sources[: len(sources) // 4], list[tuple[str, str]]()
        for wish, kind in ASKED.items() if self.formality else ():
            found = self.translate(teacher, some, 4, wish)
            both = zip(some, found, strict=True)
            pairs += [pair for pair in both if formality_of(pair[1], self.target) == kind]
        return pairs

    def run(self, until: str) -> None:
        """Go through the stages, up to one of them."""
        self.make_tokenizers()
        if until == "tokenizer":
            return
        reverse = self.translate_back()
        if until == "reversed":
            return
        with ThreadPoolExecutor() as beside:
            marked = self.mark(reverse)
            data = self.prepare("first", "teacher", [self.write_corpus(), *marked])
            general = [self.write_corpus("general"), *marked]
            preparing = [
                beside.submit(self.prepare, "teacher", "teacher", general),
                beside.submit(
                    self.prepare, "pretrained", "student", [self.write_corpus(), *reverse]
                ),
            ]
            first = self.train("first", "teacher", data, self.first_steps, *ONE_RATE)
            teacher = self.train(
                *("teacher", "teacher", preparing[0].result(), self.teacher_steps),
                *("--from", first, "--set", "training.warmup_steps=100"),
            )
            if until == "teacher":
                return
            distilling = beside.submit(self.prepare_distilled, teacher, reverse)
            pretrained = self.train(
                *("pretrained", "student", preparing[1].result(), 100_000, *ONE_RATE),
                *("--set", f"training.minutes={self.pretraining_minutes}"),
            )
            data = distilling.result()
        left = int(STUDENT_STEPS_A_SECOND * (self.end - time.time() - 50))
        steps = min(self.student_steps, max(1000, left))
        student = self.train(
            *("student", "student", data, steps, "--from", pretrained),
            *("--set", "training.warmup_steps=100"),
        )
        model = self.out / "model"
        if not model.exists():
            dragoman("quantize", student, "--out", model)

    def prepare_distilled(self, teacher: Path, reverse: Sequence[Texts]) -> Path:
        """Let the teacher translate, and encode what the student learns from."""
        return self.prepare("student", "student", [*self.distil(teacher), *reverse])


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


def main() -> None:
    """Read the arguments and run the stages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--languages", nargs=2, required=True, help="of the source, of the target")
    parser.add_argument("--valid", nargs=2, type=Path, required=True)
    parser.add_argument("--reverse", help="the model that translates text of the target language")
    parser.add_argument("--first-steps", type=int, default=17_500)
    parser.add_argument("--teacher-steps", type=int, default=7000)
    parser.add_argument("--pretraining-minutes", type=float, default=3.7)
    parser.add_argument("--student-steps", type=int, default=34_000)
    parser.add_argument("--formality", type=float, default=0.0, help="share of tagged sources")
    parser.add_argument("--minutes", type=float, default=1e6, help="by when all is to be done")
    parser.add_argument("--until", choices=STAGES, default="model")
    parser.add_argument("--sentences", type=int, default=2_000_000, help="that the teacher does")
    parser.add_argument("--processes", type=int, default=6, help="that translate at a time")
    values = parser.parse_args()
    values.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    Recipe(
        corpus=values.corpus,
        out=values.out,
        source=values.languages[0],
        target=values.languages[1],
        valid=(values.valid[0], values.valid[1]),
        reverse=values.reverse,
        first_steps=values.first_steps,
        teacher_steps=values.teacher_steps,
        pretraining_minutes=values.pretraining_minutes,
        student_steps=values.student_steps,
        end=time.time() + 60 * values.minutes,
        sentences=values.sentences,
        processes=values.processes,
        formality=values.formality,
    ).run(values.until)


if __name__ == "__main__":
    main()
