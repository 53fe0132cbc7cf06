"""The peers are models of the same size that do the same job on the same sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from dragoman.bench.training import peers
from dragoman.bench.training.peers import (
    PaddedBatch,
    PeerTraining,
    build_marian,
    build_torch_transformer,
    check_peers,
    padded_batches,
    peer_models,
)
from dragoman.bench.training.synthetic_corpus import SyntheticPairs
from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.models import count_parameters
from dragoman.text.special_tokens import BOS, EOS, PAD

CPU = torch.device("cpu")
MAKERS = pytest.mark.parametrize("make", [build_marian, build_torch_transformer])
Maker = Callable[[Config], nn.Module]


@pytest.fixture(scope="module")
def config(tiny: Config) -> Config:
    return tiny.overridden(["model.d_model=128", "model.d_ff=512", "model.decoder_layers=2"])


def sentences(side_BL: Tensor) -> list[tuple[int, ...]]:
    return [tuple(row[row != PAD].tolist()) for row in side_BL]


# --- padded batches ---


@pytest.fixture(scope="module")
def pairs(tiny: Config) -> SyntheticPairs:
    return SyntheticPairs.for_config(tiny)


@pytest.mark.slow
def test_padded_batches_hold_sentences_of_the_corpus_with_their_marks(
    pairs: SyntheticPairs,
) -> None:
    known = {
        (*pairs.source(i).tolist(), EOS): tuple(pairs.target(i).tolist()) for i in range(len(pairs))
    }
    for batch in padded_batches(pairs, 512, 3):
        for source, target, output in zip(
            sentences(batch.source_BS),
            sentences(batch.input_BT),
            sentences(batch.output_BT),
            strict=True,
        ):
            assert target == (BOS, *output[:-1])
            assert output[-1] == EOS
            if len(source) > 5:  # shorter ones occur twice
                assert known[source] == output[:-1]


def test_all_batches_together_hold_the_whole_corpus() -> None:
    pairs = SyntheticPairs(vocabulary=330, longest=63, pairs=500)
    padded = padded_batches(pairs, 512, 10**6)
    found = Counter(row for batch in padded for row in sentences(batch.source_BS))
    assert found == Counter((*pairs.source(i).tolist(), EOS) for i in range(500))
    sizes = sorted(max(b.source_BS.numel(), b.output_BT.numel()) for b in padded)
    assert sizes[-1] <= 512
    assert sizes[1] > 512 - 2 * 64, "only the last batch may be short"


@pytest.mark.parametrize("count", [2, 8, 32])
def test_few_batches_are_padded_as_little_as_many_and_have_all_lengths(
    count: int, pairs: SyntheticPairs
) -> None:
    padded = padded_batches(pairs, 512, count)
    assert len(padded) == count
    source = sum(b.source_tokens for b in padded) / sum(b.source_BS.numel() for b in padded)
    target = sum(b.target_tokens for b in padded) / sum(b.output_BT.numel() for b in padded)
    assert min(source, target) > 0.85
    lengths = [batch.output_BT.shape[1] for batch in padded]
    assert max(lengths) > 1.5 * min(lengths)
    if count > 2:
        assert lengths != sorted(lengths), "not the short ones first"


# --- the models ---


@pytest.mark.slow
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


@pytest.mark.parametrize("model", peer_models(CPU), ids=lambda model: model.name)
def test_a_peer_learns(model: peers.PeerModel, config: Config) -> None:
    batches = [
        PaddedBatch(torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]]), torch.tensor([[7, 2]]))
    ]
    settings = ["model.dropout=0", "training.label_smoothing=0"]
    peer = PeerTraining(model, config.overridden(settings), batches, CPU)

    def loss() -> float:
        with torch.no_grad():
            logits = peer._compute_logits(batches[0].source_BS, batches[0].input_BT)
        return nn.functional.cross_entropy(logits[0], batches[0].output_BT[0]).item()

    before = loss()
    for _ in range(10):
        peer.run_round()
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
