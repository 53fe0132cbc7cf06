"""The words that decide where a sentence ends: abbreviations, and what sentences begin with.

A word is written without its last point. One in lower case matches in any case ("vgl" also "Vgl."),
one with a capital, or of a single letter, only as it stands ("Sat." is a day and "sat." a verb).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from dragoman.text.languages import primary_code


@dataclass(frozen=True, slots=True)
class SentenceWords:
    """Hold the words of one language; every set may be empty."""

    never_last: frozenset[str] = frozenset()
    """No sentence ends after these: titles, "e.g.", "bzw."."""
    before_numbers: frozenset[str] = frozenset()
    """These are abbreviations where a number or a letter follows, and else words: "No. 5"."""
    may_be_last: frozenset[str] = frozenset()
    """A sentence ends after these only where a typical first word follows: "Inc.", "a.m."."""
    last: frozenset[str] = frozenset()
    """A sentence ends after these where a capital follows: "etc."."""
    first: frozenset[str] = frozenset()
    """Sentences often begin with these, and names do not; in lower case."""
    casual_first: frozenset[str] = frozenset()
    """Even in lower case these begin a sentence after a point, as people write in chats."""
    unfinished: frozenset[str] = frozenset()
    """A sentence does not end after these, even where an ellipsis and a capital follow."""
    endings: frozenset[str] = frozenset()
    """A longer word that ends so is one of those a sentence may end after: "Goethestr."."""
    lettered: frozenset[str] = frozenset()
    """A capital after one of these is no initial: "Plan B."."""
    before_ordinals: frozenset[str] = frozenset()
    """A number with a point after these is an ordinal, where ordinals have points: "der 3."."""
    after_ordinals: frozenset[str] = frozenset()
    """A number with a point before these is an ordinal: "3. Mai"."""
    speech_verbs: frozenset[str] = frozenset()
    """Who speaks is said after a quotation with a capital and these: "Stop!" Tom said."""


@cache
def sentence_words(language: str | None) -> SentenceWords:
    """Return the words of a language, or those of all the languages here where it is not known."""
    code = primary_code(language)
    if code in _TABLES:
        parts = [_COMMON, _TABLES[code]]
    elif code:
        parts = [_COMMON]
    else:
        parts = [_COMMON, *(_TABLES[code] for code in ("en", "de", "fr"))]
    return SentenceWords(
        **{
            name: frozenset(word for part in parts for word in part.get(name, "").split())
            for name in SentenceWords.__slots__
        }
    )


_COMMON: Final = {
    "never_last": """
        mr mrs ms dr drs prof ste mt vs e.g i.e cf viz resp approx ca v c.f p.s
        gen col lt sgt capt rev hon jun sen messrs mme mlle mgr dipl ing
    """,
    "before_numbers": "no nr vol vols p pp fig figs eq eqs sec ch art tel ext ref ed par",
    "may_be_last": """
        inc ltd co corp jr sr bros llc plc u.s u.k u.n e.u u.s.a d.c a.m p.m ph.d m.a b.a m.sc b.sc
        al st b.c a.d b.c.e c.e ave rd blvd sq apt min max ft hrs hr lbs oz tbsp tsp
    """,
    "last": "etc",
}

_TABLES: Final[dict[str, dict[str, str]]] = {
    "en": {
        "never_last": """
            gov rep pres supt det cpl pvt maj cmdr adm atty insp fr hon sir dist esp incl ft fig
            dept univ assn bldg est a.k.a aka n.b w.r.t ibid op cit pt mx
        """,
        "before_numbers": """
            app art sect para chap figs refs nos rm ste suite vol ver op lot bk pt ref sc cl reg
            Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec
        """,
        "may_be_last": """
            Mon Tue Tues Wed Thu Thur Thurs Fri Sat Sun mi yd yds in sq mph bn mn tr hwy pkwy ln dr
            pl ct mfg intl natl tbs gal qt pts wk yr yrs mo mos secs mins dz pkg tel b.i.d t.i.d
            q.d r.s.v.p est
        """,
        "first": """
            a after again all also although an and another any anyway are as at because before both
            but by can did do does don't each either even every everyone everything few finally
            first for from had has have he he'd he'll he's hello help her here here's hers hey
            hi his how however i i'd i'll i'm i've if in instead into is isn't it it'd it'll it's
            its just last later let let's like many maybe meanwhile more most much my neither never
            next no nobody none nor not nothing now of oh ok okay on once one only open or other
            others our perhaps please see several she she'd she'll she's should since so some
            somebody someone something sometimes soon still such suddenly sure take thank
            thanks that that's the their them then there there's therefore these they they'd
            they'll they're they've this those though thus to today together tomorrow too try under
            unfortunately unless until use was we we'd we'll we're we've well were what what's
            whatever when where where's whether which while who who's whose why with without
            would yes yesterday yet you you'll you're you've your
        """,
        "casual_first": """
            he how i i'd i'll i'm i've im it's its she they what what's when where why you
        """,
        "unfinished": """
            a an and are as at but by for from her his i if in is its my of on or our than that the
            their this to was were with your
        """,
        "lettered": """
            annex appendix block building candidate category class deck exhibit figure gate grade
            group hepatitis level line model note option part plan platform point room schedule
            section series table team terminal type version vitamin ward wing zone is be
        """,
        "speech_verbs": """
            added admitted agreed announced answered asked began begged bellowed called complained
            continued cried declared demanded exclaimed explained gasped groaned growled grunted
            hissed insisted interrupted joked laughed moaned mumbled murmured muttered noted
            observed ordered pleaded promised protested remarked repeated replied roared said says
            screamed shouted shrieked sighed smiled snapped sobbed stammered suggested thought told
            wailed warned wept whispered wondered wrote yelled
        """,
    },
    "de": {
        "never_last": """
            abb abk abschn abt abzgl allg anm aufl ausg begr bes betr bspw bzgl bzw ders dgl. d.h
            dipl.-ing dipl.-kfm einschl eigtl entspr erg evtl exkl fa fr frl frz gegr geb gen gest
            gez ggf ggü hl hr hrn hrsg i.a i.d.r i.h.v i.v inkl insb insbes jew kath evang ev kfm
            lat li re rd lt m.e mind max min möbl mtl n.b nat niederl nördl o.g obb orig phil
            med jur rer h.c prakt preuß priv prot rel röm s s.a s.o schwäb s.u sog spez städt stellv
            südl tägl techn theol u urspr usf. ü.d.m v v.a verh versch vgl vorm westl
            wg wiss z z.b z.hd z.t z.zt zit zool zw zzgl östl ca dt engl franz griech ital jüd p.a
            i.b i.br a.d a.d.s b.d
        """,
        "before_numbers": """
            abs art bd bde bj hs jg kap lfd nr nrn pkt rdnr rn S sp tel tab taf tz vers ziff
            zl ab ff Mo Di Mi Do Fr Sa So az bl std min u.s
            Jan Feb Mär Mrz Apr Jun Jul Aug Sep Sept Okt Nov Dez
        """,
        "may_be_last": """
            a.d a.m chr d.j d.m ed f ff jh jhd jhdt hbf hptst kl m.s mio mrd o.b o.k o.ä
            pl plz s.l st std std. str straße tkm tsd u.a u.ä u.m u.v.a u.v.m v.chr n.chr m.w.h
            vorb ü.m ü.nn tabl stck stk pck sek msp ed bhf ortst verf zus zul ges aufl frhr urt
        """,
        "last": "usw usf mwst dgl",
        "endings": "str",
        "first": """
            aber alle allerdings alles als also am an andere andererseits auch auf aus außerdem bei
            beide beim beinahe bisher bitte da dabei dadurch dafür dagegen daher dahinter damals
            damit danach daneben dank dann daran darauf daraufhin darin darum darüber das dass davon
            davor dazu dein deine dem den denn dennoch der deren des deshalb dessen deswegen die
            dies diese diesem diesen dieser dieses doch dort durch ebenso ein eine einem einen einer
            eines einerseits einige er erst erstens es etwas euer eure falls fast ferner früher für
            gegen genau gerne gestern gibt hat haben hätte heute hier hierbei hierzu hinter hoffentlich
            ich ihm ihnen ihr ihre ihrem ihren ihrer immer in inzwischen irgendwann ist ja jede
            jeder jedes jedoch jemand jener jetzt kann kein keine keiner könnte kurz leider man
            manche manchmal mein meine meist meistens mir mit möchte nach nachdem natürlich neben
            nein nicht nichts nie niemand noch nun nur ob obwohl oder offenbar oft ohne schließlich
            schon sehr sein seine seinem seinen seiner seit seitdem seither sie siehe sind so sobald
            sogar solche soll somit sondern sonst später statt trotz trotzdem über überall um und
            uns unser unsere unter viele vielen vielleicht vielmehr vom von vor wann war waren warum
            was weder wegen weil weiter weitere welche wem wen wenig wenige wenn wer werden weshalb
            wessen wie wieder wieso wir wird wo wobei woher wohin womit wozu während wäre zu zudem
            zuerst zuletzt zum zumindest zur zusammen zwar zwei zweitens zwischen
        """,
        "unfinished": """
            aber als am an auf aus bei das dass dein dem den der des die ein eine einem einen einer
            er für ich ihr im in ist mein mit oder sein sie sind so um und uns unser vom von war
            wir zu zum zur
        """,
        "lettered": """
            abschnitt anlage block gebäude gleis gruppe halle haus hepatitis kandidat kategorie
            klasse modell plan punkt stufe tabelle teil tor typ variante version vitamin zone
            zimmer ist
        """,
        "before_ordinals": """
            ab alle am an auf bei beim bis das dem den der des die dieser dieses diesem diesen ein
            eine einem einen einer im ihr ihre ihrem ihren ihrer jede jedem jeden jeder jedes
            mein meine meinem meinen meiner nach sein seine seinem seinen seiner seit und unser
            unsere unserem unseren vom von vor zum zur bereits erst
        """,
        "after_ordinals": """
            januar jänner februar märz april mai juni juli august september oktober november
            dezember jan feb mrz apr jun jul aug sep sept okt nov dez jahrhundert jahrhunderts jh
            jahrtausend jahrestag geburtstag hochzeitstag todestag klasse stock obergeschoss
            untergeschoss og ug etage auflage ausgabe band kapitel akt szene liga bundesliga platz
            preis rang runde spieltag halbzeit minute weltkrieg kongress legislaturperiode
            wahlperiode sitzung woche tag monat quartal halbjahr semester schuljahr lebensjahr
            bezirk senat kammer staffel folge teil mal sinfonie symphonie internationale
            internationaler internationales deutsche deutscher deutsches armee division
            bataillon dynastie generation person stufe stelle schritt reihe
        """,
    },
    "fr": {
        "never_last": """
            mlles mmes me mgr pr drs p.ex ex env fig bd bld av apr boul fg ste s.m s.e mgrs
            M MM Me n.b c.-à-d càd p.-s n.d.l.r n.d.t
        """,
        "before_numbers": "art n no num p pp chap vol t fig tab al livr éd tél bât janv févr avr "
        "juil sept oct nov déc L R D",
        "may_be_last": """
            s.a s.a.r.l j.-c h min lun mar mer jeu ven sam dim c.a.p r.-v r.v o.n.u t.v.a s.n.c.f
        """,
        "first": """
            à après ainsi alors au aucun aucune aussi autrefois aux avant avec beaucoup c'est ça car
            ce ceci cela celle celui cependant certains ces cet cette ceux chacun chaque comme
            comment d'abord d'accord d'ailleurs dans de demain depuis des donc du elle elles en
            encore enfin ensuite est et hier il ils j'ai je jamais l la là le les leur leurs
            lorsque lui ma mais malgré malheureusement merci mes moi mon même n'est ne ni non nos
            notre nous on or où oui par parce parfois pas pendant personne peut-être plus plusieurs
            pour pourquoi pourtant près puis puisque quand que quel quelle quelques qui quoi
            rien sa sans selon ses seul si soit son sous souvent sur surtout ta tandis tant tes toi
            ton toujours tous tout toute toutefois toutes très trop tu un une voici voilà vos votre
            vous y
        """,
        "unfinished": "à au avec c'est ce cette dans de des du elle en et est il ils je la le les ma "
        "mais mes mon ne nous on ou par pour que qui sa ses son sur ta tu un une vous",
        "lettered": "annexe bâtiment classe groupe hépatite partie plan point salle type vitamine "
        "zone est",
    },
    "es": {
        "never_last": "sr sra srta sres dr dra d dª ud uds vd vds lic ing prof gral ej p.ej fdo excmo",
        "before_numbers": "núm nº pág págs art cap vol fig tel apdo",
        "may_be_last": "s.a s.l ee.uu a.c d.c avda av cía dpto",
        "first": "a además al algunos aquí así aunque como con cuando de desde después el él ella "
        "ellos en entonces es esta este esto fue ha hay hoy la las le lo los luego mi más ni no nos "
        "nosotros o para pero por porque que quien se según si sí sin sobre también tras tu un una "
        "usted y ya yo",
    },
    "it": {
        "never_last": "sig sigg sig.ra sig.na dott dott.ssa prof avv ing arch geom on rag ecc.mo es "
        "p.es cfr",
        "before_numbers": "n nr pag pagg art artt cap vol fig tel",
        "may_be_last": "s.p.a s.r.l a.c d.c ecc",
        "first": "a al alla anche come con così da dal del della di dopo e è ecco era gli ha ho i il "
        "in io la le lei li lo loro lui ma nel nella noi non o ora per perché più poi quando quella "
        "quello questa questo se sono tra tu tutti un una voi",
    },
    "pt": {
        "never_last": "sr sra srs dr dra prof profa eng exmo ex p.ex d",
        "before_numbers": "n nº pág págs art cap vol fig tel núm",
        "may_be_last": "s.a ltda a.c d.c av",
        "first": "a ao as assim com como da de depois do e é ela ele eles em então era esta este eu "
        "foi há isso já mais mas na não nas no nos nós o os ou para por porque quando que se sem "
        "seu são também um uma você",
    },
    "nl": {
        "never_last": "dhr mevr mw drs ir mr ing prof bijv bv nl d.w.z o.a m.b.t i.p.v t.o.v a.u.b "
        "ca resp evt incl excl m.a.w z.g st vgl",
        "before_numbers": "nr blz p art afb fig hfst tel",
        "may_be_last": "n.v b.v e.d m.n v.chr n.chr jl ds",
        "last": "enz etc",
        "first": "aan als bij daar daarna dan dat de deze die dit door een en er haar heeft het hij "
        "hoe ik in is ja maar met na naar nee niet nog nu of om ook op te toen uit van veel voor "
        "waarom wat we wie wij ze zij zijn zo",
    },
    "pl": {
        "never_last": "p pan dr hab inż mgr prof św ul al np tzw tzn m.in im gen płk por ks red os pl",
        "before_numbers": "nr str art ust poz rys tab t tel rozdz",
        "may_be_last": "r w ok zł mln mld godz tys wg n.e p.n.e",
        "last": "itd itp",
    },
    "cs": {
        "never_last": "p pí dr ing mgr bc mudr judr prof doc sv tzv tj např popř resp mj ul nám",
        "before_numbers": "č čl str odst sv obr tab tel",
        "may_be_last": "kč mil mld tis hod r s.r.o a.s n.l",
        "last": "atd apod aj",
    },
    "ru": {
        "never_last": "т.е т.к т.н им ул пр пер проф акад доц св гр г-н г-жа напр см ср ст.-л д-р о",
        "before_numbers": "стр рис табл гл ст п пп т тт тел кв д корп оз р",
        "may_be_last": "г гг в вв н.э до.н.э руб коп тыс млн млрд ч мин сек",
        "last": "т.д т.п др пр",
    },
    "sv": {
        "never_last": "bl.a t.ex d.v.s dvs s.k fr.o.m t.o.m m.fl ca dr prof st resp ev jfr",
        "before_numbers": "nr s kap fig tel",
        "may_be_last": "kl kr milj f.kr e.kr",
        "last": "osv m.m",
    },
    "da": {
        "never_last": "bl.a f.eks dvs d.v.s ca dr prof hr fr evt inkl jf pga",
        "before_numbers": "nr s kap fig tlf",
        "may_be_last": "kl kr mio mia f.kr e.kr",
        "last": "osv m.m m.v",
    },
    "tr": {
        "never_last": "dr prof doç av sn örn alb yrd müh",
        "before_numbers": "no s cad sok tel",
        "may_be_last": "a.ş ltd şti m.ö m.s",
        "last": "vb vs vd",
    },
    "ko": {
        "first": "그 그것은 그녀는 그는 그래도 그래서 그러나 그러면 그런데 그럼 그리고 나는 다만 단 "
        "따라서 또 또한 이 이것은 이는 이에 저는 즉 하지만"
    },
}
_TABLES["nb"] = _TABLES["no"] = _TABLES["da"]
_TABLES["sk"] = _TABLES["cs"]
_TABLES["uk"] = _TABLES["be"] = _TABLES["ru"]
