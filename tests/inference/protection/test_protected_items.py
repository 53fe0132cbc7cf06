"""What must come back as it is is found, and ordinary words are not."""

from __future__ import annotations

import time

import pytest

from dragoman.inference.protection.protected_items import Carriage, Item, find_items, find_symbols


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("See https://a.b/c?d=1.", "url", ["https://a.b/c?d=1"]),
        ("(www.a.de/x) now, example.com!", "url", ["www.a.de/x", "example.com"]),
        ("请访问https://a.b/c获取", "url", ["https://a.b/c"]),
        ("https://a.b/c에서", "url", ["https://a.b/c"]),
        (
            "https://de.wikipedia.org/wiki/Köln_(Stadt)",
            "url",
            ["https://de.wikipedia.org/wiki/Köln_(Stadt)"],
        ),
        ("Mail me.you+x@a-b.co.uk, please", "email", ["me.you+x@a-b.co.uk"]),
        (
            "in /usr/local/bin, C:\\Users\\x, ./run.sh",
            "path",
            ["/usr/local/bin", "C:\\Users\\x", "./run.sh"],
        ),
        (
            "src/main.c ~/x/y.conf ../a/b README.md",
            "path",
            ["src/main.c", "~/x/y.conf", "../a/b", "README.md"],
        ),
        ("with --protect on", "path", ["--protect"]),
        ("{0} of ${name}, {{ user }} or %s", "placeholder", ["{0}", "${name}", "{{ user }}", "%s"]),
        ("%1$s %(x)d %.2f %d%%", "placeholder", ["%1$s", "%(x)d", "%.2f", "%d%%"]),
        (
            ":name [[x]] $VAR %USER% {0:.2f} :smile:",
            "placeholder",
            [":name", "[[x]]", "$VAR", "%USER%", "{0:.2f}", ":smile:"],
        ),
        (
            "{n, plural, one {# file} other {# files}}",
            "placeholder",
            ["{n, plural, one {# file} other {# files}}"],
        ),
        (
            "<b>The</b> dog<br/> <a href='x y'>z</a>",
            "tag",
            ["<b>", "</b>", "<br/>", "<a href='x y'>", "</a>"],
        ),
        ("<0>here</0> 3 < 4 > 2", "tag", ["<0>", "</0>"]),
        ("Tom &amp; Jerry&nbsp;&#8212; AT&T;", "entity", ["&amp;", "&nbsp;", "&#8212;"]),
        ("See Section 12.9 and Fig. 3.1; 4.5 kg", "reference", ["12.9", "3.1"]),
        ("Use `git commit -m` or ``a`b``", "code", ["`git commit -m`", "``a`b``"]),
        ("@maria and a@b, #Berlin, #1", "name", ["@maria"]),
        ("#Berlin, #1, a#b", "hashtag", ["#Berlin"]),
        ("to DE89 3704 0044 0532 0130 00 now", "iban", ["DE89 3704 0044 0532 0130 00"]),
        (
            "+49 30 1234567, (030) 123456, 555-123-4567",
            "phone",
            ["+49 30 1234567", "(030) 123456", "555-123-4567"],
        ),
        (
            "v1.2.3, 3.11.4, 1.2.3-rc1; 1.000.000, 16.11.2024",
            "version",
            ["v1.2.3", "3.11.4", "1.2.3-rc1"],
        ),
        ("123e4567-e89b-12d3-a456-426614174000", "hash", ["123e4567-e89b-12d3-a456-426614174000"]),
        ("commit a94a8fe5ccb1 of decade", "hash", ["a94a8fe5ccb1"]),
        (
            "192.168.0.1:80 and fe80::1ff:fe23:4567:890a",
            "address",
            ["192.168.0.1:80", "fe80::1ff:fe23:4567:890a"],
        ),
        (
            "2024-11-16, 14:30:05, 2024-11-16T14:30:05Z, 14:30",
            "timestamp",
            ["2024-11-16", "14:30:05", "2024-11-16T14:30:05Z"],
        ),
        (
            "RTX-4090, A4-B12x, 0x1F, XK-123/B, RTX-4090-Karte",
            "product",
            ["RTX-4090", "A4-B12x", "0x1F", "XK-123/B", "RTX-4090"],
        ),
        ("$E = mc^2$ and \\frac{a}{b}, $5 = $6", "code", ["$E = mc^2$", "\\frac{a}{b}"]),
        ("git@a.org:me/it.git, me@a.org: no/yes", "url", ["git@a.org:me/it.git"]),
        ("%{name}, %a.b%", "placeholder", ["%{name}", "%a.b%"]),
        ("One.\\nTwo\\n", "tag", ["\\n", "\\n"]),
        ("#1234, #A-100-B, #5", "hashtag", ["#1234", "#A-100-B"]),
        ("sk-live_51H8xYzAbCdEfGhIj0", "hash", ["sk-live_51H8xYzAbCdEfGhIj0"]),
        (
            "978-3-16-148410-0, 02-312-3456, 3-2-1",
            "phone",
            ["978-3-16-148410-0", "02-312-3456"],
        ),
        ("2.14.0-rc.1+build.5, python3.11", "version", ["2.14.0-rc.1+build.5", "python3.11"]),
        (
            "build 26100.2033, Kernel 6.8, release 24.10, VERSION 10.5, v 1.5, v. 3.1, USB 3.2",
            "version",
            ["26100.2033", "6.8", "24.10", "10.5", "1.5", "3.1", "3.2"],
        ),
        (
            "6.8.0-45-generic, 4.18.0-553.el8, 2.1.0-Karte",
            "version",
            ["6.8.0-45-generic", "4.18.0-553.el8", "2.1.0"],
        ),
        ("number 26100.2033 is it, 버전 2.4를", "version", ["26100.2033", "2.4"]),
        ("<me@a.de>, me@a.de", "email", ["<me@a.de>", "me@a.de"]),
        ("<!here>, <@U12>, 3 < 4!", "tag", ["<!here>", "<@U12>"]),
        (
            '![a](b.png) and [c d](https://e.f "G")',
            "tag",
            ["![", "](b.png)", "[", '](https://e.f "G")'],
        ),
        ("10.1000/182, arXiv:1706.03762v5, 10.5/2", "url", ["10.1000/182", "arXiv:1706.03762v5"]),
        ("A(1).docx", "path", ["A(1).docx"]),
        ("#2024-0815", "hashtag", ["#2024-0815"]),
        (
            "030 / 12 34 56-78, 1-800-FLOWERS, ISSN 1234-567X",
            "phone",
            ["030 / 12 34 56-78", "1-800-FLOWERS", "1234-567X"],
        ),
        ("at ___/___/20__ or", "reference", ["___/___/20__"]),
        ("So.[1] And [2, 3] [ ] yes", "citation", ["[1]", "[2, 3]", "[ ]"]),
        ('DEBUG=true, a == b, p="c d".', "setting", ["DEBUG=true", 'p="c d"']),
        ("$ pip install it", "code", ["$ pip install it"]),
        ("from 2.4 to 2.5.1, 2.4 to 2.5 km", "version", ["2.4", "2.5.1"]),
        ("1 ½ cups, 2¾", "reference", ["1 ½", "2¾"]),
        ("RTX-4090를 HJR-3은 使用A4-B12x", "product", ["RTX-4090", "HJR-3", "A4-B12x"]),
        ("v1.2.3을 3.11.4로", "version", ["v1.2.3", "3.11.4"]),
        ("@maria에게 @마리아", "name", ["@maria", "@마리아"]),
        ("README.md를 /usr/bin에서 --all을", "path", ["README.md", "/usr/bin", "--all"]),
        ("C++ or C#, not A or B+", "product", ["C++", "C#"]),
    ],
)
def test_items_are_found(text: str, kind: str, found: list[str]) -> None:
    items = find_items(text)
    assert [item.text for item in items if item.kind == kind] == found
    assert all(text[item.start : item.end] == item.text for item in items)


@pytest.mark.parametrize(
    "text",
    [
        "3 < 4 and 5 > 4, 50% sure, {not this}, 50 % der Wähler, $99.99",
        "und/oder, Kosten/Nutzen, km/h, AC/DC, z.B. d.h. u.a.",
        "1.499,00 oder 1,499.00, 1990-1999, 5/2003, 14:30 Uhr, 3:2",
        "die 1980er, 25jährige, 20-jährige, 3. Mai, Nr. 5, USB-C",
        "He said: no. Really? Yes! (Maybe.) Dr.Müller",
        "Richtlinie 95/2/EG",
        "at 180°C/350°F, a = b, [sic], [one] (two), $ 5 million, 12/34 - 56",
        "They build 2.5 million houses, release 3.5 kg of it; 12345.6789 km, 13250.75 dollars",
        "the well-known-2020-and-later-things cost $5, that $6, note+",
    ],
)
def test_ordinary_text_has_none(text: str) -> None:
    assert find_items(text) == []


def test_symbols_are_found() -> None:
    assert [one.text for one in find_symbols("# A → B © {x #1 ~")] == ["#", "→", "©", "{", "~"]


def test_short_placeholders_go_through_as_they_are_and_named_ones_do_not() -> None:
    assert Item(0, 3, "{0}", "placeholder").carriage is Carriage.AS_IS
    assert Item(0, 2, "%s", "placeholder").carriage is Carriage.AS_IS
    assert Item(0, 6, "{name}", "placeholder").carriage is Carriage.STAND_IN
    assert Item(0, 3, "<b>", "tag").carriage is Carriage.CUT


PARTS = (
    "a - a- a.b <a_ { {x,_plural,_ 1_ 1.1 @a /a A1- % ` http:// (0 +1_ a_b [[ # 1: ab1 v1. ./ a@b. "
    "\\a &a"
)


@pytest.mark.parametrize("part", [part.replace("_", " ") for part in PARTS.split()])
def test_no_text_takes_long(part: str) -> None:
    text = part * (20_000 // len(part))
    start = time.process_time()
    find_items(text)
    assert time.process_time() - start < 1
