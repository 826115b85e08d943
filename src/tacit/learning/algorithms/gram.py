"""What methods share that ask for one noisy Gram matrix of the features, and then for gradients."""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import ParameterError, check_probability
from tacit.federation import AnyStep, Ask, Batch, Full, Step
from tacit.learning.algorithms.base import Method, Problem
from tacit.learning.moments import MOST_FEATURES, gram_matrix, gram_size
from tacit.numerics import Array
from tacit.privacy import TrustModel

__all__ = ["GramMethod"]


class GramMethod(Method, frozen=True, kw_only=True, tag=None):
    """A method whose first round asks for a Gram matrix, and all others for gradients.

    Attributes:
        batch: Units per gradient.
        share: Of what the run may reveal, as 1 / multiplier^2, spent on the Gram matrix, in (0, 1).
    """

    batch: Batch = Full()
    share: float = 0.3

    trusts: ClassVar[tuple[TrustModel, ...]] = (TrustModel.LOCAL, TrustModel.AGGREGATE, TrustModel.CENTRAL)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_probability("share", self.share, low_open=True, high_open=True)

    def error_bound(self, problem: Problem, rounds: int) -> float:  # noqa: ARG002 - as algorithms define it
        """Return infinity: no bound is known that the noise of the Gram matrix would not spoil."""
        return math.inf

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse a single round, features without a public norm, and too many of them."""
        _ = problem.known_smoothness
        self._check_features(problem)
        if rounds < 2:
            raise ParameterError(
                f"rounds must be at least 2: the first asks for the Gram matrix; got {rounds}."
            )

    def _check_features(self, problem: Problem) -> None:
        """Refuse features without a public norm, and too many of them."""
        if problem.features <= 0:
            raise ParameterError(
                "a Gram matrix needs a linear model, and this one has no matrix of features."
            )
        if problem.features > MOST_FEATURES:
            raise ParameterError(
                f"a Gram matrix needs a linear model of at most {MOST_FEATURES} features, got "
                f"{problem.features}."
            )
        if not math.isfinite(problem.feature_norm):
            raise ParameterError(
                "a Gram matrix needs features of known norm, and nothing bounds these: bounds make it known, "
                "and a moment does not."
            )

    def _asked(
        self, problem: Problem, rounds: int, *, gram: str, gradient: str, more: int = 0
    ) -> tuple[tuple[AnyStep, int], ...]:
        """Return the kinds of rounds: a Gram matrix, then mean gradients, each with its share of the budget.

        Args:
            problem: Public facts.
            rounds: Of the run.
            gram: The statistic of the first round.
            gradient: That of the others.
            more: How many features rows have there that the model does not know.
        """
        gradients = max(rounds - 1, 1)
        each = (1 - self.share) / gradients
        top = max(self.share, each)
        matrix = problem.measure(
            gram,
            dim=gram_size(problem.features + more),
            max_radius=problem.feature_norm**2,
            share=self.share / top,
            acute=True,
        )
        slope = problem.measure(
            gradient,
            dim=problem.dim + more * (problem.dim // problem.features),
            share=each / top,
        )
        return (Step(measures=(matrix,)), 1), (Step(measures=(slope,), batch=self.batch), gradients)

    def _gram(self, ask: Ask, problem: Problem, gram: str, more: int = 0) -> tuple[Array, float]:
        """Return what the first round says, about the mean of x x^T, and the deviation of a coordinate."""
        (coordinates,) = ask(0, {}, (problem.feature_norm**2,))
        noise = math.sqrt(problem.errors.get(gram, 0.0) / coordinates.size)
        return gram_matrix(coordinates, problem.features + more), noise
