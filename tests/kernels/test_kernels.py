"""Every kernel gives what the plain code gives, forwards and backwards."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman import kernels
from dragoman.kernels.attention import SentenceSpans, attend
from dragoman.kernels.dropout import dropout_state, reference_mask, seed_dropout
from dragoman.kernels.embedding import embed
from dragoman.kernels.feed_forward import relu_feed_forward
from dragoman.kernels.loss import project_and_score
from dragoman.kernels.optimizer import GradientGatherer, adam_update
from dragoman.kernels.residual import add, add_and_norm, norm, sum_partials
from dragoman.models.api import Rows
from dragoman.models.attention import cross_mask, self_mask
from dragoman.training.loss import label_smoothed_loss

# R rows, T and S lengths, M model width

SOURCE = [[9, 30, 20, 11], [40, 30], [70]]
TARGET = [[12, 25, 20, 10], [33, 36], [68]]


@pytest.fixture(autouse=True)
def seeded(device: torch.device) -> None:
    torch.manual_seed(7)
    seed_dropout(device, 1, 2)


def rows(lengths: list[list[int]], L: int, device: torch.device) -> Rows:
    segments = torch.zeros(len(lengths), L, dtype=torch.int32)
    positions = torch.zeros(len(lengths), L, dtype=torch.int32)
    for r, row in enumerate(lengths):
        at = 0
        for number, length in enumerate(row, 1):
            segments[r, at : at + length] = number
            positions[r, at : at + length] = torch.arange(length)
            at += length
    return Rows(torch.zeros_like(segments), segments, positions).to(device)


def leaf(*shape: int, device: torch.device, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, device=device) * scale).requires_grad_()


def assert_same_gradients(found: Tensor, expected: Tensor, *leaves: Tensor) -> None:
    """Both are functions of the leaves; random upstream gradients."""
    upstream = torch.randn_like(expected)
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)
    for a, b in zip(
        torch.autograd.grad(found, leaves, upstream),
        torch.autograd.grad(expected, leaves, upstream),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)


def plain_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, heads: int, keep: Tensor | None, rate: float
) -> Tensor:
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0)
    if keep is not None:
        weights = weights * keep.view_as(weights) / (1 - rate)
    return (weights @ v).transpose(1, 2).flatten(-2)


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.thorough), 0.3])
@pytest.mark.parametrize(("causal", "window"), [(False, 0), (True, 0), (False, 5), (True, 5)])
def test_self_attention_sees_its_sentence_alone(
    causal: bool, window: int, dropout: float, device: torch.device
) -> None:
    H, K, V, T = 2, 16, 32, 72
    target = rows(TARGET, T, device)
    qkv = leaf(3, T, H * (2 * K + V), device=device)
    segments = target.segments_RL
    found = attend(
        qkv,
        None,
        SentenceSpans(segments, segments),
        heads=H,
        d_k=K,
        causal=causal,
        window=window,
        dropout=dropout,
    )
    real = segments > 0
    mask = self_mask(target, causal=causal, window=window) & real[:, None, :, None]
    keep = (
        reference_mask(dropout_state(device).words, 1, 3 * H * T * T, dropout).to(device)
        if dropout
        else None
    )
    q, k, v = qkv.split([H * K, H * K, H * V], -1)
    expected = plain_attention(q, k, v, mask, H, keep, dropout)
    assert (found[~real] == 0).all()
    assert_same_gradients(found, expected, qkv)


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_attention_to_the_source_sees_the_same_sentence_there(
    dropout: float, device: torch.device
) -> None:
    H, K, V, T, S = 2, 16, 16, 72, 76
    target, source = rows(TARGET, T, device), rows(SOURCE, S, device)
    q = leaf(3, T, H * K, device=device)
    kv = leaf(3, S, H * (K + V), device=device)
    sentences = SentenceSpans(target.segments_RL, source.segments_RL)
    found = attend(q, kv, sentences, heads=H, d_k=K, dropout=dropout)
    real = target.segments_RL > 0
    mask = cross_mask(target.segments_RL, source.segments_RL) & real[:, None, :, None]
    keep = (
        reference_mask(dropout_state(device).words, 1, 3 * H * T * S, dropout).to(device)
        if dropout
        else None
    )
    expected = plain_attention(q, *kv.split([H * K, H * V], -1), mask, H, keep, dropout)
    assert_same_gradients(found, expected, q, kv)


@pytest.mark.slow
@pytest.mark.parametrize("width", [64, 80])
@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_a_residual_is_added_and_normalised(
    width: int, rms: bool, dropout: float, device: torch.device
) -> None:
    x, y = leaf(3, 13, width, device=device), leaf(3, 13, width, device=device)
    weight, bias = leaf(width, device=device), leaf(width, device=device)
    found, again = add_and_norm(x, y, weight, None if rms else bias, 1e-6, dropout)
    dropped = y
    if dropout:
        keep = reference_mask(dropout_state(device).words, 1, y.numel(), dropout).to(device)
        dropped = y * keep.view_as(y) / (1 - dropout)
    if rms:
        expected = F.rms_norm(x + dropped, (width,), weight, 1e-6)
    else:
        expected = F.layer_norm(x + dropped, (width,), weight, bias, 1e-6)
    leaves = (x, y, weight) if rms else (x, y, weight, bias)
    assert again.data_ptr() == found.data_ptr()
    assert_same_gradients(found + again.sin(), expected + expected.sin(), *leaves)


def test_a_norm_alone_is_torchs(device: torch.device) -> None:
    x, weight, bias = (leaf(*s, device=device) for s in ((5, 7, 48), (48,), (48,)))
    expected = F.layer_norm(x, (48,), weight, bias, 1e-6)
    assert_same_gradients(norm(x, weight, bias, 1e-6), expected, x, weight, bias)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_a_residual_is_added(dropout: float, device: torch.device) -> None:
    x, y = leaf(3, 50, 40, device=device), leaf(3, 50, 40, device=device)
    found = add(x, y, dropout)
    keep = torch.ones(y.numel(), device=device)
    if dropout:
        keep = reference_mask(dropout_state(device).words, 1, y.numel(), dropout).to(device)
    assert_same_gradients(found, x + y * keep.view_as(y) / (1 - dropout), x, y)


def test_the_feed_forward_layer_is_two_products_and_a_relu(device: torch.device) -> None:
    x, w1, b1, w2, b2 = (
        leaf(*s, device=device) for s in ((3, 150, 32), (160, 32), (160,), (32, 160), (32,))
    )
    expected = F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)
    found = relu_feed_forward(x, (w1, b1), (w2, b2))
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)
    upstream = torch.randn_like(expected)
    for a, b in zip(
        torch.autograd.grad(found, (x, w1, b1, w2, b2), upstream),
        torch.autograd.grad(expected, (x, w1, b1, w2, b2), upstream),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=1e-2, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("slice_size", [16, 1000])
def test_the_loss_is_that_of_the_plain_path(
    smoothing: float, slice_size: int, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.kernels.loss.SLICE", slice_size)
    x, weight = leaf(3, 11, 24, device=device), leaf(5003, 24, device=device, scale=0.3)
    outputs = torch.randint(0, 5003, (3, 11), device=device)
    real = torch.rand(3, 11, device=device) < 0.8
    scale = torch.tensor(0.37, device=device)
    found, found_nll = project_and_score(x, weight, outputs, real, smoothing, scale)
    loss, nll = label_smoothed_loss(F.linear(x[real], weight), outputs[real], smoothing)
    torch.testing.assert_close(found_nll, nll * scale, atol=1e-3, rtol=1e-5)
    assert not found_nll.requires_grad
    assert_same_gradients(found, loss * scale, x, weight)


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("with_table", [False, True])
def test_embeddings_are_scaled_placed_and_dropped(
    dropout: float, with_table: bool, device: torch.device
) -> None:
    weight, table = leaf(50, 40, device=device), torch.randn(64, 40, device=device)
    ids = torch.randint(0, 50, (3, 30), device=device, dtype=torch.int32)
    positions = torch.randint(0, 64, (3, 30), device=device, dtype=torch.int32)
    found = embed(ids, weight, 6.0, positions, table if with_table else None, dropout)
    expected = F.embedding(ids, weight) * 6.0 + (table[positions] if with_table else 0)
    if dropout:
        keep = reference_mask(dropout_state(device).words, 1, expected.numel(), dropout).to(device)
        expected = expected * keep.view_as(expected) / (1 - dropout)
    assert_same_gradients(found, expected, weight)


def test_dropout_drops_its_share_and_differs_from_site_to_site(device: torch.device) -> None:
    words = dropout_state(device).words
    masks = [reference_mask(words, site, 200_000, 0.3).float() for site in (1, 2, 3)]
    for mask in masks:
        assert mask.mean().item() == pytest.approx(0.7, abs=0.005)
        shifted = torch.stack([mask[:-1], mask[1:]])
        assert abs(torch.corrcoef(shifted)[0, 1].item()) < 0.01
    assert abs(torch.corrcoef(torch.stack(masks))[0, 1].item()) < 0.01


def test_masks_are_a_function_of_the_numbers_they_are_seeded_with(device: torch.device) -> None:
    seed_dropout(device, 5, 6)
    first = dropout_state(device).words.tolist()
    seed_dropout(device, 5, 7)
    assert dropout_state(device).words.tolist() != first
    seed_dropout(device, 5, 6)
    assert dropout_state(device).words.tolist() == first
    assert dropout_state(device).site == 0


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("odd", [False, True])
def test_gradients_are_gathered_with_their_squares(
    add: bool, odd: bool, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.kernels.optimizer.CHUNK", 4096)
    shapes = [(40, 128), (8,), (3, 5) if odd else (4, 8), (16,)]
    tensors = [torch.randn(*s, device=device).to(torch.bfloat16) for s in shapes]
    into = torch.randn(sum(t.numel() for t in tensors), device=device)
    expected = torch.cat([t.float().flatten() for t in tensors]) + (into if add else 0)
    squares = GradientGatherer([t.numel() for t in tensors], device)(tensors, into, add=add)
    torch.testing.assert_close(into, expected)
    torch.testing.assert_close(squares, expected.square().sum())


def test_partial_sums_are_summed(device: torch.device) -> None:
    partial = torch.randn(150, 70, device=device)
    torch.testing.assert_close(sum_partials(partial, torch.float32), partial.sum(0))


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_is_torchs(decay: float, device: torch.device) -> None:
    """The paper's β and ε; 3,000 weights that decay and 500 that do not; 3,200 are rounded."""
    weights = torch.randn(3500, device=device)
    theirs = [weights[:3000].clone().requires_grad_(), weights[3000:].clone().requires_grad_()]
    groups = [{"params": [t], "weight_decay": d} for t, d in zip(theirs, (decay, 0.0), strict=True)]
    theirs_adam = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9)
    moments = torch.zeros_like(weights), torch.zeros_like(weights)
    rounded = torch.empty(3200, dtype=torch.bfloat16, device=device)
    steps = torch.zeros((), device=device)
    for step in range(1, 5):
        gradients = torch.randn_like(weights)
        for group, gradient in zip(theirs, gradients.split([3000, 500]), strict=True):
            group.grad = gradient / 2.5
        for group in theirs_adam.param_groups:
            group["lr"] = 0.01 * step
        theirs_adam.step()
        steps += 1
        before = weights.clone()
        for skip in (1.0, 0.0):
            adam_update(
                *(weights, gradients, *moments, rounded),
                rate=torch.tensor(0.01 * step, device=device),
                steps=steps,
                divide_by=torch.tensor(2.5, device=device),
                skip=torch.tensor(skip, device=device),
                betas=(0.9, 0.98),
                epsilon=1e-9,
                decay=decay,
                decayed=3000,
            )
            assert torch.equal(before, weights) == bool(skip)
        torch.testing.assert_close(weights, torch.cat(theirs).detach(), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(rounded.float(), weights[:3200], atol=0, rtol=2**-7)


def test_every_operation_is_in_the_module_that_is_named_for_it() -> None:
    for name in kernels._HOMES:
        assert callable(getattr(kernels, name))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kernels.nothing
