"""Mirror descent with a public mirror: its recursion, its start, what it is worth, its attack, refusals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning import (
    LinearObjective,
    Logistic,
    Problem,
    PublicMirrorDescent,
    PublicObjective,
    Records,
    Settings,
    Squared,
    in_process,
    make_silos,
    train,
)
from tacit.learning.preparation import prepare
from tacit.numerics import Array, L2Ball, Zero
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, epsilon_of
from tests.learning.attacks import LOOSE, Canary, canaries, stands_and_half_the_noise_is_caught

D = 6
OBJECTIVE = LinearObjective(loss=Squared(), features=D)
BUDGET = PrivacyBudget(1.0, 1e-5)


def records(n: int, *, d: int = D, seed: int = 0) -> tuple[Records, Array]:
    """Standard normal features, outcomes of the same parameters in all calls with noise of deviation 1/2."""
    rng, truth = np.random.default_rng(seed), np.random.default_rng(99).standard_normal(d)
    X = rng.standard_normal((n, d))
    return Records.of(X, X @ truth + 0.5 * rng.standard_normal(n)), truth


def problem(public: Records, **changes: Any) -> Problem:
    facts: dict[str, Any] = {
        "smoothness": math.inf, "radius": 2.0, "diameter": 1.0, "dim": D, "variance": 0.0, "features": D,
        "loss": Squared(), "public": PublicObjective(OBJECTIVE, public), **changes,
    }  # fmt: skip
    return Problem(**facts)


def settings(public: Records | None, **changes: Any) -> Settings:
    d = changes.pop("d", D)
    objective = LinearObjective(loss=Squared(), features=d)
    facts: dict[str, Any] = {
        "objective": objective, "algorithm": PublicMirrorDescent(), "trust": TrustModel.CENTRAL,
        "budget": BUDGET, "clip": 1.0,
        "public": None if public is None else PublicObjective(objective, public), **changes,
    }  # fmt: skip
    return Settings(**facts)


def test_it_is_the_recursion_of_the_paper_on_given_answers() -> None:
    public, _ = records(40)
    answers = np.random.default_rng(3).standard_normal((7, D))
    points: list[Array] = []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        assert radius == (2.0,)
        points.append(at["w"])
        return (answers[step],)

    found = PublicMirrorDescent(ridge=0.2, step_size=0.3, average=0.5).run(
        ask, np.ones(D), problem=problem(public), rounds=7, prox=Zero(), follow=lambda _r, _w: None
    )
    H = public.X.T @ public.X / 40
    H += 0.2 * np.trace(H) / D * np.eye(D)
    w = np.linalg.lstsq(public.X, public.y, rcond=None)[0]
    after = []
    for point, answer in zip(points, answers, strict=True):
        np.testing.assert_allclose(point, w, atol=1e-12)
        w = w - 0.3 * np.linalg.solve(H, answer)
        after.append(w)
    np.testing.assert_allclose(found, np.mean(after[-4:], axis=0), atol=1e-12)


@pytest.mark.parametrize("n", [3, 40])
def test_it_starts_at_the_public_minimum_that_is_nearest(n: int) -> None:
    public, _ = records(n)
    start, seen = np.full(D, 2.0), []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        seen.append(at["w"])
        return (np.zeros(D),)

    for warm in (True, False):
        PublicMirrorDescent(warm_start=warm).run(
            ask, start, problem=problem(public), rounds=1, prox=Zero(), follow=lambda _r, _w: None
        )
    inverse = np.linalg.pinv(public.X)
    np.testing.assert_allclose(seen[0], start + inverse @ (public.y - public.X @ start), atol=1e-9)
    assert (seen[1] == start).all()


def test_the_domain_is_kept() -> None:
    public, _ = records(40)
    inside = L2Ball(radius=0.5)
    points: list[Array] = []
    PublicMirrorDescent().run(
        lambda _step, _at, _radius: (np.full(D, 5.0),), np.zeros(D), problem=problem(public), rounds=5,
        prox=inside, follow=lambda _r, w: points.append(w),
    )  # fmt: skip
    assert len(points) == 5
    assert all(np.linalg.norm(w) <= 0.5 * (1 + 1e-9) for w in points)


def test_public_records_are_worth_more_with_private_ones_than_alone() -> None:
    """100 features, 150 public and 3600 private records, epsilon 1: under half of the public excess."""
    d = 100
    public, truth = records(150, d=d, seed=1)
    private, _ = records(3600, d=d, seed=2)
    alone = np.linalg.lstsq(public.X, public.y, rcond=None)[0]
    chosen = settings(public, d=d)
    silos = make_silos([private], chosen.objective, trusts_server=True, seed=1)
    found = train(in_process(silos, seed=1), chosen)
    excess = [float(np.sum((w - truth) ** 2)) for w in (found.w, alone)]
    assert excess[0] < excess[1] / 2
    assert found.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)


def test_its_price_is_that_of_gradients_and_public_records_change_none() -> None:
    for share in (40, 400):
        prepared = prepare(settings(records(share)[0]), [500])
        event = prepared.plan.event([500], TrustModel.CENTRAL)
        assert epsilon_of(event, 1e-5) == pytest.approx(1.0, rel=1e-6)
        # 30 releases of one multiplier are one of 1 / sqrt(30) of it.
        assert prepared.noise_multiplier == pytest.approx(math.sqrt(30) * 3.730632, rel=1e-3)
    assert epsilon_of(Gaussian(3.730632), 1e-5) == pytest.approx(1.0, rel=1e-5)


def test_a_whole_run_stands_and_half_the_noise_is_caught() -> None:
    there, other = canaries((48,), settings(None).relation)
    canary = Canary()
    public = Records.of(np.eye(48), np.ones(48))
    chosen = settings(public, d=48, algorithm=PublicMirrorDescent(rounds=3), budget=LOOSE, clip=0.2)
    chosen = replace(chosen, objective=replace(chosen.objective, feature_norm=1.0))  # type: ignore[type-var]
    stands_and_half_the_noise_is_caught(
        chosen, there, other, canary.score, runs=960, statistics={"gradient": canary}
    )


def test_what_it_is_not_for_is_refused_before_anything_is_asked() -> None:
    public, _ = records(20)
    with pytest.raises(ParameterError, match="'pda' needs public records with labels"):
        prepare(settings(None), [500])
    logistic = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
    with pytest.raises(ParameterError, match=r"'pda' needs the squared loss, got 'logistic'.*no closed form"):
        prepare(settings(public, objective=logistic), [500])
    for bad in ({"ridge": 0.0}, {"step_size": -1.0}, {"average": 0.0}, {"warm_start": 1}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            PublicMirrorDescent(**bad)
