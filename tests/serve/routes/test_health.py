"""Liveness, readiness and the models' health."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.inference.cpu.continuous_batching import ContinuousBatch

from ..service_fixtures import ASK, Service, needs_kernel


@needs_kernel
def test_health_tells_whether_the_models_answer(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(names=("ende", "deen", "trees"))
    assert service.client.get("/health").json() == {
        "status": "ok",
        "models": {"ende": True, "deen": True, "trees": True},
    }

    def fail(self: ContinuousBatch) -> Any:
        raise RuntimeError

    service.inner._answered.clear()
    monkeypatch.setattr(ContinuousBatch, "step", fail)
    found = service.client.get("/health")
    assert found.status_code == 503
    assert found.json()["models"] == {"ende": False, "deen": False, "trees": True}


def test_a_closing_service_is_alive_and_not_ready(served: Callable[..., Service]) -> None:
    service = served()
    assert service.client.get("/health/ready").status_code == 200
    service.inner.admission.drain()
    assert service.client.get("/health/ready").status_code == 503
    assert service.client.get("/health/live").status_code == 200
    refused = service.post("/translate", ASK)
    assert refused.status_code == 503
    assert refused.headers["connection"] == "close"
