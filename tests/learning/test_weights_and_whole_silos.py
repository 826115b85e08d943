"""What one record, or a whole silo, moves: never more than is claimed, whatever silos are weighted by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from tacit.errors import ParameterError
from tacit.federation import Measure, Plan, Query, Step
from tacit.learning import FederatedLogisticRegression, LinearObjective, Squared, make_algorithm
from tacit.learning.difference import difference_radius
from tacit.learning.objective import Grouped, Records
from tacit.learning.training import in_process, make_silos
from tacit.means import AdditiveMean, GaussianNoise, NoNoise
from tacit.numerics import Array
from tacit.privacy import (
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Repeat,
    TrustModel,
    Unit,
    calibrate_user_level,
    guarantee,
)

D, L = 3, 0.7
POINTS = 20
"""Points that a pair of neighbours is asked at."""
GOAL = LinearObjective(loss=Squared(), features=D, feature_norm=1.0)
PERSON = Neighbours(unit=Unit.PERSON)


def records(rng: np.random.Generator, n: int) -> Records:
    """Records of any length, with labels that no clipping would survive."""
    X = rng.standard_normal((n, D)) * 10.0 ** rng.integers(-3, 4, (n, 1))
    return Records.of(X, rng.standard_normal(n) * 10.0 ** rng.integers(-3, 6, n))


def plan(parties: int, statistic: str, **mean: Any) -> Plan:
    estimator = AdditiveMean(
        **{"dim": D, "noise": NoNoise(), "trust": TrustModel.LOCAL, "on_violation": "clip", **mean}
    )
    step = Step(measures=(Measure(statistic=statistic, estimator=estimator, max_radius=2 * L),))
    return Plan(steps=((step, POINTS),), parties=parties, delta=1e-5)


def asked(units: list[Any], statistic: str, ats: list[Any], weights: Any, **mean: Any) -> Array:
    """The means that a server sees at some points, each with a radius, without noise."""
    federation = in_process(make_silos(units, GOAL, trusts_server=True, seed=1), seed=1)
    ask = federation.open(plan(len(units), statistic, **mean), weights=weights)
    return np.stack([ask(k, at, (radius,))[0] for k, (at, radius) in enumerate(ats)])


def points(rng: np.random.Generator, statistic: str) -> list[Any]:
    """Points of queries, with the radius that each names."""
    found: list[Any] = []
    for _ in range(POINTS):
        at, radius = {"w": rng.standard_normal(D)}, L
        if statistic == "difference":
            at |= {"previous": at["w"] + 0.3 * rng.standard_normal(D), "clip": np.array(L)}
            radius = difference_radius(at["w"], at["previous"], lipschitz=L, smoothness=1.0)
        found.append((at, radius))
    return found


@pytest.mark.parametrize("statistic", ["gradient", "difference"])
def test_a_record_moves_a_weighted_mean_by_no_more_than_its_silos_noise_hides(statistic: str) -> None:
    """By p_i 2 L / n_i, whatever the weights: the noise of silo i alone has p_i z 2 L / n_i.

    So weights change no price, which is that of the silo's own message (Lowy 2023, Section 4.3).
    """
    rng, largest = np.random.default_rng(11), 0.0
    for trial in range(90):
        sizes = rng.integers(1, 8, rng.integers(1, 4))
        silos = [records(rng, int(n)) for n in sizes]
        p = 10.0 ** rng.uniform(-6, 6, len(sizes))
        weights: Any = [p.tolist(), "silos", "records"][trial % 3]
        p = {"silos": np.ones(len(sizes)), "records": sizes.astype(float)}.get(str(weights), p)
        p = p / p.sum()
        i = int(rng.integers(len(sizes)))
        other = list(silos)
        X, y = silos[i].X.copy(), silos[i].y.copy()
        row = records(rng, 1)
        X[0], y[0] = row.X[0], row.y[0]
        other[i] = Records.of(X, y)
        ats = points(rng, statistic)
        moved = asked(silos, statistic, ats, weights) - asked(other, statistic, ats, weights)
        radii = np.array([radius for _, radius in ats])
        share = np.linalg.norm(moved, axis=1) / (p[i] * 2 * radii / sizes[i])
        assert share.max() <= 1 + 1e-9
        largest = max(largest, float(share.max()))
    assert largest > 0.5  # half of the claim would be false


def test_what_a_silo_sends_knows_no_weights() -> None:
    rng = np.random.default_rng(2)
    units = [records(rng, 5), records(rng, 9)]
    sent = []
    for _ in range(2):
        (silo, _) = make_silos(units, GOAL, trusts_server=True, seed=4)
        own = plan(2, "gradient", noise=GaussianNoise(1.5))
        silo.accept(own, run="run")
        sent.append(silo.answer(Query(step=0, at={"w": np.ones(D)}, radius=(L,))))
    assert sent[0] == sent[1]  # a silo is told of plans and queries alone, in which there are no weights


# Whole silos: one person in each, who has all of its records


def test_a_whole_silo_moves_its_mean_by_no_more_than_two_radii() -> None:
    rng, largest = np.random.default_rng(12), 0.0
    for _ in range(90):
        one, other = (records(rng, int(n)) for n in rng.integers(1, 30, 2))  # how many is nobody's business
        ats = points(rng, "gradient")
        first, second = (
            asked(
                [Grouped.of(each, np.zeros(len(each), dtype=int))],
                "gradient",
                ats,
                "silos",
                neighbours=PERSON,
            )
            for each in (one, other)
        )
        largest = max(largest, float(np.linalg.norm(first - second, axis=1).max()) / (2 * L))
    assert 0.9 < largest <= 1 + 1e-12


def test_records_alone_would_not_cover_a_silo() -> None:
    """The negative control: per record, noise is made for 2 L / n, and a silo moves n times that."""
    X = np.ones((20, D)) / math.sqrt(D)
    ends = [Records.of(X, np.full(20, y)) for y in (1e3, -1e3)]
    first, second = (asked([each], "gradient", [({"w": np.ones(D)}, L)], "silos")[0] for each in ends)
    assert np.linalg.norm(first - second) == pytest.approx(20 * (2 * L / 20))


@pytest.mark.parametrize("rounds", [1, 12])
def test_estimators_protect_whole_silos_at_the_price_of_the_closed_form(rounds: int) -> None:
    rng, budget = np.random.default_rng(14), PrivacyBudget(4.0, 1e-5)
    X = rng.uniform(-1, 1, (600, D))
    y, silos = (X[:, 0] > 0).astype(int), np.arange(600) % 30
    model = FederatedLogisticRegression(
        budget=budget, bounds=(-1, 1), classes=[0, 1], algorithm="minibatch", rounds=rounds, random_state=0
    ).fit(X, y, silos=silos, persons=silos)
    z = model.trained_.noise_multiplier
    assert z == pytest.approx(calibrate_user_level(budget, rounds=rounds), rel=1e-9)
    # A price of its own: mu-Gaussian privacy with mu = sqrt(T) / z, at the silo's one unit.
    mu = math.sqrt(rounds) / z
    delta = special.ndtr(-4 / mu + mu / 2) - math.exp(4) * special.ndtr(-4 / mu - mu / 2)
    assert delta == pytest.approx(1e-5, rel=1e-5)
    assert len(model.guarantees_) == 30
    assert model.guarantee_.neighbours == PERSON
    event = Repeat(Gaussian(z, neighbours=PERSON), rounds)
    assert guarantee(event, 1e-5, observer="server").epsilon == pytest.approx(model.guarantee_.epsilon)
    # The same budget per record is far less noise on a mean: 2 L z / n, for the n of a silo.
    alike = FederatedLogisticRegression(
        budget=budget, bounds=(-1, 1), classes=[0, 1], algorithm="minibatch", rounds=rounds, random_state=0
    ).fit(X, y, silos=silos)
    assert alike.trained_.noise_multiplier / 20 < z / 19


@pytest.mark.parametrize("batch", ["disjoint", "fixed"])
def test_batches_of_a_silos_records_make_a_whole_silo_no_cheaper(batch: str) -> None:
    """There is one unit in a silo: no sample of it is smaller, and no second batch is disjoint."""
    rng, budget = np.random.default_rng(15), PrivacyBudget(4.0, 1e-5)
    X = rng.uniform(-1, 1, (90, D))
    silos = np.arange(90) % 9
    algorithm = make_algorithm("minibatch", rounds=2, batch={"batch": batch, "size": 1})
    model = FederatedLogisticRegression(
        budget=budget, bounds=(-1, 1), classes=[0, 1], algorithm=algorithm, random_state=0
    )
    if batch == "disjoint":
        with pytest.raises(ParameterError, match="units"):
            model.fit(X, X[:, 0] > 0, silos=silos, persons=silos)
    else:
        model.fit(X, (X[:, 0] > 0).astype(int), silos=silos, persons=silos)
        assert model.trained_.noise_multiplier >= calibrate_user_level(budget, rounds=2) * (1 - 1e-9)
