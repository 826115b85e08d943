"""The two regressions that the shuffled methods are measured on: one curved about its minimum, one flat."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import special

from tacit.numerics import Array
from tacit.randomness import simulated

__all__ = ["DIM", "Curved", "Data", "Flat", "RegressionTask"]

DIM = 10
_SCALE = 0.2  # of the Laplace residuals
_FAR = 2.0  # targets that no point of the unit ball reaches


@dataclass(frozen=True, kw_only=True)
class Data:
    """Records of one seed.

    Attributes:
        features: Unit vectors in all directions, shape (n, d).
        targets: Shape (n,).
        truth: Minimiser of the expected loss, shape (d,).
    """

    features: Array
    targets: Array
    truth: Array


class RegressionTask(ABC):
    """A law of records, and how far the expected absolute loss of a point is above its minimum.

    Attributes:
        name: Of the streams that records are drawn from.
        length: Norm of the minimiser.
    """

    name: str
    length: float

    def drawn(self, n: int, seed: int) -> Data:
        """Draw n records."""
        rng = simulated(seed, self.name, n)
        features = rng.normal(size=(n, DIM))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        truth = rng.normal(size=DIM)
        truth *= self.length / np.linalg.norm(truth)
        return Data(features=features, targets=self.targets(features @ truth, rng), truth=truth)

    @abstractmethod
    def targets(self, predictions: Array, rng: np.random.Generator) -> Array:
        """Return targets of records that the truth predicts so, shape (n,)."""

    @abstractmethod
    def excess(self, w: Array, truth: Array) -> float:
        """Return the expected loss at `w` less the smallest one in the unit ball."""


class Curved(RegressionTask):
    """Laplace residuals about a truth inside of the ball: the expected loss is curved about its minimum."""

    name = "shuffled-sco/data"
    length = 0.5

    def targets(self, predictions: Array, rng: np.random.Generator) -> Array:
        """Return the predictions with residuals."""
        return np.asarray(predictions + rng.laplace(scale=_SCALE, size=len(predictions)))

    def excess(self, w: Array, truth: Array) -> float:
        """Return it exactly but for quadrature.

        For Laplace residuals of scale b the expected loss of a residual that is off by r is |r| + b
        e^(-|r|/b), and b at r = 0. Over all directions r = |w - truth| t, where t has a density prop. to
        (1 - t^2)^((d-3)/2).
        """
        nodes, weights = np.polynomial.legendre.leggauss(200)
        t = (nodes + 1) / 2
        weights = weights * (1 - t * t) ** ((len(w) - 3) / 2)
        r = float(np.linalg.norm(w - truth)) * t
        return float(weights @ (r + _SCALE * np.expm1(-r / _SCALE)) / weights.sum())


class Flat(RegressionTask):
    """Targets that no point of the ball reaches: every record's loss is linear there, the hardest case.

    The minimum lies on the edge of the ball. The Huber loss of threshold 1 has the same gradients, and is
    smooth.
    """

    name = "shuffled-sco/flat"
    length = 1.0

    def targets(self, predictions: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002 - as the other
        """Return 2 with the sign of the prediction."""
        return np.asarray(_FAR * np.sign(predictions))

    def excess(self, w: Array, truth: Array) -> float:
        """Return s (1 - <w, truth>): the mean slope is s = E|t| of a coordinate t of a unit vector."""
        d = len(w)
        slope = math.exp(special.gammaln(d / 2) - special.gammaln((d + 1) / 2)) / math.sqrt(math.pi)
        return slope * (1 - float(w @ truth))
