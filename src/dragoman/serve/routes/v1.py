"""Our own API, /v1: everything the models can do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from dragoman.inference import Glossary, Translation
from dragoman.inference.documents.lines import Lines
from dragoman.serve.errors import Refusal
from dragoman.serve.models import MAX_EXTRA, Served
from dragoman.serve.openapi import REFUSALS
from dragoman.serve.request_bodies import Body
from dragoman.serve.streaming import TokenStream
from dragoman.serve.translation_request import check_size, desk_of, guard_of, translate
from dragoman.text.languages import detect_languages

__all__ = ["admit", "known", "router"]

router = APIRouter(prefix="/v1", tags=["Dragoman"], responses=REFUSALS)

Texts = Annotated[str | list[str], Field(description="A text, or several.")]
Phrases = Annotated[list[str], Field(max_length=32)]
Beam = Annotated[int | None, Field(ge=1, le=32, description="Hypotheses kept; 1 is greedy.")]


class Strict(Body):
    """A body with these fields and no others."""

    model_config = ConfigDict(extra="forbid")


class Which(Strict):
    """Which model, by its name or by its languages; needless where there is but one."""

    model: str | None = None
    source: str | None = Field(None, description="A code, or auto.")
    target: str | None = None


class Search(Which):
    """How to search; what is not given is as the model's config says."""

    beam: Beam = None
    length_penalty: float | None = Field(None, ge=0, le=10, description="GNMT's α.")
    max_extra: int | None = Field(
        None, ge=0, le=MAX_EXTRA, description="Most pieces beyond the source's."
    )

    def options(self) -> dict[str, Any]:
        """As `Translator.translate` takes them."""
        found = self.model_dump(include={"beam", "length_penalty", "max_extra"})
        return {key: value for key, value in found.items() if value is not None}


class TranslateBody(Search):
    """Texts, and what is asked of their translations."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "Good morning!", "source": "en", "target": "de", "n_best": 2},
                {"text": ["The old house."], "glossary": {"house": "Gebäude"}, "align": True},
            ]
        }
    )
    text: Texts
    n_best: int = Field(1, ge=1, le=32, description="Translations of each text, best first.")
    prefix: str | None = Field(None, description="How every translation must begin.")
    must: Phrases = Field([], description="What each must contain.")
    must_not: Phrases = Field([], description="What none may contain.")
    glossary: dict[str, str] = Field({}, max_length=1000, description="Terms and translations.")
    protect: bool = Field(False, description="Keep URLs, addresses, tags and placeholders.")
    align: bool = Field(False, description="Which source word each word comes from.")


class NativeTranslation(BaseModel):
    """A translation."""

    text: str
    score: float = Field(description="Log-probability / length penalty.")
    log_prob: float
    tokens: list[str]
    alignment: list[tuple[int, int]] | None = None
    alternatives: list[NativeTranslation] | None = None
    source: str | None = Field(None, description="The language it was taken to be in.")


class TranslateAnswer(BaseModel):
    """In the order of the texts."""

    translations: list[NativeTranslation]


class StreamBody(Search):
    """One text."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning!", "source": "en", "target": "de"}]}
    )
    text: str


class ParseBody(Strict):
    """Sentences: running text, one a line, or words."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "The dog sees the old cat."}]}
    )
    text: Texts = Field([], description="Running text, a sentence a line.")
    words: list[list[str]] = Field([], description="Or sentences that are split into words.")
    model: str | None = None
    beam: Beam = None
    n_best: int = Field(1, ge=1, le=32)


class NativeParse(BaseModel):
    """A tree in brackets."""

    words: list[str]
    tree: str
    score: float
    confidence: float
    alternatives: list[NativeParse] | None = None


class ParseAnswer(BaseModel):
    """In the order of the sentences; null for one without words."""

    parses: list[NativeParse | None]


class ScoreBody(Which):
    """Sources and translations, line n of each belonging together."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": ["Good morning!"], "translation": ["Guten Morgen!"]}]
        }
    )
    text: list[str]
    translation: list[str]
    tokens: bool = Field(False, description="Every piece, too.")


class NativeScore(BaseModel):
    """How probable a translation is."""

    log_prob: float
    score: float
    pieces: int
    tokens: list[str] | None = None
    log_probs: list[float] | None = None


class ScoreAnswer(BaseModel):
    """In the order of the texts."""

    scores: list[NativeScore]


class AlternativesBody(Which):
    """A sentence, and how its translation begins."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning!", "prefix": "Guten", "count": 3}]}
    )
    text: str
    prefix: str = ""
    count: int = Field(5, ge=1, le=50)
    beam: Beam = None


class NativeAlternative(BaseModel):
    """A word the translation could go on with."""

    word: str
    probability: float
    translation: str
    score: float


class AlternativesAnswer(BaseModel):
    """Likeliest first."""

    alternatives: list[NativeAlternative]


class NativeModel(BaseModel):
    """A model that is served."""

    name: str
    task: Literal["translation", "parsing"]
    source: str | None
    target: str | None
    batched: bool = Field(description="Whether requests share its steps.")


@router.get("/models")
async def models(request: Request) -> list[NativeModel]:
    """The models served."""
    return [
        NativeModel(
            name=one.name,
            task="parsing" if one.parses else "translation",
            source=one.source or None,
            target=one.target or None,
            batched=one.batched,
        )
        for one in desk_of(request).fleet.models
    ]


@router.post("/translate", response_model=TranslateAnswer, response_model_exclude_none=True)
async def translate_texts(request: Request, body: TranslateBody) -> dict[str, Any]:
    """Translate, with n-best lists, constraints, a glossary and alignments if asked for."""
    key = admit(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    options = body.options() | body.model_dump(
        include={"n_best", "prefix", "must", "must_not", "protect", "align"}
    )
    if body.glossary:
        pairs = [(term, wanted, n) for n, (term, wanted) in enumerate(body.glossary.items(), 1)]
        options["glossary"] = Glossary(pairs)
    served = _served(request, body)
    source, target = (served.source, served.target) if served else (None, body.target or "")
    found = await translate(request, texts, source, target, served=served, options=options)
    guard_of(request).bill(key, sum(map(len, texts)))
    return {"translations": [{**_written(one.translation), "source": one.source} for one in found]}


@router.post(
    "/translate/stream",
    response_class=Response,
    responses={
        200: {
            "description": "Server-sent events: token, then translation; or error.",
            "content": {
                "text/event-stream": {
                    "schema": {
                        "type": "object",
                        "properties": {
                            "event": {"enum": ["token", "translation", "error"]},
                            "data": {"type": "string", "description": "JSON."},
                        },
                        "required": ["event", "data"],
                    },
                    "example": 'event: token\ndata: {"line": 0, "segment": 0, "token": "▁Guten", '
                    '"text": "Guten"}\n\n',
                }
            },
        }
    },
)
async def translate_stream(request: Request, body: StreamBody) -> Response:
    """Translate a text, and send each token as soon as it is certain."""
    key = admit(request)
    check_size(request, [body.text])
    desk, lines = desk_of(request), Lines([body.text])
    served = _served(request, body)
    if served is None:
        code, _ = detect_languages(body.text, desk.fleet.sources_of(body.target or ""))[0]
        served = desk.fleet.pair(code, body.target or "")
    served.translator  # noqa: B018  # a parser is refused before the stream begins
    guard_of(request).bill(key, len(body.text))
    return TokenStream(desk, served, lines, body.options(), _written)


@router.post("/parse", response_model=ParseAnswer, response_model_exclude_none=False)
async def parse(request: Request, body: ParseBody) -> dict[str, Any]:
    """The constituency trees of sentences."""
    admit(request)
    desk = desk_of(request)
    parsers = [one for one in desk.fleet.models if one.parses]
    if body.model is not None:
        parsers = [desk.fleet.named(body.model)]
    if not parsers:
        raise Refusal(404, "no parser is served")
    parser = parsers[0].parser
    texts = [body.text] if isinstance(body.text, str) else body.text
    check_size(request, [*texts, *map(" ".join, body.words)])
    sentences = [parser.split(line) for text in texts for line in text.split("\n")] + body.words
    options: dict[str, Any] = {"n_best": body.n_best}
    if body.beam is not None:
        options["beam"] = max(body.beam, body.n_best)
    with desk.accepted(len(sentences)) as ticket:
        found = await desk.parse(parsers[0], sentences, ticket, **options)
    return {"parses": [one and one.to_dict() for one in found]}


@router.post("/score", response_model=ScoreAnswer, response_model_exclude_none=True)
async def score(request: Request, body: ScoreBody) -> dict[str, Any]:
    """How probable each translation is."""
    admit(request)
    if len(body.text) != len(body.translation):
        counts = f"{len(body.text)} texts and {len(body.translation)} translations"
        raise Refusal(400, f"{counts}; give one for each")
    check_size(request, [*body.text, *body.translation])
    desk, served = desk_of(request), known(request, body)
    translator = served.translator

    def work() -> Any:
        return translator.score(body.text, body.translation)

    with desk.accepted(len(body.text)) as ticket:
        found = await desk.aside(served, ticket, work)
    return {"scores": [one.to_dict(tokens=body.tokens) for one in found]}


@router.post("/alternatives")
async def alternatives(request: Request, body: AlternativesBody) -> AlternativesAnswer:
    """The words a translation could go on with, and where each leads."""
    admit(request)
    check_size(request, [body.text, body.prefix])
    desk, served = desk_of(request), known(request, body)
    translator = served.translator
    if len(translator.tokenizer.encode(body.text)) > served.config.data.max_length:
        raise Refusal(413, "the text is more than one sentence; ask for one")

    def work() -> Any:
        return translator.alternatives(body.text, body.prefix, body.count, beam=body.beam)

    with desk.accepted(1) as ticket:
        found = await desk.aside(served, ticket, work)
    return AlternativesAnswer(alternatives=[NativeAlternative(**one.to_dict()) for one in found])


def admit(request: Request) -> str:
    """Whose request this is, by its key or address; refused without a key that is needed."""
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    given = key.strip() if kind.lower() == "bearer" else request.headers.get("x-api-key")
    return guard_of(request).admit(request, given, missing=401)


def _served(request: Request, which: Which) -> Served | None:
    """The model that is meant; None: the one of each text's own language."""
    fleet = desk_of(request).fleet
    if which.model is not None:
        return fleet.named(which.model)
    if which.target is None and which.source in (None, "auto"):
        if len(fleet.translators) == 1:
            return fleet.translators[0]
        raise Refusal(400, "several models are served; name the model, or source and target")
    if which.target is None:
        raise Refusal(400, "the target is missing; name it, or the model")
    if which.source in (None, "auto"):
        fleet.sources_of(which.target)
        return None
    return fleet.pair(which.source or "", which.target)


def known(request: Request, which: Which) -> Served:
    """The one model that is meant."""
    served = _served(request, which)
    if served is None:
        raise Refusal(400, "the source is missing; name it, or the model")
    return served


def _written(one: Translation) -> dict[str, Any]:
    table: dict[str, Any] = {
        "text": one.text,
        "score": _finite(one.score),
        "log_prob": _finite(one.log_prob),
        "tokens": list(one.tokens),
    }
    if one.alignment:
        table["alignment"] = one.alignment
    if one.alternatives:
        table["alternatives"] = [_written(other) for other in one.alternatives]
    return table


def _finite(score: float) -> float:
    """JSON has no infinity."""
    return round(max(score, -1e9), 6)
