"""Korean nouns take particles, and a particle fits the noun it follows.

A particle is written together with its noun, and many have two forms: one after a consonant, one
after a vowel. What a word ends in is read off Hangul, and guessed for digits and Latin letters by
how they are read aloud.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from dragoman.text.inflection.forms import word_set

_FINALS: Final[tuple[str, ...]] = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")

# After a consonant and after a vowel. The numbers order them: a particle is followed only by one
# of a higher number (1 people, 2 relations, 3 limits, 4 what comes last).
_PAIRS: Final = {
    2: ("으로/로 으로서/로서 으로써/로써 으로부터/로부터 이랑/랑 과/와",),
    3: ("이나마/나마 이야말로/야말로 이라도/라도 이든지/든지",),
    4: (
        "은/는 이/가 을/를 이나/나 이든/든 이란/란 이여/여 아/야 이야/야 이라/라 이라고/라고 "
        "이라는/라는 이라서/라서 이라면/라면 이며/며 이고/고 이다/다 이지만/지만 이에요/예요 "
        "이었습니다/였습니다 이었다/였다 이었던/였던 이었고/였고 이었지만/였지만 이었어요/였어요",
    ),
}
_SINGLES: Final = {
    1: "들",
    2: "에 에서 에게 에게서 께 께서 한테 한테서 하고 처럼 보다 같이 대로 만큼 에다 에다가 마냥",
    3: "까지 부터 만 마다 밖에 조차 마저 뿐 씩 치고",
    4: "의 도 는커녕 은커녕 입니다 입니까 인 일 이지만 이면 이고 이며 이다 인데 인지 이라고 이라는",
}
_Rule = tuple[int, str, str]


def _rules() -> list[_Rule]:
    found: list[_Rule] = []
    for rank, groups in _PAIRS.items():
        for group in groups:
            for pair in group.split():
                closed, _, is_open = pair.partition("/")
                found.append((rank, closed, is_open))
    for rank, several in _SINGLES.items():
        found += [(rank, one, one) for one in several.split()]
    return found


_RULES: Final = _rules()
_BY_START: Final[dict[str, list[tuple[int, str, _Rule]]]] = {}
for _rule in _RULES:
    for _text in dict.fromkeys(_rule[1:]):
        _BY_START.setdefault(_text[0], []).append((_rule[0], _text, _rule))

# Words that look like a noun of one syllable with a particle.
_OTHER_WORDS: Final = word_set(
    "새로 별로 바로 서로 따로 홀로 주로 도로 진로 회로 미로 경로 통로 대로 기로 선로 활로 정도 "
    "지도 차도 기도 시도 제도 태도 각도 속도 온도 강도 의도 구도 수도 포도 복도 파도 용도 한도 "
    "보도 고도 인도 나라 하나 누나 소나 만나 휴가 추가 대가 화가 평가 주가 회의 주의 정의 강의 "
    "동의 합의 결의 결과 학과 통과 성과 경과 전과 불만 대만 자만 낭만 비만 수만 말고 차라 가령 "
    "아이 나이 사이 이나 저는 나는 가는 사는 자는 오는 보는 하는 되는 있는 없는 주는 사고 가고 "
    "보고 하고 광고 창고 최고 중고 경고 신고 재고 수고"
)
_DIGIT_ENDS: Final[dict[str, str]] = dict(
    zip("0123456789", ("ㅇ", "ㄹ", "", "ㅁ", "", "", "ㄱ", "ㄹ", "ㄹ", ""), strict=True)
)
_LETTER_ENDS: Final = {"L": "ㄹ", "R": "ㄹ", "M": "ㅁ", "N": "ㄴ"}
"""The names of all other letters end in a vowel: 에이, 비, 씨."""

FUNCTION_WORDS: Final = word_set(
    "그 이 저 그것 이것 저것 그곳 이곳 것 수 등 및 또 또는 그리고 하지만 그러나 그래서 그런데 "
    "왜냐하면 만약 만일 나 너 우리 저는 나는 저희 그녀 그는 그들 당신 제 내 네 안 못 더 가장 "
    "매우 아주 모든 각 두 세"
)


_COMMON: Final = word_set(
    "은 는 을 를 가 에 에서 에게 의 와 과 로 으로 도 만 들 부터 까지 한테 께서"
)


def likely_particles(word: str) -> list[tuple[str, float]]:
    """Return the particles that a word may end in, each with how doubtful that is, in nats.

    Usually they are the longest that fit. But many nouns end in 이 themselves, and some in what may
    be one of the rarer particles: 고양이, 바나나.
    """
    longest = split_particles(word)[0][1]
    if not longest:
        return [("", 0.0)]
    if longest == "이":
        return [("이", 0.0), ("", 4.0)]
    if longest in _COMMON or len(longest) > 1:
        return [(longest, 0.0)]
    return [(longest, 0.5), ("", 0.5)]


def last_consonant(word: str) -> str:
    """Return the consonant that closes a word when it is read aloud, or "" after a vowel."""
    core = re.sub(r"[\W_]+$", "", word)
    if not core:
        return ""
    last = core[-1]
    if "가" <= last <= "힣":
        return _FINALS[(ord(last) - 0xAC00) % 28]
    if last in _DIGIT_ENDS:
        return _DIGIT_ENDS[last]
    if last.isascii() and last.isalpha():
        return _last_consonant_of_latin(re.split(r"[^A-Za-z]", core)[-1])
    return ""


def _last_consonant_of_latin(word: str) -> str:
    if word.isupper() and len(word) <= 5:  # read letter by letter
        return _LETTER_ENDS.get(word[-1], "")
    lower = word.lower()
    if re.search(r"(l|[^aeiou]le|[aeiou]le)$", lower):  # 구글, 파일
        return "ㄹ"
    if re.search(r"(ng|m|me|n|[aeiou]ne)$", lower):  # 크롬, 아이폰
        return "ㄴ"
    if re.search(r"(^|[^aeiou])[aeiou](t|p|c|ck|k)$|ook$", lower):  # 로봇, 슬랙, 북
        return "ㄱ"
    return ""


def fit_particles(noun: str, particles: str) -> str:
    """Return particles in the form that they have after a noun: 은 becomes 는 after 새.

    What is not a sequence of particles is returned as it is.
    """
    for rank, text, (_, closed, is_open) in _BY_START.get(particles[:1], ()):
        rest = particles[len(text) :]
        if particles.startswith(text) and (not rest or _reads_on(text, rest, rank)):
            return _choose(noun, closed, is_open) + rest
    return particles


def _choose(noun: str, closed: str, is_open: str) -> str:
    final = last_consonant(noun)
    if final == "ㄹ" and closed.startswith("으로"):
        return is_open
    return closed if final else is_open


def _reads_on(before: str, rest: str, rank: int) -> bool:
    """Return whether what follows a particle is more of them, each in its order and fitting."""
    for next_rank, text, (_, closed, is_open) in _BY_START.get(rest[:1], ()):
        if next_rank <= rank and not (rank == next_rank == 3 and text != before):
            continue
        if not rest.startswith(text) or _choose(before, closed, is_open) != text:
            continue
        if len(text) == len(rest) or _reads_on(text, rest[len(text) :], next_rank):
            return True
    return False


@functools.lru_cache(8192)
def are_particles(noun: str, rest: str) -> bool:
    """Return whether what is written after a noun is particles that fit it, or nothing."""
    if not rest:
        return True
    if len(noun) == 1 and noun + rest in _OTHER_WORDS:
        return False
    return _reads_on(noun, rest, 0)


def split_particles(word: str) -> list[tuple[str, str]]:
    """Return every noun and its particles that a word may be, the longest particles first."""
    found = [
        (word[:place], word[place:])
        for place in range(1, len(word))
        if are_particles(word[:place], word[place:])
    ]
    return [*found, (word, "")]
