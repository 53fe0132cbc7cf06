"""This table has the gender and plural of common German nouns, which most compounds end in.

A noun that is not here has the gender and plural of the longest noun that it ends in, as Bahnhof
has those of Hof; suffixes such as -ung and -chen follow rules and are left to `german`.
"""

from __future__ import annotations

import functools
from typing import Final, Literal, NamedTuple

Gender = Literal["m", "f", "n"]

# gender and what makes the plural (" is an umlaut, - is no ending): the nouns;
# weak ones have the ending of their plural in every case but the nominative.
_TABLE: Final[tuple[tuple[Gender, str, str], ...]] = (
    (
        "m",
        "-",
        "Absender Adler Anbieter Artikel Bäcker Balken Benutzer Berater Besen Besitzer Bewohner "
        "Browser Brunnen Bürger Computer Deckel Drachen Drucker Durchmesser Eimer Empfänger Enkel "
        "Esel Fahrer Fehler Felsen Filter Finger Flügel Gegner Gipfel Gürtel Haken Händler Haufen "
        "Helfer Hersteller Himmel Hügel Igel Jäger Käfer Kalender Kanzler Karren Käse Kater "
        "Käufer Keller Kellner Kessel Knochen Koffer Körper Kübel Kuchen Künstler Läufer Lehrer "
        "Leser Löffel Maler Meister Mieter Minister Mörder Nebel Nutzer Onkel Orden Ordner "
        "Partner Pfarrer Pfeffer Pinsel Posten Rahmen Rasen Regen Reifen Reiter Reporter Richter "
        "Ritter Router Rücken Rüssel Sänger Schalter Schatten Schauspieler Schlüssel Schneider "
        "Schüler Sender Server Sieger Sommer Speicher Spiegel Spieler Sportler Stempel Stiefel "
        "Streifen Täter Teller Tempel Teufel Tiger Titel Träger Trainer Tropfen Verkäufer "
        "Vermieter Vertreter Wagen Wähler Wecker Winkel Winter Wissenschaftler Zeiger Zettel "
        "Zucker Zweifel",
    ),
    (
        "m",
        '"-',
        "Acker Apfel Boden Bogen Bruder Faden Garten Graben Hafen Hammer Kasten Laden Magen "
        "Mangel Mantel Nagel Ofen Sattel Schaden Schnabel Vater Vogel",
    ),
    (
        "m",
        "e",
        "Abend Abschied Abschnitt Akt Angriff Anteil Apparat Arm Aspekt Begriff Bereich Berg "
        "Bericht Beruf Bestandteil Besuch Betrieb Beweis Bezirk Blick Brief Dank Delfin Dialekt "
        "Dieb Dienst Dom Effekt Eingriff Erfolg Export Feind Film Fisch Flüchtling Fremdling "
        "Freund Friseur Frühling Gewinn Grad Halm Hauch Häuptling Helm Hengst Herbst Hering Honig "
        "Huf Hund Import Ingenieur Käfig Kamin Kapitän Keks Kerl Kern Knecht Konflikt Kongress "
        "König Kontakt Kredit Kreis Krieg Lachs Laut Lehrling Lenz Liebling Luchs Magistrat "
        "Millionär Moment Monat Mond Mord Nachteil Offizier Orkan Ort Pakt Pfad Pfeil Pilz Preis "
        "Profit Prozess Punkt Redakteur Regisseur Rekord Rest Ring Roman Ruf Salat Schein Schirm "
        "Schmetterling Schreck Schritt Schuh Sekretär Senat Sieg Sinn Sitz Stein Stern Stift Stil "
        "Stoff Streik Streit Strich Tag Takt Teich Teil Teppich Termin Tisch Tod Transport Trick "
        "Unterschied Vergleich Verlust Versuch Vorteil Vulkan Weg Wein Wert Wind Wirt Witz "
        "Zugriff Zweck Zweig Zwerg",
    ),
    (
        "m",
        '"e',
        "Abstand Altar Anfang Anlass Antrag Anzug Arzt Ast Auftrag Ausflug Ausgang Bach Bahnhof "
        "Ball Band Bart Bauch Baum Beitrag Block Brand Brauch Bruch Bund Busch Choral Dampf Draht "
        "Druck Duft Eingang Einwand Entwurf Ertrag Fall Floh Fluch Flug Fluss Frosch Fuchs Fuß "
        "Gang Gast Gegenstand General Gesang Grund Gruß Hals Hof Hut Kahn Kamm Kampf Kanal Kauf "
        "Klang Klotz Knall Knopf Koch Kopf Korb Krampf Kran Kranz Kuss Lauf Lohn Markt Matz Napf "
        "Palast Pass Pfahl Plan Platz Rang Rat Raum Rausch Rock Saal Sack Saft Sarg Satz Schacht "
        "Schatz Schlag Schlauch Schluss Schopf Schrank Schuss Schwan Schwanz Schwarm Sohn Spaß "
        "Sprung Stab Stall Stamm Stand Stock Stoß Strand Strauß Strom Stuhl Stumpf Sturm Sturz "
        "Tanz Ton Topf Traum Trog Turm Umstand Verband Verkauf Vertrag Vorhang Vorrat Vorschlag "
        "Vorstand Wolf Wunsch Wurf Zahn Zaun Zug Zustand Zwang",
    ),
    ("m", "er", "Geist Leib"),
    ("m", '"er', "Gott Irrtum Mann Mund Rand Reichtum Strauch Wald Wurm"),
    (
        "m",
        "n weak",
        "Affe Bauer Biologe Bote Brite Bursche Chinese Däne Erbe Experte Finne Franzose Gatte "
        "Gefährte Genosse Grieche Hase Heide Insasse Junge Knabe Kollege Kunde Laie Löwe Nachbar "
        "Neffe Ochse Pate Pole Psychologe Rabe Riese Russe Schurke Schütze Schwede Sklave Türke "
        "Zeuge",
    ),
    (
        "m",
        "en weak",
        "Abonnent Absolvent Advokat Agent Architekt Artist Assistent Astronom Athlet Automat Bär "
        "Chirurg Christ Demokrat Demonstrant Diamant Diplomat Dirigent Dozent Elefant Fotograf "
        "Fürst Gigant Graf Held Herr Journalist Kamerad Kandidat Klient Komet Komponist Konsument "
        "Lieferant Mensch Monarch Musikant Narr Optimist Passant Patient Philosoph Pianist Pilot "
        "Pirat Planet Poet Polizist Praktikant Präsident Prinz Produzent Prophet Referent Soldat "
        "Spezialist Student Terrorist Tourist",
    ),
    ("m", "n", "Buchstabe Friede Funke Gedanke Glaube Haufe Muskel Name Same See Vetter Wille"),
    (
        "m",
        "en",
        "Autor Direktor Doktor Dorn Faktor Monitor Motor Nerv Professor Prozessor Reaktor Schmerz "
        "Sektor Sensor Staat Strahl Traktor Typ Untertan",
    ),
    (
        "m",
        "s",
        "Account Blog Chat Chef Clown Club Code Fan Job Kaffee Klub Link Opa Park Parka Schal "
        "Song Star Tee Test Tipp Trend Zoo",
    ),
    (
        "f",
        "n",
        "Achse Adresse Ameise Ampel Amsel Analyse Anlage Annahme Anzeige Aufgabe Auflage Aufnahme "
        "Ausgabe Ausnahme Aussage Banane Batterie Beilage Bibel Biene Birne Bitte Blume Bluse "
        "Bohne Börse Bremse Brille Brücke Bühne Bürste Dame Decke Diskette Dose Dusche Ebene Ecke "
        "Ehe Eiche Einnahme Ente Ernte Etage Fabel Fahne Fähre Falle Familie Farbe Faser Fassade "
        "Feder Feier Fläche Flamme Flasche Fliege Folge Formel Frage Freude Gabe Gabel Garage "
        "Gasse Geige Gemeinde Geschichte Gitarre Glocke Grenze Grippe Größe Grube Grundlage "
        "Gruppe Hälfte Halle Haltestelle Hecke Herde Hexe Hilfe Hitze Höhe Höhle Hose Hülle Hütte "
        "Idee Insel Jacke Kammer Kanne Kapelle Karte Kartoffel Kasse Kassette Katze Kehle Kerze "
        "Kette Kirche Kirsche Kiste Klasse Klausel Klinge Klinke Klippe Kneipe Kohle Kontrolle "
        "Krawatte Krippe Küche Kugel Kurve Küste Lage Lampe Länge Laterne Leber Lehre Leiste "
        "Leiter Liebe Limonade Liste Lücke Lüge Lunge Lupe Mandel Mappe Marke Maschine Maske "
        "Maßnahme Masse Mauer Menge Messe Methode Metropole Miete Mitte Mode Möwe Mühe Mühle "
        "Münze Muschel Mütze Nadel Nase Nichte Note Nummer Oper Palette Parade Pause Perle Pfanne "
        "Pflanze Pflege Pfütze Phase Pistole Plantage Platte Presse Probe Pumpe Quelle Rakete "
        "Rampe Rasse Ratte Rede Regel Reihe Reise Rente Reportage Rolle Rose Route Runde Sache "
        "Säge Salbe Säule Schachtel Schale Schande Scheibe Schere Schlange Schleife Schnecke "
        "Schokolade Schraube Schule Schulter Schüssel Schwalbe Schwelle Schwester Seele Seife "
        "Seite Silbe Socke Sonne Sorge Sorte Spinne Spitze Sprache Spritze Stelle Steuer Stimme "
        "Straße Strecke Stufe Stunde Summe Suppe Szene Tafel Tante Tasche Tasse Taste Tatsache "
        "Taube Taufe Tinte Toilette Tomate Tonne Torte Träne Traube Treppe Treue Truhe Truppe "
        "Tüte Urkunde Ursache Vase Vokabel Vorlage Waage Waffe Wange Wanne Ware Wärme Warze Watte "
        "Weide Weile Weise Welle Wende Wette Wiese Witwe Woche Wolke Wolle Wunde Wurzel Wüste "
        "Zange Zecke Zeile Zelle Ziege Ziffer Zigarette Zitrone Zone Zunahme Zunge Zwiebel",
    ),
    (
        "f",
        "en",
        "Absicht Aktion Ankunft Anschrift Ansicht Antwort Arbeit Art Auskunft Aussicht Bäckerei "
        "Bahn Bank Bibliothek Bücherei Bucht Burg Couch Datei Diskothek Fabrik Fahrt Fassung "
        "Figur Flut Form Frau Frist Frisur Geburt Gefahr Gegend Glut Herkunft Hoffnung Jagd "
        "Klausur Klinik Kultur Kur Last List Nachricht Nation Natur Pacht Partei Person Pflicht "
        "Predigt Qual Regierung Reparatur Republik Saat Schar Schicht Schlacht Schlucht Schrift "
        "Schuld Sicht Spur Stirn Tat Technik Temperatur Tugend Tür Übersicht Uhr Universität "
        "Unterkunft Vorschrift Wahl Welt Werft Zahl Zeit Zeitung Zensur Zutat",
    ),
    (
        "f",
        '"e',
        "Angst Anstalt Axt Bank Braut Brust Faust Frucht Gans Gruft Hand Haut Kluft Kraft Kuh "
        "Kunst Laus Luft Lust Macht Magd Maus Nacht Naht Not Nuss Sau Schnur Schwulst Stadt Wand "
        "Wurst Zunft",
    ),
    ("f", '"-', "Mutter Tochter"),
    (
        "f",
        "s",
        "App Bar Cafeteria Crew E-Mail Hardware Homepage Jury Kamera Lobby Mail Mama Oma Party "
        "Show Software Story Talkshow URL Website",
    ),
    (
        "n",
        "-",
        "Abkommen Alter Becken Brötchen Drittel Eisen Erbe Essen Euter Fenster Fernsehen Feuer "
        "Finale Gebäude Gebirge Gemälde Gemüse Getreide Gewebe Gewitter Gitter Kabel Kaninchen "
        "Kapitel Kissen Lager Laster Leben Leder Leiden Mädchen Märchen Messer Mittel Möbel "
        "Muster Opfer Orchester Päckchen Pflaster Pulver Rätsel Register Ruder Schreiben Segel "
        "Semester Silber Steuer Theater Treffen Übel Ufer Unternehmen Verbrechen Verfahren "
        "Vergnügen Verhalten Vermögen Versprechen Viertel Vorhaben Wasser Wesen Wetter Wunder "
        "Zeichen Zimmer",
    ),
    ("n", '"-', "Kloster"),
    (
        "n",
        "e",
        "Abitur Adjektiv Alphabet Angebot Archiv Argument Attribut Beil Bein Beispiel Benzin Boot "
        "Brot Ding Dokument Element Exemplar Experiment Fahrzeug Fell Fest Flugzeug Format "
        "Formular Fundament Gas Gebäck Gebet Gebiet Gebot Gedicht Gefühl Gegenteil Gehirn Gelenk "
        "Gerät Geräusch Gericht Gerücht Geschäft Geschenk Geschoss Gesetz Gespräch Getränk Gewehr "
        "Gewicht Gift Haar Heer Heft Honorar Institut Instrument Inventar Jahr Joch Kabinett "
        "Kamel Klavier Konzert Kreuz Lineal Lob Lokal Los Magazin Maß Medikament Meer Metall "
        "Mikrofon Modell Moor Motiv Netz Objekt Öhr Öl Original Paar Paket Papier Parlament Pferd "
        "Pfund Plakat Problem Produkt Programm Projekt Protokoll Pult Quadrat Recht Regal Reich "
        "Resultat Rohr Roß Salz Schaf Schicksal Schiff Schilf Schwein Segment Seil Sekret "
        "Sekretariat Seminar Signal Spiel Spielzeug Stück Symbol System Talent Telefon Testament "
        "Tier Tor Turnier Urteil Ventil Verbot Verdeck Visier Vitamin Vlies Werk Werkzeug Wrack "
        "Zelt Zeug Ziel Zitat",
    ),
    ("f", "se", "Erkenntnis Erlaubnis Finsternis Kenntnis Wildnis"),
    (
        "n",
        "se",
        "Bedürfnis Bündnis Ereignis Ergebnis Erlebnis Gedächtnis Gefängnis Geheimnis Hindernis "
        "Verhältnis Verständnis Verzeichnis Zeugnis",
    ),
    (
        "n",
        "er",
        "Bild Brett Ei Feld Geld Gemüt Geschlecht Gesicht Gespenst Glied Kind Kleid Licht Lied "
        "Mitglied Nest Rind Schild Schwert Weib",
    ),
    (
        "n",
        '"er',
        "Altertum Amt Bad Band Blatt Buch Dach Denkmal Dorf Fach Fass Fürstentum Glas Grab Gras "
        "Gut Haupt Haus Heiligtum Holz Horn Huhn Kalb Korn Krankenhaus Kraut Lamm Land Loch Maul "
        "Passwort Rad Rathaus Schloss Tal Tuch Volk Wort",
    ),
    ("n", "n", "Auge Ende Interesse"),
    ("n", "en", "Bett Hemd Herz Insekt Ohr"),
    (
        "n",
        "s",
        "Auto Baby Backup Bonbon Budget Büro Café Camp Deck Design Echo Event Festival Foto Handy "
        "Hobby Hotel Image Internet Interview Kilo Kino Komma Level Meeting Menü Militär Motto "
        "Plugin Pony Radio Regime Restaurant Risotto Sofa Steak Studio Tablet Taxi Team Ticket "
        "Tool Update Video",
    ),
)
_IRREGULAR: Final[dict[Gender, str]] = {
    "n": (
        "Museum=Museen Zentrum=Zentren Datum=Daten Studium=Studien Gymnasium=Gymnasien "
        "Ministerium=Ministerien Album=Alben Visum=Visa Praktikum=Praktika Medium=Medien "
        "Kriterium=Kriterien Spektrum=Spektren Thema=Themen Drama=Dramen Schema=Schemata "
        "Konto=Konten Risiko=Risiken Material=Materialien Prinzip=Prinzipien Mineral=Mineralien "
        "Stadion=Stadien Lexikon=Lexika Virus=Viren Glück= Fleisch= Gepäck= Obst= Geflügel= "
        "Publikum= Klima= Personal= Wissen="
    ),
    "f": (
        "Firma=Firmen Villa=Villen Pizza=Pizzen Basis=Basen Praxis=Praxen Milch= Butter= Polizei= "
        "Musik= Heimat= Zukunft= Post="
    ),
    "m": (
        "Rhythmus=Rhythmen Organismus=Organismen Mechanismus=Mechanismen Globus=Globen Bus=Busse "
        "Kaufmann=Kaufleute Fachmann=Fachleute Landsmann=Landsleute Ärger= Hunger= Durst= Schnee= "
        "Sand= Mut= Hass= Verkehr="
    ),
}
"""These have a plural of their own, or none."""


class KnownNoun(NamedTuple):
    """Hold what is known of a noun."""

    genders: tuple[Gender, ...]
    """There are several of nouns such as der See and die See."""
    plurals: tuple[str, ...]
    weak: bool


_UMLAUTS: Final = {"a": "ä", "o": "ö", "u": "ü", "A": "Ä", "O": "Ö", "U": "Ü"}


def umlauted(noun: str) -> str:
    """Return a noun with an umlaut on the last vowel that can take one: Baum, Bäum; Hof, Höf."""
    for place in range(len(noun) - 1, -1, -1):
        letter = noun[place]
        before = noun[place - 1] if place else ""
        if letter in "äöüÄÖÜiIyY" or (letter == "u" and before in ("e", "E")):
            return noun
        if letter == "u" and before in ("a", "A"):  # Baum
            return noun[: place - 1] + _UMLAUTS[before] + noun[place:]
        if letter == "a" and before in ("a", "A"):  # Saal
            return noun[: place - 1] + _UMLAUTS[before] + noun[place + 1 :]
        if letter in _UMLAUTS:
            return noun[:place] + _UMLAUTS[letter] + noun[place + 1 :]
    return noun


@functools.cache
def nouns() -> dict[str, KnownNoun]:
    """Return the nouns of the tables in small letters."""
    found: dict[str, KnownNoun] = {}
    for gender, rule, several in _TABLE:
        ending, _, weak = rule.partition(" ")
        for noun in several.lower().split():
            stem = umlauted(noun) if ending[0] == '"' else noun
            plural = stem + ending.strip('"-')
            genders, plurals, _ = found.get(noun, ((), (), False))
            found[noun] = KnownNoun(
                tuple(dict.fromkeys((*genders, gender))),
                tuple(dict.fromkeys((*plurals, plural))),
                bool(weak),
            )
    for gender, table in _IRREGULAR.items():
        for entry in table.lower().split():
            noun, _, plural = entry.partition("=")
            found[noun] = KnownNoun((gender,), (plural,) if plural else (), False)
    return found


@functools.lru_cache(4096)
def known_noun(noun: str) -> KnownNoun | None:
    """Return what is known of a noun, by itself or as the end of a compound; its case is kept."""
    lower, table = noun.lower(), nouns()
    for start in range(len(lower) - 1):
        known = table.get(lower[start:])
        if known is None or (start and not ends_compound(lower, start)):
            continue
        capital = noun[start].isupper()
        cased = [noun[:start] + (one.capitalize() if capital else one) for one in known.plurals]
        return known._replace(plurals=tuple(cased))
    return None


def ends_compound(word: str, start: int) -> bool:
    """Return whether a noun that begins at `start` of a word is the end of a compound."""
    if word[start - 1] == "-":
        return True
    end = word[start:]
    return start >= 3 and len(end) >= (3 if start > 3 else 4) and end not in _NO_ENDS


_NO_ENDS: Final = frozenset({"pole", "art", "not", "ehe", "app", "bar", "rat", "see", "ton", "tor"})
"""So many other words end by chance that these are not taken for the end of a compound."""
