"""Convolution over packed rows, and the two models made of it."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.config import ModelConfig, load_preset
from dragoman.models import Model, Rows, build, count_parameters
from dragoman.models.attention import record_attention
from dragoman.models.bytenet import ROOM, ByteNet, Unfolding
from dragoman.models.convolution import Convolution
from dragoman.models.convs2s import ConvS2S, SourceAttention

VOCABULARY = 23
KINDS = [(1, 1), (3, 1), (5, 1), (3, 2), (5, 4)]
"""Kernel and dilation."""
ARCHITECTURES = ("convs2s", "bytenet")


def settings(architecture: str, **changes: object) -> ModelConfig:
    small = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "heads": 4, "dropout": 0.0}
    return ModelConfig(**{**small, "architecture": architecture, **changes})  # type: ignore[arg-type]


def made(architecture: str, **changes: object) -> Model:
    torch.manual_seed(3)
    return build(settings(architecture, **changes), VOCABULARY).double().eval()


def packed(*rows: list[int], width: int, ids: list[list[int]] | None = None) -> Rows:
    """Rows of sentences of these lengths, with the rest of each row as padding."""
    segments = torch.zeros(len(rows), width, dtype=torch.int32)
    positions = torch.zeros_like(segments)
    for r, lengths in enumerate(rows):
        start = 0
        for n, length in enumerate(lengths, 1):
            segments[r, start : start + length] = n
            positions[r, start : start + length] = torch.arange(length)
            start += length
    drawn = torch.randint(4, VOCABULARY, segments.shape, dtype=torch.int32)
    return Rows(drawn if ids is None else torch.tensor(ids), segments, positions)


def alone(*lengths: int) -> Rows:
    longest = max(lengths)
    return Rows.one_a_row(
        torch.randint(4, VOCABULARY, (len(lengths), longest)), torch.tensor(lengths)
    )


@pytest.mark.parametrize("causal", [False, True], ids=["centred", "causal"])
@pytest.mark.parametrize(("kernel", "dilation"), KINDS)
def test_a_packed_sentence_is_convolved_as_if_alone(
    kernel: int, dilation: int, causal: bool
) -> None:
    convolution = Convolution(3, 4, kernel, dilation=dilation, causal=causal).double()
    rows = packed([7, 2, 11], [1, 17], [], width=23)
    x = torch.randn(3, 23, 3, dtype=torch.float64)
    x[rows.segments_RL == 0] = torch.nan  # whatever padding holds
    found = convolution(x, rows)
    span = (kernel - 1) * dilation
    before = span if causal else span // 2
    for r, n in [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]:
        here = rows.segments_RL[r] == n
        framed = F.pad(x[r, here].T, (before, span - before))
        expected = torch.nn.Conv1d.forward(convolution, framed).T
        torch.testing.assert_close(found[r, here], expected)
    padding = found[rows.segments_RL == 0]
    torch.testing.assert_close(padding, convolution.bias.expand_as(padding))


@pytest.mark.parametrize(("kernel", "dilation"), KINDS)
def test_step_by_step_a_convolution_gives_what_it_gives_at_once(kernel: int, dilation: int) -> None:
    convolution = Convolution(3, 4, kernel, dilation=dilation, causal=True).double()
    x_BKTM = torch.randn(2, 3, 20, 3, dtype=torch.float64)
    whole = convolution(x_BKTM.flatten(0, 1), alone(*[20] * 6)).view(2, 3, 20, 4)
    history = convolution.empty_history(x_BKTM).expand(-1, 3, -1, -1)
    for t in range(20):
        y, history = convolution.step(x_BKTM[:, :, t], history)
        assert history.shape == (2, 3, (kernel - 1) * dilation, 3)
        torch.testing.assert_close(y, whole[:, :, t])


def test_a_sentence_is_unfolded_to_six_fifths_of_its_length_and_some_room() -> None:
    unfolding = Unfolding(packed([5, 1], [], [6], width=7))
    widths = [6 + ROOM, 2 + ROOM, 8 + ROOM]
    assert unfolding.columns == sum(widths)
    assert unfolding.rows.segments_RL.unique_consecutive(return_counts=True)[1].tolist() == widths
    assert unfolding.rows.positions_RL[0].tolist() == [p for width in widths for p in range(width)]


def test_columns_are_found_by_sentence_and_position_and_are_zeros_where_there_are_none() -> None:
    source = packed([2, 3], [1], width=5)
    unfolding = Unfolding(source)
    a, b = 3 + ROOM, 4 + ROOM  # wide: ⌈2.4⌉ and ⌈3.6⌉
    numbers = torch.arange(1.0, unfolding.columns + 1)[None, :, None]
    target = packed([a + 2, b], [1], width=a + b + 3)
    found = unfolding.gather(numbers, target)[..., 0]
    first = [*range(1, a + 1), 0, 0, *range(a + 1, a + b + 1), 0]
    assert found[0].tolist() == first
    assert found[1].tolist() == [a + b + 1] + [0] * (a + b + 2)
    unfolded = unfolding.unfold(torch.arange(1.0, 11).view(2, 5, 1), source)[0, :, 0]
    pieces = [[1, 2], [3, 4, 5], [6]]
    wide = [a, b, 2 + ROOM]
    expected = [p + [0] * (w - len(p)) for p, w in zip(pieces, wide, strict=True)]
    assert unfolded.tolist() == [number for part in expected for number in part]


def test_past_the_last_column_bytenet_goes_on_without_a_source() -> None:
    model = made("bytenet", encoder_layers=4, decoder_layers=1)  # columns see 15 to each side
    source, target = alone(1, 4), alone(14, 14)
    whole = model(source, target).log_softmax(-1)
    state = model.start(source)
    for t in range(14):
        scores, state = model.step(target.ids_RL[:, t : t + 1], state)
        torch.testing.assert_close(scores[:, 0], whole[:, t])
    other = model(alone(1, 4), target).log_softmax(-1)
    seen = [2 + ROOM + 2, 5 + ROOM + 2]  # the decoder's kernel remembers a column for two pieces
    for b in range(2):
        assert not torch.allclose(whole[b, seen[b] - 1], other[b, seen[b] - 1])
        torch.testing.assert_close(whole[b, seen[b] :], other[b, seen[b] :])


@pytest.mark.parametrize(
    ("blocks", "reach"), [(1, 1), (2, 1 + 2), (5, 1 + 2 + 4 + 8 + 16), (6, 31 + 1), (7, 32 + 2)]
)
def test_bytenet_sees_as_far_as_its_dilations_say(blocks: int, reach: int) -> None:
    model = made("bytenet", encoder_layers=blocks, decoder_layers=blocks, d_model=64)
    assert isinstance(model, ByteNet)
    length, here = 160, 80
    rows = alone(length)
    for stack, seen in [
        (model.encoder, range(here - reach, here + reach + 1)),
        (model.decoder, range(here - 2 * reach, here + 1)),
    ]:
        x = torch.randn(1, length, 64, dtype=torch.float64, requires_grad=True)
        y = x
        for block in stack:
            y = block(y, rows)
        (gradient,) = torch.autograd.grad(y[0, here].square().sum(), x)
        assert gradient[0].abs().sum(-1).nonzero().flatten().tolist() == list(seen)


def test_attention_by_hand() -> None:
    attention = SourceAttention(settings("convs2s", d_model=2, heads=1)).double()
    with torch.no_grad():
        attention.query.weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        attention.query.bias.copy_(torch.tensor([0.0, 1.0]))
    h = torch.tensor([[[-1.0, 0.5]]], dtype=torch.float64)  # W h + b = (0.5, 0)
    g = torch.tensor([[[math.log(3) - 0.5, 0.0]]], dtype=torch.float64)  # so d = (ln 3, 0)
    z = torch.tensor([[[1.0, 7.0], [0.0, 7.0], [9.0, 9.0]]], dtype=torch.float64)
    values = torch.tensor([[[4.0, 0.0], [0.0, 8.0], [9.0, 9.0]]], dtype=torch.float64)
    mask = torch.tensor([[[True, True, False]]])
    with record_attention(attention) as seen:
        context = attention(h, g, (z, values, mask))
    torch.testing.assert_close(seen[""], torch.tensor([[[[0.75, 0.25, 0.0]]]]).double())
    # 3/4 of (4, 0) and 1/4 of (0, 8), times m √(1/m) with m = 2
    torch.testing.assert_close(context, torch.tensor([[[3.0, 2.0]]]).double() * math.sqrt(2))


def test_every_decoder_layer_of_convs2s_attends_to_its_own_sentence() -> None:
    model = made("convs2s", decoder_layers=3)
    source, target = packed([2, 3], width=6), packed([4, 1], width=6)
    with record_attention(model) as seen:
        model(source, target)
    assert len(seen) == 3
    for weights in seen.values():
        assert weights.shape == (1, 1, 6, 6)
        assert weights[0, 0, :4, 2:].count_nonzero() == 0
        assert weights[0, 0, 4, [0, 1, 5]].count_nonzero() == 0
        assert weights[0, 0, 4, 2:5].all()


def test_the_first_weights_keep_the_variance_through_16_layers() -> None:
    model = made("convs2s", encoder_layers=16, decoder_layers=16, d_model=128)
    assert isinstance(model, ConvS2S)
    source, target = alone(40, 40), alone(40, 40)
    e = model.source_embedding(source.ids_RL, source.positions_RL)
    embedded = e.std()
    z, values = model.encode(source)
    torch.testing.assert_close(values, (z + e) * math.sqrt(0.5))
    assert 0.7 < z.std() / embedded < 1.4
    assert 0.7 < values.std() / embedded < 1.4
    # What all source positions have in common, √m lets grow: the layers' contexts are alike.
    assert 0.7 < model.features(source, target).std() / embedded < 5


def test_dropout_is_paid_for_in_the_first_weights() -> None:
    torch.manual_seed(0)
    config = settings("convs2s", d_model=256, dropout=0.5)
    weight = build(config, VOCABULARY).get_parameter("encoder.0.convolution.convolution.weight")
    assert weight.std().item() == pytest.approx(math.sqrt(4 * 0.5 / (3 * 256)), rel=0.02)


def test_positions_past_the_last_learned_one_share_it() -> None:
    model = made("convs2s", max_positions=3, encoder_layers=1, decoder_layers=1)
    assert isinstance(model, ConvS2S)
    same = torch.full((1, 6), 7)
    x = model.source_embedding(same, torch.arange(6)[None])[0]
    assert (x[3:] == x[2]).all()
    assert not torch.allclose(x[1], x[2])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("shared", [True, False])
def test_a_batch_of_padding_is_finite_and_reaches_every_parameter(
    architecture: str, shared: bool
) -> None:
    model = made(architecture, shared_embeddings=shared).train()
    features = model.features(packed([], [], width=5), packed([], [], width=7))
    assert features.shape == (2, 7, 16)
    assert features.isfinite().all()
    model.logits(features).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_parameter_learns_from_a_batch_with_an_empty_row(architecture: str) -> None:
    model = made(architecture).train()
    source, target = packed([4, 3], [], [6], width=7), packed([5, 2], [], [7], width=8)
    real = target.segments_RL > 0
    model.logits(model.features(source, target)[real]).log_softmax(-1)[:, 5].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_hypotheses_have_histories_and_sentences_have_sources(architecture: str) -> None:
    state = made(architecture).start(alone(4, 2, 3)).expand(5)
    assert {len(tensor) for tensor in state.source} == {3}  # type: ignore[attr-defined]
    spans = [2, 2] if architecture == "convs2s" else [2, 4]
    width = 16 if architecture == "convs2s" else 8
    shapes = [tuple(history.shape) for history in state.histories]  # type: ignore[attr-defined]
    assert shapes == [(3, 5, span, width) for span in spans]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_bfloat16_arithmetic_gives_full_precision_scores(architecture: str) -> None:
    model = made(architecture).float()
    source, target = alone(4, 2), alone(3, 3)
    exact = model(source, target).log_softmax(-1)
    with torch.autocast("cpu", torch.bfloat16):
        whole = model(source, target).float().log_softmax(-1)
        state = model.start(source)
        for t in range(3):
            scores, state = model.step(target.ids_RL[:, t : t + 1], state)
            assert scores.dtype == torch.float32
            torch.testing.assert_close(scores[:, 0], whole[:, t], atol=0.05, rtol=0.05)
    torch.testing.assert_close(whole, exact, atol=0.1, rtol=0.1)
    rounded = model.bfloat16()(source, target)
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.float().log_softmax(-1), exact, atol=0.2, rtol=0.1)


def shifted(ids: Tensor) -> Tensor:
    return torch.cat([torch.ones_like(ids[:, :1]), ids[:, :-1]], 1)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_learns_32_pairs_of_random_sentences_by_heart(architecture: str) -> None:
    torch.manual_seed(1)
    model = build(settings(architecture, d_model=32), VOCABULARY).train()
    lengths = [[3, 7, 6], [5, 4, 6], [8, 4, 4], [7, 5, 3]] * 2 + [[5, 9]] * 4
    source = packed(*lengths, width=16)
    target = packed(*[list(reversed(row)) for row in lengths], width=17)
    answers, real = target.ids_RL.long(), target.segments_RL > 0
    inputs = shifted(answers).where(target.positions_RL > 0, 1)
    target = Rows(inputs, target.segments_RL, target.positions_RL)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(80):
        logits = model.logits(model.features(source, target)[real])
        loss = F.cross_entropy(logits, answers[real])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
    correct = model.eval()(source, target).argmax(-1)[real] == answers[real]
    assert correct.float().mean() > 0.97


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_preset_is_about_as_large_as_the_base_model(architecture: str) -> None:
    base, config = load_preset("base"), load_preset(architecture)
    assert config.model.architecture == architecture
    assert config.tokenizer == base.tokenizer
    sizes = [count_parameters(c.model, c.tokenizer.vocabulary) for c in (config, base)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)
