"""One HTML file shows a sentence's attention, its beam search and every layer's numbers.

The file loads nothing: the scripts and the style of the service's page are written into it.
"""

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
from dragoman.inspection import PAGE
from dragoman.inspection.attention import PARTS, compute_attention
from dragoman.inspection.beam_tree import build_beam_tree
from dragoman.inspection.layer_activations import compute_activations, count_layers
from dragoman.inspection.sentence_pair import Inspectable
from dragoman.system.atomic_files import atomic_write

COLUMNS: Final = 128
"""So many columns of a wide matrix are coloured; more would make the file large."""

_IMPORT: Final = re.compile(r'^import \{ ([\w, ]+) \} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Inspection:
    """Hold what can be shown of one sentence."""

    data: dict[str, Any]

    def html(self) -> str:
        """Return the whole page, which loads nothing."""
        style, script = (PAGE / "style.css").read_text("utf-8"), bundle("saved_page")
        data = json.dumps(self.data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        policy = (
            f"default-src 'none'; style-src {_policy_hash(style)}; "
            f"script-src {_policy_hash(script)}; img-src data:; base-uri 'none'; form-action 'none'"
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
        """Write the page to a file and return its path."""
        path = Path(path)
        atomic_write(path, self.html())
        return path

    def _repr_html_(self) -> str:
        """Show the page in a frame in a notebook."""
        frame = 'width="100%" height="820" style="border:0"'
        return f'<iframe srcdoc="{escape(self.html())}" {frame}></iframe>'


def inspect(translator: Inspectable, text: str, *, translation: str | None = None) -> Inspection:
    """Collect everything the page shows of a sentence and its translation.

    The translation is the model's own if none is given.
    """
    attention = compute_attention(translator, text, translation)
    data: dict[str, Any] = {
        "attention": attention.to_dict(),
        "beam": build_beam_tree(translator, text).to_dict(),
        "languages": list(translator.config.data.languages),
    }
    try:
        layers = count_layers(translator)
    except ModelError:
        return Inspection(data)  # only a Transformer is computed by the paper's formulas
    translation = attention.pair.translation
    data["steps"] = {
        part: [
            compute_activations(translator, text, translation, part, layer).to_dict(COLUMNS)
            for layer in range(layers[part])
        ]
        for part in PARTS
    }
    return Inspection(data)


def bundle(name: str) -> str:
    """Return a JavaScript module of the page with all it imports, as one script without imports.

    Each module becomes a function that returns its exports, called where it is first needed.
    """
    modules: dict[str, str] = {}
    _add_module(name, modules)
    body = "\n".join(modules.values())
    return f'"use strict";\n{body}'.replace("</", "<\\/")


def _add_module(name: str, modules: dict[str, str]) -> None:
    """Add a module to `modules`, after those that it imports."""
    if name in modules:
        return
    text = (PAGE / f"{name}.js").read_text("utf-8")
    for _, other in _IMPORT.findall(text):
        _add_module(other, modules)
    exports = ", ".join(_EXPORT.findall(text))
    text = _EXPORT.sub("", _IMPORT.sub(r"const { \1 } = page_\2;\n", text))
    modules[name] = f"const page_{name} = (() => {{\n{text}\nreturn {{ {exports} }};\n}})();"


def _policy_hash(text: str) -> str:
    """Return a hash as a content security policy has it."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
