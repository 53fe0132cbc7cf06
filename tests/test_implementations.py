"""Every implementation of the models computes what it says it supports, and refuses the rest.

What each supports is declared in `dragoman.models.supported_settings`. For every value of every
feature there is a small model here; an implementation that supports it must compute what PyTorch
computes, and one that does not must refuse it with the declared reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from dragoman import kernels
from dragoman.bench.training.flops import SentenceLengths, formulas_hold, linear_flops
from dragoman.config import Config
from dragoman.errors import ConfigError, ModelError
from dragoman.inference import Translator
from dragoman.inference.cpu import kernel_library, why_no_cpu_engine
from dragoman.inference.gpu import GpuEngine, why_no_gpu_engine
from dragoman.inspection.layer_activations import compute_activations, count_layers
from dragoman.interop.export import PACKAGES, check_exportable, export, require_packages
from dragoman.model_directory import LoadedModel
from dragoman.models import Model, Rows, build
from dragoman.models.supported_settings import IMPLEMENTATIONS, Implementation, unsupported
from dragoman.models.weights import get_weights
from dragoman.search import SearchOptions
from dragoman.search.batching import source_rows, target_rows
from dragoman.text.special_tokens import EOS
from dragoman.text.tokenizer import Tokenizer

from .conftest import reversals
from .inference.cpu.small_models import engine as cpu_engine
from .inference.cpu.small_models import in_int8

SMALL = [
    "tokenizer.vocabulary=330",
    "model.encoder_layers=1",
    "model.decoder_layers=2",
    "model.d_model=32",
    "model.d_ff=48",
    "model.heads=2",
    "model.dropout=0.0",
    "data.max_length=63",
    "data.row_length=64",
    "model.max_positions=128",
    "search.max_extra=6",
]
FEATURES: dict[str, list[str]] = {
    "the paper's": [],
    "pre-norm": ["model.norm=pre"],
    "RMSNorm": ["model.norm_kind=rms"],
    "learned positions": ["model.positions=learned"],
    "learned positions, pre-norm": ["model.positions=learned", "model.norm=pre"],
    "learned positions, unshared": ["model.positions=learned", "model.shared_embeddings=false"],
    "rotary positions": ["model.positions=rotary"],
    "relative positions": ["model.positions=relative", "model.max_distance=3"],
    "GELU": ["model.activation=gelu"],
    "Swish": ["model.activation=swish"],
    "SwiGLU": ["model.activation=swiglu"],
    "activation dropout": ["model.activation_dropout=0.1"],
    "window": ["model.window=2"],
    "experts": ["model.experts=4"],
    "unshared embeddings": ["model.shared_embeddings=false"],
    "attention biases": ["model.attention_bias=true"],
    "output bias": ["model.output_bias=true"],
    "heads that are no tile": ["model.d_k=12", "model.d_v=12"],
    "values wider than keys": ["model.d_k=16", "model.d_v=32"],
    "heads no multiple of four": ["model.d_k=18", "model.d_v=18"],
    "very wide heads": ["model.d_k=288", "model.d_v=288"],
    "feed-forward width no multiple of four": ["model.d_ff=50"],
    "model width no multiple of four": ["model.d_model=30", "model.d_k=16", "model.d_v=16"],
    "one head": ["model.heads=1"],
    "widths of whole registers": ["model.d_model=64", "model.d_ff=64"],
    "feed-forward": ["model.architecture=feed-forward"],
    "recurrent": ["model.architecture=recurrent"],
    "GNMT": [
        "model.architecture=gnmt",
        "model.encoder_layers=2",
        "model.decoder_layers=2",
    ],
    "ConvS2S": ["model.architecture=convs2s"],
    "ByteNet": ["model.architecture=bytenet"],
}
SENTENCES = [[5, 6, 7, 8, 9, 10, 11], [12, 13], [14, 15, 16, 17]]
TARGETS = [[20, 21, 22, 23, 24], [25, 26, 27, 28, 29, 30], [31]]


@cache
def tokenizer() -> Tokenizer:
    sides = (side for pair in reversals(200) for side in pair)
    return Tokenizer.train(sides, Config().overridden(SMALL).tokenizer)


def configure(feature: str, *more: str) -> Config:
    return Config().overridden([*SMALL, *more, *FEATURES[feature]])


def make(feature: str, *more: str) -> LoadedModel:
    """Return a model with weights large enough to prefer something."""
    config = configure(feature, *more)
    torch.manual_seed(3)
    model = build(config.model, len(tokenizer()))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
        # Bytes that are no characters are decoded differently by others: none must be the best.
        model.projection.weight[sorted(tokenizer().byte_ids)] = 0.0
        if model.projection_bias is not None:
            model.projection_bias[sorted(tokenizer().byte_ids)] = 0.0
    return LoadedModel(model.eval(), tokenizer(), config, {}, Path("small"))


@torch.no_grad()
def log_probs(model: Model, source: list[int], target: list[int]) -> float:
    """Return what the model gives to a whole output, teacher-forced."""
    device = torch.device("cpu")
    scores = model(source_rows([source], device), target_rows([target], device)).log_softmax(-1)
    outputs = torch.tensor([*target, EOS])
    return float(scores[0].gather(1, outputs[:, None]).sum())


# --- what each computes; a function returns nothing, and fails where PyTorch gives another result


def run_pytorch(loaded: LoadedModel, **_: Any) -> None:
    device = torch.device("cpu")
    rows = source_rows(SENTENCES, device), target_rows(TARGETS, device)
    assert loaded.model(*rows).isfinite().all()


def run_cpu_engine(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch, **_: Any) -> None:
    if kernel_library.load_kernel() is None:
        pytest.skip("the kernel is not compiled")
    assert why_no_cpu_engine(loaded.config.model) == ""
    found = cpu_engine(loaded.model, loaded.config.model).search(SENTENCES, SearchOptions(beam=2))
    with in_int8(loaded.model, monkeypatch):
        for source, row in zip(SENTENCES, found, strict=True):
            expected = log_probs(loaded.model, source, row[0].ids)
            assert row[0].log_prob == pytest.approx(expected, rel=0.02, abs=0.02)


def run_gpu_engine(loaded: LoadedModel, **_: Any) -> None:
    engine = GpuEngine(get_weights(loaded.model), loaded.config.model, loaded.model.targets, "cpu")
    found = engine.search(SENTENCES, SearchOptions(beam=2))
    for source, row in zip(SENTENCES, found, strict=True):
        expected = log_probs(loaded.model, source, row[0].ids)
        assert row[0].log_prob == pytest.approx(expected, abs=1e-3)


def run_export(
    loaded: LoadedModel, implementation: Implementation, tmp_path: Path, **_: Any
) -> None:
    try:
        require_packages(*PACKAGES[implementation])
    except ConfigError as error:
        pytest.skip(str(error))
    parity = export(loaded, tmp_path / "out", implementation)
    assert parity.difference < 1e-3


def run_marian_int8(loaded: LoadedModel, tmp_path: Path, **_: Any) -> None:
    if find_spec("pymarian") is None:
        pytest.skip("pymarian is not installed: dragoman[marian]")
    assert export(loaded, tmp_path / "out", "marian", quantization="int8").difference < 1


def run_kernels(
    loaded: LoadedModel, implementation: Implementation, feature: str, **_: Any
) -> None:
    pytest.importorskip("triton")
    used = compare_kernels(feature)
    if implementation != "fast training":
        assert implementation in used or not has_layer(loaded, implementation)


def refuse_kernels(implementation: Implementation, feature: str, **_: Any) -> None:
    pytest.importorskip("triton")
    assert implementation not in compare_kernels(feature)


@cache
def compare_kernels(feature: str) -> frozenset[str]:
    """Compute features and gradients with and without kernels; return which were used.

    Triton's interpreter computes them where there is no GPU.
    """
    model = make(feature, "model.decoder_layers=1").model
    with pytest.MonkeyPatch.context() as patch:
        used = spy_on_kernels(patch)
        plain = features_and_gradients(model)
        assert not used
        patch.setattr(kernels, "usable", lambda x: True)
        fast = features_and_gradients(model)
    for name, expected in plain.items():
        torch.testing.assert_close(fast[name], expected, atol=1e-3, rtol=1e-2, msg=name)
    return frozenset(used)


def spy_on_kernels(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return a set that collects which kernels are called."""
    used: set[str] = set()

    def spy(operation: str, name: Callable[..., str]) -> None:
        real = getattr(kernels, operation)

        def call(*args: Any, **settings: Any) -> Any:
            used.add(name(*args))
            return real(*args, **settings)

        monkeypatch.setattr(kernels, operation, call, raising=False)

    spy(
        "attend",
        lambda queries, keys_values, *_: (
            "self-attention kernel" if keys_values is None else "attention kernel"
        ),
    )
    spy("relu_feed_forward", lambda *_: "feed-forward kernel")
    spy("embed", lambda *_: "embedding kernel")
    return used


def has_layer(loaded: LoadedModel, implementation: Implementation) -> bool:
    """Return whether a model has such a layer at all."""
    architecture = loaded.config.model.architecture
    layers = {"transformer": 4, "feed-forward": 2}.get(architecture, 0)
    order = ("feed-forward kernel", "embedding kernel", "attention kernel", "self-attention kernel")
    return implementation in order[:layers]


def features_and_gradients(model: Model) -> dict[str, Tensor]:
    """Return both for packed rows."""
    source, target = pack(SENTENCES, 16), pack(TARGETS, 18)
    model.zero_grad()
    features = model.features(source, target)
    real = target.segments_RL > 0
    (features[real].square().sum() + features[real].sum()).backward()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    return {"features": features[real].detach(), **{n: g.clone() for n, g in gradients.items()}}


def pack(sentences: list[list[int]], length: int) -> Rows:
    """Return one row with all sentences, and padding."""
    padding = [0] * (length - sum(map(len, sentences)))
    ids = [piece for ids in sentences for piece in ids] + padding
    segments = [n for n, ids in enumerate(sentences, 1) for _ in ids] + padding
    positions = [at for ids in sentences for at in range(len(ids))] + padding
    ints = [torch.tensor([row], dtype=torch.int32) for row in (ids, segments, positions)]
    return Rows(*ints)


def run_flop_formulas(loaded: LoadedModel, **_: Any) -> None:
    config, model = loaded.config.model, loaded.model
    assert formulas_hold(config)
    s, t = 7, 5
    device = torch.device("cpu")
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(source_rows([[5] * (s - 1)], device), target_rows([[5] * (t - 1)], device))
    # The counter sees masked scores too, which the formulas of attention leave out.
    pairs = config.encoder_layers * s * s + config.decoder_layers * (t * t + t * s)
    attention = 2 * config.heads * (config.d_k + config.d_v) * pairs
    lengths = SentenceLengths(np.array([s]), np.array([t]))
    expected = linear_flops(config, model.vocabulary, lengths) + attention
    assert counter.get_total_flops() == expected


def run_layer_activations(loaded: LoadedModel, **_: Any) -> None:
    translator = Translator(loaded)
    found = compute_activations(translator, "the old dog", "god dlo eht", "decoder", 1)
    given: list[Any] = []
    layer: Any = loaded.model.get_submodule("decoder.1")
    with layer.register_forward_hook(lambda _, args, output: given.append(output)):
        loaded.model.features(*found.pair.rows(translator))
    torch.testing.assert_close(found.output, given[0].residual[0], atol=1e-4, rtol=1e-4)


RUN: dict[Implementation, Callable[..., None]] = {
    "pytorch": run_pytorch,
    "cpu engine": run_cpu_engine,
    "gpu engine": run_gpu_engine,
    "huggingface": run_export,
    "ctranslate2": run_export,
    "onnx": run_export,
    "marian": run_export,
    "marian int8": run_marian_int8,
    "fast training": run_kernels,
    "attention kernel": run_kernels,
    "self-attention kernel": run_kernels,
    "feed-forward kernel": run_kernels,
    "embedding kernel": run_kernels,
    "flop formulas": run_flop_formulas,
    "layer activations": run_layer_activations,
}


# --- how each refuses ---


def refuse_cpu_engine(loaded: LoadedModel, reason: str, **_: Any) -> None:
    if kernel_library.load_kernel() is None:
        pytest.skip("the kernel is not compiled")
    assert why_no_cpu_engine(loaded.config.model) == reason


def refuse_gpu_engine(loaded: LoadedModel, reason: str, **_: Any) -> None:
    assert why_no_gpu_engine(loaded.config.model) == reason


def refuse_export(
    loaded: LoadedModel, reason: str, implementation: Implementation, **_: Any
) -> None:
    with pytest.raises(ConfigError) as refusal:
        check_exportable(loaded.config, implementation)
    assert str(refusal.value).startswith(f"{reason} cannot be exported to {implementation}")


def refuse_marian_int8(loaded: LoadedModel, reason: str, **_: Any) -> None:
    with pytest.raises(ConfigError) as refusal:
        check_exportable(loaded.config, "marian", "int8")
    assert str(refusal.value).startswith(f"{reason} cannot be exported to marian")


def refuse_fast_training(loaded: LoadedModel, **_: Any) -> None:
    assert not loaded.model.fast


def refuse_flop_formulas(loaded: LoadedModel, **_: Any) -> None:
    assert not formulas_hold(loaded.config.model)


def refuse_layer_activations(loaded: LoadedModel, reason: str, **_: Any) -> None:
    with pytest.raises(ModelError) as refusal:
        count_layers(Translator(loaded))
    assert str(refusal.value).startswith(reason)


REFUSE: dict[Implementation, Callable[..., None]] = {
    "cpu engine": refuse_cpu_engine,
    "gpu engine": refuse_gpu_engine,
    "huggingface": refuse_export,
    "ctranslate2": refuse_export,
    "onnx": refuse_export,
    "marian": refuse_export,
    "marian int8": refuse_marian_int8,
    "fast training": refuse_fast_training,
    "attention kernel": refuse_kernels,
    "self-attention kernel": refuse_kernels,
    "feed-forward kernel": refuse_kernels,
    "embedding kernel": refuse_kernels,
    "flop formulas": refuse_flop_formulas,
    "layer activations": refuse_layer_activations,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "implementation",
    [
        pytest.param(name, marks=[pytest.mark.thorough] if name == "onnx" else [])
        for name in IMPLEMENTATIONS
    ],
)
@pytest.mark.parametrize("feature", FEATURES)  # the outer loop: all kernels share a comparison
def test_an_implementation_computes_what_it_supports_and_refuses_the_rest(
    implementation: Implementation,
    feature: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = make(feature)
    reason = unsupported(loaded.config.model, implementation)
    arguments: dict[str, Any] = {
        "implementation": implementation,
        "feature": feature,
        "tmp_path": tmp_path,
        "monkeypatch": monkeypatch,
    }
    if reason is None:
        RUN[implementation](loaded=loaded, **arguments)
    else:
        REFUSE[implementation](loaded=loaded, reason=reason, **arguments)


@pytest.mark.slow
def test_every_implementation_is_run_and_all_but_pytorch_refuse_something() -> None:
    assert set(RUN) == set(IMPLEMENTATIONS)
    for name in IMPLEMENTATIONS:
        refused = [f for f in FEATURES if unsupported(configure(f).model, name) is not None]
        assert bool(refused) == (name != "pytorch")
