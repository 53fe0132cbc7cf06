"""What all bodies share."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, model_validator
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from dragoman.serve.errors import Refusal

__all__ = [
    "Body",
    "FormRoute",
    "also_a_form",
]


class Body(BaseModel):
    """A body whose values have the types that are described, none converted."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _is_text(cls, value: Any) -> Any:
        """JSON can write half of a character; no text has one."""
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                try:
                    one.encode()
                except UnicodeEncodeError:
                    raise ValueError("half of a surrogate pair is no character") from None
            elif isinstance(one, dict):
                waiting += [*one, *one.values()]
            elif isinstance(one, list):
                waiting += one
        return value


# PART serve.forms: Bodies as forms, for clients that send no JSON.


_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class FormRoute(APIRoute):
    """A route whose `body` may come as JSON or as a form, with the same fields."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See FastAPI."""
        handle = super().get_route_handler()
        model = typing.get_type_hints(self.endpoint).get("body")

        async def adapted(request: Request) -> Response:
            if model is not None and _media_type(request) in _FORMS:
                request = await _as_json(request, model)
            return await handle(request)

        return adapted


def also_a_form(model: type[BaseModel]) -> dict[str, Any]:
    """What to add to a route's description."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"content": {_FORMS[0]: {"schema": schema}}}}


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def _as_json(request: Request, model: type[BaseModel]) -> Request:
    """The same request with its form as JSON."""
    try:
        async with request.form(max_files=0, max_fields=1000) as form:
            fields = {name: _value(form, name, model) for name in form}
    except HTTPException as error:
        if error.status_code == 400:
            raise Refusal(400, f"Invalid request: {error.detail}") from None
        raise
    except ValueError:
        raise Refusal(400, "Invalid request: the body is no form") from None
    body = json.dumps(fields).encode()
    scope = dict(request.scope)
    others = [(k, v) for k, v in scope["headers"] if k not in (b"content-type", b"content-length")]
    scope["headers"] = [*others, (b"content-type", b"application/json")]
    sent = False

    async def receive() -> Any:
        nonlocal sent
        if sent:
            return await request.receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(scope, receive)


def _value(form: FormData, name: str, model: type[BaseModel]) -> Any:
    """A field as JSON would hold it; what is no number stays text, to be refused as such."""
    values = [value for value in form.getlist(name) if isinstance(value, str)]
    field = model.model_fields.get(name)
    kinds = str(field.annotation) if field is not None else ""
    if "int" in kinds and len(values) == 1 and values[0].strip().lstrip("-").isdecimal():
        return int(values[0])
    if "bool" in kinds and len(values) == 1 and values[0].lower() in _BOOLEANS:
        return _BOOLEANS[values[0].lower()]
    return values if len(values) > 1 else "".join(values)


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
