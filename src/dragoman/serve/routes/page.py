"""The web page has routes beyond translation: attention, beam search, a layer's numbers.

These need the model itself, which is loaded when the first of them is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from dragoman.inspection import PAGE
from dragoman.serve.errors import ERROR_RESPONSES, ServiceError
from dragoman.serve.limits import MAX_HEADS
from dragoman.serve.requests import check_size, get_service
from dragoman.serve.routes.v1 import Beam, ModelChoice, StrictBody, authenticate, find_model

router = APIRouter(tags=["Dragoman"], responses=ERROR_RESPONSES)

MEDIA_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy: the page may load its own files, and nothing else."""

Part = Literal["encoder", "decoder", "cross"]
Index = Field(ge=0, le=1000, description="Counted from 0.")


# --- the page ---


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """Return the web page to try the models on."""
    headers = {"content-security-policy": POLICY}
    return Response(_files()["index.html"], media_type="text/html", headers=headers)


@router.get("/page/{name}", include_in_schema=False)
async def page_file(name: str) -> Response:
    """Return a file of the page; no name leads to any other file."""
    content = _files().get(name)
    if content is None:
        raise ServiceError(404, "the page has no such file")
    return Response(content, media_type=MEDIA_TYPES.get(Path(name).suffix, "text/html"))


@cache
def _files() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in PAGE.iterdir() if file.is_file()}


# --- what it shows of a model ---


class HeadBody(StrictBody):
    """Names an attention head by its layer and its number."""

    part: Part = Field(description="Self-attention of one side, or attention to the source.")
    layer: int = Index
    head: int = Index


class AttentionBody(ModelChoice):
    """Gives a sentence and its translation, the model's own if none is given."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "Good morning!", "translation": "Guten Morgen!"},
                {"text": "Good morning!", "off": [{"part": "cross", "layer": 0, "head": 1}]},
            ]
        }
    )
    text: str
    translation: str | None = None
    off: list[HeadBody] = Field(
        [], max_length=MAX_HEADS, description="Heads to switch off, translating the sentence anew."
    )


class StepsBody(ModelChoice):
    """Gives a sentence, its translation, and the layer to show."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning!", "part": "cross", "layer": 0}]}
    )
    text: str
    translation: str | None = None
    part: Part = "encoder"
    layer: int = Field(0, ge=0, le=1000, description="Counted from 0.")


class BeamBody(ModelChoice):
    """Gives the sentence to search a translation of."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning!", "beam": 2}]}
    )
    text: str
    beam: Beam = None


class Weights(BaseModel):
    """Holds an array of numbers from 0 to 1."""

    shape: list[int] = Field(description="Heads, rows, columns.")
    u16: str = Field(description="Base64 of 16 little-endian bits for each number; 65535 is 1.")


class AttentionPart(BaseModel):
    """Holds every layer of one kind of attention."""

    rows: list[str] = Field(description="The pieces that look.")
    columns: list[str] = Field(description="The pieces they look at.")
    layers: list[Weights]


class AttentionFound(BaseModel):
    """Holds a translation that a search found."""

    text: str
    score: float


class AttentionAnswer(BaseModel):
    """Holds the attention weights of every piece, in every head."""

    text: str
    translation: str
    parts: dict[Part, AttentionPart]
    off: list[HeadBody] | None = None
    before: AttentionFound | None = Field(None, description="The translation with all heads.")
    after: AttentionFound | None = Field(None, description="The translation without those.")


class BeamBranch(BaseModel):
    """Holds a hypothesis, which has one piece more than its parent."""

    parent: int = Field(description="Its place among the branches; -1: the root.")
    step: int
    piece: str
    log_prob: float
    total: float
    fate: Literal["kept", "ended", "dropped"]
    score: float | None
    rank: int | None


class BeamAnswer(BaseModel):
    """Holds all hypotheses of the search, parents before children."""

    text: str
    beam: int
    length_penalty: float
    results: list[str]
    branches: list[BeamBranch]


class StepsAnswer(BaseModel):
    """Holds the numbers of one layer, by the names of docs/inspect.md."""

    text: str
    translation: str
    part: Part
    layer: int
    facts: dict[str, Any]
    rows: list[str]
    columns: list[str]
    said: list[str]
    ids: list[int]
    matrices: dict[str, dict[str, Any]]
    squares: dict[str, dict[str, Any]]
    seen: dict[str, Any] | None
    next: list[list[tuple[str, float, float]]]


@router.post("/v1/attention", response_model=AttentionAnswer, response_model_exclude_none=True)
async def attention(request: Request, body: AttentionBody) -> Response:
    """Return the attention of every layer and head, and what changes without some heads."""

    def work(translator: Any) -> Any:
        from dragoman.inspection.attention import Head, compute_attention

        disabled = [Head(one.part, one.layer, one.head) for one in body.off]
        found = compute_attention(translator, body.text, body.translation, disabled=disabled)
        return found.to_dict()

    return await _inspect(request, body, [body.text, body.translation or ""], work)


@router.post("/v1/beam", response_model=BeamAnswer)
async def beam(request: Request, body: BeamBody) -> Response:
    """Return the beam search for a sentence, step by step."""

    def work(translator: Any) -> Any:
        from dragoman.inspection.beam_tree import build_beam_tree

        return build_beam_tree(translator, body.text, beam=body.beam).to_dict()

    return await _inspect(request, body, [body.text], work)


@router.post("/v1/steps", response_model=StepsAnswer)
async def steps(request: Request, body: StepsBody) -> Response:
    """Return the model's own numbers in one layer, from the embedding to the next word."""

    def work(translator: Any) -> Any:
        from dragoman.inspection.layer_activations import compute_activations

        args = body.text, body.translation, body.part, body.layer
        return compute_activations(translator, *args).to_dict()

    return await _inspect(request, body, [body.text, body.translation or ""], work)


async def _inspect(
    request: Request, choice: ModelChoice, texts: list[str], work: Callable[[Any], Any]
) -> Response:
    """Return what `work` finds, as JSON; this is large, so it is written in the worker's thread."""
    authenticate(request)
    check_size(request, texts)
    service, model = get_service(request), find_model(request, choice)
    translator = model.translator

    def work_and_write() -> bytes:
        return json.dumps(work(translator), ensure_ascii=False, allow_nan=False).encode()

    with service.admission.admit(1):
        content = await service.run(model, work_and_write)
    return Response(content, media_type="application/json")
