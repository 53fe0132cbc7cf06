"""Word documents keep everything but their texts, and formatting ends on the right words."""

from __future__ import annotations

import codecs
import io
from typing import Any

import docx
import pytest
from docx.oxml.ns import qn
from lxml import etree

from dragoman.inference.documents.document import Unit
from dragoman.inference.documents.word import WordDocument

from .fake_translators import reverse, rotate, shout
from .sample_documents import (
    WORD_BODIES,
    W,
    field,
    make_word,
    paragraph,
    run,
    unzip,
    word_part,
)

_NOISE = {"lang", "noProof", "spacing", "lastRenderedPageBreak", "proofErr"}
_RUNS = {"r", "t", "rPr", "noBreakHyphen", "softHyphen"}


def open_word(content: bytes) -> WordDocument:
    return WordDocument(content, max_bytes=10_000_000)


def name_of(element: Any) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else str(element.tag)


def describe(content: bytes) -> tuple[list[Any], list[Any]]:
    """Return the letters of a document with their formatting, and all that is not a run."""
    root = etree.fromstring(unzip(content)["word/document.xml"])
    letters, others = [], []
    for element in root.iter():
        name = name_of(element)
        if name == "t":
            properties = element.getparent().find(qn("w:rPr"))
            formatting = sorted(
                etree.tostring(one, method="c14n", exclusive=True)
                for one in (() if properties is None else properties)
                if name_of(one) not in _NOISE
            )
            around = [name_of(one) for one in element.iterancestors()]
            letters += [(letter, formatting, around) for letter in element.text if letter.strip()]
        elif name not in _RUNS | _NOISE and not any(
            name_of(one) == "rPr" for one in element.iterancestors()
        ):
            parent = element.getparent()
            values = {k: v for k, v in element.attrib.items() if k not in _TRANSLATED}
            others.append((name, values, parent is not None and name_of(parent)))
    return letters, others


@pytest.mark.parametrize("name", WORD_BODIES)
def test_the_paragraphs_of_a_document_are_units(name: str) -> None:
    body, units = WORD_BODIES[name]
    content = make_word(body)
    document = open_word(content)
    assert [unit.text for unit in document.units] == units
    assert unzip(document.fill(document.units)) == unzip(content)


@pytest.mark.parametrize("name", [name for name in WORD_BODIES if name != "hyphens"])
def test_only_letters_change_and_each_keeps_its_formatting(name: str) -> None:
    content = make_word(WORD_BODIES[name][0])
    document = open_word(content)
    filled = document.fill(rotate(document.units))
    letters, others = describe(content)
    new_letters, new_others = describe(filled)
    assert others == new_others
    if name not in _WITH_OTHER_LETTERS:
        assert [(codecs.encode(one, "rot13"), *rest) for one, *rest in letters] == new_letters
    back = open_word(filled)
    assert [unit.marks for unit in back.units] == [unit.marks for unit in document.units]
    assert open_word(back.fill(rotate(back.units))).units == document.units
    before, after = unzip(content), unzip(filled)
    assert list(before) == list(after)
    assert all(after[part] == before[part] for part in before if part != "word/document.xml")


_WITH_OTHER_LETTERS = {"deep", "page number", "simple field", "contents", "formula"}
"""Of these not every letter is in a unit."""
_TRANSLATED = {"descr", "title", "alt", f"{{{W}}}tooltip", f"{{{W}}}val"}


def show(content: bytes) -> list[str]:
    """Return the paragraphs of a document, with <b> for bold, and other elements by name."""
    shown = []
    root = etree.fromstring(unzip(content)["word/document.xml"])
    for one in root.iter(qn("w:p")):
        parts: list[str] = []

        def add(element: Any, parts: list[str] = parts) -> None:
            for child in element:
                name = name_of(child)
                if name == "r":
                    bold = child.find(f"{qn('w:rPr')}/{qn('w:b')}") is not None
                    for inner in child:
                        if name_of(inner) == "t":
                            parts.append(f"<b>{inner.text}</b>" if bold else inner.text)
                        elif name_of(inner) != "rPr":
                            parts.append(f"<{name_of(inner)}/>")
                elif len(child) and not name.endswith("Pr"):
                    parts.append(f"<{name}>")
                    add(child)
                    parts.append(f"</{name}>")
                elif not name.endswith("Pr"):
                    parts.append(f"<{name}/>")

        add(one)
        shown.append("".join(parts).replace("</b><b>", ""))
    return shown


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (WORD_BODIES["bold"][0], "THREE <b>TWO</b> ONE."),
        (paragraph(run("One "), run("two.", "<w:b/>")), "<b>TWO</b> ONE."),
        (WORD_BODIES["link"][0], "NOW <hyperlink>PAGE OUR</hyperlink> SEE."),
        (
            WORD_BODIES["link field"][0],
            "NOW <fldChar/><instrText/><fldChar/>PAGE OUR<fldChar/> SEE.",
        ),
        (
            WORD_BODIES["page number"][0],
            "<fldChar/><instrText/><fldChar/>9<fldChar/> OF "
            "<fldChar/><instrText/><fldChar/>3<fldChar/> PAGE",
        ),
        (WORD_BODIES["note"][0], "HERE CLAIM<footnoteReference/> A."),
        (
            WORD_BODIES["changes"][0],
            "<del><delText/></del>GOOD <ins>VERY</ins> IS IT.",
        ),
        (WORD_BODIES["bookmarks"][0],
         "<bookmarkStart/>HERE <bookmarkStart/>TITLE<bookmarkEnd/> A<bookmarkEnd/>"),
        (paragraph(run("one "), '<w:bookmarkStart w:id="1" w:name="b"/>', run("two three"),
                   '<w:bookmarkEnd w:id="1"/>', run(" four")),
         "FOUR <bookmarkStart/>THREE TWO<bookmarkEnd/> ONE"),
        (WORD_BODIES["control"][0], "HELLO <sdt><sdtContent>READER</sdtContent></sdt>, DEAR."),
        (WORD_BODIES["formula"][0], "SMALL BE <oMath>x</oMath> LET."),
        (
            paragraph(run("", "", "<w:footnoteRef/>"), run(" One two")),
            "<footnoteRef/> TWO ONE",
        ),
        (
            paragraph(run("One "), run("big", "<w:b/>"), run(" ", "<w:i/>"), run("dog", "<w:b/>"),
                      run(" here and there")),
            "THERE AND HERE <b>DOG BIG</b> ONE",
        ),
        (paragraph(run("see "), field("REF x", run("the end")), run(" here")),
         "HERE <fldChar/><instrText/><fldChar/>END THE<fldChar/> SEE"),
        (paragraph(run("one two"), "<w:r><w:br/></w:r>", run("3", "<w:b/>"), run(" 4")),
         "TWO ONE<br/><b>3</b> 4"),
    ],
)  # fmt: skip
def test_formatting_ends_on_the_words_it_belongs_to(body: str, expected: str) -> None:
    document = open_word(make_word(body))
    assert show(document.fill(reverse(document.units)))[0] == expected


@pytest.mark.parametrize(
    ("before", "unit", "expected"),
    [
        ("", "the end", "<b>1.</b><tab/><b>THE END</b>"),
        ("we read: ", "we read: 1.\tthe end", "WE READ: <b>1.</b><tab/><b>THE END</b>"),
    ],
)
def test_a_number_before_a_tab_is_set_apart_where_a_paragraph_begins(
    before: str, unit: str, expected: str
) -> None:
    bold = run("1.", "<w:b/>", "<w:tab/>") + run("the end", "<w:b/>")
    document = open_word(make_word(paragraph(run(before), bold)))
    assert document.units[0].text == unit
    assert show(document.fill(shout(document.units)))[0] == expected


def test_paragraphs_of_a_style_for_code_are_left() -> None:
    style = '<w:pPr><w:pStyle w:val="{}"/></w:pPr>'
    document = open_word(
        make_word(
            paragraph(run("print(one)"), properties=style.format("SourceCode"))
            + paragraph(run("Two words"), properties=style.format("BodyText"))
        )
    )
    assert [unit.text for unit in document.units] == ["Two words"]


def test_words_of_a_style_for_code_stay() -> None:
    code = '<w:rStyle w:val="VerbatimChar"/>'
    words = run("Run "), run("pip ", code), run("install ", code), run("now.", "<w:b/>")
    document = open_word(make_word(paragraph(*words) + paragraph(run("make", code))))
    assert [unit.text for unit in document.units] == ["Run {1} now."]
    assert show(document.fill(reverse(document.units))) == ["<b>NOW</b> pip install RUN.", "make"]


def test_every_part_with_text_is_translated_and_comments_are_not() -> None:
    text = paragraph(run("Some "), run("text", "<w:b/>"), run(" here"))
    names = {
        "word/header1.xml": word_part("header", text),
        "word/footer1.xml": word_part("footer", text),
        "word/footnotes.xml": word_part("footnotes", f"<w:footnote>{text}</w:footnote>"),
        "word/endnotes.xml": word_part("endnotes", f"<w:endnote>{text}</w:endnote>"),
        "word/comments.xml": word_part("comments", f"<w:comment>{text}</w:comment>"),
        "docProps/core.xml": (
            "application/vnd.openxmlformats-package.core-properties+xml",
            '<c xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A title</dc:title>'
            "<dc:creator>Ann</dc:creator></c>",
        ),
    }
    content = make_word(text, parts=names)
    document = open_word(content)
    assert [unit.text for unit in document.units] == ["Some text here"] * 5 + ["A title"]
    before, after = unzip(content), unzip(document.fill(shout(document.units)))
    changed = [name for name in before if before[name] != after[name]]
    assert sorted(changed) == sorted({*names, "word/document.xml"} - {"word/comments.xml"})
    assert list(before) == list(after)
    assert b"<dc:title>A TITLE</dc:title><dc:creator>Ann<" in after["docProps/core.xml"]
    for name in changed:
        etree.fromstring(after[name])


def test_what_python_docx_writes_can_be_read_by_it_again() -> None:
    made = docx.Document()
    made.core_properties.title = "Ein Titel"
    made.add_heading("Eine Überschrift", 1)
    made.add_paragraph("Das ist ").add_run("wichtig").bold = True
    made.add_paragraph("Punkt", style="List Bullet")
    table = made.add_table(2, 2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "Verbunden"
    table.cell(1, 0).text = "Zelle"
    made.sections[0].header.paragraphs[0].text = "Kopf\tMitte"
    made.sections[0].footer.paragraphs[0].text = "Fuß"
    out = io.BytesIO()
    made.save(out)
    document = open_word(out.getvalue())
    found = docx.Document(io.BytesIO(document.fill(shout(document.units))))
    assert [one.text for one in found.paragraphs] == [
        "EINE ÜBERSCHRIFT",
        "DAS IST WICHTIG",
        "PUNKT",
    ]
    assert found.paragraphs[0].style.name == "Heading 1"
    assert [(one.text, one.bold) for one in found.paragraphs[1].runs] == [
        ("DAS IST ", None), ("WICHTIG", True),
    ]  # fmt: skip
    assert found.tables[0].cell(0, 1).text == "VERBUNDEN"
    assert found.tables[0].cell(1, 0).text == "ZELLE"
    assert found.sections[0].header.paragraphs[0].text == "KOPF\tMITTE"
    assert found.sections[0].footer.paragraphs[0].text == "FUSS"
    assert found.core_properties.title == "EIN TITEL"


def test_a_document_of_the_strict_kind_is_read_as_well() -> None:
    body, units = WORD_BODIES["bold"]
    document = open_word(
        make_word(body, namespace="http://purl.oclc.org/ooxml/wordprocessingml/main")
    )
    assert [unit.text for unit in document.units] == units
    assert b"TWO" in unzip(document.fill(shout(document.units)))["word/document.xml"]


def test_a_translation_may_have_anything_in_it() -> None:
    document = open_word(make_word(WORD_BODIES["bold"][0]))
    filled = document.fill([Unit("a\x00\x0b <b>&amp;</b>\nb \ufffe")])
    assert show(filled)[0].startswith("a <b>&amp;</b> b ")


def test_a_document_can_be_filled_more_than_once() -> None:
    document = open_word(make_word(WORD_BODIES["text box"][0]))
    first = document.fill(shout(document.units))
    assert document.fill(document.units) != first
    assert document.fill(shout(document.units)) == first
