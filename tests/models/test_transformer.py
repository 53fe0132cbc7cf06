"""The Transformer against torch.nn and against numbers worked by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.models import Rows, build, count_parameters
from dragoman.models.attention import AttentionMask, MultiHeadAttention, self_mask
from dragoman.models.transformer import DecoderLayer, EncoderLayer, ResidualStream

CONFIG = ModelConfig(d_model=16, d_ff=32, heads=4, dropout=0.0, encoder_layers=1, decoder_layers=1)


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.data = torch.cat(
        [ours.query.weight, ours.key.weight, ours.value.weight]
    ).detach()
    theirs.in_proj_bias.data.zero_()
    theirs.out_proj.weight.data = ours.output.weight.detach()
    theirs.out_proj.bias.data.zero_()


def copy_linear(ours: nn.Linear, theirs: nn.Linear) -> None:
    theirs.load_state_dict(ours.state_dict())


def rows(segments: list[int]) -> Rows:
    segments_RL = torch.tensor([segments])
    positions = torch.arange(len(segments))[None]
    return Rows(torch.zeros_like(segments_RL), segments_RL, positions)


def test_an_encoder_layer_equals_torch_nn() -> None:
    ours = EncoderLayer(CONFIG)
    theirs = nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True, layer_norm_eps=1e-6)
    copy_attention(ours.attention.attention, theirs.self_attn)
    copy_linear(ours.feed_forward.inner, theirs.linear1)
    copy_linear(ours.feed_forward.outer, theirs.linear2)
    x = torch.randn(1, 6, 16)
    row = rows([1] * 6)
    expected = theirs(x)
    found = ours(ResidualStream.of(x), AttentionMask(row)).residual
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_decoder_layer_equals_torch_nn(norm: str) -> None:
    config = ModelConfig(d_model=16, d_ff=32, heads=4, dropout=0.0, norm=norm)  # type: ignore[arg-type]
    ours = DecoderLayer(config)
    theirs = nn.TransformerDecoderLayer(
        16, 4, 32, 0.0, batch_first=True, layer_norm_eps=1e-6, norm_first=norm == "pre"
    )
    copy_attention(ours.attention.attention, theirs.self_attn)
    copy_attention(ours.source_attention, theirs.multihead_attn)
    copy_linear(ours.feed_forward.inner, theirs.linear1)
    copy_linear(ours.feed_forward.outer, theirs.linear2)
    x, memory = torch.randn(1, 5, 16), torch.randn(1, 7, 16)
    row, source = rows([1] * 5), rows([1] * 7)
    stream = ResidualStream.of(x)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    torch.testing.assert_close(
        ours(stream, AttentionMask(row, causal=True), memory, AttentionMask(row, source)).residual,
        theirs(x, memory, tgt_mask=causal, tgt_is_causal=True),
    )


def test_the_window_hides_what_is_farther() -> None:
    mask: Tensor = self_mask(rows([1] * 6), causal=False, window=2)[0, 0]
    assert mask[0].tolist() == [True, True, True, False, False, False]
    assert mask[3].tolist() == [False, True, True, True, True, True]
    causal: Tensor = self_mask(rows([1] * 6), causal=True, window=2)[0, 0]
    assert causal[3].tolist() == [False, True, True, True, False, False]


def test_the_base_model_has_the_parameters_its_equations_give() -> None:
    d_model, d_ff, vocabulary = 512, 2048, 37_000
    attention = 4 * d_model * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder = 6 * (attention + feed_forward + 2 * norm)
    decoder = 6 * (2 * attention + feed_forward + 3 * norm)
    assert count_parameters(ModelConfig(), vocabulary) == vocabulary * d_model + encoder + decoder


def test_unshared_embeddings_are_three_matrices() -> None:
    shared = count_parameters(ModelConfig(), 37_000)
    unshared = count_parameters(ModelConfig(shared_embeddings=False), 37_000)
    assert unshared - shared == 2 * 37_000 * 512


def test_embeddings_start_at_unit_scale() -> None:
    model = build(ModelConfig(positions="rotary"), 1000).eval()
    embedded = model.embedding(torch.arange(1000), torch.zeros(1000), 1)  # type: ignore[operator]
    assert embedded.std().item() == pytest.approx(1.0, abs=0.02)
