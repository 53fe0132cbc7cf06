"""The Korean of the phrasebook, against sentences, trees and alignments written by hand."""

from __future__ import annotations

import pytest

from dragoman.phrasebook.annotated_tree import align, leaves_and_bracketing, text
from dragoman.phrasebook.english import sentences as english
from dragoman.phrasebook.korean import sentences as korean
from dragoman.phrasebook.meaning import (
    Adjunct,
    Clause,
    Coordination,
    Gap,
    Name,
    NounPhrase,
    Pair,
    Pronoun,
    Sentence,
    Wh,
)

NP = NounPhrase


def it(noun: str) -> Pronoun:
    return Pronoun("it", noun)


def own(noun: str, owner: str, **rest: object) -> NounPhrase:
    return NP(noun, "own", owner=Pronoun(owner), **rest)  # type: ignore[arg-type]


def state(verb: str, subject: object, **rest: object) -> Sentence:
    return Sentence(Clause(verb, subject, **rest))  # type: ignore[arg-type]


def join(first: Sentence, conjunction: str, second: Sentence, *, fronted: bool = False) -> Sentence:
    return Sentence(Coordination(first.body, conjunction, second.body, fronted))  # type: ignore[arg-type]


def say(sentence: Sentence) -> tuple[str, str]:
    english_leaves, _ = leaves_and_bracketing(english.realise(sentence))
    korean_leaves, _ = leaves_and_bracketing(korean.realise(sentence))
    return text(english_leaves), text(korean_leaves)


GOLD: dict[str, tuple[Sentence, str, str]] = {
    "the verb comes last": (
        state("see", NP("man"), object=NP("dog")),
        "The man sees the dog.",
        "남자는 개를 봅니다.",
    ),
    "an unknown subject is no topic": (
        state("buy", NP("woman", "a"), tense="past", object=NP("car", "a", adjective="old")),
        "A woman bought an old car.",
        "여자가 오래된 자동차를 샀습니다.",
    ),
    "recipient, and an old person": (
        state(
            "give",
            NP("king", adjective="old"),
            tense="past",
            recipient=NP("child"),
            object=NP("apple", "a"),
        ),
        "The old king gave the child an apple.",
        "나이 든 왕은 아이에게 사과를 줬습니다.",
    ),
    "people are counted after their noun": (
        state(
            "wait for",
            NP("student", "two", plural=True, adjective="tired"),
            object=Pair(Name("Anna"), Name("Martin")),
        ),
        "Two tired students wait for Anna and Martin.",
        "피곤한 학생 두 명이 안나와 마틴을 기다립니다.",
    ),
    "books and dogs have counters of their own": (
        state(
            "give",
            Pronoun("she"),
            tense="past",
            recipient=NP("dog", "three", plural=True),
            object=NP("book", "two", plural=True),
        ),
        "She gave three dogs two books.",
        "그녀는 개 세 마리에게 책 두 권을 줬습니다.",
    ),
    "people are many in the noun, things are not": (
        state("sell", NP("farmer", plural=True), object=NP("hat", plural=True)),
        "The farmers sell the hats.",
        "농부들은 모자를 팝니다.",
    ),
    "these things are many in the noun": (
        state("read", NP("friend", "many", plural=True), object=NP("book", "this", plural=True)),
        "Many friends read these books.",
        "많은 친구들이 이 책들을 읽습니다.",
    ),
    "goal, time first": (
        state(
            "go",
            NP("boy", "every"),
            tense="past",
            time="yesterday",
            fronted="time",
            adjunct=Adjunct("goal", NP("school")),
        ),
        "Yesterday every boy went to the school.",
        "어제 모든 소년은 학교에 갔습니다.",
    ),
    "one stays in a place and works at it": (
        join(
            state("stay", Name("Peter"), adjunct=Adjunct("location", NP("hotel"))),
            "but",
            state("work", Name("Anna"), adjunct=Adjunct("location", own("garden", "she"))),
        ),
        "Peter stays in the hotel, but Anna works in her garden.",
        "피터는 호텔에 머무르지만 안나는 자기 정원에서 일합니다.",
    ),
    "company and benefit": (
        join(
            state("travel", Pronoun("i"), tense="past", adjunct=Adjunct("company", Name("Maria"))),
            "and",
            state(
                "buy",
                Pronoun("he"),
                tense="past",
                object=NP("bread", "a"),
                adjunct=Adjunct("benefit", own("mother", "i")),
            ),
        ),
        "I travelled with Maria and he bought bread for my mother.",
        "저는 마리아와 함께 여행했고 그는 제 어머니를 위해 빵을 샀습니다.",
    ),
    "future": (
        state("paint", own("friend", "i"), tense="future", object=NP("bridge", "this")),
        "My friend will paint this bridge.",
        "제 친구는 이 다리를 그릴 것입니다.",
    ),
    "can and cannot": (
        join(
            state("swim", NP("duck"), modal="can"),
            "but",
            state("sing", NP("bear"), modal="can", negated=True),
        ),
        "The duck can swim, but the bear cannot sing.",
        "오리는 수영할 수 있지만 곰은 노래할 수 없습니다.",
    ),
    "must": (
        state("help", Pronoun("we"), modal="must", object=Pronoun("they")),
        "We must help them.",
        "우리는 그들을 도와야 합니다.",
    ),
    "must not": (
        state("open", NP("child"), modal="must", negated=True, object=NP("door")),
        "The child must not open the door.",
        "아이는 문을 열면 안 됩니다.",
    ),
    "should": (
        state("get up", NP("prince"), modal="should", manner="quickly"),
        "The prince should get up quickly.",
        "왕자는 빨리 일어나는 것이 좋습니다.",
    ),
    "I want": (
        state("drink", Pronoun("i"), modal="want", object=NP("tea", "a", adjective="warm")),
        "I want to drink warm tea.",
        "저는 따뜻한 차를 마시고 싶습니다.",
    ),
    "others show that they want": (
        state("sleep", NP("girl"), modal="want", negated=True),
        "The girl does not want to sleep.",
        "소녀는 자고 싶어 하지 않습니다.",
    ),
    "negation": (
        state("eat", NP("girl"), negated=True, object=NP("egg", "a", plural=True)),
        "The girl does not eat eggs.",
        "소녀는 달걀을 먹지 않습니다.",
    ),
    "what one fails to see": (
        state("see", Pronoun("he"), tense="past", negated=True, object=Pronoun("i")),
        "He did not see me.",
        "그는 저를 보지 못했습니다.",
    ),
    "knowing and not knowing": (
        join(
            state("know", Pronoun("they"), object=NP("song")),
            "but",
            state("know", Name("Julia"), negated=True, object=it("song")),
        ),
        "They know the song, but Julia does not know it.",
        "그들은 노래를 알고 있지만 줄리아는 그것을 모릅니다.",
    ),
    "never": (
        join(
            state("laugh", NP("queen"), frequency="never"),
            "because",
            state("dance", NP("king"), frequency="never", tense="past"),
        ),
        "The queen never laughs because the king never danced.",
        "여왕은 왕이 한 번도 춤추지 않았기 때문에 결코 웃지 않습니다.",
    ),
    "loudly by voice and by hand": (
        join(
            state("answer", NP("teacher"), object=NP("student"), manner="loudly"),
            "and",
            state("close", NP("baker"), object=NP("window"), manner="loudly"),
        ),
        "The teacher answers the student loudly and the baker closes the window loudly.",
        "선생님은 학생에게 큰 소리로 대답하고 제빵사는 창문을 시끄럽게 닫습니다.",
    ),
    "adjectives as predicates": (
        join(
            state("be", NP("soup"), predicate="good"),
            "and",
            state("be", NP("hat"), predicate="white"),
        ),
        "The soup is good and the hat is white.",
        "수프는 맛있고 모자는 하얗습니다.",
    ),
    "nouns as predicates": (
        join(
            state("be", NP("coat"), predicate="new", tense="past", negated=True),
            "but",
            state("be", NP("bag"), predicate="green", tense="past"),
        ),
        "The coat was not new, but the bag was green.",
        "외투는 새것이 아니었지만 가방은 초록색이었습니다.",
    ),
    "old things and old people": (
        join(
            state("be", NP("house", plural=True), predicate="old"),
            "although",
            state("be", Name("Thomas"), predicate="old", negated=True),
        ),
        "The houses are old although Thomas is not old.",
        "집은 토머스가 나이가 많지 않은데도 오래됐습니다.",
    ),
    "relative clause in the past": (
        state(
            "love",
            NP("man", relative=Clause("buy", Gap(), "past", object=NP("car"))),
            object=it("car"),
        ),
        "The man who bought the car loves it.",
        "자동차를 산 남자는 그것을 좋아합니다.",
    ),
    "relative clause on an object": (
        state(
            "find",
            NP("boy", "a"),
            tense="past",
            object=NP("key", relative=Clause("look for", NP("woman"), object=Gap())),
        ),
        "A boy found the key that the woman looks for.",
        "소년은 여자가 찾는 열쇠를 찾아냈습니다.",
    ),
    "relative clause in the future, before this": (
        state(
            "sleep",
            NP(
                "girl",
                "this",
                adjective="clever",
                relative=Clause("read", Gap(), "future", object=NP("story")),
            ),
        ),
        "This clever girl who will read the story sleeps.",
        "이야기를 읽을 이 영리한 소녀는 잡니다.",
    ),
    "relative clause of a wish": (
        state(
            "read",
            Pronoun("i"),
            tense="past",
            object=NP("book", relative=Clause("buy", Name("Anna"), modal="want", object=Gap())),
        ),
        "I read the book that Anna wants to buy.",
        "저는 안나가 사고 싶어 하는 책을 읽었습니다.",
    ),
    "with whom and in which": (
        state(
            "tidy up",
            NP(
                "prince",
                relative=Clause("dance", Pronoun("i"), "past", adjunct=Adjunct("company", Gap())),
            ),
            object=NP(
                "room",
                relative=Clause(
                    "sleep", Name("Martin"), "past", adjunct=Adjunct("location", Gap())
                ),
            ),
        ),
        "The prince with whom I danced tidies up the room in which Martin slept.",
        "제가 함께 춤춘 왕자는 마틴이 잔 방을 정리합니다.",
    ),
    "a shared subject is said once": (
        join(state("sleep", NP("dog")), "because", state("be", it("dog"), predicate="tired")),
        "The dog sleeps because it is tired.",
        "개는 피곤하기 때문에 잡니다.",
    ),
    "so it is when the clause comes first": (
        join(
            state("laugh", Pronoun("she")),
            "if",
            state("play", NP("girl"), adjunct=Adjunct("location", NP("forest"))),
            fronted=True,
        ),
        "If the girl plays in the forest, she laughs.",
        "소녀는 숲에서 놀면 웃습니다.",
    ),
    "the noun comes before its pronoun": (
        join(
            state("buy", NP("man"), tense="past", object=NP("car", "a", adjective="red")),
            "because",
            state("be", it("car"), tense="past", predicate="cheap"),
        ),
        "The man bought a red car because it was cheap.",
        "남자는 빨간 자동차가 쌌기 때문에 그것을 샀습니다.",
    ),
    "a place is 그곳": (
        join(
            state("sleep", NP("king"), tense="past", adjunct=Adjunct("location", NP("church"))),
            "although",
            state("be", it("church"), tense="past", predicate="dark"),
        ),
        "The king slept in the church although it was dark.",
        "왕은 교회가 어두웠는데도 그곳에서 잤습니다.",
    ),
    "an animal is named again": (
        join(
            state("wash", NP("aunt"), object=NP("rabbit")),
            "and",
            state("love", NP("uncle"), object=it("rabbit")),
        ),
        "The aunt washes the rabbit and the uncle loves it.",
        "이모는 토끼를 씻기고 삼촌은 그 토끼를 사랑합니다.",
    ),
    "one's own": (
        state("call", NP("farmer"), object=own("sister", "he"), time="today"),
        "The farmer calls his sister today.",
        "농부는 오늘 자기 여동생에게 전화합니다.",
    ),
    "another's": (
        state("visit", NP("mother"), object=own("uncle", "he", adjective="poor")),
        "The mother visits his poor uncle.",
        "어머니는 그의 가난한 삼촌을 방문합니다.",
    ),
    "what one says of oneself": (
        state(
            "say",
            Name("Peter"),
            tense="past",
            complement=Clause("be", Pronoun("he"), "past", predicate="hungry"),
        ),
        "Peter said that he was hungry.",
        "피터는 자기가 배고프다고 말했습니다.",
    ),
    "what one says of others": (
        state(
            "think",
            Pronoun("i"),
            complement=Clause("arrive", NP("doctor"), "future", time="tomorrow"),
        ),
        "I think that the doctor will arrive tomorrow.",
        "저는 의사가 내일 도착할 것이라고 생각합니다.",
    ),
    "whether": (
        state(
            "ask",
            NP("prince"),
            tense="past",
            complement=Clause("hear", NP("girl"), "past", object=own("horse", "he")),
        ),
        "The prince asked whether the girl heard his horse.",
        "왕자는 소녀가 그의 말의 소리를 들었는지 물어봤습니다.",
    ),
    "hoping and noticing": (
        join(
            state("hope", Pronoun("we"), complement=Clause("come back", Name("Anna"))),
            "but",
            state("notice", NP("cat"), complement=Clause("open", NP("boy"), object=NP("box"))),
        ),
        "We hope that Anna comes back, but the cat notices that the boy opens the box.",
        "우리는 안나가 돌아오기를 바라지만 고양이는 소년이 상자를 연다는 것을 알아차립니다.",
    ),
    "yes or no": (
        Sentence(Clause("try on", NP("queen"), "past", object=NP("hat")), "yes-no"),
        "Did the queen try on the hat?",
        "여왕은 모자를 써 봤습니까?",
    ),
    "who": (
        Sentence(Clause("talk about", Wh(person=True), object=NP("mountain")), "who"),
        "Who talks about the mountain?",
        "누가 산에 대해 이야기합니까?",
    ),
    "whom": (
        Sentence(Clause("thank", NP("neighbour"), object=Wh(person=True)), "whom"),
        "Whom does the neighbour thank?",
        "이웃은 누구에게 감사합니까?",
    ),
    "what, in place": (
        Sentence(Clause("eat", NP("bear"), "past", object=Wh(person=False)), "what"),
        "What did the bear eat?",
        "곰은 무엇을 먹었습니까?",
    ),
    "where": (
        Sentence(Clause("stay", NP("grandfather"), "future"), "where"),
        "Where will the grandfather stay?",
        "할아버지는 어디에 머무를 것입니까?",
    ),
    "why": (
        Sentence(Clause("cry", NP("princess"), time="every day"), "why"),
        "Why does the princess cry every day?",
        "공주는 왜 매일 웁니까?",
    ),
}


@pytest.mark.parametrize("phenomenon", GOLD)
def test_a_meaning_is_said_as_written_by_hand(phenomenon: str) -> None:
    sentence, english_text, korean_text = GOLD[phenomenon]
    assert say(sentence) == (english_text, korean_text)


def alignment(sentence: Sentence) -> str:
    """The words that are aligned, as "a~나 …"."""
    source, _ = leaves_and_bracketing(english.realise(sentence))
    target, _ = leaves_and_bracketing(korean.realise(sentence))
    ours, theirs = text(source).strip(".?").split(), text(target).strip(".?").split()
    return " ".join(f"{ours[i].strip(',')}~{theirs[j]}" for i, j in align(source, target))


@pytest.mark.parametrize(
    ("phenomenon", "expected"),
    [
        ("recipient, and an old person", "The~왕은 old~나이 old~든 king~왕은 gave~줬습니다 "
         "the~아이에게 child~아이에게 an~사과를 apple~사과를"),
        ("can and cannot", "The~오리는 duck~오리는 can~수 can~있지만 swim~수영할 but~있지만 "
         "the~곰은 bear~곰은 cannot~수 cannot~없습니다 sing~노래할"),
        ("a shared subject is said once", "The~개는 dog~개는 sleeps~잡니다 because~때문에 "
         "it~피곤하기 is~피곤하기 tired~피곤하기"),
        ("the noun comes before its pronoun", "The~남자는 man~남자는 bought~샀습니다 a~자동차가 "
         "red~빨간 car~자동차가 because~때문에 it~그것을 was~쌌기 cheap~쌌기"),
        ("people are counted after their noun", "Two~두 Two~명이 tired~피곤한 students~학생 "
         "wait~기다립니다 for~기다립니다 Anna~안나와 and~안나와 Martin~마틴을"),
        ("with whom and in which", "The~왕자는 prince~왕자는 with~함께 whom~춤춘 I~제가 "
         "danced~춤춘 tidies~정리합니다 up~정리합니다 the~방을 room~방을 in~잔 which~잔 "
         "Martin~마틴이 slept~잔"),
        ("hoping and noticing", "We~우리는 hope~바라지만 that~돌아오기를 Anna~안나가 "
         "comes~돌아오기를 back~돌아오기를 but~바라지만 the~고양이는 cat~고양이는 "
         "notices~알아차립니다 that~것을 the~소년이 boy~소년이 opens~연다는 the~상자를 box~상자를"),
        ("who", "Who~누가 talks~이야기합니까 about~대해 the~산에 mountain~산에"),
    ],
)  # fmt: skip
def test_words_align_as_written_by_hand(phenomenon: str, expected: str) -> None:
    assert alignment(GOLD[phenomenon][0]) == expected


@pytest.mark.parametrize(
    ("phenomenon", "expected"),
    [
        ("can and cannot",
         "(S (S (NP (NNC 오리는)) (VP (VP (VV 수영할)) (NNX 수) (VX 있지만))) "
         "(S (NP (NNC 곰은)) (VP (VP (VV 노래할)) (NNX 수) (VX 없습니다))) (. .))"),
        ("a shared subject is said once",
         "(S (NP (NNC 개는)) (SBAR (S (VP (VP (ADJP (VJ 피곤하기))) (NNX 때문에)))) "
         "(VP (VV 잡니다)) (. .))"),
        ("relative clause on an object",
         "(S (NP (NNC 소년은)) (VP (NP (SBAR (S (NP (NNC 여자가)) (VP (VV 찾는)))) "
         "(NP (NNC 열쇠를))) (VV 찾아냈습니다)) (. .))"),
        ("people are counted after their noun",
         "(S (NP (ADJP (VJ 피곤한)) (NNC 학생) (NP (NNU 두) (NNX 명이))) "
         "(VP (NP (NP (NPR 안나와)) (NP (NPR 마틴을))) (VV 기다립니다)) (. .))"),
        ("whom", "(SQ (NP (NNC 이웃은)) (VP (NP (NPN 누구에게)) (VV 감사합니까)) (. ?))"),
    ],
)  # fmt: skip
def test_trees_are_bracketed_as_written_by_hand(phenomenon: str, expected: str) -> None:
    assert leaves_and_bracketing(korean.realise(GOLD[phenomenon][0]))[1] == expected
