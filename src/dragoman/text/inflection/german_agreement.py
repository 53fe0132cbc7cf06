"""The article, adjectives and relative pronoun around a German noun agree with it.

Where a noun of another gender comes in another's place, these change with it: in dem alten Haus,
das … becomes in der alten Hütte, die …
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dragoman.text.inflection.forms import words
from dragoman.text.inflection.german import FUNCTION_WORDS

Case = Literal["n", "a", "d", "g"]
Column = Literal["m", "f", "n", "p"]
Declension = Literal["weak", "mixed", "strong"]
_COLUMNS: Final[tuple[Column, ...]] = ("m", "f", "n", "p")
_CASES: Final[tuple[Case, ...]] = ("n", "a", "d", "g")


def _table(rows: str) -> dict[Case, dict[Column, str]]:
    """Read a declension: a row for each case, in it m, f, n and plural; - is no ending."""
    return {
        case: dict(zip(_COLUMNS, row.replace("-", "").split("|"), strict=True))
        for case, row in zip(_CASES, rows.split(), strict=True)
    }


DEFINITE_ARTICLE: Final = _table("der|die|das|die den|die|das|die dem|der|dem|den des|der|des|der")
RELATIVE_PRONOUN: Final = _table(
    "der|die|das|die den|die|das|die dem|der|dem|denen dessen|deren|dessen|deren"
)
DER_WORD_ENDINGS: Final = _table("er|e|es|e en|e|es|e em|er|em|en es|er|es|er")
EIN_WORD_ENDINGS: Final = _table("-|e|-|e en|e|-|e em|er|em|en es|er|es|er")
ADJECTIVE_ENDINGS: Final[dict[Declension, dict[Case, dict[Column, str]]]] = {
    "weak": _table("e|e|e|en en|e|e|en en|en|en|en en|en|en|en"),
    "mixed": _table("er|e|es|en en|e|es|en en|en|en|en en|en|en|en"),
    "strong": _table("er|e|es|e en|e|es|e em|er|em|en en|er|en|er"),
}
_STEMS: Final[
    tuple[
        tuple[
            Literal["der-word", "ein-word", "quantity"],
            tuple[str, ...],
            dict[Case, dict[Column, str]],
        ],
        ...,
    ]
] = (
    (
        "der-word",
        ("dies", "jed", "jen", "welch", "manch", "solch", "all", "beid"),
        DER_WORD_ENDINGS,
    ),
    (
        "ein-word",
        ("ein", "kein", "mein", "dein", "sein", "ihr", "unser", "euer", "eur"),
        EIN_WORD_ENDINGS,
    ),
    ("quantity", ("viel", "wenig", "einig", "mehrer"), DER_WORD_ENDINGS),
)
_GOVERNED: Final = {
    **dict.fromkeys(words("mit von zu bei aus nach seit außer gegenüber"), "d"),
    **dict.fromkeys(words("für durch ohne gegen um"), "a"),
    **dict.fromkeys(words("in an auf über unter vor hinter neben zwischen"), "ad"),
    **dict.fromkeys(words("wegen während trotz statt innerhalb außerhalb"), "gd"),
}
"""These prepositions govern these cases."""
_OFTEN_CONTRACTED: Final = frozenset({"in", "an", "zu", "von", "bei"})
_CONTRACTIONS: Final = {
    "im": ("in", "dem"), "ins": ("in", "das"), "am": ("an", "dem"), "ans": ("an", "das"),
    "zum": ("zu", "dem"), "zur": ("zu", "der"), "vom": ("von", "dem"), "beim": ("bei", "dem"),
    "fürs": ("für", "das"), "aufs": ("auf", "das"), "ums": ("um", "das"),
    "durchs": ("durch", "das"),
}  # fmt: skip
_CONTRACTED: Final = {pair: short for short, pair in _CONTRACTIONS.items()}
_ENDING: Final = re.compile(r"(?<=[a-zäöüß]{2})(en|er|es|em|e)$")
_MAX_ADJECTIVES: Final = 3


AGREEING_WORD: Final = re.compile(
    r"(d(er|ie|as|en|em|es|eren|essen|enen)|(dies|jed|jen|welch|manch|solch)(e|er|es|en|em)"
    r"|([kmds]?ein|ihr|unser|eue?r)(e|er|es|en|em)?|er|sie|es|ihn|ihm|ihnen)\W*",
    re.IGNORECASE,
)
"""These agree with a noun: articles, pronouns that refer to it, what is declined as they are."""


def expand(word: str) -> tuple[str, ...]:
    """Return a contraction of a preposition and an article as two words, in small letters."""
    return _CONTRACTIONS.get(word.lower(), (word,))


@dataclass(frozen=True, slots=True)
class Agreement:
    """Hold how the words around a noun would be for one case and gender."""

    before: tuple[str, ...]
    """These words take the place of as many words before the noun as `taken` says."""
    taken: int
    inner: tuple[str, ...]
    """These are the adjectives that come with the noun itself."""
    after: tuple[str, ...]
    """These words take the place of as many after it."""
    case: Case
    gender: Column
    old_gender: Column
    """The words that were there are read as of this gender."""


def adjective_stem(word: str) -> str:
    """Return an adjective without its ending."""
    return _ENDING.sub("", word)


def agreements(
    before: Sequence[str], inner: Sequence[str], after: Sequence[str]
) -> list[Agreement]:
    """Return how the words around a noun may be, for each gender of the noun that comes there.

    `before` is what stands before the noun in the sentence and `after` what follows it; `inner` are
    adjectives that the new noun brings. Nothing is returned where neither a determiner nor an
    adjective stands before it.
    """
    place = len(before)
    while place and len(before) - place < _MAX_ADJECTIVES and _is_adjective(before[place - 1]):
        place -= 1
    adjectives = before[place:]
    readings = list(_read_determiner(before[place - 1])) if place else []
    preposition = before[place - 2].lower() if place > 1 else ""
    if not readings:
        place += 1  # there is none
        preposition = before[place - 2].lower() if place > 1 else ""
        bare: list[Column] = ["m", "f", "n", "p"]
        if adjectives or preposition in _GOVERNED:
            readings = [_Determiner("none", "", c, g, False) for c in _CASES for g in bare]
    found = []
    for determiner in readings:
        if determiner.preposition == "" and determiner.case not in _GOVERNED.get(
            preposition, "nadg"
        ):
            continue
        if not _endings_agree(adjectives, determiner):
            continue
        columns: tuple[Column, ...] = ("p",) if determiner.column == "p" else ("m", "f", "n")
        for column in columns:
            case = determiner.case
            ending = ADJECTIVE_ENDINGS[determiner.declension][case][column]
            changed = tuple(_inflect(word, ending) for word in adjectives)
            brought = tuple(_inflect(word, ending) for word in inner)
            taken = len(before) - place + 1
            for relative in _relatives(after, determiner.column, column):
                text, contracted = determiner.write(column, "" if relative else preposition)
                found.append(
                    Agreement(
                        (*text, *changed),
                        taken + contracted,
                        brought,
                        relative,
                        case,
                        column,
                        determiner.column,
                    )
                )
    return found


def _is_adjective(word: str) -> bool:
    core = word.rstrip(",")
    return core.islower() and core not in FUNCTION_WORDS and _ENDING.search(core) is not None


def _inflect(adjective: str, ending: str) -> str:
    core = adjective.rstrip(",")
    return adjective_stem(core) + ending + adjective[len(core) :]


@dataclass(frozen=True, slots=True)
class _Determiner:
    """Hold one reading of a determiner: what it is, its case, and its gender or plural."""

    kind: Literal["definite", "der-word", "ein-word", "quantity", "none"]
    stem: str
    case: Case
    column: Column
    capital: bool
    preposition: str = ""

    @property
    def declension(self) -> Declension:
        if self.kind in ("quantity", "none"):
            return "strong"
        return "mixed" if self.kind == "ein-word" else "weak"

    def write(self, column: Column, before: str) -> tuple[tuple[str, ...], bool]:
        """Return the determiner for a gender, and whether it takes the place of `before`, too.

        That is a preposition with which it can be contracted.
        """
        text = self._write(column)
        pair = before, text[0] if text else ""
        if column != self.column and pair in _CONTRACTED and before in _OFTEN_CONTRACTED:
            return (_CONTRACTED[pair],), True
        return text, False

    def _write(self, column: Column) -> tuple[str, ...]:
        if self.kind == "none":
            return ()
        if self.kind == "definite":
            text = DEFINITE_ARTICLE[self.case][column]
        elif self.kind in ("der-word", "quantity"):
            text = self.stem + DER_WORD_ENDINGS[self.case][column]
        else:
            ending = EIN_WORD_ENDINGS[self.case][column]
            text = ("eur" if self.stem == "euer" and ending else self.stem) + ending
        words: tuple[str, ...] = (text,)
        if self.preposition:
            pair = self.preposition, text
            words = (_CONTRACTED[pair],) if pair in _CONTRACTED else pair
        if self.capital:
            words = (words[0].capitalize(), *words[1:])
        return words


def _read_determiner(word: str) -> Iterator[_Determiner]:
    """Yield what a word may be as a determiner."""
    lower, capital, preposition = word.lower(), word[:1].isupper(), ""
    if lower in _CONTRACTIONS:
        preposition, lower = _CONTRACTIONS[lower]
    for case, row in DEFINITE_ARTICLE.items():
        for column, text in row.items():
            if text == lower and (not preposition or case in "ad"):
                if preposition in ("in", "an", "auf") and (case == "d") != (text in ("dem", "der")):
                    continue
                if preposition in ("zu", "von", "bei") and case != "d":
                    continue
                yield _Determiner("definite", "", case, column, capital, preposition)
    if preposition:
        return
    for kind, stems, table in _STEMS:
        for stem in stems:
            if not lower.startswith(stem):
                continue
            for case, row in table.items():
                for column, ending in row.items():
                    if stem + ending == lower and (column == "p" or kind != "quantity"):
                        whole = "euer" if stem == "eur" else stem
                        yield _Determiner(kind, whole, case, column, capital)


def _endings_agree(adjectives: Sequence[str], determiner: _Determiner) -> bool:
    wanted = ADJECTIVE_ENDINGS[determiner.declension][determiner.case][determiner.column]
    return all(word.rstrip(",").endswith(wanted) for word in adjectives)


def _relatives(after: Sequence[str], old: Column, new: Column) -> list[tuple[str, ...]]:
    """Return what follows a noun as far as it agrees with it: a relative pronoun, or nothing.

    The noun is followed by a comma; a preposition may stand before the pronoun.
    """
    for place, word in enumerate(after[:2]):
        found = {
            row[new]
            for row in RELATIVE_PRONOUN.values()
            if row[old] == word
        }  # fmt: skip
        if found:
            return [(*after[:place], text) for text in sorted(found)]
        if word not in FUNCTION_WORDS:
            break
    return [()]
