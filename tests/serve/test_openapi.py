"""The description of the API is complete, and the service keeps to it whatever it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .service_fixtures import Process, Service

THERE = {"source": "en", "target": "de", "source_lang": "EN", "target_lang": "DE", "model": None}


def test_every_body_and_answer_is_described_with_an_example(service: Service) -> None:
    found = service.client.get("/openapi.json").json()
    schemas = found["components"]["schemas"]
    posts = {path: one["post"] for path, one in found["paths"].items() if "post" in one}
    assert {"/translate", "/detect", "/v2/translate", "/v1/translate", "/v1/parse"} <= set(posts)
    for path, operation in posts.items():
        content = operation["requestBody"]["content"]
        name = next(iter(content.values()))["schema"]["$ref"].rpartition("/")[2]
        if path not in ("/translate_file", "/v2/document"):
            assert schemas[name]["examples"], path
        assert "422" not in operation["responses"]
        assert {"400", "413", "429", "503", "504"} <= set(operation["responses"])
    assert set(posts["/translate"]["requestBody"]["content"]) == {
        "application/json",
        "application/x-www-form-urlencoded",
    }


def test_the_examples_are_answered(served: Callable[..., Service], tmp_path: Path) -> None:
    service = served(names=("ende", "deen", "trees"), corrections=tmp_path / "corrections.jsonl")
    found = service.client.get("/openapi.json").json()
    schemas, tried = found["components"]["schemas"], 0
    for path, one in found["paths"].items():
        content = one.get("post", {}).get("requestBody", {}).get("content", {})
        if "application/json" not in content or "{" in path:
            continue
        name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for example in schemas[name]["examples"]:
            if path.startswith("/v1") and path != "/v1/parse":
                example = {"model": "ende"} | example
            answer = service.post(path, example)
            assert answer.status_code == 200, (path, answer.text)
            tried += 1
    assert tried >= 11


@pytest.mark.thorough
def test_no_request_that_can_be_written_is_a_5xx(
    outside: Callable[..., Process], tmp_path: Path
) -> None:
    """Or answered in a way that is not described."""
    schemathesis = pytest.importorskip("schemathesis", reason="fuzzing needs schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings, strategies
    from hypothesis.errors import Unsatisfiable
    from schemathesis import GenerationMode
    from schemathesis.checks import load_all_checks, not_a_server_error

    load_all_checks()
    from schemathesis.specs.openapi import checks as described

    kept = [
        not_a_server_error,
        described.status_code_conformance,
        described.content_type_conformance,
        described.response_schema_conformance,
    ]
    kept_in = ("--corrections", tmp_path / "corrections.jsonl")
    process = outside("--max-characters", 500, *kept_in, names=("ende", "deen", "trees"))
    schema = schemathesis.openapi.from_url(f"{process.url}/openapi.json")
    statuses: Counter[int] = Counter()
    for result in schema.get_all_operations():
        for mode in GenerationMode:

            @settings(
                max_examples=12,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=result.ok().as_strategy(generation_mode=mode), served=strategies.booleans())
            def check(case: Any, served: bool) -> None:
                if served and isinstance(case.body, dict):  # or no model would ever see a text
                    case.body.update({k: v for k, v in THERE.items() if k in case.body})
                answer = case.call_and_validate(
                    checks=kept, timeout=60
                )  # a first one loads PyTorch
                statuses[answer.status_code] += 1

            with suppress(Unsatisfiable):  # without parameters nothing can be wrong
                check()
    assert statuses[200] > 50
    assert statuses[400] > 50
