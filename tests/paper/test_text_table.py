"""Tables as data."""

from __future__ import annotations

from dragoman.paper.text_table import TextTable

TABLE = TextTable(
    "BLEU & co",
    ("model", "BLEU"),
    [("RNN", "9.5"), ("<b> Transformer", "27.3")],
    "beam 4",
    text_columns=1,
)


def test_columns_are_as_wide_as_what_is_in_them() -> None:
    assert TABLE.to_text().splitlines() == [
        "BLEU & co",
        "model            BLEU",
        "RNN               9.5",
        "<b> Transformer  27.3",
        "beam 4",
    ]


def test_a_page_shows_text_and_not_markup() -> None:
    page = TABLE.to_html()
    assert "<td>&lt;b&gt; Transformer</td>" in page
    assert "<caption>BLEU &amp; co</caption>" in page
    assert '<td class="number">27.3</td>' in page
    assert "<b>" not in page
