"""One HTML page that needs nothing beside it: sections of tables and pictures."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.paper.text_table import Grid

__all__ = ["Picture", "Section", "page"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, PNG or SVG, and what it shows."""

    path: Path
    caption: str

    def html(self) -> str:
        """The picture itself, inside the page."""
        kinds = {".png": "image/png", ".svg": "image/svg+xml"}
        try:
            content = base64.b64encode(self.path.read_bytes()).decode("ascii")
            kind = kinds[self.path.suffix]
        except (OSError, KeyError):
            raise DragomanError(
                f"{self.path}: cannot be put in the report; make it again"
            ) from None
        return (
            f'<figure><div class="scroll" tabindex="0"><img src="data:{kind};base64,{content}" '
            f'alt="{escape(self.caption)}"></div>'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )


@dataclass(frozen=True, slots=True)
class Section:
    """A table or figure of the paper: what it says, what was measured, how to do it again."""

    title: str
    lead: str
    command: str
    parts: Sequence[Grid | Picture | str] = ()
    """Tables, pictures and paragraphs in order; none: not measured yet."""

    @property
    def anchor(self) -> str:
        """Its name in an address."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    def html(self) -> str:
        """All of it."""
        parts = [
            f"<p>{escape(part)}</p>" if isinstance(part, str) else part.html()
            for part in self.parts
        ]
        kind = "" if parts else ' class="missing"'
        again = "Run it again:" if parts else "Not measured yet. To measure it:"
        body = "\n".join(parts)
        return (
            f'<section id="{self.anchor}"{kind}>\n<h2>{escape(self.title)}</h2>\n'
            f"<p>{escape(self.lead)}</p>\n{body}\n"
            f'<div class="again">{again}<pre><code>{escape(self.command)}</code></pre></div>\n'
            "</section>"
        )


def page(title: str, lead: str, sections: Sequence[Section], end: str) -> str:
    """The whole page as text."""
    style = resources.files("dragoman.paper").joinpath("page.css").read_text(encoding="utf-8")
    links = "\n".join(f'<li><a href="#{s.anchor}">{escape(s.title)}</a></li>' for s in sections)
    body = "\n".join(section.html() for section in sections)
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
<p class="lead">{escape(lead)}</p>
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
