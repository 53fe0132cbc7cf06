"""The report shows all tables and figures that were measured, beside the paper's, on one page.

The page needs no other file: it contains its style and its pictures.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from dragoman.errors import DataError, DragomanError
from dragoman.paper import table1, table2, table3, table4
from dragoman.paper.figures.all_figures import DOT_PRODUCTS, FIGURE_LIST, read_list
from dragoman.paper.figures.formulas import DotProducts
from dragoman.paper.text_table import TextTable
from dragoman.system.atomic_files import atomic_write

T = TypeVar("T")


def write_report(out: Path) -> Path:
    """Write report.html beside the results in `out`, and return its path.

    A section that was not measured yet says which command measures it.
    """
    sections = [_table1(out), *_table2(out), *_table3(out), *_table4(out), *_figures(out)]
    text = render_page(
        "Attention Is All You Need, measured again",
        "The tables and figures of the paper, each beside what was measured here, with the "
        "command that measures it again.",
        sections,
        f"Made by dragoman paper report, {date.today().isoformat()}. The paper: Vaswani et al., "
        "2017, arXiv 1706.03762.",
    )
    path = out / "report.html"
    atomic_write(path, text)
    return path


def _read(file: Path, make: Callable[[dict[str, Any]], T]) -> T:
    try:
        return make(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        raise DataError(
            f"{file}: not what dragoman paper wrote; delete it and measure again"
        ) from None


def _table1(out: Path) -> Section:
    section = Section(
        "Table 1",
        "What a layer of each kind costs for a sentence of n positions of width d: operations, "
        "how many of them must wait for each other, and how many steps a signal takes from one "
        "end of the sentence to the other. Sequential steps are counted and paths walked, not "
        "asserted.",
        "dragoman paper table1",
    )
    file = out / "table1.json"
    if not file.exists():
        return section
    found = _read(file, table1.Table1.from_json)
    picture = Picture(
        out / "table1.png",
        f"Against the length n, on {found.device}: operations, time, sequential steps, paths.",
    )
    return replace(section, parts=[*table1.text_tables(found), picture, *found.notes])


def _table2(out: Path) -> Iterator[Section]:
    introduction = (
        "The models that came before the Transformer, and the Transformer, trained by the same "
        "loop on the same batches at the same number of parameters: once for the same steps, once "
        "for the same training FLOPs."
    )
    files = sorted(out.glob("table2-*.json"))
    if not files:
        yield Section("Table 2", introduction, "dragoman paper table2")
    for file in files:
        found = _read(file, table2.Table2.from_json)
        name = file.stem.removeprefix("table2-")
        picture = Picture(
            file.with_suffix(".png"),
            "BLEU against training FLOPs, and by the length of the sentence.",
        )
        yield Section(
            f"Table 2: {name}",
            introduction,
            _table2_command(found, name),
            [*table2.text_tables(found), table2.describe_length_effect(found), picture],
        )


def _table2_command(found: table2.Table2, name: str) -> str:
    words = ["dragoman paper table2"]
    if name != "phrasebook":
        words.append(f"--data {found.data}")
        words += [f"--test {found.test}"] if found.test != table2.VALIDATION else []
    measured = dict.fromkeys(row.model for row in found.rows)
    if len(measured) < len(table2.COMPARED_MODELS):
        words += [f"--model {shlex.quote(model)}" for model in measured]
    return " ".join([*words, f"--parameters {found.parameters} --steps {found.steps}"])


def _table3(out: Path) -> Iterator[Section]:
    introduction = (
        "One change to the base model at a time: heads, the width of keys, size, regularisation, "
        "positions."
    )
    counted = table3.parameter_table(table3.count_paper_parameters())
    yield Section("Table 3: parameters", introduction, "dragoman paper table3", [counted])
    files = sorted(out.glob("table3-*.json"))
    if not files:
        yield Section("Table 3: scores", introduction, "dragoman paper table3 --data DIR")
    for file in files:
        found = _read(file, table3.Table3.from_json)
        picture = Picture(
            file.with_suffix(".png"),
            "The difference each change makes, with standard errors, beside the paper's.",
        )
        findings = table3.findings_table(table3.check_findings(found))
        yield Section(
            f"Table 3: {file.stem.removeprefix('table3-')}",
            introduction,
            f"dragoman paper table3 --data {found.corpus} --seeds {len(found.seeds)} "
            f"--steps {found.base.training.steps}",
            [table3.scores_table(found), picture, findings],
        )


def _table4(out: Path) -> Iterator[Section]:
    introduction = (
        "English constituency parsing: a tree is a sequence of actions, and the Transformer writes "
        f"it as it writes a translation. {table4.LICENCE}"
    )
    files = sorted(out.glob("table4-*.json"))
    if not files:
        command = "dragoman paper table4 --trees TRAIN --valid DEV --test TEST"
        yield Section("Table 4", introduction, command)
    for file in files:
        found = _read(file, table4.Table4.from_json)
        picture = Picture(
            file.with_suffix(".png"), "F1 by sentence length, and F1 beside the paper's rows."
        )
        scores, *others = table4.text_tables(found)
        yield Section(
            f"Table 4: {file.stem.removeprefix('table4-')}",
            introduction,
            found.command,
            [scores, picture, *others],
        )


def _figures(out: Path) -> Iterator[Section]:
    folder = out / "figures"
    attention = Section(
        "Figures 3 to 5",
        "What the heads look at. Each head has a colour, and a line is as strong as its weight.",
        "dragoman paper figures MODEL",
    )
    formulas = Section(
        "Formulas",
        "Positions, the learning rate, and why scores are divided by √d_k.",
        "dragoman paper figures",
    )
    if not (folder / FIGURE_LIST).exists():
        yield attention
        yield formulas
        return
    records = read_list(folder)
    formula_names = ("positions", "learning-rate", "dot-products")
    for section, is_formula in ((attention, False), (formulas, True)):
        pictures = [
            Picture(folder / next(f for f in one.files if f.endswith(".png")), one.caption)
            for one in records
            if (one.name in formula_names) == is_formula
        ]
        yield replace(section, parts=[*pictures, *(_dot_products(folder) if is_formula else ())])


def _dot_products(folder: Path) -> Iterator[TextTable]:
    """Yield the numbers behind the picture of dot products, if there are any."""
    if (file := folder / DOT_PRODUCTS).exists():
        yield _read(file, DotProducts.from_json).to_table()


# --- the page ---


@dataclass(frozen=True, slots=True)
class Picture:
    """Hold where a PNG or SVG picture is, and the caption that says what it shows."""

    path: Path
    caption: str

    def to_html(self) -> str:
        """Return a figure that contains the picture's own bytes; raise if they cannot be read."""
        kinds = {".png": "image/png", ".svg": "image/svg+xml"}
        try:
            content = base64.b64encode(self.path.read_bytes()).decode("ascii")
            kind = kinds[self.path.suffix]
        except (OSError, KeyError):
            raise DragomanError(
                f"{self.path}: cannot be put in the report; draw it again"
            ) from None
        return (
            f'<figure><div class="scroll" tabindex="0"><img src="data:{kind};base64,{content}" '
            f'alt="{escape(self.caption)}"></div>'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )


@dataclass(frozen=True, slots=True)
class Section:
    """Hold what was measured of a table or figure of the paper, and the command that does it."""

    title: str
    introduction: str
    command: str
    parts: Sequence[TextTable | Picture | str] = ()
    """Holds tables, pictures and paragraphs in order; it is empty if nothing was measured yet."""

    @property
    def anchor(self) -> str:
        """Return the section's name in links."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    def to_html(self) -> str:
        """Return the whole section, with how to measure it at its end."""
        parts = [
            f"<p>{escape(part)}</p>" if isinstance(part, str) else part.to_html()
            for part in self.parts
        ]
        kind = "" if parts else ' class="missing"'
        again = "Run it again:" if parts else "Not measured yet. To measure it:"
        body = "\n".join(parts)
        return (
            f'<section id="{self.anchor}"{kind}>\n<h2>{escape(self.title)}</h2>\n'
            f"<p>{escape(self.introduction)}</p>\n{body}\n"
            f'<div class="again">{again}<pre><code>{escape(self.command)}</code></pre></div>\n'
            "</section>"
        )


def render_page(title: str, introduction: str, sections: Sequence[Section], end: str) -> str:
    """Return the whole page: title, links to the sections, the sections, and a last line."""
    style = resources.files("dragoman.paper").joinpath("page.css").read_text(encoding="utf-8")
    links = "\n".join(f'<li><a href="#{s.anchor}">{escape(s.title)}</a></li>' for s in sections)
    body = "\n".join(section.to_html() for section in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="lead">{escape(introduction)}</p>
<nav aria-label="Contents"><ol>
{links}
</ol></nav>
</header>
<main>
{body}
</main>
<footer><p>{escape(end)}</p></footer>
</body>
</html>
"""
