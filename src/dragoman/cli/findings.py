"""Faults found in translations become messages while they are made, and a report at the end."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.console import open_output, print_message
from dragoman.messages import counted

if TYPE_CHECKING:
    from dragoman.inference import Translation, Translator

JUDGED_CHARACTERS: Final = 2000
"""So much of an input is enough to tell its language."""


class Findings:
    """Count what was found wrong with translations, and tell the user what matters."""

    def __init__(
        self,
        translator: Translator,
        report: Path | None,
        flag_below: float | None,
        *,
        check_language: bool = True,
    ) -> None:
        self._languages = translator.config.data.languages if check_language else ()
        self._report, self._flag_below = report, flag_below
        self._counts: Counter[tuple[str, bool]] = Counter()
        self._details: list[dict[str, Any]] = []
        self._lines = self._flagged = 0
        self._unjudged: dict[str, str] = {}
        """This is the beginning of each input whose language has not been judged yet."""
        self._judged: set[str] = set()

    def add(self, found: Translation, line: int = 1, where: Path | None = None) -> None:
        """Note a translation that began on this line of the input, or stood in this file."""
        self._lines += sum(1 for one in found.source.splitlines() if one.strip())
        for number, sentence in _locate_sentences(found, line):
            place = f"line {number}" if where is None else f"{where}"
            self._add_issues(sentence, place)
            if self._is_doubtful(sentence):
                self._flagged += 1
                text = _shorten(sentence.text)
                print_message(f"{place}: confidence {sentence.confidence:.2f}: {text}")
        name = "" if where is None else f"{where}: "
        if self._languages and name not in self._judged:
            self._unjudged[name] = f"{self._unjudged.get(name, '')}{found.source}\n"
            if len(self._unjudged[name]) >= JUDGED_CHARACTERS:
                self._judge_language(name)

    def flag(self, found: Translation) -> dict[str, bool]:
        """Return what JSON says of a translation if a sentence of it has little confidence."""
        doubtful = any(map(self._is_doubtful, found.sentences or (found,)))
        return {"flagged": True} if doubtful else {}

    def finish(self) -> None:
        """Write the report, and say what could not be mended."""
        sys.stdout.flush()  # judging a language takes a moment
        for name in list(self._unjudged):
            self._judge_language(name)
        if lost := self._counts["item", False]:
            some = counted(lost, "number or other item", "numbers or other items")
            print_message(f"{some} may not have come through; --report FILE names them")
        if self._report is not None:
            self._write_report(self._report)

    def _is_doubtful(self, sentence: Translation) -> bool:
        if self._flag_below is None or sentence.confidence is None:
            return False
        return sentence.confidence < self._flag_below

    def _add_issues(self, sentence: Translation, place: str) -> None:
        for issue in sentence.issues:
            self._counts[issue.kind, issue.repaired] += 1
            if self._report is not None:
                self._details.append({"where": place, **issue.to_dict()})

    def _write_report(self, path: Path) -> None:
        table = {
            "lines": self._lines,
            "flagged": self._flagged,
            "issues": {
                kind: {
                    "found": self._counts[kind, True] + self._counts[kind, False],
                    "repaired": self._counts[kind, True],
                }
                for kind in sorted({kind for kind, _ in self._counts})
            },
            "details": self._details,
        }
        text = json.dumps(table, ensure_ascii=False, indent=2)
        if str(path) == "-":
            print(text, file=sys.stderr)
        else:
            with open_output(path) as file:
                file.write(text + "\n")

    def _judge_language(self, name: str) -> None:
        """Say once for each input that it is in another language than the model translates from."""
        from dragoman.text.languages import language_name
        from dragoman.text.wrong_language import find_other_language

        self._judged.add(name)
        other = find_other_language(self._unjudged.pop(name), self._languages[0])
        if other is not None:
            self._counts["language", False] += 1
            print_message(
                f"{name}this seems to be {language_name(other)}, but the model translates from "
                f"{language_name(self._languages[0])}"
            )


def _locate_sentences(found: Translation, line: int) -> Iterator[tuple[int, Translation]]:
    """Yield the sentences of a text with the lines they begin on, if the text begins on `line`."""
    place = 0
    for sentence in found.sentences or (found,):
        for word in sentence.source.split()[:1]:
            place = max(place, found.source.find(word, place))
        yield line + found.source.count("\n", 0, place), sentence
        place += 1


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:60]}…"
