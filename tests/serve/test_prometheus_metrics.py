"""The metrics count what was done."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dragoman.inference.cpu import kernel_library

from .service_fixtures import ASK, SENTENCES, Service


@pytest.mark.parametrize("precision", ["auto", "float32"])
def test_metrics_count_what_was_done(served: Callable[..., Service], precision: str) -> None:
    service = served(precision=precision)
    texts = SENTENCES[:3]
    service.post("/translate", ASK | {"q": texts})
    service.post("/translate", {})
    lines = service.client.get("/metrics").text
    for wanted in (
        'dragoman_requests_total{method="POST",route="/translate",status="200"} 1.0',
        'dragoman_requests_total{method="POST",route="/translate",status="400"} 1.0',
        "dragoman_accepted_sentences 0.0",
        "dragoman_ready 1.0",
        'dragoman_sentences_total{model="ende"} 3.0',
        "process_resident_memory_bytes",
    ):
        assert wanted in lines
    found = service.inner.registry.models[0].translator.translate(texts)
    tokens = sum(len(one.tokens) for one in found)
    assert f'dragoman_tokens_total{{model="ende"}} {tokens}.0' in lines
    if precision == "auto" and kernel_library.load_kernel() is not None:
        assert 'dragoman_running_sentences{model="ende"} 0.0' in lines
        assert 'dragoman_batch_fill_count{model="ende"}' in lines
