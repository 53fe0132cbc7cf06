"""French, Spanish and Portuguese nouns and adjectives make their plurals by these rules."""

from __future__ import annotations

from typing import Final

from dragoman.text.inflection.forms import Kind, WordForm, distinct, word_set

FRENCH_FUNCTION_WORDS: Final = word_set(
    "le la les l un une des du de d au aux à en dans sur sous par pour avec sans chez entre vers "
    "contre depuis pendant avant après devant derrière ce cet cette ces c mon ma mes ton ta tes "
    "son sa ses notre nos votre vos leur leurs quel quelle quels quelles je j tu il elle on nous "
    "vous ils elles me m te t se s lui y ne n pas plus et ou mais donc or ni car que qu qui quoi "
    "dont où si comme quand est suis es sommes êtes sont était étaient être été ai as a avons avez "
    "ont avait avaient avoir eu sera seront aux très aussi tout tous toute toutes"
)
SPANISH_FUNCTION_WORDS: Final = word_set(
    "el la los las lo un una unos unas de del a al en con por para sin sobre entre hasta desde "
    "según contra mi mis tu tus su sus nuestro nuestra nuestros nuestras este esta estos estas ese "
    "esa esos esas aquel aquella yo él ella ellos ellas nosotros usted ustedes me te se le les nos "
    "que quien cual cuyo donde cuando como si y e o u pero ni no es son era eran ser sido está "
    "están ha han he hemos había muy más también"
)
PORTUGUESE_FUNCTION_WORDS: Final = word_set(
    "o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela para com sem sobre "
    "entre até desde contra meu minha meus minhas seu sua seus suas este esta esse essa aquele "
    "aquela eu ele ela eles elas nós você vocês me te se lhe que quem qual onde quando como se e "
    "ou mas nem não é são era eram ser foi está estão há tem têm muito mais também"
)
_FRENCH_OUX: Final = ("bijou", "caillou", "chou", "genou", "hibou", "joujou", "pou")
_FRENCH_AUX: Final = ("travail", "corail", "bail", "vitrail", "émail", "soupirail")
_FRENCH_ALS: Final = ("bal", "carnaval", "festival", "récital", "régal", "chacal", "cal")
_FRENCH_EUS: Final = ("pneu", "bleu", "émeu")
# Words to which an -s makes another.
_FRENCH_OTHER: Final = word_set("pas bas plus moins mais dans sans temps fois bois puis")


def french_forms(word: str, kind: Kind | None = None) -> list[WordForm]:
    """Return a French word and its plural."""
    lower = word.lower()
    if len(word) <= 2 or lower in FRENCH_FUNCTION_WORDS or not word[-1].isalpha():
        return [WordForm(word)]
    if kind == "verb" or lower.endswith(("s", "x", "z")):
        return [WordForm(word)]
    if lower == "œil":
        plural = word[:-3] + ("Yeux" if word[0].isupper() else "yeux")
    elif lower in ("monsieur", "madame", "mademoiselle"):
        plural = {"monsieur": "messieurs", "madame": "mesdames"}.get(lower, "mesdemoiselles")
        plural = plural.title() if word[0].isupper() else plural
    elif lower.endswith(_FRENCH_AUX):
        plural = word[:-2] + "ux"
    elif lower.endswith("al") and lower not in _FRENCH_ALS:
        plural = word[:-1] + "ux"
    elif (lower.endswith(("au", "eu")) and lower not in _FRENCH_EUS) or lower in _FRENCH_OUX:
        plural = word + "x"
    else:
        plural = word + "s"
    if plural.lower() in _FRENCH_OTHER:
        return [WordForm(word)]
    return distinct([WordForm(word, "singular"), WordForm(plural, "plural")])


def spanish_forms(word: str, kind: Kind | None = None) -> list[WordForm]:
    """Return a Spanish word and its plural."""
    return _iberian_forms(word, kind, SPANISH_FUNCTION_WORDS, portuguese=False)


def portuguese_forms(word: str, kind: Kind | None = None) -> list[WordForm]:
    """Return a Portuguese word and its plural."""
    return _iberian_forms(word, kind, PORTUGUESE_FUNCTION_WORDS, portuguese=True)


def _iberian_forms(
    word: str, kind: Kind | None, function_words: frozenset[str], *, portuguese: bool
) -> list[WordForm]:
    lower = word.lower()
    if len(word) <= 2 or lower in function_words or kind == "verb" or not word[-1].isalpha():
        return [WordForm(word)]
    if lower[-1] in "aeoáéóiu":
        plurals = [word + "s"]
        if portuguese and lower.endswith("ão"):
            plurals = [word[:-2] + "ões", word + "s", word[:-2] + "ães"]
    elif lower.endswith("z"):
        plurals = [word + "es" if portuguese else word[:-1] + "ces"]
    elif portuguese and lower.endswith("m"):
        plurals = [word[:-1] + "ns"]
    elif portuguese and lower.endswith(("al", "el", "ol", "ul")):
        plurals = [word[:-1] + "is"]
    elif lower.endswith(("s", "x")):
        return [WordForm(word)]
    else:
        plurals = [word + "es"]
        if lower.endswith(("ón", "án", "ín", "ún", "én")):  # the accent goes: canciones
            bare = {"ó": "o", "á": "a", "í": "i", "ú": "u", "é": "e"}[lower[-2]]
            plurals = [word[:-2] + bare + "nes"]
    several = [WordForm(text, "plural", 0.5 * n) for n, text in enumerate(plurals)]
    return distinct([WordForm(word, "singular"), *several])


_ELIDING: Final = "aeiouyàâäéèêëîïôöùûüœæ"
_FULL: Final = {
    "l": ("le", "la"), "d": ("de",), "j": ("je",), "n": ("ne",), "qu": ("que",), "s": ("se",),
    "m": ("me",), "t": ("te",), "c": ("ce",),
}  # fmt: skip
_ELIDED: Final = {"le": "l'", "la": "l'", "de": "d'", "que": "qu'", "ne": "n'", "je": "j'"}

_BOTH_GENDERS: Final[dict[str, tuple[str, ...]]] = {
    "le": ("le", "la"), "la": ("la", "le"), "un": ("un", "une"), "une": ("une", "un"),
    "du": ("du", "de la"), "au": ("au", "à la"), "ce": ("ce", "cette"), "cet": ("ce", "cette"),
    "cette": ("cette", "ce"),
}  # fmt: skip
_BEFORE_VOWELS: Final = {
    "le": "l'", "la": "l'", "du": "de l'", "de la": "de l'", "au": "à l'", "à la": "à l'",
    "ce": "cet",
}  # fmt: skip


def french_elides(word: str) -> bool:
    """Return whether le, la and de lose their vowel before a word; of an h one cannot tell: yes."""
    return word[:1].lower() in _ELIDING + "h" and word[:1] != ""


def french_article_variants(before: str, word: str) -> list[str]:
    """Return what may stand before a word where another word was: l'oiseau, but le or la chien.

    `before` is the white-space word before it, or the elided one that is written together with it;
    so is each variant, which ends in a space or an apostrophe.
    """
    lower = before.lower().rstrip("'’ ")
    cased = str.capitalize if before[:1].isupper() else str
    if before.endswith(("'", "’")):
        if french_elides(word):
            return [before]
        return [cased(full) + " " for full in _FULL.get(lower, (lower,))]
    both = _BOTH_GENDERS.get(lower)
    if both is None:
        if lower in _ELIDED and french_elides(word):
            return [cased(_ELIDED[lower])]
        return [before.rstrip() + " "]
    if french_elides(word):
        both = tuple(dict.fromkeys(_BEFORE_VOWELS.get(one, one) for one in both))
    return [cased(one) + ("" if one.endswith("'") else " ") for one in both]
