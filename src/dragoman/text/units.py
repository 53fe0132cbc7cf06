"""Units of measure have symbols that languages share, and words: 5 kg, 5 Kilogramm, 5킬로그램."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from dragoman.text.languages import primary_code
from dragoman.text.lazy_patterns import lazy_pattern

_PREFIXES: Final = {
    "n": "nano|나노|ナノ|纳",
    "µ": "mi[ck]ro|마이크로|マイクロ|微",
    "m": "milli|밀리|ミリ|毫",
    "c": "[cz]enti|센티|センチ|厘",
    "d": "d[eé][zc]i|데시|デシ|分",
    "h": "he[ck]to|헥토|ヘクト|百",
    "k": "kilo|킬로|キロ|千",
    "M": "m[eé]ga|메가|メガ|兆",
    "G": "giga|기가|ギガ|吉",
    "T": "t[eé]ra|테라|テラ|太",
}
_BASES: Final = {
    # the symbol: the prefixes that are common before it, and its words
    "g": ("µ m k", "gram|그램|グラム|克"),
    "m": ("n µ m c k", "m[eè]t(?:er|re)|미터|메타|メートル|米"),
    "l": ("m c d h", "lit(?:er|re)|리터|リットル|升"),
    "B": ("k M G T", "byte|octet|바이트|バイト|字节|字節"),
    "bit/s": ("k M G", "bit|비트|ビット|比特"),
    "Hz": ("k M G", "hertz|헤르츠|ヘルツ|赫"),
    "W": ("m k M G", "watt|와트|ワット|瓦"),
    "Wh": ("k M G", "watt.?(?:hour|stunde|heure)|와트시|ワット時|瓦时|瓦小时"),
    "V": ("m k", "volt|볼트|ボルト|伏"),
    "Ah": ("m", "amp[eè]re.?(?:hour|stunde|heure)|암페어시|アンペア時|安时"),
    "J": ("k M", "joule|줄|ジュール|焦"),
    "cal": ("k", "[ck]alor|칼로리|カロリー|卡"),
    "Pa": ("h k M", "pascal|파스칼|パスカル|帕"),
    "s": ("µ m", "se[ck]und|second|초|秒"),
}
_OWN_WORDS: Final = {
    "kg": r"kilos?\b|킬로|キロ|公斤",
    "km": "킬로|キロ|公里",
    "kcal": "[ck]alor|칼로리|カロリー|卡",
    "kWh": "kilowattstunde|度电",
    "°C": "grad|degree|degré|celsius|도|섭씨|度|摄氏|攝氏",
    "°F": "fahrenheit|화씨|華氏|华氏",
    "km/h": "stundenkilometer|(?:km|kilom[eè]t[a-z]+) (?:pro|per|an|par|in der|à l['’]) ?"
    "(?:stunde|hour|heure)|시속|時速|时速|每小时|每小時",
    "mph": "miles? (?:per|an) hour|meilen? pro stunde|mi/h|miles? par heure|마일|マイル|英里",
    "m/s": "(?:m|met(?:er|re)s?) (?:per|pro) (?:second|sekunde)|초속|秒速|每秒",
    "ha": "hektar|hectare|헥타르|ヘクタール|公顷",
    "ft": "foot|feet|fu(?:ß|ss)|pied|피트|フィート|英尺",
    "lb": "pound|pfund|livre|파운드|ポンド|磅",
    "oz": "ounce|unze|once|온스|オンス|盎司",
    "dB": "de[zc]ibel|데시벨|デシベル|分贝",
    "rpm": r"revolutions?|umdrehung|u/min|tours?|tr/min|회전|回転|转",
    "fps": "frames?|bilder|images|프레임|フレーム|帧",
    "dpi": "dots|punkte|points|인치|インチ|点",
    "px": "pixel|픽셀|ピクセル|像素",
    "ppm": "parts|teile|parties|피피엠|百万分",
}
_POWERS: Final = {
    "²": "quadrat|square|carré|제곱|평방|平方|平米|k?qm|㎡|㎢|m2",
    "³": "kubik|cubic|cube|세제곱|입방|立方|c[bc]m|㎥|m3",
}
_ALIASES: Final = {
    "L": "l", "mL": "ml", "KB": "kB", "Ko": "kB", "ko": "kB", "Mo": "MB", "Go": "GB", "To": "TB",
    "kbps": "kbit/s", "Mbps": "Mbit/s", "Gbps": "Gbit/s", "Mb/s": "Mbit/s", "Gb/s": "Gbit/s",
    "μg": "µg", "μm": "µm", "℃": "°C", "℉": "°F", "° C": "°C", "° F": "°F", "kmh": "km/h",
    "kph": "km/h", "lbs": "lb", "Kg": "kg", "Km": "km", "KM": "km", "m2": "m²", "km2": "km²",
    "cm2": "cm²", "mm2": "mm²", "m3": "m³", "cm3": "cm³", "MPH": "mph", "FPS": "fps", "DPI": "dpi",
    "RPM": "rpm", "U/min": "rpm",
}  # fmt: skip
"""Other spellings of a symbol, some of one language: French has Mo for MB."""
_SYMBOLS: Final = {
    *_OWN_WORDS,
    *(base for base in _BASES if base not in ("B", "s", "J")),  # too often something else
    *(prefix + base for base, (prefixes, _) in _BASES.items() for prefix in prefixes.split()),
    *("KiB", "MiB", "GiB", "TiB", "bar", "mbar", "psi", "mA"),
    *("m²", "km²", "cm²", "mm²", "m³", "cm³", "mm³"),
}
_LETTER: Final = "A-Za-z\u00c0-\u024f0-9"
UNIT_AFTER: Final = "[ \u00a0\u202f]?(?:{})(?![{}]|[/²³]\\w?)".format(
    "|".join(map(re.escape, sorted({*_SYMBOLS, *_ALIASES}, key=len, reverse=True))), _LETTER
)
"""A unit after a number, as a regular expression."""
_UNIT_AFTER: Final = lazy_pattern(UNIT_AFTER)
_SPEED_BEFORE: Final = lazy_pattern(r"(?:시속|時速|时速)\s?$")
"""시속 100km is 100 km/h."""
_WITH_WORDS: Final = frozenset({"de", "en", "fr", "ja", "ko", "zh"})


def find_unit(text: str, start: int, end: int) -> tuple[str, int]:
    """Return the unit of a number and where its symbol ends after it; without one, "" and `end`."""
    match = _UNIT_AFTER.match(text, end)
    if match is None:
        return "", end
    symbol = match.group().lstrip(" \u00a0\u202f")
    symbol = _ALIASES.get(symbol, symbol)
    if symbol == "km" and _SPEED_BEFORE.search(text[max(0, start - 4) : start]):
        symbol = "km/h"
    return symbol, match.end()


def says_unit(symbol: str, text: str, code: str | None) -> bool:
    """Return whether a text has a unit, as a symbol or a word, or may have in words unknown here.

    The symbol is as `find_unit` returns it.
    """
    if primary_code(code) not in _WITH_WORDS:
        return True
    return _said(symbol).search(text) is not None


@cache
def _said(symbol: str) -> re.Pattern[str]:
    spellings = [symbol, *(other for other, same in _ALIASES.items() if same == symbol)]
    alone = "|".join(map(re.escape, spellings))
    words = [
        table[key] for table, key in ((_OWN_WORDS, symbol), (_POWERS, symbol[-1])) if key in table
    ]
    for base, (prefixes, names) in _BASES.items():
        prefix = symbol.removesuffix(base)
        if symbol == base:
            words.append(names)
        elif prefix != symbol and prefix in prefixes.split():
            words.append(f"(?:{_PREFIXES[prefix]})(?:{names})")
    said = f"|(?i:{'|'.join(words)})" if words else ""
    return re.compile(f"(?<![A-Za-z\u00c0-\u024f])(?:(?:{alone})(?![{_LETTER}]){said})")
