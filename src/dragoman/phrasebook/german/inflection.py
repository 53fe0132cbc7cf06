"""German words are inflected here: articles, adjectives, nouns, pronouns and finite verbs."""

from __future__ import annotations

from dragoman.phrasebook.german.words import NOUNS, STEMS, GermanVerb

# A form is chosen by case ("nom", "acc", "dat") and by gender or plural ("m", "f", "n", "p").
_DEFINITE = {
    "nom": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "acc": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dat": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
}
_STRONG = {  # the endings of "dieser"; of an adjective that no determiner marks
    "nom": {"m": "er", "f": "e", "n": "es", "p": "e"},
    "acc": {"m": "en", "f": "e", "n": "es", "p": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "p": "en"},
}
_WEAK = {  # after der, dieser, jeder
    "nom": {"m": "e", "f": "e", "n": "e", "p": "en"},
    "acc": {"m": "en", "f": "e", "n": "e", "p": "en"},
    "dat": {"m": "en", "f": "en", "n": "en", "p": "en"},
}
_EIN = {  # the endings of ein, kein, mein
    "nom": {"m": "", "f": "e", "n": "", "p": "e"},
    "acc": {"m": "en", "f": "e", "n": "", "p": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "p": "en"},
}
_MIXED = {  # of an adjective after ein, kein, mein: strong where they have no ending
    "nom": {"m": "er", "f": "e", "n": "es", "p": "en"},
    "acc": {"m": "en", "f": "e", "n": "es", "p": "en"},
    "dat": {"m": "en", "f": "en", "n": "en", "p": "en"},
}
_DER_WORDS = {"this": "dies", "every": "jed"}
_BARE = {"two": "zwei", "three": "drei"}
_POSSESSIVES = {"i": "mein", "we": "unser", "he": "sein", "it": "sein", "she": "ihr", "they": "ihr"}
_PRONOUNS = {
    "i": ("ich", "mich", "mir"),
    "we": ("wir", "uns", "uns"),
    "he": ("er", "ihn", "ihm"),
    "she": ("sie", "sie", "ihr"),
    "it": ("es", "es", "ihm"),
    "they": ("sie", "sie", "ihnen"),
}
_CASES = {"nom": 0, "acc": 1, "dat": 2}
_BY_GENDER = {"m": "he", "f": "she", "n": "it"}
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
}
# "ich", "er", "wir" and "sie"
_SPECIAL = {
    "sein": ("bin", "ist", "sind"),
    "haben": ("habe", "hat", "haben"),
    "werden": ("werde", "wird", "werden"),
    "can": ("kann", "kann", "können"),
    "must": ("muss", "muss", "müssen"),
    "must not": ("darf", "darf", "dürfen"),
    "want": ("will", "will", "wollen"),
    "should": ("sollte", "sollte", "sollten"),
    "war": ("war", "war", "waren"),
}
_AGREEMENT = {"i": 0, "one": 1, "many": 2}


def determiner(word: str, case: str, gender: str) -> str:
    """Return a form of "the", "a", "no", "this", "every", "two", "three" or "many"."""
    if word == "the":
        return _DEFINITE[case][gender]
    if word == "a":
        return "ein" + _EIN[case][gender]
    if word == "no":
        return "kein" + _EIN[case][gender]
    if word == "many":
        return "viel" + _STRONG[case][gender]
    return _BARE.get(word) or _DER_WORDS[word] + _STRONG[case][gender]


def possessive(owner: str, case: str, gender: str) -> str:
    """Return a form of "mein", "unser", "sein" or "ihr"; unser- keeps its e (not unsren)."""
    return _POSSESSIVES[owner] + _EIN[case][gender]


def adjective(word: str, declension: str, case: str, gender: str) -> str:
    """Return an adjective with its "weak", "mixed" or "strong" ending."""
    endings = {"weak": _WEAK, "mixed": _MIXED, "strong": _STRONG}[declension]
    return STEMS.get(word, word) + endings[case][gender]


def noun_form(key: str, case: str, plural: bool) -> str:
    """Return a noun in its case and number."""
    noun = NOUNS[key]
    if not plural:
        return noun.plural if noun.weak and case != "nom" else noun.singular
    if case == "dat" and not noun.plural.endswith(("n", "s")):
        return noun.plural + "n"
    return noun.plural


def pronoun(key: str, case: str, antecedent: str | None) -> str:
    """Return a personal pronoun; "it" takes the gender of the noun it stands for."""
    return _PRONOUNS[owner_key(key, antecedent)][_CASES[case]]


def owner_key(key: str, antecedent: str | None) -> str:
    """Return the pronoun that German uses: "it" is he, she or it by the antecedent's gender."""
    if key != "it":
        return key
    assert antecedent is not None
    return _BY_GENDER[NOUNS[antecedent].gender]


def relative_pronoun(case: str, gender: str) -> str:
    """Return the relative pronoun: the definite article, but "denen" in the dative plural."""
    return "denen" if case == "dat" and gender == "p" else _DEFINITE[case][gender]


def finite(word: GermanVerb | str, agrees: str) -> str:
    """Return the finite form of a verb or of sein, haben, werden, war or a modal."""
    column = _AGREEMENT[agrees]
    if isinstance(word, str):
        return _SPECIAL[word][column]
    if word.infinitive in _SPECIAL:
        return _SPECIAL[word.infinitive][column]
    return (word.first, word.third, word.infinitive)[column]
