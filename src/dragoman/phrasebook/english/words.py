"""This table has the English words for the concepts of the lexicon."""

from __future__ import annotations

# plurals that the rules (-s, -es, -ies) do not give
PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "mouse": "mice",
}

# first word, third person, past; particle or preposition after it
VERBS: dict[str, tuple[str, str, str, str]] = {"be": ("be", "is", "was", "")}
_REGULAR = (
    "laugh work dance play travel arrive love look:for carry paint visit wash open close call "
    "invite pick:up switch:on help thank answer follow listen:to wait:for talk:about dream:of "
    "show offer believe hope notice ask cry stay tidy:up try:on"
)
_IRREGULAR = (
    "sleep:slept sing:sang swim:swam get:got:up wake:woke:up fall:fell:asleep run:ran "
    "go:went come:came:back see:saw buy:bought sell:sold eat:ate drink:drank read:read "
    "write:wrote find:found hear:heard know:knew forget:forgot think:thought:of give:gave "
    "send:sent bring:brought lend:lent tell:told think:thought say:said"
)


def _third(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in "aeou":
        return verb[:-1] + "ies"
    return verb + "s"


def _past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeou":
        return verb[:-1] + "ied"
    return verb + ("led" if verb == "travel" else "ed")


for _entry in _REGULAR.split():
    _verb, _, _particle = _entry.partition(":")
    VERBS[f"{_verb} {_particle}".strip()] = (_verb, _third(_verb), _past(_verb), _particle)
for _entry in _IRREGULAR.split():
    _verb, _past_form, _particle = (*_entry.split(":"), "")[:3]
    VERBS[f"{_verb} {_particle}".strip()] = (_verb, _third(_verb), _past_form, _particle)

# verbs whose second word is a preposition with the object in it (waits [for the bus])
PREPOSITIONAL = frozenset({"listen to", "wait for", "think of", "talk about", "dream of"})
PREPOSITIONAL |= {"look for"}

# subject, object, possessive
PRONOUNS = {
    "i": ("I", "me", "my"),
    "we": ("we", "us", "our"),
    "he": ("he", "him", "his"),
    "she": ("she", "her", "her"),
    "it": ("it", "it", "its"),
    "they": ("they", "them", "their"),
}

MODALS = {"can": "can", "must": "must", "should": "should"}  # "want" is an ordinary verb

# adverbs of time as (label, ((tag, word), …)); one key a word aligns them with other languages
TIMES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "yesterday": ("NP", (("NN", "yesterday"),)),
    "last week": ("NP", (("JJ", "last"), ("NN", "week"))),
    "today": ("NP", (("NN", "today"),)),
    "tomorrow": ("NP", (("NN", "tomorrow"),)),
    "now": ("ADVP", (("RB", "now"),)),
    "every day": ("NP", (("DT", "every"), ("NN", "day"))),
    "in the evening": ("PP", (("IN", "in"), ("DT", "the"), ("NN", "evening"))),
    "on Monday": ("PP", (("IN", "on"), ("NNP", "Monday"))),
}

PREPOSITIONS = {"goal": "to", "source": "from", "company": "with", "benefit": "for"}
# where one is "at" or "on" a place; elsewhere one is "in" it
LOCATIONS = {
    "station": "at",
    "market": "at",
    "beach": "on",
    "bridge": "on",
    "mountain": "on",
    "street": "on",
}


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    if noun in PLURALS:
        return PLURALS[noun]
    if noun.endswith(("s", "x", "ch", "sh")) or noun in ("potato", "tomato"):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return noun[:-1] + "ies"
    return noun + "s"
