"""Attention of every layer and head for one sentence, with heads switched off if one likes."""

# H heads, T target pieces, S source pieces, V width of a head's values

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.errors import ConfigError, ModelError
from dragoman.inference import Translator
from dragoman.inspection import json_arrays
from dragoman.inspection.pieces import Pair, read, source_ids
from dragoman.models.attention import MultiHeadAttention, watch, watchable
from dragoman.search import Hypothesis, SearchOptions, search
from dragoman.search.batching import source_rows

__all__ = ["PARTS", "Attention", "Head", "Part", "attention", "switched_off"]

Part = Literal["encoder", "decoder", "cross"]
PARTS: Final[tuple[Part, ...]] = ("encoder", "decoder", "cross")
"""Self-attention of the encoder, of the decoder, and the decoder's attention to the source."""


class Head(NamedTuple):
    """One head of a model; layers and heads are counted from 0."""

    part: Part
    layer: int
    head: int


@dataclass(frozen=True, slots=True)
class Attention:
    """Where the pieces of a sentence and of its translation look."""

    pair: Pair
    weights: dict[Part, list[Tensor]]
    """By layer: H S S, H T T and H T S."""
    off: tuple[Head, ...] = ()
    before: Hypothesis | None = None
    """With heads switched off: what the same search finds with all of them."""
    after: Hypothesis | None = None
    """What it finds without."""
    text_before: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        pair = self.pair
        sides = {
            "encoder": (pair.source, pair.source),
            "decoder": (pair.said, pair.read),
            "cross": (pair.said, pair.source),
        }
        table: dict[str, Any] = {
            "text": pair.text,
            "translation": pair.translation,
            "parts": {
                part: {
                    "rows": list(sides[part][0]),
                    "columns": list(sides[part][1]),
                    "layers": [json_arrays.weights(layer) for layer in layers],
                }
                for part, layers in self.weights.items()
                if layers
            },
        }
        if self.before is not None and self.after is not None:
            table["off"] = [head._asdict() for head in self.off]
            table["before"] = {"text": self.text_before, "score": _rounded(self.before)}
            table["after"] = {"text": pair.translation, "score": _rounded(self.after)}
        return table


@torch.no_grad()
def attention(
    translator: Translator,
    text: str,
    translation: str | None = None,
    *,
    off: Iterable[Head] = (),
) -> Attention:
    """The weights while the model reads a sentence and predicts its translation.

    With heads switched `off` the sentence is searched anew, with and without them, and the
    translation that is found without is looked at.
    """
    off = tuple(dict.fromkeys(off))
    if not off:
        pair = read(translator, text, translation)
        return Attention(pair, _watched(translator, pair))
    model = translator.model
    before, text_before = _found(translator, text)
    with switched_off(model, off):
        after, translation = _found(translator, text)
        pair = read(translator, text, translation)
        seen = _watched(translator, pair)
    return Attention(pair, seen, off, before, after, text_before)


@contextmanager
def switched_off(model: nn.Module, off: Iterable[Head]) -> Iterator[None]:
    """Meanwhile these heads say nothing: what they would add to their layer is 0."""
    layers = _by_part(model)
    silent: dict[MultiHeadAttention, list[int]] = {}
    for one in off:
        _check(one, layers)
        module = model.get_submodule(layers[one.part][one.layer])
        if not isinstance(module, MultiHeadAttention):
            raise ModelError("this model's attention has no heads of its own to switch off")
        if not 0 <= one.head < module.heads:
            raise ConfigError(f"head {one.head + 1}: a layer has 1 to {module.heads}")
        silent.setdefault(module, []).append(one.head)
    with ExitStack() as stack:
        for module, heads in silent.items():
            handle = module.output.register_forward_pre_hook(_silencer(module, heads))
            stack.callback(handle.remove)
        yield


def _silencer(module: MultiHeadAttention, heads: list[int]) -> Any:
    speaks_H = torch.ones(module.heads, device=module.output.weight.device)
    speaks_H[heads] = 0

    def silence(_: nn.Module, args: tuple[Tensor]) -> Tensor:
        (x,) = args
        heads: Tensor = x.unflatten(-1, (module.heads, -1))
        return (heads * speaks_H[:, None].to(x.dtype)).flatten(-2)

    return silence


def _by_part(model: nn.Module) -> dict[Part, list[str]]:
    """The names of the attentions, layer by layer."""
    found: dict[Part, list[str]] = {part: [] for part in PARTS}
    for name, _ in watchable(model):
        if name.startswith("models."):
            raise ModelError("an ensemble is several models; look into one of them")
        if "source_attention" in name:
            found["cross"].append(name)
        else:
            found["encoder" if name.startswith("encoder") else "decoder"].append(name)
    if not any(found.values()):
        raise ModelError("this model has no attention, so there is none to look at")
    return found


def _check(one: Head, layers: dict[Part, list[str]]) -> None:
    there = len(layers[one.part])
    if not 0 <= one.layer < there:
        raise ConfigError(f"{one.part} layer {one.layer + 1}: this model has {there} of them")


def _watched(translator: Translator, pair: Pair) -> dict[Part, list[Tensor]]:
    model = translator.model
    layers = _by_part(model)
    with watch(model) as seen:
        model.features(*pair.rows(translator))
    return {part: [seen[name][0] for name in names] for part, names in layers.items()}


def _found(translator: Translator, text: str) -> tuple[Hypothesis, str]:
    """The best translation by the model itself, not by an engine."""
    model = translator.model
    ids = source_ids(translator, text)
    rows = source_rows([ids], next(model.parameters()).device)
    options = SearchOptions.from_config(translator.config.search)
    best = search(model, rows, options)[0][0]
    return best, translator.tokenizer.decode_target(best.ids, text)


def _rounded(one: Hypothesis) -> float:
    return round(max(one.score, -1e9), 6)
