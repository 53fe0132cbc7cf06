"""A vocabulary shortlist holds the pieces a translation is likely to need, and projects on them.

A model's shortlist is a file beside its weights. Each sentence has its own matrix of the pieces
that only it needs, so that what is found of it depends on nothing else in its batch.
"""

# V pieces, B blocks of N outputs, K groups of four inputs

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from dragoman.errors import ModelError
from dragoman.inference.cpu import kernel_library
from dragoman.model_directory import LoadedModel
from dragoman.models.int8_weights import (
    OUTPUT_BLOCK,
    PADDING_SCORE,
    PackedWeights,
    empty_aligned,
)
from dragoman.models.weight_files import MappedSafetensors
from dragoman.system.atomic_files import atomic_write
from dragoman.text.special_tokens import EOS, FIRST_PIECE, PAD

SHORTLIST_FILE: Final = "shortlist.safetensors"
LAYOUT: Final = "1"
"""This changes with the arrays in the file."""
MIN_CONFIDENCE: Final = 0.3
"""Where the best piece of a list is less probable than this, all pieces are computed."""

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Map source pieces to the target pieces they may need; each list ascends."""

    outputs: int
    """Ids below this can be produced."""
    common: Ints
    """These are always there: the end, and the pieces any translation may need."""
    sample: Ints
    """These are on no list: their probability tells how much all such pieces have."""
    starts: Ints
    """The targets of source piece s are `targets[starts[s] : starts[s + 1]]`."""
    targets: Ints

    @property
    def sample_weight(self) -> float:
        """Return how many pieces each of the sample stands for."""
        return (self.outputs - len(self.common)) / max(1, len(self.sample))

    def pieces_for(self, source: Sequence[int]) -> Ints:
        """Return what a sentence may need beyond the common pieces.

        Its own pieces are among them, for names stay as they are.
        """
        wanted = np.zeros(self.outputs, np.bool_)
        for piece in set(source):
            wanted[self.targets[self.starts[piece] : self.starts[piece + 1]]] = True
            if FIRST_PIECE <= piece < self.outputs:
                wanted[piece] = True
        wanted[self.common] = wanted[self.sample] = False
        return np.flatnonzero(wanted).astype(np.int32)

    def is_valid(self, vocabulary: int, outputs: int) -> bool:
        """Return whether every number in it is within a vocabulary of these sizes."""
        produced = np.concatenate([self.common, self.sample, self.targets])
        return bool(
            self.outputs == outputs
            and len(self.starts) == vocabulary + 1
            and (self.starts[0], self.starts[-1]) == (0, len(self.targets))
            and (np.diff(self.starts) >= 0).all()
            and EOS in self.common
            and (produced[produced != EOS] >= FIRST_PIECE).all()
            and (produced < outputs).all()
            and len(np.unique(np.concatenate([self.common, self.sample])))
            == len(self.common) + len(self.sample)
        )


# --- the file ---


def write_shortlist(loaded: LoadedModel, shortlist: Shortlist, proof: dict[str, Any]) -> Path:
    """Write a shortlist beside a model's weights, with what it was found to change."""
    file = loaded.path / SHORTLIST_FILE
    metadata = {
        "layout": LAYOUT,
        "pieces": loaded.tokenizer.fingerprint,
        "proof": json.dumps(proof),
    }
    names = ("common", "sample", "starts", "targets")
    atomic_write(file, save({name: getattr(shortlist, name) for name in names}, metadata))
    return file


def read_shortlist(loaded: LoadedModel) -> Shortlist:
    """Return a model's shortlist; refuse one that is missing, damaged or of other pieces."""
    file = loaded.path / SHORTLIST_FILE
    advice = f"make one with: dragoman shortlist {loaded.path} CORPUS"
    if not file.exists():
        raise ModelError(f"{loaded.path}: has no shortlist; {advice}")
    try:
        mapped = MappedSafetensors(file)
        found = Shortlist(
            loaded.tokenizer.sizes[1],
            *(mapped[name] for name in ("common", "sample", "starts", "targets")),
        )
    except (ModelError, KeyError) as error:
        reason = error if isinstance(error, ModelError) else f"{file}: has no {error}"
        raise ModelError(f"{reason}; {advice}") from None
    if mapped.metadata.get("layout") != LAYOUT:
        raise ModelError(f"{file}: written by another version of Dragoman; {advice}")
    if mapped.metadata.get("pieces") != loaded.tokenizer.fingerprint or not found.is_valid(
        *loaded.tokenizer.sizes
    ):
        raise ModelError(f"{file}: made for other pieces than the model's; {advice}")
    return found


# --- the projection ---


class ShortlistProjection:
    """Hold a model's projection so that some of its outputs can be taken out for a sentence."""

    def __init__(self, packed: PackedWeights, shortlist: Shortlist) -> None:
        name = "projection" if "projection.scale" in packed else "embedding"
        weight = packed[f"{name}.weight"].view(np.int32)  # four inputs of an output each
        weight_BKN = weight.reshape(len(weight), -1, OUTPUT_BLOCK)
        self._weight_VK = np.ascontiguousarray(weight_BKN.transpose(0, 2, 1)).reshape(
            -1, weight_BKN.shape[1]
        )
        self._vectors = [packed[f"{name}.{part}"] for part in ("scale", "offset", "bias")]
        self._shortlist = shortlist
        self.common = self._take_common()

    def _take_common(self) -> _ProjectionRows:
        """Take the common pieces, then the sample that stands for all others in the softmax's sum.

        The sample is never chosen: where one of it would be, the confidence is too low.
        """
        common, sample = self._shortlist.common, self._shortlist.sample
        rows = self._take(np.concatenate([common, sample]))
        rows.ids[len(common) :] = PAD
        weight = np.log(self._shortlist.sample_weight)
        rows.bias[len(common) : len(common) + len(sample)] += weight
        return rows

    def _take(self, ids: Ints) -> _ProjectionRows:
        return _ProjectionRows(ids, self._weight_VK, self._vectors)

    def rows_for(self, source: Sequence[int]) -> _ProjectionRows:
        """Return the outputs that one sentence needs beyond the common ones."""
        return self._take(self._shortlist.pieces_for(source))


class _ProjectionRows:
    """Hold some outputs of a projection as the kernel reads them; the last block is padded."""

    def __init__(self, ids: Ints, weight_VK: NDArray[Any], vectors: Sequence[NDArray[Any]]) -> None:
        blocks, quads = -(-len(ids) // OUTPUT_BLOCK), weight_VK.shape[1]
        self.ids: Ints = np.full(blocks * OUTPUT_BLOCK, PAD, np.int32)
        self.ids[: len(ids)] = ids
        chosen_BNK = weight_VK.take(self.ids, axis=0).reshape(blocks, OUTPUT_BLOCK, quads)
        weight = empty_aligned(chosen_BNK.nbytes).view(np.int32)
        weight = weight.reshape(blocks, quads, OUTPUT_BLOCK)
        weight[:] = chosen_BNK.transpose(0, 2, 1)
        scale, offset, self.bias = (one[self.ids] for one in vectors)
        self.bias[len(ids) :] = PADDING_SCORE
        self._arrays = weight, scale, offset  # the kernel reads them
        self.linear = kernel_library.Linear(
            blocks * OUTPUT_BLOCK,
            4 * quads,
            weight.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
            scale.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            offset.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            self.bias.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
        )


class SlotProjections:
    """Hold the projections of the sentences that one worker searches, by their slots."""

    def __init__(self, projection: ShortlistProjection, slots: int) -> None:
        self._projection = projection
        self._rows: list[_ProjectionRows | None] = [None] * slots
        self._linears = (kernel_library.Linear * slots)()
        self._ids = (ctypes.c_void_p * slots)()

    def admit(self, slot: int, source: Sequence[int]) -> None:
        """Take out the outputs that a new sentence needs."""
        rows = self._projection.rows_for(source)
        self._rows[slot] = rows
        self._linears[slot], self._ids[slot] = rows.linear, rows.ids.ctypes.data

    def release(self, slot: int) -> None:
        """Forget the outputs of a sentence that is done."""
        self._rows[slot] = None

    def restrict(self, step: kernel_library.StepInput) -> None:
        """Let a step compute only the outputs on the shortlist."""
        common = self._projection.common
        step.projection = ctypes.pointer(common.linear)
        step.projection_ids = common.ids.ctypes.data
        step.sentence_projections, step.sentence_projection_ids = self._linears, self._ids
        step.min_confidence = MIN_CONFIDENCE
