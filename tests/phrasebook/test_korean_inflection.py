"""The Korean of the phrasebook: its word forms and its corpus."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import itertools
import re
import unicodedata
from collections.abc import Iterator
from random import Random

import pytest

from dragoman.phrasebook import Example, generate
from dragoman.phrasebook.annotated_tree import leaves_and_bracketing, text
from dragoman.phrasebook.english import sentences as english
from dragoman.phrasebook.korean import sentences as korean
from dragoman.phrasebook.korean.inflection import Stem, conjugate, mark
from dragoman.phrasebook.korean.words import ADJECTIVES as KOREAN_ADJECTIVES
from dragoman.phrasebook.korean.words import NOUNS as KOREAN_NOUNS
from dragoman.phrasebook.korean.words import VERBS as KOREAN_VERBS
from dragoman.phrasebook.lexicon import ADJECTIVES, NOUNS, VERBS
from dragoman.phrasebook.meaning import Pronoun, Sentence
from dragoman.phrasebook.sampling import SentenceSampler

# -- particles and conjugation ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("왕", "왕은 왕이 왕을 왕과 왕으로 왕에게 왕에 왕에서 왕의"),
        ("여자", "여자는 여자가 여자를 여자와 여자로 여자에게 여자에 여자에서 여자의"),
        ("마을", "마을은 마을이 마을을 마을과 마을로 마을에게 마을에 마을에서 마을의"),
        ("부엌", "부엌은 부엌이 부엌을 부엌과 부엌으로 부엌에게 부엌에 부엌에서 부엌의"),
    ],
)
def test_particles_follow_the_last_sound(word: str, forms: str) -> None:
    cases = ("topic", "subject", "object", "with", "toward", "to", "in", "at", "of")
    assert [mark(word, case) for case in cases] == forms.split()


# present: statement, question, attribute, -(으)ㄹ, quotation, 는지, -고, -(으)면, -지, -아/어야
# past: statement, attribute, quotation
TABLE = {
    Stem(
        "먹"
    ): "먹습니다 먹습니까 먹는 먹을 먹는다 먹는지 먹고 먹으면 먹지 먹어야 먹었습니다 먹은 먹었다",
    Stem("가"): "갑니다 갑니까 가는 갈 간다 가는지 가고 가면 가지 가야 갔습니다 간 갔다",
    Stem("보"): "봅니다 봅니까 보는 볼 본다 보는지 보고 보면 보지 봐야 봤습니다 본 봤다",
    Stem("주"): "줍니다 줍니까 주는 줄 준다 주는지 주고 주면 주지 줘야 줬습니다 준 줬다",
    Stem("마시"): "마십니다 마십니까 마시는 마실 마신다 마시는지 마시고 마시면 마시지 마셔야 "
    "마셨습니다 마신 마셨다",
    Stem("보내"): "보냅니다 보냅니까 보내는 보낼 보낸다 보내는지 보내고 보내면 보내지 보내야 "
    "보냈습니다 보낸 보냈다",
    Stem("일하"): "일합니다 일합니까 일하는 일할 일한다 일하는지 일하고 일하면 일하지 일해야 "
    "일했습니다 일한 일했다",
    Stem(
        "닫"
    ): "닫습니다 닫습니까 닫는 닫을 닫는다 닫는지 닫고 닫으면 닫지 닫아야 닫았습니다 닫은 닫았다",
    Stem("울"): "웁니다 웁니까 우는 울 운다 우는지 울고 울면 울지 울어야 울었습니다 운 울었다",
    Stem("쓰"): "씁니다 씁니까 쓰는 쓸 쓴다 쓰는지 쓰고 쓰면 쓰지 써야 썼습니다 쓴 썼다",
    Stem("듣", "verb", "ㄷ"): "듣습니다 듣습니까 듣는 들을 듣는다 듣는지 듣고 들으면 듣지 들어야 "
    "들었습니다 들은 들었다",
    Stem("돕", "verb", "ㅂ"): "돕습니다 돕습니까 돕는 도울 돕는다 돕는지 돕고 도우면 돕지 도와야 "
    "도왔습니다 도운 도왔다",
    Stem(
        "모르", "verb", "르"
    ): "모릅니다 모릅니까 모르는 모를 모른다 모르는지 모르고 모르면 모르지 "
    "몰라야 몰랐습니다 모른 몰랐다",
    Stem("좋", "adjective"): "좋습니다 좋습니까 좋은 좋을 좋다 좋은지 좋고 좋으면 좋지 좋아야 "
    "좋았습니다 좋았던 좋았다",
    Stem("배고프", "adjective"): "배고픕니다 배고픕니까 배고픈 배고플 배고프다 배고픈지 배고프고 "
    "배고프면 배고프지 배고파야 배고팠습니다 배고팠던 배고팠다",
    Stem(
        "길", "adjective"
    ): "깁니다 깁니까 긴 길 길다 긴지 길고 길면 길지 길어야 길었습니다 길었던 길었다",
    Stem("무겁", "adjective", "ㅂ"): "무겁습니다 무겁습니까 무거운 무거울 무겁다 무거운지 무겁고 "
    "무거우면 무겁지 무거워야 무거웠습니다 무거웠던 무거웠다",
    Stem(
        "게으르", "adjective", "르"
    ): "게으릅니다 게으릅니까 게으른 게으를 게으르다 게으른지 게으르고 "
    "게으르면 게으르지 게을러야 게을렀습니다 게을렀던 게을렀다",
    Stem("빨갛", "adjective", "ㅎ"): "빨갛습니다 빨갛습니까 빨간 빨갈 빨갛다 빨간지 빨갛고 빨가면 "
    "빨갛지 빨개야 빨갰습니다 빨갰던 빨갰다",
    Stem("하얗", "adjective", "ㅎ"): "하얗습니다 하얗습니까 하얀 하얄 하얗다 하얀지 하얗고 하야면 "
    "하얗지 하얘야 하얬습니다 하얬던 하얬다",
    Stem(
        "맛있", "existence"
    ): "맛있습니다 맛있습니까 맛있는 맛있을 맛있다 맛있는지 맛있고 맛있으면 "
    "맛있지 맛있어야 맛있었습니다 맛있었던 맛있었다",
    Stem(
        "것이", "copula"
    ): "것입니다 것입니까 것인 것일 것이라 것인지 것이고 것이면 것이지 것이어야 "
    "것이었습니다 것이었던 것이었다",
    Stem("오래되", "adjective", perfect=True): "오래됐습니다 오래됐습니까 오래된 오래될 오래됐다 "
    "오래됐는지 오래됐고 오래됐으면 오래되지 오래돼야 오래됐습니다 오래됐던 오래됐다",
}


@pytest.mark.parametrize("stem", TABLE, ids=lambda stem: stem.text)
def test_a_stem_conjugates_as_in_the_grammars(stem: Stem) -> None:
    present = ("statement", "question", "attribute", "prospective", "quotation", "whether")
    present += ("and", "if", "not", "must")
    forms = [conjugate(stem, ending) for ending in present]  # type: ignore[arg-type]
    forms += [conjugate(stem, e, "past") for e in ("statement", "attribute", "quotation")]  # type: ignore[arg-type]
    assert forms == TABLE[stem].split()


def test_every_concept_has_a_korean_word() -> None:
    assert set(KOREAN_NOUNS) == set(NOUNS)
    assert {key.partition("/")[0] for key in KOREAN_VERBS} == set(VERBS) - {"be"}
    assert {key.partition("/")[0] for key in KOREAN_ADJECTIVES} == set(ADJECTIVES)


def test_no_two_nouns_share_a_word() -> None:
    assert len({noun.word for noun in KOREAN_NOUNS.values()}) == len(KOREAN_NOUNS)


# -- the corpus ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus() -> list[Example]:
    return [*generate("ko", "train", 3_000, seed=8), *generate("ko", "test", 3_000, seed=8)]


def test_the_stream_is_the_same_on_every_machine_and_python() -> None:
    """A change of grammar or lexicon changes this on purpose; a change of Python must not."""
    joined = "\n".join(f"{e.source}\t{e.target}" for e in generate("ko", "train", 200, seed=1))
    assert hashlib.sha256(joined.encode()).hexdigest()[:16] == "8f735876f805e9a6"


@pytest.mark.slow
def test_no_english_text_has_two_korean_ones_over_thirty_thousand_meanings() -> None:
    sampler = SentenceSampler(Random("ambiguity"))
    translation: dict[str, str] = {}
    for _ in range(30_000):
        meaning = sampler.sentence()
        source = text(leaves_and_bracketing(english.realise(meaning))[0])
        target = korean_text(meaning)
        assert translation.setdefault(source, target) == target
    assert len(translation) < 30_000, "no text was drawn twice: the test saw nothing"


@pytest.mark.slow
def test_korean_uses_nothing_that_the_english_text_does_not_show() -> None:
    """Whom "he", "she" or "they" was drawn for is such a thing; Korean must guess by rule."""
    sampler = SentenceSampler(Random("hidden"))
    hidden = 0
    for _ in range(4_000):
        meaning = sampler.sentence()
        forgetful = copy.deepcopy(meaning)
        for pronoun in pronouns_of(forgetful):
            if pronoun.key != "it":
                hidden += pronoun.antecedent is not None
                pronoun.antecedent = None
        assert korean_text(forgetful) == korean_text(meaning)
    assert hidden > 300


def korean_text(meaning: Sentence) -> str:
    return text(leaves_and_bracketing(korean.realise(meaning))[0])


def pronouns_of(node: object) -> Iterator[Pronoun]:
    if isinstance(node, Pronoun):
        yield node
    elif dataclasses.is_dataclass(node):
        for part in dataclasses.fields(node):
            yield from pronouns_of(getattr(node, part.name))


@pytest.mark.slow
def test_every_particle_of_the_corpus_fits_its_noun(corpus: list[Example]) -> None:
    """By Unicode's own decomposition: a closed syllable has a third letter."""
    nouns = sorted((noun.word for noun in KOREAN_NOUNS.values()), key=len, reverse=True)
    pattern = re.compile(rf"({'|'.join(nouns)})(들?)(은|는|이|가|을|를|과|와)")
    seen = 0
    for word in itertools.chain(*(re.findall(r"\w+", example.target) for example in corpus)):
        match = pattern.fullmatch(word)
        if match and word not in KNOWN_HOMOGRAPHS:
            closed = len(unicodedata.normalize("NFD", word[-2])) == 3
            assert (match[3] in "은이을과") == closed, word
            seen += 1
    assert seen > 10_000


KNOWN_HOMOGRAPHS = frozenset({"사는"})  # 사다, to buy


@pytest.mark.slow
def test_korean_sentences_are_hangul_in_the_formal_polite_style(corpus: list[Example]) -> None:
    for example in corpus:
        assert re.fullmatch(r"[가-힣]+( [가-힣]+)*(니다\.|니까\?)", example.target), example
        assert example.target.endswith("?") == example.source.endswith("?")


def test_all_counters_and_pronouns_occur(corpus: list[Example]) -> None:
    words = set(itertools.chain(*(example.target.split() for example in corpus)))
    assert {"저는", "제가", "그는", "그녀는", "그들은", "우리는", "자기가", "자기", "그의"} <= words
    assert {"그것을", "그곳을", "그", "누가", "무엇을", "누구를", "언제", "왜"} <= words
    assert {"명에게", "마리를", "개를", "권을", "두", "세"} <= words
