"""Text in, text out."""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman.config import load_preset
from dragoman.errors import ConfigError, ModelError
from dragoman.inference import Translation, Translator
from dragoman.model_directory import save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.search import SamplingOptions
from dragoman.text.tokenizer import Tokenizer

TEXTS = ["the old dog sees", "red cat", "big small tree eats the house", "dog"]


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return dragoman.load(trained / "model")


@pytest.fixture
def warnings(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    heard: list[str] = []
    monkeypatch.setattr(translator, "warn", heard.append)
    return heard


def test_a_text_gives_a_translation_and_a_list_gives_a_list(translator: Translator) -> None:
    one = translator.translate(TEXTS[0])
    assert isinstance(one, Translation)
    assert one.source == TEXTS[0]
    assert one.text
    assert translator.translate([TEXTS[0]]) == [one]
    assert translator.translate([]) == []


def test_tokens_are_the_pieces_of_the_text(translator: Translator) -> None:
    found = translator.translate(TEXTS[0])
    vocabulary = set(translator.tokenizer.pieces(range(len(translator.tokenizer))))
    assert found.tokens
    assert set(found.tokens) <= vocabulary
    ids = [translator.tokenizer.vocabulary[token] for token in found.tokens if token[0] != "<"]
    if len(ids) == len(found.tokens):
        assert translator.tokenizer.decode(ids) == found.text
    assert found.score < 0


def test_n_best_are_different_and_best_first(translator: Translator) -> None:
    best = translator.translate(TEXTS[0], n_best=4)
    everything = [best, *best.alternatives]
    assert len(everything) == 4
    assert len({found.tokens for found in everything}) == 4
    scores = [found.score for found in everything]
    assert scores == sorted(scores, reverse=True)
    assert translator.translate(TEXTS[0], beam=4).tokens == best.tokens
    assert translator.translate(TEXTS[0]).alternatives == ()


def test_more_than_the_beam_are_found_by_widening_it(translator: Translator) -> None:
    assert translator.config.search.beam < 7
    assert len(translator.translate(TEXTS[0], n_best=7).alternatives) == 6
    with pytest.raises(ConfigError, match=r"n_best = 3 is more than search\.beam = 2"):
        translator.translate(TEXTS[0], n_best=3, beam=2)


def test_an_alignment_names_words_that_are_there(translator: Translator) -> None:
    for found in translator.translate(TEXTS, n_best=2, align=True):
        for one in (found, *found.alternatives):
            words = len(one.source.split()), len(one.text.split())
            assert {t for _, t in one.alignment} == set(range(words[1])), "each target word has one"
            assert all(0 <= s < words[0] for s, _ in one.alignment)
    assert translator.translate(TEXTS[0]).alignment == ()


def test_a_text_without_words_comes_back_as_it_is(translator: Translator) -> None:
    found = translator.translate(["", "dog", " \t ", "\x00", "\n\n", "***"])
    assert [one.text for one in found[2:]] == [" \t ", "\x00", "\n\n", "***"]
    assert found[0] == Translation("", "", 0.0, ())
    assert found[1] == translator.translate("dog")
    assert translator.translate("\x00", raw=True).text == ""


def test_batch_mates_change_nothing(translator: Translator) -> None:
    alone = [translator.translate(text, align=True) for text in TEXTS]
    mates = ["", *["the red house sees the tree"] * 5]
    together = translator.translate([*TEXTS, *mates], align=True)
    for one, other in zip(alone, together, strict=False):
        assert (one.text, one.tokens, one.alignment) == (other.text, other.tokens, other.alignment)
        assert other.score == pytest.approx(one.score, abs=1e-4)


def test_order_and_number_of_lines_are_kept(translator: Translator) -> None:
    lines = [TEXTS[i % 4] if i % 5 else "" for i in range(23)]
    found = list(translator.translate_lines(lines, window=4, beam=1))
    assert [one.source for one in found] == lines
    expected = {text: translator.translate(text, beam=1).text for text in {*TEXTS, ""}}
    assert [one.text for one in found] == [expected[line] for line in lines]


def test_no_more_than_a_window_is_read_ahead(translator: Translator) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "dog"

    found = translator.translate_lines(endless(), window=3, beam=1)
    assert read == 0, "nothing is read before it is asked for"
    for number in range(1, 9):
        next(found)
        assert read <= -(-number // 3) * 3


def test_long_lines_fill_a_window_too(translator: Translator) -> None:
    read = 0

    def long() -> Iterator[str]:
        nonlocal read
        for _ in range(5):
            read += 1
            yield " " * 600_000

    next(translator.translate_lines(long(), window=1000))
    assert read == 1, "half a million characters are enough"


def test_a_long_line_is_split_at_sentence_ends(translator: Translator, warnings: list[str]) -> None:
    sentences = [" ".join(TEXTS[i % 3].split() * 3) + "." for i in range(6)]
    whole = translator.translate(" ".join(sentences), align=True)
    limit = translator.config.data.max_length
    pieces = [len(translator.tokenizer.encode(sentence)) for sentence in sentences]
    assert sum(pieces) > limit >= max(pieces)
    assert warnings == []
    # The parts are as they would be by themselves.
    parts, waiting = [], ""
    for sentence in sentences:
        joined = f"{waiting} {sentence}".strip()
        if len(translator.tokenizer.encode(joined)) > limit:
            parts.append(waiting)
            joined = sentence
        waiting = joined
    found = translator.translate([*parts, waiting])
    assert len(found) > 1
    assert whole.text == " ".join(one.text for one in found)
    assert whole.tokens == tuple(token for one in found for token in one.tokens)
    assert whole.score == pytest.approx(sum(one.score for one in found), abs=1e-3)
    words = len(whole.source.split()), len(whole.text.split())
    assert {t for _, t in whole.alignment} == set(range(words[1]))
    assert max(s for s, _ in whole.alignment) > len(parts[0].split()), "the last part's words too"
    assert all(s < words[0] for s, _ in whole.alignment)


def test_alternatives_of_a_split_line_are_whole_lines(translator: Translator) -> None:
    line = " ".join([" ".join(TEXTS[2].split() * 4) + "."] * 3)
    best = translator.translate(line, n_best=3)
    assert len(best.alternatives) == 2
    scores = [best.score, *(other.score for other in best.alternatives)]
    assert scores == sorted(scores, reverse=True)
    assert all(other.source == line for other in best.alternatives)


@pytest.mark.parametrize(
    "line",
    ["the dog sees " * 40, "x" * 300, "犬が見る。猫が食べる。" * 12],
    ids=["one endless sentence", "one endless word", "no spaces"],
)
def test_the_alignment_of_a_line_cut_anywhere_names_words_that_are_there(
    line: str, translator: Translator
) -> None:
    found = translator.translate(line, align=True)
    assert found.alignment
    words = len(line.split()), len(found.text.split())
    assert all(0 <= s < words[0] and 0 <= t < words[1] for s, t in found.alignment)


def test_words_are_counted_right_where_the_target_has_no_spaces(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dataclasses.replace(translator.config.data, languages=("en", "ja"))
    monkeypatch.setattr(translator, "config", dataclasses.replace(translator.config, data=data))
    found = translator.translate("the dog sees. " * 30, align=True)
    assert {t for _, t in found.alignment} == set(range(len(found.text.split())))


def test_a_sentence_too_long_is_cut_and_that_is_said(
    translator: Translator, warnings: list[str]
) -> None:
    line = "the dog sees " * 40
    found = translator.translate(["dog", line])
    assert warnings == [
        "a sentence of more than 63 pieces was cut into parts: "
        "the dog sees the dog sees the dog sees the dog sees the dog…"
    ]
    assert found[1].source == line
    assert found[1].text


def test_a_prefix_is_how_a_translation_begins(translator: Translator) -> None:
    assert not translator.translate("dog").text.startswith("taeb")
    assert translator.translate("dog", prefix="taeb der").text.startswith("taeb der")
    found = translator.translate(["dog", "cat"], prefix=["god", "tac"], beam=1)
    assert [one.text[:3] for one in found] == ["god", "tac"]
    with pytest.raises(ConfigError, match="1 prefixes for 2 texts; give one for each"):
        translator.translate(["dog", "cat"], prefix=["god"])


def test_limits_on_length_are_kept(translator: Translator) -> None:
    pieces = len(translator.tokenizer.encode(TEXTS[2]))
    assert len(translator.translate(TEXTS[2], max_extra=0, min_length=2).tokens) <= pieces
    assert len(translator.translate("dog", min_length=9).tokens) >= 9


def test_sampling_is_determined_by_its_seed_whatever_the_neighbours(
    translator: Translator,
) -> None:
    def draw(texts: list[str], seed: int) -> list[Translation]:
        options = SamplingOptions(samples=3, seed=seed)
        return translator.translate(texts, sampling=options, align=False)

    first = draw(TEXTS, 1)
    assert [len(found.alternatives) for found in first] == [2] * 4
    assert [found.text for found in draw(TEXTS, 1)] == [found.text for found in first]
    assert draw(TEXTS[:1], 1)[0].text == first[0].text
    assert [found.text for found in draw(TEXTS, 2)] != [found.text for found in first]


def test_a_run_directory_stands_for_its_model(trained: Path, tmp_path: Path) -> None:
    assert dragoman.load(trained).path == trained / "model"
    assert dragoman.load(str(trained)).path == trained / "model"
    unfinished = tmp_path / "run"
    shutil.copytree(trained, unfinished)
    shutil.rmtree(unfinished / "model")
    assert dragoman.load(unfinished).path == unfinished / "best"
    shutil.rmtree(unfinished / "best")
    with pytest.raises(ModelError, match="a run without a model yet; make one with: dragoman aver"):
        dragoman.load(unfinished)


@pytest.mark.parametrize("device", ["abacus", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(device: str, trained: Path) -> None:
    with pytest.raises(ConfigError, match=f"there is no device '{device}' here; try cpu or auto"):
        dragoman.load(trained, device=device)


@pytest.mark.slow
def test_a_base_model_loads_in_less_than_a_second(translator: Translator, tmp_path: Path) -> None:
    config = load_preset("base")
    weights = get_weights(build(config.model, len(translator.tokenizer)))
    save_model(tmp_path / "model", weights, config, translator.tokenizer, {})
    assert (tmp_path / "model/weights.safetensors").stat().st_size > 170_000_000
    times = []
    for _ in range(3):
        start = time.perf_counter()
        dragoman.load(tmp_path / "model", device="cpu")
        times.append(time.perf_counter() - start)
    assert min(times) < 1.0


def test_a_translation_as_json_holds_what_was_asked_for(translator: Translator) -> None:
    found = translator.translate(TEXTS[2], n_best=2, align=True)
    assert found.alignment
    table = json.loads(json.dumps(found.to_dict(), ensure_ascii=False))
    assert table["text"] == found.text
    assert table["tokens"] == list(found.tokens)
    assert table["alignment"] == [list(pair) for pair in found.alignment]
    assert table["alternatives"][0]["text"] == found.alternatives[0].text
    assert table["log_prob"] == round(found.log_prob, 6)
    nothing = {"text": "", "score": 0, "log_prob": 0, "tokens": []}
    assert translator.translate("", n_best=2).to_dict() == nothing


def test_the_tokeniser_of_the_model_is_used(translator: Translator, trained: Path) -> None:
    assert translator.tokenizer == Tokenizer.load(trained / "model")
