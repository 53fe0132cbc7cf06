"""Models are exported to ONNX as two graphs: the encoder, and one step of the decoder.

The step takes and returns the keys and values of the past. Any Transformer of ours without experts
can be exported, for the graphs are traced from our layers.
"""

# B sentences, S source length, P pieces so far, L decoder layers, H heads, E width of a head,
# M model width, V vocabulary

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.errors import ModelError
from dragoman.interop.parity import Parity, Reference
from dragoman.interop.sentencepiece_model import normalizing_model
from dragoman.model_directory import LoadedModel
from dragoman.models import Rows
from dragoman.models.attention import AttentionMask
from dragoman.models.positions import SinusoidalPositions
from dragoman.models.transformer import DecoderLayer, Embedding, ResidualStream, Transformer
from dragoman.search.batching import source_rows
from dragoman.system.atomic_files import write_synced
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK

OPSET = 18
_MAX_WEIGHT_BYTES = 1_900_000_000  # an ONNX file holds no more; larger weights go beside it


class Encoder(nn.Module):
    """Turn source ids and mask, B S, into what every decoder layer attends to, L B H S E each."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of the source; the mask is 1 where there is a piece."""
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        attended = AttentionMask(Rows(ids, mask, positions), window=self.model.config.window)
        x = ResidualStream.of(_embed(self.model.embedding, ids, positions))
        for layer in self.model.encoder:
            x = layer(x, attended)
        memory = self.model.encoder_norm(x.residual)
        pairs = [layer.project_source(memory) for layer in _layers(self.model)]
        keys, values = zip(*pairs, strict=True)
        return torch.stack(keys), torch.stack(values)


class DecoderStep(nn.Module):
    """Predict one more piece of every sentence."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        source_keys: Tensor,
        source_values: Tensor,
        past_keys: Tensor,
        past_values: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits B V of what follows `ids`, B, and the past with them, L B H (P + 1) E.

        `mask` is the source's, B S. The past is empty at first: P is 0.
        """
        here = torch.full_like(ids, 0)[:, None] + past_keys.shape[3]
        x = _embed(self.model.target_embedding, ids[:, None], here)
        keys, values = [], []
        for i, layer in enumerate(_layers(self.model)):
            x, k, v = _step(
                layer,
                x,
                here,
                (past_keys[i], past_values[i]),
                (source_keys[i], source_values[i], (mask > 0)[:, None, None, :]),
            )
            keys.append(k)
            values.append(v)
        logits = self.model.logits(self.model.decoder_norm(x))[:, 0]
        return logits, torch.stack(keys), torch.stack(values)


def _layers(model: Transformer) -> list[DecoderLayer]:
    return [layer for layer in model.decoder if isinstance(layer, DecoderLayer)]


def _embed(embedding: Embedding, ids: Tensor, positions: Tensor) -> Tensor:
    """Embed as `Embedding` does, with sinusoids computed in the graph, so for any length."""
    x: Tensor = embedding.pieces(ids) * embedding.scale
    added = embedding.positions
    if isinstance(added, SinusoidalPositions):
        return x + added.compute(positions)
    if added is not None:
        x = x + added(positions)
    return x


def _step(
    layer: DecoderLayer,
    x: Tensor,
    here: Tensor,
    past: tuple[Tensor, Tensor],
    source: tuple[Tensor, Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute what `DecoderLayer.step` does, with the past as an argument and a result."""
    extended: list[Tensor] = []

    def attend_to_past(y: Tensor) -> Tensor:
        q, k, v = layer.attention.project(y, here)
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        extended.extend((k, v))
        places = torch.arange(k.shape[2], device=here.device)[None]
        mask = (here - places <= layer.window)[:, None, None] if layer.window else None
        bias = layer.attention.bias(here[:1], places)
        return layer.attention.attention.attend(q, k, v, mask, bias)

    stream = layer.around_attention(ResidualStream.of(x), attend_to_past)
    stream = layer.around_source(stream, lambda y: layer.attend_to_source(y, *source))
    stream = layer.around_feed_forward(stream, layer.feed_forward)
    return stream.residual, extended[0], extended[1]


_README = """\
# For ONNX Runtime

```python
import json, numpy, onnxruntime, sentencepiece

settings = json.load(open("settings.json"))
pieces = sentencepiece.SentencePieceProcessor(model_file="tokenizer.model")
encoder, decoder = (onnxruntime.InferenceSession(f"{name}.onnx") for name in ("encoder", "decoder"))
source = numpy.array([pieces.encode("Some text.") + [settings["eos"]]])
mask = numpy.ones_like(source)
seen = encoder.run(None, {"ids": source, "mask": mask})
past = [numpy.zeros(shape, "float32") for shape in settings["empty_past"]]
last, found = numpy.array([settings["bos"]]), []
while len(found) < source.size - 1 + settings["max_extra"]:
    inputs = (last, mask, *seen, *past)
    logits, *past = decoder.run(None, dict(zip(settings["inputs"], inputs)))
    logits[:, settings["never"]] = -numpy.inf
    last = logits.argmax(-1)
    if last[0] == settings["eos"]:
        break
    found.append(int(last[0]))
print(pieces.decode(found))
```

Run it in this directory. Several sentences go at once if the shorter ones are padded with 0 and
the mask is 0 there; `empty_past` then has their number in its second place.
"""

_INPUTS = ("ids", "mask", "source_keys", "source_values", "past_keys", "past_values")


def write(loaded: LoadedModel, directory: Path) -> None:
    """Write two graphs, the tokeniser, and a page with the loop that calls them."""
    model, m = loaded.model, loaded.config.model
    assert isinstance(model, Transformer)  # see dragoman.models.supported_settings
    batch, source = torch.export.Dim("batch"), torch.export.Dim("source")
    past = torch.export.Dim("past")
    B, S, P = 3, 5, 7  # any, but different from each other, and neither 0 nor 1
    ids, mask, last = (torch.ones(shape, dtype=torch.int64) for shape in ((B, S), (B, S), (B,)))
    seen = [torch.zeros(m.decoder_layers, B, m.heads, S, width) for width in (m.d_k, m.d_v)]
    kept = [torch.zeros(m.decoder_layers, B, m.heads, P, width) for width in (m.d_k, m.d_v)]
    with _silence_exporter():
        _export(
            Encoder(model),
            (ids, mask),
            directory / "encoder.onnx",
            (("ids", "mask"), ("source_keys", "source_values")),
            ({0: batch, 1: source}, {0: batch, 1: source}),
        )
        _export(
            DecoderStep(model),
            (last, mask, *seen, *kept),
            directory / "decoder.onnx",
            (_INPUTS, ("logits", "keys", "values")),
            (
                {0: batch},
                {0: batch, 1: source},
                *[{1: batch, 3: source}] * 2,
                *[{1: batch, 3: past}] * 2,
            ),
        )
    (directory / "tokenizer.model").write_bytes(normalizing_model(loaded.tokenizer))
    settings = {
        "bos": BOS,
        "eos": EOS,
        "never": [PAD, BOS, UNK],
        "max_extra": loaded.config.search.max_extra,
        "inputs": list(_INPUTS),
        "empty_past": [[m.decoder_layers, 1, m.heads, 0, width] for width in (m.d_k, m.d_v)],
    }
    write_synced(directory / "settings.json", json.dumps(settings, indent=2) + "\n")
    write_synced(directory / "README.md", _README)


def _export(
    module: nn.Module,
    example: tuple[Tensor, ...],
    path: Path,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    dynamic: tuple[dict[int, Any], ...],
) -> None:
    size = sum(4 * weight.numel() for weight in module.parameters())
    torch.onnx.export(
        module.eval(),
        example,
        str(path),
        input_names=list(names[0]),
        output_names=list(names[1]),
        dynamic_shapes=dynamic,
        opset_version=OPSET,
        dynamo=True,
        external_data=size > _MAX_WEIGHT_BYTES,
        verbose=False,
    )


@contextmanager
def _silence_exporter() -> Iterator[None]:
    """Hide the messages of the exporter inside the block."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def check(directory: Path, reference: Reference) -> Parity:
    """Run encoder and decoder in ONNX Runtime along our translations and freely, and compare."""
    import numpy as np
    import onnxruntime
    import sentencepiece

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    encoder, decoder = (
        onnxruntime.InferenceSession(
            str(directory / f"{name}.onnx"), options, providers=["CPUExecutionProvider"]
        )
        for name in ("encoder", "decoder")
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(directory / "tokenizer.model"))
    if pieces.encode(reference.texts) != reference.sources:
        raise ModelError(
            f"{directory}: its tokeniser splits the sample differently from ours; nothing was "
            "written"
        )
    rows = source_rows(reference.sources, torch.device("cpu"))
    source, mask = rows.ids_RL.numpy(), rows.segments_RL.long().numpy()
    seen = encoder.run(None, {"ids": source, "mask": mask})
    settings = json.loads((directory / "settings.json").read_text(encoding="utf-8"))
    limits = reference.limits

    def decode(forced: list[list[int]] | None) -> tuple[Tensor, list[list[int]]]:
        """Return all logits and the likeliest pieces, along given pieces or along the likeliest."""
        shapes = [[shape[0], len(source), *shape[2:]] for shape in settings["empty_past"]]
        past = [np.zeros(shape, np.float32) for shape in shapes]
        last = np.full(len(source), BOS)
        found: list[list[int]] = [[] for _ in source]
        scores = []
        steps = max(map(len, forced)) + 1 if forced is not None else max(limits)
        for t in range(steps):
            inputs = dict(zip(_INPUTS, (last, mask, *seen, *past), strict=True))
            logits, *past = decoder.run(None, inputs)
            scores.append(torch.from_numpy(logits.copy()))
            logits[:, settings["never"]] = -np.inf
            best = logits.argmax(-1)
            for b, row in enumerate(found):
                row.append(int(best[b]))
            if forced is None and all(EOS in row for row in found):
                break
            last = (
                best if forced is None else np.array([(ids + [PAD] * steps)[t] for ids in forced])
            )
        return torch.stack(scores, 1), found

    scores_BTV, _ = decode(reference.outputs)
    _, found = decode(None)
    outputs = [
        (row[: row.index(EOS)] if EOS in row else row)[:limit]
        for row, limit in zip(found, limits, strict=True)
    ]
    return reference.compare(scores_BTV, outputs, where=str(directory))
