"""What the page asks, and the page's own files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from dragoman.inspection import PAGE

from ..service_fixtures import SENTENCES, Service

TEXT = SENTENCES[0]


@pytest.mark.slow
def test_attention_of_every_part(service: Service) -> None:
    answer = service.post("/v1/attention", {"text": TEXT, "model": "ende", "translation": "god"})
    assert answer.status_code == 200
    found = answer.json()
    assert list(found["parts"]) == ["encoder", "decoder", "cross"]
    cross = found["parts"]["cross"]
    assert cross["layers"][0]["shape"] == [2, len(cross["rows"]), len(cross["columns"])]
    assert "before" not in found


@pytest.mark.slow
def test_a_sentence_without_some_heads(service: Service) -> None:
    off = [{"part": part, "layer": 0, "head": h} for part in ("encoder", "cross") for h in (0, 1)]
    found = service.post("/v1/attention", {"text": TEXT, "model": "ende", "off": off}).json()
    assert found["off"] == off
    assert found["after"]["text"] == found["translation"] != found["before"]["text"]


def test_beam_search_as_a_tree(service: Service) -> None:
    found = service.post("/v1/beam", {"text": TEXT, "model": "ende", "beam": 3}).json()
    assert found["beam"] == 3
    assert len(found["results"]) == 3
    ended = [one["score"] for one in found["branches"] if one["rank"] == 1]
    assert ended == [max(one["score"] for one in found["branches"] if one["score"] is not None)]


def test_the_numbers_of_a_layer(service: Service) -> None:
    body = {"text": TEXT, "model": "ende", "translation": "god", "part": "cross", "layer": 0}
    found = service.post("/v1/steps", body).json()
    assert found["matrices"]["q"]["shape"] == [2, len(found["rows"]), 16]
    assert len(found["next"]) == len(found["said"])


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("attention", {"text": ""}, 400, "empty"),
        ("attention", {"text": "dog " * 300}, 400, "at most 128 can be shown"),
        ("attention", {"text": "dog", "off": [{"part": "cross", "layer": 9, "head": 0}]}, 400, "1"),
        (
            "attention",
            {"text": "dog", "off": [{"part": "all", "layer": 0, "head": 0}]},
            400,
            "part",
        ),
        ("steps", {"text": "dog", "layer": 7}, 400, "this model has 1"),
        ("steps", {"text": "dog", "layer": -1}, 400, "layer"),
        ("beam", {"text": "dog", "beam": 0}, 400, "beam"),
        ("beam", {"text": "dog", "model": "trees"}, 400, "parser"),
        ("beam", {"text": "dog", "model": "none"}, 404, "no model"),
        ("beam", {"text": "x" * 30_000}, 413, "exceeds"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    service: Service, path: str, body: dict[str, object], status: int, said: str
) -> None:
    answer = service.post(f"/v1/{path}", {"model": "ende"} | body)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_a_key_is_needed_where_there_are_keys(served: Callable[..., Service]) -> None:
    service = served(keys=("secret",))
    for path in ("attention", "steps", "beam"):
        assert service.post(f"/v1/{path}", {"text": TEXT}).status_code == 401
    assert service.client.get("/").status_code == 200


def test_the_page_may_load_its_own_files_only(service: Service) -> None:
    answer = service.client.get("/")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "<script>" not in answer.text
    assert "style=" not in answer.text


def test_the_files_of_the_page_and_no_others(service: Service) -> None:
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    for file in PAGE.iterdir():
        answer = service.client.get(f"/page/{file.name}")
        assert answer.status_code == 200
        assert answer.content == file.read_bytes()
        assert answer.headers["content-type"].startswith(kinds.get(file.suffix, "text/html"))
    for name in (
        "saved_page.py",
        "..%2Fsaved_page.py",
        "%2e%2e/saved_page.py",
        "../saved_page.py",
        "",
    ):
        assert service.client.get(f"/page/{name}").status_code == 404


def test_nothing_on_the_page_is_loaded_from_elsewhere() -> None:
    for file in PAGE.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, file
        assert "https:" not in text, file
        assert "@import" not in text, file


def test_korean_says_all_that_english_says() -> None:
    text = (PAGE / "texts.js").read_text(encoding="utf-8")
    english, korean = text.split("\n  ko: {")
    keys = [set(re.findall(r'"([\w.]+)": "', part)) for part in (english, korean)]
    assert keys[0] == keys[1]
    used = set()
    for file in PAGE.glob("*.js"):
        used |= set(re.findall(r'localize\("([\w.]+)"', file.read_text(encoding="utf-8")))
    assert used <= keys[0], used - keys[0]


@pytest.mark.slow
def test_the_page_is_there_without_pytorch() -> None:
    script = (
        "import sys, dragoman.serve.routes.page as page\n"
        "assert page._files() and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
