"""What every model must do, whatever it is made of."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.models import Model, Rows, build
from dragoman.models.attention import record_attention

VOCABULARY = 23
SMALL = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 4}

VARIANTS: dict[str, ModelConfig] = {
    name: ModelConfig(**{**SMALL, **changes})
    for name, changes in {
        "paper": {},
        "narrow keys, wide values": {"d_k": 2, "d_v": 8},
        "one head": {"heads": 1, "d_k": 16, "d_v": 16},
        "learned positions": {"positions": "learned"},
        "rotary positions": {"positions": "rotary"},
        "relative positions": {"positions": "relative", "max_distance": 3},
        "pre-norm": {"norm": "pre"},
        "RMSNorm": {"norm_kind": "rms"},
        "GELU": {"activation": "gelu"},
        "SwiGLU": {"activation": "swiglu"},
        "window": {"window": 2},
        "window, relative": {"window": 2, "positions": "relative", "max_distance": 2},
        "unshared": {"shared_embeddings": False},
        "attention dropout": {"dropout": 0.0, "attention_dropout": 0.1, "activation_dropout": 0.1},
        "uneven stacks": {"encoder_layers": 3, "decoder_layers": 1},
        "experts": {"experts": 4},
        "three experts, pre-norm": {"experts": 5, "experts_used": 3, "norm": "pre"},
        "feed-forward": {"architecture": "feed-forward"},
        "feed-forward, pre-norm": {"architecture": "feed-forward", "norm": "pre"},
        "RNN": {"architecture": "recurrent", "cell": "rnn"},
        "GRU, unshared": {"architecture": "recurrent", "cell": "gru", "shared_embeddings": False},
        "LSTM": {"architecture": "recurrent"},
        "LSTM, dot": {"architecture": "recurrent", "source_attention": "dot"},
        "LSTM, additive": {"architecture": "recurrent", "source_attention": "additive"},
        "GNMT": {"architecture": "gnmt", "encoder_layers": 4, "decoder_layers": 3},
        "ConvS2S": {"architecture": "convs2s"},
        "ConvS2S, kernel 5": {"architecture": "convs2s", "kernel": 5, "max_positions": 4},
        "ByteNet": {"architecture": "bytenet"},
        "ByteNet, uneven": {"architecture": "bytenet", "encoder_layers": 6, "decoder_layers": 3},
    }.items()
}
WITHOUT_ATTENTION = {
    VARIANTS[name]
    for name in (
        "feed-forward",
        "feed-forward, pre-norm",
        "RNN",
        "GRU, unshared",
        "LSTM",
        "ByteNet",
        "ByteNet, uneven",
    )
}


@pytest.fixture(params=VARIANTS, ids=str)
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return VARIANTS[request.param]


@pytest.fixture
def model(config: ModelConfig) -> Model:
    torch.manual_seed(7)
    made = build(config, VOCABULARY)
    for name, parameter in made.named_parameters():
        if "relative" in name:  # zero at the start: nothing to test
            torch.nn.init.normal_(parameter)
    return made.double().eval()


def sentences(*lengths: int) -> list[Tensor]:
    return [torch.randint(4, VOCABULARY, (n,)) for n in lengths]


def padded(parts: list[Tensor]) -> Rows:
    lengths = torch.tensor([len(p) for p in parts])
    ids = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
    return Rows.one_a_row(ids, lengths)


def packed(parts: list[Tensor], padding: int) -> Rows:
    ids = torch.cat([*parts, torch.zeros(padding, dtype=torch.long)])
    segments = [torch.full_like(p, n) for n, p in enumerate(parts, 1)]
    positions = [torch.arange(len(p)) for p in parts]
    empty = torch.zeros(padding, dtype=torch.long)
    return Rows(
        ids[None], torch.cat([*segments, empty])[None], torch.cat([*positions, empty])[None]
    )


def test_stepwise_decoding_equals_teacher_forcing(model: Model) -> None:
    source, target = padded(sentences(5, 3)), padded(sentences(6, 6))
    whole = model(source, target).log_softmax(-1)
    state = model.start(source)
    for t in range(6):
        stepwise, state = model.step(target.ids_RL[:, t : t + 1], state)
        torch.testing.assert_close(stepwise[:, 0], whole[:, t])


def test_the_future_is_invisible(model: Model) -> None:
    source, target = padded(sentences(4)), padded(sentences(6))
    before = model(source, target)
    changed = target.ids_RL.clone()
    changed[0, 4] = (changed[0, 4] + 1 - 4) % (VOCABULARY - 4) + 4
    after = model(source, Rows(changed, target.segments_RL, target.positions_RL))
    torch.testing.assert_close(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4:], before[:, 4:])


def test_the_source_is_read(model: Model) -> None:
    source, other, target = padded(sentences(4)), padded(sentences(4)), padded(sentences(3))
    assert not torch.allclose(model(source, target), model(other, target))


@pytest.mark.slow
def test_order_matters(model: Model) -> None:
    source, target = padded(sentences(5)), padded(sentences(3))
    turned = Rows(source.ids_RL.flip(1), source.segments_RL, source.positions_RL)
    assert not torch.allclose(model(source, target), model(turned, target))


@pytest.mark.slow
def test_padding_and_neighbours_in_a_row_change_nothing(model: Model) -> None:
    sources, targets = sentences(5, 2, 7), sentences(3, 6, 4)
    row = model(packed(sources, 4), packed(targets, 3))
    assert row.isfinite().all()
    start = 0
    for source, target in zip(sources, targets, strict=True):
        alone = model(padded([source]), padded([target]))
        torch.testing.assert_close(row[0, start : start + len(target)], alone[0])
        start += len(target)


@pytest.mark.slow
def test_a_row_without_source_padding_stays_finite(model: Model) -> None:
    assert model(packed(sentences(5, 2), 0), packed(sentences(3, 6), 4)).isfinite().all()


@pytest.mark.slow
def test_batch_mates_change_nothing_in_stepwise_decoding(model: Model) -> None:
    sources = sentences(5, 2, 7)
    together = model.start(padded(sources)).expand(2)
    ids = torch.randint(4, VOCABULARY, (3, 2))
    scores, together = model.step(ids, together)
    scores, together = model.step(ids.flip(1), together.reorder(torch.tensor([[1, 0]] * 3)))
    scores, together = model.step(ids[:2], together.keep(torch.tensor([2, 0])))
    for place, n in enumerate([2, 0]):
        alone = model.start(padded([sources[n]])).expand(2)
        _, alone = model.step(ids[n : n + 1].flip(1), alone)
        _, alone = model.step(ids[n : n + 1].flip(1), alone)
        expected, alone = model.step(ids[place : place + 1], alone)
        torch.testing.assert_close(scores[place], expected[0])


@pytest.mark.slow
def test_recording_attention_changes_no_result_and_weights_sum_to_one(
    model: Model, config: ModelConfig
) -> None:
    source, target = packed(sentences(5, 2), 3), packed(sentences(3, 6), 1)
    plain = model(source, target)
    with record_attention(model) as seen:
        recorded = model(source, target)
    torch.testing.assert_close(recorded, plain)
    attends = any("source_attention" in name for name in seen)
    assert attends == (config not in WITHOUT_ATTENTION)
    for weights in seen.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
    with record_attention(model) as seen:
        pass
    model(source, target)
    assert not seen, "a closed recording must see nothing"


def test_nothing_but_padding_is_finite_and_reaches_every_weight(model: Model) -> None:
    """Ranks exchange gradients of a slice that adds nothing."""
    empty = Rows.one_a_row(torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, dtype=torch.long))
    features = model.train().features(empty, empty)
    assert features.isfinite().all()
    (features.sum() + model.logits(features).sum()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.thorough  # test_architectures.py has every architecture learn, and search find it
def test_it_learns_to_copy(model: Model) -> None:
    """A wrong gradient, or dropout that never lets go, fails here."""
    model.float().train()
    source = padded(sentences(*[5] * 4))
    shifted = torch.cat([torch.ones(4, 1, dtype=torch.long), source.ids_RL[:, :-1]], 1)
    target = Rows(shifted, source.segments_RL, source.positions_RL)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(160):
        optimizer.param_groups[0]["lr"] = 4e-3 * min(1.0, (step + 1) / 40)  # post-norm wants it
        loss = torch.nn.functional.cross_entropy(
            model(source, target).flatten(0, 1), source.ids_RL.flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    correct = model(source, target).argmax(-1) == source.ids_RL
    assert correct.float().mean() > 0.85
