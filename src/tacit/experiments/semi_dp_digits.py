"""Ten digits by softmax regression, some of them public: a small stand-in for the images of CIFAR-10."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.data import load
from tacit.learning import (
    Algorithm,
    FeatureMap,
    LinearObjective,
    Multinomial,
    NoisyMinibatchSGD,
    PublicObjective,
    Records,
    SemiPrivateSGD,
    Settings,
    train,
)
from tacit.learning.training import silos_for
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated

__all__ = ["digit_rows"]

_TRAINED, _CLASSES, _DELTA, _ROUNDS = 1347, 10, 1e-6, 60
_SHARES, _EPSILONS = (0.02, 0.04, 0.1, 0.2, 0.3), (1.0, 4.0)
_STEPS, _WEIGHTS = (2.0, 6.0, 20.0, 60.0), (0.03, 0.1, 0.3, 0.6, 0.9)


@lru_cache(maxsize=1)
def _images() -> tuple[Array, Array]:
    digits = load("digits")
    high = np.full(digits.X.shape[1], float(digits.X.max()))  # of the format of the images, a constant
    return FeatureMap(lower=np.zeros_like(high), upper=high)(digits.X), digits.y.astype(np.float64)


@dataclass(frozen=True)
class _Split:
    """Private, public and test records of one draw."""

    share: float
    seed: int

    @property
    def objective(self) -> LinearObjective:
        return LinearObjective(
            loss=Multinomial(), features=_images()[0].shape[1], outputs=_CLASSES, feature_norm=1.0
        )

    def parts(self) -> tuple[Records, Records, Records]:
        X, y = _images()
        order, cut = simulated(self.seed, "semi-dp digits").permutation(len(X)), round(self.share * _TRAINED)
        pieces = (order[cut:_TRAINED], order[:cut], order[_TRAINED:])
        private, public, test = (Records.of(X[part], y[part]) for part in pieces)
        return private, public, test

    def wrong(self, w: Array) -> float:
        """Return the test error of parameters."""
        _, _, test = self.parts()
        return float(np.mean(self.objective.predictions(w, test.X).argmax(axis=1) != test.y))

    def error(self, algorithm: Algorithm, epsilon: float, *, union: bool) -> float:
        """Return the test error of a run, on private records or on all of them as if they were."""
        private, public, _ = self.parts()
        if union:
            private = Records.of(np.concatenate([public.X, private.X]), np.concatenate([public.y, private.y]))
        settings = Settings(
            objective=self.objective,
            algorithm=algorithm,
            trust=TrustModel.CENTRAL,
            budget=PrivacyBudget(epsilon, _DELTA),
            clip=1.0,
            public=None if union else PublicObjective(self.objective, public),
        )
        return self.wrong(train(silos_for(settings, [private], names=["all"], seed=self.seed), settings).w)


def _algorithms(method: str, *, quick: bool) -> Iterator[tuple[Algorithm, float, float | None]]:
    """Yield algorithms to tune over, with their step size and weight."""
    for step in _STEPS[1:2] if quick else _STEPS:
        if method == "DP-SGD":
            yield NoisyMinibatchSGD(rounds=_ROUNDS, step_size=step), step, None
            continue
        for weight in _WEIGHTS[3:4] if quick else _WEIGHTS:
            made = SemiPrivateSGD(
                rounds=_ROUNDS,
                step_size=step,
                weight=weight,
                public_norm="clip",
                metric="plain",
                start="given",
            )
            yield made, step, weight


def digit_rows(quick: bool) -> list[dict[str, object]]:
    """Return rows of test errors; `quick` takes one cell and fewer splits."""
    cells = [(4.0, 0.04)] if quick else [(e, s) for e in _EPSILONS for s in _SHARES]
    trials = 2 if quick else 5
    rows: list[dict[str, object]] = []
    for epsilon, share in cells:
        splits, others = ([_Split(share, k + first) for k in range(trials)] for first in (0, 10_000))
        thrown = [one.wrong(PublicObjective(one.objective, one.parts()[1]).fitted()) for one in splits]
        rows.append(_told(epsilon, share, "throw-away", thrown, None, None))
        for method in ("DP-SGD", "semi-dp"):
            union, tried = method == "DP-SGD", list(_algorithms(method, quick=quick))
            means = [
                np.mean([one.error(made, epsilon, union=union) for one in others[:2]]) for made, *_ in tried
            ]
            best, step, weight = tried[int(np.argmin(means))]
            found = [one.error(best, epsilon, union=union) for one in splits]
            rows.append(_told(epsilon, share, method, found, step, weight))
    return rows


def _told(
    epsilon: float, share: float, method: str, found: list[float], step: float | None, weight: object
) -> dict[str, object]:
    return {
        "epsilon": epsilon,
        "share": share,
        "method": method,
        "error": float(np.mean(found)),
        "standard error": float(np.std(found, ddof=1)) / math.sqrt(len(found)),
        "step": step,
        "weight": weight,
    }
