"""All figures of the paper in one directory, with a list that says what each shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from dragoman.errors import ConfigError, DataError
from dragoman.inference import Translator
from dragoman.paper.figures.attention import (
    KINDS,
    LAW,
    SPIRIT,
    Choice,
    Drawn,
    draw_figure3,
    draw_figure4,
    draw_figure5,
    draw_source_attention,
)
from dragoman.paper.figures.attention_words import look
from dragoman.paper.figures.dot_products import DotProducts, draw_dot_products, measure_dot_products
from dragoman.paper.figures.formulas import draw_learning_rate, draw_positions
from dragoman.system.atomic_files import atomic_write

__all__ = ["DOT_PRODUCTS", "LIST", "draw_all", "read_list"]

LIST: Final = "figures.json"
DOT_PRODUCTS: Final = "dot-products.json"
"""The numbers behind the picture of that name."""


def draw_all(
    translator: Translator | None,
    out: Path,
    *,
    sentence: str | None = None,
    target: str | None = None,
    layer: int | None = None,
    heads: Sequence[int] = (),
    word: str | None = None,
    pieces: bool = False,
) -> list[Path]:
    """Draw Figures 3 to 5 and the paper's formulas into `out`; the files written, the list last.

    Without a sentence the paper's own are drawn, without a translator what needs no model.
    `target` is a translation of the sentence, by default the model's own. Layer and heads are
    counted from 1; what is not given is chosen by the rules of `attention_choice`.
    """
    if sentence is None and not (word is None and target is None):
        raise ConfigError("a word or a translation belongs to a sentence; give --sentence too")
    drawn: list[Drawn] = []
    if translator is not None:
        choice = Choice(layer=layer, heads=tuple(heads), word=word)
        law = look(translator, LAW if sentence is None else sentence, target, pieces=pieces)
        spirit = law if sentence is not None else look(translator, SPIRIT, "", pieces=pieces)
        drawn += [
            draw_figure3(spirit, out, choice),
            draw_figure4(law, out, choice),
            draw_figure5(law, out, choice),
        ]
        if law.to_source:
            drawn.append(draw_source_attention(law, out))
    found = measure_dot_products()
    drawn += _formulas(found, out)
    tables = {DOT_PRODUCTS: found.to_json(), LIST: [asdict(one) for one in drawn]}
    for file, table in tables.items():
        atomic_write(out / file, json.dumps(table, indent=2, ensure_ascii=False) + "\n")
    return [*(out / file for one in drawn for file in one.files), *(out / file for file in tables)]


def read_list(out: Path) -> list[Drawn]:
    """What `draw_all` drew into a directory."""
    file = out / LIST
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
        return [
            Drawn(**one | {"files": tuple(one["files"]), "heads": tuple(one["heads"])})
            for one in table
        ]
    except FileNotFoundError:
        raise DataError(f"{out}: no figures here; draw them with dragoman paper figures") from None
    except (OSError, ValueError, TypeError, KeyError):
        raise DataError(f"{file}: not a list of figures; draw them again") from None


def _formulas(found: DotProducts, out: Path) -> list[Drawn]:
    """What needs no model."""
    last = found.widths[-1]
    return [
        _picture(
            "positions",
            out,
            draw_positions,
            "Positional encoding (§3.5): sines in the even dimensions, cosines in the odd ones, "
            "in waves of 2π to 10000 · 2π positions.",
        ),
        _picture(
            "learning-rate",
            out,
            draw_learning_rate,
            "Learning rate (§5.3, eq. 3) for several d_model and warm-ups. Each peak, marked, is "
            "at the end of the warm-up.",
        ),
        _picture(
            "dot-products",
            out,
            partial(draw_dot_products, found),
            f"Why attention divides by √d_k (§3.2.1, footnote 4): {found.queries:,} random "
            f"queries with {found.keys} keys each, components of mean 0 and variance 1. At d_k = "
            f"{last.d_k} the variance of q · k is {last.plain.variance:.0f}, and half of the "
            f"queries have a softmax gradient below {last.plain.gradient:.1g}; divided, they are "
            f"{last.scaled.variance:.2f} and {last.scaled.gradient:.2g}.",
        ),
    ]


def _picture(name: str, out: Path, draw: Callable[[Path], None], caption: str) -> Drawn:
    files = tuple(f"{name}{kind}" for kind in KINDS)
    for file in files:
        draw(out / file)
    return Drawn(name=name, files=files, caption=caption)
