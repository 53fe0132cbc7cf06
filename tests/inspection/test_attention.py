"""The attention of a sentence, and disabled heads."""

from __future__ import annotations

import copy
from base64 import b64decode
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.inspection.attention import PARTS, Head, compute_attention, disable_heads
from dragoman.inspection.sentence_pair import BEGIN, END, piece_labels
from dragoman.search import SearchOptions, search
from dragoman.search.batching import source_rows, target_rows

from .small_translators import SENTENCE, TRANSLATION, tokenizer, translator

CPU = torch.device("cpu")
ROWS = source_rows([[5, 6, 7]], CPU), target_rows([[8, 9]], CPU)


def test_every_layer_and_head_is_there_and_every_row_sums_to_one() -> None:
    found = compute_attention(translator(), SENTENCE, TRANSLATION)
    S, T = len(found.pair.source), len(found.pair.predicted)
    shapes = {"encoder": (4, S, S), "decoder": (4, T, T), "cross": (4, T, S)}
    for part in PARTS:
        assert [tuple(layer.shape) for layer in found.weights[part]] == [shapes[part]] * 2
        for layer in found.weights[part]:
            assert torch.allclose(layer.sum(-1), torch.ones(layer.shape[:2]))


def test_the_decoder_does_not_look_ahead() -> None:
    for layer in compute_attention(translator(), SENTENCE, TRANSLATION).weights["decoder"]:
        assert (layer.triu(1) == 0).all()


def test_the_words_that_look_are_those_that_are_said() -> None:
    table = compute_attention(translator(), SENTENCE, TRANSLATION).to_dict()
    cross, decoder = table["parts"]["cross"], table["parts"]["decoder"]
    assert cross["rows"][-1] == cross["columns"][-1] == END
    assert decoder["columns"] == [BEGIN, *cross["rows"][:-1]]
    assert "".join(cross["rows"][:-1]).replace("·", "") == TRANSLATION.replace(" ", "")


def test_weights_travel_in_sixteen_bits() -> None:
    found = compute_attention(translator(), SENTENCE, TRANSLATION)
    sent = found.to_dict()["parts"]["cross"]["layers"][1]
    values = np.frombuffer(b64decode(sent["u16"]), "<u2").reshape(sent["shape"]) / 65535
    assert np.abs(values - found.weights["cross"][1].numpy()).max() < 1e-5


def test_a_head_is_off_as_if_its_part_of_the_output_were_zero() -> None:
    model = translator().model
    zeroed: Any = copy.deepcopy(model)
    with torch.no_grad():
        zeroed.decoder[1].source_attention.output.weight[:, 16:24] = 0
        zeroed.encoder[0].attention.attention.output.weight[:, :8] = 0
        whole = model(*ROWS)
        with disable_heads(model, [Head("cross", 1, 2), Head("encoder", 0, 0)]):
            without = model(*ROWS)
        assert torch.allclose(without, zeroed(*ROWS), atol=1e-5)
        assert not torch.allclose(without, whole, atol=1e-3)
        assert torch.equal(model(*ROWS), whole)  # they are on again


def test_without_heads_the_sentence_is_searched_anew() -> None:
    one = translator()
    disabled = [Head("cross", layer, head) for layer in range(2) for head in range(4)]
    found = compute_attention(one, SENTENCE, disabled=disabled)
    ids = one.tokenizer.encode(SENTENCE)
    rows = source_rows([ids], CPU)
    options = SearchOptions.from_config(one.config.search)
    with torch.no_grad():
        before = search(one.model, rows, options)[0][0]
        with disable_heads(one.model, disabled):
            after = search(one.model, rows, options)[0][0]
    table = found.to_dict()
    assert table["before"]["text"] == one.tokenizer.decode(before.ids)
    assert table["after"]["text"] == table["translation"] == one.tokenizer.decode(after.ids)
    assert table["before"]["score"] == pytest.approx(before.score, abs=1e-5)
    assert table["after"]["score"] == pytest.approx(after.score, abs=1e-5)
    assert before.ids != after.ids
    assert table["off"][0] == {"part": "cross", "layer": 0, "head": 0}


def test_heads_are_on_again_after_an_error() -> None:
    model = translator().model
    with torch.no_grad():
        whole = model(*ROWS)
        with pytest.raises(ZeroDivisionError), disable_heads(model, [Head("decoder", 0, 1)]):
            _ = 1 / 0
        assert torch.equal(model(*ROWS), whole)


@pytest.mark.parametrize("head", [Head("cross", 2, 0), Head("encoder", 0, 4), Head("cross", -1, 0)])
def test_a_head_that_is_not_there_is_refused(head: Head) -> None:
    with pytest.raises(ConfigError, match=r"this model has 2|a layer has 1 to 4"):
        compute_attention(translator(), SENTENCE, disabled=[head])


def test_what_is_empty_or_too_long_is_refused() -> None:
    with pytest.raises(DataError, match="empty"):
        compute_attention(translator(), "  ")
    with pytest.raises(ConfigError, match="at most 128 can be shown"):
        compute_attention(translator(), "dog " * 200)
    with pytest.raises(ConfigError, match="at most 128 can be shown"):
        compute_attention(translator(), "dog", "god " * 200)


def test_a_recurrent_model_shows_what_it_has() -> None:
    found = compute_attention(
        translator("model.architecture=recurrent", "model.source_attention=dot"), SENTENCE, "god"
    )
    assert list(found.to_dict()["parts"]) == ["cross"]
    with pytest.raises(ModelError, match="no heads"):
        compute_attention(
            translator("model.architecture=recurrent", "model.source_attention=dot"),
            SENTENCE,
            disabled=[Head("cross", 0, 0)],
        )
    with pytest.raises(ModelError, match="no attention"):
        compute_attention(translator("model.architecture=recurrent"), SENTENCE, "god")


def test_pieces_are_labelled_for_people() -> None:
    found = piece_labels(tokenizer(), tokenizer().encode("dog housetree ."))
    assert found[0] == "dog"
    assert any(label.startswith("·") for label in found)
    assert "".join(found).replace("·", "") == "doghousetree␣<0x2E>"
