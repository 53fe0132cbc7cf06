"""Figures 3, 4 and 5, and attention to the source, are drawn for any model and sentence.

They are drawn as in the paper: two columns of words, and lines as strong as the weights.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.inspection.plotting import TEXT_COLOUR, check_format, save_figure, style
from dragoman.paper.figures.attention_words import SentenceAttention

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# H heads, T query words, S key words; the last of each is the end of its sentence

Weights: TypeAlias = NDArray[np.floating[Any]]

THRESHOLD: Final = 0.02
"""The weight below which a line is not drawn, as it could not be seen."""

CHOICE_RULES: Final = {
    "layer": "the layer nearest to five sixths of the way up, as the paper's layer 5 of 6",
    "farthest_word": "the word (no mark) whose heads look farthest: for each head the largest "
    "product of weight and distance, added up",
    "sharpest_word": "the word (no mark) from which one head has the most weight on a word that is "
    "not its neighbour",
    "sharpest_heads": "those with the most weight from there on any one other word",
    "different_heads": "the head that on average has the most weight on one other word, and the "
    "head that has the most where the first does not look",
}
"""The rules by the name of the function that follows each; `paper_layer` follows the first."""
SPIRIT_SENTENCE: Final = (
    "It is in this spirit that a majority of American governments have passed new laws since 2009 "
    "making the registration or voting process more difficult."
)
LAW_SENTENCE: Final = (
    "The Law will never be perfect, but its application should be just - this is what we are "
    "missing, in my opinion."
)
FORMATS: Final = (".svg", ".png")
"""The formats that every picture is written in."""
_STRENGTH: Final = f"A line is as opaque as its weight; weights below {THRESHOLD} are not drawn."


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOptions:
    """Say what to draw; what is not given is chosen by the rules."""

    layer: int | None = None
    """Is counted from 1, as heads are."""
    heads: tuple[int, ...] = ()
    word: str | None = None


_DEFAULT_OPTIONS: Final = FigureOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRecord:
    """Describe a picture that was drawn, for the report."""

    name: str
    files: tuple[str, ...]
    """Names the same picture as SVG and as PNG."""
    caption: str
    sentence: str | None = None
    layer: int | None = None
    heads: tuple[int, ...] = ()
    word: str | None = None


def draw_figure3(
    attention: SentenceAttention, out: Path, options: FigureOptions = _DEFAULT_OPTIONS
) -> FigureRecord:
    """Draw what one word attends to, with all heads."""
    layer = _DrawnLayer.choose(attention, options)
    word, why = layer.word("making", farthest_word, "farthest_word")
    heads = layer.heads() or tuple(range(len(layer.weights)))
    panels = [Panel(heads, f"{layer.name}, from “{attention.source[word]}”", word)]
    caption = (
        f"What “{attention.source[word]}” looks at: encoder self-attention, {layer.name}, "
        f"{_list_heads(heads)}, a colour each."
    )
    return layer.draw("figure3", panels, out, caption, [why])


def draw_figure4(
    attention: SentenceAttention, out: Path, options: FigureOptions = _DEFAULT_OPTIONS
) -> FigureRecord:
    """Draw one head in full, and two heads from one word."""
    layer = _DrawnLayer.choose(attention, options)
    word, why = layer.word("its", sharpest_word, "sharpest_word")
    heads = layer.heads() or sharpest_heads(layer.weights, word)
    panels = [
        Panel(heads[:1], f"{layer.name}, head"),
        Panel(heads, f"from “{attention.source[word]}”", word),
    ]
    caption = (
        f"Encoder self-attention, {layer.name}: head {heads[0] + 1} in full, and what "
        f"“{attention.source[word]}” looks at with {_list_heads(heads)}."
    )
    return layer.draw("figure4", panels, out, caption, [why, layer.heads_rule("sharpest_heads")])


def draw_figure5(
    attention: SentenceAttention, out: Path, options: FigureOptions = _DEFAULT_OPTIONS
) -> FigureRecord:
    """Draw in full two heads that do different things."""
    layer = _DrawnLayer.choose(attention, options)
    heads = layer.heads() or different_heads(layer.weights)
    panels = [Panel((head,), f"{layer.name}, head") for head in heads]
    caption = f"Encoder self-attention, {layer.name}: {_list_heads(heads)} in full."
    return layer.draw("figure5", panels, out, caption, [layer.heads_rule("different_heads")])


def draw_source_attention(attention: SentenceAttention, out: Path) -> FigureRecord:
    """Draw where the last decoder layer attends in the source to produce each target word."""
    if not attention.to_source:
        raise ModelError(
            "this model's decoder has no attention to the source, so there is none to draw; "
            "choose another model"
        )
    *_, weights = attention.to_source.values()
    heads = different_heads(weights, itself=False)
    panels = [Panel((head,), "last layer, head") for head in heads]
    names = ("translation", "source")
    return FigureRecord(
        name="source-attention",
        files=_draw(
            "source-attention", out, weights, attention.target, attention.source, panels, names
        ),
        caption="Where the decoder looks to say each word: attention to the source, last layer, "
        f"{_list_heads(heads)} in full. {_STRENGTH} Heads: {CHOICE_RULES['different_heads']}.",
        sentence=attention.sentence,
        heads=tuple(head + 1 for head in heads),
    )


@dataclass(frozen=True, slots=True)
class _DrawnLayer:
    """Hold the layer whose self-attention is drawn, and how it was chosen."""

    attention: SentenceAttention
    options: FigureOptions
    number: int
    weights: Weights

    @classmethod
    def choose(cls, attention: SentenceAttention, options: FigureOptions) -> Self:
        layers = list(attention.encoder.values())
        if not layers:
            raise ModelError(
                "no layer of this model's encoder attends to its own sentence, so there is nothing "
                "to draw as in Figures 3 to 5; choose a model with self-attention"
            )
        number = paper_layer(len(layers)) if options.layer is None else options.layer
        if not 1 <= number <= len(layers):
            raise ConfigError(
                f"layer {number} of an encoder of {len(layers)}; choose 1 to {len(layers)}"
            )
        return cls(attention, options, number, layers[number - 1])

    @property
    def name(self) -> str:
        return f"layer {self.number} of {len(self.attention.encoder)}"

    def word(
        self, papers: str, choose: Callable[[Weights, Sequence[int]], int], rule: str
    ) -> tuple[int, str]:
        """Return which word and why: the given one, the paper's in its own sentence, or by rule."""
        words = self.attention.source
        if self.options.word is not None:
            return find_word(words, self.options.word), ""
        if self.attention.sentence in (SPIRIT_SENTENCE, LAW_SENTENCE) and papers in words:
            return words.index(papers), "Word: the paper's."
        letters = [i for i, word in enumerate(words[:-1]) if any(map(str.isalnum, word))]
        return choose(self.weights, letters or [0]), f"Word: {CHOICE_RULES[rule]}."

    def heads(self) -> tuple[int, ...]:
        """Return the given heads, counted from 0."""
        return _check_heads(self.options.heads, len(self.weights))

    def heads_rule(self, rule: str) -> str:
        return "" if self.options.heads else f"Heads: {CHOICE_RULES[rule]}."

    def draw(
        self, name: str, panels: Sequence[Panel], out: Path, caption: str, rules: list[str]
    ) -> FigureRecord:
        words = self.attention.source
        names = ("looks", "is looked at")
        if self.options.layer is None:
            rules = [f"Layer: {CHOICE_RULES['layer']}.", *rules]
        return FigureRecord(
            name=name,
            files=_draw(name, out, self.weights, words, words, panels, names),
            caption=" ".join([caption, _STRENGTH, *filter(None, rules)]),
            sentence=self.attention.sentence,
            layer=self.number,
            heads=tuple(dict.fromkeys(head + 1 for panel in panels for head in panel.heads)),
            word=next((words[p.word] for p in panels if p.word is not None), None),
        )


def _draw(
    name: str,
    out: Path,
    weights: Weights,
    query_words: Sequence[str],
    key_words: Sequence[str],
    panels: Sequence[Panel],
    columns: tuple[str, str],
) -> tuple[str, ...]:
    files = tuple(f"{name}{kind}" for kind in FORMATS)
    for file in files:
        draw_lines(weights, query_words, key_words, panels, out / file, columns=columns)
    return files


def _check_heads(heads: tuple[int, ...], count: int) -> tuple[int, ...]:
    for head in heads:
        if not 1 <= head <= count:
            raise ConfigError(f"head {head} of a layer with {count}; choose 1 to {count}")
    return tuple(head - 1 for head in heads)


def _list_heads(heads: Sequence[int]) -> str:
    numbers = [str(head + 1) for head in heads]
    if len(numbers) == 1:
        return f"head {numbers[0]}"
    return f"heads {', '.join(numbers[:-1])} and {numbers[-1]}"


# --- default choices: the end of the sentence and the word itself count nowhere, because heads with
# nothing to do attend to these ---


def paper_layer(layers: int) -> int:
    """Return the layer to draw, counted from 1: 5 of 6."""
    return max(1, round(layers * 5 / 6))


def farthest_word(weights_HSS: Weights, words: Sequence[int]) -> int:
    """Return one of `words` by the rule of this name in CHOICE_RULES."""
    reach_S = (_mask_self_and_end(weights_HSS) * _distance(weights_HSS)).max(-1).sum(0)
    return max(words, key=lambda word: reach_S[word])


def sharpest_word(weights_HSS: Weights, words: Sequence[int]) -> int:
    """Return one of `words` by the rule of this name in CHOICE_RULES."""
    far_S = np.where(_distance(weights_HSS) > 1, _mask_self_and_end(weights_HSS), 0).max((0, 2))
    return max(words, key=lambda word: far_S[word])


def sharpest_heads(weights_HSS: Weights, word: int, count: int = 2) -> tuple[int, ...]:
    """Return heads by the rule of this name in CHOICE_RULES, the sharpest first."""
    order = np.argsort(-_mask_self_and_end(weights_HSS)[:, word].max(-1), kind="stable")
    return tuple(map(int, order[:count]))


def different_heads(weights_HTS: Weights, *, itself: bool = True) -> tuple[int, ...]:
    """Return two heads, or the only one, by the rule of this name in CHOICE_RULES.

    With `itself` queries and keys are words of the same sentence.
    """
    others_HTS = _mask_self_and_end(weights_HTS, itself)[:, :-1]
    first = int(others_HTS.max(-1).mean(-1).argmax())
    elsewhere_H = (others_HTS - others_HTS[first]).max(-1).mean(-1)
    elsewhere_H[first] = -1
    return (first, int(elsewhere_H.argmax())) if len(weights_HTS) > 1 else (first,)


def find_word(words: Sequence[str], word: str) -> int:
    """Return where a word stands first, ignoring case if need be."""
    for fold in (str, str.casefold):
        folded = [fold(one) for one in words]
        if fold(word) in folded:
            return folded.index(fold(word))
    raise ConfigError(f"the sentence has no word '{word}'; choose one of: {' '.join(words)}")


def _mask_self_and_end(weights_HTS: Weights, itself: bool = True) -> Weights:
    """Return the weights without those on the end of the sentence and on the word itself."""
    others = weights_HTS.copy()
    others[:, :, -1] = 0
    if itself:
        others[:, _distance(weights_HTS) == 0] = 0
    return others


def _distance(weights_HSS: Weights) -> NDArray[np.int64]:
    places = np.arange(weights_HSS.shape[-1])
    distance_SS: NDArray[np.int64] = np.abs(places[:, None] - places)
    return distance_SS


# --- lines between two columns of words ---

Columns: TypeAlias = tuple[float, float, float]
"""Where lines begin, where they end, and where squares end, from the left."""

_PALE: Final = "#9aa3b1"
_SIZE: Final = 9.0
_MAX_LETTERS: Final = 28  # letters of a word

# In inches: a word's row, the room for lines and for titles, the space beside words and between
# panels, a head's square; and within which height the lines of several heads end at one word.
_ROW, _LINES, _TITLE, _GAP, _BETWEEN, _SQUARE, _FAN = 0.2, 2.2, 0.5, 0.07, 0.5, 0.13, 0.1


@dataclass(frozen=True, slots=True)
class Panel:
    """Say what is drawn between two columns of words."""

    heads: tuple[int, ...]
    """Are counted from 0."""
    title: str = ""
    word: int | None = None
    """Names the only word whose lines are drawn, with a square for every head; None draws all."""


def head_colour(head: int, heads: int) -> tuple[float, float, float]:
    """Return the colour of a head, each of its own hue."""
    return colorsys.hls_to_rgb(head / heads, 0.36 + 0.12 * (head % 2), 0.75)


def visible_lines(weights_HTS: Weights, panel: Panel) -> list[tuple[int, int, int, float]]:
    """Return the lines of a panel: head, query word, key word, weight."""
    words = range(weights_HTS.shape[1]) if panel.word is None else [panel.word]
    return [
        (head, t, int(s), float(weights_HTS[head, t, s]))
        for head in panel.heads
        for t in words
        for s in np.flatnonzero(weights_HTS[head, t] >= THRESHOLD)
    ]


def draw_lines(
    weights_HTS: Weights,
    query_words: Sequence[str],
    key_words: Sequence[str],
    panels: Sequence[Panel],
    path: Path,
    *,
    columns: tuple[str, str] = ("", ""),
) -> None:
    """Draw panels side by side to a .png, .svg or .pdf; a line's opacity is its weight.

    The query words stand on the left, the key words on the right, each below the name of their
    column.
    """
    check_format(path)
    H, T, S = weights_HTS.shape
    query_words, key_words = list(map(_shortened, query_words)), list(map(_shortened, key_words))
    if (len(query_words), len(key_words)) != (T, S):
        raise DragomanError(
            f"attention weights of {H} × {T} × {S} do not fit {len(query_words)} query words and "
            f"{len(key_words)} key words"
        )
    with style("".join([*query_words, *key_words, *columns, *(panel.title for panel in panels)])):
        from matplotlib.figure import Figure

        left, right = _widest([*query_words, columns[0]]), _widest([*key_words, columns[1]])
        strips = [_SQUARE * len(p.heads) if p.word is not None else 0.0 for p in panels]
        width = sum(strips) + len(panels) * (left + _LINES + right + _BETWEEN) - _BETWEEN
        height = _TITLE + _ROW * max(T, S)
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        start = 0.0
        for number, (panel, strip) in enumerate(zip(panels, strips, strict=True)):
            edges = start + left, start + left + _LINES, start + left + _LINES + strip
            axes.text(start, 0.1, panel.title, va="center", fontsize=10)
            _words(axes, query_words, key_words, panel, edges, columns)
            _lines(axes, weights_HTS, panel, edges, f"panel-{number + 1}")
            _name_heads(axes, panel, H, edges, start + _widest([panel.title], 10))
            start = edges[2] + right + _BETWEEN
        save_figure(figure, path)


def _shortened(word: str) -> str:
    return word if len(word) <= _MAX_LETTERS else f"{word[: _MAX_LETTERS - 1]}…"


def _widest(texts: Sequence[str], size: float = _SIZE) -> float:
    """Return the width of the widest text in inches, with a little more for other fonts."""
    from matplotlib.figure import Figure

    scratch = Figure(dpi=100)
    widths = [scratch.text(0, 0, text, fontsize=size).get_window_extent().width for text in texts]
    return float(max(widths)) / 100 * 1.03 + _GAP


def _y(row: int) -> float:
    return _TITLE + _ROW * (row + 0.5)


def _words(
    axes: Axes,
    query_words: Sequence[str],
    key_words: Sequence[str],
    panel: Panel,
    edges: Columns,
    columns: tuple[str, str],
) -> None:
    options: Any = {"va": "center_baseline", "fontsize": _SIZE}
    for row, text in enumerate(query_words):
        chosen = row == panel.word
        box = {"boxstyle": "round,pad=0.15", "facecolor": "#dfe4ec", "linewidth": 0}
        axes.text(
            edges[0] - _GAP,
            _y(row),
            text,
            **options,
            ha="right",
            color=TEXT_COLOUR if chosen or panel.word is None else _PALE,
            bbox=box if chosen else None,
        )
    for row, text in enumerate(key_words):
        axes.text(edges[2] + _GAP, _y(row), text, **options, ha="left", color=TEXT_COLOUR)
    names: Any = {"va": "center", "fontsize": 8, "color": _PALE}
    axes.text(edges[0] - _GAP, _TITLE - 0.1, columns[0], **names, ha="right")
    axes.text(edges[2] + _GAP, _TITLE - 0.1, columns[1], **names, ha="left")


def _lines(axes: Axes, weights_HTS: Weights, panel: Panel, edges: Columns, name: str) -> None:
    """Draw the lines of each head, and squares if they are from one word."""
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Rectangle

    drawn = visible_lines(weights_HTS, panel)
    for place, head in enumerate(panel.heads):
        mine = [(t, s, weight) for h, t, s, weight in drawn if h == head]
        shift = _FAN * ((place + 0.5) / len(panel.heads) - 0.5)
        ends = [((edges[0], _y(t)), (edges[1], _y(s) + shift)) for t, s, _ in mine]
        paint = [(*head_colour(head, len(weights_HTS)), weight) for _, _, weight in mine]
        id_ = f"{name}-head-{head + 1}"
        axes.add_collection(LineCollection(ends, colors=paint, linewidths=1.7, gid=id_))
        if panel.word is not None:
            x, size = edges[1] + _SQUARE * place, 0.85 * _SQUARE
            squares = [Rectangle((x, _y(s) - size / 2), size, size) for _, s, _ in mine]
            axes.add_collection(
                PatchCollection(squares, facecolors=paint, linewidths=0, gid=f"{id_}-squares")
            )


def _name_heads(axes: Axes, panel: Panel, heads: int, edges: Columns, after: float) -> None:
    """Write the heads' numbers in their colours: above their squares, or after the title."""
    for place, head in enumerate(panel.heads):
        where = (after + 0.2 * place, 0.1)
        if panel.word is not None:
            where = (edges[1] + _SQUARE * (place + 0.42), _TITLE - 0.1)
        size = 10 if panel.word is None else 8 if heads < 10 else 6.5
        options: Any = {"ha": "center", "va": "center", "fontsize": size}
        axes.text(*where, str(head + 1), **options, color=head_colour(head, heads))
