"""German nouns change by number and case, adjectives and verbs too; nouns have a gender.

Common nouns and irregular verbs stand in tables, which compounds are found in by how they end.
Everything else follows the rules of endings, and where these leave a choice all forms are returned,
the doubtful ones at a cost.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.text.inflection.forms import Kind, Number, WordForm, distinct, word_set, words
from dragoman.text.inflection.german_nouns import (
    Gender,
    ends_compound,
    known_noun,
    nouns,
    umlauted,
)

_WEAK: Final = re.compile(
    r"((stud|präsid|pati|ag|doz|konsum|produz|kli|abonn|absolv|refer|dirig|kontrah|interess|rezens"
    r"|korrespond|assist|reg|konkurr)ent|(demonstr|liefer|praktik|emigr|immigr|fabrik|inform|pass"
    r"|adjut|kommand|protest|denunzi)ant|(?<!ge)[a-zäöü]{3}ist|(kandid|diplom|kr)at|[a-zäöü]{2}loge"
    r"|[a-zäöü]{2}(soph|nom|graf)|(chines|franzos|japanes|portugies)e)$"
)
"""So end many nouns for men and animals that are weak; those in the table of nouns know it."""
_ENS_GENITIVE: Final = ("herz", "name", "gedanke", "friede", "glaube", "wille", "buchstabe", "same")
# What looks like a form of the first word, and is another.
_OTHER_WORDS: Final = {
    "ei": "eis", "reis": "reise reisen", "bau": "bauen", "wein": "weinen", "rat": "rate raten",
    "mus": "muse musen", "ton": "tonen", "ros": "rose rosen", "hos": "hose hosen", "leb": "leben",
    "schul": "schule schulen", "stell": "stelle stellen",
}  # fmt: skip

FUNCTION_WORDS: Final = word_set(
    "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner "
    "keines dieser diese dieses diesen diesem jener jene jenes jenen jenem jeder jede jedes jeden "
    "jedem mancher manche manches welcher welche welches welchen welchem solche solcher solches "
    "mein meine meinen meinem meiner meines dein deine deinen deinem deiner deines sein seine "
    "seinen seinem seiner seines ihr ihre ihren ihrem ihrer ihres unser unsere unseren unserem "
    "unserer unseres euer eure euren eurem eurer eures ich du er sie es wir mich dich ihn uns "
    "euch mir dir ihm ihnen sich man wer wen wem wessen was wo wann warum wie wohin woher und "
    "oder aber denn sondern doch sowie weder noch weil dass ob obwohl wenn als während bevor "
    "nachdem damit falls da bis seit sobald solange indem in an auf zu von mit bei nach aus für "
    "über unter vor hinter neben zwischen durch gegen ohne um wegen trotz statt entlang gegenüber "
    "ab außer im ins am ans zum zur vom beim fürs aufs durchs ums übers unters nicht auch nur "
    "schon sehr so dann hier dort ja mal eben etwa bin bist ist sind seid war warst waren wart "
    "gewesen habe hast hat haben habt hatte hatten gehabt werde wirst wird werden werdet wurde "
    "wurden worden geworden wäre wären hätte hätten würde würden kann kannst können könnt konnte "
    "konnten könnte könnten muss musst müssen müsst musste mussten müsste müssten darf darfst "
    "dürfen dürft durfte durften dürfte soll sollst sollen sollt sollte sollten will willst "
    "wollen wollt wollte wollten mag mögen möchte möchten deren dessen denen viel viele vielen "
    "vieler alle allen aller alles einige einigen mehrere beide beiden dazu daran darauf davon "
    "dafür darüber zwei drei darin daraus dabei dadurch dagegen daher dahin danach darum darunter "
    "davor dazwischen dahinter daneben hierbei hierzu hierfür wobei wodurch wofür wozu worauf "
    "worin woran wovon womit deshalb deswegen trotzdem jedoch immer wieder nun gar etwas nichts "
    "jemand niemand"
)
"""These have no content of their own; a noun that is replaced never takes them with it."""


def guess_kind(word: str) -> Kind:
    """Return what a German word is, by its capital and its ending."""
    if word[:1].isupper():
        return "noun"
    return "verb" if re.search(r"(e|el|er)n$|(?<=[lr])n$", word) and len(word) > 3 else "other"


def word_forms(word: str, kind: Kind | None = None) -> list[WordForm]:
    """Return a German word and its other forms; a capital makes it a noun."""
    if word.lower() in FUNCTION_WORDS or not word[-1:].isalpha():
        return [WordForm(word)]
    kind = kind or guess_kind(word)
    if kind == "noun" or word[0].isupper():
        return noun_forms(word)
    if kind == "verb" and guess_kind(word) == "verb":
        return distinct(map(WordForm, [word, *verb_forms(word)]))
    return adjective_forms(word)


# --- nouns ---


@functools.lru_cache(4096)
def _cached_noun_forms(noun: str) -> tuple[WordForm, ...]:
    other = _OTHER_WORDS.get(noun.lower(), "").split()
    forms = [WordForm(noun, "singular", cases="n" if _is_weak(noun) else "nad")]
    forms += _singular_forms(noun)
    for plural, cost in _plurals(noun):
        forms.append(WordForm(plural, "plural", cost, "nag"))
        dative = plural if plural.endswith(("n", "s", "a")) else plural + "n"
        forms.append(WordForm(dative, "plural", cost, "d"))
    return tuple(form for form in distinct(forms) if form.text.lower() not in other)


def noun_forms(noun: str) -> list[WordForm]:
    """Return a noun in every number and case; a short abbreviation has no other forms."""
    if len(noun) < 3 and noun != "Ei":
        return [WordForm(noun)]
    if noun.isupper():
        plural = WordForm(noun + "s", "plural")
        return [WordForm(noun, "singular"), plural, WordForm(noun + "s", "singular", 1.0, "g")]
    if _ADJECTIVE_NOUN.search(noun.lower()):
        stem = noun[:-1] if noun.endswith("e") else noun[:-2]
        return distinct(map(WordForm, [noun, *(stem + end for end in ("e", "en", "er", "em"))]))
    return list(_cached_noun_forms(noun))


_ADJECTIVE_NOUN: Final = re.compile(
    r"(angestellt|beamt|abgeordnet|vorsitzend|deutsch|verwandt|bekannt|gefangen|reisend|studierend"
    r"|erwachsen|jugendlich|krank|verletzt|beauftragt|angehörig|delegiert|vorgesetzt)(e|er)$"
)
"""Such nouns are declined as adjectives: der Angestellte, ein Angestellter."""


def _is_weak(noun: str) -> bool:
    known = known_noun(noun)
    return known.weak if known is not None else _WEAK.search(noun.lower()) is not None


def _singular_forms(noun: str) -> Iterator[WordForm]:
    """Yield the genitive, and all other cases of weak nouns."""
    lower, costs = noun.lower(), genders(noun)
    if _is_weak(noun):
        ending = "n" if lower.endswith(("e", "herr", "bauer", "nachbar")) else "en"
        yield WordForm(noun + ending, "singular", 0.0, "adg")
        return
    if lower.endswith(_ENS_GENITIVE):
        ending = "ens" if lower.endswith("herz") else "ns"
        yield WordForm(noun + ending, "singular", 0.0, "g")
        yield WordForm((noun + ending)[:-1], "singular", 0.0, "ad")
        return
    yield WordForm(noun, "singular", costs["f"], "g")
    if costs["m"] == costs["n"] == CERTAIN:
        return
    if lower.endswith("nis"):
        yield WordForm(noun + "ses", "singular", 0.0, "g")
    elif lower.endswith(("s", "ß", "x", "z", "tsch")):
        yield WordForm(noun + "es", "singular", 0.0, "g")
    else:
        yield WordForm(noun + "s", "singular", 0.0, "g")
        if lower[-1] not in "aeiouyäöü" and not lower.endswith(_UNSTRESSED):
            yield WordForm(noun + "es", "singular", 0.3, "g")
    if lower[-1] not in "aeiouyäöü" and not lower.endswith(_UNSTRESSED):
        yield WordForm(noun + "e", "singular", CERTAIN, "d")  # im Hause, to be found only


_UNSTRESSED: Final = (
    "er",
    "el",
    "en",
    "ling",
    "chen",
    "nis",
    "um",
    "us",
    "or",
    "in",
    "ung",
    "heit",
)


def _plurals(noun: str) -> list[tuple[str, float]]:
    """Return plurals that a noun may have, and how doubtful each is."""
    known, lower = known_noun(noun), noun.lower()
    if known is not None:
        return [(plural, 0.5 * n) for n, plural in enumerate(known.plurals)]
    if lower.endswith("tum") and len(lower) > 4:
        return [(umlauted(noun) + "er", 0.0)]
    if lower.endswith(("chen", "lein")):
        return [(noun, 0.0)]
    if re.search(r"(ung|heit|keit|schaft|ion|tät|enz|anz|ik|ei|ur)$", lower) and len(lower) > 4:
        return [(noun + "en", 0.0)]
    if lower.endswith("nis"):
        return [(noun + "se", 0.0)]
    if _FEMALE.search(lower):
        return [(noun + "nen", 0.0)]
    if re.search(r"(?<!a)um$", lower) and len(lower) > 4:
        return [(noun[:-2] + "en", 0.0), (noun[:-2] + "a", 1.0), (noun + "s", 1.0)]
    if lower.endswith("us") and len(lower) > 4:
        return [(noun[:-2] + "en", 0.5), (noun + "se", 0.5), (noun, 1.0)]
    if lower.endswith("e"):
        if _COLLECTIVE.search(lower):
            return [(noun, 0.0), (noun + "n", 1.5)]
        return [(noun + "n", 0.0), (noun, 3.0)]
    changed = umlauted(noun)
    if lower.endswith(("er", "el", "en")):
        found = [(noun, 0.0)] + ([(changed, 2.0)] if changed != noun else [])
        return found if lower.endswith("en") else [*found, (noun + "n", 2.0)]
    if lower[-1] in "aiouy" and not lower.endswith(("au", "eu")):
        return [(noun + "s", 0.0), (noun[:-1] + "en", 1.5)]
    if _WEAK.search(lower) or lower.endswith("or"):
        return [(noun + "en", 0.0), (noun + "e", 1.5)]
    found = [(noun + "e", 0.3), (noun + "en", 1.2), (noun + "s", 1.5)]
    return [*found, (changed + "e", 1.5)] if changed != noun else found


_FEMALE: Final = re.compile(r"[a-zäöüß]{3}(?<![eaou])in$")
"""So end words for women: Königin, Chefin."""
_COLLECTIVE: Final = re.compile(r"^ge(?!schicht|meinde|bärde|schwulst)[a-zäöüß]{2,}[^ei]e$")
"""Such nouns are neuter, and their plural is the same: Gebäude."""
_GENDER_RULES: Final[tuple[tuple[re.Pattern[str], Gender], ...]] = (
    (_WEAK, "m"),
    (re.compile(r"(ung|heit|keit|schaft|ion|tät|enz|anz|ik|ur|ie|ette|ade|age|itis)$"), "f"),
    (_FEMALE, "f"),
    (re.compile(r"(chen|lein|ment|tum|(?<!a)um|ma|nis)$"), "n"),
    (re.compile(r"(ling|ismus|or|eur|är|ler|ner|ger|cker)$"), "m"),
)
CERTAIN: Final = 10.0
"""A gender that contradicts what is known of a noun costs so much."""


@functools.lru_cache(4096)
def _gender_costs(noun: str) -> tuple[tuple[Gender, float], ...]:
    lower, known = noun.lower(), known_noun(noun)
    every: tuple[Gender, ...] = ("m", "f", "n")
    if known is not None:
        return tuple((one, 0.0 if one in known.genders else CERTAIN) for one in every)
    if _COLLECTIVE.search(lower):
        return (("n", 0.0), ("f", 3.0), ("m", 3.0))
    for pattern, gender in _GENDER_RULES:
        if len(lower) > 4 and pattern.search(lower):
            return tuple((one, 0.0 if one == gender else CERTAIN) for one in every)
    if lower.endswith("e"):
        return (("f", 0.0), ("m", 3.0), ("n", 4.0))
    return tuple((one, 0.0) for one in every)


def genders(noun: str) -> dict[Gender, float]:
    """Return which genders a noun may have, each with how doubtful it is."""
    return dict(_gender_costs(noun))


def certain_gender(noun: str) -> Gender | None:
    """Return the gender of a noun where only one is possible."""
    likely = [one for one, cost in genders(noun).items() if cost == 0]
    doubt = sorted(genders(noun).values())[1]
    return likely[0] if len(likely) == 1 and doubt >= 3 else None


class NounReading(NamedTuple):
    """Hold what a noun in a sentence may be: its gender, its number and its cases."""

    genders: tuple[Gender, ...]
    number: Number | None
    cases: str


@functools.cache
def _known_forms() -> dict[str, list[tuple[str, WordForm]]]:
    """Return the nouns of the table by each of their forms, in small letters."""
    found: dict[str, list[tuple[str, WordForm]]] = {}
    for noun in nouns():
        for form in _cached_noun_forms(noun.capitalize()):
            if form.cost < 2:
                found.setdefault(form.text.lower(), []).append((noun, form))
    return found


def is_simple_noun(word: str) -> bool:
    """Return whether a noun in some form is in the table itself, and so is no compound."""
    return word.lower() in _known_forms()


def first_part(word: str) -> str:
    """Return what comes before the last noun of a compound, with what joins them; perhaps nothing.

    Bildungs for Bildungsbuchs, and Spitzer- for Spitzer-Teleskop.
    """
    if "-" in word.strip("-"):
        return word[: word.rindex("-") + 1]
    lower, table = word.lower(), _known_forms()
    for start in range(3, len(lower) - 2):
        if lower[start:] in table and ends_compound(lower, start):
            return word[:start]
    return ""


@functools.lru_cache(4096)
def read_noun(word: str) -> tuple[NounReading, ...]:
    """Return what a noun in some form may be, where its lemma is known; nothing elsewhere."""
    lower, table = word.lower(), _known_forms()
    for start in range(len(lower) - 1):
        end = lower[start:]
        if end in table and (not start or ends_compound(lower, start)):
            readings = [(known_noun(noun), form) for noun, form in table[end]]
            return tuple(
                NounReading(known.genders, form.number, form.cases)
                for known, form in readings
                if known is not None
            )
    gender = certain_gender(word) if word[:1].isupper() else None
    if gender is not None:
        return tuple(
            NounReading((gender,), form.number, form.cases)
            for form in _cached_noun_forms(word)
            if form.text == word and form.cost < 2
        )
    return ()


# --- adjectives and verbs ---


def adjective_forms(word: str) -> list[WordForm]:
    """Return an adjective with all its endings."""
    stem = word
    if word.endswith("e"):
        stem = word[:-1]
    elif re.search(r"[^aeiouäöü]el$|(au|eu)er$", word):  # dunkle, teure
        stem = word[:-2] + word[-1]
    elif word == "hoch":
        stem = "hoh"
    endings = ("e", "en", "er", "es", "em")
    return distinct(map(WordForm, [word, *(stem + ending for ending in endings)]))


# infinitive, third person, past, participle; prefixes are taken off first
_STRONG_VERBS: Final = {
    row[0]: row[1:]
    for row in (
        line.split("/")
        for line in words(
            "beginnen/beginnt/begann/begonnen beißen/beißt/biss/gebissen bieten/bietet/bot/geboten "
            "binden/bindet/band/gebunden bitten/bittet/bat/gebeten bleiben/bleibt/blieb/geblieben "
            "brechen/bricht/brach/gebrochen brennen/brennt/brannte/gebrannt "
            "bringen/bringt/brachte/gebracht denken/denkt/dachte/gedacht "
            "dringen/dringt/drang/gedrungen essen/isst/aß/gegessen fahren/fährt/fuhr/gefahren "
            "fallen/fällt/fiel/gefallen fangen/fängt/fing/gefangen finden/findet/fand/gefunden "
            "fliegen/fliegt/flog/geflogen fliehen/flieht/floh/geflohen "
            "fließen/fließt/floss/geflossen fressen/frisst/fraß/gefressen "
            "frieren/friert/fror/gefroren geben/gibt/gab/gegeben gehen/geht/ging/gegangen "
            "gelingen/gelingt/gelang/gelungen gelten/gilt/galt/gegolten "
            "genießen/genießt/genoss/genossen gewinnen/gewinnt/gewann/gewonnen "
            "gießen/gießt/goss/gegossen graben/gräbt/grub/gegraben greifen/greift/griff/gegriffen "
            "halten/hält/hielt/gehalten hängen/hängt/hing/gehangen heben/hebt/hob/gehoben "
            "heißen/heißt/hieß/geheißen helfen/hilft/half/geholfen kennen/kennt/kannte/gekannt "
            "klingen/klingt/klang/geklungen kommen/kommt/kam/gekommen laden/lädt/lud/geladen "
            "lassen/lässt/ließ/gelassen laufen/läuft/lief/gelaufen leiden/leidet/litt/gelitten "
            "leihen/leiht/lieh/geliehen lesen/liest/las/gelesen liegen/liegt/lag/gelegen "
            "lügen/lügt/log/gelogen meiden/meidet/mied/gemieden messen/misst/maß/gemessen "
            "nehmen/nimmt/nahm/genommen nennen/nennt/nannte/genannt raten/rät/riet/geraten "
            "reißen/reißt/riss/gerissen reiten/reitet/ritt/geritten rennen/rennt/rannte/gerannt "
            "riechen/riecht/roch/gerochen rufen/ruft/rief/gerufen "
            "schaffen/schafft/schuf/geschaffen scheiden/scheidet/schied/geschieden "
            "scheinen/scheint/schien/geschienen schieben/schiebt/schob/geschoben "
            "schießen/schießt/schoss/geschossen schlafen/schläft/schlief/geschlafen "
            "schlagen/schlägt/schlug/geschlagen schließen/schließt/schloss/geschlossen "
            "schneiden/schneidet/schnitt/geschnitten schreiben/schreibt/schrieb/geschrieben "
            "schreien/schreit/schrie/geschrien schweigen/schweigt/schwieg/geschwiegen "
            "schwimmen/schwimmt/schwamm/geschwommen sehen/sieht/sah/gesehen "
            "senden/sendet/sandte/gesandt singen/singt/sang/gesungen sinken/sinkt/sank/gesunken "
            "sitzen/sitzt/saß/gesessen sprechen/spricht/sprach/gesprochen "
            "springen/springt/sprang/gesprungen stechen/sticht/stach/gestochen "
            "stehen/steht/stand/gestanden stehlen/stiehlt/stahl/gestohlen "
            "steigen/steigt/stieg/gestiegen sterben/stirbt/starb/gestorben "
            "stoßen/stößt/stieß/gestoßen streichen/streicht/strich/gestrichen "
            "streiten/streitet/stritt/gestritten tragen/trägt/trug/getragen "
            "treffen/trifft/traf/getroffen treiben/treibt/trieb/getrieben "
            "treten/tritt/trat/getreten trinken/trinkt/trank/getrunken tun/tut/tat/getan "
            "vergessen/vergisst/vergaß/vergessen verlieren/verliert/verlor/verloren "
            "wachsen/wächst/wuchs/gewachsen waschen/wäscht/wusch/gewaschen "
            "weisen/weist/wies/gewiesen wenden/wendet/wandte/gewandt werben/wirbt/warb/geworben "
            "werfen/wirft/warf/geworfen wiegen/wiegt/wog/gewogen wissen/weiß/wusste/gewusst "
            "ziehen/zieht/zog/gezogen zwingen/zwingt/zwang/gezwungen"
        )
    )
}
_PREFIX: Final = re.compile(
    r"(zurück|zusammen|weiter|wieder|hinter|herunter|hinzu|heraus|herein|hinaus|hinein|voll|über|"
    r"unter|durch|fest|nach|vor|auf|aus|ein|mit|her|hin|weg|los|an|ab|um|zu|bei|dar|be|emp|ent|er|"
    r"ge|miss|ver|zer)"
)
_INSEPARABLE: Final = ("be", "emp", "ent", "er", "ge", "miss", "ver", "zer", "hinter")
_EITHER: Final = ("über", "unter", "durch", "um", "wieder")


def _split_prefix(verb: str) -> tuple[str, str]:
    """Return the prefix of a verb, perhaps none, and the verb without it."""
    if verb in _STRONG_VERBS:
        return "", verb
    found = _PREFIX.match(verb)
    if found is None:
        return "", verb
    prefix, rest = found.group(), verb[found.end() :]
    # What remains must be a verb: a strong one, or long enough to be one (not be-ten, er-ben).
    if rest in _STRONG_VERBS or (len(rest) > 4 and re.match(r"[^aeiouäöü]*[aeiouäöü]", rest)):
        return prefix, rest
    return "", verb


def verb_forms(infinitive: str) -> list[str]:
    """Return the forms of a verb in one word: a separable prefix is not taken off."""
    prefix, verb = _split_prefix(infinitive)
    stem = re.sub(r"e?n$", "", verb)
    third, past, participle = _principal_parts(verb, stem)
    second = third if re.search(r"[sßxz]t$", third) else third.removesuffix("t") + "st"
    second = "weißt" if verb == "wissen" else second
    first = stem[:-2] + stem[-1] + "e" if re.search(r"[^aeiouäöü]el$", stem) else stem + "e"
    past_plural = past + ("n" if past.endswith("e") else "en")
    finite = [first, second, third, stem + ("et" if third.endswith("et") else "t")]
    finite += [past, past_plural, past + ("t" if past.endswith(("s", "ß")) else "st")]
    forms = [prefix + text for text in finite]
    separable = bool(prefix) and prefix not in _INSEPARABLE
    if not prefix:
        forms.append(participle)
    if separable:
        forms += [prefix + participle, prefix + "zu" + verb]
    if prefix and (not separable or prefix in _EITHER):
        forms.append(prefix + participle.removeprefix("ge"))
    forms.append(infinitive + "d")
    return list(dict.fromkeys(forms))


def _principal_parts(verb: str, stem: str) -> tuple[str, str, str]:
    """Return third person, past and participle."""
    if verb in _STRONG_VERBS:
        third, past, participle = _STRONG_VERBS[verb]
        return third, past, participle
    link = "e" if re.search(r"([td]|[^aeiouäöülrh][mn])$", stem) else ""
    unmarked = stem.endswith("ier")  # studiert, not gestudiert
    return stem + link + "t", stem + link + "te", f"{'' if unmarked else 'ge'}{stem}{link}t"
