"""URLs, addresses, paths, placeholders, tags, codes and the like are not translated.

`find_items` finds them in a text. Numbers are none of these, for other languages may write them
otherwise: see `number_check`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Final

from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.units import UNIT_AFTER


class Carriage(Enum):
    """Say how an item goes through the model at first; docs/decoding.md has the measurements."""

    AS_IS = "as it is"
    """Models copy it mostly: few pieces, or digits."""
    STAND_IN = "as a word that the model copies"
    """It would be damaged, or translated in part."""
    CUT = "not at all"
    """It is taken out, and put back beside the words that it stood beside."""


@dataclass(frozen=True, slots=True)
class Item:
    """Hold something in a text that must come back as it is."""

    start: int
    end: int
    text: str
    kind: str

    @property
    def carriage(self) -> Carriage:
        """Return how it goes through the model at first."""
        if self.kind == "placeholder" and _SHORT_PLACEHOLDER.fullmatch(self.text):
            return Carriage.AS_IS
        return _CARRIAGE.get(self.kind, Carriage.STAND_IN)

    @property
    def counted(self) -> bool:
        """Return whether the translation must have it as often as the text, and not more often."""
        return self.kind in ("tag", "placeholder")


_CARRIAGE: Final = {
    "tag": Carriage.CUT,
    "entity": Carriage.AS_IS,
    "citation": Carriage.AS_IS,
    "version": Carriage.AS_IS,
    "timestamp": Carriage.AS_IS,
    "address": Carriage.AS_IS,
    "product": Carriage.AS_IS,
    "symbol": Carriage.AS_IS,
    "sign": Carriage.AS_IS,
    "emoji": Carriage.CUT,
    "mark": Carriage.CUT,
}
_SHORT_PLACEHOLDER: Final = lazy_pattern(r"[^A-Za-z]*[A-Za-z]?[^A-Za-z]*")

# Scripts whose words are not separated from Latin letters by a space; particles follow an item.
_ASIAN: Final = "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
_URL_END: Final = rf"[^\s<>\"`{{}}|\\^{_ASIAN}.,;:!?)\]'\u2019\u201c\u201d\u00bb\u00ab]"
_URL_CHARACTER: Final = rf"[^\s<>\"`{{}}|\\^{_ASIAN}\u201c\u201d\u201e\u00ab\u00bb]"
_EXTENSIONS: Final = (
    "aac|apk|avi|bak|bash|bat|bin|bmp|bz2|cfg|class|cmd|conf|cpp|cs|css|csv|db|deb|dll|dmg|docx?|"
    "epub|exe|flac|gif|go|gz|hpp|html?|ico|ini|ipynb|iso|jar|java|jpe?g|js|json|jsx|kt|lock|log|lua|"
    "md|mkv|mov|mp[34]|msi|odp|ods|odt|ogg|pdf|php|pkl|png|po|pot|ppt|pptx|ps1|psd|py|rar|rb|rpm|rs|"
    "rst|rtf|scala|sh|so|sql|srt|svg|swift|tar|tex|tgz|tiff?|tmx|toml|ts|tsv|tsx|ttf|txt|vbs|vtt|"
    "wav|webm|webp|whl|xcf|xhtml|xlf|xliff|xlsx?|xml|xz|ya?ml|zip"
)
_ROOTS: Final = "bin|boot|dev|etc|home|lib|mnt|opt|proc|root|run|srv|sys|tmp|usr|var|api"
_TOP_LEVEL: Final = (
    "com|org|net|de|io|eu|gov|edu|info|biz|fr|uk|kr|jp|cn|at|ch|it|es|nl|pl|ru|us|ca|au|dev|app|ai|"
    "tv|me|be|cz|se|no|dk|fi|pt|br|in|mx"
)
_ZONE: Final = r"(?:Z|[+-]\d{2}:?\d{2})?"
_TIME: Final = rf"\d{{1,2}}:\d{{2}}:\d{{2}}(?:[.,]\d{{1,6}})?{_ZONE}"
_FLAGS: Final = r"[-+0\#]*\d*(?:\.\d+)?"
_LETTER: Final = rf"[^\W{_ASIAN}]"
_FOLDERS: Final = r"(?:[\w.+@%-]+/)"
_FILE: Final = rf"(?:(?:{_LETTER}|[.+@%-])*(?:{_LETTER}|[+%-]))"


def _after(*words: str) -> str:
    """Return what matches after one of some words, in any case, and a space or a no-break space."""
    forms = {form for word in words for form in (word, word.capitalize(), word.upper())}
    return "(?:{})".format("|".join(f"(?<={re.escape(form)}[ \u00a0])" for form in sorted(forms)))


_NUMBERED: Final = _after(
    *("section", "chapter", "figure", "table", "step", "appendix", "fig.", "tab."),
    *("abschnitt", "kapitel", "abbildung", "tabelle", "punkt", "anhang", "abb.", "§"),
)
"""After these words 12.9 is no decimal number."""
_VERSIONED: Final = _after(
    *("version", "versions", "ver.", "release", "build", "kernel", "firmware", "revision", "rev."),
    *("patch", "driver", "treiber", "protocol", "버전", "빌드", "릴리스", "커널", "펌웨어"),
    *("windows", "linux", "android", "macos", "macOS", "ios", "iOS", "iPadOS", "ubuntu", "debian"),
    *(
        "fedora",
        "python",
        "java",
        "php",
        "ruby",
        "node.js",
        "firefox",
        "chrome",
        "safari",
        "office",
    ),
    *("usb", "hdmi", "bluetooth", "opengl", "OpenGL", "directx", "DirectX", "cuda", "html", "http"),
    *("tls", "unicode", "PyTorch", "postgresql", "PostgreSQL", "mysql", "MySQL", "docker", "gpt"),
)
"""After these words it is the number of a version."""
_NOT_MEASURED: Final = (
    rf"(?!{UNIT_AFTER}| ?[%°€$£¥₩]"
    r"| (?:[a-z]*illi|thousand|hundred|[Tt]ausend|Mi[ol]|Mrd|times|hour))"
)
"""Where a unit or a scale follows, it is a decimal number after all: they build 2.5 million."""

_PATTERNS: Final = {
    "code": (
        r"```(?:[^`]|`(?!``))+```",
        r"``(?:[^`]|`(?!`))+``",
        r"`(?! ?`)[^`\n]+`",
        r"^\$ [a-z./~][^\n]*",  # a command as it is typed
        # formulas of LaTeX
        r"\$(?! )[^$\n]{0,100}[\\^_=][^$\n]{0,100}(?<! )\$(?!\d)",
        r"\\[A-Za-z]{2,30}(?:\{[^{}\n]{0,80}\})+",
    ),
    "tag": (
        r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>",
        r"</?\d+/?>",
        r"<[!@\#][\w|^.-]+>",  # mentions of chats
        # links of Markdown, whose text is translated
        r"!?\[(?=[^\[\]\n]{1,200}\]\([^\s()]{1,300}[)\s])",
        r"\]\([^\s()]{1,300}(?:\s\"[^\"\n]{0,100}\")?\)",
        r"<!--.{0,1000}?-->",
        r"\\[nrt](?=[A-Z\s\\]|$)",  # line ends and tabs as programs spell them
    ),
    "entity": (r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6});",),
    "url": (
        rf"(?:(?<![A-Za-z])(?:https?|ftps?|sftp|file|ssh|git|wss?|s3|data)://|(?<!\w)www\.)"
        rf"(?:{_URL_CHARACTER}|(?<=[/=_])[{_ASIAN}]+)*{_URL_END}/?",
        r"(?<![\w.+-])\w[\w.-]*@\w[\w.-]*:[\w.~-]*/[\w./~-]*\w",  # git@host:name/repository
        r"(?<![\w@.-])(?:mailto|tel|doi|urn|arXiv):[\w.:+@/%-]+[\w/]",
        r"(?<![\w.,/])10\.\d{4,9}/[\w.;:/()-]*\w",  # the number of a paper
        rf"(?<![\w@.-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:{_TOP_LEVEL})"
        rf"(?:/{_URL_CHARACTER}*[\w/])?(?![\w@-]|\.\w)",
    ),
    "email": (
        r"<[\w.+-]+@[\w.-]+\w>",
        r"(?<![\w.+-])[\w.+-]*[\w+-]@\w[\w-]*(?:\.\w[\w-]*[A-Za-z0-9])+",
    ),
    "setting": (rf"(?<![\w.&?$-])[A-Za-z_][\w.-]*=(?!=)(?:\"[^\"\n]*\"|[^\s=,;]*{_URL_END})",),
    "placeholder": (
        r"\{\{[^{}\n]{1,80}\}\}",
        r"\{%[^{}\n]{1,80}%\}",
        r"<%[^<>\n]{1,80}%>",
        r"[$\#@%]\{[^{}\n]{1,80}\}",
        r"\[\[[^\[\]\n]{1,80}\]\]",
        # ICU's messages, with messages in them
        r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal|number|date|time|choice)\b"
        r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}",
        r"\{[\w.\[\]-]*(?:![rsa])?(?::[^{}\s]{0,20})?\}",
        rf"%\(\w+\){_FLAGS}[a-zA-Z]",
        rf"%\d+\${_FLAGS}[sdfiuxXc@]",
        r"%%",
        rf"(?<![\w%])%{_FLAGS}(?:l{{0,2}}[sdfiuxXcge]|@)(?![A-Za-z])(?:%%)?",
        r"(?<!\w)%[A-Za-z_][\w.]*%",
        rf"(?<![\w$])\$[A-Za-z_]{_LETTER}*",
        r"(?<![\w:/]):[a-z_]{2}[\w+-]*:?(?![\w/])",
        r"(?<!\w)__\w+__(?!\w)",
    ),
    "path": (
        r"(?<![\w/])[A-Za-z]:\\(?:[^\s<>\"|?*]*[^\s<>\"|?*.,;:!)\]'\u201c\u201d])?",
        r"(?<![\w\\])\\\\[\w.$-]+(?:\\[\w.$ -]*[\w$-])+",
        rf"(?<![\w/.:~])(?:~|\.{{1,2}})/{_FOLDERS}*{_FILE}?",
        rf"(?<![\w/.:~<])/(?:(?:{_ROOTS})(?![\w/])|{_FOLDERS}+{_FILE}?)",
        r"(?<![\w/.:~-])[\w.-]+(?:/[\w.-]+)*/[\w-]+\.[A-Za-z]\w{0,5}(?![\w/])",
        rf"(?<![\w/.-])[\w-][\w.-]*(?:\(\d{{1,3}}\))?\.(?:{_EXTENSIONS})(?!\w)",
        rf"(?<![\w-])--[a-z](?:{_LETTER}|-)+(?:=[^\s,;{_ASIAN}]+)?",
    ),
    "name": (
        rf"(?<![\w@./])@(?!\d){_LETTER}+(?:[.-]{_LETTER}+)*",
        rf"(?<![\w@./])@[{_ASIAN}]\w*",
    ),
    "hashtag": (
        r"(?<![\w&\#/])\#(?:[A-Z0-9]+(?:-[A-Z]*\d[A-Z0-9]*)+(?:-[A-Z]{1,3})*|\d{2,})(?!\w)",
        r"(?<![\w&\#/])\#\w*[^\W\d_]\w*",
    ),
    "iban": (r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?!\w)",),
    "hash": (
        r"(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])",
        r"(?<!\w)(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,128}(?!\w)",
        # keys and tokens: long, and digits between letters
        r"(?<![\w.-])(?=[\w-]{0,60}[A-Za-z]\d+[A-Za-z])[A-Za-z0-9_-]{20,}+(?:\.[A-Za-z0-9_-]+)*(?!\w)",
    ),
    "address": (
        r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2}|:\d{1,5})?(?!\w|\.\d)",
        r"(?<![\w:])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?![\w:])",
        r"(?<![\w:])[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){3,7}(?![\w:])",
    ),
    "timestamp": (
        rf"(?<![\w.-])\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_TIME}|[T ]\d{{2}}:\d{{2}}{_ZONE})?(?![\w-])",
        rf"(?<![\w:.]){_TIME}(?![\w:])",
    ),
    "phone": (
        r"(?<![\w+])\+\d{1,3}[ ./-]?(?:\(\d{1,5}\) ?)?\d[\d ./-]{4,18}\d(?!\w)",
        r"(?<!\w)\(0\d{1,5}\) ?\d{2,}(?:[ /-]\d{2,}){0,4}(?!\w)",
        r"(?<![\w.,-])0\d{2,5} ?[/-] ?(?:\d{3,}|\d{2}(?=[ -]\d))(?:[ -]\d{2,}){0,4}(?!\w)",
        r"(?<![\w.,-])1-\d{3}-[A-Z]{3,10}(?![\w-])",
        r"(?<=ISSN )\d{4}-\d{3}[\dX](?![\w-])",
        r"(?<![\w.,-])(?:\(\d{3}\) ?|\d{3}-|0\d-)\d{3,4}-\d{4}(?![\w-])",
        r"(?<![\w.,-])\d+(?:-\d+){3,}(?:-[\dX])?(?![\w-])",  # the number of a book and its like
    ),
    "reference": (
        r"(?<![\w.])\d+(?:\.\d+)*[a-z]?(?:\([a-zA-Z0-9]{1,4}\))+(?!\w)",
        rf"{_NUMBERED}\d+(?:\.\d+)+(?![\w%]){_NOT_MEASURED}",
        r"(?<![\w.,])\d+ ?[¼-¾⅐-⅞](?!\w)",  # 1 ½
        r"(?<!\S)[_/\d.:-]*__[_/\d.:-]*(?!\S)",  # blanks to fill in: ___/___/20__
    ),
    "citation": (
        r"\[\d{1,3}(?:[,–-] ?\d{1,3})*\](?!\()",
        r"\[[ xX]\](?=\s)",  # a box to tick
    ),
    "letters": (
        # no word of any language, and too much for a model
        r"(?<!\w)[A-Za-z]{50,}(?!\w)",
        r"(?<![\w-])[A-Za-z0-9_-]{0,40}(?P<same>[A-Za-z])(?P=same){3}[A-Za-z0-9_-]*+(?!\w)",
        r"(?<![\w-])[A-Z0-9-]{0,40}(?P<alike>[A-Z])(?P=alike){2}[A-Z0-9-]*+(?!\w)",
    ),
    "version": (
        r"(?<![\w.-])[vV]\d+(?:\.\d+)*(?:-?(?:alpha|beta|rc|dev|[ab])\.?\d*)?(?!\w)"
        r"(?:[-+]\w[\w.]*\w)?",
        r"(?<![\w.-])[A-Za-z]+\d+(?:\.\d+)+(?!\w)",  # python3.11
        # neither thousands nor a date
        r"(?<![\w.,:/-])(?!\d{1,3}(?:\.\d{3})+(?![\d.]))"
        r"(?!\d{1,2}\.\d{1,2}\.(?:\d{2}){1,2}(?![\d.]))"
        r"\d+\.\d+\.\d+(?:\.\d+)*(?:(?:-?(?:alpha|beta|rc|dev)|[ab])\.?\d*)?(?![\w%])"
        r"(?:-\d[\w.]*(?:-[a-z]+\d*)*)?(?:\+\w[\w.]*\w)?",
        # after a word that says so, or with more digits than people leave ungrouped
        rf"(?<![\w.,:/-])(?=\d+\.\d)(?:{_VERSIONED}|(?<=\b[vV][ .])|(?<=\b[vV]\. ))\d+(?:\.\d+)+"
        rf"(?![\w%]|\.\d){_NOT_MEASURED}",
        r"(?<![\w.,:/-])\d+\.\d+(?= (?:to|or|and|bis|oder|und|→|->|–) v?\d+\.\d+\.\d)",
        rf"(?<![\w.,:/$€£¥₩-])\d{{5,}}\.\d{{4,}}(?![\w%]|[.,]\d){_NOT_MEASURED}",
    ),
    "product": (
        r"(?<![\w.-])0x[0-9A-Fa-f]+(?!\w)",
        r"(?<!\w)[A-Z](?:\#|\+\+)(?![\w\#+])",  # C#, C++
        r"(?<![\w°-])(?=[A-Z0-9]*[A-Z])(?=[A-Za-z/-]*\d)[A-Z0-9][A-Za-z0-9]*"
        r"(?:[-/](?:[A-Za-z]*\d[A-Za-z0-9]*|[A-Z]{1,3}(?![A-Za-z])))*(?<![a-z]{3})(?!\w)",
    ),
}
"""In this order: the first that matches at a place is what stands there."""

_LOOKAROUND: Final = lazy_pattern(r"(\(\?<?!)(?:\\w|\[\\w((?:\\.|[^\]\\])*)\])")


def _let_asian_touch(pattern: str) -> str:
    """Return a pattern whose items may touch Asian letters, which are particles or other words.

    In Python's own sense these continue a word: v2 in v2를 would be none.
    """
    return _LOOKAROUND.sub(
        lambda look: f"{look[1]}(?:{_LETTER}|[{look[2]}])" if look[2] else f"{look[1]}{_LETTER}",
        pattern,
    )


_TRIGGER: Final = lazy_pattern(
    r"[@/\\{}%<&`#$\[_=]|\d[-:.]\d|[A-Za-z]-?\d|\d[A-Fa-fA-Z]|\+\d|\(\d|--\w|:[a-z]|[A-Za-z0-9]\.[a-z]"
    r"|\d \d|\d [/-] \d|[A-Z]\+\+|([A-Za-z])\1{2}|[A-Za-z]{50}|\d ?[¼-¾⅐-⅞]|\d[a-z]?\("
)
"""No item begins before the word with the first of these."""
_LEAST_IBAN_DIGITS: Final = 10
_CODE: Final = lazy_pattern(r"(?=.*[A-Z])(?=.*\d)")
_KEPT_SYMBOLS: Final = lazy_pattern(
    r"[\u00a9\u00ae\u2122\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u2022\u2023"
    r"\u00b6\u2020\u2021{}\\~^|]|(?<![\w\#])\#(?![\w\#])"
)
"""Symbols that no language writes as a word."""


AMOUNT_SIGNS: Final = frozenset("$€£¥₩%°")
"""Signs that many models know, as words too; `unit_check` looks for them beside numbers."""
_SIGN: Final = lazy_pattern(r"[$€£¥₩°]")


@cache
def _items_pattern() -> re.Pattern[str]:
    """Return all patterns as one, compiled when the first text needs it: that takes a while."""
    alternatives = (f"(?P<{kind}>{'|'.join(several)})" for kind, several in _PATTERNS.items())
    return re.compile(_let_asian_touch("|".join(alternatives)))


def find_items(text: str) -> list[Item]:
    """Return what must come back as it is, in order, without the text's single symbols."""
    trigger = _TRIGGER.search(text)
    if trigger is None:
        return []
    found = []
    for match in _items_pattern().finditer(text, text.rfind(" ", 0, trigger.start() + 1) + 1):
        kind, whole, end = match.lastgroup or "", match.group(), match.end()
        if (
            kind == "product"
            and whole[-1].isalnum()
            and not _CODE.search(whole)
            and whole[:2] != "0x"
        ):
            continue
        if kind == "iban" and sum(map(str.isdigit, whole)) < _LEAST_IBAN_DIGITS:
            continue
        if kind == "url" and text[end : end + 1] == ")" and whole.count("(") > whole.count(")"):
            whole, end = f"{whole})", end + 1
        found.append(Item(match.start(), end, whole, kind))
    return found


def find_symbols(text: str) -> list[Item]:
    """Return the single symbols that must come back, and the first of each sign of amounts."""
    signs = {match.group(): match for match in reversed(list(_SIGN.finditer(text)))}
    return [
        *(Item(*m.span(), m.group(), "symbol") for m in _KEPT_SYMBOLS.finditer(text)),
        *(Item(*m.span(), m.group(), "sign") for m in signs.values()),
    ]
