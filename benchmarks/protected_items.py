"""Measure what protection keeps, what it costs, and whether it harms ordinary translations.

    python benchmarks/protected_items.py MODEL --sentences 5000 \
        --text newstest2013.de newstest2013.en --text europarl-dev.de europarl-dev.en

Sentences are generated from templates in German and English, with every kind of item that is
protected: one to four in a sentence, drawn with a seed. Each has a translation with the same items,
so that BLEU says what happens to the words around them. An item is intact if it is in the output as
it was; a number, an amount or a percentage, if the target language's spelling of the same value is.
Then ordinary text is translated with and without protection: BLEU, sentences a second of
CPU time (set OMP_NUM_THREADS=1), and the sentences that changed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dragoman.data.readers.parallel import open_text
from dragoman.evaluation.metrics import bleu
from dragoman.inference import Translation, load

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = {
    "de": "haus seite bericht daten anhang kunde preis suche hilfe termin antrag konto",
    "en": "house page report data appendix client price search help schedule form account",
}
EMOJI = "😀 ❤️ 🎉 👍🏽 👨‍👩‍👧 🇩🇪 🚀 😂😂 ☕ ✅ 🏳️‍🌈 1️⃣ 🤷‍♀️"
FOREIGN = "Nguyễn Москва Αθήνα 東京 서울 Дмитрий Łódź İstanbul Ţepeş ไทย Ștefan 北京市 Hồ"
SYMBOLS = "© ™ → { # ★ ✓ ® ⇒ ~"


class Draw:
    """Draw items of every kind for sentences from one language to another."""

    def __init__(self, seed: int, source: str, target: str) -> None:
        self.random = random.Random(seed)
        self.source, self.target = source, target

    def digits(self, count: int) -> str:
        """Return so many digits, the first not 0."""
        rest = (self.random.choice("0123456789") for _ in range(count - 1))
        return self.random.choice("123456789") + "".join(rest)

    def word(self) -> str:
        """Return a word of the source language, which a model may like to translate."""
        return self.random.choice(WORDS[self.source].split())

    def item(self, kind: str) -> tuple[str, tuple[str, ...]]:
        """Return an item of the source, and what may stand for it in the target."""
        made = getattr(self, f"_{kind}")()
        return made if isinstance(made, tuple) else (made, (made,))

    def _pick(self, *several: str) -> str:
        return self.random.choice(several)

    def _url(self) -> str:
        host = self._pick(
            f"www.{self.word()}.com", f"{self.word()}-{self.word()}.org", "example.com"
        )
        path = "/".join(self.word() for _ in range(self.random.randint(0, 3)))
        query = self._pick("", f"?id={self.digits(4)}", f"?q={self.word()}&page={self.digits(1)}")
        return f"{self._pick('https', 'https', 'http')}://{host}/{path}{query}".rstrip("/")

    def _email(self) -> str:
        return f"{self.word()}.{self.word()}@{self.word()}{self._pick('.de', '.com', '.co.uk')}"

    def _path(self) -> str:
        a, b = self.word(), self.word()
        return self._pick(
            f"/usr/local/{a}/{b}.txt", f"C:\\Users\\{a}\\{b}", f"./{a}.sh", f"src/{a}/{b}.c",
            f"~/{a}/{b}.conf", f"../{a}/{b}",
        )  # fmt: skip

    def _placeholder(self) -> str:
        return self._pick(
            "{0}", "{name}", f"{{{self.word()}}}", "{{ user }}", "${x}", "%s", "%(x)s", "%1$s",
            "$HOME", "[[x]]", "%d%%", "{count, plural, one {# file} other {# files}}", ":name",
        )  # fmt: skip

    def _code(self) -> str:
        return self._pick(
            f"`git commit -m {self.word()}`", f"`{self.word()}_{self.word()}()`", "`x == 1`"
        )

    def _name(self) -> str:
        return f"@{self.word()}_{self.digits(2)}"

    def _hashtag(self) -> str:
        return f"#{self.word().title()}{self._pick('', '2024')}"

    def _iban(self) -> str:
        return (
            f"DE{self.digits(2)} "
            + " ".join(self.digits(4) for _ in range(4))
            + f" {self.digits(2)}"
        )

    def _phone(self) -> str:
        return self._pick(
            f"+49 30 {self.digits(7)}", f"+1 {self.digits(3)}-{self.digits(3)}-{self.digits(4)}"
        )

    def _version(self) -> str:
        return self._pick(
            f"v{self.digits(1)}.{self.digits(1)}.{self.digits(2)}",
            f"3.{self.digits(2)}.{self.digits(1)}",
        )

    def _hash(self) -> str:
        raw = "".join(self.random.choice("0123456789abcdef") for _ in range(32))
        sizes = (8, 12, 16, 20)
        cuts = [raw[a:b] for a, b in zip((0, *sizes), (*sizes, 32), strict=True)]
        return self._pick("a9" + raw, "-".join(cuts))

    def _ip(self) -> str:
        return ".".join(str(self.random.randint(1, 254)) for _ in range(4))

    def _timestamp(self) -> str:
        day = f"2024-{self.random.randint(1, 12):02}-{self.random.randint(1, 28):02}"
        clock = f"{self.random.randint(0, 23):02}:{self.random.randint(0, 59):02}:05"
        return self._pick(day, clock, f"{day}T{clock}Z")

    def _product(self) -> str:
        return self._pick(
            f"RTX-{self.digits(4)}",
            f"A{self.digits(1)}-B{self.digits(2)}x",
            f"0x{self.digits(2)}F",
            f"XK-{self.digits(3)}/B",
        )

    def _entity(self) -> str:
        return self._pick("&amp;", "&nbsp;", "&#8212;")

    def _emoji(self) -> str:
        return self._pick(*EMOJI.split())

    def _foreign(self) -> str:
        return self._pick(*FOREIGN.split())

    def _symbol(self) -> str:
        return self._pick(*SYMBOLS.split())

    def _tag(self) -> str:
        return self._pick("b", "i", "a", "strong", "0")

    # --- numbers, each with the spellings that the target language has for it ---

    def _spell(self, whole: str, fraction: str = "") -> tuple[str, tuple[str, ...]]:
        groups = [whole[max(0, end - 3) : end] for end in range(len(whole), 0, -3)][::-1]

        def spell(language: str, group: str | None = None) -> str:
            point = "," if language == "de" else "."
            group = {",": ".", ".": ","}[point] if group is None else group
            return group.join(groups) + (point + fraction if fraction else "")

        spaces = "\u202f", "\u00a0", " "
        allowed = [spell(self.target), *(spell(self.target, one) for one in ("", *spaces))]
        return spell(self.source), tuple(dict.fromkeys(allowed))

    def _amount(self) -> tuple[str, tuple[str, ...]]:
        return self._spell(self.digits(self.random.randint(2, 7)), self.digits(2))

    def _count(self) -> tuple[str, tuple[str, ...]]:
        return self._spell(self.digits(self.random.randint(4, 8)))

    def _share(self) -> tuple[str, tuple[str, ...]]:
        return self._spell(self.digits(self.random.randint(1, 2)), self.digits(1))

    def _minus(self) -> tuple[str, tuple[str, ...]]:
        text, allowed = self._share()
        signs = "−", "-", "–", "minus "
        return f"−{text}", tuple(sign + one for sign in signs for one in allowed)

    def _year(self) -> str:
        return str(self.random.randint(1800, 2030))

    def _number(self) -> str:
        return self.digits(self.random.randint(2, 3))


_LINES = """
Besuchen Sie <url> für weitere Informationen.
Visit <url> for more information.
Die Seite <url> ist leider nicht erreichbar.
The page <url> is unfortunately not available.
Schreiben Sie bitte an <email>.
Please write to <email>.
Meine Adresse ist <email>, meine Nummer <phone>.
My address is <email>, my number <phone>.
Rufen Sie mich unter <phone> an oder besuchen Sie <url>.
Call me at <phone> or visit <url>.
Die Datei <path> wurde nicht gefunden.
The file <path> was not found.
Kopieren Sie <path> nach <path>.
Copy <path> to <path>.
Hallo <placeholder>, willkommen zurück!
Hello <placeholder>, welcome back!
<placeholder> von <placeholder> Dateien wurden gelöscht.
<placeholder> of <placeholder> files were deleted.
Verwenden Sie <code>, um die Änderungen zu speichern.
Use <code> to save the changes.
Der Befehl <code> steht in <path>.
The command <code> is in <path>.
<name> hat gestern <hashtag> erwähnt.
<name> mentioned <hashtag> yesterday.
Vielen Dank, <name>!
Thank you very much, <name>!
Bitte überweisen Sie den Betrag auf das Konto <iban>.
Please transfer the amount to the account <iban>.
Die Version <version> ist am <timestamp> erschienen.
Version <version> was released on <timestamp>.
Der Server <ip> antwortet seit <timestamp> nicht mehr.
The server <ip> has not responded since <timestamp>.
Der Schlüssel lautet <hash>.
The key is <hash>.
Das Modell <product> ist nicht mehr lieferbar.
The model <product> is no longer available.
Das Gerät <product> mit der Version <version> kostet <amount> Euro.
The device <product> with version <version> costs <amount> euros.
Meier <entity> Söhne wurde <year> gegründet.
Meier <entity> Sons was founded in <year>.
Ich freue mich sehr auf das Wochenende <emoji>
I am really looking forward to the weekend <emoji>
Das Essen war gut <emoji>, aber der Service war schlecht <emoji>.
The food was good <emoji>, but the service was bad <emoji>.
<emoji> Herzlichen Glückwunsch zum Geburtstag!
<emoji> Happy birthday!
Herr <foreign> wohnt seit drei Jahren in Berlin.
Mr <foreign> has lived in Berlin for three years.
Das Wort <foreign> steht auf dem Schild.
The word <foreign> is on the sign.
Der Flug nach <foreign> kostet <amount> Euro.
The flight to <foreign> costs <amount> euros.
Das Zeichen <symbol> steht am Anfang der Zeile.
The sign <symbol> is at the beginning of the line.
Klicken Sie <tag>hier</tag>, um fortzufahren.
Click <tag>here</tag> to continue.
Das ist ein <tag>sehr wichtiger</tag> Hinweis.
This is a <tag>very important</tag> note.
Der Preis beträgt <amount> €.
The price is <amount> €.
Sie zahlte <amount> € für das Auto und <amount> € für die Reparatur.
She paid <amount> € for the car and <amount> € for the repair.
In der Stadt leben <count> Menschen.
<count> people live in the city.
Im Jahr <year> waren es noch <count> Einwohner.
In <year> there were still <count> inhabitants.
Der Anteil stieg von <share> % auf <share> %.
The share rose from <share>% to <share>%.
Die Temperatur betrug am Morgen <minus> °C.
The temperature was <minus> °C in the morning.
Auf Seite <number> finden Sie <number> Beispiele.
On page <number> you will find <number> examples.
Von <number> Schülern haben <number> die Prüfung bestanden.
Of <number> students, <number> passed the exam.
Bestellung <product> vom <timestamp>: <number> Stück zu <amount> €.
Order <product> of <timestamp>: <number> pieces at <amount> €.
"""
TEMPLATES = list(zip(_LINES.split("\n")[1:-1:2], _LINES.split("\n")[2::2], strict=True))
"""German and English sentences; <tag>…</tag> is a pair of tags, all others are kinds of items."""


@dataclass(frozen=True)
class Case:
    """Hold a sentence, its translation, and what must be in any translation of it."""

    source: str
    reference: str
    items: tuple[tuple[str, tuple[str, ...]], ...]
    """Each is a kind, and the spellings of which one must be there."""


def generate_cases(count: int, source: str, target: str, seed: int = 1) -> list[Case]:
    """Return so many sentences from one language to the other."""
    draw = Draw(seed, source, target)
    cases = []
    for number in range(count):
        pair = TEMPLATES[number % len(TEMPLATES)]
        texts = list(pair if source == "de" else pair[::-1])
        made: dict[tuple[str, int], tuple[str, tuple[str, ...]]] = {}
        items: list[tuple[str, tuple[str, ...]]] = []
        if "<tag>" in texts[0]:
            tag = draw._tag()
            attributes = ' href="https://example.com/x"' if tag == "a" else ""
            pairs = ("<tag>", f"<{tag}{attributes}>"), ("</tag>", f"</{tag}>")
            for mark, written in pairs:
                texts = [text.replace(mark, written) for text in texts]
                items.append(("tag", (written,)))
        for side, text in enumerate(texts):
            seen: Counter[str] = Counter()
            parts = re.split(r"<([a-z]+)>(?![^<]*</\1>)", text)
            for place in range(1, len(parts), 2):
                kind = parts[place]
                if not hasattr(draw, f"_{kind}"):
                    parts[place] = f"<{kind}>"
                    continue
                seen[kind] += 1
                key = kind, seen[kind]
                if key not in made:
                    made[key] = draw.item(kind)
                    items.append((kind, made[key][1]))
                parts[place] = made[key][0] if side == 0 else made[key][1][0]
            texts[side] = "".join(parts)
        cases.append(Case(texts[0], texts[1], tuple(items)))
    return cases


def count_intact(cases: Sequence[Case], outputs: Sequence[str]) -> dict[str, list[int]]:
    """Return, for each kind, how many items are intact and how many there are."""
    counts: dict[str, list[int]] = {}
    for case, output in zip(cases, outputs, strict=True):
        rest = output
        for kind, spellings in sorted(case.items, key=lambda item: -len(item[1][0])):
            row = counts.setdefault(kind, [0, 0])
            row[1] += 1
            for spelling in sorted(spellings, key=len, reverse=True):
                end = r"(?![\d])" if spelling[-1].isdigit() else ""
                start = r"(?<![\d])" if spelling[0].isdigit() else ""
                found = re.search(start + re.escape(spelling) + end, rest)
                if found:
                    row[0] += 1
                    rest = rest[: found.start()] + "\0" + rest[found.end() :]
                    break
    return counts


def measure(
    ways: dict[str, Callable[[Sequence[str]], list[Translation]]],
    texts: Sequence[str],
    rounds: int = 1,
) -> dict[str, tuple[list[Translation], float]]:
    """Return the translations of each way, and the sentences a second of its fastest round.

    Seconds are of the CPU, so that a busy machine does not matter, and the ways take turns.
    """
    results: dict[str, tuple[list[Translation], float]] = {}
    for _ in range(rounds):
        for name, translate in ways.items():
            start = time.process_time()
            found = translate(texts)
            speed = len(texts) / (time.process_time() - start)
            results[name] = found, max(speed, results.get(name, ([], 0.0))[1])
    return results


def main() -> None:
    """Read the arguments, measure, and print two tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--sentences", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beam", type=int, help="as the model's config says by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--text", nargs=2, action="append", default=[], metavar=("SOURCE", "REFERENCE")
    )
    parser.add_argument("--show", type=int, default=0, help="print so many items that were lost")
    parser.add_argument("--json", type=Path, help="write every sentence and its translations there")
    arguments = parser.parse_args()
    translator = load(arguments.model)
    source, target = translator.config.data.languages or ("", "")
    if {source, target} != {"de", "en"}:
        raise SystemExit(f"{arguments.model} does not translate between German and English")
    options: dict[str, Any] = {} if arguments.beam is None else {"beam": arguments.beam}

    ways: dict[str, Callable[[Sequence[str]], list[Translation]]] = {
        name: partial(translator.translate, **options, lines=True, protect=on)
        for name, on in (("plain", False), ("protected", True))
    }

    for translate in ways.values():  # the first time takes longer
        translate([case.source for case in generate_cases(40, source, target)])
    saved: dict[str, Any] = {}
    cases = generate_cases(arguments.sentences, source, target, arguments.seed)
    found = measure(ways, [case.source for case in cases])
    counts = {
        name: count_intact(cases, [one.text for one in several])
        for name, (several, _) in found.items()
    }
    print(f"{'kind':14}{'items':>7}{'plain':>9}{'protected':>11}")
    totals = {name: [0, 0] for name in counts}
    for kind in sorted(counts["plain"]):
        shares = []
        for name, table in counts.items():
            intact, all_items = table[kind]
            totals[name][0] += intact
            totals[name][1] += all_items
            shares.append(100 * intact / all_items)
        print(f"{kind:14}{counts['plain'][kind][1]:7}{shares[0]:8.2f}%{shares[1]:10.2f}%")
    plain, protected = (100 * totals[n][0] / totals[n][1] for n in ("plain", "protected"))
    print(f"{'all':14}{totals['plain'][1]:7}{plain:8.2f}%{protected:10.2f}%")
    shown = 0
    for case, one in zip(cases, found["protected"][0], strict=True):
        lost = [k for k, (intact, n) in count_intact([case], [one.text]).items() if intact < n]
        if lost and shown < arguments.show:
            shown += 1
            print(f"lost {lost}: {case.source}\n  -> {one.text}\n  {one.issues}")
    columns = "BLEU plain", "protected", "sent./CPU s", "protected", "changed"
    print(f"\n{'text':24}" + "".join(f"{column:>12}" for column in columns))
    sets = [("generated", [c.source for c in cases], [c.reference for c in cases], found)]
    for path, reference in arguments.text:
        texts = list(open_text(path))
        sets.append(
            (
                Path(path).name,
                texts,
                list(open_text(reference)),
                measure(ways, texts, arguments.rounds),
            )
        )
    for title, texts, references, results in sets:
        outputs = {name: [one.text for one in several] for name, (several, _) in results.items()}
        scores = {name: bleu(rows, references, language=target) for name, rows in outputs.items()}
        changed = sum(a != b for a, b in zip(outputs["plain"], outputs["protected"], strict=True))
        print(
            f"{title:24}{scores['plain']:12.2f}{scores['protected']:12.2f}"
            f"{results['plain'][1]:12.1f}{results['protected'][1]:12.1f}{changed:12}"
        )
        saved[title] = [
            {"source": s, "plain": a, "protected": b, "issues": [one.to_dict() for one in o.issues]}
            for s, a, b, o in zip(
                texts, outputs["plain"], outputs["protected"], results["protected"][0], strict=True
            )
        ]
    if arguments.json:
        arguments.json.write_text(json.dumps(saved, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
