"""The peers are models of the same size that do the same job on the same sentences."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from dragoman.bench.training import peers
from dragoman.bench.training.peers import (
    Padded,
    Peer,
    check_peers,
    marian,
    padded_batches,
    peer_kinds,
    torch_transformer,
)
from dragoman.bench.training.synthetic_corpus import SyntheticPairs, timed_batches
from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.models import count_parameters
from dragoman.text.special_tokens import BOS, EOS, PAD

CPU = torch.device("cpu")
MAKERS = pytest.mark.parametrize("make", [marian, torch_transformer])
Maker = Callable[[Config], nn.Module]


@pytest.fixture(scope="module")
def config(tiny: Config) -> Config:
    return tiny.overridden(["model.d_model=128", "model.d_ff=512", "model.decoder_layers=2"])


def sentences(side_BL: Tensor) -> list[tuple[int, ...]]:
    return [tuple(row[row != PAD].tolist()) for row in side_BL]


# --- padded batches ---


def test_padded_batches_hold_the_sentences_of_the_packed_ones(tiny: Config) -> None:
    packed = timed_batches(tiny, 3)
    padded = padded_batches(packed, 512)
    assert sum(b.target_tokens for b in padded) == sum(b.target_tokens for b in packed)
    pairs = SyntheticPairs(vocabulary=330, longest=63)
    known = {
        (*pairs.source(i).tolist(), EOS): tuple(pairs.target(i).tolist()) for i in range(len(pairs))
    }
    found = 0
    for batch in padded:
        for source, target, output in zip(
            sentences(batch.source_BS),
            sentences(batch.input_BT),
            sentences(batch.output_BT),
            strict=True,
        ):
            assert target == (BOS, *output[:-1])
            assert output[-1] == EOS
            if len(source) > 3:  # shorter ones occur twice
                assert known[source] == output[:-1]
            found += 1
    assert found == sum(batch.sentences for batch in packed)


def test_padded_batches_are_full_but_not_fuller_and_of_similar_lengths(tiny: Config) -> None:
    padded = padded_batches(timed_batches(tiny, 40), 512)
    sizes = sorted(max(b.source_BS.numel(), b.output_BT.numel()) for b in padded)
    assert sizes[-1] <= 512
    assert sizes[1] > 512 - 2 * 64, "only the last batch may be short"
    source = sum(b.source_tokens for b in padded) / sum(b.source_BS.numel() for b in padded)
    target = sum(b.target_tokens for b in padded) / sum(b.output_BT.numel() for b in padded)
    assert min(source, target) > 0.87
    lengths = [batch.output_BT.shape[1] for batch in padded]
    assert lengths != sorted(lengths), "not the short ones first"


# --- the models ---


@MAKERS
def test_a_peer_has_as_many_parameters_as_ours(make: Maker, config: Config) -> None:
    found = sum(p.numel() for p in make(config).parameters() if p.requires_grad)
    ours = count_parameters(config.model, config.tokenizer.vocabulary)
    assert found == pytest.approx(ours, rel=0.03)


@MAKERS
def test_a_peer_sees_neither_the_future_nor_padding(make: Maker, config: Config) -> None:
    torch.manual_seed(0)
    model = make(config).eval()
    source, target = torch.tensor([[5, 6, 7, EOS]]), torch.tensor([[BOS, 8, 9]])
    with torch.no_grad():
        expected = model(source, target)
        longer = model(
            torch.tensor([[5, 6, 7, EOS, PAD, PAD], [9] * 6]),
            torch.tensor([[BOS, 8, 9, 10, PAD], [BOS, 5, 5, 5, 5]]),
        )[:1, :3]
        other = model(torch.tensor([[5, 6, 11, EOS]]), target)
    assert expected.shape == (1, 3, 330)
    torch.testing.assert_close(longer, expected, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(other, expected), "it does see the source"


@pytest.mark.parametrize("kind", peer_kinds(CPU), ids=lambda kind: kind.name)
def test_a_peer_learns(kind: peers.Kind, config: Config) -> None:
    batches = [Padded(torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]]), torch.tensor([[7, 2]]))]
    settings = ["model.dropout=0", "training.label_smoothing=0"]
    peer = Peer(kind, config.overridden(settings), batches, CPU)

    def loss() -> float:
        with torch.no_grad():
            logits = peer._scores(batches[0].source_BS, batches[0].input_BT)
        return nn.functional.cross_entropy(logits[0], batches[0].output_BT[0]).item()

    before = loss()
    for _ in range(10):
        peer.round()
    assert loss() < 0.9 * before
    assert (peer.steps, peer.target_tokens) == (1, 2)
    assert (peer.source_fill, peer.target_fill) == (1.0, 1.0)


# --- what cannot be compared ---


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.architecture=recurrent", "model.architecture = recurrent: the peers have no such"),
        ("model.experts=4", "model.experts = 4: the peers have no such model"),
        ("model.window=3", "model.window = 3: the peers have no such model"),
        ("model.d_k=8", "model.d_k = 8: the peers have no such model; leave out --against"),
        ("model.activation=swiglu", "model.activation = swiglu: the peers have no such model"),
        ("model.shared_embeddings=false", "model.shared_embeddings = False: the peers have no"),
    ],
)
def test_a_model_no_peer_has_is_refused(setting: str, message: str, tiny: Config) -> None:
    check_peers(tiny)
    with pytest.raises(ConfigError, match=message):
        check_peers(tiny.overridden([setting]))


def test_what_is_missing_is_named(tiny: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs transformers.*pip install 'dragoman\[export\]'"):
        check_peers(tiny)
