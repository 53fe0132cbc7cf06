"""The attention of every layer and head is computed for a sentence, also with heads disabled."""

# H heads, T target pieces, S source pieces

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.errors import ConfigError, ModelError
from dragoman.inspection import json_arrays
from dragoman.inspection.sentence_pair import Inspectable, SentencePair, encode_source, read_pair
from dragoman.models.attention import MultiHeadAttention, attention_modules, record_attention
from dragoman.search import Hypothesis, SearchOptions, search
from dragoman.search.batching import source_rows

__all__ = ["PARTS", "Attention", "Head", "Part", "compute_attention", "disable_heads"]

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
            raise ConfigError(f"{one.part} layer {one.layer + 1}: this model has {count} of them")
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
