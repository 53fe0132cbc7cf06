"""Name what the models of this directory learned from, and on which terms it may be used."""

from __future__ import annotations

from typing import Final

GROUPS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "Europarl": ("proceedings of the European Parliament", "reuse allowed", ("europarl",)),
    "Tatoeba": ("everyday sentences", "CC BY 2.0", ("tatoeba",)),
    "Microsoft Docs": ("manuals of software, translated by people", "CC BY 4.0", ("msdocs",)),
    "Debian": (
        "messages and manuals of its packages",
        "each package's own (GPL, LGPL, MIT, MPL, GFDL)",
        ("debian-ui", "debian-docs", "ddtp", "manpages"),
    ),
    "Ding": ("word list", "GPL 2 or later", ("ding",)),
    "freeCodeCamp": ("course", "BSD 3-Clause", ("fcc",)),
    "games": ("texts of games", "CC BY-SA 3.0, GPL, MPL 2.0", ("cdda", "games", "games2")),
    "documentation of projects": (
        "Python, Django, PHP, QGIS, Godot, Kubernetes, TensorFlow, React, Vue, Ruby and others",
        "PSF, BSD, CC BY 3.0 and 4.0, CC BY-SA, Apache 2.0, MIT",
        (
            *("python-docs", "django-docs", "php-docs", "qgis-docs", "godot-docs", "kubernetes"),
            *("tensorflow", "react", "vue", "ruby", "webdev", "webfund", "webgl", "threejs", "d2l"),
            *("hf", "hfcourse", "djangogirls", "osguide", "githubdocs", "odoo-docs", "ethereum"),
            *("kaia", "fastapi", "mscourse"),
        ),
    ),
    "MDN": ("documentation of the web", "CC BY-SA 2.5", ("mdn",)),
    "LibreOffice, GNOME and GIMP": (
        "help texts",
        "MPL 2.0, CC BY-SA 3.0, GFDL",
        ("libreoffice", "gnome-help", "gimp-help"),
    ),
    "interfaces": (
        "messages of Mozilla, MediaWiki, Android, Open edX, OpenStack and web applications",
        "MPL 2.0, GPL 2 or later, AGPL, BSD, Apache 2.0, CC BY-SA 4.0",
        ("mozilla", "mediawiki", "webapps", "android", "openedx", "openstack"),
    ),
    "SuttaCentral": ("Buddhist texts", "CC0", ("suttacentral",)),
    "KorSTS": ("captions and headlines", "CC BY-SA 4.0", ("korsts",)),
    "CoCoA-MT": ("sentences by formality", "CDLA-Sharing 1.0", ("cocoa",)),
    "names": ("names of countries, languages and things", "Unicode, ISC", ("vocab",)),
    "English of other pairs": (
        "monolingual text of Europarl, Tatoeba, SuttaCentral or KorSTS, translated by a model",
        "reuse allowed, CC BY 2.0, CC0, CC BY-SA 4.0",
        ("english",),
    ),
    "Wikipedia and others": (
        "monolingual text: encyclopaedias, speeches, reviews, talk; translated by a model",
        "CC BY-SA, CC BY, CC0, MIT; speeches free to use",
        ("mono",),
    ),
}
"""By a name that people know: what it is, its terms, and the sources of pairs that belong to it."""


def group_of(source: str) -> str:
    """Return the name of the group that a source of pairs belongs to."""
    for name, (_, _, sources) in GROUPS.items():
        if source in sources or source.partition("-")[0] in sources:
            return name
    raise SystemExit(f"models/sources.py does not name {source}")


TREEBANKS: Final[dict[str, tuple[str, str, str, str]]] = {
    "gum": (
        "GUM",
        "trees of interviews, news, guides, fiction, talk and more, automatic from gold tags",
        "CC BY 4.0 (annotations)",
        "Amir Zeldes and others, [Georgetown University](https://gucorpling.org/gum/), 2017",
    ),
    "craft": (
        "CRAFT",
        "gold trees of biomedical articles",
        "CC BY 3.0",
        "Karin Verspoor, Michael Bada and others, "
        "[University of Colorado](https://github.com/UCDenver-ccp/CRAFT), 2012",
    ),
}
"""By the name of its files: a treebank's own name, what it is, its terms, and whose it is."""
