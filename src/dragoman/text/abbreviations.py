"""These words decide where a sentence ends: abbreviations, and what sentences begin with.

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
        adm approx c.f ca capt cf cmdr col cpl dipl dr drs e.g gen gov hon i.e ing jun lt maj
        messrs mgr mlle mme mr mrs ms mt p.s pres prof resp rev sen sgt ste v viz vs
    """,
    "before_numbers": "art ch ed eq eqs ext fig figs no nr p par pp ref sec tel vol vols",
    "may_be_last": """
        a.d a.m al apt ave b.a b.c b.c.e b.sc blvd bros c.e co corp d.c e.u ft hr hrs inc jr lbs
        llc ltd m.a m.sc max min oz p.m ph.d plc rd sq sr st tbsp tsp u.k u.n u.s u.s.a
    """,
    "last": "etc",
}

_TABLES: Final[dict[str, dict[str, str]]] = {
    "en": {
        "never_last": """
            a.k.a aka assn attn atty bldg cit dept det dist encl esp est excl fr ibid incl insp mx
            n.b op pt pvt rep supt univ w.r.t
        """,
        "before_numbers": """
            app Apr art Aug bk chap cl Dec Feb figs Jan Jul Jun lot Mar nos Nov Oct op para pt ref
            qty refs reg rm sc sect Sep Sept ste suite ver vol
        """,
        "may_be_last": """
            b.i.d bn ct dr dz est Fri gal hwy intl ln mfg mi mins mn mo Mon mos mph natl pkg pkwy
            pl pts q.d qt r.s.v.p Sat secs sq Sun t.i.d tbs tel Thu Thur Thurs tr Tue Tues Wed wk
            yd yds yr yrs
        """,
        "first": """
            a after again all also although an and another any anyway are as at because before both
            but by can did do does don't each either even every everyone everything few finally
            first for from had has have he he'd he'll he's hello help her here here's hers hey hi
            his how however i i'd i'll i'm i've if in instead into is isn't it it'd it'll it's its
            just last later let let's like many maybe meanwhile more most much my neither never
            next no nobody none nor not nothing now of oh ok okay on once one only open or other
            others our perhaps please see several she she'd she'll she's should since so some
            somebody someone something sometimes soon still such suddenly sure take thank thanks
            that that's the their them then there there's therefore these they they'd they'll
            they're they've this those though thus to today together tomorrow too try under
            unfortunately unless until use was we we'd we'll we're we've well were what what's
            whatever when where where's whether which while who who's whose why with without would
            yes yesterday yet you you'll you're you've your
        """,
        "casual_first": """
            he how i i'd i'll i'm i've im it's its she they what what's when where why you
        """,
        "unfinished": "a an and are but is my of or our the their was were your",
        "lettered": """
            annex appendix be block building candidate category class deck exhibit figure gate
            grade group hepatitis is level line model note option part plan platform point room
            schedule section series table team terminal type version vitamin ward wing zone
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
            a.d a.d.s abb abk abschn abt abzgl allg anm aufl ausg b.d begr bes betr bspw bzgl bzw
            ca d.h dent ders dipl.-ing dipl.-kfm dt eigtl einschl engl entspr erg ev evang evtl
            exkl fa fr franz frl frz geb gegr gem gen gest gez ggf ggü griech h.c hl hr hrn hrsg
            i.a i.b i.br i.d.r i.h.v i.v inkl insb insbes ital jew jur jüd kath kfm lat li lt m.e
            max med mind mtl mult möbl n.b nat niederl nördl o.g obb orig p.a phil prakt preuß priv
            prot rd re rel rer röm s s.a s.o s.u schwäb sog spez stellv städt südl techn theol tägl
            u urspr v v.a verh versch vet vgl vorm westl wg wiss z z.b z.hd z.t z.zt zit zool zw
            zzgl östl ü.d.m
        """,
        "before_numbers": """
            abs Apr art Aug az bd bde bj bl Dez Di Do Feb ff Jan jg Jul Jun kap lfd Mi Mo Mrz
            Mär Nov nr nrn Okt pkt rdnr rn S Sa Sep Sept So sp tab taf tel tz ziff zl
        """,
        "may_be_last": """
            a.d a.m aufl bhf chr d.j d.m ed f ff frhr ges hbf hptst jh jhd jhdt kl m.s m.w.h mio
            mrd msp n.chr o.b o.k o.ä ortst pck pl plz s.l sek st stck std stk str tabl tkm tsd u.a
            u.m u.v.a u.v.m u.ä urt v.chr verf vorb zul zus ü.m ü.nn
        """,
        "last": "dgl mwst usf usw",
        "endings": "str",
        "first": """
            aber alle allerdings alles als also am an andere andererseits auch auf aus außerdem bei
            beide beim beinahe bisher bitte da dabei dadurch dafür dagegen daher dahinter damals
            damit danach daneben dank dann daran darauf daraufhin darin darum darüber das dass
            davon davor dazu dein deine dem den denn dennoch der deren des deshalb dessen deswegen
            dich die dies diese diesem diesen dieser dieses dir doch dort du durch ebenso ein eine
            einem einen einer einerseits eines einige er erst erstens es etwas euch euer eure falls
            fast ferner früher für gegen genau gerne gestern gibt haben hat heute hier hierbei
            hierzu hinter hoffentlich hätte ich ihm ihnen ihr ihre ihrem ihren ihrer immer in
            inzwischen irgendwann ist ja jede jeder jedes jedoch jemand jener jetzt kann kein keine
            keiner kurz könnte leider man manche manchmal mein meine meist meistens mich mir mit
            möchte nach nachdem natürlich neben nein nicht nichts nie niemand noch nun nur ob
            obwohl oder offenbar oft ohne schließlich schon sehr sein seine seinem seinen seiner
            seit seitdem seither sie siehe sind so sobald sogar solche soll somit sondern sonst
            später statt trotz trotzdem um und uns unser unsere unter viele vielen vielleicht
            vielmehr vom von vor wann war waren warum was weder wegen weil weiter weitere welche
            wem wen wenig wenige wenn wer werden weshalb wessen wie wieder wieso wir wird wo wobei
            woher wohin womit wozu während wäre zu zudem zuerst zuletzt zum zumindest zur zusammen
            zwar zwei zweitens zwischen über überall
        """,
        "casual_first": "ich wann warum wenn weshalb wieso wir",
        "unfinished": """
            dass dein dem den der des ein eine einem einen im ist mein oder und unser vom zum zur
        """,
        "lettered": """
            abschnitt anlage block gebäude gleis gruppe halle haus hepatitis ist kandidat kategorie
            klasse modell plan punkt stufe tabelle teil tor typ variante version vitamin zimmer
            zone
        """,
        "before_ordinals": """
            ab alle am an auf bei beim bereits bis das dem den der des die diesem diesen dieser
            dieses ein eine einem einen einer erst ihr ihre ihrem ihren ihrer im jede jedem jeden
            jeder jedes mein meine meinem meinen meiner nach sein seine seinem seinen seiner seit
            und unser unsere unserem unseren vom von vor zum zur
        """,
        "after_ordinals": """
            akt apr april armee auflage aug august ausgabe band bataillon bezirk bundesliga
            deutsche deutscher deutsches dez dezember division dynastie etage feb februar folge
            geburtstag generation halbjahr halbzeit hochzeitstag internationale internationaler
            internationales jahrestag jahrhundert jahrhunderts jahrtausend jan januar jh jul juli
            jun juni jänner kammer kapitel klasse kongress lebensjahr legislaturperiode liga mai
            mal minute monat mrz märz nov november obergeschoss og okt oktober person platz preis
            quartal rang reihe runde schritt schuljahr semester senat sep sept september sinfonie
            sitzung spieltag staffel stelle stock stufe symphonie szene tag teil todestag ug
            untergeschoss wahlperiode weltkrieg woche
        """,
    },
    "fr": {
        "never_last": """
            apr av bd bld boul c.-à-d càd env ex fg fig M Me mgrs mlles MM mmes n.b n.d.l.r n.d.t
            p.-s p.ex pr s.e s.m ste
        """,
        "before_numbers": """
            al art avr bât chap D déc fig févr janv juil L livr n no nov num oct p pp R sept t tab
            tél vol éd
        """,
        "may_be_last": "c.a.p dim h j.-c jeu lun min o.n.u r.-v r.v s.a s.a.r.l s.n.c.f t.v.a ven",
        "first": """
            ainsi alors après au aucun aucune aussi autrefois aux avant avec beaucoup c'est car ce
            ceci cela celle celui cependant certains ces cet cette ceux chacun chaque comme comment
            d'abord d'accord d'ailleurs dans de demain depuis des donc du elle elles en encore
            enfin ensuite est et hier il ils j'ai jamais je l la le les leur leurs lorsque lui là
            ma mais malgré malheureusement merci mes moi mon même n'est ne ni non nos notre nous on
            or oui où par parce parfois pas pendant personne peut-être plus plusieurs pour pourquoi
            pourtant près puis puisque quand que quel quelle quelques qui quoi rien sa sans selon
            ses seul si soit son sous souvent sur surtout ta tandis tant tes toi ton toujours tous
            tout toute toutefois toutes trop très tu un une voici voilà vos votre vous y à ça
        """,
        "unfinished": """
            au aux c'est ce cette dans de des du est et je la le les ma mes mon ne ou un une
        """,
        "lettered": """
            annexe bâtiment classe est groupe hépatite partie plan point salle type vitamine zone
        """,
    },
    "es": {
        "never_last": """
            d dr dra dª ee ej excmo fdo gral ing lic p.ej prof sr sra sres srta ud uds vd vds
        """,
        "before_numbers": "apdo art cap fig nº núm pág págs tel vol",
        "may_be_last": "a.c av avda cía d.c dpto ee.uu s.a s.l uu",
        "first": """
            a además al algunos aquí así aunque como con cuando de desde después el ella ellos en
            entonces es esta este esto fue ha hay hoy la las le lo los luego mi más ni no nos
            nosotros o para pero por porque que quien se según si sin sobre sí también tras tu un
            una usted y ya yo él
        """,
    },
    "it": {
        "never_last": """
            arch avv cfr dott dott.ssa ecc.mo es geom ing on p.es prof rag sig sig.na sig.ra sigg
        """,
        "before_numbers": "art artt cap fig n nr pag pagg tel vol",
        "may_be_last": "a.c d.c ecc s.p.a s.r.l",
        "first": """
            a al alla anche come con così da dal del della di dopo e ecco era gli ha ho i il in io
            la le lei li lo loro lui ma nel nella noi non o ora per perché più poi quando quella
            quello questa questo se sono tra tu tutti un una voi è
        """,
    },
    "pt": {
        "never_last": "d dr dra eng ex exmo p.ex prof profa sr sra srs",
        "before_numbers": "art cap fig n nº núm pág págs tel vol",
        "may_be_last": "a.c av d.c ltda s.a",
        "first": """
            a ao as assim com como da de depois do e ela ele eles em então era esta este eu foi há
            isso já mais mas na nas no nos não nós o os ou para por porque quando que se sem seu
            são também um uma você é
        """,
    },
    "nl": {
        "never_last": """
            a.u.b bijv bv ca d.w.z dhr drs evt excl i.p.v incl ing ir m.a.w m.b.t mevr mr mw nl o.a
            prof resp st t.o.v vgl z.g
        """,
        "before_numbers": "afb art blz fig hfst nr p tel",
        "may_be_last": "b.v ds e.d jl m.n n.chr n.v v.chr",
        "last": "enz etc",
        "first": """
            aan als bij daar daarna dan dat de deze die dit door een en er haar heeft het hij hoe
            ik in is ja maar met na naar nee niet nog nu of om ook op te toen uit van veel voor
            waarom wat we wie wij ze zij zijn zo
        """,
    },
    "pl": {
        "never_last": "al dr gen hab im inż ks m.in mgr np os p pl por prof płk red tzn tzw ul św",
        "before_numbers": "art nr poz rozdz rys str t tab tel ust",
        "may_be_last": "godz mld mln n.e ok p.n.e r tys w wg zł",
        "last": "itd itp",
    },
    "cs": {
        "never_last": "bc doc dr ing judr mgr mj mudr např nám p popř prof pí resp sv tj tzv ul",
        "before_numbers": "obr odst str sv tab tel č čl",
        "may_be_last": "a.s hod kč mil mld n.l r s.r.o tis",
        "last": "aj apod atd",
    },
    "ru": {
        "never_last": """
            акад г-жа г-н гр д-р доц им напр о пер пр проф св см ср ст.-л т.е т.к т.н ул
        """,
        "before_numbers": "гл д кв корп оз п пп р рис ст стр т табл тел тт",
        "may_be_last": "в вв г гг до.н.э коп мин млн млрд н.э руб сек тыс ч",
        "last": "др пр т.д т.п",
    },
    "sv": {
        "never_last": "bl.a ca d.v.s dr dvs ev fr.o.m jfr m.fl prof resp s.k st t.ex t.o.m",
        "before_numbers": "fig kap nr s tel",
        "may_be_last": "e.kr f.kr kl kr milj",
        "last": "m.m osv",
    },
    "da": {
        "never_last": "bl.a ca d.v.s dr dvs evt f.eks fr hr inkl jf pga prof",
        "before_numbers": "fig kap nr s tlf",
        "may_be_last": "e.kr f.kr kl kr mia mio",
        "last": "m.m m.v osv",
    },
    "tr": {
        "never_last": "alb av doç dr müh prof sn yrd örn",
        "before_numbers": "cad no s sok tel",
        "may_be_last": "a.ş ltd m.s m.ö şti",
        "last": "vb vd vs",
    },
    "ko": {
        "first": """
            그 그것은 그녀는 그는 그래도 그래서 그러나 그러면 그런데 그럼 그리고 나는 다만 단
            따라서 또 또한 이 이것은 이는 이에 저는 즉 하지만
        """,
    },
}
_TABLES["nb"] = _TABLES["no"] = _TABLES["da"]
_TABLES["sk"] = _TABLES["cs"]
_TABLES["uk"] = _TABLES["be"] = _TABLES["ru"]
