"""A trained contender of Table 2 on the test set; what was scored is not scored again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dragoman.config import SearchConfig
from dragoman.data.prepare import Prepared
from dragoman.data.readers.parallel import corpus
from dragoman.evaluation.by_length import Bucket, by_length
from dragoman.evaluation.evaluate import evaluate
from dragoman.inference import load
from dragoman.paper.result_cache import file_fingerprint, fingerprint, kept

__all__ = ["Scores", "Task"]


@dataclass(frozen=True, slots=True)
class Scores:
    """What a model does on a test set."""

    bleu: float
    perplexity: float
    """A piece."""
    by_length: tuple[Bucket, ...]
    signature: str
    """Of BLEU, by sacreBLEU."""

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """What `asdict` and JSON made of it."""
        buckets = tuple(Bucket.from_json(bucket) for bucket in table["by_length"])
        return cls(**{**table, "by_length": buckets})


@dataclass(frozen=True, slots=True)
class Task:
    """What all models translate, and how."""

    sources: Sequence[str]
    references: Sequence[str]
    language: str | None
    """The references'."""
    search: SearchConfig

    @classmethod
    def of(cls, prepared: Prepared, files: tuple[Path, Path] | None) -> Self:
        """A source file and its references, or the corpus's validation set."""
        config = prepared.config
        language = next(iter(config.data.languages[1:]), None)
        if files is None:
            return cls(prepared.valid_source, prepared.valid_target, language, config.search)
        pairs = list(corpus(files))
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        return cls(sources, references, language, config.search)

    def score(self, model: Path, file: Path, begin: Callable[[], None]) -> Scores:
        """Call `begin`, translate and score; unless `file` holds the scores of the same already.

        The same are texts, search and model; the model is known by its card, so that scores may
        stay where weights have gone.
        """

        def find() -> dict[str, Any]:
            begin()
            return self._translated(model)

        of = {
            "model": file_fingerprint(model / "card.json"),
            "test": fingerprint(self.sources, self.references),
            "language": self.language,
            "beam": self.search.beam,
            "length_penalty": self.search.length_penalty,
        }
        return Scores.from_json(kept(file, of, find))

    def _translated(self, model: Path) -> dict[str, Any]:
        found = evaluate(
            load(model),
            self.references,
            self.sources,
            language=self.language,
            metrics=["bleu"],
            beam=self.search.beam,
            length_penalty=self.search.length_penalty,
        )
        assert found.perplexity is not None
        buckets = by_length(self.sources, found.hypotheses, self.references, language=self.language)
        return {
            "bleu": found.scores["bleu"],
            "perplexity": found.perplexity.per_piece,
            "by_length": [bucket.to_json() for bucket in buckets],
            "signature": found.scores.values["bleu"].signature,
        }
