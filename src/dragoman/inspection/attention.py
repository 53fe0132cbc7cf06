"""The attention of every layer and head is computed for a sentence, and drawn as heat maps.

Heads can be disabled, to see what the translation is without them.
"""

# H heads, T target pieces, S source pieces

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.inspection import json_arrays
from dragoman.inspection.plotting import TEXT_COLOUR, check_format, save_figure, style
from dragoman.inspection.sentence_pair import Inspectable, SentencePair, encode_source, read_pair
from dragoman.models.attention import MultiHeadAttention, attention_modules, record_attention
from dragoman.search import Hypothesis, SearchOptions, search
from dragoman.search.batching import source_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Part = Literal["encoder", "decoder", "cross"]
PARTS: Final[tuple[Part, ...]] = ("encoder", "decoder", "cross")
"""Self-attention of the encoder, of the decoder, and the decoder's attention to the source."""


class Head(NamedTuple):
    """Identify one head of a model; layers and heads are counted from 0."""

    part: Part
    layer: int
    head: int


@dataclass(frozen=True, slots=True)
class Attention:
    """Hold where the pieces of a sentence and of its translation look."""

    pair: SentencePair
    weights: dict[Part, list[Tensor]]
    """By layer: H S S, H T T and H T S."""
    disabled: tuple[Head, ...] = ()
    before: Hypothesis | None = None
    """With heads disabled: what the same search finds with all heads."""
    after: Hypothesis | None = None
    """With heads disabled: what it finds without them."""
    text_before: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a table that JSON can hold."""
        pair = self.pair
        sides = {
            "encoder": (pair.source, pair.source),
            "decoder": (pair.predicted, pair.decoder_input),
            "cross": (pair.predicted, pair.source),
        }
        table: dict[str, Any] = {
            "text": pair.text,
            "translation": pair.translation,
            "parts": {
                part: {
                    "rows": list(sides[part][0]),
                    "columns": list(sides[part][1]),
                    "layers": [json_arrays.encode_weights(layer) for layer in layers],
                }
                for part, layers in self.weights.items()
                if layers
            },
        }
        if self.before is not None and self.after is not None:
            table["off"] = [head._asdict() for head in self.disabled]
            table["before"] = {"text": self.text_before, "score": _round_score(self.before)}
            table["after"] = {"text": pair.translation, "score": _round_score(self.after)}
        return table


@torch.no_grad()
def compute_attention(
    translator: Inspectable,
    text: str,
    translation: str | None = None,
    *,
    disabled: Iterable[Head] = (),
) -> Attention:
    """Return the weights while the model reads a sentence and predicts its translation.

    With heads `disabled` the sentence is searched anew, with and without them, and the weights are
    those of the translation found without.
    """
    disabled = tuple(dict.fromkeys(disabled))
    if not disabled:
        pair = read_pair(translator, text, translation)
        return Attention(pair, _record_weights(translator, pair))
    before, text_before = _search(translator, text)
    with disable_heads(translator.model, disabled):
        after, translation = _search(translator, text)
        pair = read_pair(translator, text, translation)
        weights = _record_weights(translator, pair)
    return Attention(pair, weights, disabled, before, after, text_before)


@contextmanager
def disable_heads(model: nn.Module, heads: Iterable[Head]) -> Iterator[None]:
    """Make the output of these heads 0 inside the block."""
    layers = _attention_names(model)
    disabled: dict[MultiHeadAttention, list[int]] = {}
    for one in heads:
        count = len(layers[one.part])
        if not 0 <= one.layer < count:
            raise ConfigError(
                f"there is no {one.part} layer {one.layer + 1}: this model has {count}"
            )
        module = model.get_submodule(layers[one.part][one.layer])
        if not isinstance(module, MultiHeadAttention):
            raise ModelError("the attention of this model has no heads that could be disabled")
        if not 0 <= one.head < module.heads:
            raise ConfigError(f"head {one.head + 1}: a layer has 1 to {module.heads}")
        disabled.setdefault(module, []).append(one.head)
    with ExitStack() as stack:
        for module, numbers in disabled.items():
            hook = module.output.register_forward_pre_hook(_zero_heads(module, numbers))
            stack.callback(hook.remove)
        yield


def _zero_heads(
    module: MultiHeadAttention, heads: list[int]
) -> Callable[[nn.Module, tuple[Tensor]], Tensor]:
    """Return a hook that sets what these heads give the output projection to 0."""
    enabled_H = torch.ones(module.heads, device=module.output.weight.device)
    enabled_H[heads] = 0

    def multiply(_: nn.Module, args: tuple[Tensor]) -> Tensor:
        (x,) = args
        x_by_head: Tensor = x.unflatten(-1, (module.heads, -1))
        return (x_by_head * enabled_H[:, None].to(x.dtype)).flatten(-2)

    return multiply


def _attention_names(model: nn.Module) -> dict[Part, list[str]]:
    """Return the names of the attention modules, layer by layer."""
    found: dict[Part, list[str]] = {part: [] for part in PARTS}
    for name, _ in attention_modules(model):
        if name.startswith("models."):
            raise ModelError("an ensemble is several models; inspect one of them")
        if "source_attention" in name:
            found["cross"].append(name)
        else:
            found["encoder" if name.startswith("encoder") else "decoder"].append(name)
    if not any(found.values()):
        raise ModelError("this model has no attention to show")
    return found


def _record_weights(translator: Inspectable, pair: SentencePair) -> dict[Part, list[Tensor]]:
    model = translator.model
    layers = _attention_names(model)
    with record_attention(model) as weights:
        model.features(*pair.rows(translator))
    return {part: [weights[name][0] for name in names] for part, names in layers.items()}


def _search(translator: Inspectable, text: str) -> tuple[Hypothesis, str]:
    """Return the best translation by the model itself, not by an engine."""
    model = translator.model
    ids = encode_source(translator, text)
    rows = source_rows([ids], next(model.parameters()).device)
    options = SearchOptions.from_config(translator.config.search)
    best = search(model, rows, options)[0][0]
    return best, translator.tokenizer.decode_target(best.ids, text)


def _round_score(hypothesis: Hypothesis) -> float:
    return round(max(hypothesis.score, -1e9), 6)


# Heat maps, one a head.

_COLOUR_SCALE = ["#ffffff", "#d7e3f4", "#8fb3dd", "#4076b4", "#17386b"]
_GRID_COLOUR = "#eef1f5"


def draw_attention(
    weights: NDArray[np.floating[Any]],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    path: Path,
    *,
    title: str = "",
) -> None:
    """Draw weights, H T S or T S, to a .png, .svg or .pdf file: a panel a head, and their mean.

    All panels share one scale.
    """
    check_format(path)
    T, S = len(target_tokens), len(source_tokens)
    if weights.ndim not in (2, 3) or weights.shape[-2:] != (T, S) or 0 in weights.shape:
        shape = " × ".join(map(str, weights.shape))
        raise DragomanError(
            f"attention weights of {shape} do not belong to {T} target and {S} source tokens"
        )
    panels_HTS = weights.astype(np.float64).reshape(-1, T, S)
    titles = [f"head {head + 1}" for head in range(len(panels_HTS))]
    if len(panels_HTS) > 1:
        panels_HTS = np.concatenate([panels_HTS.mean(axis=0, keepdims=True), panels_HTS])
        titles = ["mean", *titles]
    else:
        titles = [""]
    with style("".join([*source_tokens, *target_tokens, title])):
        _draw(panels_HTS, titles, source_tokens, target_tokens, path, title)


def _draw(
    panels_HTS: NDArray[np.float64],
    titles: list[str],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    path: Path,
    title: str,
) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    panels, T, S = panels_HTS.shape
    columns = _columns(panels, T, S)
    rows = math.ceil(panels / columns)
    cell = max(0.12, min(0.28, 7 / max(T, S)))  # inches
    width, height = columns * max(S * cell, 0.8), rows * max(T * cell, 0.5)
    colours = LinearSegmentedColormap.from_list("dragoman", _COLOUR_SCALE)
    figure = Figure(figsize=(width + 1.5, height + 1.5), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for number, axes in enumerate(grid.flat):
        if number >= panels:
            axes.set_axis_off()
            continue
        image = axes.imshow(
            panels_HTS[number], cmap=colours, vmin=0, vmax=max(1e-9, float(panels_HTS.max()))
        )
        _draw_grid(axes, titles[number], T, S)
        top, left = number < columns, number % columns == 0
        size = min(9.0, cell * 72 * 0.62)
        _label(axes.xaxis, source_tokens if top else [], size, rotation=90)
        _label(axes.yaxis, target_tokens if left else [], size, rotation=0)
    bar = figure.colorbar(image, ax=grid, shrink=min(1.0, 2 / height), aspect=16, pad=0.015)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7)
    if title:
        figure.suptitle(title, fontsize=12, x=0.01, ha="left", color=TEXT_COLOUR)
    save_figure(figure, path)


def _columns(panels: int, T: int, S: int) -> int:
    """Return how many columns make the picture about 3:2 with few places left empty."""

    def badness(columns: int) -> float:
        rows = math.ceil(panels / columns)
        return abs(math.log(columns * S / (rows * T) / 1.5)) + 0.4 * (columns * rows - panels)

    return min(range(1, panels + 1), key=badness)


def _draw_grid(axes: Axes, title: str, T: int, S: int) -> None:
    axes.set_title(title, pad=4)
    axes.grid(False)
    axes.spines[:].set_visible(True)
    axes.vlines(np.arange(1, S) - 0.5, -0.5, T - 0.5, color=_GRID_COLOUR, linewidth=0.5)
    axes.hlines(np.arange(1, T) - 0.5, -0.5, S - 0.5, color=_GRID_COLOUR, linewidth=0.5)


def _label(axis: Any, tokens: Sequence[str], size: float, *, rotation: float) -> None:
    axis.set_ticks(range(len(tokens)), list(tokens), rotation=rotation, fontsize=size)
    if axis.axis_name == "x":
        axis.tick_top()
    for label in axis.get_ticklabels():
        label.set_color(TEXT_COLOUR)
