"""Bring Korean sentences to one level of politeness, the formal one (합니다체).

Manuals are formal, encyclopaedias plain (한다체), courses polite (해요체). A translator that
learned from all of them would change its tone from sentence to sentence.
"""

from __future__ import annotations

import re

_FIRST, _FINALS = ord("가"), 28
"""The first syllable, and how many there are with the same beginning and vowel."""
_N, _L, _B, _BS, _SS = 4, 8, 17, 18, 20
"""Numbers of the final consonants ㄴ, ㄹ, ㅂ, ㅄ and ㅆ; 0 is none."""

_STEMS_WITHOUT_FINAL = frozenset("하이크니르쁘프싸세느")
"""Last syllables of adjectives, to which the ending is joined; after others 다 follows a noun."""

_END = r"(?=[.!][\"'”’)\]]*(?:\s|$))"
"""Only what a mark ends is a sentence; without one it may be an entry of a dictionary."""
_PLAIN = re.compile(rf"([가-힣])다{_END}")
_POLITE = re.compile(
    r"(?:(?P<order>으?세요)|(?P<will>거(?:야|예요))|(?P<is>이에요|예요|이야)|(?P<not>아니야|아니에요)"
    r"|(?P<past>[가-힣])어요?|(?P<does>[해돼])요)" + _END
)


def _split(syllable: str) -> tuple[str, int]:
    """Return a syllable without its final consonant, and that consonant's number."""
    final = (ord(syllable) - _FIRST) % _FINALS
    return chr(ord(syllable) - final), final


def _ends_in_b(text: str) -> bool:
    """Return whether a text's last syllable ends in ㅂ, as before 니다."""
    return "가" <= text[-1:] <= "힣" and _split(text[-1])[1] == _B


def _formal_plain(found: re.Match[str]) -> str:
    """Return 한다, 있다 and 이다 as 합니다, 있습니다 and 입니다."""
    syllable = found[1]
    if syllable == "니" and _ends_in_b(found.string[: found.start()]):  # it is formal already
        return found[0]
    open_syllable, final = _split(syllable)
    if syllable == "는":
        return "습니다"
    if final in (_N, _L):
        return f"{chr(ord(open_syllable) + _B)}니다"
    if final:
        return f"{syllable}습니다"
    if syllable in _STEMS_WITHOUT_FINAL:
        return f"{chr(ord(syllable) + _B)}니다"
    return f"{syllable}입니다"


def _formal_polite(found: re.Match[str]) -> str:
    """Return 하세요, 이에요, 했어 and 해요 as 하십시오, 입니다, 했습니다 and 합니다."""
    if found["order"]:
        return found["order"].replace("세요", "십시오")
    if found["will"]:
        return "것입니다"
    if found["is"] or found["not"]:
        return "입니다" if found["is"] else "아닙니다"
    if found["does"]:
        return {"해": "합니다", "돼": "됩니다"}[found["does"]]
    syllable = found["past"]
    return f"{syllable}습니다" if _split(syllable)[1] in (_SS, _BS) else found[0]


def formal(text: str) -> str:
    """Return a Korean text whose sentences end formally, where a rule can say how they would."""
    text = _POLITE.sub(_formal_polite, text)
    return _PLAIN.sub(_formal_plain, text) if "다" in text else text
