"""Which pieces a translation is likely to need, and the file of a model that says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from dragoman.errors import ModelError
from dragoman.model_directory import LoadedModel
from dragoman.system.atomic_files import atomic_write
from dragoman.system.mapped_safetensors import Mapped
from dragoman.text.special_tokens import EOS, FIRST

__all__ = ["SHORTLIST", "Shortlist", "open_shortlist", "write_shortlist"]

SHORTLIST: Final = "shortlist.safetensors"
LAYOUT: Final = "1"

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Target pieces by source piece, and those that are always there; each list ascends."""

    outputs: int
    """Ids below this can be produced."""
    common: Ints
    """The end, and the pieces any translation may need."""
    sample: Ints
    """Some of the others, on no list: what they have of the probability tells what all have."""
    starts: Ints
    """Of each source piece, where its targets begin; one more at the end."""
    targets: Ints

    @property
    def weight(self) -> float:
        """How many pieces each of the sample stands for."""
        return (self.outputs - len(self.common)) / max(1, len(self.sample))

    def of(self, source: Sequence[int]) -> Ints:
        """What a sentence may need beyond the common ones; its own pieces too, for names stay."""
        wanted = np.zeros(self.outputs, np.bool_)
        for piece in set(source):
            wanted[self.targets[self.starts[piece] : self.starts[piece + 1]]] = True
            if FIRST <= piece < self.outputs:
                wanted[piece] = True
        wanted[self.common] = wanted[self.sample] = False
        return np.flatnonzero(wanted).astype(np.int32)

    def fits(self, vocabulary: int, outputs: int) -> bool:
        """Whether every number in it can be followed, in a vocabulary of these sizes."""
        produced = np.concatenate([self.common, self.sample, self.targets])
        return bool(
            self.outputs == outputs
            and len(self.starts) == vocabulary + 1
            and (self.starts[0], self.starts[-1]) == (0, len(self.targets))
            and (np.diff(self.starts) >= 0).all()
            and EOS in self.common
            and (produced[produced != EOS] >= FIRST).all()
            and (produced < outputs).all()
            and len(np.unique(np.concatenate([self.common, self.sample])))
            == len(self.common) + len(self.sample)
        )


def write_shortlist(loaded: LoadedModel, shortlist: Shortlist, proof: dict[str, Any]) -> Path:
    """Put a shortlist beside a model's weights, with what it was found to change."""
    file = loaded.path / SHORTLIST
    about = {
        "layout": LAYOUT,
        "pieces": loaded.tokenizer.fingerprint,
        "proof": json.dumps(proof),
    }
    names = ("common", "sample", "starts", "targets")
    atomic_write(file, save({name: getattr(shortlist, name) for name in names}, about))
    return file


def open_shortlist(loaded: LoadedModel) -> Shortlist:
    """The shortlist of a model; one that is missing, damaged or of other pieces is refused."""
    file = loaded.path / SHORTLIST
    advice = f"make one with: dragoman shortlist {loaded.path} CORPUS"
    if not file.exists():
        raise ModelError(f"{loaded.path}: has no shortlist; {advice}")
    try:
        mapped = Mapped(file)
        found = Shortlist(
            loaded.tokenizer.sizes[1],
            *(mapped[name] for name in ("common", "sample", "starts", "targets")),
        )
    except (ModelError, KeyError) as error:
        reason = error if isinstance(error, ModelError) else f"{file}: has no {error}"
        raise ModelError(f"{reason}; {advice}") from None
    if mapped.metadata.get("layout") != LAYOUT:
        raise ModelError(f"{file}: of another version; {advice}")
    if mapped.metadata.get("pieces") != loaded.tokenizer.fingerprint or not found.fits(
        *loaded.tokenizer.sizes
    ):
        raise ModelError(f"{file}: made for other pieces than the model's; {advice}")
    return found
