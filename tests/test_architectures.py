"""Every model of the comparison goes through the same loop, the same search, the same commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import dragoman
from dragoman.config import Config
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.training.checkpoints import checkpoint as checkpoints
from dragoman.training.checkpoints.checkpoint import Checkpoint
from dragoman.training.loop import fit

from .conftest import Result, reversals, write_pairs

ARCHITECTURES: dict[str, list[str]] = {
    "Transformer": [],
    "feed-forward": ["model.architecture=feed-forward"],
    "RNN": ["model.architecture=recurrent", "model.cell=rnn"],
    "GRU": ["model.architecture=recurrent", "model.cell=gru"],
    "LSTM": ["model.architecture=recurrent", "model.cell=lstm"],
    "LSTM, dot": ["model.architecture=recurrent", "model.source_attention=dot"],
    "LSTM, additive": ["model.architecture=recurrent", "model.source_attention=additive"],
    "GNMT": ["model.architecture=gnmt", "model.encoder_layers=3", "model.decoder_layers=2"],
    "ConvS2S": ["model.architecture=convs2s"],
    "ByteNet": ["model.architecture=bytenet", "model.encoder_layers=3", "model.decoder_layers=3"],
    "experts": ["model.experts=4"],
    "window": ["model.window=3"],
}
WITHOUT_ATTENTION = ("feed-forward", "RNN", "GRU", "LSTM", "ByteNet")
FLOOR = "feed-forward"
"""Sees one source piece at a time: what begins and goes on alike, it cannot tell apart."""
SLOW_LEARNERS = ("RNN", "GNMT", "ConvS2S")
LIKE_ANOTHER = ("RNN", "GRU", "LSTM, dot", "LSTM, additive", "GNMT", "experts", "window")
"""If one of these cannot learn, another one cannot, or `tests/models` says so."""
EVERY_ARCHITECTURE = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.thorough] if name in LIKE_ANOTHER else [])
        for name in ARCHITECTURES
    ],
)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory, tiny: Config) -> Prepared:
    """32 pairs to learn by heart."""
    directory = tmp_path_factory.mktemp("few")
    files = write_pairs(directory, reversals(32, seed=5))
    config = tiny.overridden(["tokenizer.vocabulary=300"])
    others = write_pairs(directory, reversals(4, seed=6), "others")
    return prepare(
        open_parallel_corpus(files),
        directory / "data",
        config,
        workers=0,
        valid=open_parallel_corpus(others),
    )


def settings(tiny: Config, name: str, *assignments: str) -> Config:
    return tiny.overridden([*ARCHITECTURES[name], "training.clip_norm=1.0", *assignments])


@pytest.mark.slow
@EVERY_ARCHITECTURE
def test_it_learns_32_pairs_by_heart_and_finds_them_again_by_beam(
    name: str, tiny: Config, few: Prepared, tmp_path: Path
) -> None:
    steps, rate = (200, 0.005) if name in SLOW_LEARNERS else (110, 0.008)
    config = settings(
        tiny,
        name,
        "model.d_model=64",
        "model.norm=pre",
        "model.dropout=0.0",
        "training.label_smoothing=0.0",
        "training.batch_tokens=1024",
        f"training.steps={steps}",
        "training.schedule=linear",
        f"training.learning_rate={rate}",
        "training.warmup_steps=20",
        "training.validate_every=1000",
        "training.checkpoint_every=1000",
        "training.validate_sentences=0",
        "training.average=1",
    )
    outcome = fit(config, few, tmp_path / "run", quiet=True)
    last = (outcome.run / "metrics.jsonl").read_text().splitlines()[-4:]
    nll = min(json.loads(line).get("nll", 99) for line in last)
    assert nll < (0.5 if name == FLOOR else 0.25)
    assert outcome.model is not None
    translator = dragoman.load(outcome.model)
    pairs = reversals(32, seed=5)
    found = translator.translate([source for source, _ in pairs], beam=4)
    right = sum(one.text == target for one, (_, target) in zip(found, pairs, strict=True))
    assert right >= (15 if name == FLOOR else 28)


@pytest.mark.slow
@EVERY_ARCHITECTURE
def test_interrupted_and_resumed_it_ends_bit_for_bit_where_it_would_have(
    name: str, tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    config = settings(
        tiny,
        name,
        "training.steps=6",
        "training.validate_every=100",
        "training.validate_sentences=0",
        "training.checkpoint_every=2",
    )
    whole, halved = tmp_path / "whole", tmp_path / "halved"
    fit(config, prepared, whole, quiet=True)
    fit(config.overridden(["training.steps=3"]), prepared, halved, quiet=True)
    fit(config, prepared, halved, quiet=True, resume=True)
    first, second = (
        Checkpoint(checkpoints.list_checkpoints(run)[-1]).shards.read_all("")
        for run in (whole, halved)
    )
    assert first.keys() == second.keys()
    for key, tensor in first.items():
        assert torch.equal(tensor, second[key]), key


@pytest.mark.slow
@EVERY_ARCHITECTURE
def test_alignment_is_there_where_attention_is(
    name: str, tiny: Config, prepared: Prepared, tmp_path: Path, command: Callable[..., Result]
) -> None:
    config = settings(tiny, name, "training.steps=1", "training.validate_sentences=0")
    outcome = fit(config, prepared, tmp_path / "run", quiet=True)
    assert outcome.model is not None
    translator = dragoman.load(outcome.model)
    found = translator.translate("the old dog", min_length=3, align=True, raw=True)
    assert bool(found.alignment) == (name not in WITHOUT_ATTENTION)
    asked = command("translate", outcome.model, "--json", "--align", stdin=b"the old dog\n")
    if name in WITHOUT_ATTENTION:
        assert asked.status == 2
        assert "has no attention to its source" in asked.err
    else:
        assert asked.status == 0
