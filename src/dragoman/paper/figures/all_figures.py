"""All figures of the paper are drawn to one directory, with a list that says what each shows."""

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
    FORMATS,
    LAW_SENTENCE,
    SPIRIT_SENTENCE,
    FigureOptions,
    FigureRecord,
    draw_figure3,
    draw_figure4,
    draw_figure5,
    draw_source_attention,
)
from dragoman.paper.figures.attention_words import compute_attention
from dragoman.paper.figures.formulas import (
    DotProducts,
    draw_dot_products,
    draw_learning_rate,
    draw_positions,
    measure_dot_products,
)
from dragoman.system.atomic_files import atomic_write

FIGURE_LIST: Final = "figures.json"
DOT_PRODUCTS: Final = "dot-products.json"
"""The file of the numbers behind the picture of that name."""


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
    """Draw Figures 3 to 5 and the paper's formulas into `out`, and return the files, the list last.

    Without a sentence the paper's own are drawn, without a translator only what needs no model.
    `target` is a translation of the sentence, by default the model's own. Layer and heads are
    counted from 1; what is not given is chosen by the rules in `attention`.
    """
    if sentence is None and not (word is None and target is None):
        raise ConfigError("a word or a translation needs its sentence; give --sentence, too")
    drawn: list[FigureRecord] = []
    if translator is not None:
        choice = FigureOptions(layer=layer, heads=tuple(heads), word=word)
        law = compute_attention(
            translator, LAW_SENTENCE if sentence is None else sentence, target, pieces=pieces
        )
        spirit = (
            law
            if sentence is not None
            else compute_attention(translator, SPIRIT_SENTENCE, "", pieces=pieces)
        )
        drawn += [
            draw_figure3(spirit, out, choice),
            draw_figure4(law, out, choice),
            draw_figure5(law, out, choice),
        ]
        if law.to_source:
            drawn.append(draw_source_attention(law, out))
    found = measure_dot_products()
    drawn += _draw_formulas(found, out)
    tables = {DOT_PRODUCTS: found.to_json(), FIGURE_LIST: [asdict(one) for one in drawn]}
    for file, table in tables.items():
        atomic_write(out / file, json.dumps(table, indent=2, ensure_ascii=False) + "\n")
    return [*(out / file for one in drawn for file in one.files), *(out / file for file in tables)]


def read_list(out: Path) -> list[FigureRecord]:
    """Return the records of what `draw_all` drew into a directory."""
    file = out / FIGURE_LIST
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
        return [
            FigureRecord(**one | {"files": tuple(one["files"]), "heads": tuple(one["heads"])})
            for one in table
        ]
    except FileNotFoundError:
        raise DataError(f"{out}: no figures here; draw them with dragoman paper figures") from None
    except (OSError, ValueError, TypeError, KeyError):
        raise DataError(f"{file}: not a list of figures; draw them again") from None


def _draw_formulas(found: DotProducts, out: Path) -> list[FigureRecord]:
    """Draw what needs no model."""
    last = found.widths[-1]
    return [
        _draw_formula(
            "positions",
            out,
            draw_positions,
            "Positional encoding (§3.5): sines in the even dimensions, cosines in the odd ones, "
            "in waves of 2π to 10000 · 2π positions.",
        ),
        _draw_formula(
            "learning-rate",
            out,
            draw_learning_rate,
            "Learning rate (§5.3, eq. 3) for several d_model and warm-ups. Each peak, marked, is "
            "at the end of the warm-up.",
        ),
        _draw_formula(
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


def _draw_formula(name: str, out: Path, draw: Callable[[Path], None], caption: str) -> FigureRecord:
    files = tuple(f"{name}{kind}" for kind in FORMATS)
    for file in files:
        draw(out / file)
    return FigureRecord(name=name, files=files, caption=caption)
