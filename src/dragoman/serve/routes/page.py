"""The page, and what it asks beyond translations: attention, beam search and the model's numbers.

These need the model itself, which is read when the first of them is asked.
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

from dragoman.serve.errors import Refusal
from dragoman.serve.openapi import REFUSALS
from dragoman.serve.routes import v1
from dragoman.serve.routes.v1 import Beam, Strict, Which
from dragoman.serve.translation_request import check_size, desk_of

__all__ = ["router"]

router = APIRouter(tags=["Dragoman"], responses=REFUSALS)

PAGE: Final = Path(__file__).parents[1] / "page"
KINDS: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own files, and nothing that is written into it."""

Part = Literal["encoder", "decoder", "cross"]
Index = Field(ge=0, le=1000, description="Counted from 0.")


# ---------------------------------------------------------------------------------------- the page


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """The page."""
    headers = {"content-security-policy": POLICY}
    return Response(_files()["index.html"], media_type="text/html", headers=headers)


@router.get("/page/{name}", include_in_schema=False)
async def page_file(name: str) -> Response:
    """A file of the page; nothing else is there under any name."""
    content = _files().get(name)
    if content is None:
        raise Refusal(404, "the page has no such file")
    return Response(content, media_type=KINDS.get(Path(name).suffix, "text/html"))


@cache
def _files() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in PAGE.iterdir() if file.is_file()}


# ------------------------------------------------------------------------------- what is looked at


class HeadBody(Strict):
    """A head."""

    part: Part = Field(description="Self-attention of one side, or attention to the source.")
    layer: int = Index
    head: int = Index


class AttentionBody(Which):
    """A sentence, and the translation to look at: the model's own, if none is given."""

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
        [], max_length=1000, description="Heads switched off; the sentence is translated anew."
    )


class StepsBody(Which):
    """A sentence, its translation, and a layer."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning!", "part": "cross", "layer": 0}]}
    )
    text: str
    translation: str | None = None
    part: Part = "encoder"
    layer: int = Field(0, ge=0, le=1000, description="Counted from 0.")


class BeamBody(Which):
    """A sentence."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning!", "beam": 2}]}
    )
    text: str
    beam: Beam = None


class Weights(BaseModel):
    """Numbers from 0 to 1."""

    shape: list[int] = Field(description="Heads, rows, columns.")
    u16: str = Field(description="Base64 of little-endian 16 bits each: 65535 is 1.")


class AttentionPart(BaseModel):
    """Every layer of one kind of attention."""

    rows: list[str] = Field(description="The pieces that look.")
    columns: list[str] = Field(description="The pieces they look at.")
    layers: list[Weights]


class AttentionFound(BaseModel):
    """A translation that a search found."""

    text: str
    score: float


class AttentionAnswer(BaseModel):
    """Where every piece looks, in every head."""

    text: str
    translation: str
    parts: dict[Part, AttentionPart]
    off: list[HeadBody] | None = None
    before: AttentionFound | None = Field(None, description="With all heads.")
    after: AttentionFound | None = Field(None, description="Without those.")


class BeamBranch(BaseModel):
    """A hypothesis: one piece more than its parent."""

    parent: int = Field(description="Its place among the branches; -1: the root.")
    step: int
    piece: str
    log_prob: float
    total: float
    fate: Literal["kept", "ended", "dropped"]
    score: float | None
    rank: int | None


class BeamAnswer(BaseModel):
    """All hypotheses of the search, parents before children."""

    text: str
    beam: int
    length_penalty: float
    results: list[str]
    branches: list[BeamBranch]


class StepsAnswer(BaseModel):
    """The numbers of one layer, by the names of docs/inspect.md."""

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
    """Where every piece looks, in every layer and head, and what changes without some heads."""

    def work(translator: Any) -> Any:
        from dragoman.inspection.attention import Head, attention

        off = [Head(one.part, one.layer, one.head) for one in body.off]
        return attention(translator, body.text, body.translation, off=off).to_dict()

    return await _looked(request, body, [body.text, body.translation or ""], work)


@router.post("/v1/beam", response_model=BeamAnswer)
async def beam(request: Request, body: BeamBody) -> Response:
    """Beam search, step by step."""

    def work(translator: Any) -> Any:
        from dragoman.inspection.beam_tree import beam_tree

        return beam_tree(translator, body.text, beam=body.beam).to_dict()

    return await _looked(request, body, [body.text], work)


@router.post("/v1/steps", response_model=StepsAnswer)
async def steps(request: Request, body: StepsBody) -> Response:
    """The model's own numbers in one layer, from the embedding to the next word."""

    def work(translator: Any) -> Any:
        from dragoman.inspection.model_numbers import numbers

        args = body.text, body.translation, body.part, body.layer
        return numbers(translator, *args).to_dict()

    return await _looked(request, body, [body.text, body.translation or ""], work)


async def _looked(
    request: Request, which: Which, texts: list[str], work: Callable[[Any], Any]
) -> Response:
    """What one model is asked for, as JSON; big, so that it is written beside the event loop."""
    v1.admit(request)
    check_size(request, texts)
    desk, served = desk_of(request), v1.known(request, which)
    translator = served.translator

    def write() -> bytes:
        return json.dumps(work(translator), ensure_ascii=False, allow_nan=False).encode()

    with desk.accepted(1) as ticket:
        content = await desk.aside(served, ticket, write)
    return Response(content, media_type="application/json")
