"""Marian models become ours: the same scores, the same text, and they go on learning."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from tests.conftest import reversals, write_pairs

from dragoman.config import Config
from dragoman.errors import ModelError
from dragoman.inference import load
from dragoman.interop.export import export
from dragoman.interop.huggingface import silence_transformers
from dragoman.interop.marian_import import import_marian
from dragoman.model_directory import load_model
from dragoman.models.weights import get_weights, read_tensors
from dragoman.search.batching import source_rows, target_rows
from dragoman.training.run import train

pytestmark = pytest.mark.skipif(
    find_spec("transformers") is None,  # importing it would take seconds of every collection
    reason="transformers is not installed: dragoman[export]",
)
TEXTS = ["The bear has found her birds.", "My sister reads two old books.", "Überraschung £5!"]


@pytest.fixture(scope="module")
def imported(opus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("imported") / "model"
    found = import_marian(opus, directory, texts=TEXTS)
    assert found.difference < 1e-4
    assert found.same == found.sentences > 15
    return directory


@pytest.mark.slow
def test_text_is_translated_as_transformers_does(opus: Path, imported: Path) -> None:
    import transformers

    translator = load(imported, device="cpu")
    with silence_transformers():
        tokenizer = transformers.MarianTokenizer.from_pretrained(opus)
        model = transformers.MarianMTModel.from_pretrained(opus)
        for text in [*TEXTS, ">>deu<< The bear sleeps."]:
            batch = tokenizer(text, return_tensors="pt")
            ours = translator.tokenizer.encode(text)
            pieces = translator.tokenizer.pieces(ours)
            assert pieces == tokenizer.convert_ids_to_tokens(batch["input_ids"][0])[:-1]
            ids = model.generate(
                **batch, num_beams=1, max_length=len(ours) + 52, suppress_tokens=[1, 400]
            )
            there = tokenizer.decode(ids[0], skip_special_tokens=True)
            assert translator.translate(text, beam=1, raw=True).text == there


@pytest.mark.slow
def test_targets_have_pieces_of_their_own(imported: Path) -> None:
    tokenizer = load_model(imported).tokenizer
    text = "Der Bär hat ihre Vögel gefunden."
    (target,) = tokenizer.encode_targets([text])
    assert target != tokenizer.encode(text)
    assert tokenizer.decode(target) == text
    again = type(tokenizer).load(imported)
    assert again == tokenizer
    assert again.encode_targets([text]) == [target]


@pytest.mark.slow
def test_an_imported_model_goes_on_learning(imported: Path) -> None:
    loaded = load_model(imported)
    model = loaded.model
    source = source_rows([loaded.tokenizer.encode(TEXTS[0])], torch.device("cpu"))
    ids = loaded.tokenizer.encode_targets(["Der Bär hat ihre Vögel gefunden."])[0]
    target = target_rows([ids], torch.device("cpu"))
    wanted = torch.tensor([*ids, 2])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(100):
        loss = torch.nn.functional.cross_entropy(model(source, target)[0], wanted)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    moved = [n for n, w in get_weights(model).items() if n.endswith("bias") and w.abs().sum() > 0]
    assert "projection_bias" in moved


@pytest.mark.slow
def test_what_comes_in_goes_out_as_it_was(opus: Path, imported: Path, tmp_path: Path) -> None:
    export(load_model(imported), tmp_path / "out", "huggingface")
    before, after = (read_tensors(d / "model.safetensors") for d in (opus, tmp_path / "out"))
    for name in after.keys() - {"model.shared.weight", "final_logits_bias"}:
        assert torch.equal(before[name], after[name]), name


@pytest.mark.slow
def test_a_file_of_pytorch_is_read_and_code_in_it_is_not_run(opus: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(opus, old)
    weights = read_tensors(old / "model.safetensors")
    (old / "model.safetensors").unlink()
    torch.save(weights, old / "pytorch_model.bin")
    assert import_marian(old, tmp_path / "model").difference < 1e-4

    torch.save({**weights, "trap": Trap(tmp_path / "sprung")}, old / "pytorch_model.bin")
    with pytest.raises(ModelError, match="holds more than weights"):
        import_marian(old, tmp_path / "other")
    assert not (tmp_path / "sprung").exists()
    assert not (tmp_path / "other").exists()


class Trap:
    """Unpickled as code, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "bart", "model_type = bart"),
        ("normalize_before", True, "normalize_before = True"),
        ("scale_embedding", False, "scale_embedding = False"),
        ("activation_function", "tanh", "activation_function = tanh"),
        ("decoder_ffn_dim", 96, "encoder_ffn_dim = 48 and decoder_ffn_dim = 96"),
        ("encoder_layers", 3, r"has no model\.encoder\.layers\.2"),
        ("vocab_size", 77, "does not number 77 pieces"),
    ],
)
def test_what_is_not_such_a_model_is_refused(
    opus: Path, tmp_path: Path, key: str, value: object, message: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(opus, other)
    settings = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**settings, key: value}))
    with pytest.raises(ModelError, match=message):
        import_marian(other, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json: no such file; give the directory"):
        import_marian(tmp_path, tmp_path / "model")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("norm", "positions"), [("post", "sinusoidal"), ("pre", "sinusoidal"), ("pre", "learned")]
)
def test_our_own_exports_come_back_with_the_same_translations(
    tmp_path: Path, tiny: Config, norm: str, positions: str
) -> None:
    settings = [f"model.norm={norm}", f"model.positions={positions}", "model.max_positions=200"]
    settings += ["training.steps=60", "training.learning_rate=0.01"]
    config = tiny.overridden(settings)
    files = write_pairs(tmp_path, reversals(300))
    ours = train(config, *files, run=tmp_path / "run", quiet=True).model
    assert ours is not None
    export(load_model(ours), tmp_path / "exported", "huggingface")
    import_marian(tmp_path / "exported", tmp_path / "back")
    back = load_model(tmp_path / "back").config.model
    assert (back.norm, back.positions) == (norm, positions)
    texts = [source for source, _ in reversals(20, seed=9)]
    found = [
        [one.text for one in load(model, precision="float32").translate(texts, beam=1)]
        for model in (ours, tmp_path / "back")
    ]
    assert found[0] == found[1]
