"""Pages keep every byte that is not text, and tags end on the words they belong to."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.inference.documents.document import DocumentTooLargeError, Mark, Unit
from dragoman.inference.documents.html import HtmlDocument, HtmlText, HtmlTexts

from .fake_translators import reverse, reverse_texts, rotate, shout


def open_page(content: bytes, **options: str) -> HtmlDocument:
    return HtmlDocument(content, max_bytes=1_000_000, **options)  # type: ignore[arg-type]


def shouted(text: str) -> str:
    page = HtmlText(text)
    return page.fill(shout(page.units))


def reversed_(text: str) -> str:
    page = HtmlText(text)
    return page.fill(reverse(page.units))


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("hello", ["hello"]),
        ("<p>one</p><p>two</p>", ["one", "two"]),
        ("<p>one <b>two</b> three</p>", ["one two three"]),
        ("<b>one</b>", ["one"]),
        ("<p>a &lt;b&gt; &amp; c</p>", ["a <b> & c"]),
        ("one<br>two", ["one\ntwo"]),
        ("one<br/> <br />two", ["one", "two"]),
        ("<script>if (a < b) x()</script>text<style>p {}</style>", ["text"]),
        ("<!-- <p>no</p> --><p>yes</p>", ["yes"]),
        ("<p>\n  one\n  two </p>", ["one two"]),
        ("<p>…</p><hr/>", []),
        ("<i><b>one</b></i>", ["one"]),
        ("<pre>no</pre><textarea>no</textarea><svg><text>no</text></svg><p>yes", ["yes"]),
        ("<p>Run <code>ls -l</code> or <kbd>Ctrl</kbd>.", ["Run {1} or {2}."]),
        ("<p>Say {1} <code>x</code></p>", ["Say {1} {2}"]),
        ("<p><code>only code</code></p>", []),
        ("<p translate='no'>no</p><p class='a notranslate'>no</p><p>yes</p>", ["yes"]),
        ("<p>The <span translate=no>Blue <b>Sun</b></span> inn</p>", ["The {1} inn"]),
        ("<div translate=no>no <div>no</div> no</div>yes", ["yes"]),
        ("<html translate='no'><p>no</p></html>", []),
        ("<img alt='A dog'>", ["A dog"]),
        ("<img alt='img_01.jpg'><img alt=''><img alt='12'>", []),
        ("<a href='x' title=\"Go there\">here</a>", ["Go there", "here"]),
        ("<input placeholder='Your name' value='no'>", ["Your name"]),
        ("<input type=submit value='Send it'><input type=text value='no'>", ["Send it"]),
        ("<button aria-label=Close>×</button>", ["Close"]),
        ("<select><option value=a>One<option label='Two'>2</select>", ["One", "Two"]),
        ("<title>My page</title><meta name=description content='About'>", ["My page", "About"]),
        ("<meta property='og:title' content='One'><meta name=viewport content='no'>", ["One"]),
        ("<link rel=stylesheet title='no'><style title='no'></style>", []),
        ("<nav><a href=1>Home</a> | <a href=2>About us</a></nav>", ["Home", "About us"]),
        ("<span><a>Home</a> <a>News</a></span>", ["Home", "News"]),
        ("<p>See <a>one</a> or <a>two</a></p>", ["See one or two"]),
        ("<p>word<sup><a href='#n1'>[1]</a></sup> more<sup>2</sup>.</p>", ["word more."]),
        ("<p>20 km<sup>2</sup>, 10<sup>6</sup>, 1<sup>st</sup></p>", ["20 km2, 106, 1st"]),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", ["漢"]),
        ("<p>10&nbsp;km &copy; &#8364; &unknown; AT&T</p>", ["10\xa0km © € &unknown; AT&T"]),
        ("<!--[if IE]><p>no</p><![endif]--><p>yes</p>", ["yes"]),
        ("<my-card>One</my-card><my-card>Two</my-card>", ["One", "Two"]),
        ("<x id='1'/>Click <g id='2'>here</g>", ["Click here"]),
        ("a <b>c <i>d</b> e</i> f", ["a c d e f"]),
        ("<a title='1 > 0 says'>x y</a>", ["1 > 0 says", "x y"]),
        ("<p>5 < 6 and a<b</p>", ["5 < 6 and a<b"]),
        ("<table><tr><td>One<td>Two<tr><th>Three</table>", ["One", "Two", "Three"]),
        ("<details><summary>More</summary>Text</details>", ["More", "Text"]),
        ("<label>Name <input></label>", ["Name"]),
    ],
)
def test_the_texts_of_a_page_are_units(text: str, units: list[str]) -> None:
    page = HtmlText(text)
    assert [unit.text for unit in page.units] == units
    assert page.fill(page.units) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>one <b>two</b> three.</p>", "<p>THREE <b>TWO</b> ONE.</p>"),
        ("<p>one <b>two</b>.</p>", "<p><b>TWO</b> ONE.</p>"),
        ("<p>a <a href='x' title='go on'>b c</a> d</p>",
         "<p>D <a href='x' title='ON GO'>C B</a> A</p>"),
        ("<p>a <a><b>b</b> c</a> d</p>", "<p>D <a>C <b>B</b></a> A</p>"),
        ("<p>a <img src=x> b c</p>", "<p>C <img src=x> B A</p>"),
        ("<a><i class=icon></i> one two</a>", "<a><i class=icon></i> TWO ONE</a>"),
        ("<a>one two <img></a>.", "<a>TWO ONE <img></a>."),
        ("<p>\n one <b>two</b>\n</p>", "<p>\n <b>TWO</b> ONE\n</p>"),
        ("<p>a <code>b &lt;</code> c</p>", "<p>C <code>b &lt;</code> A</p>"),
        ("a &amp; b &lt;c&gt;", "&lt;C&gt; B &amp; A"),
        ("<b>one <i>two</b> three</i>", "<i>THREE</i> <b><i>TWO</i> ONE</b>"),
        ("<p>one <b>two three<p>four", "<p><b>THREE TWO</b> ONE<p>FOUR"),
        ("<p><b>one<p>two</b> three", "<p><b>ONE<p>THREE TWO</b>"),
        ("<i>one</i> <b>two</b>", "<b>TWO</b> <i>ONE</i>"),
        ("<img alt=one>", '<img alt="ONE">'),
        ("<img alt='say \"a\" &amp; b'>", "<img alt='B &amp; \"A\" SAY'>"),
        ("<p>one<!-- x --> two</p>", "<p>TWO ONE<!-- x --></p>"),
        ("<img alt=\"the 'best'\">", "<img alt=\"'BEST' THE\">"),
        ("<textarea placeholder='say it'>as it is</textarea>",
         "<textarea placeholder='IT SAY'>as it is</textarea>"),
        ("<p>a <code title='not this'>b</code> c</p>",
         "<p>C <code title='THIS NOT'>b</code> A</p>"),
        ("<svg translate=no aria-label='a b'></svg>", "<svg translate=no aria-label='a b'></svg>"),
    ],
)  # fmt: skip
def test_tags_end_on_the_words_they_belong_to(text: str, expected: str) -> None:
    assert reversed_(text) == expected


def test_line_breaks_stay_where_the_translator_has_lines() -> None:
    assert shouted("One.<br>\n Two <b>three</b>") == "ONE.<br>\n TWO <b>THREE</b>"
    assert reversed_("one<br>two three") == "THREE<br>TWO ONE"


def test_a_translation_cannot_bring_tags_of_its_own() -> None:
    page = HtmlText("<p>one <b>two</b></p>")
    (mark,) = page.units[0].marks
    found = page.fill([Unit("<i>a <script>", (Mark(3, 4, mark.key),))])
    assert found == "<p>&lt;i&gt;<b>a</b> &lt;script&gt;</p>"
    attribute = HtmlText("<img alt='one'>")
    assert attribute.fill([Unit("a'b \"<")]) == "<img alt='a&#39;b \"&lt;'>"


PAGE = """<?xml version='1.0'?>\r\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0//EN"
  "x.dtd">
<HTML Lang=de><HEAD><title>Ein &quot;Titel&quot;</title>
<meta name='description' content='Was&#32;es gibt'><style>b > i { }</style></HEAD>
<Body   onload="f('<b>')"><p>Ein <B>fetter</B> Text,<br>zweite Zeile &ndash; mit&nbsp;Rand.
<P>Nicht geschlossen, <i>schief <b>verschachtelt</i> und</b> offen
<UL><LI>eins<li>zwei &amp; drei</UL>
<table border=1><tr><td>Zelle<td><img src="a.png" alt='Ein Bild' >&euro; 5</table>
<![CDATA[ x < y ]]><?php echo "nein"; ?>
<script>document.write("<p>nein</p>")</script ><noscript>Kein Skript</noscript>
</BODY></HTML>\n"""


def test_a_page_filled_with_its_own_units_is_itself() -> None:
    for content in (PAGE.encode(), PAGE.encode("utf-16"), b"\xef\xbb\xbf" + PAGE.encode()):
        page = open_page(content)
        assert page.fill(page.units) == content
    page = open_page(PAGE.encode())
    assert "Nicht geschlossen, schief verschachtelt und offen" in [u.text for u in page.units]
    changed = page.fill(shout(page.units)).decode()
    for raw in ("f('<b>')", "<?php echo", '<script>document.write("<p>nein</p>")</script >'):
        assert raw in changed


def test_what_is_translated_back_is_the_page_again() -> None:
    text = re.sub(r"&\w+;|\s+", " ", PAGE)
    page = HtmlText(text)
    away = HtmlText(page.fill(rotate(page.units)))
    assert away.text != text
    assert [unit.marks for unit in away.units] == [unit.marks for unit in page.units]
    back = HtmlText(away.fill(rotate(away.units)))
    assert [unit.text for unit in back.units] == [unit.text for unit in page.units]


@given(st.text("<>/ab c&;!-\n\"'=", max_size=80))
def test_any_text_is_a_page(text: str) -> None:
    page = HtmlText(text)
    assert page.fill(page.units) == text
    assert isinstance(page.fill(shout(page.units)), str)


_TAGS = (
    "<b> </b> <i> </i> <p> <br> <code> </code> <a_title='x_y'> </a> <img> <td> </p> one _two_ "
    "three. &amp; _ <!--_--> <sup>1</sup>"
)


@given(
    st.lists(st.sampled_from(_TAGS.replace("_", "\xa0").split(" ")), max_size=20).map(
        lambda tags: "".join(tags).replace("\xa0", " ")
    )
)
@example(" two <sup>1</sup><b>one two ")
def test_no_word_and_no_tag_is_lost(text: str) -> None:
    page = HtmlText(text)
    assert page.fill(page.units) == text
    done = page.fill(reverse(page.units))
    for word in ("one", "two", "three"):
        assert len(re.findall(word, done, re.IGNORECASE)) == text.count(word)
    for tag in ("<p>", "<img", "<td>", "<br>", "<code>", "<!-- -->", "</p>"):
        assert done.count(tag) == text.count(tag)
    for tag in ("</code>", "</b>", "</i>", "</a>"):  # what was not closed may be
        assert done.count(tag) >= text.count(tag)


@pytest.mark.parametrize(
    "text",
    ["<" * 50_000, "<a " * 20_000, "<!--" * 20_000, "<b>" * 20_000, "<b>x" * 5_000,
     "<sup>" * 5_000 + "</sup>", "<code>" * 20_000, "<b>x</b> " * 5_000, '<a "' * 20_000],
)  # fmt: skip
def test_it_takes_time_in_proportion(text: str) -> None:
    began = time.process_time()
    page = HtmlText(text)
    page.fill(shout(page.units))
    assert time.process_time() - began < 3


# --- files ---


@pytest.mark.parametrize(
    ("charset", "encoding", "word"),
    [
        ("iso-8859-1", "cp1252", "Größe"),
        ("windows-1251", "cp1251", "Привет"),
        ("euc-kr", "cp949", "안녕"),
        ("Shift_JIS", "cp932", "今日"),
        ("gb2312", "gb18030", "你好"),
        ("utf-8", "utf-8", "Größe"),
    ],
)
def test_a_page_is_in_the_charset_it_names(charset: str, encoding: str, word: str) -> None:
    content = f'<meta charset="{charset}"><p>{word} x</p>'.encode(encoding)
    page = open_page(content)
    assert [unit.text for unit in page.units] == [f"{word} x"]
    assert page.fill(page.units) == content
    text = page.fill([Unit("ein Ω und 한")])
    assert HtmlDocument(text, max_bytes=10_000).units[0].text == "ein Ω und 한"


def test_a_page_says_its_new_language() -> None:
    cases = {
        b"<html><p>a": b'<html lang="ko"><p>a',
        b"<HTML class=x lang='de'><p>a": b'<HTML class=x lang="ko"><p>a',
        b"<html xml:lang='de' lang='de'><p>a": b'<html xml:lang="ko" lang="ko"><p>a',
        b"<p lang=de>a": b"<p lang=de>a",
    }
    for content, expected in cases.items():
        page = open_page(content, target_language="ko")
        assert page.fill(page.units) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"%PDF-1.7 x", "the file is a PDF, not a web page"),
        (b"PK\x03\x04abc", "the file is a zip archive, not a web page"),
        (b"\x89PNG\r\n", "the file is an image, not a web page"),
        ("<p>Größe".encode("latin-1"), "the file is not UTF-8 (byte 5)"),
        (b"<meta charset=klingon><p>a", "names an unknown charset: klingon"),
        (b"<meta charset=hex><p>a", "names an unknown charset: hex"),
        (b"<meta charset=euc-kr>\xff\xff", "the file is not cp949 (byte 21)"),
    ],
)
def test_what_is_no_page_gets_one_line(content: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        open_page(content)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_page_may_be_too_large() -> None:
    with pytest.raises(DocumentTooLargeError):
        HtmlDocument(b"<p>one two", max_bytes=5)


def test_several_texts_are_put_together_with_their_alternatives() -> None:
    texts = HtmlTexts(["<p>one</p><p>two <b>three</b> four</p>", "five"])
    assert (texts.plain, texts.tagged) == (["one", "five"], ["two three four"])
    found = texts.assemble(reverse_texts(texts.plain, False), reverse_texts(texts.tagged, True))
    assert [one.text for one in found] == ["<p>ONE</p><p>FOUR <b>THREE</b> TWO</p>", "FIVE"]
