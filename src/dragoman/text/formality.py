"""Rules say how formally a German or Korean text addresses its reader, by its words alone.

German is formal with Sie and Ihr, informal with du, ihr and the imperatives that go with them.
Korean is formal in 합니다체, polite in 해요체, and informal in 반말 and the plain 한다체. A text
that addresses nobody, or in more than one of these ways, has no known formality: what is written
before a source in training must be right, and a pair without it is learned from, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from dragoman.errors import ConfigError
from dragoman.text.languages import language_name, primary_code
from dragoman.text.lazy_patterns import lazy_pattern

Formality = Literal["formal", "polite", "informal"]
Wish = Literal["default", "more", "less", "polite", "prefer_more", "prefer_less"]
"""What a user asks for: DeepL's words, and polite, which only Korean has."""

FORMALITIES: Final[dict[str, tuple[Formality, ...]]] = {
    "de": ("formal", "informal"),
    "ko": ("formal", "polite", "informal"),
}
"""The ways of address that the rules tell apart, by language."""
_WISHES: Final[dict[str, Formality]] = {
    "more": "formal",
    "less": "informal",
    "polite": "polite",
    "prefer_more": "formal",
    "prefer_less": "informal",
}


def formality_of(text: str, language: str) -> Formality | None:
    """Return how formal a text is; None if it does not say, or is not of one kind.

    What stands outside quotation marks decides; only where that says nothing, what is inside.
    """
    find = {"de": _find_german, "ko": _find_korean}.get(primary_code(language))
    if find is None:
        return None
    for part in (_QUOTED.sub('""', text), text):
        if found := find(part):
            return found.pop() if len(found) == 1 else None
    return None


def formality_tag(formality: str) -> str:
    """Return the piece that stands before a source whose translation is to be so formal."""
    return f"<{formality}>"


def formality_tags(language: str | None) -> tuple[str, ...]:
    """Return the tags of a target language, or raise ConfigError where there are no rules."""
    known = FORMALITIES.get(primary_code(language))
    if known is None:
        named = language_name(language) if language else "a language that is not named"
        raise ConfigError(
            f"data.formality: there are no rules for {named}; leave it out, or translate to "
            f"{' or '.join(map(language_name, FORMALITIES))}"
        )
    return tuple(map(formality_tag, known))


def choose_tag(wish: str | None, tags: Iterable[str], model: str) -> str | None:
    """Return the tag that a wish means to a model with these tags; None means no tag.

    Where the model cannot do what is wished, the wishes that begin with prefer_ change nothing,
    and the others raise ConfigError.
    """
    if wish is None or wish == "default":
        return None
    if wish not in get_args(Wish):
        raise ConfigError(f"formality {wish} does not exist; use {', '.join(get_args(Wish))}")
    tag, known = formality_tag(_WISHES[wish]), list(tags)
    if tag in known:
        return tag
    if wish.startswith("prefer_"):
        return None
    if known:
        raise ConfigError(f"{model}: knows {', '.join(known)}, and no {tag}; choose another")
    raise ConfigError(
        f"{model}: was trained without formality tags, so formality {wish} is impossible; use "
        f"{'default' if wish == 'polite' else f'prefer_{wish}'}, or train a model with "
        "--set data.formality=0.5"
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- German ---

_QUOTED: Final = lazy_pattern(r"„[^„“”]*[“”]|“[^“”]*”|»[^«»]*«|«[^«»]*»|\"[^\"]*\"|‚[^‚‘]*‘")
_GERMAN_TOKEN: Final = lazy_pattern(r"[^\W\d_]+|\d+|[^\w\s]")
_BEGINS_SENTENCE: Final = frozenset(".!?:…;\"'„“”»«‚‘([{-–—•*/|>#")
"""After these a capital says nothing."""
_YOU_FORMAL: Final = _words("Sie Ihnen Ihre Ihren Ihrem Ihrer Ihres Ihrerseits Ihretwegen")
_YOU_INFORMAL: Final = _words(
    "du dich dir dein deine deinen deinem deiner deines deinetwegen euch euer eure euren eurem "
    "eurer eures"
)
_VERBS_INFORMAL: Final = _words(
    "bist hast wirst kannst willst sollst musst mußt darfst magst weißt warst hattest wurdest "
    "konntest solltest wolltest musstest durftest würdest wärst wärest hättest könntest müsstest "
    "möchtest tust gehst kommst machst siehst seid habt könnt müsst müßt dürft mögt wisst werdet "
    "hattet wurdet konntet solltet wolltet musstet durftet würdet wärt hättet könntet müsstet "
    "möchtet"
)
"""Forms of the second person that are no other word; nouns such as Hast are capitalised."""
_IMPERATIVES: Final = _words(
    "komm geh gib nimm lies hilf vergiss vergiß triff iss schau guck hör lass laß mach sag sieh "
    "bring probier wirf zeig frag schreib denk bleib"
)
"""Imperatives that are no other word where no ich is beside them (ich komm)."""


def _find_german(text: str) -> set[Formality]:
    words = _GERMAN_TOKEN.findall(text)
    found: set[Formality] = set()
    whose = False
    for place, word in enumerate(words):
        before = words[place - 1] if place else "."
        after = words[place + 1] if place + 1 < len(words) else ""
        begins = before in _BEGINS_SENTENCE or before.isdigit()
        if not begins and word in _YOU_FORMAL:
            found.add("formal")
        elif not begins and word == "Ihr":
            whose = True  # or, in a letter, the plural of du
        elif (
            _is_informal_pronoun(word, before, after)
            or word in _VERBS_INFORMAL
            or (begins and word.lower() in _VERBS_INFORMAL)
            or _is_imperative(word, before, after, begins)
        ):
            found.add("informal")
    return found or ({"formal"} if whose else set())


def _is_informal_pronoun(word: str, before: str, after: str) -> bool:
    """Return whether a word is du, or Dir as in letters; not DIR, and not that of Rue du Port."""
    if word.lower() not in _YOU_INFORMAL or (word.isupper() and len(word) > 1):
        return False
    return not (word == "du" and before[:1].isupper() and after[:1].isupper())


def _is_imperative(word: str, before: str, after: str, begins: bool) -> bool:
    small = word.lower()
    if small not in _IMPERATIVES or (word[:1].isupper() and not begins):
        return False
    return "ich" not in (before.lower(), after.lower()) and after not in ("Sie", "es", "'", "’")


# --- Korean ---

_KOREAN_SENTENCE: Final = lazy_pattern(r"[^.!?。！？…~]+[.!?。！？…~]*")
_KOREAN_WORD: Final = lazy_pattern(r"[가-힣]+|[^\W가-힣]+")
_SENTENCE_MARK: Final = lazy_pattern(r"[.!?。！？…~]")
_FIRST, _FINALS = ord("가"), 28
_N, _L, _B, _BS, _SS = 4, 8, 17, 18, 20
"""Numbers of the final consonants ㄴ, ㄹ, ㅂ, ㅄ and ㅆ."""
_KOREAN_FORMAL: Final = lazy_pattern(r"(?:니다|니까|십시오|십시요|시다)$")
_KOREAN_POLITE: Final = lazy_pattern(
    r"(?:죠|쥬|[어아여해돼세에예네군데나까래게걸고지든서면구대라워와봐줘가려춰꿔써커떠꺼져쳐켜펴껴셔파차"
    r"자사타마싸내새러너퍼뻐놔둬]요)$"
)
"""Other syllables before 요 make nouns (필요, 개요) or lists of old texts (아들이요)."""
_NOUNS: Final = _words(
    "바다 캐나다 소다 수다 람다 르완다 우간다 혼다 베란다 분야 시야 광야 평야 심야 임야 "
    "이해 올해 피해 오해 손해 항해 북해 남해 동해 서해 방해 새해 한해 저해 공해 지중해 빨래 어머니 "
    "할머니 아주머니 언니 주머니 아니"
)
"""Nouns that end as a verb does."""
_CASUAL: Final = lazy_pattern(
    r"(?:거야|이야|아니야|구나|잖아|않아|좋아|많아|괜찮아|알아|몰라|싫어|먹어|같아|맞아|아파|고마워|"
    r"기다려|그래|뭐야|누구야|어디야|언제야|[하이있없가오았었겠했갔왔됐봤줬]니|[하이있없가오는은]냐|"
    r"(?:^|[했하말됐졌렸])지마|마라|[하가오보먹와해]거라|어라|아라|해라|[돼되]라|"
    r"[가-힣]해|[가-힣]야|보여|먹여|줄여|높여|움직여|[느즐]껴|[가-힣][려져쳐켜]|일어나|만나|떠나|"
    r"(?:말|조용히|공부|시작|생각|노력|결혼|준비|일)하자|^가자|^보자|^먹자|^하자|^놀자|^쉬자|돌아가자|"
    r"[하맞좋있없같알되먹오가않렇]지|[하좋있없같되오가않렇]네|[하이있없좋는]군)$"
)
"""Endings of 반말 that hardly any noun has."""
_CASUAL_WORDS: Final = _words(
    "해 돼 봐 줘 와 가 마 써 앉아 먹어 들어 열어 닫아 읽어 있어 없어 가자 보자 먹자 하자 놀자 "
    "쉬자 웃어 울어 자 말해 도와줘"
)
"""Verbs of 반말 that are sentences or their last words."""


def _find_korean(text: str) -> set[Formality]:
    found: set[Formality] = set()
    for sentence in _KOREAN_SENTENCE.findall(text):
        words = _KOREAN_WORD.findall(sentence)
        mark = _SENTENCE_MARK.search(sentence)
        if words and (one := _korean_ending(words[-1], mark[0] if mark else "")):
            found.add(one)
    return found


def _korean_ending(word: str, mark: str) -> Formality | None:
    """Return what the last word of a sentence says; the mark after it tells verbs from nouns."""
    marked = bool(mark)
    formal = _KOREAN_FORMAL.search(word)
    if formal and (formal[0].startswith("십") or _final(word[: formal.start()]) == _B):
        return "formal"
    if _KOREAN_POLITE.search(word):
        return "polite" if marked or word != "가요" else None
    if not marked or word in _NOUNS:  # without a mark it may be a title, or of a dictionary
        return None
    if word.endswith("다"):
        return "informal"
    before, last = word[:-1], word[-1]
    casual = (
        word in _CASUAL_WORDS
        or (last in "어아" and _final(before) in (_SS, _BS))
        or (last in "게래까" and _final(before) == _L)
        or (mark in "?？" and last in "니냐" and bool(before) and word not in _NOUNS)
        or (last in "지네니냐군" and _final(before) == _SS)
        or _CASUAL.search(word) is not None
    )
    return "informal" if casual else None


def _final(text: str) -> int:
    """Return the number of the last syllable's final consonant; 0 is none."""
    return (ord(text[-1]) - _FIRST) % _FINALS if "가" <= text[-1:] <= "힣" else 0
