"""`examine` looks for what is wrong with a corpus before anything is trained on it.

The corpus is read once, and a sample of it is tokenised. Everything that can be found is
reported; an error is raised only for what cannot be opened at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np

from dragoman.config import PRESET_ADVICE, Config, PresetAdvice, advise_preset
from dragoman.data import Progress
from dragoman.data.cleaning import Cleaner
from dragoman.data.doctor.corpus_scan import LONG_TEXT, CorpusScan, OverlapCheck
from dragoman.data.doctor.diagnosis import Diagnosis, describe_percentiles, percentiles
from dragoman.data.prepare import describe_smaller_vocabulary, learn_tokenizer
from dragoman.data.readers.parallel import ConcatenatedCorpus, Corpus, Pair
from dragoman.errors import ConfigError, DataError
from dragoman.messages import counted
from dragoman.text.tokenizer import Tokenizer


def examine(
    corpus: Corpus,
    *,
    config: Config,
    valid: Corpus | None = None,
    test: Corpus | None = None,
    tokenizer: Tokenizer | None = None,
    preset: str | None = None,
    sample: int = 20_000,
    progress: Progress | None = None,
) -> Diagnosis:
    """Look for everything in a corpus that would make training fail or its scores mislead.

    It is judged by `config`, which is that of `preset` where one is named; whether the preset
    suits the corpus is then said too. Pieces are counted on `sample` pairs drawn at random and on
    the longest ones; without a tokeniser, one is learned from the sample.
    """
    diagnosis = Diagnosis()
    report = progress or (lambda stage, done, total: None)
    others = {"test": test, "valid": valid}
    overlaps = [
        OverlapCheck(name, other, config, diagnosis) for name, other in others.items() if other
    ]
    scan = CorpusScan(config, overlaps, sample, corpus, report)
    for part in corpus.parts if isinstance(corpus, ConcatenatedCorpus) else (corpus,):
        scan.scan(part, diagnosis)
    scan.report(diagnosis)
    if preset is not None and scan.pairs:
        _report_preset(preset, scan.pairs, diagnosis)
    for overlap in overlaps:
        overlap.report(diagnosis)
    if scan.pairs:
        _report_pieces(scan, config, tokenizer, diagnosis)
    diagnosis.sort()
    return diagnosis


def choose_preset(corpus: Corpus) -> PresetAdvice:
    """Return the preset to train with on a corpus, whose pairs are counted as far as need be."""
    enough = PRESET_ADVICE[-1].least + 1
    try:
        pairs = sum(1 for _ in islice(corpus.read(lambda error: None), enough))
    except DataError:  # what is wrong with it is found when it is examined
        pairs = 0
    return advise_preset(pairs)


def _report_preset(name: str, pairs: int, diagnosis: Diagnosis) -> None:
    advice = advise_preset(pairs)
    diagnosis.figures["preset"] = {"judged_for": name, "advised": advice.name}
    judged = f"judged for --preset {name}"
    made_for = next((one for one in PRESET_ADVICE if one.name == name), None)
    if pairs < PRESET_ADVICE[0].least:
        few = f"fewer than {PRESET_ADVICE[0].least:,} pairs make a poor translator"
        diagnosis.add("warning", "preset", f"{judged}; {few}: add more text")
    elif made_for is None or made_for == advice:
        reason = f", which is for {advice.pairs}" if made_for else ""
        diagnosis.add("ok", "preset", judged + reason)
    else:
        diagnosis.add(
            "warning",
            "preset",
            f"{judged}, which is for {made_for.pairs}; for {pairs:,} pairs --preset {advice.name} "
            "is better",
        )


def _report_pieces(
    scan: CorpusScan, config: Config, tokenizer: Tokenizer | None, diagnosis: Diagnosis
) -> None:
    if not scan.sample:
        return
    tokenizer = tokenizer or _learn_tokenizer(scan, config, diagnosis)
    if tokenizer is None:
        return
    sides = [[pair.source for pair in scan.sample], [pair.target for pair in scan.sample]]
    encoded = [tokenizer.encode_normalized(texts) for texts in sides]
    for name, texts, ids in zip(("source", "target"), sides, encoded, strict=True):
        _report_fertility(name, texts, ids, tokenizer, diagnosis)
    _report_cleaning(scan, config, encoded, diagnosis)
    _report_longest(scan, config, tokenizer, diagnosis)


def _learn_tokenizer(scan: CorpusScan, config: Config, diagnosis: Diagnosis) -> Tokenizer | None:
    """Learn a tokeniser from the sample, with fewer pieces if it does not allow as many."""
    pairs = [Pair(pair.source, pair.target, number) for number, pair in enumerate(scan.sample, 1)]
    wanted = config.tokenizer.vocabulary
    try:
        tokenizer = learn_tokenizer(pairs, config)
    except (ConfigError, DataError) as error:
        diagnosis.add("error", "tokenizer", str(error))
        return None
    diagnosis.figures["vocabulary"] = {"wanted": wanted, "learned": len(tokenizer)}
    if len(tokenizer) < wanted:
        message = (
            describe_smaller_vocabulary(len(tokenizer), wanted)
            if scan.sampled_all
            else f"vocabulary: {counted(len(pairs), 'pair')} drawn at random allow "
            f"{len(tokenizer):,} pieces and not {wanted:,}; the whole corpus may allow more"
        )
        diagnosis.add("warning", "tokenizer", message)
    return tokenizer


def _report_fertility(
    name: str,
    texts: Sequence[str],
    encoded: Sequence[Sequence[int]],
    tokenizer: Tokenizer,
    diagnosis: Diagnosis,
) -> None:
    words = sum(text.count(" ") + 1 for text in texts)
    pieces = sum(map(len, encoded))
    spelt = sum(1 for ids in encoded for i in ids if i in tokenizer.byte_ids)
    failures = [
        text
        for text, ids in zip(texts, encoded, strict=True)
        if len(text) < LONG_TEXT and tokenizer.decode(ids) != tokenizer.normalize(text)
    ]
    counts = np.bincount([len(ids) for ids in encoded])
    shares = percentiles(counts)
    diagnosis.figures[f"{name}_pieces"] = {
        "a_word": round(pieces / words, 3),
        "bytes": round(spelt / pieces, 5),
        "failures": len(failures),
        "percentiles": [*shares, len(counts) - 1],
    }
    if failures:
        diagnosis.add(
            "error",
            "tokenizer",
            f"{counted(len(failures), f'{name} text')} not the same after encoding and decoding; "
            f"the first: {failures[0][:60]!r}",
        )
    high = pieces > 3 * words
    diagnosis.add(
        "warning" if high or spelt > 0.02 * pieces else "ok",
        "tokenizer",
        f"{name}: {pieces / words:.2f} pieces per word, {100 * spelt / pieces:.2f}% spelt in bytes"
        + (
            "; that is many: is this the right tokeniser, and is its vocabulary large enough?"
            if high
            else ""
        ),
    )
    diagnosis.add("ok", "length", f"{name} pieces: {describe_percentiles(shares, len(counts) - 1)}")


def _report_cleaning(
    scan: CorpusScan,
    config: Config,
    encoded: Sequence[Sequence[Sequence[int]]],
    diagnosis: Diagnosis,
) -> None:
    cleaner = Cleaner(config.data)
    reasons = Counter(
        cleaner.reason_to_drop(pair.source, pair.target, len(source), len(target))
        for pair, source, target in zip(scan.sample, *encoded, strict=True)
    )
    kept = reasons.pop(None, 0)
    dropped = {str(reason): count for reason, count in reasons.items()}
    diagnosis.figures["sample"] = {"pairs": len(scan.sample), "kept": kept, "dropped": dropped}
    share = 1 - kept / len(scan.sample)
    if share > 0:
        listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items()))
        diagnosis.add(
            "warning" if share > 0.05 else "ok",
            "cleaning",
            f"prepare would drop {100 * share:.1f}% of {len(scan.sample):,} pairs drawn at random: "
            f"{listed}",
        )


def _report_longest(
    scan: CorpusScan, config: Config, tokenizer: Tokenizer, diagnosis: Diagnosis
) -> None:
    limit, row = config.data.max_length, config.data.row_length
    pairs = sorted({*scan.longest, *scan.sample}, reverse=True)
    sources = tokenizer.encode_normalized([pair.source for pair in pairs])
    targets = tokenizer.encode_normalized([pair.target for pair in pairs])
    sizes = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    above = sum(size > limit for size in sizes)
    longest = max(range(len(sizes)), key=sizes.__getitem__)
    diagnosis.figures["longest"] = {
        "pieces": sizes[longest],
        "above_max_length": above,
        "kept": max((size for size in sizes if size <= limit), default=0),
    }
    size = f"{'over ' if pairs[longest].size > LONG_TEXT else ''}{sizes[longest]:,} pieces"
    rows = config.training.tokens // config.training.accumulate // row
    batch = f"the largest batch has {counted(rows, 'row')} of {row} positions on each side"
    place = pairs[longest].place
    if above:
        many = "" if above < len(scan.longest) else "at least "
        text = f"{many}{counted(above, 'pair')} above data.max_length = {limit}, to be dropped"
        diagnosis.add("warning", "longest", f"{size}; {text}; {batch}", place)
    else:
        diagnosis.add("ok", "longest", f"{size}, no pair is too long; {batch}", place)
