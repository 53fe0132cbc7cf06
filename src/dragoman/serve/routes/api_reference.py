"""The reference of all APIs at /docs is a page made here of the OpenAPI description.

It loads nothing from elsewhere, so that it works without a network and under the service's content
security policy; FastAPI's own page would load its scripts from a CDN. Without JavaScript it can be
read; with it, requests can be tried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from dragoman.serve.routes.page import POLICY

router = APIRouter()

BASE: Final = "{{service}}"
"""Stands in the page for the address of the service, which only a request knows."""
JSON_TYPE: Final = "application/json"
_TYPES: Final = "#/components/schemas/"

_TITLES: Final = {
    "Dragoman": "Dragoman's own API: everything the models can do.",
    "LibreTranslate": "LibreTranslate's API, for its clients.",
    "DeepL": "DeepL's API, for its clients.",
    "operations": "For whoever runs the service.",
}
_KEYS: Final = {
    "Dragoman": "authorization: Bearer KEY",
    "DeepL": "authorization: DeepL-Auth-Key KEY",
    "LibreTranslate": '"api_key": "KEY"',
}


@router.get("/docs", include_in_schema=False)
async def reference(request: Request) -> HTMLResponse:
    """Return the page that describes every route."""
    state = request.app.state
    if not hasattr(state, "reference"):
        state.reference = render_reference(request.app.openapi())
    address = escape(str(request.base_url).rstrip("/"))
    headers = {"content-security-policy": POLICY}
    return HTMLResponse(state.reference.replace(BASE, address), headers=headers)


def render_reference(schema: Mapping[str, Any]) -> str:
    """Return the page for an OpenAPI description."""
    groups = _group_by_tag(schema)
    links = "".join(
        f"<h2>{escape(tag)}</h2><ul>"
        + "".join(
            f'<li><a href="#{_anchor(method, path)}"><span class="method">{method.upper()}</span> '
            f"{escape(path)}</a></li>"
            for method, path, _ in operations
        )
        + "</ul>"
        for tag, operations in groups.items()
    )
    sections = "".join(
        f'<section class="api"><h2>{escape(tag)}</h2><p>{escape(_TITLES.get(tag, ""))}'
        f"{_describe_key(tag)}</p>"
        + "".join(_render_operation(schema, tag, *operation) for operation in operations)
        + "</section>"
        for tag, operations in groups.items()
    )
    version = escape(schema["info"]["version"])
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Dragoman: the API</title>\n"
        '<link rel="icon" href="/page/icon.svg" type="image/svg+xml">\n'
        '<link rel="stylesheet" href="/page/style.css">\n'
        '<link rel="stylesheet" href="/page/reference.css">\n'
        '<script type="module" src="/page/reference.js"></script>\n'
        '</head>\n<body>\n<div id="app">\n'
        '<header class="top"><a class="name" href="/">Dragoman</a>'
        f'<p class="hint">The API of version {version}, as <a href="/openapi.json">OpenAPI</a> '
        "describes it for programs.</p>"
        '<label class="field key" hidden>API key '
        '<input type="password" id="key" autocomplete="off"></label></header>\n'
        f'<div class="reference"><nav aria-label="Paths">{links}</nav>\n'
        f"<main>{sections}{_render_schemas(schema)}</main></div>\n</div>\n</body>\n</html>\n"
    )


def _group_by_tag(
    schema: Mapping[str, Any],
) -> dict[str, list[tuple[str, str, Mapping[str, Any]]]]:
    """Return method, path and description of every operation, by their tags, ours first."""
    groups: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {tag: [] for tag in _TITLES}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["operations"])[0]
            groups.setdefault(tag, []).append((method, path, operation))
    return {tag: found for tag, found in groups.items() if found}


def _describe_key(tag: str) -> str:
    if tag not in _KEYS:
        return ""
    return f" Where keys are needed, send <code>{escape(_KEYS[tag])}</code>."


# --- one operation ---


def _render_operation(
    schema: Mapping[str, Any], tag: str, method: str, path: str, operation: Mapping[str, Any]
) -> str:
    parameters = operation.get("parameters", [])
    content = operation.get("requestBody", {}).get("content", {})
    body = next((_resolve(schema, one["schema"]) for one in content.values()), None)
    examples = [] if body is None else list(body.get("examples", []))
    parts = [
        f'<article id="{_anchor(method, path)}"><h3><span class="method">{method.upper()}</span> '
        f"<code>{escape(path)}</code></h3>",
        f"<p>{escape(operation.get('description', ''))}</p>",
    ]
    if parameters:
        fields = {one["name"]: one["schema"] for one in parameters}
        required = [one["name"] for one in parameters if one.get("required")]
        parts.append(_render_fields("Parameters", fields, required))
    if body is not None:
        kinds = " or ".join(map(escape, content))
        title = f'Body <span class="hint">{kinds}</span>'
        parts.append(_render_fields(title, body.get("properties", {}), body.get("required", [])))
    if method == "get" and not parameters:
        parts.append(_render_example(f"curl {BASE}{path}"))
    for example in examples:
        text = json.dumps(example, ensure_ascii=False)
        quoted = text.replace("'", "'\\''")
        parts.append(_render_example(f"curl {BASE}{path} --json '{quoted}'"))
    parts.append(_render_form(tag, method, path, parameters, content, body, examples))
    parts.append(_render_answers(schema, operation["responses"]))
    return "".join([*parts, "</article>\n"])


def _render_fields(title: str, fields: Mapping[str, Any], required: list[str]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{_type(field)}</td>"
        f"<td>{_necessity(field, name in required)}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in fields.items()
    )
    heading = f"<h4>{title}</h4>" if title else ""
    return f'{heading}<table class="fields"><tbody>{rows}</tbody></table>' if rows else ""


def _render_example(command: str) -> str:
    # The place of the address is in it, and is filled in after escaping.
    return f'<pre class="example">{escape(command, quote=False)}</pre>'


def _render_form(
    tag: str,
    method: str,
    path: str,
    parameters: list[Any],
    content: Mapping[str, Any],
    body: Mapping[str, Any] | None,
    examples: list[Any],
) -> str:
    """Return the fields to try a request with, which the script shows and sends."""
    inputs = [
        f'<label class="field">{escape(one["name"])} <input type="text" '
        f'name="{escape(one["name"])}" data-in="{escape(one["in"])}"></label>'
        for one in parameters
    ]
    if JSON_TYPE in content:
        text = json.dumps(examples[0] if examples else {}, ensure_ascii=False, indent=2)
        inputs.append(
            f'<textarea rows="{text.count(chr(10)) + 1}" spellcheck="false" aria-label="Body">'
            f"{escape(text)}</textarea>"
        )
    elif body is not None:
        inputs += [
            f'<label class="field">{escape(name)} <input name="{escape(name)}" data-in="form" '
            f'type="{"file" if _is_file(field) else "text"}"></label>'
            for name, field in body.get("properties", {}).items()
        ]
    return (
        f'<form class="try" data-api="{escape(tag)}" data-method="{method}" '
        f'data-path="{escape(path)}" hidden>{"".join(inputs)}'
        '<p><button class="primary">Try it</button> <output class="hint"></output></p>'
        '<pre class="answer" tabindex="0" aria-label="Answer" hidden></pre></form>'
    )


def _is_file(field: Mapping[str, Any]) -> bool:
    return field.get("format") == "binary" or "contentMediaType" in field


def _render_answers(schema: Mapping[str, Any], responses: Mapping[str, Any]) -> str:
    rows = []
    for status, response in responses.items():
        said = escape(response.get("description", ""))
        kinds = ", ".join(
            f"{escape(kind)}: {_type(one['schema'])}" if one.get("schema") else escape(kind)
            for kind, one in response.get("content", {}).items()
        )
        said = "Done." if said == "Successful Response" else said
        rows.append(
            f"<tr><td><code>{escape(status)}</code></td><td>{said}</td><td>{kinds}</td></tr>"
        )
    return (
        "<details><summary>Answers</summary>"
        f'<table class="fields"><tbody>{"".join(rows)}</tbody></table></details>'
    )


# --- schemas ---


def _render_schemas(schema: Mapping[str, Any]) -> str:
    parts = []
    for name, one in schema["components"]["schemas"].items():
        if "properties" not in one:
            continue
        table = _render_fields("", one["properties"], one.get("required", []))
        parts.append(
            f'<article id="{_schema_anchor(name)}"><h3><code>{escape(_short(name))}</code></h3>'
            f"<p>{escape(one.get('description', ''))}</p>{table}</article>\n"
        )
    return f'<section class="api"><h2>Types</h2>{"".join(parts)}</section>'


def _type(field: Mapping[str, Any]) -> str:
    """Return the type of a field in words, with links to the types that have names."""
    if "$ref" in field:
        name = field["$ref"].removeprefix(_TYPES)
        return f'<a href="#{_schema_anchor(name)}">{escape(_short(name))}</a>'
    for union in ("anyOf", "oneOf", "allOf"):
        if union in field:
            return " or ".join(dict.fromkeys(_type(one) for one in field[union]))
    if "enum" in field or "const" in field:
        values = field.get("enum", [field.get("const")])
        return " or ".join(f"<code>{escape(json.dumps(value))}</code>" for value in values)
    kind = field.get("type")
    if kind == "array":
        items = field.get("prefixItems")
        inside = ", ".join(map(_type, items)) if items else _type(field.get("items", {}))
        return f"list of {inside}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object of {_type(field['additionalProperties'])}"
    if _is_file(field):
        return "file"
    words = {"integer": "whole number", "boolean": "true or false", "string": "text"}
    return escape(words.get(str(kind), str(kind or "anything"))) + "".join(_limits(field))


def _limits(field: Mapping[str, Any]) -> Iterator[str]:
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None:
        yield f" from {least:,.10g} to {most:,.10g}"
    elif least is not None:
        yield f" of at least {least:,.10g}"
    elif most is not None:
        yield f" of at most {most:,.10g}"


def _necessity(field: Mapping[str, Any], required: bool) -> str:
    if required:
        return "required"
    default = field.get("default")
    return "" if default in (None, "", [], {}) else f"default {escape(json.dumps(default))}"


def _resolve(schema: Mapping[str, Any], one: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in one:
        return one
    found: Mapping[str, Any] = schema["components"]["schemas"][one["$ref"].removeprefix(_TYPES)]
    return found


def _short(name: str) -> str:
    """Return the name of a type without the module and the route that FastAPI puts around it."""
    if found := re.fullmatch(r"Body_(\w+?)_\1_(?:post|get)", name):
        return found[1]
    return name.rpartition("__")[2]


def _anchor(method: str, path: str) -> str:
    return method + re.sub(r"\W+", "-", path).rstrip("-")


def _schema_anchor(name: str) -> str:
    return "type-" + re.sub(r"\W+", "-", name)
