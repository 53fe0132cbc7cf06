"""A model on disk: what is saved is what is loaded, and nothing else is."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from dragoman.config import Config
from dragoman.errors import DragomanError, ModelError
from dragoman.model_directory import load_model, save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.text.tokenizer import Tokenizer

FILES = ("config.toml", "weights.safetensors", "tokenizer.model", "tokenizer.json", "card.json")


@pytest.fixture(scope="module")
def tokenizer(trained: Path) -> Tokenizer:
    return Tokenizer.load(trained / "model")


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    shutil.copytree(trained / "model", tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_a_model_comes_back_bit_for_bit(
    shared: bool, tiny: Config, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    config = tiny.overridden([f"model.shared_embeddings={str(shared).lower()}"])
    before = build(config.model, len(tokenizer))
    card = {"made_of": "chance", "scores": {"BLEU": 12.345}}
    save_model(tmp_path / "model", get_weights(before), config, tokenizer, card)
    loaded = load_model(tmp_path / "model")
    expected, found = dict(before.named_parameters()), dict(loaded.model.named_parameters())
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert (loaded.config, loaded.tokenizer) == (config, tokenizer)
    assert loaded.card == {"format": 1, **card}
    assert not loaded.model.training


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_shared_embeddings_stay_one_matrix_in_memory_and_on_disk(
    shared: bool, tiny: Config, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    config = tiny.overridden([f"model.shared_embeddings={str(shared).lower()}"])
    weights = get_weights(build(config.model, len(tokenizer)))
    save_model(tmp_path / "model", weights, config, tokenizer, {})
    size = (len(tokenizer), config.model.d_model)
    on_disk = load_file(tmp_path / "model/weights.safetensors")
    assert sum(tensor.shape == size for tensor in on_disk.values()) == (1 if shared else 3)
    loaded = load_model(tmp_path / "model").model
    places = [
        parameter.data_ptr()
        for _, parameter in loaded.named_parameters(remove_duplicate=False)
        if parameter.shape == size
    ]
    assert len(places) == 3
    assert len(set(places)) == (1 if shared else 3)


def test_the_card_can_be_read_by_people(trained: Path) -> None:
    page = (trained / "model/README.md").read_text(encoding="utf-8")
    assert "2+1 layers, d_model 32, 2 heads, 330 pieces" in page
    assert "| steps | 40 |" in page
    assert "dragoman translate" in page


def test_others_may_read_a_model_as_the_umask_says(trained: Path) -> None:
    mask = os.umask(0o022)
    os.umask(mask)
    for file in (trained / "model").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~mask, file.name


def test_saving_replaces_a_model_whole(model: Path, tiny: Config, tokenizer: Tokenizer) -> None:
    (model / "extra").write_text("of the old model")
    weights = get_weights(build(tiny.model, len(tokenizer)))
    save_model(model, weights, tiny, tokenizer, {"made_of": "the new one"})
    assert {path.name for path in model.iterdir()} == {*FILES, "README.md"}
    assert load_model(model).card["made_of"] == "the new one"


@pytest.mark.parametrize("what", ["directory", "file"])
def test_saving_replaces_nothing_but_a_model(
    what: str, tiny: Config, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    place = tmp_path / "photos"
    if what == "directory":
        place.mkdir()
        (place / "cat.jpg").write_bytes(b"irreplaceable")
    else:
        place.write_bytes(b"irreplaceable")
    weights = get_weights(build(tiny.model, len(tokenizer)))
    with pytest.raises(ModelError, match=r"photos: already exists and is not a model; choose ano"):
        save_model(place, weights, tiny, tokenizer, {})
    kept = place / "cat.jpg" if what == "directory" else place
    assert kept.read_bytes() == b"irreplaceable"


class Trap:
    """Says so when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("the file was unpickled",))


def _change(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(model: Path) -> None:
        (model / name).write_bytes(change((model / name).read_bytes()))

    return damage


def _reshape(model: Path) -> None:
    weights = load_file(model / "weights.safetensors")
    name = next(iter(weights))
    save_file({**weights, name: weights[name][:-1].contiguous()}, model / "weights.safetensors")


def _drop(model: Path) -> None:
    weights = load_file(model / "weights.safetensors")
    weights.pop(next(iter(weights)))
    save_file(weights, model / "weights.safetensors")


def _foreign(model: Path) -> None:
    save_file({"bert.embeddings": torch.zeros(3, 4)}, model / "weights.safetensors")


def _newer(data: bytes) -> bytes:
    return json.dumps({**json.loads(data), "format": 99}).encode()


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    **{
        f"{name} is missing": (lambda model, name=name: (model / name).unlink(), ": no")
        for name in ("config.toml", "tokenizer.model", "tokenizer.json")
    },
    "weights are missing": (lambda m: (m / "weights.safetensors").unlink(), "not a model directo"),
    "card is missing": (lambda m: (m / "card.json").unlink(), "not a model directory"),
    "weights are truncated": (
        _change("weights.safetensors", lambda data: data[:-100]),
        "weights.safetensors: truncated or not a safetensors file",
    ),
    "weights are empty": (
        _change("weights.safetensors", lambda data: b""),
        "weights.safetensors: truncated or not a safetensors file",
    ),
    "weights are a pickle": (
        _change("weights.safetensors", lambda data: pickle.dumps(Trap())),
        "weights.safetensors: truncated or not a safetensors file",
    ),
    "weights are of something else": (_foreign, "does not fit its config: bert.embeddings should"),
    "weights have another shape": (_reshape, "does not fit its config"),
    "a weight is missing": (_drop, "and is absent; the files are of different models"),
    "config is of another model": (
        _change("config.toml", lambda data: data.replace(b"d_ff = 64", b"d_ff = 128")),
        "does not fit its config",
    ),
    "config is nonsense": (_change("config.toml", lambda data: b"[model"), "config.toml: not a"),
    "config has a key of tomorrow": (
        _change("config.toml", lambda data: data + b"telepathy = true\n"),
        "is not a model of this version",
    ),
    "card is nonsense": (_change("card.json", lambda data: b"{"), "not the card of a Dragoman"),
    "card is a list": (_change("card.json", lambda data: b"[]"), "not the card of a Dragoman"),
    "card is of another program": (_change("card.json", lambda d: b"{}"), "not the card of a Drag"),
    "format is newer": (
        _change("card.json", _newer),
        "made by a newer Dragoman (format 99, this one reads 1); update Dragoman",
    ),
    "tokeniser is truncated": (
        _change("tokenizer.model", lambda data: data[:-9]),
        "tokenizer.model: truncated",
    ),
    "tokeniser's settings are nonsense": (
        _change("tokenizer.json", lambda data: b"?"),
        "tokenizer.json: not a tokeniser's settings",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_or_foreign_is_refused_in_one_line(damage: str, model: Path) -> None:
    break_it, message = DAMAGES[damage]
    load_model(model)
    break_it(model)
    with pytest.raises(ModelError) as caught:
        load_model(model)
    said = str(caught.value)
    assert message in said
    assert str(model) in said
    assert "\n" not in said


@pytest.mark.parametrize("place", ["nothing", "empty", "file", "foreign"])
def test_a_place_without_a_model_is_refused_in_one_line(place: str, tmp_path: Path) -> None:
    path = tmp_path / place
    if place == "file":
        path.write_text("hello")
    elif place != "nothing":
        path.mkdir()
    if place == "foreign":  # as Hugging Face has it
        save_file({"a": torch.zeros(2)}, path / "model.safetensors")
        (path / "config.json").write_text("{}")
    with pytest.raises(DragomanError, match=r"no such model|not a model directory") as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
