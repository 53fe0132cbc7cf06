"""Marks end on the words that are aligned with theirs, each once, and none cross."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.inference.documents.document import Mark, Unit
from dragoman.inference.documents.mark_projection import nest_marks, project_marks

_TAG = re.compile(r"<(/?)(\w+)(/?)>")


def read(text: str) -> tuple[Unit, list[str]]:
    """Read <b>, </b> and <br/> as marks; the names are by key."""
    names: list[str] = []
    marks: list[list[int]] = []
    still_open: list[int] = []
    plain, done = "", 0
    for match in _TAG.finditer(text):
        plain += text[done : match.start()]
        done = match.end()
        if match[1]:
            marks[still_open.pop()][1] = len(plain)
            continue
        names.append(match[2])
        marks.append([len(plain), len(plain)])
        if not match[3]:
            still_open.append(len(marks) - 1)
    plain += text[done:]
    return Unit(plain, tuple(Mark(*span, key) for key, span in enumerate(marks))), names


def write(unit: Unit, names: list[str]) -> str:
    """Write marks as tags; one on a break or a placeholder is a tag around it."""
    out: list[str] = []

    def add(node, start: int) -> int:  # type: ignore[no-untyped-def]
        for child in node.children:
            out.append(unit.text[start : child.mark.start])
            name = names[child.mark.key]
            if child.mark.start == child.mark.end and not child.children:
                out.append(f"<{name}/>")
                start = child.mark.end
                continue
            out.append(f"<{name}>")
            start = add(child, child.mark.start)
            out.append(unit.text[start : child.mark.end] + f"</{name}>")
            start = child.mark.end
        return start

    end = add(nest_marks(unit), 0)
    return "".join(out) + unit.text[end:]


def pairs(alignment: str) -> list[tuple[int, int]]:
    return [(int(s), int(t)) for s, t in (pair.split("-") for pair in alignment.split())]


@pytest.mark.parametrize(
    ("source", "translation", "alignment", "expected"),
    [
        # The word order changes, and the mark goes with its word.
        (
            "Ich habe das <b>Haus</b> gesehen.",
            "I have seen the house.",
            "0-0 1-1 4-2 2-3 3-4",
            "I have seen the <b>house</b>.",
        ),
        ("Hello, <b>world</b>.", "Hallo, Welt.", "0-0 1-1", "Hallo, <b>Welt</b>."),
        ("Hello, <b>world.</b>", "Hallo, Welt.", "0-0 1-1", "Hallo, <b>Welt.</b>"),
        ("<b>Hello,</b> world.", "Hallo, Welt.", "0-0 1-1", "<b>Hallo,</b> Welt."),
        ("<b>Hello</b>, world.", "Hallo, Welt.", "0-0 1-1", "<b>Hallo</b>, Welt."),
        # Of words that are apart the mark takes those that are most.
        (
            "He <b>called</b> her up yesterday.",
            "Gestern rief er sie an.",
            "0-2 1-1 2-3 3-4 4-0",
            "Gestern <b>rief</b> er sie an.",
        ),
        (
            "see <a>the big house</a> now",
            "jetzt das große Haus sehen",
            "0-4 1-1 2-2 3-3 4-0",
            "jetzt <a>das große Haus</a> sehen",
        ),
        # Marks in marks.
        (
            "a <a>red <b>car</b></a> here",
            "hier ein Auto, rot",
            "0-1 1-3 2-2 3-0",
            "hier ein <a><b>Auto</b>, rot</a>",
        ),
        (
            "<a>one <b>two</b> three</a>",
            "eins zwei drei",
            "0-0 1-1 2-2",
            "<a>eins <b>zwei</b> drei</a>",
        ),
        ("<b><i>one two</i></b>", "eins zwei drei", "", "<b><i>eins zwei drei</i></b>"),
        # Siblings that trade places.
        (
            "<b>one</b> <i>two</i> three",
            "zwei eins drei",
            "0-1 1-0 2-2",
            "<i>zwei</i> <b>eins</b> drei",
        ),
        # Siblings stay apart.
        (
            "<a>New York</a> <b>Times</b> here",
            "newest times yorkshire here",
            "0-0 1-2 2-1 3-3",
            "newest <b>times</b> <a>yorkshire</a> here",
        ),
        # What is empty stays at its word, or at its sentence's end.
        ("One<n/> two.", "Zwei eins.", "0-1 1-0", "Zwei eins<n/>."),
        ("The first.<n/> A second.", "Das Erste. Ein Zweites.", "", "Das Erste.<n/> Ein Zweites."),
        ("“Go.<n/>” I go.", "„Geh.“ Ich gehe.", "", "„Geh.<n/>“ Ich gehe."),
        ("“Go.”<n/> I go.", "„Geh.“ Ich gehe.", "", "„Geh.“<n/> Ich gehe."),
        ("Dr. Wu is. <b>He</b> is as I am.", "吴医生。他和我。", "", "吴医生。<b>他</b>和我。"),
        ("So one,<n/> two.", "Zwei, so eins, ja.", "0-1 1-2 2-0 2-3", "Zwei, so eins,<n/> ja."),
        ("Wort<n/>teil da", "there wordpart", "0-1 1-0", "there wordpart<n/>"),
        ("Only this.<n/>", "Nur dies.", "0-0 1-1", "Nur dies.<n/>"),
        ("<n/>Only this.", "Nur dies.", "0-0 1-1", "<n/>Nur dies."),
        ("see <n/>here now", "jetzt hier sehen", "0-2 1-1 2-0", "jetzt <n/>hier sehen"),
        (
            "am Rand des <a>Schwarzwaldes</a><n/>.",
            "on the edge of the Black Forest.",
            "0-0 1-1 1-2 2-3 3-4 3-5 3-6",
            "on the edge of <a>the Black Forest</a><n/>.",
        ),
        # Brackets, quotes and signs.
        ("um <b>3,5 %</b> zu", "by 3.5%.", "0-0 1-1 2-1 3-1", "by <b>3.5%</b>."),
        (
            "the <b>house (big)</b>.",
            "das Haus (groß).",
            "0-0 1-1 2-2",
            "das <b>Haus (groß)</b>.",
        ),
        ("the <b>big house</b> is", "das Haus (groß) ist", "0-0 1-2 2-1 3-3",
         "das <b>Haus (groß)</b> ist"),
        ('He said "<b>no</b>".', "Er sagte „nein“.", "0-0 1-1 2-2", "Er sagte „<b>nein</b>“."),
        # Parts of words.
        ("20 m<u>2</u> large", "20 m2 groß", "0-0 1-1 2-2", "20 m<u>2</u> groß"),
        ("H<u>2</u>O is water", "Wasser ist H2O", "0-2 1-1 2-0", "Wasser ist H<u>2</u>O"),
        ("<d>O</d>nce upon", "Es war", "0-0 1-1", "<d>E</d>s war"),
        ("un<i>believ</i>able thing", "unglaubliche Sache", "0-0 1-1", "<i>unglaubliche</i> Sache"),
        # Names and numbers are where they are, whatever the alignment says.
        (
            "ask <b>Peter</b> about 3 things",
            "frag nach 3 Dingen den Peter",
            "0-0 1-1 2-1 3-2 4-3",
            "frag nach 3 Dingen den <b>Peter</b>",
        ),
        # Korean: the particle after a name is no part of it, the full stop never is.
        ("<b>Dragoman</b> is.", "Dragoman은 있다.", "0-0 1-1", "<b>Dragoman</b>은 있다."),
        ("Hello <b>world</b>.", "안녕 세계.", "0-0 1-1", "안녕 <b>세계</b>."),
        # Chinese and Japanese have no spaces: by place.
        ("I <b>love</b> you.", "我爱你。", "0-0 1-0 2-0", "我<b>爱</b>你。"),
        ("<b>I love you.</b> Go.", "我爱你。走吧。", "0-0 1-0 2-0 3-0", "<b>我爱你。</b>走吧。"),
        ("go to <b>Tokyo</b>", "東京へ行く", "0-0 1-0 2-0", "東京へ<b>行く</b>"),
        ("我<b>爱</b>你。", "I love you.", "0-0 0-1 0-2", "I <b>love</b> you."),
        # No alignment: by place, whole words.
        ("aaa <b>bbb</b> ccc", "xxx yyy zzz", "", "xxx <b>yyy</b> zzz"),
        ("aaa bbb <b>ccc</b>.", "xxx yyy zzz.", "", "xxx yyy <b>zzz</b>."),
        # Fewer words than marks: each is there.
        ("<b>one</b> <i>two</i>", "eins", "0-0 1-0", "<b><i>eins</i></b>"),
        # Punctuation with a mark of its own.
        ("one<b>!</b> two", "eins! zwei", "0-0 1-1", "eins<b>!</b> zwei"),
        ("one<b>!</b> two", "eins, zwei", "0-0 1-1", "eins<b/>, zwei"),
        # Placeholders.
        ("Run <c>{1}</c> now.", "Jetzt {1} tun.", "0-2 1-1 2-0", "Jetzt <c>{1}</c> tun."),
        ("Run <c>{1}</c> now.", "Jetzt { 1 } ausführen.", "", "Jetzt <c>{1}</c> ausführen."),
        ("Run <c>{1}</c> now.", "Jetzt {1} {1} ausführen.", "", "Jetzt <c>{1}</c> ausführen."),
        ("Run <c>{1}</c> now.", "Jetzt ausführen.", "0-1 1-1 2-0", "Jetzt <c>{1}</c> ausführen."),
        ("Run <b>all <c>{1}</c></b> now.", "Jetzt {1} alle tun.", "0-3 1-2 2-1 3-0",
         "Jetzt <b><c>{1}</c> alle</b> tun."),
        # Line breaks.
        ("one<r>\n</r>two", "eins\nzwei", "0-0 1-1", "eins<r>\n</r>zwei"),
        ("one two<r>\n</r>three four", "eins zwei drei vier", "0-0 1-1 2-2 3-3",
         "eins zwei<r>\n</r>drei vier"),
        ("one<r>\t</r>two", "eins\nzwei", "0-0 1-1", "eins<r>\t</r>zwei"),
        ("one two<r>\n</r>three", "我爱你好", "0-0 1-0 2-0", "我爱<r>\n</r>你好"),
        ("a<r>\n</r>b<s>\n</s>c", "x y z", "0-0 1-1 2-2", "x<r>\n</r>y<s>\n</s>z"),
    ],
)  # fmt: skip
def test_marks_end_on_the_words_that_are_aligned(
    source: str, translation: str, alignment: str, expected: str
) -> None:
    unit, names = read(source)
    assert write(project_marks(unit, translation, pairs(alignment)), names) == expected


_WORDS = st.sampled_from(
    ["ein", "Haus", "2", "(gut)", "ist,", "“ja”", "我爱你。", "집을", "{1}", "–", "\n", "Peter."]
)


@st.composite
def units(draw: st.DrawFn) -> Unit:
    text = " ".join(draw(st.lists(_WORDS, min_size=1, max_size=8)))
    marks: list[Mark] = []

    def add(low: int, high: int, depth: int) -> None:
        for _ in range(draw(st.integers(0, 2))):
            start = draw(st.integers(low, high))
            end = draw(st.integers(start, high))
            marks.append(Mark(start, end, len(marks)))
            if depth and end > start:
                add(start, end, depth - 1)
            low = end

    add(0, len(text), 2)
    return Unit(text, tuple(marks))


@given(
    units(),
    st.lists(_WORDS, max_size=8).map(" ".join),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
)
def test_whatever_comes_each_mark_is_there_once_and_none_cross(
    unit: Unit, translation: str, alignment: list[tuple[int, int]]
) -> None:
    found = project_marks(unit, translation, alignment)
    assert [mark.key for mark in found.marks] == [mark.key for mark in unit.marks]
    for mark in found.marks:
        assert 0 <= mark.start <= mark.end <= len(found.text)
        for other in found.marks:
            assert not mark.start < other.start < mark.end < other.end
    # Nothing is lost but what was there too often, and only breaks and placeholders come.
    keep = re.compile(r"\{ ?\d ?\}|\s")
    assert keep.sub("", found.text) == keep.sub("", translation)


def test_lost_line_breaks_and_placeholders_take_time_in_proportion() -> None:
    words = " ".join(["one"] * 2000)
    numbered = " ".join(f"{{{number}}}" for number in range(1000, 3000))
    began = time.process_time()
    for text, size in ((words.replace(" ", "\n"), 1), (numbered, 6)):
        step = 4 if size == 1 else 7
        first = 3 if size == 1 else 0
        marks = [Mark(first + step * i, first + step * i + size, i) for i in range(1999)]
        found = project_marks(Unit(text, tuple(marks)), words)
        assert {mark.key for mark in found.marks} == set(range(1999))
    assert time.process_time() - began < 5
