"""This table has the Korean words for the concepts of the lexicon."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.phrasebook.korean.inflection import Kind, Stem


@dataclass(frozen=True, slots=True)
class KoreanNoun:
    """Hold a noun and the word it is counted with."""

    word: str
    counter: str


@dataclass(frozen=True, slots=True)
class KoreanVerb:
    """Hold a verb, the words that always stand before it, and the cases of what it takes."""

    stem: Stem
    before: tuple[str, ...] = ()  # 잠에서 깨다
    object_case: str = "object"
    place_case: str = "at"
    goal_case: str = "toward"


@dataclass(frozen=True, slots=True)
class KoreanAdjective:
    """Hold a predicate, and the words before a noun where they are not its attribute form."""

    stem: Stem
    before: tuple[str, ...] = ()  # 나이가 많다
    attribute: tuple[str, ...] = ()  # 나이 든


_NOUN_TABLE = """
명 = man 남자, boy 소년, king 왕, prince 왕자, teacher 선생님, doctor 의사, baker 제빵사
명 = farmer 농부, neighbour 이웃, student 학생, friend 친구, uncle 삼촌, brother 남동생
명 = father 아버지, grandfather 할아버지, woman 여자, girl 소녀, queen 여왕, princess 공주
명 = aunt 이모, sister 여동생, mother 어머니, grandmother 할머니, child 아이
마리 = horse 말, bear 곰, cow 소, lion 사자, goat 염소, pig 돼지, dog 개, cat 고양이, mouse 쥐
마리 = rabbit 토끼, duck 오리, bird 새
개 = apple 사과, cake 케이크, egg 달걀, banana 바나나, pear 배, potato 감자, tomato 토마토
개 = bread 빵, cheese 치즈, hat 모자, key 열쇠, clock 시계, ball 공, bag 가방, table 탁자
개 = chair 의자, box 상자, door 문, window 창문, kitchen 부엌, room 방, bridge 다리, mountain 산
그릇 = soup 수프; 판 = pizza 피자; 잔 = tea 차, coffee 커피, milk 우유, water 물, juice 주스
권 = book 책; 통 = letter 편지; 부 = newspaper 신문; 편 = story 이야기; 곡 = song 노래
점 = picture 그림; 척 = boat 보트; 송이 = flower 꽃; 채 = house 집
대 = car 자동차, bicycle 자전거, radio 라디오, camera 카메라, guitar 기타
개 = lamp 램프; 벌 = coat 외투, dress 드레스, shirt 셔츠
곳 = office 사무실, library 도서관, museum 박물관, hotel 호텔, school 학교, church 교회
곳 = garden 정원, park 공원, forest 숲, street 거리, market 시장, beach 해변, city 도시
곳 = village 마을, station 기차역
"""

# concept[/kind of the object] = [words before] stem [:irregular class] [+object case] [@place case]
_VERB_TABLE = """
sleep = 자; laugh = 웃; cry = 울; work = 일하; dance = 춤추; sing = 노래하; swim = 수영하
stay = 머무르:르 @in; play = 놀; get up = 일어나; wake up = 잠에서 깨; fall asleep = 잠들
arrive = 도착하 @in; run = 달리; run/goal = 달려가; go = 가 >in; travel = 여행하
travel/goal = 여행을 가; come back = 돌아오
see = 보; see/market = 바라보; see/house = 바라보; buy = 사; sell = 팔
love = 좋아하; love/person = 사랑하; love/animal = 사랑하
eat = 먹; drink = 마시; read = 읽; write = 쓰; find = 찾아내; look for = 찾; carry = 나르:르
carry/animal = 안고 가; carry/gift = 들고 가; paint = 그리
hear = 듣:ㄷ; hear/person = 목소리를 듣:ㄷ +of; hear/animal = 소리를 듣:ㄷ +of
know = 알; visit = 방문하; wash = 씻; wash/clothes = 빨
wash/vehicle = 닦; wash/animal = 씻기; open = 열; close = 닫; forget = 잊어버리
call = 전화하 +to; invite = 초대하; pick up = 데리러 가 @toward; tidy up = 정리하; switch on = 켜
try on = 입어 보; try on/hat = 써 보; help = 돕:ㅂ; thank = 감사하 +to; answer = 대답하 +to
follow = 따라가; listen to/person = 말에 귀를 기울이 +of; listen to = 소리에 귀를 기울이 +of
wait for = 기다리; think of = 생각하; talk about = 이야기하 +about; dream of = 꿈을 꾸 +on
give = 주; show = 보여 주; send = 보내; bring = 가져다주; lend = 빌려주; offer = 권하
offer/gift = 내밀; tell = 들려주
think = 생각하; say = 말하; believe = 믿; hope = 바라; notice = 알아차리; ask = 물어보
"""

# concept[/kind of the noun] = [words before] stem [:irregular class] [> words before a noun]
_ADJECTIVE_TABLE = """
old = 오래되:perfect; old/person = 나이가 많 > 나이 든; old/animal = 나이가 많 > 나이 든
young = 젊; young/animal = 어리; young/boy = 어리; young/girl = 어리; young/child = 어리
young/brother = 어리; young/sister = 어리
hungry = 배고프; tired = 피곤하; happy = 행복하; sad = 슬프; strong = 힘이 세 > 힘센
clever = 영리하; lazy = 게으르:르; rich = 부유하; poor = 가난하; friendly = 친절하; famous = 유명하
wild = 사납:ㅂ; small = 작; small/person = 키가 작 > 키 작은; big = 크; big/person = 키가 크 > 키 큰
beautiful = 아름답:ㅂ; new = 새것이:copula > 새; heavy = 무겁:ㅂ; expensive = 비싸; cheap = 싸
good = 좋; good/food = 맛있:existence; good/drink = 맛있:existence
black = 까맣:ㅎ; white = 하얗:ㅎ; red = 빨갛:ㅎ; blue = 파랗:ㅎ
brown = 갈색이:copula > 갈색; green = 초록색이:copula > 초록색
warm = 따뜻하; cold = 차갑:ㅂ; fresh = 신선하; quiet = 조용하; dark = 어둡:ㅂ; clean = 깨끗하
long = 길
"""


def _rows(table: str) -> list[tuple[str, str]]:
    entries = table.replace("\n", ";").split(";")
    return [(a.strip(), b.strip()) for a, _, b in (e.partition("=") for e in entries) if b]


def _nouns() -> dict[str, KoreanNoun]:
    nouns = {}
    for counter, words in _rows(_NOUN_TABLE):
        for entry in words.split(","):
            key, word = entry.split()
            nouns[key] = KoreanNoun(word, counter)
    return nouns


def _stem(entry: str, kind: Kind) -> Stem:
    text, _, mark = entry.partition(":")
    if mark in ("copula", "existence"):
        return Stem(text, mark)  # type: ignore[arg-type]
    if mark == "perfect":
        return Stem(text, kind, perfect=True)
    return Stem(text, kind, mark)


def _verbs() -> dict[str, KoreanVerb]:
    verbs = {}
    for key, entry in _rows(_VERB_TABLE):
        cases = {"+": "object", "@": "at", ">": "toward"}
        words = []
        for word in entry.split():
            if word[0] in cases:
                cases[word[0]] = word[1:]
            else:
                words.append(word)
        verbs[key] = KoreanVerb(_stem(words[-1], "verb"), tuple(words[:-1]), *cases.values())
    return verbs


def _adjectives() -> dict[str, KoreanAdjective]:
    adjectives = {}
    for key, entry in _rows(_ADJECTIVE_TABLE):
        predicate, _, attribute = entry.partition(">")
        *before, stem = predicate.split()
        words = tuple(attribute.split())
        adjectives[key] = KoreanAdjective(_stem(stem, "adjective"), tuple(before), words)
    return adjectives


NOUNS = _nouns()
VERBS = _verbs()
ADJECTIVES = _adjectives()
# what one fails to do rather than refrains from: negated with 못하다, not 않다
INVOLUNTARY = frozenset({"see", "hear", "find", "notice"})
NAMES = {
    "Anna": "안나", "Maria": "마리아", "Julia": "줄리아",
    "Peter": "피터", "Thomas": "토머스", "Martin": "마틴",
}  # fmt: skip

PRONOUNS = {"i": "저", "we": "우리", "he": "그", "she": "그녀", "they": "그들"}
POSSESSIVES = {
    "i": "제",
    "we": "우리",
    "he": "그의",
    "she": "그녀의",
    "they": "그들의",
    "it": "자기",
}
DETERMINERS = {"this": "이", "every": "모든", "many": "많은"}
NUMERALS = {"two": "두", "three": "세"}
TIMES = {
    "yesterday": "어제", "last week": "지난주에", "today": "오늘", "tomorrow": "내일",
    "now": "지금", "every day": "매일", "in the evening": "저녁에", "on Monday": "월요일에",
}  # fmt: skip
# "never" needs a negated predicate; of a past event one says 한 번도, "not even once"
FREQUENCIES = {"often": "자주", "always": "항상", "never": "결코", "sometimes": "가끔"}
MANNERS = {"quickly": "빨리", "slowly": "천천히", "loudly": "큰 소리로", "quietly": "조용히"}
NOT_ONCE = ("한", "번도")
NOISY = "시끄럽게"  # "loudly" of doors, which have no voice
