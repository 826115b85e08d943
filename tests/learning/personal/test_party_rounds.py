"""Rounds of whole parties against the printed algorithm, its closed forms, and a bound on what they send."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.errors import ParameterError
from tacit.learning import (
    AdaPeD,
    Distillation,
    FedAvg,
    Grouped,
    LinearObjective,
    Logistic,
    Multinomial,
    NetworkObjective,
    Records,
    Settings,
)
from tacit.learning.personal.party_rounds import (
    AdaPeDFacts,
    DescentFacts,
    LocalMove,
    PersonalRound,
    descend,
)
from tacit.learning.preparation import prepare
from tacit.learning.training import silos_for, train
from tacit.numerics import Array, Zero
from tacit.privacy import Unit

D, K = 4, 3
GOAL = LinearObjective(loss=Multinomial(), features=D, outputs=K, feature_norm=1.0)
NETWORK = NetworkObjective(loss=Multinomial(), features=D, hidden=3, outputs=K, activation="tanh")
RNG = np.random.default_rng(3)


def party(n: int = 12, seed: int = 0) -> Records:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return Records.of(X / np.linalg.norm(X, axis=1, keepdims=True), rng.integers(0, K, n).astype(float))


FACTS = AdaPeDFacts(
    steps=5,
    step_size=0.7,
    model_step=0.4,
    psi_step=0.05,
    psi=0.8,
    least_psi=0.1,
    most_psi=9.0,
    clip=0.03,
    psi_clip=0.6,
    psi_weight=0.25,
)


def asked(
    records: Records,
    mu: Array,
    facts: AdaPeDFacts,
    *,
    objective: LinearObjective | NetworkObjective = GOAL,
    state: Array | None = None,
) -> tuple[Array, Array]:
    """A row and what is kept, of one party."""
    known = np.zeros((1, objective.size + 1)) if state is None else state
    at: Mapping[str, Array] = {"w": mu, "round": facts.array()}
    rows, kept = PersonalRound(objective).update(Grouped.whole(records), at, known)
    return rows[0], kept[0]


@pytest.mark.parametrize(("reverse", "psi_step"), [(0.0, 0.05), (1.0, 0.05), (0.0, 2.0)])
@pytest.mark.parametrize("objective", [GOAL, NETWORK], ids=["linear", "network"])
def test_the_steps_are_those_of_the_algorithm(
    objective: LinearObjective | NetworkObjective, reverse: float, psi_step: float
) -> None:
    """Algorithm 4.4.1 once more, with gradients by finite differences of what it minimises."""
    records, facts = party(), replace(FACTS, reverse=reverse, temperature=1.5, psi_step=psi_step)
    mu0, theta = RNG.normal(size=(2, objective.size)) * 0.5
    kd = Distillation(direction="reverse" if reverse else "forward", temperature=1.5)

    def far(theta: Array, mu: Array) -> float:
        X = records.X
        return kd.value(objective.predictions(theta, X), objective.predictions(mu, X))

    def slope(f: object, w: Array) -> Array:
        return np.array([(f(w + s) - f(w - s)) / 2e-6 for s in np.eye(w.size) * 1e-6])  # type: ignore[operator]

    mu, psi, sums = mu0, facts.psi, np.zeros(objective.size + 1)
    start, least = theta, psi
    for _ in range(facts.steps):
        m, p = mu, psi
        theta = theta - facts.step_size * slope(
            lambda t, m=m, p=p: objective.value(t, records).mean() + far(t, m) / (2 * p), theta
        )
        h: Array = slope(lambda m, t=theta, p=p: far(t, m) / (2 * p), mu)
        h = h / max(float(np.linalg.norm(h)) / facts.clip, 1)
        mu = mu - facts.model_step * h
        v = far(theta, mu)
        k: float = 1 / (2 * psi) - v / (2 * psi**2)
        k = float(k / max(abs(k) / facts.psi_clip, 1))
        psi = min(max(psi - facts.psi_step * k, facts.least_psi), facts.most_psi)
        least = min(least, psi)
        sums += np.append(h, k)
    scale = np.append(np.ones(objective.size), facts.psi_weight * facts.clip / facts.psi_clip)
    row, kept = asked(records, mu0, facts, objective=objective, state=np.append(start, 1.0)[None])
    assert row == pytest.approx(sums * scale / facts.steps, abs=2e-8)
    assert kept == pytest.approx(np.append(theta, 1.0), abs=1e-7)
    assert np.linalg.norm(sums[:-1]) > 0.5 * facts.steps * facts.clip  # clipping had a say
    assert (least == facts.least_psi) == (psi_step == 2.0)  # as the range had, where steps are long
    for psi, start_psi in ((1e3, facts.most_psi), (1e-3, facts.least_psi)):  # whatever a server says
        ends = [replace(facts, psi=p) for p in (psi, start_psi)]
        said, meant = (asked(records, mu0, one, objective=objective)[0] for one in ends)
        assert said == pytest.approx(meant)


def test_the_best_psi_is_the_divergence() -> None:
    """The minimiser of ln(2 psi) / 2 + v / (2 psi) is psi = v: there, the slope is 0."""
    records, (mu, theta) = party(), RNG.normal(size=(2, GOAL.size))
    still = replace(FACTS, steps=1, step_size=1e-300, model_step=0.0)
    v = Distillation().value(GOAL.predictions(theta, records.X), GOAL.predictions(mu, records.X))
    state = np.append(theta, 1.0)[None]
    slopes = [asked(records, mu, replace(still, psi=v * f), state=state.copy())[0][-1] for f in (0.9, 1, 1.1)]
    assert slopes[0] < 0 < slopes[2]
    assert slopes[1] == pytest.approx(0, abs=1e-12)


def test_a_party_whose_model_is_the_common_one_says_nothing_of_it() -> None:
    records, mu = party(), RNG.normal(size=GOAL.size)
    row, _ = asked(records, mu, replace(FACTS, steps=1, step_size=1e-300))
    assert not row[:-1].any()


def test_infinite_psi_and_a_fixed_common_model_are_local_training() -> None:
    records, mu = party(), RNG.normal(size=GOAL.size)
    alone = descend(GOAL, records, mu, DescentFacts(steps=5, step_size=0.7))
    far = replace(FACTS, psi=1e12, most_psi=1e13, psi_step=0.0)
    assert asked(records, mu, far)[1][:-1] == pytest.approx(alone, abs=1e-10)
    # eta2 = eta3 = 0: local training on the loss and a distillation that stays as it is.
    kept = asked(records, mu, replace(FACTS, model_step=0.0, psi_step=0.0))[1][:-1]
    theta = mu
    for _ in range(5):
        pull = GOAL.pullback(
            theta,
            records.X,
            Distillation().slopes(GOAL.predictions(theta, records.X), GOAL.predictions(mu, records.X))[0],
        )
        theta = theta - 0.7 * (GOAL.gradients(theta, records).mean(axis=0) + pull / (2 * FACTS.psi))
    assert kept == pytest.approx(theta, rel=1e-12)


def test_one_step_of_all_parties_without_noise_is_centralised_descent() -> None:
    """tau = 1, K = n, sigma = 0: alternating descent on the sum of all objectives."""
    parties = [party(9, seed) for seed in range(3)]
    method = AdaPeD(rounds=4, local_steps=1, step_size=0.6, model_step=0.5, psi_step=0.05, least_psi=0.1)
    chosen = Settings(objective=GOAL, algorithm=method, unit=Unit.PARTY, clip=1e6)
    federation = silos_for(chosen, parties, names=["a", "b", "c"], seed=0)
    found = train(federation, chosen).w
    mu, psi, models = np.zeros(GOAL.size), 1.0, np.zeros((3, GOAL.size))
    kd = Distillation()
    for _ in range(4):
        pulls, slopes = [], []
        for k, records in enumerate(parties):
            X, theta = records.X, models[k]
            pull = GOAL.pullback(theta, X, kd.slopes(GOAL.predictions(theta, X), GOAL.predictions(mu, X))[0])
            models[k] = theta - 0.6 * (GOAL.gradients(theta, records).mean(axis=0) + pull / (2 * psi))
            own = GOAL.predictions(models[k], X)
            h = GOAL.pullback(mu, X, kd.slopes(own, GOAL.predictions(mu, X))[1]) / (2 * psi)
            pulls.append(h)
            v = kd.value(own, GOAL.predictions(mu - 0.5 * h, X))
            slopes.append(1 / (2 * psi) - v / (2 * psi**2))
        mu, psi = mu - 0.5 * np.mean(pulls, axis=0), psi - 0.05 * float(np.mean(slopes))
    assert found == pytest.approx(mu, abs=1e-6)  # messages are float32
    assert np.array(federation.kept("personal-round"))[:, 0, :-1] == pytest.approx(models, abs=1e-6)


def test_the_facts_of_a_round_follow_from_the_problem_and_psi_stays_in_its_range() -> None:
    method = AdaPeD(rounds=5, psi=2.0, least_psi=0.25, psi_step=1.0, direction="reverse")
    chosen = Settings(objective=GOAL, algorithm=method, unit=Unit.PARTY, clip=0.5)
    problem = prepare(chosen, [1, 1]).problem
    facts = method._facts(problem, 2.0)
    assert (
        facts.step_size == facts.model_step == pytest.approx(1 / (problem.smoothness * (1 + 1 / (2 * 0.25))))
    )
    assert (facts.reverse, AdaPeD()._facts(problem, 2.0).reverse, facts.psi_clip) == (1.0, 0.0, 0.5)
    asked: list[float] = []

    def ask(step: int, at: Any, radius: Any) -> tuple[Array, ...]:
        asked.append(AdaPeDFacts.of(at).psi)
        slopes = (1e-3, -1e-2, 1e9, -1e9, 0.0)  # of psi, as noise may have them
        return (np.append(np.zeros(GOAL.size), slopes[step]),)

    method.run(ask, np.zeros(GOAL.size), problem=problem, rounds=5, prox=Zero(), follow=lambda _r, _w: None)
    per = 10 / math.sqrt(1 / 19)
    assert asked == pytest.approx([2.0, 2.0 - 1e-3 * per, 2.0 + 9e-3 * per, 0.25, 1e6])


def test_federated_averaging_is_the_mean_of_local_descents() -> None:
    parties = [party(9, seed) for seed in range(3)]
    method = FedAvg(rounds=3, local_steps=4, step_size=0.6)
    chosen = Settings(objective=GOAL, algorithm=method, unit=Unit.PARTY, clip=1e6)
    found = train(silos_for(chosen, parties, names=["a", "b", "c"], seed=0), chosen).w
    w = np.zeros(GOAL.size)
    for _ in range(3):
        w = np.mean([descend(GOAL, one, w, DescentFacts(steps=4, step_size=0.6)) for one in parties], axis=0)
    assert found == pytest.approx(w, abs=1e-6)


def test_federated_averaging_moves_by_the_scale_of_an_update_and_so_do_its_penalties() -> None:
    taken: list[float] = []
    chosen = Settings(objective=GOAL, algorithm=FedAvg(), unit=Unit.PARTY, clip=1.0)
    problem = prepare(chosen, [9]).problem

    def ask(step: int, at: Any, radius: Any) -> tuple[Array, ...]:
        return (np.ones(GOAL.size),)

    class Taken(Zero):
        def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
            taken.append(eta)
            return np.asarray(z)

    method = FedAvg(step_size=0.6, scale=0.5)
    w = method.run(
        ask, np.zeros(GOAL.size), problem=problem, rounds=3, prox=Taken(), follow=lambda _r, _w: None
    )
    assert w == pytest.approx(-1.5 * np.ones(GOAL.size))
    assert taken == [0.5] * 3


def hostile(rng: np.random.Generator) -> Records:
    X = rng.normal(size=(4, D)) * 10.0 ** rng.uniform(-3, 9, (4, 1))
    X[rng.random((4, D)) < 0.1] = rng.choice([np.nan, np.inf, 1e300])
    y = rng.choice([0.0, 1.0, 2.0, np.nan, 1e9, -4.0], 4)
    return Records.of(X, y)


def test_no_row_is_longer_than_the_radius_whatever_the_records() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        scale = 10.0 ** rng.uniform(-3, 3)
        drawn = {k: 10.0 ** rng.uniform(-3, 2) for k in asdict(FACTS) if k not in ("steps", "reverse")}
        facts = AdaPeDFacts(**{**drawn, "steps": 3, "least_psi": 1e-3, "most_psi": 1e3, "reverse": 0.0})
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            row, _ = asked(hostile(rng), rng.normal(size=GOAL.size) * scale, facts)
        assert not np.linalg.norm(row) > facts.radius * (1 + 1e-12)  # NaN counts as a row of zeros


@pytest.mark.parametrize("objective", [GOAL, NETWORK], ids=["linear", "network"])
def test_a_party_without_a_good_record_is_a_row_of_zeros(
    objective: LinearObjective | NetworkObjective,
) -> None:
    blank = Records.of(np.full((3, D), np.nan), np.full(3, np.nan))
    mu = RNG.normal(size=objective.size)
    row, kept = asked(blank, mu, FACTS, objective=objective)
    assert not row.any()
    assert kept[:-1] == pytest.approx(mu)
    at = {"w": mu, "round": DescentFacts(steps=2, step_size=1.0).array()}
    assert not LocalMove(objective)(Grouped.whole(blank), at).any()
    some = Records.of(np.vstack([blank.X, party().X]), np.append(blank.y, party().y))
    assert asked(some, mu, FACTS, objective=objective)[0] == pytest.approx(
        asked(party(), mu, FACTS, objective=objective)[0]
    )


def test_bad_input() -> None:
    for name in ("psi", "clip", "psi_clip", "least_psi", "step_size"):
        zero: dict[str, Any] = {name: 0.0}
        with pytest.raises(ParameterError, match=f"{name} must be"):
            replace(FACTS, **zero)
    with pytest.raises(ParameterError, match="steps must be"):
        replace(FACTS, steps=10**6)
    point = FACTS.array()
    point[0] = 2.5
    with pytest.raises(ParameterError, match="steps must be a whole number"):
        AdaPeDFacts.of({"round": point})
    with pytest.raises(ParameterError, match="'round' must have shape"):
        AdaPeDFacts.of({"round": point[:3]})
    bad: tuple[dict[str, Any], ...] = (
        {"psi": -1.0},
        {"psi": 0.1},
        {"local_steps": 0},
    )
    for options in bad:
        with pytest.raises(ParameterError, match=f"{next(iter(options))} must be"):
            AdaPeD(**options)
    with pytest.raises(ParameterError, match="batch must be"):
        AdaPeD(batch=5)  # type: ignore[arg-type]
    logistic = LinearObjective(loss=Logistic(), features=D, feature_norm=math.inf)
    chosen = Settings(objective=logistic, algorithm=AdaPeD(), unit=Unit.PARTY, clip=1.0)
    with pytest.raises(ParameterError, match="smoothness is unknown"):
        train(silos_for(chosen, [party()], names=["a"], seed=0), chosen)
