"""Averaged descent on whitened features: one noisy Gram matrix says how to stretch every record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np

from tacit.errors import check_non_negative, check_positive, check_probability
from tacit.federation import Ask
from tacit.learning.algorithms.base import Follow, Kinds, MakeStatistic, Problem, other_loss
from tacit.learning.algorithms.gram import GramMethod
from tacit.learning.algorithms.preconditioned import Curvature
from tacit.learning.moments import RecordGram
from tacit.learning.whitening import WhitenedGradient
from tacit.numerics import Array, Regularizer

__all__ = ["WhitenedNoisyGD", "Whitening"]


@dataclass(frozen=True)
class Whitening:
    """A symmetric matrix A that makes features about as long in one direction as in any other.

    Attributes:
        values: Eigenvalues of A^-2, all > 0; scaled so that |A x| is about 1 on average.
        vectors: Their eigenvectors, as columns.
        rank: In about how many directions features vary, from 1 to d; those below the noise hardly count.
    """

    values: Array
    vectors: Array
    rank: float

    @classmethod
    def of(cls, gram: Array, *, ridge: float) -> Self:
        """Return the whitening of a noisy mean Gram matrix with eigenvalues E: A^-2 = k (max(E, 0) + ridge).

        Args:
            gram: Shape (d, d), symmetric.
            ridge: Added to eigenvalues, in proportion to their noise; 0 without noise.
        """
        values, vectors = np.linalg.eigh(gram)
        seen = np.maximum(values, 0.0)
        raised = np.maximum(seen + ridge, max(1e-9 * seen.max(), 1e-300))
        rank = max(float((seen / raised).sum()), 1.0)
        return cls(rank * raised, vectors, rank)

    @property
    def matrix(self) -> Array:
        """A, shape (d, d)."""
        return np.asarray((self.vectors / np.sqrt(self.values)) @ self.vectors.T)

    @property
    def inverse(self) -> Array:
        """A^-1, shape (d, d)."""
        return np.asarray((self.vectors * np.sqrt(self.values)) @ self.vectors.T)


class WhitenedNoisyGD(GramMethod, frozen=True, kw_only=True, tag="whitened"):
    """Averaged gradient descent on features that a noisy Gram matrix whitens, for classifications.

    The first round asks for the Gram matrix. From then on a record counts with A x in place of x, scaled to
    the length that features may have: what all records share is shortened and what tells them apart grows,
    over a noise that stays as it was. The model is linear in x, as w = A u for the parameters u of A x.

    Attributes:
        rounds: R; the first asks for the Gram matrix, the others for gradients.
        batch: Units per gradient.
        share: Of what the run may reveal, as 1 / multiplier^2, spent on the Gram matrix, in (0, 1).
        ridge: Added to eigenvalues of the matrix, as a share of the largest of its noise, >= 0.
        distance: About how far a solution is in the whitened features, > 0.
        average: Share of the last iterates that are averaged, in (0, 1].
    """

    rounds: int | None = 101
    share: float = 0.2
    ridge: float = 0.25
    distance: float = 20.0
    average: float = 0.5

    statistics: ClassVar[Mapping[str, MakeStatistic]] = MappingProxyType(
        {"gram": RecordGram, "whitened-gradient": WhitenedGradient}
    )
    clip_share: ClassVar[float] = 0.2
    paper: ClassVar[str] = "after Ganesh, Haghifam, Steinke and Thakurta (2023), for records"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_non_negative("ridge", self.ridge)
        check_positive("distance", self.distance)
        check_probability("average", self.average, low_open=True)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the Gram matrix, then for mean gradients, each with its share of the budget."""
        self._check_features(problem)
        return self._asked(problem, rounds, gram="gram", gradient="whitened-gradient")

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse a regression, a single round, features without a public norm, and too many of them."""
        super().check(problem, rounds)
        if problem.loss is None or not problem.loss.classifies:
            raise other_loss(
                problem,
                needs="the algorithm 'whitened' needs a loss of classes",
                why="it scales every record to one length, and a prediction of a number would change with it",
            )

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the averaged parameters, of x itself."""
        gram, noise = self._gram(ask, problem, "gram")
        white = Whitening.of(gram, ridge=self.ridge * noise * math.sqrt(2 * len(gram)))
        A, back, step = white.matrix, white.inverse, self._step(white, problem, rounds - 1)
        metric = Curvature(white.values / step, white.vectors)
        follow(0, w)
        kept = max(math.ceil((rounds - 1) * self.average), 1)
        total = np.zeros_like(w)
        for r in range(1, rounds):
            at = {"w": _times(back, w), "whitening": A}
            (gradient,) = ask(r, at, (problem.radius,))
            w = metric.prox(prox, w - step * _times(A, gradient), start=w)
            follow(r, w)
            if r >= rounds - kept:
                total += w
        return np.asarray(total / kept)

    def _step(self, white: Whitening, problem: Problem, steps: int) -> float:
        """Return min(k / beta, D / (V sqrt(steps))): rows of one length in k directions are beta / k curved.

        The second is the best for steps that together are D^2 / (2 S) + S V^2 / 2 from the least, S long.
        """
        longest = white.rank / problem.known_smoothness
        noise = math.sqrt(problem.errors.get("whitened-gradient", 0.0))
        return longest if noise == 0 else min(longest, self.distance / (noise * math.sqrt(steps)))


def _times(matrix: Array, w: Array) -> Array:
    """Return the matrix times parameters by feature and output, in their shape."""
    return np.asarray(matrix @ w.reshape(len(matrix), -1)).reshape(w.shape)
