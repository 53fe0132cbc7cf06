"""Which words go together: the lexicon's classes, multiplied out once for fast sampling."""

from __future__ import annotations

from .lexicon import ADJECTIVES, NOUNS, VERBS

__all__ = [
    "ADJECTIVES_OF",
    "ALONE",
    "FAR",
    "KIN",
    "OBJECTS_OF",
    "OBJECT_VERBS_OF",
    "OWNED_PLACES",
    "PEOPLE",
    "PLACES",
    "PLAIN_VERBS",
    "PRONOUN_VERBS_OF",
    "RECIPIENTS_OF",
    "STATES",
    "SUBJECTS_OF",
    "SUBJECT_VERBS_OF",
    "TELLING_VERBS",
    "WHAT_VERBS",
    "WHERE_VERBS",
    "WHOM_VERBS",
]


def _nouns_of(kinds: frozenset[str]) -> tuple[str, ...]:
    return tuple(key for key, noun in NOUNS.items() if noun.kinds & kinds)


def _weighted(keys: list[str]) -> tuple[str, ...]:
    """Each verb as often as its weight says: a uniform draw then follows the weights."""
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
