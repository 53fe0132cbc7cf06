"""Which word comes from which, read off attention made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from dragoman.errors import ModelError
from dragoman.inference import Translator, load
from dragoman.inference.alignment import word_alignment
from dragoman.inference.source_attention import last_layer_attention, mean_attention
from dragoman.model_directory import LoadedModel, load_model, save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.text.tokenizer import Tokenizer

LAST = "decoder.1.source_attention"


def attention(rows: list[list[float]], heads: int = 2) -> Tensor:
    """H (T + 1) (S + 1), of which the step after the last piece and EOS count for nothing."""
    weights_TS = torch.tensor(rows)
    padded = torch.nn.functional.pad(weights_TS, (0, 1, 0, 1), value=9.0)
    return padded.expand(heads, -1, -1)


@pytest.fixture
def words(reverser: Translator) -> Tokenizer:
    return reverser.tokenizer


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    found = tokenizer.encode(text)
    assert len(found) == len(text.split()), f"a piece a word: {tokenizer.pieces(found)}"
    return found


def test_every_word_of_either_side_is_aligned(words: Tokenizer) -> None:
    source, target = ids(words, "the the the"), ids(words, "the the")
    weights = {LAST: attention([[0.1, 0.9, 0.0], [0.5, 0.2, 0.3]])}
    # The third source word is nobody's first choice; the second target word looks there most.
    assert word_alignment(mean_attention(weights), words, source, target) == [
        (0, 1),
        (1, 0),
        (2, 1),
    ]


def test_the_last_layer_counts_and_heads_are_averaged(words: Tokenizer) -> None:
    source, target = ids(words, "the the"), ids(words, "the the")
    first = attention([[1.0, 0.0], [0.0, 1.0]])
    last = torch.cat(
        [attention([[0.4, 0.6], [0.9, 0.1]], 1), attention([[0.4, 0.5], [0.6, 0.4]], 1)]
    )
    weights = {"decoder.0.source_attention": first, LAST: last}
    assert word_alignment(mean_attention(weights), words, source, target) == [(0, 1), (1, 0)]


def test_an_ensemble_aligns_by_the_last_layers_of_all_its_models() -> None:
    weights = {
        "models.0.decoder.0.source_attention": attention([[9.0, 9.0]], 4),
        "models.0.decoder.1.source_attention": attention([[0.0, 1.0]], 4),
        "models.1.decoder.0.source_attention": attention([[0.0, 3.0]], 2),
    }
    assert last_layer_attention(weights).shape == (6, 1, 2)
    assert last_layer_attention(weights)[:, 0, 1].tolist() == [1.0] * 4 + [3.0] * 2


def test_nothing_is_aligned_with_nothing(words: Tokenizer) -> None:
    weights = {LAST: attention([[1.0]])}
    assert word_alignment(mean_attention(weights), words, [], [5]) == []
    assert word_alignment(mean_attention(weights), words, [5], []) == []


# --- several models as one ---


@pytest.fixture(scope="module")
def second(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model of the same pieces, of another shape, untrained."""
    first = load_model(trained / "model")
    config = first.config.overridden(["model.d_model=48", "model.heads=4"])
    torch.manual_seed(7)
    weights = get_weights(build(config.model, len(first.tokenizer)))
    path = tmp_path_factory.mktemp("second") / "model"
    save_model(path, weights, config, first.tokenizer, {})
    return path


def test_an_ensemble_scores_between_its_models(
    reverser: Translator, trained: Path, second: Path
) -> None:
    both, other = load(trained, second), load(second, precision="float32")
    pair = ["red cat"], ["tac der"]
    mine, theirs, ours = (t.score(*pair)[0].log_probs for t in (reverser, other, both))
    for a, b, c in zip(mine, theirs, ours, strict=True):
        mean = torch.tensor([a, b]).exp().mean().log()
        assert c == pytest.approx(float(mean), abs=1e-4)


@pytest.mark.slow
def test_an_ensemble_translates_and_aligns_with_every_option(trained: Path, second: Path) -> None:
    both = load(trained, second)
    [found] = both.translate(["the old dog"], must=["tac"], n_best=2, align=True)
    assert "tac" in found.text
    assert found.alignment
    assert both.alternatives("dog", "", 2)
    assert both.translate("dog", diverse=2, n_best=2).alternatives


def test_a_model_twice_is_that_model(reverser: Translator, trained: Path) -> None:
    twice = load(trained, trained)
    one, other = (each.translate("the old dog sees", align=True) for each in (reverser, twice))
    assert one.alignment
    assert (one.text, one.alignment) == (other.text, other.alignment)
    assert one.score == pytest.approx(other.score, abs=1e-4)


def test_models_of_other_pieces_are_no_ensemble(trained: Path, reverser: Translator) -> None:
    loaded = load_model(trained / "model")
    other = Tokenizer.train(
        ["the red dog sees a blue cat " * 3, "ab cd ef"] * 40,
        loaded.config.tokenizer.__class__(vocabulary=300),
    )
    with pytest.raises(
        ModelError, match=r"has other pieces than .*; an ensemble is trained on one"
    ):
        Translator(loaded, LoadedModel(loaded.model, other, loaded.config, {}, Path("b")))
