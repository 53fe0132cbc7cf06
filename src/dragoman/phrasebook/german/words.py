"""This table has the German words for the concepts of the lexicon, with their inflection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GermanNoun:
    """Hold gender (m, f or n), singular and plural; weak nouns take -(e)n but in the nominative."""

    gender: str
    singular: str
    plural: str
    weak: bool = False


@dataclass(frozen=True, slots=True)
class GermanVerb:
    """Hold a verb's forms, the case or preposition of its object, and its perfect's auxiliary."""

    infinitive: str  # without the separable prefix
    third: str  # er …, she …
    participle: str  # without the prefix
    prefix: str = ""
    auxiliary: str = "haben"
    case: str = "acc"
    preposition: str = ""

    @property
    def first(self) -> str:
        """Return the form of "ich"."""
        return self.infinitive.removesuffix("n").removesuffix("e") + "e"


_NOUN_TABLE = """
man m Mann Männer; boy m Junge Jungen weak; king m König Könige; prince m Prinz Prinzen weak
teacher m Lehrer Lehrer; doctor m Arzt Ärzte; baker m Bäcker Bäcker; farmer m Bauer Bauern weak
neighbour m Nachbar Nachbarn weak; student m Student Studenten weak; friend m Freund Freunde
uncle m Onkel Onkel; brother m Bruder Brüder; father m Vater Väter
grandfather m Großvater Großväter; woman f Frau Frauen; girl n Mädchen Mädchen
queen f Königin Königinnen; princess f Prinzessin Prinzessinnen; aunt f Tante Tanten
sister f Schwester Schwestern; mother f Mutter Mütter; grandmother f Großmutter Großmütter
child n Kind Kinder
dog m Hund Hunde; cat f Katze Katzen; horse n Pferd Pferde; bird m Vogel Vögel; mouse f Maus Mäuse
bear m Bär Bären weak; cow f Kuh Kühe; lion m Löwe Löwen weak; rabbit n Kaninchen Kaninchen
duck f Ente Enten; goat f Ziege Ziegen; pig n Schwein Schweine
apple m Apfel Äpfel; cake m Kuchen Kuchen; egg n Ei Eier; soup f Suppe Suppen
banana f Banane Bananen; pear f Birne Birnen; potato f Kartoffel Kartoffeln
tomato f Tomate Tomaten; pizza f Pizza Pizzen; bread n Brot Brote; cheese m Käse Käse
tea m Tee Tees; coffee m Kaffee Kaffees; milk f Milch Milch; water n Wasser Wasser
juice m Saft Säfte
book n Buch Bücher; letter m Brief Briefe; newspaper f Zeitung Zeitungen
story f Geschichte Geschichten; song n Lied Lieder; picture n Bild Bilder; car n Auto Autos
bicycle n Fahrrad Fahrräder; boat n Boot Boote; lamp f Lampe Lampen; radio n Radio Radios
hat m Hut Hüte; coat m Mantel Mäntel; dress n Kleid Kleider; shirt n Hemd Hemden
ball m Ball Bälle; key m Schlüssel Schlüssel; bag f Tasche Taschen; clock f Uhr Uhren
flower f Blume Blumen; camera f Kamera Kameras; guitar f Gitarre Gitarren
table m Tisch Tische; chair m Stuhl Stühle; box f Kiste Kisten; door f Tür Türen
window n Fenster Fenster
kitchen f Küche Küchen; room n Zimmer Zimmer; office n Büro Büros; house n Haus Häuser
school f Schule Schulen; library f Bibliothek Bibliotheken; museum n Museum Museen
hotel n Hotel Hotels; church f Kirche Kirchen; garden m Garten Gärten; park m Park Parks
forest m Wald Wälder; street f Straße Straßen; market m Markt Märkte; beach m Strand Strände
bridge f Brücke Brücken; mountain m Berg Berge; city f Stadt Städte; village n Dorf Dörfer
station m Bahnhof Bahnhöfe
"""

# concept = infinitive third participle [+prefix] [sein] [dat] [preposition/case]
_VERB_TABLE = """
be = sein ist gewesen sein; sleep = schlafen schläft geschlafen; laugh = lachen lacht gelacht
cry = weinen weint geweint; work = arbeiten arbeitet gearbeitet; dance = tanzen tanzt getanzt
sing = singen singt gesungen; swim = schwimmen schwimmt geschwommen sein
stay = bleiben bleibt geblieben sein; play = spielen spielt gespielt
get up = stehen steht gestanden +auf sein; wake up = wachen wacht gewacht +auf sein
fall asleep = schlafen schläft geschlafen +ein sein; arrive = kommen kommt gekommen +an sein
run = laufen läuft gelaufen sein; go = gehen geht gegangen sein; travel = reisen reist gereist sein
come back = kommen kommt gekommen +zurück sein
see = sehen sieht gesehen; love = lieben liebt geliebt; buy = kaufen kauft gekauft
sell = verkaufen verkauft verkauft; eat = essen isst gegessen; drink = trinken trinkt getrunken
read = lesen liest gelesen; write = schreiben schreibt geschrieben; find = finden findet gefunden
look for = suchen sucht gesucht; carry = tragen trägt getragen; paint = malen malt gemalt
hear = hören hört gehört; know = kennen kennt gekannt; visit = besuchen besucht besucht
wash = waschen wäscht gewaschen; open = machen macht gemacht +auf
close = machen macht gemacht +zu; forget = vergessen vergisst vergessen
call = rufen ruft gerufen +an; invite = laden lädt geladen +ein; pick up = holen holt geholt +ab
tidy up = räumen räumt geräumt +auf; switch on = schalten schaltet geschaltet +ein
try on = probieren probiert probiert +an
help = helfen hilft geholfen dat; thank = danken dankt gedankt dat
answer = antworten antwortet geantwortet dat; follow = folgen folgt gefolgt sein dat
listen to = hören hört gehört +zu dat; wait for = warten wartet gewartet auf/acc
think of = denken denkt gedacht an/acc; talk about = sprechen spricht gesprochen über/acc
dream of = träumen träumt geträumt von/dat
give = geben gibt gegeben; show = zeigen zeigt gezeigt; send = schicken schickt geschickt
bring = bringen bringt gebracht; lend = leihen leiht geliehen; offer = bieten bietet geboten +an
tell = erzählen erzählt erzählt
think = denken denkt gedacht; say = sagen sagt gesagt; believe = glauben glaubt geglaubt
hope = hoffen hofft gehofft; notice = merken merkt gemerkt; ask = fragen fragt gefragt
"""

_ADJECTIVE_TABLE = """
old=alt young=jung hungry=hungrig tired=müde happy=glücklich sad=traurig strong=stark
clever=klug lazy=faul rich=reich poor=arm friendly=freundlich famous=berühmt wild=wild
small=klein big=groß beautiful=schön new=neu heavy=schwer expensive=teuer cheap=billig
good=gut black=schwarz white=weiß brown=braun red=rot blue=blau green=grün warm=warm
cold=kalt fresh=frisch quiet=ruhig dark=dunkel clean=sauber long=lang
"""
ADJECTIVES: dict[str, str] = dict(pair.split("=") for pair in _ADJECTIVE_TABLE.split())
STEMS = {"müde": "müd", "teuer": "teur", "dunkel": "dunkl"}  # before an ending


def _entries(table: str) -> list[str]:
    return [entry.strip() for line in table.strip().splitlines() for entry in line.split(";")]


def _nouns() -> dict[str, GermanNoun]:
    rows = [entry.split() for entry in _entries(_NOUN_TABLE)]
    return {row[0]: GermanNoun(row[1], row[2], row[3], "weak" in row) for row in rows}


def _verbs() -> dict[str, GermanVerb]:
    verbs = {}
    for entry in _entries(_VERB_TABLE):
        key, forms = entry.split(" = ")
        infinitive, third, participle, *rest = forms.split()
        prefix = next((mark[1:] for mark in rest if mark[0] == "+"), "")
        government = next((mark for mark in rest if "/" in mark), "")
        preposition, _, case = government.partition("/")
        verbs[key] = GermanVerb(
            infinitive,
            third,
            participle,
            prefix,
            "sein" if "sein" in rest else "haben",
            case or ("dat" if "dat" in rest else "acc"),
            preposition,
        )
    return verbs


NOUNS = _nouns()
VERBS = _verbs()

# adverbs of time as (label, ((tag, word, numbers of the English words it renders), …))
TIMES: dict[str, tuple[str, tuple[tuple[str, str, tuple[int, ...]], ...]]] = {
    "yesterday": ("ADVP", (("ADV", "gestern", (0,)),)),
    "last week": ("NP", (("ADJA", "letzte", (0,)), ("NN", "Woche", (1,)))),
    "today": ("ADVP", (("ADV", "heute", (0,)),)),
    "tomorrow": ("ADVP", (("ADV", "morgen", (0,)),)),
    "now": ("ADVP", (("ADV", "jetzt", (0,)),)),
    "every day": ("NP", (("PIAT", "jeden", (0,)), ("NN", "Tag", (1,)))),
    "in the evening": ("PP", (("APPRART", "am", (0, 1)), ("NN", "Abend", (2,)))),
    "on Monday": ("PP", (("APPRART", "am", (0,)), ("NN", "Montag", (1,)))),
}
FREQUENCIES = {"often": "oft", "always": "immer", "never": "nie", "sometimes": "manchmal"}
MANNERS = {"quickly": "schnell", "slowly": "langsam", "loudly": "laut", "quietly": "leise"}
CONJUNCTIONS = {
    "and": "und",
    "but": "aber",
    "because": "weil",
    "although": "obwohl",
    "if": "wenn",
}
QUESTION_ADVERBS = {"where": "wo", "when": "wann", "why": "warum"}
QUESTION_PRONOUNS = {"nom": "wer", "acc": "wen", "dat": "wem"}

PREPOSITIONS = {"company": ("mit", "dat"), "benefit": ("für", "acc")}
# the prepositions of a place: where, where to, where from; elsewhere "in" + dat, "in" + acc, "aus"
_AUF = ("auf", "dat")
PLACES = {
    "station": {"location": ("an", "dat"), "goal": ("zu", "dat"), "source": ("von", "dat")},
    "beach": {"location": ("an", "dat"), "goal": ("zu", "dat"), "source": ("von", "dat")},
    "market": {"location": _AUF, "goal": ("zu", "dat"), "source": ("von", "dat")},
    "bridge": {"location": _AUF, "goal": ("zu", "dat"), "source": ("von", "dat")},
    "street": {"location": _AUF, "goal": ("auf", "acc"), "source": ("von", "dat")},
    "mountain": {"location": _AUF, "goal": ("zu", "dat"), "source": ("von", "dat")},
}
INSIDE = {"location": ("in", "dat"), "goal": ("in", "acc"), "source": ("aus", "dat")}
