"""The lexicon holds the concepts: nouns and their kinds, verbs and their frames, adjectives, names.

Nothing here belongs to one language. Keys happen to be English words; the words themselves stand
in `english.words`, `german.words` and so on, one file a language. The tables at the end say which
words go together; they are made once, so that sampling is fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Noun:
    """Say what a noun is, and which English pronoun refers back to it (none for "child")."""

    key: str
    kinds: frozenset[str]
    pronoun: Literal["he", "she", "it"] | None
    mass: bool = False  # tea, bread: no plural, no "a"


@dataclass(frozen=True, slots=True)
class Verb:
    """Say which kinds of noun fill a verb's places, and which circumstances suit it."""

    key: str
    subjects: frozenset[str]
    objects: frozenset[str] = frozenset()
    recipients: frozenset[str] = frozenset()
    complement: Literal["that", "whether"] | None = None
    allows: frozenset[str] = frozenset()  # relations, "manner" and "voice"
    weight: int = 2  # how often it is drawn


def _nouns() -> dict[str, Noun]:
    rows = {
        ("he", "person"): "man boy king prince teacher doctor baker farmer neighbour student "
        "friend",
        ("he", "person kin"): "uncle brother father grandfather",
        ("she", "person fair"): "woman girl queen princess",
        ("she", "person kin"): "aunt sister mother grandmother",
        (None, "person"): "child",
        ("it", "animal"): "horse bear cow lion goat pig",
        ("it", "animal pet"): "dog cat mouse rabbit duck",
        ("it", "animal pet bird"): "bird",
        ("it", "food"): "apple cake egg soup banana pear potato tomato pizza",
        ("it", "food mass"): "bread cheese",
        ("it", "drink mass"): "tea coffee milk water juice",
        ("it", "text thing gift"): "book letter",
        ("it", "press thing gift"): "newspaper",
        ("it", "story"): "story",
        ("it", "song"): "song",
        ("it", "thing gift picture"): "picture",
        ("it", "thing vehicle"): "car bicycle boat",
        ("it", "thing device"): "lamp radio",
        ("it", "thing gift clothes"): "hat coat dress shirt",
        ("it", "thing gift"): "key clock",
        ("it", "thing gift coloured"): "ball bag flower camera guitar",
        ("it", "thing furniture"): "table chair box",
        ("it", "opening pane"): "door window",
        ("it", "place room"): "kitchen room office",
        ("it", "place building opening"): "library museum hotel",
        ("it", "place building"): "house school church",
        ("it", "place outdoors"): "garden park forest street market beach bridge mountain",
        ("it", "place town"): "city village station",
    }
    nouns = {}
    for (pronoun, kinds), keys in rows.items():
        for key in keys.split():
            kind_set = frozenset(kinds.split())
            nouns[key] = Noun(key, kind_set, pronoun, "mass" in kind_set)  # type: ignore[arg-type]
    return nouns


def _verbs() -> dict[str, Verb]:
    verbs = {}
    for line in _VERB_TABLE.strip().splitlines():
        key, subjects, objects, recipients, complement, allows, weight = (
            cell.strip() for cell in line.split("|")
        )
        verbs[key] = Verb(
            key,
            frozenset(subjects.split()),
            frozenset(objects.split()),
            frozenset(recipients.split()),
            complement or None,  # type: ignore[arg-type]
            frozenset(allows.split()),
            int(weight),
        )
    return verbs


# verb | subjects | objects | recipients | complement | allows | weight
_VERB_TABLE = """
be          | person animal thing food drink place | | | | | 10
sleep       | person animal | | | | location | 3
laugh       | person | | | | location voice | 2
cry         | person | | | | location voice | 2
work        | person | | | | location company manner | 3
dance       | person | | | | location company manner | 3
sing        | person bird | | | | location voice | 2
swim        | person animal | | | | manner | 2
stay        | person animal | | | | location company | 2
play        | person animal | | | | location company | 3
get up      | person | | | | manner | 3
wake up     | person animal | | | | | 2
fall asleep | person animal | | | | location | 2
arrive      | person | | | | location | 2
run         | person animal | | | | goal manner | 3
go          | person animal | | | | goal manner | 3
travel      | person | | | | goal company | 2
come back   | person animal | | | | source manner | 3
see         | person animal | person animal thing place food opening | | | location | 4
love        | person animal | person animal place drink food song | | | | 3
buy         | person | thing food drink | | | location benefit | 4
sell        | person | thing food drink animal | | | location | 3
eat         | person | food | | | location company manner | 4
drink       | person | drink | | | location company manner | 4
read        | person | text press story | | | location manner | 3
write       | person | text story song | | | location benefit | 3
find        | person animal | person animal thing | | | location | 3
look for    | person animal | person animal thing | | | location | 4
carry       | person | thing pet | | | manner | 3
paint       | person | person animal thing place opening | | | location benefit | 3
hear        | person animal | person animal song story device | | | location | 3
know        | person | person story song town building | | | | 3
visit       | person | person building town outdoors | | | company | 3
wash        | person | clothes vehicle pet | | | location | 3
open        | person | opening | | | voice manner | 3
close       | person | opening | | | voice manner | 3
forget      | person | thing story song | | | | 3
call        | person | person | | | | 4
invite      | person | person | | | | 4
pick up     | person | person | | | location | 4
tidy up     | person | room | | | manner | 2
switch on   | person | device | | | | 2
try on      | person | clothes | | | location | 3
help        | person | person animal | | | location | 4
thank       | person | person | | | | 3
answer      | person | person | | | manner voice | 3
follow      | person animal | person animal vehicle | | | manner | 3
listen to   | person | person animal | | | | 3
wait for    | person animal | person | | | location | 3
think of    | person | person animal thing place story | | | | 3
talk about  | person | person animal thing place story drink | | | | 3
dream of    | person | person animal place vehicle food drink | | | | 3
give        | person | thing food drink animal | person | | | 5
show        | person | thing place animal | person | | | 5
send        | person | gift | person | | | 4
bring       | person | thing food drink | person | | | 4
lend        | person | thing | person | | | 3
offer       | person | food drink gift | person | | | 4
tell        | person | story | person | | location | 2
think       | person | | | that | | 3
say         | person | | | that | | 3
believe     | person | | | that | | 3
hope        | person | | | that | | 2
notice      | person animal | | | that | | 2
ask         | person | | | whether | | 3
"""

# adjectives and the kinds of noun they suit
_ADJECTIVE_TABLE = {
    "person animal": "old young hungry tired happy sad strong clever lazy",
    "person": "rich poor friendly famous",
    "animal": "wild",
    "person animal thing place pane": "small big",
    "fair animal thing place": "beautiful",
    "thing": "new heavy",
    "thing place pane": "old",
    "thing drink": "expensive cheap good",
    "clothes device vehicle furniture coloured animal": "black white brown",
    "clothes furniture coloured vehicle pane": "red blue green",
    "food drink": "warm cold fresh good",
    "place": "quiet dark",
    "room clothes": "clean",
    "story song": "long beautiful sad old",
}

NAMES: dict[str, Literal["he", "she"]] = {
    "Anna": "she",
    "Maria": "she",
    "Julia": "she",
    "Peter": "he",
    "Thomas": "he",
    "Martin": "he",
}

# when, and the tenses it goes with; "modal" is the present of "can", "must", "wants to"
TIMES: dict[str, tuple[str, ...]] = {
    "yesterday": ("past",),
    "last week": ("past",),
    "today": ("present", "past", "future", "modal"),
    "tomorrow": ("future", "modal"),
    "now": ("present", "modal"),
    "every day": ("present", "modal"),
    "in the evening": ("present", "past", "future", "modal"),
    "on Monday": ("past", "future", "modal"),
}
FREQUENCIES = ("often", "always", "never", "sometimes")  # how often
MANNERS = {"manner": ("quickly", "slowly"), "voice": ("loudly", "quietly")}  # how
MODALS = ("can", "must", "want", "should")
NOUNS = _nouns()
VERBS = _verbs()


def _adjectives() -> dict[str, frozenset[str]]:
    kinds: dict[str, frozenset[str]] = {}
    for suited, keys in _ADJECTIVE_TABLE.items():
        for key in keys.split():
            kinds[key] = kinds.get(key, frozenset()) | frozenset(suited.split())
    return kinds


ADJECTIVES = _adjectives()


# -- which words go together ---------------------------------------------------------------------


def _nouns_of(kinds: frozenset[str]) -> tuple[str, ...]:
    return tuple(key for key, noun in NOUNS.items() if noun.kinds & kinds)


def _weighted(keys: list[str]) -> tuple[str, ...]:
    """Repeat each verb as often as its weight says, so that a uniform draw follows the weights."""
    return tuple(key for key in keys for _ in range(VERBS[key].weight))


SUBJECTS_OF = {key: _nouns_of(verb.subjects) for key, verb in VERBS.items()}
OBJECTS_OF = {key: _nouns_of(verb.objects) for key, verb in VERBS.items()}
RECIPIENTS_OF = {key: _nouns_of(verb.recipients) for key, verb in VERBS.items()}

# verbs that take no clause; those that take one
PLAIN_VERBS = _weighted([key for key, verb in VERBS.items() if verb.complement is None])
TELLING_VERBS = _weighted([key for key, verb in VERBS.items() if verb.complement is not None])

# the verbs a noun can be the subject, or the object, of
SUBJECT_VERBS_OF = {
    noun: _weighted([v for v in VERBS if noun in SUBJECTS_OF[v] and not VERBS[v].complement])
    for noun in NOUNS
}
OBJECT_VERBS_OF = {noun: _weighted([v for v in VERBS if noun in OBJECTS_OF[v]]) for noun in NOUNS}

ADJECTIVES_OF = {
    key: tuple(a for a, kinds in ADJECTIVES.items() if kinds & noun.kinds)
    for key, noun in NOUNS.items()
}
PEOPLE = _nouns_of(frozenset({"person"}))
PLACES = _nouns_of(frozenset({"place"}))
STATES = frozenset({"be", "love", "know"})  # not said of a moment: no adverb of time
ALONE = frozenset({"mother", "father"})  # not drawn in the plural
OWNED_PLACES = frozenset({"house", "garden", "room", "kitchen", "office", "village", "city"})
KIN = frozenset(_nouns_of(frozenset({"kin"})))
FAR = ("city", "village", "beach", "mountain")  # where one travels to, and arrives

_PREPOSITIONAL = ("wait for", "think of", "talk about", "dream of")
# the verbs whose object "it" can be: "thinks of it" of things only
PRONOUN_VERBS_OF = {
    noun: tuple(v for v in verbs if not ("animal" in NOUNS[noun].kinds and v in _PREPOSITIONAL))
    for noun, verbs in OBJECT_VERBS_OF.items()
}
WHOM_VERBS = _weighted(
    [key for key, verb in VERBS.items() if "person" in verb.objects and key not in _PREPOSITIONAL]
)
WHAT_VERBS = _weighted(
    [key for key, verb in VERBS.items() if verb.objects and "person" not in verb.objects]
    + ["see", "find", "look for", "paint", "hear"]
)
WHERE_VERBS = _weighted([key for key, verb in VERBS.items() if "location" in verb.allows])
