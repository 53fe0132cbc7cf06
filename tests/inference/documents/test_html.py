"""Tags stay, text is found, and what was escaped stays so."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.inference.documents.html import HtmlText


def shouted(text: str) -> str:
    page = HtmlText(text)
    return page.fill([one.upper() for one in page.plain], [one.upper() for one in page.tagged])


@pytest.mark.parametrize(
    ("text", "plain", "tagged"),
    [
        ("hello", ["hello"], []),
        ("<p>one</p><p>two</p>", ["one", "two"], []),
        ("<p>one <b>two</b> three</p>", [], ["one <b>two</b> three"]),
        ("<b>one</b>", ["one"], []),
        ("<p>a &lt;b&gt; &amp; c</p>", ["a <b> & c"], []),
        ("one<br>two", ["one", "two"], []),
        ("<script>if (a < b) x()</script>text<style>p {}</style>", ["text"], []),
        ("<!-- <p>no</p> --><p>yes</p>", ["yes"], []),
        ("<p>\n  one\n  two </p>", ["one two"], []),
        ("<p>…</p><hr/>", [], []),
        ("<i><b>one</b></i>", ["one"], []),
        ("<p>one <b>two</b></p>", [], ["one <b>two</b>"]),
    ],
)
def test_text_between_block_tags_is_one_run(text: str, plain: list[str], tagged: list[str]) -> None:
    page = HtmlText(text)
    assert (page.plain, page.tagged) == (plain, tagged)


def test_a_page_filled_with_its_own_runs_is_itself() -> None:
    text = "<!doctype html><body><h1>One</h1><p>a <i>b</i> c &amp; d</p> <ul><li>x</li></ul></body>"
    page = HtmlText(text)
    assert page.fill(page.plain, page.tagged) == text


def test_a_translation_cannot_bring_tags_of_its_own() -> None:
    page = HtmlText("<p>one <b>two</b></p>")
    assert page.fill([], ["<b>zwei</b> <script>"]) == "<p><b>zwei</b> &lt;script&gt;</p>"
    assert HtmlText("<p>one</p>").fill(["<i>eins"], []) == "<p>&lt;i&gt;eins</p>"


@given(st.text("<>/ab c&;!-\n", max_size=60))
def test_any_text_is_a_page(text: str) -> None:
    page = HtmlText(text)
    assert isinstance(page.fill(page.plain, page.tagged), str)


@pytest.mark.parametrize("text", ["<" * 50_000, "<a " * 20_000, "<!--" * 20_000, "<b>" * 20_000])
def test_it_takes_time_in_proportion(text: str) -> None:
    began = time.perf_counter()
    HtmlText(text)
    assert time.perf_counter() - began < 2
