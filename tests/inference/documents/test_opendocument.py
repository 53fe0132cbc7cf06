"""OpenDocument files keep everything but their texts, and spans end on the right words."""

from __future__ import annotations

import io
import zipfile

import odfdo
import pytest
from lxml import etree

from dragoman.inference.documents.document import Unit
from dragoman.inference.documents.opendocument import OpenDocumentText

from .fake_translators import reverse, rotate, shout
from .sample_documents import (
    OPENDOCUMENT_BODIES,
    OPENDOCUMENT_STYLES,
    canonical,
    make_opendocument,
    unzip,
)


def open_file(content: bytes) -> OpenDocumentText:
    return OpenDocumentText(content, max_bytes=50_000_000)


def make(body: str, **options: str) -> bytes:
    return make_opendocument(body, styles=OPENDOCUMENT_STYLES, **options)


@pytest.mark.parametrize("name", OPENDOCUMENT_BODIES)
def test_the_paragraphs_of_a_file_are_units(name: str) -> None:
    body, units = OPENDOCUMENT_BODIES[name]
    content = make(body)
    document = open_file(content)
    assert [unit.text for unit in document.units] == units
    assert unzip(document.fill(document.units)) == unzip(content)


@pytest.mark.parametrize("name", OPENDOCUMENT_BODIES)
def test_what_is_translated_back_is_the_file_again(name: str) -> None:
    content = make(OPENDOCUMENT_BODIES[name][0])
    document = open_file(content)
    away = open_file(document.fill(rotate(document.units)))
    assert [unit.marks for unit in away.units] == [unit.marks for unit in document.units]
    back = unzip(away.fill(rotate(away.units)))
    before = unzip(content)
    assert list(back) == list(before)
    for part in before:
        if part == "content.xml" and name in ("noise", "nested", "spaces", "bookmark"):
            continue  # it looks the same, and is written otherwise
        if part.endswith(".xml"):
            assert canonical(back[part]) == canonical(before[part])
        else:
            assert back[part] == before[part]


def content_of(body: bytes) -> str:
    found = etree.tostring(
        etree.fromstring(unzip(body)["content.xml"]), method="c14n", exclusive=True
    ).decode()
    for piece in ("urn:oasis:names:tc:opendocument:xmlns:", ":1.0"):
        found = found.replace(piece, "")
    start = found.index("<text:p")
    found = found[start : found.index("</office:text>")]
    for one in ("text", "xlink", "draw", "svg", "office", "table"):
        found = found.replace(f' xmlns:{one}="{one}"', "")
    return found.replace("text:style-name=", "").replace("text:", "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("span", '<p>THREE <span "T1">TWO</span> ONE.</p>'),
        ("noise", "<p>DONAUDAMPF</p>"),
        ("nested", '<p>FOUR <span "T1"><span "T2">THREE</span></span> <span "T1">TWO</span> '
                   "ONE</p>"),
        ("link", '<p><a xlink:href="x"><span "T1">PAGE</span> OUR</a> SEE.</p>'),
        ("spaces", "<p>FOUR THREE TWO ONE </p>"),
        ("field", "<p><page-count>9</page-count> OF <page-number>3</page-number> PAGE</p>"),
        ("bookmark", '<p>HERE <bookmark-start name="a"></bookmark-start>TITLE A'
                     '<bookmark-end name="a"></bookmark-end></p>'),
    ],
)  # fmt: skip
def test_spans_end_on_the_words_they_belong_to(name: str, expected: str) -> None:
    document = open_file(make(OPENDOCUMENT_BODIES[name][0]))
    found = content_of(document.fill(reverse(document.units)))
    assert found == expected


def test_headers_titles_and_notes_are_translated() -> None:
    content = make("<text:p>Body</text:p>", header="<text:p>Head</text:p>", title="A title")
    document = open_file(content)
    assert [unit.text for unit in document.units] == ["Body", "Head", "A title"]
    after = unzip(document.fill(shout(document.units)))
    assert b"HEAD" in after["styles.xml"]
    assert b"<dc:title>A TITLE</dc:title>" in after["meta.xml"]


def test_spaces_are_kept_that_would_be_one() -> None:
    document = open_file(make("<text:p>a</text:p>"))
    filled = document.fill([Unit(" a  b   c ")])
    assert content_of(filled) == '<p><s></s>a <s></s>b <s c="2"></s>c </p>'
    assert open_file(filled).units[0].text == " a  b   c "


def test_more_spaces_than_anyone_writes_stay_as_they_are() -> None:
    for count in ("100", "1000000000", "9" * 5000):
        body = f'<text:p>one<text:s text:c="{count}"/>two</text:p>'
        document = open_file(make_opendocument(body))
        assert document.units[0].text == "one\ttwo"
        assert (
            f'ONE<text:s text:c="{count}"/>TWO'.encode()
            in unzip(document.fill(shout(document.units)))["content.xml"]
        )


def test_paragraphs_of_a_style_for_code_are_left() -> None:
    styles = (
        '<style:style style:name="P1" style:family="paragraph" '
        'style:parent-style-name="Preformatted_20_Text"/>'
    )
    body = "".join(
        f'<text:p text:style-name="{name}">one two</text:p>'
        for name in ("P1", "Source_20_Code", "Standard")
    )
    assert len(open_file(make_opendocument(body, styles=styles)).units) == 1


@pytest.mark.parametrize("name", ["T1", "Source_20_Text"])
def test_words_of_a_style_for_code_stay(name: str) -> None:
    styles = (
        '<style:style style:name="T1" style:family="text" '
        'style:parent-style-name="Source_20_Text"><style:text-properties fo:color="#000000"/>'
        "</style:style>"
    )
    span = f'<text:span text:style-name="{name}">pip install</text:span>'
    body = f"<text:p>Run {span} now.</text:p><text:p>{span}</text:p>"
    document = open_file(make_opendocument(body, styles=styles))
    assert [unit.text for unit in document.units] == ["Run {1} now."]
    filled = unzip(document.fill(reverse(document.units)))["content.xml"].decode()
    assert f"NOW {span} RUN." in filled


def test_cells_with_numbers_and_formulas_are_left() -> None:
    cell = "<table:table-cell {}><text:p>{}</text:p></table:table-cell>"
    body = "<table:table><table:table-row>" + "".join(
        cell.format(attributes, text)
        for attributes, text in (
            ('office:value-type="string" office:string-value="Total sum"', "Total sum"),
            ('office:value-type="float" office:value="3"', "3 pcs"),
            ('office:value-type="string" table:formula="of:=A1"', "Total sum"),
            ("", "No type"),
        )
    ) + "</table:table-row></table:table>"  # fmt: skip
    document = open_file(make_opendocument(body, kind="spreadsheet"))
    assert [unit.text for unit in document.units] == ["Total sum", "No type"]
    found = unzip(document.fill(shout(document.units)))["content.xml"].decode()
    assert 'office:value-type="string"><text:p>TOTAL SUM<' in found
    assert "string-value" not in found
    assert "3 pcs" in found


def test_a_presentation_is_read_as_well() -> None:
    body = (
        '<draw:page draw:name="no"><draw:frame><draw:text-box><text:p>On a slide</text:p>'
        "</draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box><text:p>Notes"
        "</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
    )
    document = open_file(make_opendocument(body, kind="presentation"))
    assert [unit.text for unit in document.units] == ["On a slide", "Notes"]


def test_what_odfdo_writes_can_be_read_by_it_again() -> None:
    made = odfdo.Document("text")
    made.body.clear()
    made.body.append(odfdo.Header(1, "Eine Überschrift"))
    paragraph = odfdo.Paragraph("Das ist wichtig.")
    paragraph.set_span("Strong_20_Emphasis", regex="wichtig")
    made.body.append(paragraph)
    made.body.append(odfdo.List(["Eins", "Zwei"]))
    table = odfdo.Table("t", width=2, height=1)
    table.set_value((0, 0), "Zelle")
    made.body.append(table)
    out = io.BytesIO()
    made.save(out)
    document = open_file(out.getvalue())
    filled = document.fill(shout(document.units))
    with zipfile.ZipFile(io.BytesIO(filled)) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
    found = odfdo.Document(io.BytesIO(filled))
    assert [str(one).strip() for one in found.body.headers] == ["EINE ÜBERSCHRIFT"]
    assert "DAS IST WICHTIG." in found.get_formatted_text()
    assert [one.inner_text for one in found.body.spans] == ["WICHTIG"]
    assert found.body.tables[0].get_value((0, 0)) == "ZELLE"
