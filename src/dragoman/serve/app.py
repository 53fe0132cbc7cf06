"""The web application has the routes of all APIs over one service."""

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
from dragoman.serve.authentication import Authenticator
from dragoman.serve.document_jobs import DocumentJobs
from dragoman.serve.document_store import DocumentStore
from dragoman.serve.errors import handle_failure, handle_http_error, handle_invalid_request
from dragoman.serve.middleware import RequestMiddleware
from dragoman.serve.routes import (
    api_reference,
    deepl,
    documents,
    health,
    libretranslate,
    page,
    v1,
)
from dragoman.serve.service import TranslationService


def build_app(service: TranslationService) -> FastAPI:
    """Return the application with all its routes; it closes the service when it ends."""

    jobs = DocumentJobs(service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        jobs.close()
        service.close()

    app = FastAPI(
        title="Dragoman",
        version=__version__,
        description="Translation and parsing.",
        docs_url=None,  # that page would load scripts from elsewhere; see routes/api_reference
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    app.state.authenticator = Authenticator(service.settings)
    app.state.documents = DocumentStore()
    app.state.document_jobs = jobs
    for module in (
        v1,
        page,
        api_reference,
        libretranslate,
        documents,
        deepl,
        health,
    ):  # as in /docs
        app.include_router(module.router)
    app.add_exception_handler(HTTPException, handle_http_error)
    app.add_exception_handler(RequestValidationError, handle_invalid_request)
    for kind in (DragomanError, Exception):  # the server logs those handled as Exception
        app.add_exception_handler(kind, handle_failure)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def wrap_in_middleware(app: FastAPI) -> ASGIApp:
    """Return the application as it is served."""
    service: TranslationService = app.state.service
    settings = service.settings
    wrapped: ASGIApp = app
    if settings.origins:
        wrapped = CORSMiddleware(
            app,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key"],
        )
    return RequestMiddleware(
        wrapped, service.metrics, settings.limits.max_body, lambda: service.admission.draining
    )


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return FastAPI's schema without 422, for an invalid request is answered with 400 here."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            schema["components"]["schemas"].pop(name, None)
    return app.openapi_schema or {}
