"""The tasks that all algorithms are compared on: silos with their records, and where the minimum is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import optimize, special

from tacit.data import load, split_by_pairs
from tacit.learning import FeatureMap, LinearObjective, Logistic, Records
from tacit.learning.algorithms import Convexity
from tacit.numerics import Array, ElasticNet
from tacit.randomness import simulated

__all__ = ["Task", "made_up", "tasks"]


@dataclass(frozen=True)
class Task:
    """Silos, what is minimised over them, and the records that it is measured on.

    Attributes:
        name: What the table calls it.
        objective: Loss of a record.
        silos: Records of each.
        fresh: Records of the same law, which nobody trains on; None measures on those of the silos.
        diameter: D, public: how far from the start the minimum is looked for.
        l1: Strength of the L1 penalty.
        l2: Strength of the squared L2 penalty, and so the strong convexity.
    """

    name: str
    objective: LinearObjective
    silos: tuple[Records, ...]
    fresh: Records | None = None
    diameter: float = 10.0
    l1: float = 0.0
    l2: float = 0.0

    @property
    def regularizer(self) -> ElasticNet:
        """What is added to the mean loss."""
        return ElasticNet(l1=self.l1, l2=self.l2)

    @property
    def convexity(self) -> Convexity:
        """What is known of the sum of both."""
        return "strongly-convex" if self.l2 > 0 else "convex"

    @cached_property
    def measured(self) -> Records:
        """The records that the excess is of."""
        if self.fresh is not None:
            return self.fresh
        return Records.of(
            np.concatenate([one.X for one in self.silos]), np.concatenate([one.y for one in self.silos])
        )

    def value(self, w: Array) -> float:
        """Return the objective on the measured records, penalty and all."""
        return float(self.objective.value(w, self.measured).mean()) + self.regularizer.value(w)

    @cached_property
    def best(self) -> Array:
        """The minimum on the measured records within D of the start, by L-BFGS and bisection of a ridge."""
        w = self._minimum(0.0)
        if np.linalg.norm(w) <= self.diameter:
            return w

        def beyond(log_ridge: float) -> float:
            return float(np.linalg.norm(self._minimum(math.exp(log_ridge)))) - self.diameter

        return self._minimum(math.exp(optimize.brentq(beyond, math.log(1e-7), math.log(1.0), xtol=1e-3)))

    def _minimum(self, ridge: float) -> Array:
        """Return the minimum with a further squared L2 penalty, by its positive and negative parts."""
        d, records, l2 = self.objective.size, self.measured, self.l2 + ridge

        def value(parts: Array) -> tuple[float, Array]:
            w = parts[:d] - parts[d:]
            total = self.objective.clipped_sum(w, records, self.objective.lipschitz, np.float64)
            slope = total / len(records) + l2 * w
            smooth = float(self.objective.value(w, records).mean()) + l2 / 2 * float(w @ w)
            return smooth + self.l1 * float(parts.sum()), np.concatenate([self.l1 + slope, self.l1 - slope])

        found = optimize.minimize(
            value,
            np.zeros(2 * d),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (2 * d),
            options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-13, "gtol": 1e-7},
        ).x
        return np.asarray(found[:d] - found[d:])

    def excess(self, w: Array) -> float:
        """Return how far the objective is above its minimum."""
        return self.value(w) - self.value(self.best)


def tasks(*, every: int = 1, most: int = 25) -> tuple[Task, Task, Task]:
    """Return the three tasks: digits, the same with a penalty, and records that are made up.

    Args:
        every: Which record of a silo is kept: each, or each second and so on.
        most: Silos of each task, at most 25.
    """
    digits = load("mnist-odd-even")
    assert digits.groups is not None  # noqa: S101 - narrows the type: digits have groups
    side, wide = 7, 4  # fixed blocks of pixels: a map that looks at no record
    X = digits.X.reshape(-1, side, wide, side, wide).mean(axis=(2, 4)).reshape(-1, side**2)
    features = FeatureMap(lower=np.zeros(side**2), upper=np.ones(side**2))
    rows, labels = features(X), np.asarray(digits.y, dtype=np.float64)
    parts = [part[::every] for part in split_by_pairs(digits.groups)[:most]]
    silos = tuple(Records.of(rows[index], labels[index]) for index in parts)
    convex = Task("convex", _logistic(features.size), silos, diameter=20.0)
    strong = replace(convex, name="strongly convex", l1=1e-4, l2=1e-2, diameter=5.0)
    return convex, strong, made_up(silos=most, records=400 // every)


def made_up(*, silos: int, records: int, features: int = 20, fresh: int = 100_000) -> Task:
    """Return a task whose records are independent draws of one logistic law, for silos and for measuring.

    Args:
        silos: How many.
        records: Of each.
        features: Of a record, uniform on the sphere.
        fresh: Records that the excess is measured on.
    """
    rng = simulated(0, "optimisers/records")
    truth = rng.standard_normal(features)
    truth *= 4 / np.linalg.norm(truth)

    def drawn(n: int) -> Records:
        X = rng.standard_normal((n, features))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return Records.of(X, (rng.random(n) < special.expit(X @ truth)).astype(np.float64))

    parts = tuple(drawn(records) for _ in range(silos))
    return Task("population", _logistic(features), parts, fresh=drawn(fresh), diameter=5.0)


def _logistic(features: int) -> LinearObjective:
    """Return the logistic loss of rows in the unit ball."""
    return LinearObjective(loss=Logistic(), features=features, feature_norm=1.0)
