"""Models that produce some of their ids only, and several models as one."""

# B sentences, K beams, T target length, V targets

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.errors import ModelError
from dragoman.models import Model, Rows, build
from dragoman.models.ensemble import Ensemble
from dragoman.search import SearchOptions, search
from dragoman.text.special_tokens import BOS, EOS

VOCABULARY, TARGETS = 23, 11
SMALL = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 4}
ARCHITECTURES = {
    "Transformer": ModelConfig(**SMALL),
    "unshared": ModelConfig(**SMALL, shared_embeddings=False),
    "recurrent": ModelConfig(**SMALL, architecture="recurrent", source_attention="dot"),
    "ConvS2S": ModelConfig(**SMALL, architecture="convs2s"),
}


def made(config: ModelConfig, seed: int, targets: int | None = TARGETS) -> Model:
    torch.manual_seed(seed)
    return build(config, VOCABULARY, targets).double().eval()


@pytest.fixture
def source() -> Rows:
    torch.manual_seed(5)
    ids_BS = torch.randint(4, VOCABULARY, (2, 5))
    return Rows.one_a_row(ids_BS, torch.tensor([5, 3]))


@pytest.fixture
def target() -> Rows:
    torch.manual_seed(6)
    ids_BT = torch.randint(4, TARGETS, (2, 6))
    ids_BT[:, 0] = BOS
    return Rows.one_a_row(ids_BT, torch.tensor([6, 6]))


@pytest.fixture
def members() -> list[Model]:
    """Two of different widths and kinds."""
    wide = ModelConfig(**{**SMALL, "d_model": 24})
    return [made(wide, 1), made(ARCHITECTURES["recurrent"], 2)]


def stepwise(model: Model, source: Rows, ids_BT: Tensor) -> Tensor:
    """The log-probabilities after each piece, B T V."""
    state, found = model.start(source), []
    for t in range(ids_BT.shape[1]):
        log_probs_B1V, state = model.step(ids_BT[:, t : t + 1], state)
        found.append(log_probs_B1V)
    return torch.cat(found, 1)


# --- fewer targets than ids ---


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_only_targets_are_scored_and_every_weight_learns(
    name: str, source: Rows, target: Rows
) -> None:
    model = made(ARCHITECTURES[name], 1)
    assert (model.vocabulary, model.targets) == (VOCABULARY, TARGETS)
    scores_BTV = model(source, target)
    assert scores_BTV.shape == (2, 6, TARGETS)
    log_probs_BTV = model.log_probabilities(model.features(source, target))
    torch.testing.assert_close(log_probs_BTV.exp().sum(-1), torch.ones(2, 6).double())
    torch.testing.assert_close(stepwise(model, source, target.ids_RL), log_probs_BTV)
    (scores_BTV**2).sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.any(), key
    used = set(source.ids_RL[0].tolist()) | set(source.ids_RL[1, :3].tolist())
    only_source = max(used)
    assert only_source >= TARGETS, "or the next line says nothing"
    gradients = [p.grad for p in model.parameters() if p.shape[:1] == (VOCABULARY,)]
    assert any(g is not None and g[only_source].any() for g in gradients)


def test_with_all_targets_a_model_is_as_it_was(source: Rows, target: Rows) -> None:
    config = ARCHITECTURES["Transformer"]
    whole, few = made(config, 1, None), made(config, 1)
    assert whole.targets == VOCABULARY
    scores_BTV = whole(source, target)
    assert scores_BTV.shape[-1] == VOCABULARY
    torch.testing.assert_close(few(source, target), scores_BTV[..., :TARGETS])
    assert few.state_dict().keys() == whole.state_dict().keys()


# --- ensembles ---


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_of_one_it_is_the_one(name: str, source: Rows, target: Rows) -> None:
    model = made(ARCHITECTURES[name], 1)
    alone = Ensemble([model])
    expected_BTV = model.log_probabilities(model.features(source, target))
    torch.testing.assert_close(alone(source, target), expected_BTV)
    torch.testing.assert_close(stepwise(alone, source, target.ids_RL), expected_BTV)


def test_of_several_it_is_the_mean_of_their_probabilities(
    members: list[Model], source: Rows, target: Rows
) -> None:
    members.append(made(ARCHITECTURES["ConvS2S"], 3))
    each = [m.log_probabilities(m.features(source, target)).exp() for m in members]
    assert not torch.allclose(each[0], each[1])
    mean_BTV = (each[0] + each[1] + each[2]) / 3
    ensemble = Ensemble(members)
    torch.testing.assert_close(ensemble(source, target).exp(), mean_BTV)
    features = ensemble.features(source, target)
    torch.testing.assert_close(ensemble.log_probabilities(features).exp(), mean_BTV)


def test_stepwise_decoding_equals_teacher_forcing(
    members: list[Model], source: Rows, target: Rows
) -> None:
    ensemble = Ensemble(members)
    torch.testing.assert_close(stepwise(ensemble, source, target.ids_RL), ensemble(source, target))


def test_its_state_expands_reorders_and_keeps_as_its_members_do(
    members: list[Model], source: Rows
) -> None:
    ids_BK = torch.tensor([[4, 5], [6, 7]])

    def walk(model: Model) -> Tensor:
        state = model.start(source).expand(2)
        _, state = model.step(ids_BK, state)
        _, state = model.step(ids_BK + 1, state.reorder(torch.tensor([[1, 0], [1, 1]])))
        log_probs, _ = model.step(ids_BK[1:] + 2, state.keep(torch.tensor([1])))
        return log_probs.exp()

    expected = (walk(members[0]) + walk(members[1])) / 2
    torch.testing.assert_close(walk(Ensemble(members)), expected)


@pytest.mark.parametrize("beam", [1, 4])
def test_search_finds_what_the_members_together_find_likely(
    beam: int, members: list[Model], source: Rows
) -> None:
    ensemble = Ensemble(members)
    options = SearchOptions(beam=beam, n_best=beam, max_extra=4, length_penalty=0.0)
    with torch.no_grad():
        found = search(ensemble, source, options)
        for row, hypotheses in enumerate(found):
            assert len(hypotheses) == beam
            length = int((source.segments_RL[row] > 0).sum())
            one = Rows.one_a_row(source.ids_RL[row : row + 1, :length], torch.tensor([length]))
            for hypothesis in hypotheses:
                ids = [BOS, *hypothesis.ids, EOS]
                log_probs_1TV = stepwise(ensemble, one, torch.tensor([ids[:-1]]))
                total = sum(log_probs_1TV[0, t, id_] for t, id_ in enumerate(ids[1:]))
                assert hypothesis.log_prob == pytest.approx(float(total))
    assert Ensemble(members[:1]).eval()
    twins = search(Ensemble([members[0], members[0]]), source, options)
    plain = search(members[0], source, options)
    assert [[h.ids for h in row] for row in twins] == [[h.ids for h in row] for row in plain]


def test_other_ids_are_refused(members: list[Model]) -> None:
    for other, numbers in (
        (build(ModelConfig(**SMALL), 99, TARGETS), "23 and 99 ids, 11 and 11 of them targets"),
        (build(ModelConfig(**SMALL), VOCABULARY), "23 and 23 ids, 11 and 23 of them targets"),
    ):
        with pytest.raises(ModelError, match=f"an ensemble needs one vocabulary.* {numbers}"):
            Ensemble([*members, other])
