"""The speed of translating on a GPU: the engine, today's search, and Hugging Face's generate.

    python benchmarks/gpu_translate.py MODEL test.en --reference test.de --beam 4 --beam 1 \
        --against plain --against huggingface --check 500 --profile

All are given the same ids and give ids back, so that what is timed is the search alone: encoder,
decoder, beams, and what moves between host and device. In each of `--rounds` rounds every system
has its turn. A target token is a piece of the best hypothesis, its end not counted. The others are
slower: of the file they translate `--their-limit` sentences, spread over all its lengths, and
BLEU is of those. Then `--alone` sentences are translated one at a time; with `--variants`, also
without what makes a step of few rows faster.

Lines of JSON go to standard output as they are measured, a table at the end to standard error.
It runs on a CPU too, to see that it runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from dragoman.data.readers.parallel import open_text
from dragoman.errors import DragomanError
from dragoman.evaluation.metrics import score
from dragoman.inference.gpu import GpuEngine, open_gpu_engine
from dragoman.model_directory import LoadedModel, load_model
from dragoman.models import Model
from dragoman.search import SearchOptions, search
from dragoman.search.batching import length_sorted_batches, search_in_batches
from dragoman.text.special_tokens import EOS, FIRST_PIECE, PAD

STEPS = 10
"""That are timed together."""
Ids = list[list[int]]
System = Callable[[Sequence[list[int]], int], Ids]
"""From sources to the best targets, with a beam."""


def say(**facts: Any) -> dict[str, Any]:
    """A line of JSON."""
    print(json.dumps(facts), flush=True)
    return facts


def options_of(loaded: LoadedModel, beam: int) -> SearchOptions:
    """As the model's config has them."""
    return SearchOptions.from_config(loaded.config.search, beam=beam)


def ours(engine: GpuEngine, loaded: LoadedModel) -> System:
    """The engine."""

    def run(sources: Sequence[list[int]], beam: int) -> Ids:
        return [found[0].ids for found in engine.search(sources, options_of(loaded, beam))]

    return run


def plain(model: Model, loaded: LoadedModel, device: torch.device, bf16: bool) -> System:
    """The search that knows no model, in batches of similar length."""

    def run(sources: Sequence[list[int]], beam: int) -> Ids:
        options = options_of(loaded, beam)
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            found = search_in_batches(
                model,
                sources,
                lambda rows, _, __: search(model, rows, options),
                batch_tokens=loaded.config.search.batch_tokens,
            )
        return [one[0].ids for one in found]

    return run


def huggingface(loaded: LoadedModel, device: torch.device, batch_tokens: int) -> System:
    """Their generate on the same model, in bf16 on a GPU, in batches of similar length."""
    import transformers

    from dragoman.interop.export import export

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "theirs"
        export(loaded, place, "huggingface")
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        auto: Any = transformers.AutoModelForSeq2SeqLM
        model = auto.from_pretrained(place, dtype=dtype).eval().to(device)
    settings = loaded.config.search

    @torch.inference_mode()
    def run(sources: Sequence[list[int]], beam: int) -> Ids:
        found: Ids = [[] for _ in sources]
        for rows in length_sorted_batches([len(ids) for ids in sources], batch_tokens):
            ids = [[*sources[i], EOS] for i in rows]
            longest = max(map(len, ids))
            padded = torch.tensor([one + [PAD] * (longest - len(one)) for one in ids])
            out = model.generate(
                input_ids=padded.to(device),
                attention_mask=(padded != PAD).to(device),
                num_beams=beam,
                do_sample=False,
                length_penalty=settings.length_penalty,
                max_new_tokens=longest + settings.max_extra,
            )
            for i, row in zip(rows, out.tolist(), strict=True):
                found[i] = [id_ for id_ in row if id_ >= FIRST_PIECE]
        return found

    return run


class Bench:
    """One file, several systems."""

    def __init__(
        self, loaded: LoadedModel, engine: GpuEngine, device: torch.device, options: Any
    ) -> None:
        self.loaded, self.engine, self.device = loaded, engine, device
        lines = list(islice(open_text(options.source), options.limit))
        start = time.perf_counter()
        ids = loaded.tokenizer.encode_batch(lines)
        say(tokenised=len(lines), seconds=round(time.perf_counter() - start, 3))
        longest = loaded.config.data.max_length
        self.sources = [one[:longest] for one in ids]
        self.references = (
            list(islice(open_text(options.reference), options.limit)) if options.reference else None
        )
        # Every so many of them, ordered by length: the same mixture.
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        self.few = sorted(order[:: max(1, -(-len(ids) // options.their_limit))])
        step = max(1, len(self.few) // max(1, options.alone))
        self.alone = [i for i in self.few if ids[i]][::step][: options.alone]

    def wait(self) -> None:
        """For the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def turn(self, name: str, system: System, beam: int, number: int) -> dict[str, Any]:
        """One round of one system."""
        chosen = range(len(self.sources)) if name == "engine" else self.few
        sources = [self.sources[i] for i in chosen]
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        for runner in self.engine._runners:
            runner.steps_taken.clear()
        self.wait()
        start = time.perf_counter()
        found = system(sources, beam)
        self.wait()
        seconds = time.perf_counter() - start
        tokens = sum(map(len, found))
        facts: dict[str, Any] = {
            "system": name,
            "beam": beam,
            "round": number,
            "sentences": len(sources),
            "tokens": tokens,
            "seconds": round(seconds, 4),
            "tokens_per_second": round(tokens / seconds),
            "sentences_per_second": round(len(sources) / seconds, 1),
        }
        if self.device.type == "cuda":
            facts["peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        if name == "engine" and number == 1:
            taken = sum((runner.steps_taken for runner in self.engine._runners), Counter())
            facts["steps"] = dict(sorted(taken.items()))
            facts["tokens_per_slot_step"] = round(tokens / sum(a * b for a, b in taken.items()), 3)
        if number == 1 and self.references is not None:
            by_place = dict(zip(chosen, found, strict=True))
            texts = [self.loaded.tokenizer.decode(by_place[i]) for i in self.few]
            wanted = [self.references[i] for i in self.few]
            language = next(iter(self.loaded.config.data.languages[1:]), None)
            facts["bleu"] = round(
                score(texts, wanted, language=language, metrics=["bleu"])["bleu"], 2
            )
        return say(**facts)

    def one_at_a_time(self, name: str, system: System, beam: int) -> dict[str, Any]:
        """What somebody who types would see; slow systems have fewer sentences."""
        chosen = self.alone if name == "engine" else self.alone[::5]
        sources = [self.sources[i] for i in chosen]
        for source in sources:  # every length is seen once before
            if name == "engine":
                system([source], beam)
        system(sources[:1], beam)
        times, tokens = [], 0
        for source in sources:
            self.wait()
            start = time.perf_counter()
            tokens += len(system([source], beam)[0])
            times.append(time.perf_counter() - start)
        return say(
            alone=name,
            beam=beam,
            sentences=len(sources),
            tokens_per_second=round(tokens / sum(times)),
            median_milliseconds=round(1000 * statistics.median(times), 2),
            milliseconds_per_token=round(1000 * sum(times) / max(1, tokens), 3),
        )

    def check(self, engine: GpuEngine, model: Model, beam: int, count: int) -> None:
        """How many results are those of today's search."""
        sources = self.sources[:count]
        options = options_of(self.loaded, beam)
        theirs = search_in_batches(
            model,
            sources,
            lambda rows, _, __: search(model, rows, options),
            batch_tokens=self.loaded.config.search.batch_tokens,
        )
        found = engine.search(sources, options)
        same = sum(a[0].ids == b[0].ids for a, b in zip(found, theirs, strict=True))
        gaps = [a[0].score - b[0].score for a, b in zip(found, theirs, strict=True)]
        say(
            check=len(sources),
            beam=beam,
            identical=same,
            mean_score_difference=round(statistics.fmean(gaps), 5),
            worst_score_difference=round(min(gaps), 4),
            tokens=[sum(len(x[0].ids) for x in y) for y in (found, theirs)],
        )

    def steps(
        self, engine: GpuEngine, beam: int, *, profile: bool, most: int | None = None
    ) -> None:
        """How long a step takes with all slots in use, and with one; what it is made of."""
        from dragoman.inference.gpu.scheduler import Scheduler, SourceQueue

        options = options_of(self.loaded, beam)
        most = most or max(1, min(engine.max_rows // beam, len(self.sources)))
        batch_size = 1 << (most.bit_length() - 1)
        ids = sorted(self.sources, key=len)[len(self.sources) // 4 :][:batch_size]
        ids = (ids * batch_size)[:batch_size]
        max_lengths = [len(one) + options.max_extra for one in ids]
        longest = max(len(one) for one in ids) + 1
        runner, batch_size = engine._get_runner(batch_size, options, max(max_lengths), longest)
        sizes = sorted(
            {1, min(8, batch_size), min(64, batch_size), batch_size // 2 or 1, batch_size}
        )
        for size in sizes:
            scheduler = Scheduler(runner, options, batch_size)
            runner.set_active(list(range(size)))
            scheduler._admit(SourceQueue(ids[:size], max_lengths[:size]), 0, list(range(size)))
            for _ in range(6):
                runner.step(size, stop_early=False)
            self.wait()
            start = time.perf_counter()
            for _ in range(STEPS):
                runner.step(size, stop_early=False)
            self.wait()
            each = (time.perf_counter() - start) / STEPS
            say(step=size, beam=beam, microseconds=round(1e6 * each, 1))
            if profile and size in (1, batch_size):
                print(_profile(runner, size), file=sys.stderr, flush=True)

    def variants(self, beam: int) -> None:
        """A step of one sentence, and sentences one at a time: by which kernels, and launched how.

        Products of few rows are summed up, or left to the units for large ones; kernels overlap, or
        each waits for the one before.
        """
        from dragoman.inference.gpu import small_gemm

        usual = small_gemm.MAX_SUMMED_ROWS
        for summed, overlap in ((0, False), (usual, False), (usual, True)):
            if overlap and not small_gemm.can_overlap(self.device):
                continue
            small_gemm.MAX_SUMMED_ROWS = summed
            engine = open_gpu_engine(self.loaded, self.device, overlap=overlap)
            say(variant={"summed": summed, "overlap": overlap}, beam=beam)
            self.steps(engine, beam, profile=False, most=1)
            self.one_at_a_time("engine", ours(engine, self.loaded), beam)
        small_gemm.MAX_SUMMED_ROWS = usual


def _profile(runner: Any, batch_size: int) -> str:
    """The kernels that take most of a step, in microseconds."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    cuda, steps = torch.cuda.is_available(), 20
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profiler(activities=kinds) as seen:
        for _ in range(steps):
            runner.step(batch_size, stop_early=False)
        if cuda:
            torch.cuda.synchronize()
    name = "self_device_time_total" if cuda else "self_cpu_time_total"
    events = sorted(seen.key_averages(), key=lambda one: -getattr(one, name))
    total = sum(getattr(one, name) for one in events) / steps
    lines = [
        f"{getattr(one, name) / steps:9.1f} {one.count / steps:6.1f} x {one.key[:72]}"
        for one in events[:18]
        if getattr(one, name)
    ]
    return "\n".join(
        [f"a step of {batch_size} sentences, {total:.1f} microseconds in kernels", *lines]
    )


def table(turns: Sequence[dict[str, Any]], alone: Sequence[dict[str, Any]]) -> str:
    """The medians in Markdown."""
    rows = [
        "| system | beam | tokens/s | sentences/s | BLEU | alone, tokens/s | alone, ms | GiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, beam in dict.fromkeys((one["system"], one["beam"]) for one in turns):
        own = [one for one in turns if (one["system"], one["beam"]) == (name, beam)]
        speed = statistics.median(one["tokens_per_second"] for one in own)
        lines = statistics.median(one["sentences_per_second"] for one in own)
        single: dict[str, Any] = next(
            (one for one in alone if (one["alone"], one["beam"]) == (name, beam)), {}
        )
        rows.append(
            f"| {name} | {beam} | {speed:,.0f} | {lines:,.0f} | {own[0].get('bleu', '')} | "
            f"{single.get('tokens_per_second', '')} | {single.get('median_milliseconds', '')} | "
            f"{max(one.get('peak_gib', 0.0) for one in own)} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Load, warm up, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--beam", type=int, action="append", help="again for more than one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, help="sentences of the file")
    parser.add_argument("--against", action="append", default=[], help="plain, bf16, huggingface")
    parser.add_argument("--their-limit", type=int, default=2000, help="sentences of the others")
    parser.add_argument("--their-batch", type=int, default=16384, help="source tokens of a batch")
    parser.add_argument("--alone", type=int, default=50, help="sentences one at a time")
    parser.add_argument("--check", type=int, default=0, help="sentences compared with the search")
    parser.add_argument("--rows", type=int, help="hypotheses of a step")
    parser.add_argument("--steps", type=int, help="between checks of the host")
    parser.add_argument("--profile", action="store_true", help="the kernels of 20 steps")
    parser.add_argument("--variants", action="store_true", help="of the kernels of few rows")
    parser.add_argument("--summed", type=int, help="rows whose products are summed up")
    parser.add_argument("--no-overlap", action="store_true", help="each kernel waits for the last")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    beams = options.beam or [4, 1]
    loaded = load_model(options.model)
    say(
        device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        torch=torch.__version__,
        model=str(options.model),
        d_model=loaded.config.model.d_model,
        layers=[loaded.config.model.encoder_layers, loaded.config.model.decoder_layers],
        vocabulary=loaded.tokenizer.sizes[1],
    )
    if options.summed is not None:
        from dragoman.inference.gpu import small_gemm

        small_gemm.MAX_SUMMED_ROWS = options.summed
    engine = open_gpu_engine(loaded, device, overlap=False if options.no_overlap else None)
    bench = Bench(loaded, engine, device, options)
    if options.rows:
        engine.max_rows = options.rows
    if options.steps:
        engine.steps_between_checks = options.steps
    systems = {"engine": ours(engine, loaded)}
    if "huggingface" in options.against:
        try:
            systems["huggingface"] = huggingface(loaded, device, options.their_batch)
        except (ImportError, DragomanError) as error:
            say(left_out="huggingface", why=str(error))
    model = load_model(options.model, device).model
    for name in ("plain", "bf16"):
        if name in options.against:
            systems[name] = plain(model, loaded, device, name == "bf16")

    for beam in beams:
        start = time.perf_counter()
        systems["engine"](bench.sources, beam)
        say(first=beam, seconds=round(time.perf_counter() - start, 2))
        if options.check:
            bench.check(engine, model, beam, options.check)
        if options.profile:
            bench.steps(engine, beam, profile=True)
    for name, system in systems.items():
        if name != "engine":
            system([bench.sources[i] for i in bench.alone[:16]], beams[0])
    turns = [
        bench.turn(name, system, beam, number)
        for number in range(1, options.rounds + 1)
        for beam in beams
        for name, system in systems.items()
    ]
    alone = [
        bench.one_at_a_time(name, system, beam)
        for beam in beams
        for name, system in systems.items()
    ]
    print(table(turns, alone), file=sys.stderr)
    for beam in beams if options.variants else ():
        bench.variants(beam)


if __name__ == "__main__":
    main()
