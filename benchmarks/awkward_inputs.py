"""Measure how often a translator says nothing, says the same again and again, or far too much.

    python benchmarks/awkward_inputs.py MODEL --text news.de --count 20000 --json awkward.json

The inputs are what people paste, and what models have not seen in training: single words, titles,
capitals, code, other languages, emoji, sentences of 500 words, the noise of scanners, repeated
words, numbers, addresses, punctuation, and mixtures. They are made from a seed: the same seed and
text give the same inputs. Words and sentences are those of `--text` (any number of files, `.xz` and
`.gz` too), or of a small list of German ones.

Each input is translated twice through the public `Translator`: by search alone (`raw`, with no
least length), and as `dragoman translate` does. A translation is empty if it has no letter and no
digit and its source has one. It loops if something is said four times in a row or more (marks and
numbers seven times), and more than twice as often as in the source. Its length is off if it has
more than 3 times as many characters as its source and 80 more, or less than an eighth, less 10.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.data.readers.parallel import open_text
from dragoman.inference import Translator, load
from dragoman.inference.fault_detection import find_repetitions, split_tokens

WORDS_TEXT = """
Haus Hund Katze Baum Straße Schule Lehrerin Arbeit Zeit Jahr Tag Nacht Stadt Land Wasser Brot Auto
Fahrrad Zug Bahnhof Flughafen Rechnung Vertrag Versicherung Geschwindigkeitsbegrenzung Arzt Freiheit
Krankenhaus Apotheke Regierung Bundeskanzler Wahl Gesetz Frage Antwort Problem Lösung zwei drei elf
gehen kommen sehen hören sagen machen arbeiten schlafen essen trinken öffnen schließen vergessen
schön groß klein alt neu rot blau schnell langsam wichtig möglich öffentlich wirtschaftlich müde
heute morgen gestern immer nie vielleicht leider trotzdem deshalb übrigens nämlich doch ja nein
Übersetzung Äpfel Öl Fuß Grüße Donaudampfschifffahrtsgesellschaft Kündigungsschreiben Datenschutz
"""
WORDS = WORDS_TEXT.split()
SENTENCES = """
Der Hund schläft unter dem Tisch.
Wir haben gestern lange über die neue Regelung gesprochen, aber keine Lösung gefunden.
Können Sie mir bitte sagen, wo der Bahnhof ist?
Die Regierung hat angekündigt, die Steuern im nächsten Jahr zu senken.
Sie arbeitet seit drei Jahren in einem Krankenhaus in Hamburg.
Obwohl es regnete, gingen die Kinder ohne Jacke in die Schule.
""".strip().splitlines()
FOREIGN = (
    """
나는 내일 서울에 갈 거예요.|오늘 날씨가 정말 좋네요 ㅋㅋㅋㅋㅋ|회의는 오후 세 시에 시작합니다.
今天天气很好，我们去公园吧。|明日の会議は十時からです。|Где находится ближайшая станция метро?
Où est la gare, s'il vous plaît ?|¿Cuánto cuesta este libro?|Il gatto dorme sul divano.
Kde je nejbližší nádraží?|İstanbul'da hava nasıl?|Đây là một câu tiếng Việt.|שלום עולם|مرحبا بالعالم
The quick brown fox jumps over the lazy dog.|Please restart your computer.|Hvor er toalettet?
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
EMOJI_TEXT = "😀 😂 ❤️ 🎉 👍🏽 🙏 😭 🔥 👨‍👩‍👧‍👦 🇩🇪 ☀️ ✅ ❓ 🤷‍♀️ 💯"
EMOJI = EMOJI_TEXT.split()
CODE = (
    """
for (int i = 0; i < n; i++) { sum += a[i]; }|SELECT name, age FROM users WHERE id = 42;
def f(x):  return x ** 2 if x else None|git commit -m "fix: typo" && git push origin main
<div class="box"><a href="#top">oben</a></div>|{"name": "Müller", "tags": ["a", "b"]}
std::vector<int> v{1, 2, 3};|npm ERR! code E404|0xDEADBEEF|x = y == z ? a : b|%s: %d von %d
Traceback (most recent call last): File "a.py", line 3, in <module>|sudo apt-get install -y libxml2
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
LAUGHTER = ("ha", "haha", "hihi", "la", "bla", "ㅋㅋ", "no", "ja", "sehr", "nein", "hm", "wow")

Make = Callable[["Inputs"], str]


class Inputs:
    """Make inputs of every kind from a seed, words and sentences."""

    def __init__(self, seed: int, words: Sequence[str], sentences: Sequence[str]) -> None:
        self.draw = random.Random(seed)
        self.words, self.sentences = words, sentences

    def some_words(self, least: int, most: int) -> list[str]:
        """Return so many words that stand beside each other by chance."""
        return [self.draw.choice(self.words) for _ in range(self.draw.randint(least, most))]

    def sentence(self) -> str:
        """Return a sentence."""
        return self.draw.choice(self.sentences)

    def word(self) -> str:
        """Return a word, in one of the ways that people type one."""
        [word] = self.some_words(1, 1)
        change = self.draw.choice((str, str, str.lower, str.title, lambda one: one + "."))
        return change(word)

    def title(self) -> str:
        """Return a few words as a heading has them."""
        words = self.some_words(2, 6)
        lead = self.draw.choice(("", "", "", "1. ", "Kapitel 3: ", "2.4 ", "• "))
        return lead + " ".join(word.title() for word in words)

    def capitals(self) -> str:
        """Return a sentence or a few words in capitals."""
        return (
            self.sentence() if self.draw.random() < 0.6 else " ".join(self.some_words(1, 5))
        ).upper()

    def code(self) -> str:
        """Return a line of code, perhaps with words around it."""
        line = self.draw.choice(CODE)
        return line if self.draw.random() < 0.5 else f"{self.word()} `{line}` {self.word()}"

    def foreign(self) -> str:
        """Return a sentence of another language, or a mixture."""
        line = self.draw.choice(FOREIGN)
        return line if self.draw.random() < 0.7 else f"{line} {self.sentence()}"

    def emoji(self) -> str:
        """Return emoji, alone or at the end of a sentence."""
        marks = "".join(self.draw.choice(EMOJI) for _ in range(self.draw.randint(1, 8)))
        return marks if self.draw.random() < 0.3 else f"{self.sentence()} {marks}"

    def endless(self) -> str:
        """Return a sentence of about 500 words."""
        parts: list[str] = []
        while sum(map(len, (part.split() for part in parts))) < 500:
            parts.append(self.sentence().rstrip(".!?"))
        joint = self.draw.choice((", ", " und ", " ", "; "))
        return joint.join(parts) + "."

    def scanned(self) -> str:
        """Return a sentence as a scanner misreads it."""
        letters = list(self.sentence())
        swaps = {"l": "1", "o": "0", "m": "rn", "e": "c", "ü": "ii", "ß": "B", "S": "5", "i": "í"}
        for place, letter in enumerate(letters):
            chance = self.draw.random()
            if chance < 0.08:
                letters[place] = swaps.get(letter, letter)
            elif chance < 0.11:
                letters[place] = letter + self.draw.choice((" ", "-", "·", "|", "~", "¬"))
            elif chance < 0.13:
                letters[place] = ""
        return "".join(letters)

    def repeated(self) -> str:
        """Return something said many times."""
        times = self.draw.randint(2, 40)
        what = self.draw.choice((*LAUGHTER, self.word(), " ".join(self.some_words(2, 3))))
        joint = self.draw.choice((" ", " ", ", ", "", "! "))
        row = joint.join([what] * times)
        return row if self.draw.random() < 0.5 else f"{self.sentence()} {row}"

    def number(self) -> str:
        """Return numbers, dates, amounts and the like."""
        draw = self.draw
        kinds = (
            f"{draw.randint(1, 10 ** draw.randint(1, 12))}",
            f"{draw.uniform(0, 9999):.2f} €".replace(".", ","),
            f"{draw.randint(1, 28)}.{draw.randint(1, 12)}.{draw.randint(1900, 2030)}",
            f"{draw.randint(0, 23)}:{draw.randint(0, 59):02} Uhr",
            f"DE{draw.randint(10, 99)} {' '.join(str(draw.randint(1000, 9999)) for _ in range(5))}",
            " ".join(str(draw.randint(0, 99)) for _ in range(draw.randint(2, 30))),
            f"+49 {draw.randint(30, 999)} {draw.randint(10**5, 10**8)}",
            "\t".join(f"{draw.uniform(0, 10):.3f}" for _ in range(draw.randint(2, 12))),
        )
        return draw.choice(kinds)

    def address(self) -> str:
        """Return an address of the web or of mail, alone or in a sentence."""
        name = "".join(self.draw.choices("abcdefghijklmnopqrstuvwxyz0123456789-_", k=12))
        path = "/".join(self.some_words(0, 3)).lower()
        kinds = (
            f"https://www.{name}.de/{path}?q={name}#x",
            f"{name}@example.org",
            f"C:\\{name}\\{path}",
        )
        one = self.draw.choice(kinds)
        return one if self.draw.random() < 0.5 else f"{self.word()}: {one} – {self.sentence()}"

    def marks(self) -> str:
        """Return punctuation alone."""
        alphabet = (
            "...",
            "!",
            "?",
            "-",
            "–",
            ",",
            ";",
            "*",
            "#",
            "=",
            "_",
            "|",
            '"',
            "„",
            "“",
            "§",
        )
        one = self.draw.choice(alphabet)
        if self.draw.random() < 0.5:
            return one * self.draw.randint(1, 40)
        return "".join(self.draw.choice(alphabet) for _ in range(self.draw.randint(1, 12)))

    def mixed(self) -> str:
        """Return two or three kinds after each other."""
        kinds = [one for name, one in KINDS.items() if name not in ("mixed", "endless")]
        return " ".join(self.draw.choice(kinds)(self) for _ in range(self.draw.randint(2, 3)))


KINDS: dict[str, Make] = {
    "word": Inputs.word,
    "title": Inputs.title,
    "capitals": Inputs.capitals,
    "code": Inputs.code,
    "foreign": Inputs.foreign,
    "emoji": Inputs.emoji,
    "endless": Inputs.endless,
    "scanned": Inputs.scanned,
    "repeated": Inputs.repeated,
    "number": Inputs.number,
    "address": Inputs.address,
    "marks": Inputs.marks,
    "mixed": Inputs.mixed,
}
SHARES = {"word": 4, "endless": 0.1, "marks": 0.5, "repeated": 1.5}
"""A kind has so many times the inputs of another."""


def make_inputs(
    count: int, seed: int, words: Sequence[str], sentences: Sequence[str]
) -> list[tuple[str, str]]:
    """Return so many inputs, each with its kind."""
    inputs = Inputs(seed, words, sentences)
    shares = [SHARES.get(kind, 1) for kind in KINDS]
    kinds = inputs.draw.choices(list(KINDS), shares, k=count)
    return [(kind, KINDS[kind](inputs)) for kind in kinds]


def has_words(text: str) -> bool:
    """Return whether there is a letter or a digit."""
    return any(character.isalnum() for character in text)


def times_in_a_row(text: str) -> tuple[float, float]:
    """Return how often the same words or letters stand in a row, and the same marks or numbers."""
    rows = find_repetitions(split_tokens(text))
    inside = [row for word in text.split() if len(word) >= 8 for row in find_repetitions(word)]
    rows += [row for row in inside if row.end - row.start >= 8]
    words = [row.times for row in rows if row.has_letters]
    return max([1.0, *words]), max([1.0, *(row.times for row in rows if not row.has_letters)])


def faults(source: str, text: str) -> list[str]:
    """Return what is wrong with a translation."""
    found = []
    if has_words(source) and not has_words(text):
        found.append("empty")
    words, marks = times_in_a_row(text)
    source_words, source_marks = times_in_a_row(source)
    # Where words are repeated, the marks between them are.
    allowed = 2 * max(source_words, source_marks)
    if (words >= 4 and words > 2 * source_words) or (marks >= 7 and marks > allowed):
        found.append("looping")
    if len(text) > 3 * len(source) + 80 or len(text) < len(source) / 8 - 10:
        found.append("length")
    return found


def measure(
    name: str,
    inputs: Sequence[tuple[str, str]],
    translate: Callable[[list[str]], list[str]],
    examples: int,
) -> dict[str, object]:
    """Translate all inputs one way, and count the faults of each kind."""
    begin = time.perf_counter()
    texts: list[str] = []
    for first in range(0, len(inputs), 500):
        texts += translate([text for _, text in inputs[first : first + 500]])
        print(f"\r{name}: {len(texts)} of {len(inputs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    counts: Counter[str] = Counter()
    by_kind: dict[str, Counter[str]] = {}
    shown: Counter[str] = Counter()
    for (kind, source), text in zip(inputs, texts, strict=True):
        for fault in faults(source, text):
            counts[fault] += 1
            by_kind.setdefault(kind, Counter())[fault] += 1
            shown[fault] += 1
            if shown[fault] <= examples:
                print(f"  {fault} ({kind}): {source[:90]!r} → {text[:140]!r}", file=sys.stderr)
    return {
        "name": name,
        "inputs": len(inputs),
        "seconds": round(time.perf_counter() - begin, 1),
        **{fault: counts[fault] for fault in ("empty", "looping", "length")},
        "by kind": {kind: dict(one) for kind, one in sorted(by_kind.items())},
    }


def translate_plainly(translator: Translator) -> Callable[[list[str]], list[str]]:
    """Return what translates by search alone."""
    return lambda texts: [one.text for one in translator.translate(texts, raw=True, min_length=0)]


def translate_checked(translator: Translator) -> Callable[[list[str]], list[str]]:
    """Return what translates as the command does."""
    return lambda texts: [one.text for one in translator.translate(texts)]


def read_text(files: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Return the words and the sentences of some files."""
    sentences = [line.strip() for file in files for line in open_text(file) if line.strip()]
    words = sorted({word.strip(".,;:!?()\"'„“") for line in sentences for word in line.split()})
    return [word for word in words if word], sentences


def main() -> None:
    """Read the arguments, measure both ways, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", type=Path, action="append", default=[])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=5, help="show so many of each fault")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    words, sentences = read_text(arguments.text) if arguments.text else (WORDS, SENTENCES)
    inputs = make_inputs(arguments.count, arguments.seed, words, sentences)
    translator = load(arguments.model)
    rows = [
        measure("search alone", inputs, translate_plainly(translator), arguments.examples),
        measure("as translated", inputs, translate_checked(translator), arguments.examples),
    ]
    print(f"{'':14} {'inputs':>8} {'empty':>8} {'looping':>8} {'length':>8} {'seconds':>8}")
    for row in rows:
        figures = (row[key] for key in ("inputs", "empty", "looping", "length", "seconds"))
        print(f"{row['name']:14} " + " ".join(f"{figure:>8}" for figure in figures))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    main()
