"""What to translate, with what, and which student learns from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.stages import facts, option

__all__ = ["Plan"]

STAGES: Final = ("text", "translated", "pairs", "data")
"""What all students of a directory share."""
_PREPARING: Final = ("max_length", "max_ratio", "drop_duplicates", "drop_copies")
_PREPARING_TOO: Final = ("task", "languages", "identify_languages")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The options of distillation, checked."""

    teachers: Sequence[Path]
    """One translator; or several of the same pieces: an ensemble."""
    files: Sequence[Path]
    """The training pairs: two aligned files, or one .tsv, .jsonl or .tmx."""
    text: Sequence[Path] = ()
    """More source text, a sentence a line, that nobody has translated."""
    valid: Sequence[Path] = ()
    """Pairs to validate on, translated by people; not needed if nothing is trained."""
    test: Sequence[Path] = ()
    """More of them, scored at every validation and never chosen by."""
    beam: int = 4
    """Hypotheses the teacher keeps."""
    length_penalty: float | None = None
    """GNMT's α; None: the teacher's."""
    n_best: int = 1
    """Of so many translations the one nearest to the reference is taken, where there is one."""
    window: int = 2000
    """Sentences translated between two savings."""
    shards: int = 1
    """How many processes translate."""
    shard: int = 1
    """Which of them this is, from 1."""
    keep_originals: bool = False
    """Whether the student sees the pairs as people translated them, too."""
    name: str = "run"
    """Of the student: its run's directory."""
    config: Config | None = None
    """Of the student; without one, the first teacher's."""
    assignments: Sequence[str] = ()
    """What to change in it, as section.key=value."""

    def __post_init__(self) -> None:
        if not self.teachers or not self.files:
            raise ConfigError("name a teacher, and the pairs it learned from")
        for name in ("beam", "n_best", "window", "shards"):
            count = getattr(self, name)
            if count < 1:
                raise ConfigError(f"{option(name)} {count} must be at least 1")
        if self.n_best > self.beam:
            raise ConfigError(
                f"--n-best {self.n_best} is above --beam {self.beam}; a beam has no more candidates"
            )
        if not 1 <= self.shard <= self.shards:
            raise ConfigError(
                f"--shard {self.shard} of --shards {self.shards}: they are counted from 1"
            )
        if self.name in STAGES or Path(self.name).name != self.name or self.name.startswith("."):
            raise ConfigError(f"--name {self.name}: cannot be a run's directory here; try 6-2")
        for one in self.assignments:
            if one.startswith("tokenizer."):
                raise ConfigError(f"--set {one}: the pieces are the teacher's; leave it out")

    def settled(self, own: Config) -> Config:
        """The config of the student, where the first teacher's is `own`.

        Pieces, languages and the longest sentence are the teacher's, whatever a preset says.
        """
        config = self.config or own
        longest = own.data.max_length
        same = {
            "task": "translation",
            "languages": own.data.languages,
            "max_length": longest,
            "row_length": max(config.data.row_length, longest + 1),
        }
        config = config.updated({"data": same}).overridden(self.assignments)
        return dataclasses.replace(config, tokenizer=own.tokenizer)

    def stages(
        self, config: Config, longest: int, digests: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        """What each stage depends on besides those before it, by the names a user knows."""
        files = {option(name): list(map(facts, getattr(self, name))) for name in ("text", "valid")}
        stages: dict[str, dict[str, Any]] = {
            "text": {
                "corpus": list(map(facts, self.files)),
                **files,
                "--test": list(map(facts, self.test)),
                "data.max_length of the teacher": longest,
            },
            "translated": {
                "teacher": list(digests),
                **{option(name): getattr(self, name) for name in ("beam", "n_best", "window")},
                "--length-penalty": self.length_penalty,
            },
            "pairs": {},
            "data": {"--keep-originals": self.keep_originals},
            self.name: {},
        }
        sections = config.to_dict()
        del sections["trees"]  # of no meaning to a translator
        for section, settings in sections.items():
            for key, value in settings.items():
                prepares = section == "data" and key in _PREPARING + _PREPARING_TOO
                stage = "data" if prepares or section == "tokenizer" else self.name
                stages[stage][f"{section}.{key}"] = value
        return stages
