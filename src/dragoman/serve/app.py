"""The application: the routes of all dialects over one desk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.serve.authentication import Guard
from dragoman.serve.errors import Refusal, on_failure, on_http, on_invalid, on_refusal
from dragoman.serve.middleware import Edge
from dragoman.serve.routes import deepl, documents, health, libretranslate, page, v1
from dragoman.serve.service import Desk

__all__ = ["build", "edged"]


def build(desk: Desk) -> FastAPI:
    """The routes; the desk is closed with the application."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    app = FastAPI(
        title="Dragoman",
        version=__version__,
        description="Translation and parsing.",
        docs_url=None,  # the page would load scripts from elsewhere
        redoc_url=None,
        lifespan=life,
    )
    app.state.desk, app.state.guard = desk, Guard(desk.settings)
    app.state.files = documents.Shelf()
    for module in (page, health, libretranslate, documents, deepl, v1):
        app.include_router(module.router)
    app.add_exception_handler(Refusal, on_refusal)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_invalid)
    for kind in (DragomanError, Exception):  # the first are answered, the others logged as well
        app.add_exception_handler(kind, on_failure)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def edged(app: FastAPI) -> ASGIApp:
    """The application as it is served."""
    desk: Desk = app.state.desk
    inner: ASGIApp = app
    if desk.settings.origins:
        inner = CORSMiddleware(
            app,
            allow_origins=desk.settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key"],
        )
    return Edge(inner, desk.meters, desk.settings.max_body, lambda: desk.draining)


def _described(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description; what is wrong is a 400 here, so that its 422 is left out."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            schema["components"]["schemas"].pop(name, None)
    return app.openapi_schema or {}
