"""The tree of a beam search is the search."""

from __future__ import annotations

from itertools import groupby

import pytest
import torch

from dragoman.inspection.beam_tree import BeamTree, build_beam_tree
from dragoman.inspection.sentence_pair import END
from dragoman.search import SearchOptions, beam_search
from dragoman.search.batching import source_rows

from .small_translators import SENTENCE, translator


@pytest.fixture(scope="module", params=[1, 3])
def tree(request: pytest.FixtureRequest) -> BeamTree:
    return build_beam_tree(translator(), SENTENCE, beam=request.param)


def test_the_results_are_those_of_the_search(tree: BeamTree) -> None:
    one = translator()
    rows = source_rows([one.tokenizer.encode(SENTENCE)], torch.device("cpu"))
    options = SearchOptions.from_config(one.config.search, beam=tree.beam, n_best=tree.beam)
    found = beam_search(one.model, rows, options)[0]
    assert tree.results == [one.tokenizer.decode(hypothesis.ids) for hypothesis in found]
    ranked = {branch.rank: branch for branch in tree.branches if branch.rank}
    assert sorted(ranked) == list(range(1, len(found) + 1))
    for rank, hypothesis in enumerate(found, 1):
        branch = ranked[rank]
        assert branch.piece == END
        assert branch.score == pytest.approx(hypothesis.score)
        assert branch.total == pytest.approx(hypothesis.log_prob, abs=1e-4)
        assert branch.step == len(hypothesis.ids) + 1


def test_every_branch_is_its_parent_and_one_piece(tree: BeamTree) -> None:
    root, *others = tree.branches
    assert (root.parent, root.step, root.total) == (-1, 0, 0.0)
    for place, branch in enumerate(others, 1):
        parent = tree.branches[branch.parent]
        assert branch.parent < place
        assert parent.fate == "kept"
        assert branch.step == parent.step + 1
        assert branch.total == pytest.approx(parent.total + branch.log_prob)


def test_each_step_keeps_the_best_and_lets_the_others_go(tree: BeamTree) -> None:
    for _, group in groupby(tree.branches[1:], lambda branch: branch.step):
        step = list(group)
        kept = [branch.total for branch in step if branch.fate == "kept"]
        let_go = [b.total for b in step if b.fate == "dropped" and b.piece != END]
        assert len(kept) <= tree.beam
        assert len(step) <= 2 * tree.beam
        if kept and let_go:
            assert min(kept) >= max(let_go)


def test_it_is_written_as_json_holds_it(tree: BeamTree) -> None:
    table = tree.to_dict()
    assert len(table["branches"]) == len(tree.branches)
    assert set(table["branches"][1]) == {
        *("parent", "step", "piece", "log_prob", "total", "fate", "score", "rank")
    }
