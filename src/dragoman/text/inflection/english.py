"""English nouns have plurals, and verbs have forms."""

from __future__ import annotations

from typing import Final

from dragoman.text.inflection.forms import Kind, WordForm, distinct, word_set, words

_IRREGULAR_PLURALS: Final = dict(
    pair.split("=")
    for pair in words(
        "man=men woman=women child=children foot=feet tooth=teeth goose=geese mouse=mice "
        "louse=lice ox=oxen person=people penny=pence die=dice wife=wives knife=knives life=lives "
        "half=halves calf=calves leaf=leaves loaf=loaves shelf=shelves self=selves elf=elves "
        "wolf=wolves thief=thieves sheaf=sheaves hoof=hooves scarf=scarves wharf=wharves "
        "potato=potatoes tomato=tomatoes hero=heroes echo=echoes veto=vetoes torpedo=torpedoes "
        "embargo=embargoes cargo=cargoes mosquito=mosquitoes volcano=volcanoes analysis=analyses "
        "basis=bases crisis=crises thesis=theses hypothesis=hypotheses diagnosis=diagnoses "
        "axis=axes oasis=oases parenthesis=parentheses synthesis=syntheses criterion=criteria "
        "phenomenon=phenomena bacterium=bacteria curriculum=curricula datum=data medium=media "
        "memorandum=memoranda stratum=strata erratum=errata fungus=fungi nucleus=nuclei "
        "stimulus=stimuli alumnus=alumni cactus=cacti focus=foci radius=radii syllabus=syllabi "
        "index=indices matrix=matrices vertex=vertices appendix=appendices formula=formulae "
        "larva=larvae vertebra=vertebrae antenna=antennae genus=genera corpus=corpora "
        "passerby=passersby quiz=quizzes"
    )
)
_ALSO_REGULAR: Final = word_set(
    "person penny die scarf wharf hoof cargo mosquito volcano medium memorandum curriculum cactus "
    "focus syllabus index matrix vertex appendix formula antenna corpus fungus"
)
"""These have a plural by the rules, too."""
_SAME_PLURAL: Final = words(
    "sheep deer moose fish trout salmon series species aircraft spacecraft hovercraft offspring "
    "headquarters crossroads swine bison news"
)
_NO_PLURAL_OF_MAN: Final = ("human", "german", "roman", "ottoman", "shaman", "talisman", "caiman")

# Singular nouns, adjectives and adverbs to which an -s makes another word.
_OTHER_WORDS: Final = word_set(
    "news goods customs means pants spectacles physics economics politics mathematics ethics "
    "athletics linguistics genetics dynamics electronics acoustics gymnastics logistics robotics "
    "tactics cosmetics antics sometimes besides always perhaps afterwards its this thus lens bus "
    "gas yes princess atlas plus outdoors indoors overseas upstairs downstairs nowadays "
    "whereabouts mass pass glass grass brass class cross loss moss boss toss miss kiss less mess "
    "press dress chess guess stress wales jones james paris athens brussels savings earnings "
    "proceedings surroundings belongings premises greens blues whites reds odds"
)

FUNCTION_WORDS: Final = word_set(
    "a an the this that these those some any no every each either neither both all such what which "
    "who whom whose whoever whatever where when why how while if unless although though because "
    "since until till after before as than and or but nor so yet for of in on at by to from with "
    "without within into onto upon over under above below between among through during against "
    "about around across along behind beside besides beyond near off out up down per via toward "
    "towards not n't also too very just only even still already then there here i me my mine "
    "myself we us our ours ourselves you your yours yourself yourselves he him his himself she her "
    "hers herself it its itself they them their theirs themselves one ones is am are was were be "
    "been being do does did done doing have has had having will would shall should can could may "
    "might must ought let 's 're 've 'll 'd 'm 't s t re ve ll d m"
)
"""These have no content of their own, and no other forms that a glossary should find."""

_VOWELS: Final = "aeiou"
_IRREGULAR_VERBS: Final = {
    verb: forms.split("/")
    for verb, forms in (
        entry.split("=")
        for entry in words(
            "begin=began/begun bend=bent bind=bound bite=bit/bitten blow=blew/blown "
            "break=broke/broken breed=bred bring=brought build=built burn=burnt/burned buy=bought "
            "catch=caught choose=chose/chosen come=came cost=cost creep=crept cut=cut deal=dealt "
            "dig=dug draw=drew/drawn dream=dreamt/dreamed drink=drank/drunk drive=drove/driven "
            "eat=ate/eaten fall=fell/fallen feed=fed feel=felt fight=fought find=found flee=fled "
            "fly=flew/flown forbid=forbade/forbidden forget=forgot/forgotten "
            "forgive=forgave/forgiven freeze=froze/frozen get=got/gotten give=gave/given "
            "go=went/gone grind=ground grow=grew/grown hang=hung/hanged hear=heard hide=hid/hidden "
            "hit=hit hold=held hurt=hurt keep=kept kneel=knelt know=knew/known lay=laid lead=led "
            "lean=leant/leaned leap=leapt/leaped learn=learnt/learned leave=left lend=lent let=let "
            "lie=lay/lain/lied light=lit/lighted lose=lost make=made mean=meant meet=met "
            "overcome=overcame pay=paid prove=proved/proven put=put quit=quit read=read "
            "ride=rode/ridden ring=rang/rung rise=rose/risen run=ran say=said see=saw/seen "
            "seek=sought sell=sold send=sent set=set sew=sewed/sewn shake=shook/shaken "
            "shine=shone/shined shoot=shot show=showed/shown shrink=shrank/shrunk shut=shut "
            "sing=sang/sung sink=sank/sunk sit=sat sleep=slept slide=slid smell=smelt/smelled "
            "sow=sowed/sown speak=spoke/spoken spell=spelt/spelled spend=spent spill=spilt/spilled "
            "spin=spun spit=spat split=split spoil=spoilt/spoiled spread=spread "
            "spring=sprang/sprung stand=stood steal=stole/stolen stick=stuck sting=stung "
            "strike=struck swear=swore/sworn sweep=swept swim=swam/swum swing=swung "
            "take=took/taken teach=taught tear=tore/torn tell=told think=thought "
            "throw=threw/thrown understand=understood undertake=undertook/undertaken "
            "wake=woke/woken wear=wore/worn weave=wove/woven weep=wept win=won wind=wound "
            "withdraw=withdrew/withdrawn write=wrote/written overwrite=overwrote/overwritten "
            "rewrite=rewrote/rewritten rebuild=rebuilt reset=reset upset=upset"
        )
    )
}
_DOUBLING: Final = word_set(
    "admit begin commit compel control cancel defer equip expel forbid forget format fulfil label "
    "model occur omit patrol permit prefer propel rebel refer regret submit swim transfer transmit "
    "travel upset"
)
"""Verbs of several syllables that double their last consonant."""


def word_forms(word: str, kind: Kind | None = None) -> list[WordForm]:
    """Return an English word and its other forms; what is neither noun nor verb has none.

    Where the kind is not known the word may be a noun, and gets a plural.
    """
    base = WordForm(word, "singular" if kind != "verb" else None)
    lower = word.lower()
    if len(word) <= 2 or kind == "other" or lower in FUNCTION_WORDS or not word[-1].isalpha():
        return [WordForm(word)]
    if kind == "verb":
        return distinct([WordForm(word), *map(WordForm, _verb_forms(word))])
    plurals = [text for text in _plurals(word) if text.lower() not in _OTHER_WORDS]
    if not plurals or plurals == [word]:
        return [WordForm(word)]
    return distinct([base, *(WordForm(text, "plural", 0.5 * n) for n, text in enumerate(plurals))])


def _plurals(noun: str) -> list[str]:
    """Return the plurals of a noun, the usual one first."""
    head, hyphen, rest = noun.partition("-")
    if hyphen and rest.split("-")[0] in FUNCTION_WORDS:  # mothers-in-law
        return [f"{text}-{rest}" for text in _plurals(head)] if len(head) > 2 else []
    lower = noun.lower()
    for singular, plural in _IRREGULAR_PLURALS.items():
        if not lower.endswith(singular):
            continue
        compound = len(lower) > len(singular)
        if singular == "man" and lower.endswith(_NO_PLURAL_OF_MAN):
            continue
        # Only what is long enough to be found by itself ends compounds: not "elf" in "shelf".
        if compound and singular not in ("man", "woman", "child", "foot", "tooth", "wife", "mouse"):
            continue
        found = [_with_ending(noun, singular, plural)]
        return [*found, _add_s(noun)] if singular in _ALSO_REGULAR else found
    if lower.endswith(_SAME_PLURAL):
        return [noun]
    if lower.endswith("ics"):
        return []
    return [_add_s(noun)]


def _with_ending(word: str, old: str, new: str) -> str:
    return word[: len(word) - len(old)] + (new.title() if word[-len(old)].isupper() else new)


def _add_s(word: str) -> str:
    """Return a noun's plural or a verb's third person by the rules."""
    lower = word.lower()
    shout = len(word) > 1 and word.isupper()  # GPUs, APIs
    if lower.endswith(("s", "x", "z", "ch", "sh")) and not shout:
        return word + "es"
    if lower.endswith("y") and lower[-2] not in _VOWELS and not shout:
        return word[:-1] + "ies"
    return word + "s"


def _verb_forms(verb: str) -> list[str]:
    """Return the third person, the past forms and the present participle of a verb."""
    lower = verb.lower()
    third = lower + "es" if lower.endswith("o") else _add_s(lower)
    doubled = lower + lower[-1] if _doubles(lower) else lower
    if lower.endswith("ie"):
        stem = lower[:-2] + "y"
    elif lower.endswith("e") and not lower.endswith(("ee", "oe", "ye")):
        stem = lower[:-1]
    else:
        stem = doubled
    if lower in _IRREGULAR_VERBS:
        past = _IRREGULAR_VERBS[lower]
    elif lower.endswith("e"):
        past = [lower + "d"]
    elif lower.endswith("y") and lower[-2] not in _VOWELS:
        past = [lower[:-1] + "ied"]
    else:
        past = [doubled + "ed"]
    found = [third, *past, stem + "ing"]
    if lower.endswith("l") and lower in _DOUBLING:  # traveled
        found += [lower + "ed", lower + "ing"]
    return [text[0].upper() + text[1:] if verb[0].isupper() else text for text in found]


def _doubles(verb: str) -> bool:
    """Return whether the last consonant of a verb is doubled: stopped, not helped or opened."""
    if len(verb) < 3 or verb[-1] in _VOWELS + "wxyh" or verb[-2] not in _VOWELS:
        return False
    if verb[-3] in _VOWELS and verb[-3:-2] + verb[-4:-3] != "uq":  # cleaned; but quitting
        return False
    vowels = sum(
        a in _VOWELS and b not in _VOWELS for a, b in zip(verb, verb[1:] + " ", strict=True)
    )
    return vowels == 1 or verb in _DOUBLING


def indefinite_article(word: str) -> str:
    """Return "a" or "an", by how the word begins."""
    lower = word.lstrip("\"'“‘(").lower()
    if word.isupper() and len(word) > 1:  # an MP, a UN officer
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    if lower.startswith(("hour", "honest", "honour", "honor", "heir")):
        return "an"
    if lower.startswith(("uni", "use", "usu", "eu", "one", "once", "ubiq", "uti")):
        return "an" if lower.startswith(("unin", "unim")) else "a"
    return "an" if lower[:1] in _VOWELS and lower else "a"
