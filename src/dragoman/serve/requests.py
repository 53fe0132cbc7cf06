"""All routes read a request's body, check its size and translate its texts by what stands here.

Bodies come as JSON or, for clients that send none, as forms with the same fields.
"""

from __future__ import annotations

import asyncio
import json
import typing
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from dragoman.inference import Translation
from dragoman.inference.documents.html import HtmlTexts
from dragoman.inference.translation_types import Issue, IssueKind
from dragoman.serve.authentication import Authenticator
from dragoman.serve.corrections import CorrectionFile, make_corrections
from dragoman.serve.errors import ServiceError
from dragoman.serve.limits import MAX_FORM_FIELDS
from dragoman.serve.model_registry import ServedModel
from dragoman.serve.service import TranslationService
from dragoman.text.languages import choose_language


def get_service(request: Request) -> TranslationService:
    """Return the service that a request is made to."""
    service: TranslationService = request.app.state.service
    return service


def get_authenticator(request: Request) -> Authenticator:
    """Return what checks the service's API keys."""
    authenticator: Authenticator = request.app.state.authenticator
    return authenticator


# --- translating ---


class TranslatedText(NamedTuple):
    """Hold a translation, with the language its text was taken to be in."""

    translation: Translation
    source: str
    confidence: float
    """How probable this language is; 1 if the request names it."""
    through: str = ""
    """The language in between, where two models translated."""

    def with_language_issue(self, issue: Issue) -> TranslatedText:
        """Return this with the issue that the text seems to be in another language."""
        issues = (*self.translation.issues, issue)
        return self._replace(translation=replace(self.translation, issues=issues), confidence=0.0)


class NativeIssue(BaseModel):
    """Says what was found wrong with a translation."""

    kind: IssueKind
    detail: str
    repaired: bool = Field(description="Whether it could be mended.")


def check_size(request: Request, texts: Sequence[str]) -> None:
    """Log and count a request's texts, and raise 413 if they are too many or too long."""
    service, characters = get_service(request), sum(map(len, texts))
    request.state.log_fields.update(items=len(texts), characters=characters)
    service.metrics.characters.inc(characters)
    service.settings.limits.check_texts(texts)


async def translate(
    request: Request,
    texts: Sequence[str],
    source: str | None,
    target: str,
    *,
    html: bool = False,
    model: ServedModel | None = None,
    options: dict[str, Any] | None = None,
) -> list[TranslatedText]:
    """Translate texts, each from its own detected language if no `source` is given.

    A `model` that the request names translates all of them.
    """
    check_size(request, texts)
    service = get_service(request)
    registry = service.registry
    if source is None:
        candidates = registry.find_sources(target)
        languages = await asyncio.to_thread(
            lambda: [choose_language(text, candidates) for text in texts]
        )
    else:
        languages = [(source, 1.0)] * len(texts)
    groups: dict[ServedModel, list[int]] = {}
    for i, (code, _) in enumerate(languages):
        groups.setdefault(model or registry.find_pair(code, target), []).append(i)
    request.state.log_fields["models"] = [chosen.name for chosen in groups]
    kind = HtmlTexts if html else PlainTexts
    parts = [kind([texts[i] for i in members]) for members in groups.values()]
    with service.admission.admit(sum(map(len, parts))):
        translated = await asyncio.gather(
            *(
                _translate_parts(service, chosen, part, options or {})
                for chosen, part in zip(groups, parts, strict=True)
            )
        )
    results: dict[int, TranslatedText] = {}
    for (chosen, members), translations in zip(groups.items(), translated, strict=True):
        for i, translation in zip(members, translations, strict=True):
            results[i] = TranslatedText(translation, *languages[i], through=chosen.through)

    def check_languages() -> list[TranslatedText]:
        for chosen, members in groups.items():
            for i in members:
                issue = service.check_language(chosen, texts[i], results[i].source)
                if issue is not None:
                    results[i] = results[i].with_language_issue(issue)
        return [results[i] for i in range(len(texts))]

    return await asyncio.to_thread(check_languages)


class PlainTexts:
    """Hold texts without tags, which are translated as they are; see `HtmlTexts`."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.plain, self.tagged = list(texts), list[str]()

    def __len__(self) -> int:
        """Return how many lines have words, by which requests are admitted."""
        return sum(1 for text in self.plain for line in text.splitlines() if line.strip())

    def assemble(
        self, plain: Sequence[Translation], tagged: Sequence[Translation]
    ) -> list[Translation]:
        """Return the translation of each text."""
        assert not tagged
        return list(plain)


async def _translate_parts(
    service: TranslationService,
    model: ServedModel,
    parts: PlainTexts | HtmlTexts,
    options: dict[str, Any],
) -> list[Translation]:
    plain, tagged = await asyncio.gather(
        service.translate(model, parts.plain, **options),
        service.translate(model, parts.tagged, **(options | {"align": True})),
    )
    return parts.assemble(plain, tagged)


# --- corrections ---


def get_corrections(request: Request) -> CorrectionFile:
    """Return where corrections are kept, or raise 403, as LibreTranslate words it."""
    kept = get_service(request).corrections
    if kept is None:
        raise ServiceError(403, "Suggestions are disabled on this server.")
    return kept


async def keep_corrections(
    request: Request, pairs: Sequence[tuple[str, str]], model: ServedModel, key: str
) -> None:
    """Keep texts with the translations that they should have had; `key` is that of an API key."""
    service, settings = get_service(request), get_service(request).settings
    sides = [text for text, _ in pairs], [correction for _, correction in pairs]
    request.state.log_fields.update(items=len(pairs), characters=sum(map(len, sides[0])))
    for side in sides:
        settings.limits.check_texts(side)
    if not key:
        _check_origin(request, settings.origins)
    with service.admission.admit(len(pairs)):
        made = await asyncio.to_thread(
            lambda: [
                one
                for text, correction in pairs
                for one in make_corrections(text, correction, (model.source, model.target), key)
            ]
        )
        await service.keep_corrections(made)


def _check_origin(request: Request, origins: Sequence[str]) -> None:
    """Raise 403 if a browser sends this for the page of another site, which needs no answer to it.

    Reading answers is what browsers keep other sites from; a form is sent all the same.
    """
    origin = request.headers.get("origin")
    if origin is None or origin in origins or "*" in origins:
        return
    fetched = request.headers.get("sec-fetch-site")
    same = fetched in ("same-origin", "none")
    if fetched is None:
        same = origin.partition("://")[2] == request.headers.get("host", "")
    if not same:
        raise ServiceError(403, "another site's page may not send corrections; see --cors")


# --- bodies ---


class Body(BaseModel):
    """Require that a body's values have the types of its schema; none are converted."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_text(cls, value: Any) -> Any:
        """Raise ValueError if any string has half of a surrogate pair, which JSON can write."""
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                try:
                    one.encode()
                except UnicodeEncodeError:
                    raise ValueError("half of a surrogate pair is not a character") from None
            elif isinstance(one, dict):
                waiting += [*one, *one.values()]
            elif isinstance(one, list):
                waiting += one
        return value


_FORM_TYPES: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


class FormRoute(APIRoute):
    """Let a route's `body` come as JSON or as a form with the same fields."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, given forms as JSON."""
        handle = super().get_route_handler()
        model = typing.get_type_hints(self.endpoint).get("body")

        async def handle_form(request: Request) -> Response:
            media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
            if model is not None and media_type in _FORM_TYPES:
                request = await _form_to_json(request, media_type, model)
            return await handle(request)

        return handle_form


def form_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return what describes in OpenAPI that a route also takes its body as a form."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"content": {_FORM_TYPES[0]: {"schema": schema}}}}


async def _form_to_json(request: Request, media_type: str, model: type[BaseModel]) -> Request:
    """Return the same request with its form as JSON."""
    try:
        if media_type == _FORM_TYPES[0]:
            form = _decode_form(await request.body())
        else:
            form = await request.form(max_files=0, max_fields=MAX_FORM_FIELDS)
        fields = {name: _field_value(form, name, model) for name in form}
    except HTTPException as error:
        if error.status_code == 400:
            raise ServiceError(400, f"Invalid request: {error.detail}") from None
        raise
    except ValueError:
        raise ServiceError(400, "Invalid request: the body is not a form") from None
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


def _decode_form(body: bytes) -> FormData:
    """Return the fields of a form in UTF-8, whose characters may be percent-encoded or as they are.

    Starlette reads what is not percent-encoded as Latin-1, but `curl -d` sends text as it is.
    """
    fields = parse_qsl(
        body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS
    )
    return FormData([*fields])


def _field_value(form: FormData, name: str, model: type[BaseModel]) -> Any:
    """Return a field as JSON would hold it; what is not a number stays text, to be refused."""
    values = [value for value in form.getlist(name) if isinstance(value, str)]
    field = model.model_fields.get(name)
    kinds = str(field.annotation) if field is not None else ""
    if "int" in kinds and len(values) == 1 and values[0].strip().lstrip("-").isdecimal():
        return int(values[0])
    if "bool" in kinds and len(values) == 1 and values[0].lower() in _BOOLEANS:
        return _BOOLEANS[values[0].lower()]
    return values if len(values) > 1 else "".join(values)
