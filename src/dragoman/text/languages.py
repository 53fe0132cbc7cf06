"""A language code tells the language's name, whether it has spaces, and how to score it.

Every rule that depends on the language alone stands here. Codes may have any case and carry a
region: zh, zh-TW and ZH_cn are one language to all functions of this file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from dragoman.errors import DataError

_WITHOUT_SPACES: Final = frozenset({"bo", "dz", "ja", "km", "lo", "my", "th", "zh"})
"""These languages are written without spaces between words."""
_NAME_TABLE: Final = """
af=Afrikaans ar=Arabic az=Azerbaijani be=Belarusian bg=Bulgarian bn=Bengali bs=Bosnian
ca=Catalan cs=Czech cy=Welsh da=Danish de=German el=Greek en=English eo=Esperanto es=Spanish
et=Estonian eu=Basque fa=Persian fi=Finnish fr=French ga=Irish gl=Galician he=Hebrew hi=Hindi
hr=Croatian hu=Hungarian hy=Armenian id=Indonesian is=Icelandic it=Italian ja=Japanese
ka=Georgian kk=Kazakh km=Khmer ko=Korean ky=Kyrgyz la=Latin lb=Luxembourgish lo=Lao
lt=Lithuanian lv=Latvian mk=Macedonian mn=Mongolian mr=Marathi ms=Malay mt=Maltese my=Burmese
nb=Norwegian ne=Nepali nl=Dutch nn=Nynorsk no=Norwegian pa=Punjabi pl=Polish pt=Portuguese
ro=Romanian ru=Russian sk=Slovak sl=Slovenian sq=Albanian sr=Serbian sv=Swedish sw=Swahili
ta=Tamil te=Telugu th=Thai tl=Tagalog tr=Turkish uk=Ukrainian ur=Urdu uz=Uzbek vi=Vietnamese
xh=Xhosa yi=Yiddish zh=Chinese zu=Zulu
"""
_NAMES: Final = dict(pair.split("=") for pair in _NAME_TABLE.split())
_CODES: Final = {name.lower(): code for code, name in _NAMES.items()}
_NOT_LANGUAGES: Final = frozenset({"hyp", "new", "old", "raw", "ref", "src", "tgt", "tok", "trg"})
"""Ends of file names that look like a code and say something else."""
_ALSO_WORDS: Final = frozenset({"is", "it", "no"})
"""Codes that are English words too: in a file name beside an unknown code they prove nothing."""


def primary_code(code: str | None) -> str:
    """Return the language of a code without its region, in lower case: zh for ZH_tw."""
    return (code or "").replace("_", "-").split("-")[0].lower()


def same_language(code: str, other: str) -> bool:
    """Return whether two codes mean one language: a request for EN-US is served by en."""
    return primary_code(code) == primary_code(other)


def language_name(code: str) -> str:
    """Return a language's name in English, or its code where the name is not known here."""
    return _NAMES.get(primary_code(code), code)


def parse_pair(name: str) -> tuple[str, str] | None:
    """Return the two codes that a name such as de-ko consists of, or None for other names."""
    found = re.fullmatch(r"([a-z]{2,3})-([a-z]{2,3})", name)
    return (found[1], found[2]) if found and found[1] != found[2] else None


def written_without_spaces(code: str | None) -> bool:
    """Return whether a language is written without spaces between words; Korean has them."""
    return primary_code(code) in _WITHOUT_SPACES


def bleu_tokenizer(code: str | None) -> str:
    """Return sacreBLEU's tokeniser for a target language: characters where 13a finds no words.

    It is never one that must be installed or fetched first, so that the same text has the same
    score everywhere. A Korean word carries its particles, and is counted in characters too.
    """
    if primary_code(code) == "zh":
        return "zh"
    return "char" if written_without_spaces(code) or primary_code(code) == "ko" else "13a"


def ter_counts_characters(code: str | None) -> bool:
    """Return whether sacreBLEU's TER can count characters: of these scripts alone it splits words.

    Without this a Chinese sentence would be a single word.
    """
    return primary_code(code) in ("ja", "zh")


def language_code(label: str) -> str | None:
    """Return the code that a key or a column's name gives: de for "de-AT" and for "German"."""
    text = label.strip().lower()
    if re.fullmatch(r"[a-z]{2}([-_][a-z0-9]{2,4})*", text) and primary_code(text) in _NAMES:
        return primary_code(text)
    return _CODES.get(text)


def guess_languages(files: Sequence[Path]) -> tuple[str, ...]:
    """Return source and target as file names tell them, or nothing.

    Two names end in a code each, such as corpus.en.gz and corpus.de.gz or a.en.txt and a.de.txt;
    one name has both codes before its suffix, such as corpus.en-de.tsv.
    """
    names = [_without_suffixes(file.name.lower()) for file in files]
    if len(names) == 1:
        return _codes_in_name(names[0])
    codes = [re.fullmatch(r".*\.([a-z]{2,3})", name) for name in names]
    found = tuple(code[1] for code in codes if code and code[1] not in _NOT_LANGUAGES)
    return found if len(found) == len(names) == 2 and found[0] != found[1] else ()


def _without_suffixes(name: str) -> str:
    """Return a file's name without the suffixes that say how its text is kept."""
    return re.sub(r"(\.(txt|tsv|jsonl|tmx|gz|bz2|xz|zst))+$", "", name)


def _codes_in_name(name: str) -> tuple[str, ...]:
    """Return the two codes that a name ends in; one of them may be of three letters, unknown here.

    Nothing else in the name says that these are codes, so both are if they are known; an unknown
    one must stand alone with a known one between two dots.
    """
    if not (found := re.fullmatch(r"(.*[._-])?([a-z]{2,3})[-_]([a-z]{2,3})", name)):
        return ()
    before, *codes = found.groups()
    known = [code for code in codes if code in _NAMES]
    by_itself = not before or before.endswith(".")
    one_is_known = len(known) == 1 and known[0] not in _ALSO_WORDS
    unknown = [code for code in codes if code not in _NAMES]
    plausible = one_is_known and len(unknown[0]) == 3 and unknown[0] not in _NOT_LANGUAGES
    accepted = len(known) == 2 or (by_itself and plausible)
    return tuple(codes) if accepted and codes[0] != codes[1] else ()


def detect_languages(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return which of `languages` a text may be in, likeliest first, each with its probability.

    The probability is that among all languages which can be detected, so that a text in none of
    `languages` has low ones. Raise DataError where none of them can be detected.
    """
    scores = identify_language(text)
    known = {code: scores[primary_code(code)] for code in languages if primary_code(code) in scores}
    if not known:
        raise DataError(f"none of {', '.join(languages)} can be detected; name the source")
    best = max(scores.values())
    total = sum(math.exp(score - best) for score in scores.values())
    found = [(code, math.exp(score - best) / total) for code, score in known.items()]
    return sorted(found, key=lambda one: -one[1])


def choose_language(text: str, languages: Sequence[str]) -> tuple[str, float]:
    """Return which of `languages` a text is taken to be in, and how probable that is among them.

    Where there is only one, the text is not looked at. Raise DataError where none of them can be
    detected.
    """
    if len(languages) == 1:
        return languages[0], 1.0
    found = detect_languages(text, languages)
    code, probability = found[0]
    total = sum(each for _, each in found)
    return code, probability / total if total else 1 / len(found)


def identify_language(text: str) -> dict[str, float]:
    """Return how likely a text is in each language that can be detected, as logarithms."""
    return dict(_identifier()(text))


@cache
def _identifier() -> Callable[[str], Any]:
    """Load py3langid, which takes more than half a second."""
    import py3langid

    rank: Callable[[str], Any] = py3langid.rank
    return rank
