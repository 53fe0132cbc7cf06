"""Awkward texts come back whole from the service, too, whatever the model says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.serve import model_registry
from dragoman.serve.model_registry import ServedModel

from ..awkward_texts import CASES, assert_whole
from ..fake_engines import make_translator
from .service_fixtures import Service, start


@pytest.fixture(scope="module", params=["identity", "random"])
def awkward_service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """A service of one translator of a certain behaviour."""

    def load(name: str, *others: Any) -> ServedModel:
        return ServedModel(name, make_translator(request.param), ("en", "de"), 16)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_registry, "_load", load)
        found = start([Path("fake")], max_items=64)
    yield found
    found.inner.close()


def test_awkward_texts_come_back_whole(awkward_service: Service) -> None:
    for first in range(0, len(CASES), 64):
        cases = CASES[first : first + 64]
        answer = awkward_service.post("/v1/translate", {"text": [case.text for case in cases]})
        assert answer.status_code == 200, answer.text
        for case, found in zip(cases, answer.json()["translations"], strict=True):
            assert_whole(case, found["text"])
