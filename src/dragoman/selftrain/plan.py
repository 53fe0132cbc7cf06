"""What to parse, with what, and what to make of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman.config import Config
from dragoman.data.readers import check_rereadable
from dragoman.errors import ConfigError

__all__ = ["KEEP", "Plan"]

KEEP: Final = 0.5
"""The share of the trees that are kept; docs/selftraining.md has what was measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The options of self-training, checked."""

    models: Sequence[Path]
    """One parser; or several, trained on one prepared treebank: an ensemble."""
    trees: Sequence[Path]
    """Gold ones to train on."""
    text: Sequence[Path]
    """Raw text, a sentence a line."""
    valid: Sequence[Path] = ()
    """Gold trees to validate on; not needed if nothing is trained."""
    test: Sequence[Path] = ()
    """Gold trees that are scored at every validation and never chosen by, each file by itself."""
    tokenized: bool = False
    """Whether the words of the text have spaces between them already."""
    shortest: int = 3
    """Sentences of fewer words are passed over."""
    longest: int = 60
    """And those of more."""
    limit: int | None = None
    """Parse so many sentences at most."""
    beam: int = 1
    """Hypotheses kept while parsing."""
    agree: bool = False
    """Take only trees that every model finds by itself, as tri-training does."""
    window: int = 2000
    """Sentences parsed between two savings."""
    keep: float | None = None
    """Share of the trees to keep, the most confident; see `share`."""
    threshold: float | None = None
    """Keep the trees of at least this confidence instead."""
    gold_weight: int = 1
    """How often a gold tree is seen for each time an automatic one is."""
    new_tokenizer: bool = False
    """Learn pieces and labels from gold and automatic trees; else they are the first model's."""
    config: Config | None = None
    """Of the new parser; without one, the first model's."""
    assignments: Sequence[str] = ()
    """What to change in it, as section.key=value."""

    def __post_init__(self) -> None:
        if not self.models or not self.trees or not self.text:
            raise ConfigError("name a parser, --trees to learn from, and --text to parse")
        if self.agree and len(self.models) < 2:
            raise ConfigError("--agree compares models; name two at least")
        if self.keep is not None and self.threshold is not None:
            raise ConfigError("--keep is a share and --threshold a confidence; choose one")
        for name in ("keep", "threshold"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise ConfigError(f"{_option(name)} {share} must be above 0 and at most 1")
        for name in ("shortest", "limit", "beam", "window", "gold_weight"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ConfigError(f"{_option(name)} {count} must be at least 1")
        if self.shortest > self.longest:
            raise ConfigError(f"--shortest {self.shortest} is above --longest {self.longest}")
        if not self.new_tokenizer:
            for one in self.assignments:
                if one.startswith(("tokenizer.", "trees.")):
                    raise ConfigError(
                        f"--set {one}: pieces and labels are the model's; add --new-tokenizer"
                    )

    @property
    def share(self) -> float:
        """Of the trees, if there is no threshold: half, but all that several models agree on."""
        return self.keep or (1.0 if self.agree else KEEP)

    def settled(self, own: Config) -> Config:
        """The config of the new parser, where the first model's is `own`."""
        config = (self.config or own).overridden(self.assignments)
        if not self.new_tokenizer:
            config = dataclasses.replace(config, tokenizer=own.tokenizer, trees=own.trees)
        # Were duplicates dropped, a gold tree would be seen once, whatever its weight.
        return config.updated({"data": {"task": "parsing", "drop_duplicates": False}})

    def stages(self, config: Config, digests: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What each stage depends on besides those before it, by the names a user knows."""
        files = ("trees", "valid", "test", "text")
        names = {
            "text": ("tokenized", "shortest", "longest", "limit"),
            "parsed": ("beam", "agree", "window"),
            "automatic": ("keep", "threshold"),
            "data": ("gold_weight", "new_tokenizer"),
            "run": (),
        }
        stages = {
            stage: {_option(name): getattr(self, name) for name in options}
            for stage, options in names.items()
        }
        stages["text"] |= {_option(name): list(map(_file, getattr(self, name))) for name in files}
        stages["parsed"]["models"] = list(digests)
        for section, settings in config.to_dict().items():
            stage = "data" if section in ("tokenizer", "trees", "data") else "run"
            stages[stage] |= {f"{section}.{key}": value for key, value in settings.items()}
        return stages


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _file(path: Path) -> list[Any]:
    """A file, or all of a directory, wherever it is moved to."""
    if path.is_dir():
        sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
        return [path.name, len(sizes), sum(sizes)]
    check_rereadable(path)
    return [path.name, path.stat().st_size]
