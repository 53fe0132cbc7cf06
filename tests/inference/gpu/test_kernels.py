"""Every kernel of the GPU engine does what the plain PyTorch does.

On the GPU where there is one, else in Triton's interpreter, where a step takes about a second.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton")

from dragoman.inference.gpu import GpuEngine
from dragoman.inference.gpu.batch_state import (
    DONE,
    FINISHED,
    INFO_FIELDS,
    LENGTH,
    MAX_LENGTH,
    MIN_LENGTH,
    SOURCE_LENGTH,
    WORDS,
    BatchState,
)
from dragoman.inference.gpu.cuda_graphs import decode_step, encode_into_slots
from dragoman.inference.gpu.kernel_operations import KernelOperations
from dragoman.inference.gpu.plain_operations import PlainOperations
from dragoman.inference.gpu.small_gemm import small_gemm
from dragoman.inference.gpu.tree_grammar import TreeGrammar
from dragoman.inference.gpu.weights import GpuWeights, Matrix, Norm, Stage
from dragoman.models import Model
from dragoman.models.weights import get_weights
from dragoman.search import SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.text.special_tokens import EOS, FIRST_PIECE
from dragoman.trees.grammar import SentencesToParse
from dragoman.trees.linearization import Actions, get_linearisation

Make = Callable[..., Model]

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
THOROUGH = pytest.mark.thorough
LENGTHS = [5, 1, 20, 9]
"""Of the sources; the third is fresh when the others have gone some steps."""


def weights_of(model: Model) -> GpuWeights:
    config: Any = model.config
    return GpuWeights(get_weights(model), config, model.targets, DEVICE, torch.float32)


def admit(
    operations: PlainOperations, state: BatchState, chosen: list[int], extra: int, least: int = 0
) -> None:
    torch.manual_seed(3)
    lengths = [LENGTHS[i] + 1 for i in chosen]
    ids = torch.randint(FIRST_PIECE, 140, (len(chosen), 24), dtype=torch.int32, device=DEVICE)
    for row, length in enumerate(lengths):
        ids[row, length - 1] = EOS
    info = torch.zeros(len(state.info_FS), len(chosen), dtype=torch.int32)
    info[SOURCE_LENGTH] = torch.tensor(lengths)
    info[MAX_LENGTH] = info[SOURCE_LENGTH] - 1 + extra
    info[MIN_LENGTH] = least
    encode_into_slots(operations, state, ids, info.to(DEVICE), torch.tensor(chosen, device=DEVICE))


def begun(
    weights: GpuWeights, beams: int, best: int, steps: int, extra: int, least: int = 0
) -> BatchState:
    """Four sentences in five slots, active in no order; one of them is fresh."""
    operations = PlainOperations(weights)
    state = BatchState(weights, 5, beams, best, 40, 24)
    state.set_length_penalty(0.6)
    state.active_slots.copy_(torch.tensor([3, 0, 1, 5, 2]))
    admit(operations, state, [0, 1, 3], extra, least)
    for _ in range(steps):
        decode_step(operations, state, 5, stop_early=True)
    admit(operations, state, [2], extra, least)
    return state


def assert_same_state(ours: BatchState, plain: BatchState) -> None:
    """Wherever something is going to be read."""
    assert torch.equal(ours.info_FS, plain.info_FS)
    for slot in range(plain.count):
        done, length, ended = (int(plain.info_FS[m, slot]) for m in (DONE, LENGTH, FINISHED))
        if ended:
            found, wanted = finished(ours, slot), finished(plain, slot)
            assert [ids for ids, *_ in found] == [ids for ids, *_ in wanted]
            for one, other in zip(found, wanted, strict=True):
                assert one[1:] == pytest.approx(other[1:], rel=1e-5)
        if done or not length:
            continue
        torch.testing.assert_close(ours.sums_SK[slot], plain.sums_SK[slot], atol=1e-4, rtol=1e-4)
        alive = plain.sums_SK[slot] > -torch.inf
        sums = [s.running_STK[slot, length][alive] for s in (ours, plain)]
        torch.testing.assert_close(*sums, atol=1e-4, rtol=1e-4)
        assert torch.equal(
            ours.pieces_STK[slot, length][alive], plain.pieces_STK[slot, length][alive]
        )
        if plain.beams > 1:
            tables = [s.tables_2SKT[length % 2, slot, alive, :length] for s in (ours, plain)]
            assert torch.equal(*tables)


def finished(state: BatchState, slot: int) -> list[tuple[Any, ...]]:
    """The ids, the score, the sum, and the sum after each piece, of each that is kept."""
    rows = zip(
        state.finished_SN4[slot].tolist(),
        state.finished_ids_SNT[slot].tolist(),
        state.finished_running_SNT[slot].tolist(),
        strict=True,
    )
    ranked = sorted(rows, key=lambda row: (-row[0][0], row[0][3]))
    return [
        (ids[: int(length)], score, total, *sums[: int(length)])
        for (score, total, length, _), ids, sums in ranked
        if score > -torch.inf
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beams", "best", "steps", "extra"),
    [
        (1, 1, 4, 8),
        (3, 2, 3, 3),
        *(
            pytest.param(*one, marks=THOROUGH)
            for one in [(3, 1, 0, 8), (4, 4, 5, 9), (5, 1, 34, 15)]
        ),
    ],
)
def test_a_step_by_kernels_is_the_plain_step(
    beams: int, best: int, steps: int, extra: int, make: Make
) -> None:
    norm = "pre" if beams % 2 else "post"
    model = make(
        *(3.0,), norm=norm, d_k=12, d_v=12, attention_bias=True, encoder_layers=1, decoder_layers=1
    )
    weights = weights_of(model)
    plain = begun(weights, beams, best, steps, extra)
    ours = copy.deepcopy(plain)
    for early in (True, False):
        decode_step(PlainOperations(weights), plain, 5, stop_early=early)
        decode_step(KernelOperations(weights), ours, 5, stop_early=early)
        assert_same_state(ours, plain)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beams", "steps"),
    [(1, 0), (3, 1), *(pytest.param(*one, marks=THOROUGH) for one in [(1, 1), (3, 0), (3, 2)])],
)
def test_kernels_do_not_end_before_the_least_length(beams: int, steps: int, make: Make) -> None:
    weights = weights_of(make(9.0, encoder_layers=1, decoder_layers=1))
    plain = begun(weights, beams, beams, steps, 9, least=2)
    ours = copy.deepcopy(plain)
    for _ in range(2):
        decode_step(PlainOperations(weights), plain, 5, stop_early=True)
        decode_step(KernelOperations(weights), ours, 5, stop_early=True)
        assert_same_state(ours, plain)
    ended = [slot for slot in range(4) if int(ours.info_FS[FINISHED, slot])]
    assert ended == ([0, 1, 3] if steps else [])
    assert all(len(ids) >= 2 for slot in ended for ids, *_ in finished(ours, slot))


@pytest.mark.slow
def test_of_equal_candidates_the_first_is_chosen(make: Make) -> None:
    weights = weights_of(make(output_bias=False))
    plain = begun(weights, 3, 3, 2, 9)
    ours = copy.deepcopy(plain)
    torch.manual_seed(5)
    scores = torch.randint(0, 3, (15, 192), device=DEVICE).float()
    for _ in range(2):
        PlainOperations(weights).select_next(scores, plain, 5, stop_early=True)
        KernelOperations(weights).select_next(scores, ours, 5, stop_early=True)
        assert_same_state(ours, plain)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PlainOperations, KernelOperations])
def test_of_equal_finished_hypotheses_the_older_stays(
    kind: type[PlainOperations], make: Make
) -> None:
    weights = weights_of(make())
    state = begun(weights, 2, 1, 2, 9)
    before = copy.deepcopy(state)
    scores = torch.zeros(10, 192, device=DEVICE)
    scores[:, EOS] = 20.0
    kind(weights).select_next(scores, state, 5, stop_early=False)
    assert int(state.info_FS[FINISHED, 3]) > 0
    for name in ("info_FS", "sums_SK"):  # the same again, but for its pieces
        getattr(state, name).copy_(getattr(before, name))
    older = finished(state, 3)
    state.info_FS[FINISHED] = 1
    state.pieces_STK += 1
    kind(weights).select_next(scores, state, 5, stop_early=False)
    assert int(state.info_FS[FINISHED, 3]) > 1
    assert finished(state, 3) == older


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "done"), [(0.0, True), (2.0, False)])
@pytest.mark.parametrize("kind", [PlainOperations, KernelOperations])
def test_what_could_still_be_the_best_goes_on(
    kind: type[PlainOperations], alpha: float, done: bool, make: Make
) -> None:
    """With 3 pieces a sum of about -7 is worth -7 / 2.2, with the 20 there may be -7 / 19."""
    weights = weights_of(make(output_bias=False))
    state = begun(weights, 2, 1, 2, 9)
    state.set_length_penalty(alpha)
    state.info_FS[:, 0] = torch.tensor([0, 3, 1, 20, 6, 0, 0], dtype=torch.int32)
    state.finished_SN4[0, 0] = torch.tensor([-1.0, -3.0, 2.0, 0.0])
    state.sums_SK[0] = torch.tensor([-7.0, -7.5])
    scores = torch.zeros(10, 192, device=DEVICE)
    scores[:, 50] = 20.0
    kind(weights).select_next(scores, state, 5, stop_early=True)
    assert bool(state.info_FS[DONE, 0]) is done


@pytest.mark.slow
def test_a_search_by_kernels_is_the_search(make: Make, sources: Any) -> None:
    model = make(*(4.0, 30), encoder_layers=1, decoder_layers=1, d_ff=32, shared_embeddings=False)
    sentences, options = sources(2, longest=2), SearchOptions(beam=3, n_best=3, max_extra=1)
    config: Any = model.config
    ours = GpuEngine(
        get_weights(model), config, model.targets, DEVICE, dtype=torch.float32, use_kernels=True
    )
    found = ours.search(sentences, options)
    wanted = search(model, source_rows(sentences, torch.device("cpu")), options)
    for one, other in zip(found, wanted, strict=True):
        assert [h.ids for h in one] == [h.ids for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of the interpreter
@pytest.mark.parametrize("kind", ["ends", "never", "not a number"])
def test_scores_of_all_kinds_are_understood(kind: str, make: Make) -> None:
    weights = weights_of(make())
    plain = begun(weights, 3, 2, 2, 9)
    ours = copy.deepcopy(plain)
    scores = torch.randn(15, 192, device=DEVICE)
    if kind == "ends":
        scores[:, EOS] = 30.0
    elif kind == "never":  # nothing but the end is possible, in some rows
        scores[3:7, FIRST_PIECE:] = -torch.inf
    else:
        scores[4] = torch.nan
    PlainOperations(weights).select_next(scores, plain, 5, stop_early=True)
    KernelOperations(weights).select_next(scores, ours, 5, stop_early=True)
    if kind == "not a number":
        assert torch.equal(ours.info_FS[DONE], plain.info_FS[DONE])
        assert torch.equal(ours.finished_SN4[:, :, 0].isnan(), plain.finished_SN4[:, :, 0].isnan())
        assert bool(ours.finished_SN4.isnan().any())
    else:
        assert_same_state(ours, plain)


@pytest.mark.slow
def test_a_vocabulary_in_several_parts_is_one_vocabulary(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.inference.gpu import selection_kernels

    monkeypatch.setattr(selection_kernels, "PART_SCORES", 16)
    weights = weights_of(make())
    plain = begun(weights, 4, 2, 3, 9)
    ours = copy.deepcopy(plain)
    scores = torch.randn(20, 192, device=DEVICE) * 3
    PlainOperations(weights).select_next(scores, plain, 5, stop_early=True)
    KernelOperations(weights).select_next(scores, ours, 5, stop_early=True)
    assert_same_state(ours, plain)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "norm", "activation"),
    [
        *((1, "pre", ""), (1, "post", "relu"), (1, "pre", "gelu"), (1, "post", "swish")),
        *((2, "post", "gelu"), (3, "pre", "swish"), (3, "post", ""), (4, "pre", "relu")),
        *((5, "post", "relu"), (16, "pre", "gelu"), (20, "post", "swish"), (20, "pre", "")),
    ],
)
def test_a_stage_is_the_same_for_few_rows_and_for_many(
    activation: str, norm: str, rows: int, make: Make
) -> None:
    weights = weights_of(make(norm=norm))

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, device=DEVICE)

    torch.manual_seed(2)
    stage = Stage(Norm(draw(48), draw(48), 1e-6), Matrix(draw(72, 48), draw(72)), activation)
    x, y = draw(rows, 48), draw(rows, 48)
    for added in (y, None):
        for one in (stage, Stage(None, stage.matrix, activation)):
            if one.norm is None and added is not None:
                continue  # which does not occur
            found, wanted = (
                kind(weights).apply_stage(x, added, one)
                for kind in (KernelOperations, PlainOperations)
            )
            torch.testing.assert_close(found, wanted, atol=2e-4, rtol=1e-4)
    wide = draw(rows, 700)
    matrix = Matrix(draw(43, 700), None)
    torch.testing.assert_close(
        KernelOperations(weights).linear(wide, matrix),
        wide @ matrix.weight.t(),
        atol=1e-3,
        rtol=1e-4,
    )


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 4])
def test_a_vocabulary_is_multiplied_as_any_matrix(rows: int, make: Make) -> None:
    torch.manual_seed(2)
    x = torch.randn(rows, 24, device=DEVICE)
    matrix = Matrix(torch.randn(4136, 24, device=DEVICE), torch.randn(4136, device=DEVICE))
    found = KernelOperations(weights_of(make())).linear(x, matrix)
    torch.testing.assert_close(found, x @ matrix.weight.t() + matrix.bias, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_products_in_bf16_are_summed_in_full_precision(rows: int) -> None:
    torch.manual_seed(2)
    x = torch.randn(rows, 600, device=DEVICE).bfloat16()
    matrix = Matrix(torch.randn(24, 600, device=DEVICE).bfloat16())
    settings: dict[str, Any] = {"post": False, "keep_stream": False, "dtype": torch.float32}
    _, found = small_gemm(x, None, None, matrix, "", **settings)
    torch.testing.assert_close(found, x.float() @ matrix.weight.float().t(), atol=1e-4, rtol=1e-4)


@THOROUGH
@pytest.mark.parametrize(("order", "beams"), [("brackets", 1), ("in-order", 4), ("bottom-up", 3)])
def test_a_step_of_trees_by_kernels_is_the_plain_step(order: str, beams: int, make: Make) -> None:
    if order == "bottom-up":
        names: tuple[str, ...] = ("_x", ")A/1", ")A/2", ")B/2", ")B/3")
    else:
        names = ("_x", "_y", "(A", ")", "(B")
    actions = Actions(get_linearisation(order), names, 2)
    told = range(FIRST_PIECE + len(actions), FIRST_PIECE + len(actions) + 3)
    to_parse = SentencesToParse(actions, [4], [], told)
    model = make(targets=told.stop, shared_embeddings=False, encoder_layers=1, decoder_layers=1)
    weights = weights_of(model)
    plain = BatchState(weights, 5, beams, 2, 40, 24, words=6)
    plain.active_slots.copy_(torch.tensor([3, 0, 1, 5, 2]))
    admit(PlainOperations(weights), plain, [0, 1, 3], 12)
    plain.info_FS[WORDS] = 4
    plain.info_FS[INFO_FIELDS:] = torch.tensor(told)[torch.arange(36) % 3].view(6, 6)
    trees = TreeGrammar(to_parse, weights, plain)
    trees.admit(torch.arange(5, device=DEVICE), plain.info_FS[WORDS, :5])
    for _ in range(3):
        decode_step(PlainOperations(weights), plain, 5, stop_early=True, grammar=trees)
    ours = copy.deepcopy(plain)
    our_trees = TreeGrammar(to_parse, weights, ours)
    our_trees._known_SKX.copy_(trees._known_SKX)
    for _ in range(2):
        decode_step(PlainOperations(weights), plain, 5, stop_early=True, grammar=trees)
        decode_step(KernelOperations(weights), ours, 5, stop_early=True, grammar=our_trees)
        assert_same_state(ours, plain)
        alive = plain.sums_SK > -torch.inf
        assert torch.equal(our_trees._known_SKX[alive], trees._known_SKX[alive])
    assert bool((plain.info_FS[DONE] == 0).any())
