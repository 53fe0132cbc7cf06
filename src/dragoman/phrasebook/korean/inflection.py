"""Korean words get their particles and endings by the arithmetic of Hangul.

A written syllable is an initial, a vowel and perhaps a final. Unicode numbers all 11,172 of them
in order, so that a syllable can be taken apart and put together by division and remainder.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragoman.text.inflection.korean import fit_particles

_FIRST = 0xAC00  # 가
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FINALS = (" ", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")


def _split(syllable: str) -> tuple[int, str, str]:
    """Return the number of the initial, the vowel and the final (a space if there is none)."""
    number, final_number = divmod(ord(syllable) - _FIRST, 28)
    initial, vowel = divmod(number, 21)
    return initial, _VOWELS[vowel], _FINALS[final_number]


def _join(initial: int, vowel: str, final_consonant: str = " ") -> str:
    number = (initial * 21 + _VOWELS.index(vowel)) * 28 + _FINALS.index(final_consonant)
    return chr(_FIRST + number)


def final(word: str) -> str:
    """Return the consonant that closes the last syllable, or a space if it is open."""
    return _split(word[-1])[2]


def with_final(word: str, consonant: str) -> str:
    """Return the word with another final consonant; a space opens the syllable."""
    initial, vowel, _ = _split(word[-1])
    return word[:-1] + _join(initial, vowel, consonant)


# -- particles -----------------------------------------------------------------------------------

_PARTICLES = {
    "topic": "은",
    "subject": "이",
    "object": "을",
    "with": "과",
    "toward": "으로",
    "to": "에게",
    "in": "에",
    "at": "에서",
    "of": "의",
}


@functools.cache
def mark(word: str, case: str) -> str:
    """Return a noun with the particle of a case: 왕은, 여자는; 숲으로, 학교로 and 교실로."""
    return word + fit_particles(word, _PARTICLES[case]) if case else word


# -- conjugation ---------------------------------------------------------------------------------

Kind: TypeAlias = Literal["verb", "adjective", "existence", "copula"]
Tense: TypeAlias = Literal["present", "past"]
Ending: TypeAlias = Literal[
    "statement", "question", "attribute", "prospective", "quotation", "whether", "although",
    "and", "but", "because", "hope", "if", "not", "must", "infinitive",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Stem:
    """Hold what is conjugated, 먹 of 먹다, and how it departs from the rules.

    `irregular` is the letter that Korean grammars name the class by: ㅂ, ㄷ, ㅎ or 르. Stems in
    ㄹ and ㅡ need no mark, nor does 하다: all of them change alike. "existence" is 있다 and 없다,
    half verb, half adjective. A `perfect` stem says a state in its past: 오래됐습니다, "is old".
    Stems are compared by identity, which makes the cache of `conjugate` fast.
    """

    text: str
    kind: Kind = "verb"
    irregular: str = ""
    perfect: bool = False


# endings that any stem takes unchanged
_PLAIN = {"and": "고", "but": "지만", "because": "기", "hope": "기를", "not": "지"}


@functools.cache
def conjugate(stem: Stem, ending: Ending, tense: Tense = "present") -> str:
    """Return one form of a verb, adjective or copula."""
    if ending == "must":
        return _infinitive(stem) + "야"
    if ending == "infinitive":
        return _infinitive(stem)
    if ending in ("not", "prospective"):
        tense = "present"
    elif stem.perfect and ending not in ("hope", "attribute"):
        tense = "past"
    if tense == "past":
        if ending == "attribute" and stem.kind == "verb":
            return _attach(stem, "ㄴ")
        return _past(with_final(_infinitive(stem), "ㅆ"), ending)
    return _present(stem, ending)


def _past(stem: str, ending: Ending) -> str:
    """Return a form in -았/었-, the same for all kinds."""
    endings = {"statement": "습니다", "question": "습니까", "attribute": "던", "quotation": "다"}
    endings |= {"whether": "는지", "although": "는데도", "if": "으면", **_PLAIN}
    return stem + endings[ending]


def _present(stem: Stem, ending: Ending) -> str:
    word, kind = stem.text, stem.kind
    if ending in _PLAIN:
        return word + _PLAIN[ending]
    if ending == "if":
        return _attach(stem, "면")
    if ending == "prospective":
        return _attach(stem, "ㄹ")
    if ending in ("statement", "question"):
        rest = "니다" if ending == "statement" else "니까"
        if final(word) in " ㄹ":
            return with_final(word, "ㅂ") + rest
        return word + "습" + rest
    if ending == "quotation":
        if kind == "copula":
            return word + "라"
        if kind != "verb":
            return word + "다"
        return with_final(word, "ㄴ") + "다" if final(word) in " ㄹ" else word + "는다"
    tail = {"attribute": "", "whether": "지", "although": "데도"}[ending]
    if kind in ("verb", "existence"):
        return (with_final(word, " ") if final(word) == "ㄹ" else word) + "는" + tail
    return _attach(stem, "ㄴ") + tail


def _attach(stem: Stem, ending: str) -> str:
    """Return the stem with -(으)ㄴ, -(으)ㄹ or -(으)면."""
    word = stem.text
    if stem.irregular == "ㅂ":
        word = with_final(word, " ") + "우"
    elif stem.irregular == "ㄷ":
        word = with_final(word, "ㄹ") + "으"
    elif stem.irregular == "ㅎ":
        word = with_final(word, " ")
    elif final(word) not in " ㄹ":
        word += "으"
    return word + "면" if ending == "면" else with_final(word, ending)


# a vowel that ends the stem, and 아 or 어, become one syllable
_CONTRACTIONS = {
    "ㅏ": "ㅏ", "ㅓ": "ㅓ", "ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅐ": "ㅐ", "ㅔ": "ㅔ", "ㅕ": "ㅕ",
    "ㅚ": "ㅙ",
}  # fmt: skip


def _infinitive(stem: Stem) -> str:
    """Return the stem with 아 or 어, which vowel harmony chooses."""
    word = stem.text
    if stem.kind == "copula":
        return word + "어"
    initial, vowel, closing = _split(word[-1])
    if word[-1] == "하":
        return word[:-1] + "해"
    if stem.irregular == "르":  # 모르 → 몰라
        return with_final(word[:-1], "ㄹ") + ("라" if _is_bright(word[:-1]) else "러")
    if stem.irregular == "ㅎ":  # 빨갛 → 빨개, 하얗 → 하얘
        return word[:-1] + _join(initial, {"ㅏ": "ㅐ", "ㅑ": "ㅒ"}[vowel])
    if stem.irregular == "ㅂ":  # 무겁 → 무거워; 돕 → 도와 alone
        return with_final(word, " ") + ("와" if word == "돕" else "워")
    if stem.irregular == "ㄷ":  # 듣 → 들어
        word = with_final(word, "ㄹ")
    if closing != " ":
        return word + ("아" if _is_bright(word) else "어")
    if vowel == "ㅡ":  # 쓰 → 써, 배고프 → 배고파
        bright = len(word) > 1 and _is_bright(word[:-1])
        return word[:-1] + _join(initial, "ㅏ" if bright else "ㅓ")
    return word[:-1] + _join(initial, _CONTRACTIONS[vowel])


def _is_bright(word: str) -> bool:
    return _split(word[-1])[1] in "ㅏㅑㅗ"
