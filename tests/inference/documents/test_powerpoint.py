"""Presentations keep their slides as they are but for the texts."""

from __future__ import annotations

import io
from typing import Any

import pytest
from lxml import etree
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from dragoman.inference.documents.powerpoint import PowerPointDocument

from .fake_translators import reverse, rotate, shout
from .sample_documents import canonical, unzip


def open_presentation(content: bytes) -> PowerPointDocument:
    return PowerPointDocument(content, max_bytes=50_000_000)


def make_presentation() -> bytes:
    made = Presentation()
    made.core_properties.title = "A title"
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "The first slide"
    box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1))
    paragraph = box.text_frame.paragraphs[0]
    for text, bold, link in (
        ("See ", None, None), ("this ", True, None), ("page", True, None), (" or ", None, None),
        ("that", None, "http://x.de"), (".", None, None),
    ):  # fmt: skip
        run = paragraph.add_run()
        run.text, run.font.bold = text, bold
        if link:
            run.hyperlink.address = link
    box._element.nvSpPr.cNvPr.set("descr", "A box with text")
    box.text_frame.add_paragraph().text = "Line one\vline two\tend"
    table = slide.shapes.add_table(1, 2, Inches(1), Inches(2), Inches(3), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "Cell one", "12"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "In a group"
    data = CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("Sales", (1, 2))
    size = Inches(1), Inches(3), Inches(3), Inches(3)
    chart = slide.shapes.add_chart(XL_CHART_TYPE.PIE, *size, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "The chart"
    slide.notes_slide.notes_text_frame.text = "Some notes"
    second = made.slides.add_slide(made.slide_layouts[6])
    second.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "Second slide"
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


@pytest.fixture(scope="module")
def content() -> bytes:
    return make_presentation()


def texts(shapes: Any) -> list[str]:
    found = []
    for shape in shapes:
        if shape.shape_type == 6:  # a group
            found += texts(shape.shapes)
        elif shape.has_text_frame:
            found.append(shape.text_frame.text)
    return found


def test_the_texts_of_slides_are_units_in_reading_order(content: bytes) -> None:
    document = open_presentation(content)
    assert [unit.text for unit in document.units] == [
        "The first slide", "A box with text", "See this page or that.", "Line one\nline two\tend",
        "Cell one", "In a group", "The chart", "Some notes", "Second slide", "A title",
    ]  # fmt: skip
    assert unzip(document.fill(document.units)) == unzip(content)


def test_what_was_translated_can_be_opened_again(content: bytes) -> None:
    document = open_presentation(content)
    found = Presentation(io.BytesIO(document.fill(shout(document.units))))
    first, second = found.slides
    assert texts(first.shapes) == [
        "THE FIRST SLIDE", "SEE THIS PAGE OR THAT.\nLINE ONE\vLINE TWO\tEND", "IN A GROUP",
    ]  # fmt: skip
    table = next(shape.table for shape in first.shapes if shape.has_table)
    assert [cell.text for cell in table.iter_cells()] == ["CELL ONE", "12"]
    chart = next(shape.chart for shape in first.shapes if shape.has_chart)
    assert chart.chart_title.text_frame.text == "THE CHART"
    assert first.notes_slide.notes_text_frame.text == "SOME NOTES"
    assert texts(second.shapes) == ["SECOND SLIDE"]
    assert found.core_properties.title == "A TITLE"


def test_formatting_and_links_end_on_their_words(content: bytes) -> None:
    document = open_presentation(content)
    found = Presentation(io.BytesIO(document.fill(reverse(document.units))))
    box = found.slides[0].shapes[1]
    assert box._element.nvSpPr.cNvPr.get("descr") == "TEXT WITH BOX A"
    runs = box.text_frame.paragraphs[0].runs
    assert [(run.text, run.font.bold, run.hyperlink.address) for run in runs] == [
        ("THAT", None, "http://x.de"), (" OR ", None, None), ("PAGE THIS", True, None),
        (" SEE.", None, None),
    ]  # fmt: skip


def test_all_but_the_texts_stays(content: bytes) -> None:
    document = open_presentation(content)
    away = open_presentation(document.fill(rotate(document.units)))
    before, after = unzip(content), unzip(away.fill(rotate(away.units)))
    assert list(before) == list(after)
    for name in before:
        if name.endswith((".xml", ".rels")) and "slide1.xml" not in name:
            assert canonical(before[name]) == canonical(after[name]), name
        elif "slide1.xml" not in name:
            assert before[name] == after[name], name
    old, new = (
        etree.fromstring(parts["ppt/slides/slide1.xml"]).iter() for parts in (before, after)
    )
    tags = [[one.tag for one in side if "}r" not in one.tag[-2:]] for side in (old, new)]
    for side in tags:  # two bold runs have become one
        for tag in ("}t", "}rPr"):
            side[:] = [one for one in side if not one.endswith(tag)]
    assert tags[0] == tags[1]


def test_prompts_of_layouts_are_left_and_their_other_texts_are_not() -> None:
    made = Presentation()
    layout = made.slide_layouts[6]
    box = etree.SubElement(layout._element.cSld.spTree, "x")
    layout._element.cSld.spTree.remove(box)
    slide = made.slides.add_slide(layout)
    shape = slide.shapes.add_textbox(0, 0, Inches(1), Inches(1))
    shape.text_frame.text = "Our company"
    layout._element.cSld.spTree.append(shape._element)
    out = io.BytesIO()
    made.save(out)
    document = open_presentation(out.getvalue())
    assert [unit.text for unit in document.units if "PowerPoint" not in unit.text] == [
        "Our company"
    ]


def test_a_field_and_tips_of_links_are_kept() -> None:
    made = Presentation()
    slide = made.slides.add_slide(made.slide_layouts[6])
    shape = slide.shapes.add_textbox(0, 0, Inches(1), Inches(1))
    run = shape.text_frame.paragraphs[0].add_run()
    run.text = "Page "
    run.hyperlink.address = "http://x.de"
    run._r.rPr.hlinkClick.set("tooltip", "Go there")
    a = "http://schemas.openxmlformats.org/drawingml/2006/main"
    run._r.addnext(
        etree.fromstring(f'<a:fld xmlns:a="{a}" id="{{1}}" type="slidenum"><a:t>7</a:t></a:fld>')
    )
    out = io.BytesIO()
    made.save(out)
    document = open_presentation(out.getvalue())
    assert [unit.text for unit in document.units][:2] == ["Page {1}", "Go there"]
    found = Presentation(io.BytesIO(document.fill(shout(document.units))))
    paragraph = found.slides[0].shapes[0].text_frame.paragraphs[0]
    assert paragraph.runs[0].text == "PAGE "
    assert paragraph.runs[0]._r.rPr.hlinkClick.get("tooltip") == "GO THERE"
    assert [one.text for one in paragraph._p.iter(f"{{{a}}}t")] == ["PAGE ", "7"]
