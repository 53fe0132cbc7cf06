"""A draft changes the time a greedy search takes and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import dragoman
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.errors import ConfigError, ModelError
from dragoman.inference.cpu import CpuEngine
from dragoman.inference.cpu.search import AllowedPieces, Ints, SearchJob
from dragoman.inference.cpu.speculative_decoding import SpeculativeSearch
from dragoman.model_directory import save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.search import Hypothesis, SearchOptions
from dragoman.text.special_tokens import FIRST_PIECE

from ...conftest import Result, reversals, write_pairs
from ...kernel import needs_kernel
from .small_models import BASE, VOCABULARY, engine, made

pytestmark = needs_kernel

SMALL = replace(BASE, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32)


def sources(count: int, seed: int = 0, longest: int = 20) -> list[list[int]]:
    draw = random.Random(seed)
    return [
        [draw.randrange(FIRST_PIECE, VOCABULARY) for _ in range(draw.randint(1, longest))]
        for _ in range(count)
    ]


def searched(
    model: CpuEngine,
    draft: CpuEngine,
    sentences: list[list[int]],
    options: SearchOptions,
    **more: int,
) -> tuple[list[list[Hypothesis]], SpeculativeSearch]:
    """All sentences by one worker in a few slots, each with as many proposals as there are."""
    longest = max(map(len, sentences)) + options.max_extra
    allowed = AllowedPieces(1, model._model.projection.outputs)
    search = SpeculativeSearch(
        model._model,
        options,
        allowed,
        draft=draft._model,
        **{"slots": 3, "longest": longest, "draft_pieces": 4, **more},
    )
    jobs = (SearchJob(i, ids, len(ids) + options.max_extra) for i, ids in enumerate(sentences))
    found = dict(search.run(jobs))
    return [found[i] for i in range(len(sentences))], search


@pytest.mark.slow
@pytest.mark.parametrize("draft_pieces", [1, 2, 7])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_found_is_what_greedy_search_finds(seed: int, draft_pieces: int) -> None:
    options = SearchOptions(beam=1, max_extra=9)
    sentences = sources(400, seed)
    plain = engine(made(BASE, seed=seed), BASE)
    draft = engine(made(SMALL, seed=seed + 7), SMALL)
    found, _ = searched(plain, draft, sentences, options, draft_pieces=draft_pieces)
    assert found == plain.search(sentences, options)


def test_a_draft_that_is_the_model_itself_is_always_right() -> None:
    options = SearchOptions(beam=1, max_extra=40)
    sentences = sources(60, longest=30)
    plain = engine(made(BASE), BASE)
    found, search = searched(plain, plain, sentences, options)
    assert found == plain.search(sentences, options)
    steps = sum(-(-(len(one[0].ids) + 1) // 5) for one in found)
    assert search.checks == steps


def test_a_draft_that_is_nearly_the_model_saves_steps_and_changes_nothing() -> None:
    options = SearchOptions(beam=1, max_extra=30)
    sentences = sources(200, longest=25)
    model = made(BASE)
    plain = engine(model, BASE)
    near = made(BASE)
    for parameter in near.parameters():
        parameter.data.mul_(1.03).add_(0.004)
    found, search = searched(plain, engine(near, BASE), sentences, options)
    assert found == plain.search(sentences, options)
    assert search.checks < 0.8 * search.pieces


def test_the_engine_drafts_where_sentences_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    options = SearchOptions(beam=1, max_extra=20)
    sentences = sources(6)
    plain = engine(made(BASE), BASE, workers=2)
    wanted = plain.search(sentences, options)
    plain.draft = engine(made(SMALL), SMALL)
    used: list[int] = []
    step = SpeculativeSearch.step

    def counted(self: SpeculativeSearch, active: Ints) -> list[int]:
        used.append(1)
        return step(self, active)

    monkeypatch.setattr(SpeculativeSearch, "step", counted)
    assert plain.search(sentences, options) == wanted
    assert not used
    assert [plain.search([one], options)[0] for one in sentences] == wanted
    assert used
    beams = replace(options, beam=3)
    used.clear()
    plain.search(sentences[:1], beams)
    assert not used


def untrained(directory: Path, prepared: Prepared, *settings: str) -> Path:
    """A model directory on the pieces of a corpus."""
    config = prepared.config.overridden(settings)
    model = build(config.model, *prepared.tokenizer.sizes)
    save_model(directory, get_weights(model), config, prepared.tokenizer, {})
    return directory


def test_a_translator_with_a_draft_translates_the_same(
    trained: Path, prepared: Prepared, tmp_path: Path, command: Callable[..., Result]
) -> None:
    draft = untrained(tmp_path / "draft", prepared, "model.decoder_layers=1")
    lines = ["the old dog sees", "a red tree", "small", ""]
    plain = dragoman.load(trained)
    fast = dragoman.load(trained, draft=draft)
    found = [fast.translate(line, beam=1) for line in lines]
    assert found == [plain.translate(line, beam=1) for line in lines]
    options = ("--beam", 1, "--window", 1, "--draft", draft)
    said = command(
        "translate", trained, *options, stdin="".join(f"{line}\n" for line in lines).encode()
    )
    assert said.out.splitlines() == [one.text for one in found]
    said = command("translate", trained, "--beam", 4, "--draft", draft, stdin=b"a dog\n")
    assert (said.status, said.out) == (2, "")
    assert "--draft works with greedy search only; add --beam 1" in said.err


def test_a_model_of_other_pieces_or_outside_the_engine_is_no_draft(
    trained: Path, prepared: Prepared, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="cannot use a draft"):
        dragoman.load(trained, precision="float32", draft=trained)
    rotary = untrained(tmp_path / "rotary", prepared, "model.positions=rotary")
    with pytest.raises(ConfigError, match="cannot be a draft without int8"):
        dragoman.load(trained, draft=rotary)
    files = write_pairs(tmp_path, reversals(300, seed=9))
    other = prepare(open_parallel_corpus(files), tmp_path / "data", prepared.config, workers=0)
    stranger = untrained(tmp_path / "stranger", other)
    with pytest.raises(ModelError, match="has other pieces than"):
        dragoman.load(trained, draft=stranger)
