"""API keys are asked for in each API's way, and read from a file and the environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.serve.authentication import hash_key, read_keys

from .service_fixtures import ASK, Service


def test_keys_are_asked_for_in_each_apis_way(served: Callable[..., Service]) -> None:
    service = served(keys=("secret",))
    assert service.post("/translate", ASK).status_code == 400
    assert service.post("/translate", ASK | {"api_key": "wrong"}).status_code == 403
    assert service.post("/translate", ASK | {"api_key": "secret"}).status_code == 200
    assert service.client.post("/translate", data=ASK | {"api_key": "secret"}).status_code == 200
    assert service.post("/v1/translate", {"text": "a"}).status_code == 401
    for value, status in (("Bearer wrong", 403), ("Bearer secret", 200)):
        head = {"authorization": value}
        assert service.post("/v1/translate", {"text": "a"}, headers=head).status_code == status
    for path in ("/languages", "/health", "/health/live", "/frontend/settings"):
        assert service.client.get(path).status_code == 200


def test_keys_come_from_a_file_and_the_environment(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_KEYS", "one,two three")
    (tmp_path / "keys").write_text("# mine\nfour\n\n five \n", encoding="utf-8")
    names = ("one", "two", "three", "four", "five")
    assert read_keys(tmp_path / "keys") == frozenset(map(hash_key, names))
    (tmp_path / "none").write_text("\n", encoding="utf-8")
    for path in (tmp_path / "none", tmp_path / "missing"):
        with pytest.raises(ConfigError):
            read_keys(path)
