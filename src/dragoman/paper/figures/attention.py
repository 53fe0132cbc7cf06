"""Figures 3, 4 and 5 of the paper, and attention to the source, for any model and sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError, ModelError
from dragoman.paper.figures.attention_lines import THRESHOLD, Panel, draw_lines
from dragoman.paper.figures.attention_words import Looks

__all__ = [
    "KINDS",
    "LAW",
    "RULES",
    "SPIRIT",
    "Choice",
    "Drawn",
    "different_heads",
    "draw_figure3",
    "draw_figure4",
    "draw_figure5",
    "draw_source_attention",
    "farthest_word",
    "find_word",
    "paper_layer",
    "sharpest_heads",
    "sharpest_word",
]


# PART paper.attention_choice: Which layer, word and heads are drawn when nobody says: rules,
# and how a caption states them.
#
# The end of the sentence counts nowhere, nor does a word's look at itself: heads with nothing
# to do rest there.


# H heads, T words that look, S words they look at; the last of each is the end of its sentence


Weights: TypeAlias = NDArray[np.floating[Any]]

RULES: Final = {
    "layer": "the layer nearest to five sixths of the way up, as the paper's layer 5 of 6",
    "farthest_word": "the word (no mark) whose heads look farthest: for each head the largest "
    "product of weight and distance, added up",
    "sharpest_word": "the word (no mark) from which one head has the most weight on a word that is "
    "not its neighbour",
    "sharpest_heads": "those with the most weight from there on any one other word",
    "different_heads": "the head that on average has the most weight on one other word, and the "
    "head that has the most where the first does not look",
}
"""By the name of the function that follows it; `paper_layer` follows the first."""


def paper_layer(layers: int) -> int:
    """The layer to draw, counted from 1: 5 of 6."""
    return max(1, round(layers * 5 / 6))


def farthest_word(weights_HSS: Weights, words: Sequence[int]) -> int:
    """See RULES; one of `words`."""
    reach_S = (_others(weights_HSS) * _distance(weights_HSS)).max(-1).sum(0)
    return max(words, key=lambda word: reach_S[word])


def sharpest_word(weights_HSS: Weights, words: Sequence[int]) -> int:
    """See RULES; one of `words`."""
    far_S = np.where(_distance(weights_HSS) > 1, _others(weights_HSS), 0).max((0, 2))
    return max(words, key=lambda word: far_S[word])


def sharpest_heads(weights_HSS: Weights, word: int, count: int = 2) -> tuple[int, ...]:
    """See RULES; sharpest first."""
    order = np.argsort(-_others(weights_HSS)[:, word].max(-1), kind="stable")
    return tuple(map(int, order[:count]))


def different_heads(weights_HTS: Weights, *, itself: bool = True) -> tuple[int, ...]:
    """See RULES; one if there is but one. `itself`: both columns are the same sentence."""
    others_HTS = _others(weights_HTS, itself)[:, :-1]
    first = int(others_HTS.max(-1).mean(-1).argmax())
    elsewhere_H = (others_HTS - others_HTS[first]).max(-1).mean(-1)
    elsewhere_H[first] = -1
    return (first, int(elsewhere_H.argmax())) if len(weights_HTS) > 1 else (first,)


def find_word(words: Sequence[str], word: str) -> int:
    """Where a word stands first; letters of another case will do."""
    for fold in (str, str.casefold):
        folded = [fold(one) for one in words]
        if fold(word) in folded:
            return folded.index(fold(word))
    raise ConfigError(f"the sentence has no word '{word}'; choose one of: {' '.join(words)}")


def _others(weights_HTS: Weights, itself: bool = True) -> Weights:
    """The weights without those on the end, and without those on the word itself."""
    others = weights_HTS.copy()
    others[:, :, -1] = 0
    if itself:
        others[:, _distance(weights_HTS) == 0] = 0
    return others


def _distance(weights_HSS: Weights) -> NDArray[np.int64]:
    places = np.arange(weights_HSS.shape[-1])
    distance_SS: NDArray[np.int64] = np.abs(places[:, None] - places)
    return distance_SS


SPIRIT: Final = (
    "It is in this spirit that a majority of American governments have passed new laws since 2009 "
    "making the registration or voting process more difficult."
)
LAW: Final = (
    "The Law will never be perfect, but its application should be just - this is what we are "
    "missing, in my opinion."
)
KINDS: Final = (".svg", ".png")
"""How every picture is written."""
_STRENGTH: Final = f"A line is as opaque as its weight; weights below {THRESHOLD} are not drawn."


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to draw; what is not said is chosen by the rules."""

    layer: int | None = None
    """Counted from 1, as heads are."""
    heads: tuple[int, ...] = ()
    word: str | None = None


_BY_RULE: Final = Choice()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A picture that was drawn, as a report includes it."""

    name: str
    files: tuple[str, ...]
    """The same picture as SVG and as PNG."""
    caption: str
    sentence: str | None = None
    layer: int | None = None
    heads: tuple[int, ...] = ()
    word: str | None = None


def draw_figure3(looks: Looks, out: Path, choice: Choice = _BY_RULE) -> Drawn:
    """One word, all heads."""
    layer = _Layer.of(looks, choice)
    word, why = layer.word("making", farthest_word, "farthest_word")
    heads = layer.heads() or tuple(range(len(layer.weights)))
    panels = [Panel(heads, f"{layer.name}, from “{looks.source[word]}”", word)]
    caption = (
        f"What “{looks.source[word]}” looks at: encoder self-attention, {layer.name}, "
        f"{_listed(heads)}, a colour each."
    )
    return layer.draw("figure3", panels, out, caption, [why])


def draw_figure4(looks: Looks, out: Path, choice: Choice = _BY_RULE) -> Drawn:
    """One head in full, and two heads from one word."""
    layer = _Layer.of(looks, choice)
    word, why = layer.word("its", sharpest_word, "sharpest_word")
    heads = layer.heads() or sharpest_heads(layer.weights, word)
    panels = [
        Panel(heads[:1], f"{layer.name}, head"),
        Panel(heads, f"from “{looks.source[word]}”", word),
    ]
    caption = (
        f"Encoder self-attention, {layer.name}: head {heads[0] + 1} in full, and what "
        f"“{looks.source[word]}” looks at with {_listed(heads)}."
    )
    return layer.draw("figure4", panels, out, caption, [why, layer.heads_rule("sharpest_heads")])


def draw_figure5(looks: Looks, out: Path, choice: Choice = _BY_RULE) -> Drawn:
    """Two heads in full that do different things."""
    layer = _Layer.of(looks, choice)
    heads = layer.heads() or different_heads(layer.weights)
    panels = [Panel((head,), f"{layer.name}, head") for head in heads]
    caption = f"Encoder self-attention, {layer.name}: {_listed(heads)} in full."
    return layer.draw("figure5", panels, out, caption, [layer.heads_rule("different_heads")])


def draw_source_attention(looks: Looks, out: Path, choice: Choice = _BY_RULE) -> Drawn:
    """Where the last decoder layer looks in the source to say each word of the translation."""
    if not looks.to_source:
        raise ModelError(
            "this model's decoder has no attention to the source, so there is none to draw; "
            "choose another model"
        )
    *_, weights = looks.to_source.values()
    heads = _checked(choice.heads, len(weights)) or different_heads(weights, itself=False)
    panels = [Panel((head,), "last layer, head") for head in heads]
    rule = "" if choice.heads else f" Heads: {RULES['different_heads']}."
    names = ("translation", "source")
    return Drawn(
        name="source-attention",
        files=_draw("source-attention", out, weights, looks.target, looks.source, panels, names),
        caption="Where the decoder looks to say each word: attention to the source, last layer, "
        f"{_listed(heads)} in full. {_STRENGTH}{rule}",
        sentence=looks.sentence,
        heads=tuple(head + 1 for head in heads),
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """The self-attention that is drawn."""

    looks: Looks
    choice: Choice
    number: int
    weights: Weights

    @classmethod
    def of(cls, looks: Looks, choice: Choice) -> Self:
        layers = list(looks.encoder.values())
        if not layers:
            raise ModelError(
                "no layer of this model's encoder attends to its own sentence, so there is nothing "
                "to draw as in Figures 3 to 5; choose a model with self-attention"
            )
        number = paper_layer(len(layers)) if choice.layer is None else choice.layer
        if not 1 <= number <= len(layers):
            raise ConfigError(
                f"layer {number} of an encoder of {len(layers)}; choose 1 to {len(layers)}"
            )
        return cls(looks, choice, number, layers[number - 1])

    @property
    def name(self) -> str:
        return f"layer {self.number} of {len(self.looks.encoder)}"

    def word(
        self, papers: str, choose: Callable[[Weights, Sequence[int]], int], rule: str
    ) -> tuple[int, str]:
        """Which word, and why: the one asked for, the paper's in its own sentence, or by rule."""
        words = self.looks.source
        if self.choice.word is not None:
            return find_word(words, self.choice.word), ""
        if self.looks.sentence in (SPIRIT, LAW) and papers in words:
            return words.index(papers), "Word: the paper's."
        letters = [i for i, word in enumerate(words[:-1]) if any(map(str.isalnum, word))]
        return choose(self.weights, letters or [0]), f"Word: {RULES[rule]}."

    def heads(self) -> tuple[int, ...]:
        """Those asked for."""
        return _checked(self.choice.heads, len(self.weights))

    def heads_rule(self, rule: str) -> str:
        return "" if self.choice.heads else f"Heads: {RULES[rule]}."

    def draw(
        self, name: str, panels: Sequence[Panel], out: Path, caption: str, rules: list[str]
    ) -> Drawn:
        words = self.looks.source
        names = ("looks", "is looked at")
        if self.choice.layer is None:
            rules = [f"Layer: {RULES['layer']}.", *rules]
        return Drawn(
            name=name,
            files=_draw(name, out, self.weights, words, words, panels, names),
            caption=" ".join([caption, _STRENGTH, *filter(None, rules)]),
            sentence=self.looks.sentence,
            layer=self.number,
            heads=tuple(dict.fromkeys(head + 1 for panel in panels for head in panel.heads)),
            word=next((words[p.word] for p in panels if p.word is not None), None),
        )


def _draw(
    name: str,
    out: Path,
    weights: Weights,
    looking: Sequence[str],
    looked_at: Sequence[str],
    panels: Sequence[Panel],
    columns: tuple[str, str],
) -> tuple[str, ...]:
    files = tuple(f"{name}{kind}" for kind in KINDS)
    for file in files:
        draw_lines(weights, looking, looked_at, panels, out / file, columns=columns)
    return files


def _checked(heads: tuple[int, ...], count: int) -> tuple[int, ...]:
    for head in heads:
        if not 1 <= head <= count:
            raise ConfigError(f"head {head} of a layer with {count}; choose 1 to {count}")
    return tuple(head - 1 for head in heads)


def _listed(heads: Sequence[int]) -> str:
    numbers = [str(head + 1) for head in heads]
    if len(numbers) == 1:
        return f"head {numbers[0]}"
    return f"heads {', '.join(numbers[:-1])} and {numbers[-1]}"
