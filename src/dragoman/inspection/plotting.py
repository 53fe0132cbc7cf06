"""All pictures share a style, fonts for any script, and a way to save them atomically."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.errors import DragomanError
from dragoman.system.atomic_files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: Final = (".png", ".svg", ".pdf")
TEXT_COLOUR: Final = "#27303f"
_DEFAULT_FONT: Final = "DejaVu Sans"  # comes with Matplotlib


def check_format(path: Path) -> None:
    """Raise an error if no picture can be written to this name, before it is drawn."""
    if path.suffix.lower() not in FORMATS:
        raise DragomanError(f"{path}: a picture can be one of {', '.join(FORMATS)}; rename it")


@contextmanager
def style(text: str = "") -> Iterator[None]:
    """Draw in Dragoman's style inside the block, with fonts that have the characters of the text.

    A character that no font has becomes an empty box in a PNG; an SVG leaves it to its viewer.
    """
    import matplotlib as mpl

    settings: Any = {
        "font.family": _families(text),
        "font.size": 9,
        "text.color": TEXT_COLOUR,
        "axes.labelcolor": TEXT_COLOUR,
        "axes.edgecolor": "#b8bfca",
        "axes.titlecolor": TEXT_COLOUR,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e9ecf1",
        "xtick.color": "#6b7585",
        "xtick.major.size": 0,
        "ytick.color": "#6b7585",
        "ytick.major.size": 0,
        "legend.frameon": False,
        "text.parse_math": False,  # a dollar is a dollar
        "svg.fonttype": "none",
        "svg.hashsalt": "dragoman",  # the same picture is the same file
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        yield


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to `path`, in the format of its suffix."""
    kind = path.suffix.lower()[1:]
    picture = io.BytesIO()
    metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    if kind == "pdf":
        metadata = {"CreationDate": None}
    figure.savefig(picture, format=kind, dpi=160, bbox_inches="tight", metadata=metadata)
    atomic_write(path, picture.getvalue())


def has_missing_glyphs(text: str) -> bool:
    """Return whether the text has a character that no installed font has."""
    from matplotlib import font_manager

    fonts = {font.name: font.fname for font in font_manager.fontManager.ttflist}
    # Matplotlib's last resort has a box for every letter there is.
    families = [name for name in _families(text) if not name.startswith("Last Resort")]
    known = {c for name in families for c in _characters(fonts[name])}
    return not known.issuperset(ord(c) for c in text if not c.isspace())


def _families(text: str) -> list[str]:
    """Return the default font, and others for the characters that it lacks."""
    from matplotlib import font_manager

    families = [_DEFAULT_FONT]
    missing = {ord(c) for c in text if not c.isspace()} - _characters(
        font_manager.findfont(_DEFAULT_FONT)
    )
    fonts = {font.name: font.fname for font in font_manager.fontManager.ttflist}
    # Sans serif first.
    for name in sorted(fonts, key=lambda name: ("Sans" not in name and "Gothic" not in name, name)):
        if not missing:
            break
        if found := missing & _characters(fonts[name]):
            families.append(name)
            missing -= found
    return families


@cache
def _characters(font: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(font).get_charmap())
    except (OSError, RuntimeError):  # an installed font that cannot be read
        return frozenset()
