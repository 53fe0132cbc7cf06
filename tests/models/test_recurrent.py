"""Recurrent models: against torch.nn, against hand-made numbers, and at their edges."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig, load_preset, preset_paper_figures
from dragoman.errors import ConfigError
from dragoman.models import Model, Rows, build, count_parameters, recurrent
from dragoman.models.attention import record_attention
from dragoman.models.recurrent import AdditiveAttention, DotAttention, EncodedSource, Recurrent
from dragoman.models.unpacking import group_by_length, unpack
from dragoman.models.weights import adopt_weights, get_weights

VOCABULARY = 23
MODELS: dict[str, dict[str, Any]] = {
    "rnn": {"cell": "rnn"},
    "lstm": {},
    "gru": {"cell": "gru"},
    "lstm-dot": {"source_attention": "dot"},
    "lstm-additive": {"source_attention": "additive"},
    "gnmt": {"architecture": "gnmt", "encoder_layers": 3, "decoder_layers": 3},
}


def small(**changes: Any) -> ModelConfig:
    base = {"architecture": "recurrent", "encoder_layers": 2, "decoder_layers": 2, "d_model": 16}
    return ModelConfig(**{**base, **changes})


def made(config: ModelConfig) -> Model:
    torch.manual_seed(5)
    return build(config, VOCABULARY).double().eval()


@pytest.fixture(params=MODELS, ids=str)
def model(request: pytest.FixtureRequest) -> Model:
    return made(small(**MODELS[request.param]))


def sentences(*lengths: int) -> list[Tensor]:
    return [torch.randint(4, VOCABULARY, (n,)) for n in lengths]


def padded(parts: list[Tensor]) -> Rows:
    lengths = torch.tensor([len(p) for p in parts])
    return Rows.one_a_row(nn.utils.rnn.pad_sequence(parts, batch_first=True), lengths)


def packed(*rows: list[Tensor], length: int) -> Rows:
    """Rows of sentences one after another, as training makes them."""
    ids, segments, positions = torch.zeros(3, len(rows), length, dtype=torch.int32).unbind()
    for r, parts in enumerate(rows):
        start = 0
        for number, part in enumerate(parts, 1):
            here = slice(start, start + len(part))
            ids[r, here] = part.int()
            segments[r, here] = number
            positions[r, here] = torch.arange(len(part)).int()
            start = here.stop
    return Rows(ids, segments, positions)


def pair() -> tuple[Rows, Rows]:
    """Three rows of five sentences and one of padding, none longest on both sides."""
    source = packed(sentences(2, 5), [], sentences(3), sentences(1, 4), length=9)
    target = packed(sentences(4, 3), [], sentences(6), sentences(2, 1), length=8)
    return source, target


# --- sentences ---


def test_rows_are_taken_apart_in_one_order_for_both_sides() -> None:
    src, tgt = unpack(*pair())
    assert src.lengths_B.tolist() == [2, 5, 3, 1, 4]
    assert tgt.lengths_B.tolist() == [4, 3, 6, 2, 1]


def test_features_come_as_torch_packs_them() -> None:
    parts = sentences(2, 5, 3, 3)
    rows = packed(parts[:2], parts[2:], length=8)
    (found,) = unpack(rows)
    ours = found.pack(found.gather(rows.ids_RL).long())
    for mine, torchs in zip(
        ours, nn.utils.rnn.pack_sequence(parts, enforce_sorted=False), strict=True
    ):
        assert torch.equal(mine, torchs)


def test_features_go_back_where_they_came_from_and_padding_is_zero() -> None:
    rows, _ = pair()
    (found,) = unpack(rows)
    x = torch.randn(*rows.ids_RL.shape, 3)
    back = found.to_rows(found.gather(x))
    real = rows.segments_RL > 0
    assert torch.equal(back[real], x[real])
    assert not back[~real].any()


def test_sentences_can_be_padded_all_or_some() -> None:
    parts = sentences(2, 5, 3, 1)
    rows = packed(parts[:2], parts[2:], length=8)
    (found,) = unpack(rows)
    x = found.gather(rows.ids_RL)[:, None]
    for chosen, length in (([0, 1, 2, 3], 5), ([3, 2], 3)):
        ids, real = found.pad(x, torch.tensor(chosen), length)
        assert ids.shape == (len(chosen), length, 1)
        for n, b in enumerate(chosen):
            assert torch.equal(ids[n, real[n], 0], parts[b].int())
    whole, _ = found.pad(x)
    assert whole.shape == (4, 5, 1)


def test_groups_of_similar_sentences_hold_each_once_and_stay_small() -> None:
    torch.manual_seed(3)
    lengths = torch.randint(1, 20, (2, 40)).tolist()
    src, tgt = (unpack(packed(*[[p] for p in sentences(*side)], length=20))[0] for side in lengths)
    groups = list(group_by_length(src, tgt, limit=500))
    assert sorted(b for chosen, _, _ in groups for b in chosen.tolist()) == list(range(40))
    for chosen, T, S in groups:
        assert len(chosen) * T * S <= 500
        assert max(tgt.lengths_B[chosen].tolist()) <= T
        assert max(src.lengths_B[chosen].tolist()) <= S
    compared = sum(len(chosen) * T * S for chosen, T, S in groups)
    assert compared < 0.6 * 40 * 19 * 19, "short sentences must not be padded to the longest"


# --- the models against torch.nn and by hand ---


@pytest.mark.parametrize(("cell", "kind"), [("rnn", nn.RNN), ("lstm", nn.LSTM), ("gru", nn.GRU)])
def test_one_vector_equals_a_stack_of_torchs(cell: str, kind: Any) -> None:
    model = made(small(cell=cell))
    assert isinstance(model, Recurrent)
    (source,), (target,) = sentences(5), sentences(4)
    encoder, decoder = (kind(16, 16, num_layers=2, batch_first=True).double() for _ in range(2))
    for stack, layers in ((encoder, model.encoder), (decoder, model.decoder)):
        for j, layer in enumerate(layers):
            for name, weight in layer.cell.named_parameters():
                getattr(stack, name.replace("l0", f"l{j}")).data.copy_(weight)
    table = model.output_weight()
    vector = encoder(table[source][None] * 4)[0][:, -1]  # 4 = √16
    first = torch.stack([torch.tanh(begin(vector)) for begin in model.begin])
    start = tuple(part.contiguous() for part in first.chunk(2, -1)) if cell == "lstm" else first
    states = decoder(table[target][None] * 4, start)[0]
    context = vector[:, None].expand_as(states)
    expected = torch.tanh(model.output(torch.cat([context, states], -1)))
    torch.testing.assert_close(model.features(padded([source]), padded([target])), expected)


@pytest.mark.parametrize("attention", ["dot", "additive"])
def test_attention_equals_its_formula(attention: str) -> None:
    model: Any = made(small(source_attention=attention, encoder_layers=1, decoder_layers=1))
    (source,), (target,) = sentences(5), sentences(4)
    table = model.output_weight()
    layer, merge = model.encoder[0].layer, model.encoder[0].merge
    both, (last, _) = layer.cell(table[source][None] * 4)
    memory = merge(both)[0]
    first = torch.tanh(model.begin[0](merge(torch.cat([last[0], last[1]], -1))))
    h, c = (part[None].contiguous() for part in first.chunk(2, -1))
    states = model.decoder[0].cell(table[target][None] * 4, (h, c))[0][0]
    scores = torch.empty(4, 5, dtype=torch.float64)
    for t in range(4):
        for i in range(5):
            a = model.source_attention
            if attention == "dot":
                scores[t, i] = states[t] @ memory[i]
            else:
                inner = a.query.weight @ states[t] + a.query.bias + a.key.weight @ memory[i]
                scores[t, i] = a.scorer.weight[0] @ torch.tanh(inner)
    context = scores.softmax(-1) @ memory
    expected = torch.tanh(model.output(torch.cat([context, states], -1)))
    torch.testing.assert_close(model.features(padded([source]), padded([target]))[0], expected)


def test_gnmt_adds_residuals_from_the_third_layer_and_context_above_the_bottom() -> None:
    model: Any = made(small(architecture="gnmt", encoder_layers=4, decoder_layers=4))
    (source,), (target,) = sentences(5), sentences(4)
    table = model.output_weight()
    one, two, three, four = (layer.cell for layer in model.encoder)
    x = two(one(table[source][None] * 4)[0])[0]
    x = x + three(x)[0]
    memory = x + four(x)[0]
    x = model.bottom.cell(table[target][None] * 4)[0]
    a = model.source_attention
    inner = torch.tanh(a.query(x)[:, :, None] + a.key(memory)[:, None])
    context = a.scorer(inner)[..., 0].softmax(-1) @ memory
    two, three, four = (layer.cell for layer in model.decoder)
    x = two(torch.cat([x, context], -1))[0]
    x = x + three(torch.cat([x, context], -1))[0]
    x = x + four(torch.cat([x, context], -1))[0]
    torch.testing.assert_close(model.features(padded([source]), padded([target])), x)


def test_dot_attention_by_hand() -> None:
    """Scores 0 and ln 3: weights 1/4 and 3/4; the third position is padding."""
    memory = torch.tensor([[[1.0, 0.0], [0.0, math.log(3)], [9.0, 9.0]]])
    attention = DotAttention()
    with record_attention(attention) as seen:
        context = attention.attend(
            torch.tensor([[[0.0, 1.0]]]),
            EncodedSource(memory, memory, torch.tensor([[True, True, False]])),
        )
    torch.testing.assert_close(seen[""], torch.tensor([[[[0.25, 0.75, 0.0]]]]))
    torch.testing.assert_close(context, torch.tensor([[[0.25, 0.75 * math.log(3)]]]))


def test_additive_attention_by_hand() -> None:
    """v = (ln 3 / tanh 1, 0), W = U = identity: scores ln 3 and 0."""
    attention = AdditiveAttention(2)
    nn.init.eye_(attention.query.weight)
    nn.init.eye_(attention.key.weight)
    attention.scorer.weight.data = torch.tensor([[math.log(3) / math.tanh(1), 0.0]])
    values = torch.tensor([[[0.5, 7.0], [-0.5, -2.0]]])
    memory = EncodedSource(attention.keys(values), values, torch.ones(1, 2).bool())
    with record_attention(attention) as seen:
        context = attention.attend(torch.tensor([[[0.5, 3.0]]]), memory)
    torch.testing.assert_close(seen[""], torch.tensor([[[[0.75, 0.25]]]]))
    torch.testing.assert_close(context, torch.tensor([[[0.25, 4.75]]]))


# --- what the decoder sees of the source ---


def test_one_vector_has_the_same_size_whatever_the_length() -> None:
    model: Any = made(small())
    for length in (1, 3, 40):
        state = model.start(padded(sentences(length)))
        vector = state.memory.values_BSM
        assert vector.shape == (1, 1, 16)
        starts = torch.stack([torch.tanh(begin(vector)) for begin in model.begin], 2)
        torch.testing.assert_close(state.hidden_BKJD, starts)  # the vector is all it has


@pytest.mark.parametrize("name", ["lstm-dot", "lstm-additive", "gnmt"])
def test_weights_come_one_sentence_a_row_and_padding_gets_none(name: str) -> None:
    model = made(small(**MODELS[name]))
    sources, targets = sentences(2, 5, 3), sentences(4, 3, 6)
    with record_attention(model) as seen:
        model.features(padded(sources), padded(targets))
    (weights,) = [w for n, w in seen.items() if "source_attention" in n]
    assert weights.shape == (3, 1, 6, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 1, 6, dtype=torch.float64))
    for b, (source, target) in enumerate(zip(sources, targets, strict=True)):
        assert not weights[b, ..., len(source) :].any()
        with record_attention(model) as alone:
            model.features(padded([source]), padded([target]))
        (expected,) = alone.values()
        torch.testing.assert_close(weights[b, :, : len(target), : len(source)], expected[0])


@pytest.mark.parametrize("name", ["lstm-dot", "lstm-additive", "gnmt"])
def test_slices_of_attention_equal_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = made(small(**MODELS[name]))
    source, target = pair()
    searched = padded(sentences(3, 1, 4))
    calls: list[int] = []
    score = model.source_attention.score

    def counted(q: Tensor, k: Tensor) -> Tensor:
        calls.append(len(q) * q.shape[1] * k.shape[1])
        out: Tensor = score(q, k)
        return out

    model.source_attention.score = counted

    def everything() -> list[Tensor]:
        calls.clear()
        model.zero_grad()
        out = model.features(source, target)
        out.square().sum().backward()
        state = model.start(searched).expand(2)
        scores, _ = model.step(torch.tensor([[4, 5]] * 3), state)
        return [out.detach(), scores.detach(), *(p.grad for p in model.parameters())]

    whole = everything()
    assert len(calls) == 2
    monkeypatch.setattr(recurrent, "MAX_ELEMENTS", 20 * model.source_attention.size)
    sliced = everything()
    assert len(calls) > 6, "slices, computed again going back"
    assert max(calls) <= 20
    torch.testing.assert_close(sliced, whole)


# --- gradients and learning ---


def test_the_gradient_reaches_every_weight(model: Model) -> None:
    model.train()
    model(*pair()).log_softmax(-1)[..., 5].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_a_batch_of_padding_is_finite_and_has_a_gradient_for_every_weight(model: Model) -> None:
    nothing = packed([], [], length=4)
    features = model.features(nothing, nothing)
    assert features.isfinite().all()
    features[nothing.segments_RL > 0].sum().backward()
    for name, parameter in model.named_parameters():
        if "projection" not in name and "pieces" not in name:
            assert parameter.grad is not None, name
            assert not parameter.grad.any(), name


def test_dropout_acts_in_training_only(model: Model) -> None:
    source, target = pair()
    assert torch.equal(model(source, target), model(source, target))
    model.train()
    assert not torch.allclose(model(source, target), model(source, target))


def test_dropout_falls_on_embeddings_and_after_every_layer(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
        rates.append(rate if training else 0.0)
        return x

    monkeypatch.setattr(nn.functional, "dropout", dropout)
    model.train()(*pair())
    layers = model.config.encoder_layers + model.config.decoder_layers
    assert rates == [0.1] * (2 + layers)


def test_bf16_arithmetic_stays_close(model: Model) -> None:
    model.float()
    source, target = pair()
    exact = model.features(source, target)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model.features(source, target)
        state = model.start(padded(sentences(3, 2)))
        scores, _ = model.step(torch.tensor([[4], [5]]), state)
    assert scores.dtype == torch.float32
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_it_learns_32_pairs_by_heart(name: str) -> None:
    """Random pairs: nothing but memory of the source tells them apart."""
    torch.manual_seed(1)
    layers = {"encoder_layers": 1, "decoder_layers": 1} | MODELS[name]
    config = small(d_model=32, dropout=0.0, **layers)
    model = build(config, VOCABULARY)
    sources = sentences(*[3 + n % 4 for n in range(32)])
    wanted = sentences(*[3 + n % 3 for n in range(32)])
    begun = [torch.cat([torch.ones(1, dtype=torch.long), p[:-1]]) for p in wanted]
    source, target, output = (
        packed(parts[:16], parts[16:], length=90) for parts in (sources, begun, wanted)
    )
    real = target.segments_RL > 0
    answers = output.ids_RL[real].long()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(40):
        loss = nn.functional.cross_entropy(model(source, target)[real], answers)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert (model(source, target)[real].argmax(-1) == answers).float().mean() > 0.95


# --- building ---


def test_a_model_made_without_memory_takes_weights_and_computes_with_them(model: Model) -> None:
    """torch's recurrent layers keep a second list of their weights, which must follow."""
    model.float()
    with torch.device("meta"):
        empty = build(model.config, VOCABULARY)  # type: ignore[arg-type]
    adopt_weights(empty, get_weights(model), where="here")
    source, target = pair()
    torch.testing.assert_close(empty.eval()(source, target), model(source, target))


@pytest.mark.parametrize("side", ["encoder_layers", "decoder_layers"])
def test_gnmt_refuses_a_stack_of_one(side: str) -> None:
    with pytest.raises(ConfigError, match=f"{side} = 1 is too small"):
        build(small(architecture="gnmt", **{side: 1}), VOCABULARY)


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru", "lstm-dot", "lstm-additive", "gnmt"])
def test_presets_are_the_size_of_the_base_model(name: str) -> None:
    config, base = load_preset(name), load_preset("base")
    size = count_parameters(config.model, config.tokenizer.vocabulary)
    assert 0.93 < size / count_parameters(base.model, base.tokenizer.vocabulary) < 1.03
    assert config.training.clip_norm == 1.0
    assert preset_paper_figures(name) == ({"bleu": 24.6} if name == "gnmt" else {})


def test_cells_are_given_states_in_one_piece_of_memory(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As cuDNN demands, and a CPU does not."""
    given: list[Tensor] = []
    original = recurrent.RecurrentLayer._split

    def seen(self: recurrent.RecurrentLayer, state: Tensor) -> Any:
        parts = original(self, state)
        given.extend(parts if isinstance(parts, tuple) else (parts,))
        return parts

    monkeypatch.setattr(recurrent.RecurrentLayer, "_split", seen)
    state = model.start(padded(sentences(5, 3))).expand(3)
    for _ in range(2):
        _, state = model.step(torch.randint(4, VOCABULARY, (2, 3)), state)
    assert given
    assert all(part.is_contiguous() for part in given)
