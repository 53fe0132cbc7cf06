"""The grammar in batches: the plain one's equal, and every search under it ends in trees."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.models import Model, Rows, build
from dragoman.search import SamplingOptions, SearchOptions, beam_search, greedy_search, sample
from dragoman.search.constraints.tree_grammar import TreeConstraint
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK
from dragoman.trees.linearization import END, LINEARISATIONS, WORD, Actions, get_linearisation
from dragoman.trees.tree import leaves

NAMES = list(LINEARISATIONS)
FIRST, VOCABULARY = 9, 30


def vocabulary(name: str, chain: int, arities: tuple[int, ...] = (1, 2, 3, 5)) -> Actions:
    """Two tags, two labels."""
    order = get_linearisation(name)
    if name == "bottom-up":
        makes = [f"){label}/{arity}" for arity in arities for label in "AB"]
        return Actions(order, ("_x", *makes, "_y"), chain)
    return Actions(order, ("_x", "(A", ")", "(B", "_y"), chain)


actions_of = st.builds(
    vocabulary,
    st.sampled_from(NAMES),
    chain=st.integers(1, 3),
    arities=st.sets(st.integers(3, 9)).map(lambda more: (1, 2, *sorted(more))[:7]),
)


def expected(actions: Actions, prefix: list[int], words: int, room: int) -> set[int]:
    """The ids that may follow, by the plain grammar."""
    kinds = actions.allowed([id_ - FIRST for id_ in prefix], words, room)
    ids = {FIRST + index for index, kind in enumerate(actions.kinds) if kind in kinds}
    return ids | ({EOS} if END in kinds else set())


def found(allowed_V: Tensor) -> set[int]:
    return set(allowed_V.nonzero()[:, 0].tolist())


def walk(actions: Actions, words: int, room: int, draw: random.Random) -> list[int]:
    """Any way the plain grammar leaves, to its end."""
    prefix: list[int] = []
    while True:
        choice = draw.choice(sorted(expected(actions, prefix, words, room - len(prefix))))
        if choice == EOS:
            return prefix
        prefix.append(choice)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(actions=actions_of, seed=st.integers(0, 10_000), data=st.data())
def test_in_a_batch_the_same_may_follow_as_by_the_plain_grammar(
    actions: Actions, seed: int, data: st.DataObject
) -> None:
    draw = random.Random(seed)
    counts = data.draw(st.lists(st.integers(1, 8), min_size=3, max_size=3))
    grammar = TreeConstraint(actions, counts, first=FIRST, vocabulary=VOCABULARY)
    rooms = [actions.fewest_actions(words) + draw.randint(0, 12) for words in counts]
    walks = [
        [walk(actions, words, room, draw) for _ in range(4)]
        for words, room in zip(counts, rooms, strict=True)
    ]
    rows = torch.tensor([2, 0])  # some sentences have left the batch, and the others moved
    for length in range(max(len(one) for row in walks for one in row) + 1):
        # Walks that have ended stand here as any actions of the same number.
        ids = [[(one + one[:1] * length)[:length] for one in walks[b]] for b in rows.tolist()]
        room_B = torch.tensor([rooms[b] - length for b in rows.tolist()])
        ids_BKT = torch.tensor(ids, dtype=torch.int64)
        allowed_BKV = grammar.allowed(rows, ids_BKT, room_B)
        less = draw.randint(-1, 8)
        forced_BKV = grammar.allowed(rows, ids_BKT, torch.full_like(room_B, less))
        assert allowed_BKV.shape == (2, 4, VOCABULARY)
        assert allowed_BKV.dtype == torch.bool
        for place, b in enumerate(rows.tolist()):
            for k, one in enumerate(walks[b]):
                if length <= len(one):
                    want = expected(actions, one[:length], counts[b], rooms[b] - length)
                    assert found(allowed_BKV[place, k]) == want
                    # A forced prefix may leave any room.
                    want = expected(actions, one[:length], counts[b], less)
                    assert found(forced_BKV[place, k]) == want


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("words", "extra", "chain"), [(1, 9, 3), (2, 7, 2), (3, 5, 1), (4, 3, 2)])
def test_from_every_prefix_the_same_may_follow_as_by_the_plain_grammar(
    name: str, words: int, extra: int, chain: int
) -> None:
    actions = vocabulary(name, chain, arities=(1, 2, 3))
    grammar = TreeConstraint(actions, [words], first=FIRST, vocabulary=VOCABULARY)
    room = actions.fewest_actions(words) + extra
    prefixes: list[list[int]] = [[]]
    while prefixes:
        length = len(prefixes[0])
        ids_BKT = torch.tensor([prefixes], dtype=torch.int64)
        room_B = torch.tensor([room - length])
        allowed_KV = grammar.allowed(torch.tensor([0]), ids_BKT, room_B)[0]
        longer = []
        for prefix, row in zip(prefixes, allowed_KV, strict=True):
            ids = found(row)
            assert ids == expected(actions, prefix, words, room - length)
            # Actions of one kind are alike: one is enough.
            by_kind = {actions.kinds[id_ - FIRST]: id_ for id_ in ids - {EOS}}
            longer += [[*prefix, id_] for id_ in by_kind.values()]
        prefixes = longer
    assert length <= room


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("words", [1, 2, 7, 1000])
def test_a_random_walk_ends_in_a_tree_whatever_the_room(name: str, words: int) -> None:
    generator = torch.Generator().manual_seed(words)
    actions = vocabulary(name, chain=2, arities=(1, 2, 3, 15))
    least = actions.fewest_actions(words)
    rooms = [least, least + 1, least + 2, least + 5, least + words // 3, least + 2 * words]
    rooms_B = torch.tensor(rooms if words < 1000 else [*rooms[:4], least + 100])
    sentences_B = torch.arange(len(rooms_B))
    grammar = TreeConstraint(actions, [words] * len(rooms_B), first=FIRST, vocabulary=VOCABULARY)
    paths = 8 if words < 1000 else 1
    ids_BKT = torch.zeros(len(rooms_B), paths, 0, dtype=torch.int64)
    open_BK = torch.ones(len(rooms_B), paths, dtype=torch.bool)
    ends: dict[tuple[int, int], list[int]] = {}
    while open_BK.any():
        allowed_BKV = grammar.allowed(sentences_B, ids_BKT, rooms_B - ids_BKT.shape[2])
        assert allowed_BKV.any(dim=2)[open_BK].all(), "a way ends before the tree is whole"
        weights_XV = (allowed_BKV | ~open_BK[:, :, None]).flatten(0, 1).float()
        chosen_BK = weights_XV.multinomial(1, generator=generator).view_as(open_BK)
        for b, k in ((chosen_BK == EOS) & open_BK).nonzero().tolist():
            ends[b, k] = ids_BKT[b, k].tolist()
        open_BK &= chosen_BK != EOS
        ids_BKT = torch.cat([ids_BKT, chosen_BK[:, :, None]], dim=2)
    for (b, _), ids in ends.items():
        assert len(ids) <= rooms_B[b]
        tree = actions.order.decode(actions.sequence(ids, FIRST), ["w"] * words)
        assert sum(1 for _ in leaves(tree)) == words
    assert len(ends) == len(rooms_B) * paths


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("words", [1, 2, 3, 20])
def test_with_too_little_room_or_without_words_nothing_may_come(name: str, words: int) -> None:
    actions = vocabulary(name, chain=2)
    grammar = TreeConstraint(actions, [words, words, 0], first=FIRST, vocabulary=VOCABULARY)
    least = actions.fewest_actions(words)
    rooms_B = torch.tensor([least, least - 1, 50])
    nothing_yet = torch.zeros(3, 1, 0, dtype=torch.int64)
    allowed_B = grammar.allowed(torch.arange(3), nothing_yet, rooms_B).any(dim=2)[:, 0]
    assert allowed_B.tolist() == [True, False, False]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_follows_what_is_no_action_and_no_ids_are_too_strange(name: str) -> None:
    actions = vocabulary(name, chain=2)
    grammar = TreeConstraint(actions, [2, 5], first=FIRST, vocabulary=VOCABULARY)
    generator = torch.Generator().manual_seed(1)
    rooms_B = torch.tensor([3, 40])
    for length in range(1, 12):
        ids_BKT = torch.randint(VOCABULARY, (2, 50, length), generator=generator)
        allowed_BKV = grammar.allowed(torch.arange(2), ids_BKT, rooms_B)
        never = [PAD, BOS, UNK, FIRST - 1, FIRST + len(actions)]
        assert not allowed_BKV[:, :, never].any()
        stray_BK = ((ids_BKT < FIRST) | (ids_BKT >= FIRST + len(actions))).any(dim=2)
        assert stray_BK.any()
        assert not allowed_BKV[stray_BK].any()


def parser(vocabulary: int) -> Model:
    torch.manual_seed(3)
    config = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, heads=2)
    model = build(config, vocabulary).eval()
    for parameter in model.parameters():  # untrained, but with strong opinions
        parameter.data *= 3
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("find", ["greedy", "beam", "sample"])
def test_whatever_a_model_prefers_every_search_finds_trees(name: str, find: str) -> None:
    actions = vocabulary(name, chain=2)
    counts = [1, 2, 3, 5, 8, 13, 4, 1]
    model = parser(VOCABULARY)
    lengths = torch.tensor([count + 1 for count in counts])
    ids_BL = torch.randint(4, FIRST, (len(counts), int(lengths.max())))
    source = Rows.one_a_row(ids_BL.scatter(1, lengths[:, None] - 1, EOS), lengths)
    grammar = TreeConstraint(actions, counts, first=FIRST, vocabulary=VOCABULARY)
    for extra in (3, 30):  # what the sentence of 13 words needs from bottom up, and more
        if find == "sample":
            sampling = SamplingOptions(max_extra=extra, samples=5)
            results = sample(model, source, sampling, constraint=grammar)
        else:
            options = SearchOptions(beam=5, n_best=5, max_extra=extra)
            search = greedy_search if find == "greedy" else beam_search
            results = search(model, source, options, constraint=grammar)
            assert find == "greedy" or len(results[-2]) == 5  # of 4 words there are more trees
        for count, hypotheses in zip(counts, results, strict=True):
            assert hypotheses
            for hypothesis in hypotheses:
                assert len(hypothesis.ids) <= count + extra
                actions.order.decode(actions.sequence(hypothesis.ids, FIRST), ["w"] * count)


@pytest.mark.parametrize("name", NAMES)
def test_batch_mates_change_nothing(name: str) -> None:
    actions = vocabulary(name, chain=2)
    grammar = TreeConstraint(actions, [4, 9], first=FIRST, vocabulary=VOCABULARY)
    alone = TreeConstraint(actions, [9], first=FIRST, vocabulary=VOCABULARY)
    ids = walk(actions, 9, 25, random.Random(1))
    for length in range(len(ids) + 1):
        ids_BKT = torch.tensor([[ids[:length]]] * 2, dtype=torch.int64)
        rooms_B = torch.tensor([30, 25]) - length
        together = grammar.allowed(torch.tensor([0, 1]), ids_BKT, rooms_B)[1]
        assert torch.equal(together, alone.allowed(torch.tensor([0]), ids_BKT[1:], rooms_B[1:])[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("words", "extra", "chain"), [(1, 9, 3), (2, 7, 2), (3, 5, 1), (4, 3, 2)])
def test_with_words_announced_the_same_actions_may_follow(
    name: str, words: int, extra: int, chain: int
) -> None:
    """From every prefix; between the actions each word is announced, and nothing else may be."""
    actions = vocabulary(name, chain, arities=(1, 2, 3))
    end = FIRST + len(actions)
    announced = [end + (7 * word) % 3 for word in range(words)]
    grammar = TreeConstraint(
        actions, [words], first=FIRST, vocabulary=end + 3, announced=[announced]
    )
    least = actions.fewest_actions(words) + words
    assert grammar.shortest(0) == least
    room = least + extra
    prefixes: list[list[int]] = [[]]
    whole = 0
    while prefixes:
        length = len(prefixes[0])
        ids_BKT = torch.tensor([prefixes], dtype=torch.int64)
        room_B = torch.tensor([room - length])
        allowed_KV = grammar.allowed(torch.tensor([0]), ids_BKT, room_B)[0]
        longer = []
        for prefix, row in zip(prefixes, allowed_KV, strict=True):
            plain = [id_ for id_ in prefix if id_ < end]
            said = len(prefix) - len(plain)
            done = sum(actions.kinds[id_ - FIRST] == WORD for id_ in plain)
            ids = found(row)
            if said == done < words:
                assert ids == {announced[done]}
            else:
                spare = room - length - (words - said)
                assert ids == expected(actions, plain, words, spare)
            whole += EOS in ids
            by_kind = {actions.kinds[id_ - FIRST] if id_ < end else -9: id_ for id_ in ids - {EOS}}
            longer += [[*prefix, id_] for id_ in by_kind.values()]
        prefixes = longer
    assert whole
    assert length <= room
