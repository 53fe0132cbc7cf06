"""Every number that is shown is the model's."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.errors import ConfigError, ModelError
from dragoman.inference import Translator
from dragoman.inspection import json_arrays
from dragoman.inspection.attention import PARTS, Part
from dragoman.inspection.layer_activations import compute_activations
from dragoman.models.attention import record_attention

from .small_translators import SENTENCE, TRANSLATION, translator

VARIANTS: list[tuple[str, ...]] = [
    (),
    ("model.norm=pre",),
    ("model.norm_kind=rms", "model.activation=swiglu"),
    ("model.positions=rotary", "model.activation=gelu"),
    ("model.positions=relative", "model.norm=pre", "model.activation=swish"),
    ("model.positions=learned", "model.shared_embeddings=false"),
    ("model.window=2",),
    ("model.experts=4",),
]
NAMES = {
    "encoder": "encoder.{}.attention.attention",
    "decoder": "decoder.{}.attention.attention",
    "cross": "decoder.{}.source_attention",
}


@pytest.mark.slow
@pytest.mark.parametrize("changes", VARIANTS, ids=lambda changes: "+".join(changes) or "paper")
@pytest.mark.parametrize("part", PARTS)
def test_step_by_step_is_what_the_layer_does(changes: tuple[str, ...], part: Part) -> None:
    one = translator(*changes)
    found = compute_activations(one, SENTENCE, TRANSLATION, part, 1)
    given: list[Any] = []
    gives: list[Any] = []

    def keep(_: Any, args: Any, out: Any) -> None:
        given.append(args)
        gives.append(out)

    block: Any = one.model.get_submodule(f"{'encoder' if part == 'encoder' else 'decoder'}.1")
    hook = block.register_forward_hook(keep)
    with torch.no_grad(), record_attention(one.model) as seen:
        features = one.model.features(*found.pair.rows(one))
    hook.remove()
    assert found.output is not None
    # To look at weights they are computed one by one, which rounds otherwise.
    near: Any = {"atol": 1e-4, "rtol": 1e-4}
    torch.testing.assert_close(found.output, gives[0].residual[0], **near)
    torch.testing.assert_close(found.squares["weights"], seen[NAMES[part].format(1)][0], **near)
    torch.testing.assert_close(found.matrices["features"], features[0], **near)
    if part != "cross":
        torch.testing.assert_close(found.matrices["x"], given[0][0].residual[0], **near)


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("changes", [(), ("model.positions=relative",)], ids=["paper", "relative"])
def test_what_the_page_works_out_is_what_the_model_did(
    part: Part, changes: tuple[str, ...]
) -> None:
    """The page divides, adds the bias, masks; the softmax of that must be the weights."""
    table = compute_activations(translator(*changes), SENTENCE, TRANSLATION, part, 0).to_dict()
    scaled = _read(table["squares"]["scores"]) / np.sqrt(table["facts"]["d_k"])
    if "bias" in table["squares"]:
        scaled = scaled + _read(table["squares"]["bias"])
    if table["seen"] is not None:
        scaled = np.where(_read(table["seen"]) > 0, scaled, -np.inf)
    assert (table["seen"] is not None) == (part == "decoder")
    weights = np.exp(scaled - scaled.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    assert np.abs(weights - _read(table["squares"]["weights"])).max() < 1e-5
    mixed = weights @ _whole(translator(*changes), part, "v")
    assert np.abs(mixed[..., :8] - _read(table["matrices"]["heads"]["first"])).max() < 1e-4


def test_embedding_and_position_make_the_input() -> None:
    found = compute_activations(translator(), SENTENCE, TRANSLATION, "decoder", 0)
    m = found.matrices
    assert torch.allclose(m["pieces"] + m["positions"], m["embedded"], atol=1e-6)
    assert torch.equal(m["embedded"], m["x"])
    table = found.to_dict()
    assert table["ids"][0] == 1
    assert len(table["ids"]) == len(table["rows"]) == len(table["said"])


def test_the_next_words_are_the_likeliest() -> None:
    one = translator()
    found = compute_activations(one, SENTENCE, TRANSLATION, "encoder", 0)
    with torch.no_grad():
        features = one.model.features(*found.pair.rows(one))
        chances = one.model.log_probabilities(features)[0].exp()
    assert len(found.next_words) == len(found.pair.predicted)
    for row, listed in enumerate(found.next_words):
        assert [p for _, _, p in listed] == pytest.approx(chances[row].topk(8).values.tolist())


def test_a_layer_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="this model has 2"):
        compute_activations(translator(), SENTENCE, TRANSLATION, "cross", 2)
    with pytest.raises(ModelError, match="inspect a transformer"):
        compute_activations(
            translator("model.architecture=recurrent"), SENTENCE, "god", "encoder", 0
        )


def test_a_matrix_is_exact_where_it_is_read_and_near_where_it_is_seen() -> None:
    values = torch.randn(50, 60)
    values[0, 0] = 1e6
    sent = json_arrays.encode_matrix(values, columns=40)
    assert np.array_equal(_read(sent["first"]), values[:, :8].numpy())
    levels = np.frombuffer(b64decode(sent["map"]["i8"]), np.int8).reshape(50, 40)
    peak = sent["peak"]
    assert peak < 10  # one that stands out does not pale the others
    coloured = np.clip(values[:, :40].numpy(), -peak, peak)
    assert np.abs(levels * (peak / 127) - coloured).max() <= peak / 254 * 1.001
    assert json_arrays.encode_matrix(torch.zeros(2, 3))["peak"] == 0.0
    assert json_arrays.encode_matrix(torch.eye(300))["peak"] == 1.0


def _read(packed: dict[str, Any]) -> Any:
    return np.frombuffer(b64decode(packed["f32"]), "<f4").reshape(packed["shape"])


def _whole(one: Translator, part: Part, name: str) -> Any:
    return compute_activations(one, SENTENCE, TRANSLATION, part, 0).matrices[name].numpy()
