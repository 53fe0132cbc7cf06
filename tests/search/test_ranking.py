from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.search.beam import stable_topk

ROWS = st.lists(
    st.lists(st.sampled_from([-5.0, -1.0, -0.5, 0.0]), min_size=12, max_size=12),
    min_size=1,
    max_size=3,
)


@settings(max_examples=200, deadline=None)
@given(rows=ROWS, count=st.integers(1, 15))
def test_the_best_are_chosen_and_of_equals_the_first(rows: list[list[float]], count: int) -> None:
    values, places = stable_topk(torch.tensor(rows), count)
    for row, best, where in zip(rows, values.tolist(), places.tolist(), strict=True):
        expected = sorted(range(12), key=lambda place: (-row[place], place))[:count]
        assert where == expected
        assert best == [row[place] for place in expected]


@pytest.mark.gpu
@pytest.mark.parametrize(("rows", "columns"), [(1, 50), (64, 5_000), (2, 150_000), (300, 37_000)])
def test_a_gpu_chooses_what_the_cpu_chooses(rows: int, columns: int) -> None:
    values = torch.randint(-40, 0, (rows, columns)).float()
    for count in (1, 2, 8, 16):
        expected, places = stable_topk(values, count)
        found, found_places = stable_topk(values.cuda(), count)
        assert torch.equal(found.cpu(), expected)
        assert torch.equal(found_places.cpu(), places)
