"""Personal models by Bayes' rule against closed forms; the printed Laplace term as a counterexample."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.learning import LinearObjective, Logistic, NetworkObjective, Records, Squared
from tacit.learning.personal import (
    Distillation,
    DistillationPrior,
    GaussianPrior,
    LaplacePrior,
    PersonalizedMAP,
    PriorName,
)

RNG = np.random.default_rng(11)
V, M = 0.5, 6
Y = [RNG.normal(loc, 1, M) for loc in (-1.0, 0.2, 3.0)]
# (theta / sqrt(v) - y / sqrt(v))^2 / 2 is (theta - y)^2 / (2 v).
PARTIES = [Records.of(np.full((M, 1), V**-0.5), y * V**-0.5) for y in Y]
GOAL = LinearObjective(loss=Squared(), features=1, feature_norm=V**-0.5)
MEANS = np.array([y.mean() for y in Y])


def test_a_gaussian_prior_draws_every_mean_towards_its_own() -> None:
    s2, mu = 0.3, 0.7
    fit = PersonalizedMAP(spread=s2, learns_prior=False, rounds=3).run(GOAL, PARTIES, np.array([mu]))
    w = s2 / (s2 + V / M)
    assert fit.models[:, 0] == pytest.approx(w * MEANS + (1 - w) * mu, rel=1e-12)


def test_a_laplace_prior_shrinks_by_a_threshold() -> None:
    b, mu = 0.15, 0.7
    method = PersonalizedMAP(prior="laplace", spread=b, learns_prior=False, rounds=3)
    fit = method.run(GOAL, PARTIES, np.array([mu]))
    far = MEANS - mu
    assert fit.models[:, 0] == pytest.approx(mu + np.sign(far) * np.maximum(abs(far) - V / (M * b), 0))
    assert fit.models[1, 0] == mu  # the nearest is the centre itself


@pytest.mark.parametrize("prior", ["gaussian", "laplace", "distillation"])
def test_what_is_minimised_falls_and_the_law_fits_the_models(prior: PriorName) -> None:
    X = RNG.normal(size=(3, 30, 2))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    y = (X[:, :, 0] + RNG.normal(size=(3, 1)) * X[:, :, 1] > 0).astype(float)
    parties = [Records.of(*one) for one in zip(X, y, strict=True)]
    goal = LinearObjective(loss=Logistic(), features=2, feature_norm=1.0)
    fit = PersonalizedMAP(prior=prior, rounds=40).run(goal, parties)
    assert np.diff(fit.values).max() <= 1e-9
    assert fit.prior is not None
    if prior == "gaussian":
        assert fit.prior.center == pytest.approx(fit.models.mean(axis=0))
        assert fit.prior.spread == pytest.approx(fit.models.var(axis=0).mean())
    if prior == "laplace":
        assert fit.prior.center == pytest.approx(np.median(fit.models, axis=0))
    alone = PersonalizedMAP(learns_prior=False, spread=1e9, rounds=40).run(goal, parties)
    assert np.ptp(fit.models, axis=0).sum() < np.ptp(alone.models, axis=0).sum()


def test_penalties_are_negative_log_densities() -> None:
    models, center = RNG.normal(size=(4, 3)), RNG.normal(size=3)
    gaussian = GaussianPrior(center=center, spread=0.4).penalty(models, [])
    assert gaussian == pytest.approx(-np.sum(stats.norm.logpdf(models, center, math.sqrt(0.4))))
    laplace = LaplacePrior(center=center, spread=0.4).penalty(models, [])
    assert laplace == pytest.approx(-np.sum(stats.laplace.logpdf(models, center, 0.4)))
    # The source prints n ln(2 b): its spread would not be the mean distance but d times that.
    printed = [4 * math.log(2 * b) + abs(models - center).sum() / b for b in (1.0, 3.0)]
    mean = abs(models - center).mean()
    assert printed[1] < printed[0]
    assert LaplacePrior(center=center, spread=mean).penalty(models, []) < LaplacePrior(
        center=center, spread=3 * mean
    ).penalty(models, [])


def test_laws_are_fitted_to_models() -> None:
    models = RNG.normal(size=(4, 3))
    law = LaplacePrior(center=np.zeros(3)).updated(models, [])
    assert law.center == pytest.approx(np.median(models, axis=0))
    assert law.spread == pytest.approx(np.abs(models - law.center).mean())
    parties = [Records.of(RNG.normal(size=(5, 3)), np.ones(5)) for _ in models]
    goal = LinearObjective(loss=Logistic(), features=3, feature_norm=1.0)
    common = DistillationPrior(objective=goal, center=np.ones(3), spread=0.2).updated(models, parties)
    logits = [
        (goal.predictions(w, p.X), goal.predictions(common.center, p.X))
        for w, p in zip(models, parties, strict=True)
    ]
    far = [Distillation().value(*pair) for pair in logits]
    psi = float(np.mean(far))
    assert common.spread == pytest.approx(psi)
    assert common.penalty(models, parties) == pytest.approx(2 * math.log(2 * psi) + sum(far) / (2 * psi))


def test_equal_models_stop_at_the_floor() -> None:
    same = [PARTIES[0]] * 3
    for prior in ("gaussian", "laplace"):
        fit = PersonalizedMAP(prior=prior, floor=0.02).run(GOAL, same)
        assert fit.prior is not None
        assert fit.prior.spread == 0.02
        assert np.isfinite(fit.values).all()


def test_bad_input() -> None:
    with pytest.raises(ParameterError, match="floor must be"):
        PersonalizedMAP(floor=0.0)
    with pytest.raises(ParameterError, match="spread must be"):
        GaussianPrior(center=np.zeros(1), spread=-1.0)
    with pytest.raises(ParameterError, match="parties must be"):
        PersonalizedMAP().run(GOAL, [])
    network = NetworkObjective(loss=Logistic(), features=1, hidden=2)
    with pytest.raises(ParameterError, match="smoothness must be given"):
        PersonalizedMAP().run(network, PARTIES)
    with pytest.raises(ParameterError, match="distillation needs"):
        DistillationPrior(objective=GOAL, center=np.zeros(1))
