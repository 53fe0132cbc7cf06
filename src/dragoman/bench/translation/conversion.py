"""Sentences that all systems can translate are chosen, and the model is converted for each."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from dragoman import __version__
from dragoman.bench import sample_evenly
from dragoman.bench.translation.benchmark import Measurement
from dragoman.bench.translation.systems import (
    System,
    write_lexical_shortlist,
    write_vocabulary_map,
)
from dragoman.data.readers.parallel import open_text
from dragoman.errors import DataError
from dragoman.inference.cpu import why_no_cpu_engine
from dragoman.inference.cpu.shortlist import SHORTLIST_FILE, read_shortlist
from dragoman.interop.export import PACKAGES, export
from dragoman.interop.sentencepiece_model import all_pieces
from dragoman.messages import counted
from dragoman.model_directory import INT8_FILE, LoadedModel, open_model, write_int8_file
from dragoman.system.atomic_files import atomic_directory, atomic_write
from dragoman.system.packages import has_package


class BenchmarkText:
    """Hold the sentences that every system can translate, and their references."""

    def __init__(
        self, loaded: LoadedModel, source: Path, reference: Path | None, count: int | None
    ) -> None:
        self._tokenizer, self._language = loaded.tokenizer, loaded.config.data.target_language
        lines = list(open_text(source))
        answers = list(open_text(reference)) if reference is not None else None
        if answers is not None and len(answers) != len(lines):
            raise DataError(
                f"{source} has {counted(len(lines), 'line')} and {reference} has {len(answers):,}; "
                "they must correspond line by line"
            )
        limit = loaded.config.data.max_length
        lengths = map(len, self._tokenizer.encode_batch(lines))
        fit = [i for i, length in enumerate(lengths) if 0 < length <= limit]
        if not fit:
            raise DataError(f"{source}: no line has 1 to {limit} pieces; there is nothing to time")
        self.left_out = len(lines) - len(fit)
        taken = sample_evenly(fit, count or len(fit))
        self.sources = [lines[i] for i in taken]
        self._references = [answers[i] for i in taken] if answers is not None else None

    def count_tokens(self, texts: Iterable[str]) -> int:
        """Count the pieces of texts, and an end for each."""
        return sum(len(ids) + 1 for ids in self._tokenizer.encode_batch(list(texts)))

    def score(self, measured: Measurement) -> None:
        """Give every speed the BLEU of its translations, if there are references."""
        if self._references is None:
            return
        from dragoman.evaluation.metrics import bleu

        for result in measured.results:
            for speed in result.speeds:
                texts = measured.translations.get((result.name, speed.beam))
                if texts is not None:
                    speed.bleu = bleu(texts, self._references, language=self._language)


@contextmanager
def conversion_directory(out: Path | None, print_message: Callable[[str], None]) -> Iterator[Path]:
    """Give the directory of converted models, which is removed at the end unless it was named."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as temporary:
        print_message(
            f"converted models are in {temporary} until the end; keep them with --out DIR"
        )
        yield Path(temporary)


def convert_models(
    loaded: LoadedModel,
    systems: Sequence[System],
    place: Path,
    print_message: Callable[[str], None],
) -> Iterator[tuple[System, Path]]:
    """Yield the directory of each system's model; what was converted before is used again."""
    made_of = _fingerprint(loaded)
    for system in systems:
        convert = _converter(loaded, system)
        if convert is None:
            yield system, loaded.path
            continue
        name = f"{system.worker}-{system.precision}"
        if system.export is not None and system.shortlist:
            name += "-shortlist"
        directory, stamp = place / name, place / f"{name}.json"
        if directory.exists() and stamp.exists():
            if json.loads(stamp.read_text(encoding="utf-8")) != made_of:
                raise DataError(f"{directory}: made from another model; choose another --out")
            print_message(f"{system.name}: converted before, in {directory}")
        else:
            print_message(f"{system.name}: converted{convert(directory)}")
            atomic_write(stamp, json.dumps(made_of) + "\n")
        yield system, directory


def _converter(loaded: LoadedModel, system: System) -> Callable[[Path], str] | None:
    """Return a function that converts the model for a system, or None if nothing is to convert."""
    rounds = system.export in ("ctranslate2", "marian")
    options = {"quantization": system.precision} if rounds else {}

    def export_model(directory: Path) -> str:
        assert system.export is not None
        done = export(loaded, directory, system.export, **options)
        if system.shortlist and system.export == "marian":
            pieces = all_pieces(loaded.tokenizer)
            write_lexical_shortlist(directory, read_shortlist(loaded), pieces)
        elif system.shortlist:
            write_vocabulary_map(directory, read_shortlist(loaded))
        return f"; {done}"

    def quantize_copy(directory: Path) -> str:
        """Quantise a copy, since a benchmark leaves nothing in the model it is given."""
        with atomic_directory(directory) as temporary:
            for file in loaded.path.iterdir():
                if file.is_file():
                    shutil.copy(file, temporary)
            write_int8_file(open_model(temporary))
        return ""

    if system.export is not None:
        return export_model
    there = (loaded.path / INT8_FILE).exists() or why_no_cpu_engine(loaded.config.model)
    return quantize_copy if system.precision == "int8" and not there else None


def _fingerprint(loaded: LoadedModel) -> str:
    """Return a hash that is equal for models with the same weights, pieces and shortlist."""
    digest = hashlib.sha256()
    for name in (loaded.weights_file.name, "tokenizer.model", "config.toml", SHORTLIST_FILE):
        if name != SHORTLIST_FILE or (loaded.path / name).exists():
            digest.update((loaded.path / name).read_bytes())
    return digest.hexdigest()


def package_versions(systems: Sequence[System]) -> dict[str, str]:
    """Return the versions of Dragoman, PyTorch if there, and what the systems need, by package."""
    packages = ["torch"] * has_package("torch")
    packages += [name for system in systems if system.export for name in PACKAGES[system.export]]
    return {"dragoman": __version__} | {name: version(name) for name in packages}
