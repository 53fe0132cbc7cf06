"""What the dialects share: from texts and languages to translations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fastapi import Request

from dragoman.inference import Translation
from dragoman.inference.documents.html import Page
from dragoman.inference.documents.lines import Lines
from dragoman.serve.authentication import Guard
from dragoman.serve.errors import Refusal
from dragoman.serve.models import Served
from dragoman.serve.request_context import Ticket
from dragoman.serve.service import Desk
from dragoman.text.languages import detect_languages

__all__ = ["Found", "check_size", "desk_of", "guard_of", "translate"]


class Found(NamedTuple):
    """A translation, and the language its text was taken to be in."""

    translation: Translation
    source: str
    confidence: float
    """That it is in this language; 1 if the request says so."""


def desk_of(request: Request) -> Desk:
    """The desk of the service."""
    desk: Desk = request.app.state.desk
    return desk


def guard_of(request: Request) -> Guard:
    """The guard of the service."""
    guard: Guard = request.app.state.guard
    return guard


def check_size(request: Request, texts: Sequence[str]) -> int:
    """The number of characters, if texts are neither too many nor too long."""
    desk = desk_of(request)
    characters, settings = sum(map(len, texts)), desk.settings
    request.state.facts.update(items=len(texts), characters=characters)
    desk.meters.characters.inc(characters)
    if len(texts) > settings.max_items:
        raise Refusal(413, f"{len(texts)} texts in a request; {settings.max_items} is the most")
    if characters > settings.max_characters:
        most = settings.max_characters
        raise Refusal(413, f"Invalid request: request ({characters}) exceeds text limit ({most})")
    return characters


async def translate(
    request: Request,
    texts: Sequence[str],
    source: str | None,
    target: str,
    *,
    html: bool = False,
    served: Served | None = None,
    options: dict[str, Any] | None = None,
) -> list[Found]:
    """Translations of texts, each from its own language where no `source` is given.

    By one model, if it is `served` under a name that was given.
    """
    desk = desk_of(request)
    check_size(request, texts)
    if source is None:
        candidates = desk.fleet.sources_of(target)
        languages = await asyncio.to_thread(
            lambda: [detect_languages(text, candidates)[0] for text in texts]
        )
    else:
        languages = [(source, 1.0)] * len(texts)
    groups: dict[Served, list[int]] = {}
    for i, (code, _) in enumerate(languages):
        groups.setdefault(served or desk.fleet.pair(code, target), []).append(i)
    request.state.facts["models"] = [served.name for served in groups]
    kind = _Pages if html else _Texts
    parts = [kind([texts[i] for i in members]) for members in groups.values()]
    with desk.accepted(sum(part.sentences for part in parts)) as ticket:
        several = await asyncio.gather(
            *(
                part.run(desk, served, ticket, options or {})
                for served, part in zip(groups, parts, strict=True)
            )
        )
    results: dict[int, Found] = {}
    for members, found in zip(groups.values(), several, strict=True):
        for i, one in zip(members, found, strict=True):
            results[i] = Found(one, *languages[i])
    return [results[i] for i in range(len(texts))]


class _Texts:
    """Plain texts, line by line."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lines = Lines(texts)
        self.sentences = len(self._lines)

    async def run(
        self, desk: Desk, served: Served, ticket: Ticket, options: dict[str, Any]
    ) -> list[Translation]:
        """Their translations."""
        found = await desk.translate(served, self._lines.wanted, ticket, **options)
        return self._lines.joined(found)


class _Pages:
    """Texts with tags, run by run."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._pages = [Page(text) for text in texts]
        self._plain = [run for page in self._pages for run in page.plain]
        self._tagged = [run for page in self._pages for run in page.tagged]
        self.sentences = len(self._plain) + len(self._tagged)

    async def run(
        self, desk: Desk, served: Served, ticket: Ticket, options: dict[str, Any]
    ) -> list[Translation]:
        """Their translations."""
        plain, tagged = await asyncio.gather(
            desk.translate(served, self._plain, ticket, **options),
            desk.translate(served, self._tagged, ticket, **(options | {"protect": True})),
        )
        coming, marked = iter(plain), iter(tagged)
        results = []
        for page in self._pages:
            runs = [next(coming) for _ in page.plain], [next(marked) for _ in page.tagged]
            most = max((len(one.alternatives) for side in runs for one in side), default=0)
            ranked = [
                page.filled(*([_ranked(one, n).text for one in side] for side in runs))
                for n in range(most + 1)
            ]
            score = sum(one.score for side in runs for one in side)
            best, *others = (Translation(page.text, text, score, ()) for text in ranked)
            results.append(replace(best, alternatives=tuple(others)))
        return results


def _ranked(best: Translation, rank: int) -> Translation:
    """The alternative of this rank, or the last there is."""
    others = (best, *best.alternatives)
    return others[min(rank, len(others) - 1)]
