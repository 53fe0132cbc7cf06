"""Run Hugging Face's transformers in a worker: `generate` on batches of similar length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import transformers


def prepare(threads: int) -> None:
    """Set PyTorch's threads, and switch off progress bars."""
    torch.set_num_threads(threads)
    logging: Any = transformers.utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()


class HuggingFaceSystem:
    """Translate with a Hugging Face model and its own tokeniser."""

    def __init__(self, path: str, search: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path)
        auto: Any = transformers.AutoModelForSeq2SeqLM
        self._model = auto.from_pretrained(path, dtype=torch.float32).eval()
        self._search = search
        self.apply_settings(settings)

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        """Take batches of so many sentences."""
        self._batch: int = settings["batch"]

    @torch.inference_mode()
    def translate(self, texts: Sequence[str], beam: int) -> list[str]:
        """Translate the longest texts first, so that sentences of a batch are padded least."""
        sources = self._tokenizer(list(texts), truncation=True)["input_ids"]
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
        found = [""] * len(sources)
        for begin in range(0, len(order), self._batch):
            rows = order[begin : begin + self._batch]
            batch = self._tokenizer.pad(
                {"input_ids": [sources[i] for i in rows]}, return_tensors="pt"
            )
            out = self._model.generate(
                **batch,
                num_beams=beam,
                do_sample=False,
                length_penalty=self._search["length_penalty"],
                max_new_tokens=len(sources[rows[0]]) + self._search["max_extra"],
            )
            decoded = self._tokenizer.batch_decode(out, skip_special_tokens=True)
            for i, text in zip(rows, decoded, strict=True):
                found[i] = text
        return found


def load(
    *, path: str, search: Mapping[str, Any], settings: Mapping[str, Any], **options: Any
) -> HuggingFaceSystem:
    """Load the exported model at `path`."""
    return HuggingFaceSystem(path, search, settings)
