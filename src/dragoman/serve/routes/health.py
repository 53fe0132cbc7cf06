"""For whoever runs the service: is it alive and ready, do the models answer, what has been done."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from dragoman.serve.translation_request import desk_of

__all__ = ["router"]

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    """Whether the models answer."""

    status: str
    models: dict[str, bool] = {}


_UNWELL: dict[int | str, dict[str, Any]] = {
    503: {"model": Health, "description": "Some model does not answer, or the service is closing."}
}


@router.get("/health", response_model=Health, responses=_UNWELL)
async def health(request: Request) -> Response:
    """Whether each model has answered in the last seconds, or answers now."""
    desk = desk_of(request)
    models = desk.fleet.models
    answers = await asyncio.gather(*map(desk.answers, models))
    found = {one.name: answer for one, answer in zip(models, answers, strict=True)}
    well = all(answers)
    status = "ok" if well else "error"
    return JSONResponse({"status": status, "models": found}, 200 if well else 503)


@router.get("/health/live")
async def live() -> Health:
    """That the process answers."""
    return Health(status="ok")


@router.get("/health/ready", response_model=Health, responses=_UNWELL)
async def ready(request: Request) -> Response:
    """Whether requests are welcome; not while the service is closing."""
    closing = desk_of(request).draining
    return JSONResponse(
        {"status": "closing" if closing else "ok", "models": {}}, 503 if closing else 200
    )


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """For Prometheus."""
    return Response(desk_of(request).meters.exposition(), media_type=CONTENT_TYPE_LATEST)
