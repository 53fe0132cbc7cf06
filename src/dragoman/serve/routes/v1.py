"""Dragoman's own API, /v1, offers everything the models can do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from dragoman.inference import Glossary, Translation, Translator
from dragoman.inference.join_translations import Between, join_translations
from dragoman.serve.errors import ERROR_RESPONSES, ServiceError
from dragoman.serve.limits import (
    MAX_ALTERNATIVE_WORDS,
    MAX_BEAM,
    MAX_EXTRA,
    MAX_GLOSSARY,
    MAX_PHRASES,
)
from dragoman.serve.model_registry import ServedModel
from dragoman.serve.requests import (
    Body,
    NativeIssue,
    check_size,
    get_authenticator,
    get_corrections,
    get_service,
    keep_corrections,
    translate,
)
from dragoman.serve.service import TranslationService
from dragoman.text.formality import Wish
from dragoman.text.languages import choose_language, same_language

router = APIRouter(prefix="/v1", tags=["Dragoman"], responses=ERROR_RESPONSES)

Texts = Annotated[str | list[str], Field(description="A text, or several.")]
Phrases = Annotated[list[str], Field(max_length=MAX_PHRASES)]
Beam = Annotated[int | None, Field(ge=1, le=MAX_BEAM, description="Hypotheses kept; 1 is greedy.")]


class StrictBody(Body):
    """Refuses a body with other fields than these."""

    model_config = ConfigDict(extra="forbid")


class ModelChoice(StrictBody):
    """Chooses a model by its name or its languages; not needed if only one is served."""

    model: str | None = Field(None, description="Its name in /v1/models.")
    source: str | None = Field(None, description="A language's code, or auto to detect it.")
    target: str | None = None


class SearchBody(ModelChoice):
    """Says how to search; what is not given is as in the model's config."""

    beam: Beam = None
    length_penalty: float | None = Field(None, ge=0, le=10, description="GNMT's α.")
    max_extra: int | None = Field(
        None, ge=0, le=MAX_EXTRA, description="How many pieces more than the source."
    )

    formality: Wish | None = Field(
        None,
        description="How the reader is addressed; a model that has not learned it refuses more, "
        "less and polite.",
    )
    raw: bool = Field(
        False, description="Each text is one sentence, and what search finds is not checked."
    )

    def options(self) -> dict[str, Any]:
        """Return the options that are given, as `Translator.translate` takes them."""
        found = self.model_dump(include={"beam", "length_penalty", "max_extra", "formality", "raw"})
        return {key: value for key, value in found.items() if value is not None}


class TranslateBody(SearchBody):
    """Gives texts, and says what their translations should be like."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "Good morning!", "source": "en", "target": "de", "n_best": 2},
                {"text": ["The old house."], "glossary": {"house": "Gebäude"}, "align": True},
            ]
        }
    )
    text: Texts
    n_best: int = Field(1, ge=1, le=MAX_BEAM, description="Translations of each text, best first.")
    prefix: str | None = Field(None, description="How every translation must begin.")
    must: Phrases = Field([], description="What every translation must contain.")
    must_not: Phrases = Field([], description="What no translation may contain.")
    glossary: dict[str, str] = Field(
        {}, max_length=MAX_GLOSSARY, description="Terms and their translations."
    )
    mbr: Literal["chrf", "bleu"] | None = Field(
        None, description="Choose what agrees most with the other candidates, by this."
    )
    rerank: bool = Field(
        False,
        description="Choose also by how probable the text is to the model that is served for the "
        "other direction.",
    )
    candidates: int | None = Field(
        None, ge=2, le=MAX_BEAM, description="How many translations mbr and rerank choose from."
    )
    lines: bool = Field(False, description="Each line is one sentence; none is joined or split.")
    protect: bool = Field(
        True, description="Keep numbers, URLs, addresses, tags, placeholders, unknown characters."
    )
    align: bool = Field(False, description="Say which source word each word comes from.")
    pairs: bool = Field(False, description="Give each sentence with its translation, too.")


class NativeTranslation(BaseModel):
    """Holds a translation of a text."""

    text: str
    score: float = Field(description="Log-probability / length penalty.")
    log_prob: float
    tokens: list[str]
    alignment: list[tuple[int, int]] | None = None
    confidence: float | None = Field(
        None, description="How much of it is probably right, where the model is calibrated."
    )
    words: list[tuple[str, float]] | None = Field(
        None, description="Each word with the probability that it is right."
    )
    sentences: list[tuple[str, float | None]] | None = Field(
        None, description="Each sentence with its confidence, where there are several."
    )
    pairs: list[tuple[str, str]] | None = Field(
        None, description="Each sentence of the text and its translation, if asked for."
    )
    issues: list[NativeIssue] | None = Field(None, description="What was found wrong with it.")
    alternatives: list[NativeTranslation] | None = None
    source: str | None = Field(None, description="The language the text is taken to be in.")
    through: str | None = Field(
        None, description="The language in between, where two models translated one after another."
    )


class TranslateAnswer(BaseModel):
    """Holds the translations, in the order of the texts."""

    translations: list[NativeTranslation]


class StreamBody(SearchBody):
    """Gives the text to translate."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning!", "source": "en", "target": "de"}]}
    )
    text: str


class CorrectionsBody(ModelChoice):
    """Gives sentences, and the translation of each that is to be used from now on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": ["Good morning!"], "translation": ["Schönen Morgen!"]}]
        }
    )
    text: list[str]
    translation: list[str]


class CorrectionsAnswer(BaseModel):
    """Says where corrections are kept."""

    file: str | None = Field(description="The name of the file; null if none are taken.")


class ParseBody(StrictBody):
    """Gives sentences, as running text or as words."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "The dog sees the old cat."}]}
    )
    text: Texts = Field([], description="Running text; no sentence goes on in the next line.")
    words: list[list[str]] = Field([], description="Sentences that are split into words.")
    model: str | None = None
    beam: Beam = None
    n_best: int = Field(1, ge=1, le=MAX_BEAM)


class NativeParse(BaseModel):
    """Holds the parse of a sentence, as a tree in brackets."""

    words: list[str]
    tree: str
    score: float
    confidence: float
    alternatives: list[NativeParse] | None = None


class ParseAnswer(BaseModel):
    """Holds the parses, in the order of the sentences; null for one without words."""

    parses: list[NativeParse | None]


class ScoreBody(ModelChoice):
    """Gives texts, and the translation of each that is to be scored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": ["Good morning!"], "translation": ["Guten Morgen!"]}]
        }
    )
    text: list[str]
    translation: list[str]
    tokens: bool = Field(False, description="Give the score of every piece, too.")


class NativeScore(BaseModel):
    """Says how probable a translation is, as log-probabilities."""

    log_prob: float
    score: float
    pieces: int
    tokens: list[str] | None = None
    log_probs: list[float] | None = None


class ScoreAnswer(BaseModel):
    """Holds the scores, in the order of the texts."""

    scores: list[NativeScore]


class AlternativesBody(ModelChoice):
    """Gives a sentence, and says how its translation begins."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning!", "prefix": "Guten", "count": 3}]}
    )
    text: str
    prefix: str = ""
    count: int = Field(5, ge=1, le=MAX_ALTERNATIVE_WORDS)
    beam: Beam = None


class NativeAlternative(BaseModel):
    """Names a word that the translation could go on with."""

    word: str
    probability: float
    translation: str
    score: float


class AlternativesAnswer(BaseModel):
    """Holds the words, likeliest first."""

    alternatives: list[NativeAlternative]


class NativeModel(BaseModel):
    """Describes a model that is served."""

    name: str
    task: Literal["translation", "parsing"]
    source: str | None
    target: str | None
    default: bool = Field(
        description="Whether it does requests that name its languages and no model."
    )
    batched: bool = Field(description="Whether its searches share their steps.")
    through: str | None = Field(
        None, description="The language in between, where two of the others translate for it."
    )


@router.get("/models")
async def models(request: Request) -> list[NativeModel]:
    """List the models that are served, in the order they were given, and the pairs they join."""
    registry = get_service(request).registry
    return [
        NativeModel(
            name=one.name,
            task="parsing" if one.is_parser else "translation",
            source=one.source or None,
            target=one.target or None,
            default=registry.is_default(one),
            batched=one.batched,
            through=one.through or None,
        )
        for one in (*registry.models, *registry.pivots)
    ]


@router.post("/translate", response_model=TranslateAnswer, response_model_exclude_none=True)
async def translate_texts(request: Request, body: TranslateBody) -> dict[str, Any]:
    """Translate, with n-best lists, constraints, a glossary and alignments if asked for."""
    key = authenticate(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    options = body.options() | body.model_dump(
        include={
            "n_best",
            "prefix",
            "must",
            "must_not",
            "mbr",
            "candidates",
            "lines",
            "protect",
            "align",
        }
    )
    if body.glossary:
        pairs = [(term, wanted, n) for n, (term, wanted) in enumerate(body.glossary.items(), 1)]
        options["glossary"] = Glossary(pairs)
    model = _find_model(request, body)
    if body.rerank:
        options["rerank"] = find_reverse(request, body)
    source, target = (model.source, model.target) if model else (None, body.target or "")
    found = await translate(request, texts, source, target, model=model, options=options)
    get_authenticator(request).add_usage(key, sum(map(len, texts)))
    answers = [
        {**one.translation.to_dict(), "source": one.source, "through": one.through or None}
        for one in found
    ]
    if body.pairs:
        for one, answer in zip(found, answers, strict=True):
            sentences = one.translation.sentences or (one.translation,)
            answer["pairs"] = [(each.source, each.text) for each in sentences]
    return {"translations": answers}


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
    key = authenticate(request)
    check_size(request, [body.text])
    service, target = get_service(request), body.target or ""
    model = _find_model(request, body)
    if model is None:
        code, _ = choose_language(body.text, service.registry.find_sources(target))
        model = service.registry.find_pair(code, target)
    # A parser, and what the model has not learned, is refused before the stream begins.
    model.translator.find_tag(body.formality)
    get_authenticator(request).add_usage(key, len(body.text))
    return TokenStream(service, model, body.text, body.options())


@router.get("/corrections")
async def corrections(request: Request) -> CorrectionsAnswer:
    """Say whether corrections are kept, and in which file."""
    kept = get_service(request).corrections
    return CorrectionsAnswer(file=None if kept is None else kept.name)


@router.post("/corrections", dependencies=[Depends(get_corrections)])
async def correct(request: Request, body: CorrectionsBody) -> CorrectionsAnswer:
    """Keep better translations, all of them or none, and use them from the next request on."""
    key = authenticate(request)
    if len(body.text) != len(body.translation):
        raise ServiceError(
            400, f"{len(body.text)} texts and {len(body.translation)} translations; send as many"
        )
    pairs = list(zip(body.text, body.translation, strict=True))
    model = find_model(request, body)
    _ = model.translator  # refuses parsers
    await keep_corrections(request, pairs, model, key)
    return CorrectionsAnswer(file=get_corrections(request).name)


@router.post("/parse", response_model=ParseAnswer, response_model_exclude_none=False)
async def parse(request: Request, body: ParseBody) -> dict[str, Any]:
    """Parse sentences into constituency trees."""
    authenticate(request)
    service = get_service(request)
    parsers = service.registry.parsers
    if body.model is not None:
        parsers = [service.registry.find_name(body.model)]
    if not parsers:
        raise ServiceError(404, "no parser is served")
    parser = parsers[0].parser
    texts = [body.text] if isinstance(body.text, str) else body.text
    check_size(request, [*texts, *map(" ".join, body.words)])
    lines = [line for text in texts for line in text.split("\n")]
    sentences = [sentence for line in lines for sentence in parser.split_sentences(line)]
    words = [*map(parser.split, sentences), *body.words]
    options: dict[str, Any] = {"n_best": body.n_best}
    if body.beam is not None:
        options["beam"] = max(body.beam, body.n_best)
    with service.admission.admit(len(words)):
        found = await service.parse(parsers[0], words, **options)
    return {"parses": [one and one.to_dict() for one in found]}


@router.post("/score", response_model=ScoreAnswer, response_model_exclude_none=True)
async def score(request: Request, body: ScoreBody) -> dict[str, Any]:
    """Say how probable each translation is."""
    authenticate(request)
    if len(body.text) != len(body.translation):
        counts = f"{len(body.text)} texts and {len(body.translation)} translations"
        raise ServiceError(400, f"{counts}; give one translation for each text")
    check_size(request, [*body.text, *body.translation])
    service, model = get_service(request), find_model(request, body)
    translator = model.translator

    def work() -> Any:
        return translator.score(body.text, body.translation)

    with service.admission.admit(len(body.text)):
        found = await service.run(model, work)
    return {"scores": [one.to_dict(tokens=body.tokens) for one in found]}


@router.post("/alternatives")
async def alternatives(request: Request, body: AlternativesBody) -> AlternativesAnswer:
    """List the words that a translation could go on with, and where each leads."""
    authenticate(request)
    check_size(request, [body.text, body.prefix])
    service, model = get_service(request), find_model(request, body)
    translator = model.translator
    if len(translator.tokenizer.encode(body.text)) > model.config.data.max_length:
        raise ServiceError(413, "the text is longer than one sentence; send a single sentence")

    def work() -> Any:
        return translator.alternatives(body.text, body.prefix, body.count, beam=body.beam)

    with service.admission.admit(1):
        found = await service.run(model, work)
    return AlternativesAnswer(alternatives=[NativeAlternative(**one.to_dict()) for one in found])


def authenticate(request: Request) -> str:
    """Return the hash of the key in a request's headers; raise 401 if it is needed and missing."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    given = key.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key")
    return get_authenticator(request).authenticate(request, given, missing=401)


def find_model(request: Request, choice: ModelChoice) -> ServedModel:
    """Return the one model that is chosen, or raise 400 if that depends on the text's language."""
    model = _find_model(request, choice)
    if model is None:
        raise ServiceError(400, "the source is missing; name it, or the model")
    return model


def find_reverse(request: Request, choice: ModelChoice) -> Translator:
    """Return the translator that is served for the other direction, or raise 400."""
    chosen = find_model(request, choice)
    for one in get_service(request).registry.models:
        if (
            not one.is_parser
            and same_language(one.source, chosen.target)
            and same_language(one.target, chosen.source)
        ):
            return one.translator
    raise ServiceError(
        400,
        f"rerank needs a model from {chosen.target} to {chosen.source}, and none is served; "
        "leave it out",
    )


def _find_model(request: Request, choice: ModelChoice) -> ServedModel | None:
    """Return the model that is chosen, or None if it depends on the text's language."""
    registry = get_service(request).registry
    if choice.model is not None:
        return registry.find_name(choice.model)
    if choice.target is None and choice.source in (None, "auto"):
        if len(registry.translators) == 1:
            return registry.translators[0]
        raise ServiceError(400, "several models are served; name the model, or source and target")
    if choice.target is None:
        raise ServiceError(400, "the target is missing; name it, or the model")
    if choice.source in (None, "auto"):
        registry.find_sources(choice.target)
        return None
    return registry.find_pair(choice.source or "", choice.target)


# --- server-sent events ---

Events = asyncio.Queue[tuple[int, list[int]] | None]
"""A segment and its pieces so far; None once the line is done."""
SendEvent = Callable[[str, dict[str, Any]], Awaitable[None]]


class TokenStream(Response):
    """Send the tokens of a text's lines, one line after another, and then the translation.

    A token is sent once every hypothesis has it, and is never taken back. An event is written in
    two lines below, which is why no package for server-sent events is used.
    """

    media_type = "text/event-stream"

    def __init__(
        self, service: TranslationService, model: ServedModel, text: str, options: dict[str, Any]
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._service, self._model, self._text = service, model, text
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as ASGI defines it; errors before the first event are answered as anywhere."""
        loop = asyncio.get_running_loop()
        events: Events = asyncio.Queue()

        def on_tokens(segment: int, ids: list[int]) -> None:
            loop.call_soon_threadsafe(events.put_nowait, (segment, ids))

        async def send_event(event: str, data: dict[str, Any]) -> None:
            text = f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

        lines = self._text.splitlines(keepends=True)
        count = sum(1 for one in lines if one.strip())
        # Of two models the first would send the tokens of another language.
        listener = None if self._model.through else on_tokens
        with self._service.admission.admit(count, listener):
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            found: list[Between | Translation] = []
            number = 0
            try:
                for line in lines:
                    if not line.strip():
                        found.append(Between(line, line))
                        continue
                    words = line.rstrip("\r\n")
                    work = asyncio.ensure_future(
                        self._service.translate(self._model, [words], **self._options)
                    )
                    try:
                        await self._send_tokens(number, work, events, send_event)
                    finally:
                        work.cancel()
                    found += [*work.result(), Between(*[line[len(words) :]] * 2)]
                    number += 1
                await send_event("translation", join_translations(self._text, found).to_dict())
            except ServiceError as error:
                await send_event("error", {"status": error.status_code, "error": error.detail})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_tokens(
        self, line: int, work: asyncio.Future[Any], events: Events, send_event: SendEvent
    ) -> None:
        """Send the tokens of one line until it is done."""
        tokenizer = self._model.translator.tokenizer
        sent: dict[int, list[int]] = {}
        work.add_done_callback(lambda _: events.put_nowait(None))
        while (event := await events.get()) is not None:
            segment, ids = event
            before = sent.setdefault(segment, [])
            if ids[: len(before)] != before:  # another search for the same sentence
                continue
            for end in range(len(before) + 1, len(ids) + 1):
                token = tokenizer.pieces(ids[end - 1 : end])[0]
                text = tokenizer.decode(ids[:end])
                data = {"line": line, "segment": segment, "token": token, "text": text}
                await send_event("token", data)
            sent[segment] = ids
