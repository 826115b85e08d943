"""Personal models of PyTorch modules: what networks in closed form say on the same weights, and refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning import (
    AdaPeD,
    Distillation,
    DistillationPrior,
    FedAvg,
    Grouped,
    Logistic,
    ModuleObjective,
    Multinomial,
    NetworkObjective,
    PersonalClassifier,
    PersonalizedMAP,
    Predictive,
    Records,
    Settings,
    Squared,
    torch_objective,
)
from tacit.learning.personal.distillation import distillable
from tacit.learning.personal.party_rounds import AdaPeDFacts, PersonalRound
from tacit.learning.training import silos_for, train
from tacit.numerics import Array
from tacit.privacy import Unit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_thread")
nn = torch.nn
D, HIDDEN, K = 4, 5, 3
RNG = np.random.default_rng(11)


def pair(loss: Logistic | Multinomial, **changes: Any) -> tuple[NetworkObjective, ModuleObjective, Any]:
    """A network in closed form, a module that is the same, and where its parameters are in the former."""
    outputs = K if isinstance(loss, Multinomial) else 1
    closed = NetworkObjective(loss=loss, features=D, hidden=HIDDEN, outputs=outputs, activation="tanh")
    module = nn.Sequential(nn.Linear(D, HIDDEN, bias=False), nn.Tanh(), nn.Linear(HIDDEN, outputs))
    first, second = np.split(np.arange(closed.size), [D * HIDDEN])
    second = second.reshape(-1, outputs)
    order = np.concatenate([first.reshape(D, HIDDEN).T.ravel(), second[:-1].T.ravel(), second[-1]])
    return closed, torch_objective(module.double(), loss, **changes), order


def records(n: int = 9, outputs: int = K) -> Records:
    rng = np.random.default_rng(n)
    return Records.of(rng.normal(size=(n, D)), rng.integers(0, max(outputs, 2), n).astype(float))


LOSSES = pytest.mark.parametrize("loss", [Logistic(), Multinomial()], ids=["logistic", "multinomial"])


@LOSSES
@pytest.mark.parametrize("chunk", [None, 4], ids=["whole", "chunks"])
def test_slopes_are_pulled_back_as_in_closed_form(loss: Any, chunk: int | None) -> None:
    closed, module, order = pair(loss, chunk=chunk)
    w, X = RNG.normal(size=closed.size), records().X
    slopes = RNG.normal(size=closed.predictions(w, X).shape)
    assert isinstance(module, Predictive)
    assert distillable(module) is module
    assert module.predictions(w[order], X) == pytest.approx(closed.predictions(w, X), rel=1e-12)
    assert module.pullback(w[order], X, slopes) == pytest.approx(
        closed.pullback(w, X, slopes)[order], abs=1e-12
    )
    assert not module.pullback(w[order], X[:0], slopes[:0]).any()
    with pytest.raises(ParameterError, match="slopes must have shape"):
        module.pullback(w[order], X, slopes[:-1])


@LOSSES
def test_a_round_of_a_party_is_that_of_the_closed_form(loss: Any) -> None:
    closed, module, order = pair(loss)
    mu, theta = RNG.normal(size=(2, closed.size))
    facts = AdaPeDFacts(
        steps=4, step_size=0.5, model_step=0.3, psi_step=0.05, psi=0.8, least_psi=0.1, most_psi=9.0,
        clip=0.02, psi_clip=0.6, psi_weight=0.25,
    )  # fmt: skip
    party = Grouped.whole(records(outputs=closed.outputs))

    def asked(objective: Any, index: Array) -> tuple[Array, Array]:
        at = {"w": mu[index], "round": facts.array()}
        return PersonalRound(objective).update(party, at, np.append(theta[index], 1.0)[None])

    row, kept = asked(closed, np.arange(closed.size))
    with_psi = np.append(order, closed.size)
    found, held = asked(module, order)
    assert found[0] == pytest.approx(row[0, with_psi], abs=1e-12)
    assert held[0] == pytest.approx(kept[0, with_psi], abs=1e-12)
    assert np.linalg.norm(found[0]) <= facts.radius * (1 + 1e-12)


def test_the_mode_of_a_distillation_prior_is_that_of_the_closed_form() -> None:
    closed, module, order = pair(Multinomial())
    start, parties = RNG.normal(size=closed.size) * 0.3, [records(n) for n in (5, 8)]
    fits = [
        PersonalizedMAP(prior="distillation", rounds=3, smoothness=10.0).run(
            goal, parties, start=start[index]
        )
        for goal, index in ((closed, np.arange(closed.size)), (module, order))
    ]
    assert fits[1].models == pytest.approx(fits[0].models[:, order], abs=1e-10)
    assert fits[0].prior is not None
    assert fits[1].prior is not None
    assert fits[1].prior.center == pytest.approx(fits[0].prior.center[order], abs=1e-10)
    assert fits[1].prior.spread == pytest.approx(fits[0].prior.spread, rel=1e-10)


@pytest.mark.parametrize("method", [AdaPeD(rounds=2), FedAvg(rounds=2)], ids=["adaped", "fed-avg"])
def test_runs_are_those_of_the_closed_form_without_a_step_size(method: Any) -> None:
    closed, module, order = pair(Multinomial())
    start, parties = RNG.normal(size=closed.size) * 0.3, [records(n) for n in (5, 8)]
    found = []
    for goal, index in ((closed, np.arange(closed.size)), (module, order)):
        chosen = Settings(objective=goal, algorithm=method, unit=Unit.PARTY, clip=1e6, start=start[index])
        found.append(train(silos_for(chosen, parties, names=["a", "b"], seed=0), chosen))
    assert found[1].w == pytest.approx(found[0].w[order], abs=1e-6)  # messages are float32
    for own, closed_own in zip(found[1].personal, found[0].personal, strict=True):
        assert own == pytest.approx(closed_own[order], abs=1e-6)
    assert len(found[1].personal) == (2 if isinstance(method, AdaPeD) else 0)


def test_a_classifier_of_deep_networks() -> None:
    rng = np.random.default_rng(2)
    X, silos = rng.uniform(-1, 1, (200, 2)), np.arange(200) % 2
    y = (X[:, 0] > 0) == silos
    fitted = PersonalClassifier(model="mlp:6,4", trust="none", rounds=10, random_state=0).fit(
        X, y, silos=silos
    )
    assert fitted.score(X, y, silos=silos) > 0.9


def test_words_that_are_none_count_as_zero() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(6, 3), nn.Flatten(), nn.Linear(6, K)).double()
    goal = torch_objective(module, Multinomial(), shape=(2,), tokens=6)
    X = np.array([[1.0, 2.0], [9.0, 1.0], [0.5, 1.0], [np.nan, 0.0], [4.0, 5.0]])
    slopes, w = RNG.normal(size=(5, K)), goal.start()
    good = [0, 4]
    assert goal.pullback(w, X, slopes) == pytest.approx(goal.pullback(w, X[good], slopes[good]), abs=1e-12)
    assert goal.predictions(w, X)[good] == pytest.approx(goal.predictions(w, X[good]))
    assert np.isfinite(goal.predictions(w, X)).all()


def test_only_losses_of_this_room_say_what_a_prediction_is() -> None:
    module = nn.Linear(D, K).double()
    goal = torch_objective(module, partial(nn.functional.cross_entropy, reduction="none"))
    for make in (distillable, lambda one: DistillationPrior(objective=one, center=np.zeros(one.size))):
        with pytest.raises(ParameterError, match="the loss 'logistic' or 'multinomial', got ModuleObjective"):
            make(goal)
    with pytest.raises(ParameterError, match="'squared'"):
        distillable(torch_objective(nn.Linear(D, 1).double(), Squared()))
    assert Distillation().value(*[goal.predictions(goal.start(), records().X)] * 2) == 0
