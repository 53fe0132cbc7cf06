"""One sentence as one file that needs nothing else: attention, the search and the numbers."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Final

from dragoman.errors import ModelError
from dragoman.inference import Translator
from dragoman.inspection.attention import PARTS, attention
from dragoman.inspection.beam_tree import beam_tree
from dragoman.inspection.model_numbers import layers_of, numbers
from dragoman.system.atomic_files import atomic_write

__all__ = ["Inspection", "bundle", "inspect"]

PAGE: Final = Path(__file__).parents[1] / "serve" / "page"
"""What the service shows; the same files draw here."""
COLUMNS: Final = 128
"""Of wide matrices, as many are coloured here as keep the file small."""

_IMPORT: Final = re.compile(r'^import \{ ([\w, ]+) \} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Inspection:
    """What there is to see of one sentence."""

    data: dict[str, Any]

    def html(self) -> str:
        """The page, whole; it loads nothing."""
        style, script = (PAGE / "style.css").read_text("utf-8"), bundle("alone")
        data = json.dumps(self.data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        policy = (
            f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )
        title = escape(self.data["attention"]["text"])
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            f"<title>{title} · Dragoman</title>\n<style>{style}</style>\n</head>\n<body>\n"
            f'<div id="app"></div>\n<script type="application/json" id="data">{data}</script>\n'
            f"<script>{script}</script>\n</body>\n</html>\n"
        )

    def save(self, path: Path | str) -> Path:
        """Write the page to a file."""
        path = Path(path)
        atomic_write(path, self.html())
        return path

    def _repr_html_(self) -> str:
        """For notebooks: the page in a frame of its own."""
        frame = 'width="100%" height="820" style="border:0"'
        return f'<iframe srcdoc="{escape(self.html())}" {frame}></iframe>'


def inspect(translator: Translator, text: str, *, translation: str | None = None) -> Inspection:
    """Look at a sentence and its translation, the model's own if none is given."""
    seen = attention(translator, text, translation)
    data: dict[str, Any] = {
        "attention": seen.to_dict(),
        "beam": beam_tree(translator, text).to_dict(),
        "languages": list(translator.config.data.languages),
    }
    try:
        layers = layers_of(translator)
    except ModelError:
        return Inspection(data)  # not computed as the paper's formulas say: the rest is to be seen
    said = seen.pair.translation
    data["steps"] = {
        part: [
            numbers(translator, text, said, part, layer).to_dict(COLUMNS)
            for layer in range(layers[part])
        ]
        for part in PARTS
    }
    return Inspection(data)


def bundle(name: str) -> str:
    """A module of the page with all it imports, as one script without imports.

    Each becomes a function that returns what it exports, called where it is first needed.
    """
    found: dict[str, str] = {}
    _add(name, found)
    body = "\n".join(found.values())
    return f'"use strict";\n{body}'.replace("</", "<\\/")


def _add(name: str, found: dict[str, str]) -> None:
    if name in found:
        return
    text = (PAGE / f"{name}.js").read_text("utf-8")
    for _, other in _IMPORT.findall(text):
        _add(other, found)
    exports = ", ".join(_EXPORT.findall(text))
    text = _EXPORT.sub("", _IMPORT.sub(r"const { \1 } = page_\2;\n", text))
    found[name] = f"const page_{name} = (() => {{\n{text}\nreturn {{ {exports} }};\n}})();"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
