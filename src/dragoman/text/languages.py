"""What a language code tells: from file names to the words of a score."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from dragoman.serve.errors import Refusal

__all__ = [
    "detect",
    "guess_languages",
    "name",
    "primary_code",
    "same",
    "tokenizer_for",
]


TOKENIZERS: Final = {
    "zh": "zh",
    **dict.fromkeys(("ja", "ko", "th", "lo", "km", "my", "bo", "dz"), "char"),
}
"""Languages for which BLEU's usual words are no words; the others have 13a.

Never one that must be installed or fetched first: the same text has the same score everywhere.
"""


def guess_languages(files: Sequence[Path]) -> tuple[str, ...]:
    """The codes that two names such as corpus.en.gz and corpus.de.gz end in, if they do."""
    codes = []
    for file in files:
        suffixes = [s[1:].lower() for s in file.suffixes if s not in (".gz", ".bz2", ".xz", ".zst")]
        code = suffixes[-1] if suffixes else ""
        codes.append(code if 2 <= len(code) <= 3 and code.isalpha() else "")
    distinct = len(codes) == 2 and all(codes) and codes[0] != codes[1]
    return tuple(codes) if distinct and "txt" not in codes else ()


def primary_code(language: str | None) -> str:
    """The language of a code with or without a region: zh for zh-TW."""
    return (language or "").replace("_", "-").split("-")[0].lower()


def tokenizer_for(language: str | None) -> str:
    """SacreBLEU's tokeniser for a target language: characters where words are not spaced."""
    return TOKENIZERS.get(primary_code(language), "13a")


# PART serve.languages: Language codes: their names, and which one a text is in.


_LISTED: Final = """
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
_NAMES: Final = dict(pair.split("=") for pair in _LISTED.split())


def name(code: str) -> str:
    """A language's name in English; of one unknown here, its code."""
    return _NAMES.get(primary_code(code), code)


def same(code: str, other: str) -> bool:
    """Whether two codes mean one language: EN-US is served by en."""
    return primary_code(code) == primary_code(other)


def detect(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """The languages a text may be in, likeliest first, each with its probability.

    It is taken to be in one of `languages`; where there is but one, nothing is looked at.
    """
    if len(languages) < 2:
        return [(code, 1.0) for code in languages]
    scores = dict(_ranker()(text))
    known = {code: scores[primary_code(code)] for code in languages if primary_code(code) in scores}
    if not known:
        raise Refusal(400, f"none of {', '.join(languages)} can be detected; name the source")
    best = max(known.values())
    weights = {code: math.exp(score - best) for code, score in known.items()}
    total = sum(weights.values())
    return sorted(((c, w / total) for c, w in weights.items()), key=lambda one: -one[1])


@cache
def _ranker() -> Callable[[str], Any]:
    try:
        import py3langid
    except ImportError:
        raise Refusal(
            400,
            "this server does not detect languages (it lacks dragoman[language]); name the source",
        ) from None
    rank: Callable[[str], Any] = py3langid.rank
    return rank
