"""These routes are for whoever runs the service: liveness, readiness, health and metrics."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from dragoman.serve.requests import get_service

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    """Says whether the service and its models answer."""

    status: str
    models: dict[str, bool] = {}


_UNHEALTHY: Final[dict[int | str, dict[str, Any]]] = {
    503: {
        "model": Health,
        "description": "Some model does not answer, or the service is shutting down.",
    }
}


@router.get("/health", response_model=Health, responses=_UNHEALTHY)
async def health(request: Request) -> Response:
    """Say of each model whether it has answered in the last seconds, or answers now."""
    service = get_service(request)
    models = service.registry.models
    answers = await asyncio.gather(*map(service.is_answering, models))
    found = {one.name: answer for one, answer in zip(models, answers, strict=True)}
    status = "ok" if all(answers) else "error"
    return JSONResponse({"status": status, "models": found}, 200 if all(answers) else 503)


@router.get("/health/live")
async def live() -> Health:
    """Return 200 while the process can answer at all; readiness is /health/ready."""
    return Health(status="ok")


@router.get("/health/ready", response_model=Health, responses=_UNHEALTHY)
async def ready(request: Request) -> Response:
    """Return 200 while new requests are accepted, and 503 once the service is shutting down."""
    closing = get_service(request).admission.draining
    return JSONResponse(
        {"status": "closing" if closing else "ok", "models": {}}, 503 if closing else 200
    )


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Return the metrics of the service and its process, for Prometheus."""
    return Response(get_service(request).metrics.render(), media_type=CONTENT_TYPE_LATEST)
