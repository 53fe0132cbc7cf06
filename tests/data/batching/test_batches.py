from __future__ import annotations

import itertools
import pickle
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.data.batching import batches as chunks_module
from dragoman.data.batching.batches import START, Batch, Batches, Position
from dragoman.data.batching.packing import pack
from dragoman.data.batching.shuffle import derive_seed, shuffle_indices
from dragoman.data.store import Store, StoreWriter
from dragoman.errors import ConfigError, DataError
from dragoman.text.special_tokens import BOS, EOS, PAD
from dragoman.text.subword_sampling import SubwordSampler
from dragoman.text.tokenizer import Tokenizer

# ------------------------------------------------------------------------------------- stores


@dataclass
class Meta:
    source_pieces: int
    target_pieces: int
    longest_source: int
    longest_target: int


class MemoryStore:
    """Pairs in lists."""

    def __init__(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        self.sources = [np.array(source, np.int32) for source, _ in pairs]
        self.targets = [np.array(target, np.int32) for _, target in pairs]
        sources, targets = list(map(len, self.sources)), list(map(len, self.targets))
        self.meta = Meta(
            sum(sources), sum(targets), max(sources, default=0), max(targets, default=0)
        )

    def __len__(self) -> int:
        return len(self.sources)

    def source(self, index: int) -> np.ndarray:
        return self.sources[index]

    def target(self, index: int) -> np.ndarray:
        return self.targets[index]

    def source_lengths(self, indices: np.ndarray) -> np.ndarray:
        return np.array([len(self.sources[i]) for i in indices], int)

    def target_lengths(self, indices: np.ndarray) -> np.ndarray:
        return np.array([len(self.targets[i]) for i in indices], int)


def lengths(
    count: int, mean: float, spread: float = 0.65, ratio: float = 1.1, longest: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """Log-normal source lengths, targets `ratio` times as long, give or take a quarter."""
    random = np.random.default_rng(0)
    source = random.lognormal(np.log(mean) - spread**2 / 2, spread, 2 * count)
    target = source * np.clip(random.normal(ratio, 0.25, 2 * count), 0.3, 3)
    source, target = (np.maximum(1, side.round()).astype(int) for side in (source, target))
    fits = (source <= longest) & (target <= longest)
    return source[fits][:count], target[fits][:count]


def numbered_store(
    count: int, mean: float = 12, longest: int = 60, ratio: float = 1.1
) -> MemoryStore:
    """Pair i: the source is i + 4 again and again, the target i + 5004."""
    sources, targets = lengths(count, mean, longest=longest, ratio=ratio)
    return MemoryStore(
        [
            ([i + 4] * int(s), [i + 5004] * int(t))
            for i, (s, t) in enumerate(zip(sources, targets, strict=True))
        ]
    )


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks_module, "CHUNK_PAIRS", 400)


def make(store: object, **changes: object) -> Batches:
    options = {"batch_tokens": 640, "row_length": 64, "seed": 1} | changes
    return Batches(store, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 30, 399, 400, 1000, 2600])
@pytest.mark.parametrize("batch_tokens", [64, 640, 3000])
def test_the_batches_of_an_epoch_are_known_beforehand(count: int, batch_tokens: int) -> None:
    batches = make(numbered_store(count), batch_tokens=batch_tokens)
    there = sum(1 for _ in batches.epoch())
    assert batches.batches_an_epoch == pytest.approx(there, abs=max(1, 0.08 * there))


def same(one: Batch, other: Batch) -> bool:
    return pickle.dumps(one) == pickle.dumps(other)


def pairs_of(batch: Batch) -> list[tuple[list[int], list[int], list[int]]]:
    """Read a batch back: for each segment, its source, decoder input and output."""
    found = []
    for row in range(len(batch.source_ids)):
        for segment in range(1, batch.target_segments[row].max(initial=0) + 1):
            source = batch.source_ids[row][batch.source_segments[row] == segment]
            there = batch.target_segments[row] == segment
            found.append(
                (
                    source.tolist(),
                    batch.target_input[row][there].tolist(),
                    batch.target_output[row][there].tolist(),
                )
            )
    return found


# ------------------------------------------------------------------------------------- batches


def test_every_pair_comes_exactly_once_an_epoch() -> None:
    store = numbered_store(1500)
    for number in (0, 3):
        seen = Counter(
            (source[0] - 4, output[0] - 5004)
            for batch in make(store).epoch(number)
            for source, _, output in pairs_of(batch)
        )
        assert seen == Counter((i, i) for i in range(1500))


def test_sentences_are_whole_and_marked() -> None:
    store = numbered_store(500)
    for batch in make(store).epoch():
        for source, given_, expected in pairs_of(batch):
            index = source[0] - 4
            assert source == [*store.source(index), EOS]
            assert given_ == [BOS, *store.target(index)]
            assert expected == [*store.target(index), EOS]


def test_every_batch_has_the_one_shape() -> None:
    batches = make(numbered_store(1500))
    R, S, T = batches.shape
    assert (R, T) == (10, 64)
    assert S % 4 == 0
    for batch in batches.epoch():
        for array in (batch.source_ids, batch.source_segments, batch.source_positions):
            assert array.shape == (R, S)
        for array in (batch.target_input, batch.target_output, batch.target_segments):
            assert array.shape == (R, T)
        assert batch.target_positions.shape == (R, T)
        assert batch.source_ids.dtype == batch.target_positions.dtype == np.int32


def test_segments_count_from_one_and_positions_restart() -> None:
    for batch in make(numbered_store(600)).epoch():
        sides = (
            (batch.source_ids, batch.source_segments, batch.source_positions),
            (batch.target_output, batch.target_segments, batch.target_positions),
        )
        for ids, segments, positions in sides:
            for row in range(len(ids)):
                runs = [(k, len(list(g))) for k, g in itertools.groupby(segments[row].tolist())]
                padding = runs.pop()[1] if runs[-1][0] == 0 else 0
                assert [segment for segment, _ in runs] == list(range(1, len(runs) + 1))
                expected = [i for _, length in runs for i in range(length)] + [0] * padding
                assert positions[row].tolist() == expected
                assert set(ids[row][segments[row] == 0].tolist()) <= {PAD}
        assert set(batch.target_input[batch.target_segments == 0].tolist()) <= {PAD}
        assert (batch.source_segments.max(axis=1) == batch.target_segments.max(axis=1)).all()


def test_counts_are_of_what_is_not_padding() -> None:
    store = numbered_store(700)
    batches = list(make(store).epoch())
    assert sum(batch.sentences for batch in batches) == 700
    assert sum(batch.source_tokens for batch in batches) == store.meta.source_pieces + 700
    assert sum(batch.target_tokens for batch in batches) == store.meta.target_pieces + 700


def test_shares_of_a_batch_are_equal_and_complete() -> None:
    batch = next(make(numbered_store(700), multiple_of=4).epoch())
    shares = [batch.rows(part, 4) for part in range(4)]
    assert {share.source_ids.shape for share in shares} == {
        (len(batch.source_ids) // 4, batch.source_ids.shape[1])
    }
    assert sum(share.sentences for share in shares) == batch.sentences
    assert sum(share.target_tokens for share in shares) == batch.target_tokens
    assert sorted(itertools.chain(*map(pairs_of, shares))) == sorted(pairs_of(batch))
    assert all(share.source_ids.flags.c_contiguous for share in shares)


@pytest.mark.parametrize(
    ("tokens", "multiple", "rows"), [(640, 1, 10), (640, 4, 8), (64, 8, 8), (1, 1, 1)]
)
def test_rows_are_a_multiple_and_at_least_it(tokens: int, multiple: int, rows: int) -> None:
    batches = make(numbered_store(100), batch_tokens=tokens, multiple_of=multiple)
    assert batches.shape[0] == rows
    assert next(batches.epoch()).source_ids.shape[0] == rows


@pytest.mark.parametrize("ratio", [0.7, 1.1, 1.25])
def test_the_longer_side_has_the_row_and_the_other_its_share(ratio: float) -> None:
    store = numbered_store(2000, longest=40, ratio=ratio)
    _, S, T = make(store).shape
    assert max(S, T) == 64
    pieces = (store.meta.source_pieces + 2000) / (store.meta.target_pieces + 2000)
    assert abs(S / T - pieces) < 0.08
    assert (S < T) == (ratio > 1)


def test_the_shorter_side_still_holds_its_longest_sentence() -> None:
    pairs = [([5], [6] * 30)] * 50 + [([5] * 50, [6] * 50)]
    batches = make(MemoryStore(pairs))
    assert batches.shape[1:] == (52, 64)
    assert sum(batch.sentences for batch in batches.epoch()) == 51


def test_no_batch_is_nearly_empty() -> None:
    for count in (401, 613, 1201, 1990):
        batches = make(numbered_store(count))
        rows = [int((batch.target_segments[:, 0] > 0).sum()) for batch in batches.epoch()]
        assert min(rows) >= batches.shape[0] // 2


def test_fewer_pairs_than_a_batch_make_one_batch() -> None:
    batches = make(numbered_store(3), batch_tokens=64_000)
    (batch,) = batches.epoch()
    assert batch.sentences == 3
    assert batch.source_ids.shape[0] == 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mean", "spread", "ratio", "row_length"),
    [(27, 0.65, 1.1, 256), (8, 0.45, 1.1, 128), (30, 0.75, 1.15, 256), (27, 0.65, 0.85, 256)],
)
def test_rows_are_full_on_both_sides(
    mean: float, spread: float, ratio: float, row_length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks_module, "CHUNK_PAIRS", 20_000)
    sources, targets = lengths(40_000, mean, spread, ratio, row_length * 3 // 4)
    store = LengthStore(sources, targets)
    batches = Batches(store, batch_tokens=12_800, row_length=row_length, seed=1)
    R, S, T = batches.shape
    places, source, target = 0, 0, 0
    for batch in batches.epoch():
        places += R
        source += batch.source_tokens
        target += batch.target_tokens
    assert source / places / S >= 0.95
    assert target / places / T >= 0.95


class LengthStore(MemoryStore):
    """Sentences of given lengths, all slices of one array."""

    def __init__(self, sources: np.ndarray, targets: np.ndarray) -> None:
        self.s, self.t = sources, targets
        self.meta = Meta(
            int(sources.sum()), int(targets.sum()), int(sources.max()), int(targets.max())
        )
        self.zeros = np.full(1000, 9, np.int32)

    def __len__(self) -> int:
        return len(self.s)

    def source(self, index: int) -> np.ndarray:
        return self.zeros[: self.s[index]]

    def target(self, index: int) -> np.ndarray:
        return self.zeros[: self.t[index]]

    def source_lengths(self, indices: np.ndarray) -> np.ndarray:
        return self.s[indices]

    def target_lengths(self, indices: np.ndarray) -> np.ndarray:
        return self.t[indices]


# --------------------------------------------------------------------------- order and resuming


def take(batches: Batches, count: int, position: Position = START) -> list[tuple[Batch, Position]]:
    return list(itertools.islice(batches.stream(position), count))


def test_the_same_seed_gives_the_same_batches() -> None:
    store = numbered_store(900)
    for (one, _), (other, _) in zip(take(make(store), 60), take(make(store), 60), strict=True):
        assert same(one, other)


def test_another_seed_and_another_epoch_give_other_batches() -> None:
    store = numbered_store(900)
    first = next(make(store).epoch(0))
    assert not same(first, next(make(store).epoch(1)))
    assert not same(first, next(make(store, seed=2).epoch(0)))


def test_another_seed_and_another_epoch_cut_other_chunks() -> None:
    store = numbered_store(900)

    def first_chunk(batches: Batches, epoch: int) -> set[int]:
        found = set()
        for batch, after in batches.stream(Position(epoch)):
            found |= {source[0] for source, *_ in pairs_of(batch)}
            if after.chunk == 1:
                break
        return found

    first = first_chunk(make(store), 0)
    assert 100 < len(first) < 800
    assert first == first_chunk(make(store), 0)
    assert first != first_chunk(make(store), 1)
    assert first != first_chunk(make(store, seed=2), 0)


def test_a_batch_mixes_short_and_long_sentences_of_the_whole_store() -> None:
    store = numbered_store(1500)
    indices = [source[0] - 4 for source, *_ in pairs_of(next(make(store).epoch()))]
    assert min(indices) < 300
    assert max(indices) > 1200
    sizes = [len(store.source(i)) for i in indices]
    assert abs(np.mean(sizes) - 12) < 4


def test_without_shuffling_chunks_come_in_the_store_s_order() -> None:
    seen = [
        [source[0] - 4 for source, *_ in pairs_of(batch)]
        for batch in make(numbered_store(1500), shuffle=False).epoch(5)
    ]
    assert max(seen[0]) < 450
    assert min(seen[-1]) > 1000
    assert sorted(itertools.chain(*seen)) == list(range(1500))


def test_the_stream_is_the_epochs_one_after_another() -> None:
    batches = make(numbered_store(900))
    epochs = [*batches.epoch(0), *batches.epoch(1)]
    streamed = take(batches, len(epochs))
    assert all(same(one, other) for one, (other, _) in zip(epochs, streamed, strict=True))
    assert streamed[-1][1] == Position(epoch=2)


@pytest.mark.slow
def test_resuming_anywhere_gives_the_identical_continuation() -> None:
    batches = make(numbered_store(900))
    whole = take(batches, len(list(batches.epoch())) + 5)
    assert len({position.chunk for _, position in whole}) > 1
    for at in range(len(whole) - 3):
        position = Position.from_dict(whole[at][1].to_dict())
        for (one, after), (other, after_too) in zip(
            whole[at + 1 : at + 4], take(make(numbered_store(900)), 3, position), strict=False
        ):
            assert same(one, other)
            assert after == after_too


def test_resuming_reads_nothing_of_the_past() -> None:
    class Watched(LengthStore):
        read = 0

        def source(self, index: int) -> np.ndarray:
            self.read += 1
            return super().source(index)

    store = Watched(*lengths(20_000, 12, longest=60))
    batches = make(store)
    store.read = 0
    next(batches.stream(Position(epoch=7, chunk=30)))
    assert store.read < 1000


def test_a_store_of_any_size_starts_at_once() -> None:
    class Vast(LengthStore):
        def __init__(self) -> None:
            super().__init__(*lengths(1000, 27))
            self.meta.source_pieces *= 100_000
            self.meta.target_pieces *= 100_000

        def __len__(self) -> int:
            return 100_000_000

        def source(self, index: int) -> np.ndarray:
            return super().source(index % 1000)

        def target(self, index: int) -> np.ndarray:
            return super().target(index % 1000)

        def source_lengths(self, indices: np.ndarray) -> np.ndarray:
            return super().source_lengths(indices % 1000)

        def target_lengths(self, indices: np.ndarray) -> np.ndarray:
            return super().target_lengths(indices % 1000)

    start = time.process_time()
    batches = Batches(Vast(), batch_tokens=25_000, row_length=256, seed=1)
    next(batches.stream(Position(epoch=3, chunk=batches.chunks - 1)))
    assert time.process_time() - start < 2


# ------------------------------------------------------------------------------------- errors


def test_a_position_from_elsewhere_is_refused() -> None:
    batches = make(numbered_store(900))
    for position in (Position(chunk=batches.chunks), Position(batch=10_000)):
        with pytest.raises(DataError, match="not those it was saved with"):
            next(batches.stream(position))
    for wrong in ({"epoch": -1}, {"epoch": "x"}, {"era": 3}, {"epoch": None}):
        with pytest.raises(DataError, match="not a position"):
            Position.from_dict(wrong)


def test_an_empty_store_and_a_short_row_are_refused() -> None:
    with pytest.raises(DataError, match="no sentence pairs"):
        make(MemoryStore([]))
    store = MemoryStore([([5] * 64, [6])])
    with pytest.raises(ConfigError, match=r"row_length = 64 cannot hold .* 64 pieces .* try 65"):
        make(store)
    assert next(make(store, row_length=65).epoch()).source_tokens == 65


# ------------------------------------------------------------------------------------- sampling


def doubled(sentences: Sequence[np.ndarray], seed: int) -> list[list[int]]:
    return [
        [int(ids[0]), *ids.tolist()] if (int(ids[0]) + seed) % 2 else ids.tolist() * 9
        for ids in sentences
    ]


def test_a_sampler_changes_sentences_each_epoch_and_never_the_text() -> None:
    store = numbered_store(300)

    def sizes(number: int) -> dict[int, int]:
        found = {}
        for batch in make(store, sampler=doubled).epoch(number):
            for source, _, _ in pairs_of(batch):
                found[source[0] - 4] = len(source) - 1
        return found

    first, second = sizes(0), sizes(1)
    assert first.keys() == set(range(300))
    assert first != second
    assert first == sizes(0)
    for index, size in first.items():
        # Nine times as long, one longer, or as it was where that would not fit in the row.
        length = len(store.source(index))
        assert size in (9 * length, length + 1, length)
        assert size != length or 9 * length >= make(store).shape[1]


@pytest.mark.slow
def test_subwords_are_sampled_and_spell_the_same() -> None:
    texts = [
        f"the {a} {b} translates the {c}"
        for a in ("old", "kind", "new")
        for b in ("dragoman", "interpreter", "machine")
        for c in ("letter", "book", "sentence")
    ]
    tokenizer = Tokenizer.train(texts * 3, TokenizerConfig(vocabulary=320))
    ids = tokenizer.encode_batch(texts)
    store = MemoryStore(list(zip(ids, ids, strict=True)))
    batches = make(store, row_length=128, sampler=SubwordSampler(tokenizer, 0.3), workers=1)
    sources, targets = [], []
    for batch in batches.epoch():
        for source, _, output in pairs_of(batch):
            sources.append(source[:-1])
            targets.append(output[:-1])
    assert sorted(map(tokenizer.decode, sources)) == sorted(texts)
    assert list(map(tokenizer.decode, sources)) == list(map(tokenizer.decode, targets))
    assert sources != targets
    assert sorted(sources) != sorted(ids)
    alone = make(store, row_length=128, sampler=SubwordSampler(tokenizer, 0.3))
    assert all(same(a, b) for a, b in zip(batches.epoch(3), alone.epoch(3), strict=True))


# ------------------------------------------------------------------------------------- workers


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same_batches(workers: int) -> None:
    store = numbered_store(900)
    alone, helped = take(make(store), 70), take(make(store, workers=workers), 70)
    for (one, after), (other, after_too) in zip(alone, helped, strict=True):
        assert same(one, other)
        assert after == after_too


def test_a_real_store_gives_the_same_in_another_process(tmp_path: Path) -> None:
    pairs = numbered_store(600)
    with StoreWriter(tmp_path, vocabulary=10_000, tokenizer="none") as writer:
        for source, target in zip(pairs.sources, pairs.targets, strict=True):
            writer.append(source.tolist(), target.tolist())
        writer.close()
    store = Store.open(tmp_path)
    expected = list(make(pairs).epoch())
    for batches in (make(store), make(store, workers=2)):
        assert all(same(a, b) for a, b in zip(expected, batches.epoch(), strict=True))


# ------------------------------------------------------------------------- shuffling and packing


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.integers(0, 2**63))
def test_the_shuffle_is_a_bijection(size: int, seed: int) -> None:
    values = shuffle_indices(np.arange(size), size, seed)
    assert sorted(values.tolist()) == list(range(size))


def test_a_part_of_the_shuffle_is_the_shuffle_of_the_part() -> None:
    whole = shuffle_indices(np.arange(10_000), 10_000, 3)
    assert (shuffle_indices(np.arange(4000, 4100), 10_000, 3) == whole[4000:4100]).all()
    vast = shuffle_indices(np.arange(10**11, 10**11 + 1000), 10**12, 3)
    assert len(set(vast.tolist())) == 1000
    assert 0 <= vast.min() < vast.max() < 10**12


@pytest.mark.slow
def test_the_shuffle_looks_like_chance() -> None:
    values = shuffle_indices(np.arange(100_000), 100_000, 5).astype(float)
    assert abs(np.corrcoef(values, np.arange(100_000))[0, 1]) < 0.02
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.02
    firsts = Counter(int(shuffle_indices(np.arange(1), 10, seed)[0]) for seed in range(3000))
    assert min(firsts.values()) > 230
    assert len(firsts) == 10
    orders = Counter(tuple(shuffle_indices(np.arange(4), 4, seed).tolist()) for seed in range(2400))
    assert len(orders) == 24


def test_derived_seeds_differ() -> None:
    seeds = {derive_seed(a, b, c) for a in range(20) for b in range(20) for c in range(20)}
    assert len(seeds) == 8000
    assert derive_seed(1, 2) != derive_seed(2, 1)
    assert derive_seed(-1) >= 0


LENGTHS = st.one_of(st.integers(1, 40), st.integers(1, 6))  # many short ones, some lopsided


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(LENGTHS, LENGTHS), min_size=1, max_size=300))
def test_packing_keeps_every_pair_and_every_limit(pairs: list[tuple[int, int]]) -> None:
    pairs = pairs + [(1, 1)] * 40
    source, target = np.array(pairs).T
    rows = pack(source, target, 40, 64)
    assert sorted(itertools.chain(*rows)) == list(range(len(pairs)))
    for row in rows:
        assert source[row].sum() <= 40
        assert target[row].sum() <= 64
