"""Minimum Bayes risk decoding takes what the candidates agree on, and composes with the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.chrf import CHRF

import dragoman
from dragoman.errors import ConfigError
from dragoman.inference import Glossary, Translator, minimum_bayes_risk
from dragoman.inference.gpu import GpuEngine
from dragoman.inference.minimum_bayes_risk import FLATTENING, MinimumBayesRisk
from dragoman.inference.translation_types import Candidate
from dragoman.model_directory import load_model
from dragoman.models.weights import get_weights
from dragoman.search import Hypothesis, SamplingOptions
from dragoman.search.constraints.requirements import OutputRequirements

from ..conftest import Result
from ..fake_engines import FakeEngine, make_translator
from ..kernel import needs_kernel

TEXT = "the old dog sees a cat\n\nred cat"


def candidates(*texts: str, log_probs: tuple[float, ...] = ()) -> list[Candidate]:
    known = log_probs or (-1.0,) * len(texts)
    return [
        Candidate(text, len(text.split()), one, one) for text, one in zip(texts, known, strict=True)
    ]


# --- which candidate ---


def test_the_consensus_worked_by_hand_wins() -> None:
    """The odd one is the likeliest; of the others the longer wins, for chrF prefers recall."""
    found = candidates("zzz", "der Hund", "der Hund", "der Hunde", log_probs=(-0.1, -3, -3, -4))
    # Letters of derHund / derHunde, shared n-grams of lengths 1 to 6: 7 6 5 4 3 2 of 7 … and 8 ….
    precision = sum(n / m for n, m in zip((7, 6, 5, 4, 3, 2), (8, 7, 6, 5, 4, 3), strict=True)) / 6
    near = 100 * 5 * precision / (4 * precision + 1), 100 * 5 * precision / (4 + precision)
    expected = {"der Hund": (2 * 100 + near[1]) / 4, "der Hunde": (100 + 2 * near[0]) / 4}
    assert expected["der Hunde"] > expected["der Hund"] > 100 / 4
    assert MinimumBayesRisk(drawn=True).rank_candidates(found) == [3, 1, 0]


def test_the_rank_is_that_of_expected_chrf_by_sacrebleu() -> None:
    texts = ("그는 학교에 갔다.", "그는 학교에 갔습니다.", "그가 어제 학교에 갔습니다.", "학교", "")
    log_probs = (-2.0, -2.5, -3.0, -9.0, -1.0)
    weights = [math.exp(one / FLATTENING) for one in log_probs]
    metric = CHRF()
    expected = [
        sum(w * metric.sentence_score(one, [o]).score for w, o in zip(weights, texts, strict=True))
        for one in texts
    ]
    ranked = MinimumBayesRisk().rank_candidates(candidates(*texts, log_probs=log_probs))
    assert ranked == sorted(range(5), key=lambda number: -expected[number])


def test_a_text_counts_as_often_as_it_was_drawn_and_is_returned_once() -> None:
    texts = ("ab", "cd", "cd", "ab", "cd")
    assert MinimumBayesRisk(drawn=True).rank_candidates(candidates(*texts)) == [1, 0]
    assert MinimumBayesRisk(drawn=True).rank_candidates(candidates("ab", "ab")) == [0]


def test_what_is_found_by_search_counts_by_its_probability() -> None:
    odd = candidates("ab", "cd", log_probs=(-9.0, -1.0))
    assert MinimumBayesRisk().rank_candidates(odd) == [1, 0]
    assert MinimumBayesRisk(drawn=True).rank_candidates(odd) == [0, 1]  # equals stay in order


def test_the_utility_can_be_bleu() -> None:
    words = ("a b c d e f", "a b c d e g", "f e d c b a", "a b c d e f g")
    ranked = MinimumBayesRisk("bleu", "en", drawn=True).rank_candidates(candidates(*words))
    assert ranked[0] in (0, 3)
    assert ranked[-1] == 2


def test_bleu_without_sacrebleu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.system.packages.has_package", lambda name: False)
    with pytest.raises(ConfigError, match=r"mbr with BLEU needs sacreBLEU; pip install"):
        MinimumBayesRisk("bleu")
    MinimumBayesRisk("chrf")


# --- in a translator ---


def unlike(first: Translator, options: dict[str, Any], second: dict[str, Any]) -> bool:
    texts = ["the old dog sees", "a red cat", "this house is small", "good morning", "x y z"]
    found = [
        [one.text for one in first.translate(texts, raw=True, **each)] for each in (options, second)
    ]
    return found[0] != found[1]


def test_a_translator_chooses_among_all_of_its_beam(reverser: Translator) -> None:
    sentences = ["the old dog sees", "a red cat", "this house is small"]
    wide = reverser.translate(sentences, beam=12, n_best=12, raw=True)
    chosen = reverser.translate(sentences, mbr="chrf", candidates=12, raw=True)
    for one, best in zip(wide, chosen, strict=True):
        every = (one, *one.alternatives)
        found = [Candidate(e.text, len(e.tokens), e.score, e.log_prob) for e in every]
        winner = every[MinimumBayesRisk().rank_candidates(found)[0]]
        assert (best.text, best.score) == (winner.text, winner.score)
        assert best.alternatives == ()
    assert unlike(reverser, {"beam": 12}, {"mbr": "chrf", "candidates": 12})


def test_a_translator_chooses_among_samples_by_their_seed(reverser: Translator) -> None:
    def chosen(seed: int, **options: Any) -> list[str]:
        sampling = SamplingOptions(samples=12, top_k=20, temperature=2.0, seed=seed)
        texts = ["the old dog sees", "a red cat", "this house is small"]
        found = reverser.translate(texts, mbr="chrf", sampling=sampling, **options)
        return [one.text for one in found]

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)
    assert chosen(1, candidates=3) != chosen(1)


def test_n_best_are_the_best_by_utility(reverser: Translator) -> None:
    whole = reverser.translate("the old dog sees", mbr="chrf", n_best=8, candidates=8, raw=True)
    three = reverser.translate("the old dog sees", mbr="chrf", n_best=3, candidates=8, raw=True)
    texts = [one.text for one in (whole, *whole.alternatives)]
    assert len(set(texts)) == len(texts)
    assert [one.text for one in (three, *three.alternatives)] == texts[:3]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prefix": "eht"},
        {"must": ["tac"]},
        {"must_not": ["eht"]},
        {"align": True},
        {"n_best": 3},
        {"lines": True},
        {"diverse": 4},
        {"sampling": SamplingOptions(samples=8, top_k=10), "prefix": "eht"},
        {"sampling": SamplingOptions(samples=8, epsilon=0.02), "must_not": ["eht"]},
    ],
    ids=str,
)
def test_it_composes_with_other_options(options: dict[str, Any], reverser: Translator) -> None:
    found = reverser.translate(TEXT, mbr="chrf", candidates=8, **options)
    assert found.text.count("\n") == 2
    assert found.text.startswith(options.get("prefix", ""))
    assert all(word in found.text.split() for word in options.get("must", ()))
    assert all(word not in found.text.split() for word in options.get("must_not", ()))
    assert bool(found.alignment) == options.get("align", False)
    assert (len(found.alternatives) > 0) == ("n_best" in options)


def test_it_composes_with_a_glossary_and_protection() -> None:
    translator = make_translator("identity")
    glossary = Glossary([("house", "Gebäude", 1)])
    text = "The house costs 5.50 at https://a.de/x."
    found = translator.translate(text, mbr="chrf", glossary=glossary)
    assert "Gebäude" in found.text
    assert "https://a.de/x" in found.text


@pytest.mark.parametrize("behaviour", ["silent", "endless"])
def test_what_is_chosen_is_checked_for_faults(behaviour: str) -> None:
    found = make_translator(behaviour).translate("The old house.", mbr="chrf")
    assert found.issues


def test_what_is_chosen_of_samples_is_searched_for_again_if_it_has_a_fault() -> None:
    translator = make_translator("silent")
    engine = SamplingEngine("silent", translator.tokenizer)
    found = Translator(*translator._loaded, engine=engine).translate(
        "The old house.", mbr="chrf", sampling=SamplingOptions(samples=4)
    )
    assert (engine.drawn, [one.kind for one in found.issues]) == (1, ["empty"])
    assert engine.searched


class SamplingEngine(FakeEngine):
    """Draws what it finds, every time."""

    drawn = 0

    def supports_sampling(self, options: SamplingOptions) -> bool:
        return True

    def sample(
        self,
        sentences: Sequence[Sequence[int]],
        options: SamplingOptions,
        requirements: Sequence[OutputRequirements],
    ) -> list[list[Hypothesis]]:
        self.drawn += len(sentences)
        found = [self._find(list(ids), 20) for ids in sentences]
        return [[Hypothesis(ids, -1.0, -1.0, [-1.0])] * options.samples for ids in found]


@needs_kernel
def test_engines_choose_alike(trained: Path, reverser: Translator) -> None:
    sentences = [f"the {word} dog sees a {word} cat" for word in ("old", "red", "big", "new")]
    loaded = load_model(trained / "model")
    weights, config = get_weights(loaded.model), loaded.config.model
    gpu = GpuEngine(weights, config, loaded.tokenizer.sizes[1], "cpu")
    cpu = dragoman.load(trained / "model", precision="int8")
    plain = reverser.translate(sentences, mbr="chrf", candidates=6, raw=True)
    by_gpu = Translator(loaded, engine=gpu).translate(sentences, mbr="chrf", candidates=6, raw=True)
    by_cpu = cpu.translate(sentences, mbr="chrf", candidates=6, raw=True)
    assert [one.text for one in by_gpu] == [one.text for one in plain]
    assert sum(a.text == b.text for a, b in zip(by_cpu, plain, strict=True)) >= 2  # int8 is rounded


# --- what is refused ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mbr": "comet"}, "there is no utility 'comet' for mbr; choose from: chrf, bleu"),
        ({"mbr": "chrf", "candidates": 1}, "1 candidate leaves nothing to choose; the least is 2"),
        ({"mbr": "chrf", "beam": 1}, "1 candidate leaves nothing to choose; the least is 2"),
        ({"mbr": "chrf", "candidates": 257}, "257 candidates are too many; the most is 256"),
        (
            {"mbr": "chrf", "sampling": SamplingOptions(samples=300)},
            "300 candidates are too many; the most is 256",
        ),
        (
            {"mbr": "chrf", "beam": 4, "candidates": 8},
            "8 candidates are more than search.beam = 4 can find; leave out the beam",
        ),
        (
            {"mbr": "chrf", "candidates": 4, "n_best": 5},
            "search.n_best = 5 cannot be chosen from 4 candidates; ask for more candidates",
        ),
        ({"candidates": 4}, "candidates are what mbr and rerank choose from; add one of these"),
        (
            {"rerank_weight": 1.0},
            "rerank_weight and length_reward need rerank; name a reverse model",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(
    options: dict[str, Any], message: str, reverser: Translator
) -> None:
    with pytest.raises(ConfigError) as refused:
        reverser.translate("the dog", **options)
    assert str(refused.value) == message


def test_the_command_prints_one_translation_a_line(
    trained: Path, command: Callable[..., Result], reverser: Translator
) -> None:
    wanted = reverser.translate("the old dog sees", mbr="chrf", candidates=8)
    options = ["--precision", "float32", "--mbr", "chrf", "--candidates", 8]
    found = command("translate", trained, *options, stdin=b"the old dog sees\n")
    assert (found.status, found.out) == (0, f"{wanted.text}\n")
    options = ["--mbr", "chrf", "--sample", 6, "--epsilon", 0.02]
    drawn = command("translate", trained, *options, stdin=b"the old dog\n\na cat\n")
    assert (drawn.status, len(drawn.out.splitlines())) == (0, 3)
    assert "\t" not in drawn.out


def test_the_command_refuses_in_one_line(trained: Path, command: Callable[..., Result]) -> None:
    found = command("translate", trained, "--mbr", "comet", stdin=b"a\n")
    message = "dragoman: there is no utility 'comet' for mbr; choose from: chrf, bleu\n"
    assert (found.status, found.err) == (2, message)


def test_expected_utilities_that_differ_by_rounding_are_equal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import numpy as np

    table = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]])
    monkeypatch.setattr(minimum_bayes_risk, "pairwise_chrf", lambda texts: table)
    assert MinimumBayesRisk(drawn=True).rank_candidates(candidates("a", "b")) == [0, 1]


def test_evaluate_scores_what_is_chosen(
    trained: Path, command: Callable[..., Result], tmp_path: Path, reverser: Translator
) -> None:
    lines = ["the old dog sees", "a red cat", "this house is small"]
    source, out = tmp_path / "source", tmp_path / "out"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = ["--source", source, "--reference", source, "--out", out]
    options = ["--mbr", "chrf", "--sample", 8, "--epsilon", 0.02, "--seed", 7]
    assert command("evaluate", trained, *files, *options).status == 0
    translator = dragoman.load(trained)
    limits = {"max_extra": translator.config.search.max_extra}
    sampling = SamplingOptions(samples=8, epsilon=0.02, seed=7, **limits)
    wanted = translator.translate(lines, mbr="chrf", sampling=sampling, raw=True)
    assert out.read_text(encoding="utf-8").splitlines() == [one.text for one in wanted]
    refused = command("evaluate", trained, *files, "--sample", 8)
    assert refused.err == (
        "dragoman: --sample draws candidates; add --mbr or --rerank to choose among them\n"
    )
