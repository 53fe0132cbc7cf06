"""An HTML page that needs no other file: sections of tables, pictures and paragraphs."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.paper.text_table import TextTable


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
