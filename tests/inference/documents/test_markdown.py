"""Markdown keeps its code, links and layout; its text is found, and wrapped as it was."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dragoman.inference.documents.document import Mark, Unit
from dragoman.inference.documents.markdown_inline import MarkdownText, escape_markdown
from dragoman.inference.documents.unit_translation import translate_units
from dragoman.inference.translation_types import Translation

from .filling import copy, fill_with, read, shout, texts

PAGE = """---
title: My "title"
description: >-
  A long
  description
tags: [one, two]
---

# Heading with `code` #

A paragraph that was **hard** wrapped
and has [a link](https://x.y/z "The title") here.

> [!NOTE]
> A quote goes
> on here.

- [ ] task one
  goes on
- [x] task two
  1. inner `a b`

Address{two_spaces}
Street 5\\
Town

| Column | Value   |
|--------|:-------:|
| dog \\| cat | `x\\|y` |
| yes |  |

Setext heading
==============

```python
print("hello")
```

    indented code

<p align="center">
  <img src="x.png" alt="a picture">
  Hello <b>world</b> &amp; more
</p>

<details><summary>More</summary>

Inner *text*.

</details>

Text[^1] and [ref] and ![picture](a.png) in the middle.

[^1]: Word
[^2]: Two words
[ref]: https://x.y "Title"

$$
a + b
$$

:::tip Title
A tip.
:::

{% include x.md %}
***
""".replace("{two_spaces}", "  ")


def test_all_text_is_found_and_nothing_else() -> None:
    assert texts("md", PAGE) == [
        'My "title"',
        "A long description",
        "Heading with {1}",
        "A paragraph that was hard wrapped and has a link here.",
        "The title",
        "A quote goes on here.",
        "task one goes on",
        "task two",
        "inner {1}",
        *("Address", "Street 5", "Town", "Column", "Value", "dog | cat", "yes", "Setext heading"),
        "a picture",
        "Hello world & more",
        *("More", "Inner text.", "Text and ref and {1} in the middle.", "picture"),
        *("Word", "Two words", "A tip."),
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_page_filled_with_its_own_texts_is_itself(newline: str) -> None:
    text = PAGE.replace("\n", newline)
    assert copy("md", text) == text.encode()


def test_structure_stays_when_text_changes() -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])

    def outline(text: str) -> list[tuple[str, str]]:
        return [
            (token.type, token.content if token.type in ("fence", "code_block") else "")
            for token in parser.parse(text)
        ]

    shouted = shout("md", PAGE)
    assert outline(shouted) == outline(PAGE)
    for kept in (
        "https://x.y/z",
        "`a b`",
        "[^1]",
        "{% include x.md %}",
        "tags: [one, two]",
        "| `x\\|y`",
    ):
        assert kept in shouted
    assert '[ref]: https://x.y "Title"' in shouted
    assert "[REF][ref]" in shouted


@pytest.mark.parametrize(
    ("text", "unit", "filled"),
    [
        ("Run `make test` **now**.", "Run {1} now.", "rUN `make test` **NOW**."),
        ("***both*** and *one*", "both and one", "***BOTH*** AND *ONE*"),
        ("a_b_c and 2 * 3", "a_b_c and 2 * 3", "A_B_C AND 2 * 3"),
        ("\\*not emphasis\\*", "*not emphasis*", "\\*NOT EMPHASIS\\*"),
        ("[![badge](b)](c) text", "text", "[![BADGE](b)](c) TEXT"),
        ("~~old~~ &amp; <kbd>Ctrl</kbd>", "old & {1}", "~~OLD~~ & <kbd>Ctrl</kbd>"),
        ("<https://a.b> and me@x.de", "{1} and {2}", "<https://a.b> AND me@x.de"),
        ("costs $5 or $x^2$", "costs $5 or {1}", "COSTS $5 OR $x^2$"),
        ("hi :smile: there", "hi there", "HI :smile: THERE"),
        ("line<br>two", "line\ntwo", "LINE<br>TWO"),
        ("**never closed", "**never closed", "\\*\\*NEVER CLOSED"),
        ("[[Wiki page]] here", "{1} here", "[[Wiki page]] HERE"),
        ("{{ value }} is {% tag %}", "{1} is {2}", "{{ value }} IS {% tag %}"),
        ("a [link](<x y> 'the title') b", "a link b", "A [LINK](<x y> 'THE TITLE') B"),
        ("[text] without a reference", "[text] without a reference", "[TEXT] WITHOUT A REFERENCE"),
        ("`` code ` with `` tick", "{1} tick", "`` code ` with `` TICK"),
        ("*a *a*", "*a a", "\\*A *A*"),
        ("one\ttwo", "one\ntwo", "ONE\tTWO"),
    ],
)
def test_inline_markup_is_marks_or_stays(text: str, unit: str, filled: str) -> None:
    assert texts("md", text)[0] == unit
    assert shout("md", text) == filled
    assert copy("md", text) == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# ",
        "* * *",
        "```\nnever closed",
        "| a | b |\n|---|---|",
        "- \n-\n",
        "\ttabs\n\n\t- in\ta list",
        "> > nested\n> > quote\n> lazy",
        "1) one\n2) two\n",
        "***\n---\n",
        "---\nno front matter",
        "---\ntitle: 'it''s'\n---\n",
        "---\ntitle: |\n  One.\n\n  Two.\nother: x\n---\nBody",
        '+++\ntitle = "In TOML"\n+++\n',
        "Term\n: Definition\n",
        "!!! note\n    Text in it\n",
        "a\rb\r\nc\n",
        "One sentence a line.\nAnd one more.\nAnd the last.\n",
        "<!-- a\ncomment --> text",
        "<div>\n\n*x*\n\n</div>",
    ],
)
def test_awkward_pages_come_back(text: str) -> None:
    assert copy("md", text) == text.encode()
    assert shout("md", text).lower() == text.lower()


def test_a_wrapped_paragraph_is_wrapped_again_with_its_prefix() -> None:
    text = "> a quote that is wrapped at\n> this width and goes on\n"
    filled = fill_with(read("md", text), lambda _: "ein Zitat, das nun viel länger ist " * 2)
    lines = filled.rstrip("\n").split("\n")
    assert len(lines) == 3
    assert all(line.startswith("> ") and len(line) <= 30 for line in lines)


def test_a_translation_does_not_become_a_list_or_a_heading() -> None:
    for start in ("- one", "1. one", "# one", "> one", "+ one", "* one"):
        filled = fill_with(read("md", "text"), lambda _, start=start: start)  # type: ignore[misc]
        (kind, *_) = [token.type for token in MarkdownIt().parse(filled)]
        assert kind == "paragraph_open", filled


def test_brackets_of_a_translation_make_no_link_and_end_none() -> None:
    document = read("md", "see [the page](a.html) now")
    for words in (["see", "the]", "[page", "now"], ["a", "[b](c)", "d", "[e]"]):
        said = Unit(" ".join(words), (Mark(len(words[0]) + 1, len(" ".join(words[:3])), 0),))
        (inline,) = MarkdownIt().parseInline(document.fill([said]).decode())
        links = [token.attrGet("href") for token in inline.children or () if token.attrs]
        assert links == ["a.html"]
        assert "".join(token.content for token in inline.children or ()) == " ".join(words)


def test_a_link_after_an_exclamation_mark_is_no_image() -> None:
    filled = read("md", "see [it](a.html)").fill([Unit("Da!es", (Mark(3, 5, 0),))])
    assert filled == b"Da\\![es](a.html)"


def test_no_line_begins_with_a_tag_by_wrapping() -> None:
    filled = fill_with(
        read("md", "one <div> two three\nfour five six"), lambda text: text.replace("one", "o" * 14)
    )
    assert [token.type for token in MarkdownIt().parse(filled)][1:] == ["inline", "paragraph_close"]


def test_code_that_a_translation_lost_does_not_become_one() -> None:
    (unit,) = translate_units(
        read("md", "`a` `b` `c` text").units,
        lambda texts, align: [Translation(text, "", 0.0, ()) for text in texts],
    )
    assert unit.text.split() == ["{1}", "{2}", "{3}"]


def test_a_pipe_in_a_cell_is_escaped_and_the_column_keeps_its_width() -> None:
    text = "| abc  | d |\n|------|---|\n| long | x |\n"
    filled = fill_with(read("md", text), lambda one: "a|b" if one == "long" else one)
    assert filled == text.replace("| long |", "| a\\|b |")


def test_a_title_of_the_front_matter_is_quoted_if_it_must_be() -> None:
    document = read("md", "---\ntitle: Plain\n---\n")
    assert fill_with(document, lambda _: "Eins: zwei") == '---\ntitle: "Eins: zwei"\n---\n'


def test_mdx_keeps_imports_components_and_expressions() -> None:
    text = 'import X from "y"\n\nHello {user.name}, <X prop={1} />\n\n<X>\n  text\n</X>\n'
    assert texts("mdx", text)[0].startswith("Hello {1}")
    shouted = shout("mdx", text)
    assert "{user.name}" in shouted
    assert 'import X from "y"' in shouted
    assert shout("mdx", "See <X of={1}>it</X> {user.name}") == "sEE <X of={1}>IT</X> {user.name}"


@given(st.text("ab *_`[]()!<>\\&~|#-+.1\n", max_size=60))
@settings(max_examples=300)
def test_any_page_comes_back(text: str) -> None:
    assert copy("md", text) == text.encode()
    fill_with(read("md", text), str.upper)


@given(st.text("ab *_`<>\\&~;#[]()!^:", max_size=30))
def test_what_is_escaped_reads_as_it_was(text: str) -> None:
    text = " ".join(text.split())
    found = MarkdownText(escape_markdown(text)).units
    assert all(unit.text == text and not unit.marks for unit in found)


def test_text_put_in_place_of_words_stays_text() -> None:
    rng = random.Random(3)
    words = ["eins", "zwei*", "_drei_", "`vier`", "[fünf]", "<sechs>", "a&amp;b", "~~x~~"]
    for _ in range(200):
        said = " ".join(rng.choices(words, k=4))
        filled = fill_with(read("md", "one **two** three"), lambda _, said=said: said)  # type: ignore[misc]
        assert MarkdownIt().parse(filled)[0].type == "paragraph_open"


@pytest.mark.parametrize(
    "text", ["[" * 30_000, "`a``b" * 8000, "*a" * 8000, "<!--" * 8000, "_a_" * 8000, "{{" * 20_000]
)
def test_it_takes_time_in_proportion(text: str) -> None:
    began = time.process_time()
    read("md", text)
    assert time.process_time() - began < 4
