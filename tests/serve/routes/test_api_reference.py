"""The reference at /docs: complete, safe, and without anything from elsewhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from dragoman.serve.limits import MAX_BEAM
from dragoman.serve.routes.api_reference import render_reference
from dragoman.serve.routes.page import POLICY

from ..service_fixtures import Service

EMPTY = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """A page that was read: its elements, and whether each was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def attributes(self, name: str) -> Iterator[str]:
        return (found[name] or "" for _, found in self.elements if name in found)


@pytest.fixture(scope="module")
def text(service: Service) -> str:
    answer = service.client.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    return str(answer.text)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_every_path_field_and_example_is_on_it(service: Service, page: Page, text: str) -> None:
    schema = service.client.get("/openapi.json").json()
    forms = {
        (found["data-method"], found["data-path"]) for tag, found in page.elements if tag == "form"
    }
    assert forms == {(method, path) for path, found in schema["paths"].items() for method in found}
    readable = html.unescape(re.sub("<[^>]*>", "", text))
    for one in schema["components"]["schemas"].values():
        for name, field in one.get("properties", {}).items():
            assert name in readable
            assert field.get("description", "") in readable
        for example in one.get("examples", []):
            assert json.dumps(example, ensure_ascii=False) in readable
    assert f"whole number from 1 to {MAX_BEAM}" in readable


def test_nothing_is_loaded_from_elsewhere_or_written_into_the_page(
    service: Service, page: Page, text: str
) -> None:
    for name in ("src", "href"):
        for target in page.attributes(name):
            assert target.startswith(("#", "/")), target
            assert not target.startswith("//")
            if target.startswith("/"):
                assert service.client.get(target).status_code == 200, target
    assert not any(name.startswith("on") or name == "style" for _, f in page.elements for name in f)
    assert re.findall("<script[^>]*>(.*?)</script>", text, re.S) == [""]
    assert "<style" not in text


def test_every_link_within_the_page_leads_somewhere(page: Page) -> None:
    places = list(page.attributes("id"))
    assert len(places) == len(set(places))
    links = [target for target in page.attributes("href") if target.startswith("#")]
    assert len(links) > 30
    assert {link[1:] for link in links} <= set(places)


def test_the_examples_name_the_service_as_it_was_asked_for(service: Service) -> None:
    text = service.client.get("/docs", headers={"host": "translate.example:8080"}).text
    assert "curl http://translate.example:8080/v1/models" in text
    assert "{{service}}" not in text


def test_what_a_description_says_is_text_and_no_markup() -> None:
    evil = "<script>alert('1')</script>"
    field = {"type": "string", "description": evil, "default": evil}
    body = {"properties": {evil: field}, "examples": [{evil: evil}], "description": evil}
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{evil}"}}}
    operation = {
        "description": evil,
        "requestBody": {"content": content},
        "parameters": [{"name": evil, "in": "query", "schema": {"enum": [evil]}}],
        "responses": {"200": {"description": evil, "content": content}},
    }
    schema = {
        "info": {"version": evil},
        "paths": {f"/{evil}": {"post": operation}},
        "components": {"schemas": {evil: body}},
    }
    found = Page(render_reference(schema))
    assert [tag for tag, _ in found.elements].count("script") == 1
    assert any(evil in text for text in found.texts)
