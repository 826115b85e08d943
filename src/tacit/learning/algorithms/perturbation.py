"""Perturbed minima: one solve of a regularised logistic loss, with the noise on the solution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import msgspec
import numpy as np

from tacit.errors import ParameterError
from tacit.federation import Ask, Batch, Full, Step
from tacit.learning.algorithms.base import Follow, Kinds, MakeStatistic, Method, Problem, check_optional
from tacit.learning.losses import Logistic
from tacit.learning.signed import SignedRow
from tacit.means import Estimator, NoisyMinimum
from tacit.numerics import Array, Regularizer
from tacit.privacy import Relation

__all__ = ["OutputPerturbation"]

_STATISTICS: Mapping[str, MakeStatistic] = MappingProxyType({"signed-row": SignedRow})

_DISTANCE = 30.0
"""Norm of a solution for rows of norm at most 1 that the penalty is made for, as public data sets have it."""

_PLAIN = 1.0
"""Strength without noise: that of C = 1 in scikit-learn."""

_SHORT = 1e-6
"""A gradient of that many rows is as good as none."""


class _Perturbation(Method, frozen=True, kw_only=True, tag=None):
    """What methods share that solve once.

    Attributes:
        rounds: 1.
        batch: All units, and no others.
        strength: Of the penalty (strength / 2) |w|^2 on the sum of losses, for rows of norm at most 1; None
            chooses it from public facts. More of it takes less noise, and shortens the solution.
        tolerance: Norm of the gradient that a solution may have, in rows; None is 1e-6, or what rounding
            allows.
    """

    rounds: int | None = 1
    batch: Batch = Full()
    strength: float | None = None
    tolerance: float | None = None

    statistics: ClassVar[Mapping[str, MakeStatistic]] = _STATISTICS
    clip_share: ClassVar[float] = 1.0
    """No gradient of a row is longer than the row: shorter rows have the same labels, and more noise."""
    own_penalty: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(strength=self.strength, tolerance=self.tolerance)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the minimum, of what its price is known for."""
        self._check(problem)
        measure = problem.measure(
            "signed-row", lambda **fields: self._estimator(problem, fields), max_radius=_radius(problem)
        )
        return ((Step(measures=(measure,), batch=self.batch), rounds),)

    def error_bound(self, problem: Problem, rounds: int) -> float:  # noqa: ARG002 - as algorithms define it
        """Return infinity: there is one round, and nothing to choose."""
        return math.inf

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse more than one round, and what the price of a minimum is not known for."""
        _ = problem.known_smoothness
        self._check(problem)
        if rounds != 1:
            raise ParameterError(f"rounds must be 1 for a minimum, which is asked once; got {rounds}.")

    def _check(self, problem: Problem) -> None:
        """Refuse what the price of a minimum is not known for."""
        if not isinstance(self.batch, Full):
            raise ParameterError(
                f"batch must be 'full' for a minimum, which is that of all units; got {self.batch!r}."
            )
        if not isinstance(problem.loss, Logistic):
            raise ParameterError(
                "a perturbed minimum needs the logistic loss of two classes, got "
                f"{type(problem.loss).__name__ if problem.loss else 'another objective'}."
            )
        if not math.isfinite(problem.feature_norm):
            raise ParameterError("a perturbed minimum needs features of known norm, got infinity.")

    def run(
        self,
        ask: Ask,
        w: Array,
        *,
        problem: Problem,
        rounds: int,  # noqa: ARG002 - one
        prox: Regularizer,  # noqa: ARG002 - it has a penalty of its own
        follow: Follow,
    ) -> Array:
        """Ask once, and return the minimum: averaged over silos, where each of them solves for itself."""
        radius = _radius(problem)
        (found,) = ask(0, {}, (radius,))
        w = np.asarray(found / radius**2)
        follow(0, w)
        return w

    def _estimator(self, problem: Problem, fields: Mapping[str, object]) -> Estimator:
        """Return the estimator with the fields that every mean gets."""
        raise NotImplementedError


class OutputPerturbation(_Perturbation, frozen=True, kw_only=True, tag="output-perturbation"):
    """Noise on the solution of a regularised logistic regression (Chaudhuri et al. 2011).

    One round, and nothing is assumed of the solver but a short gradient; noise is exact where it is asked for
    on a grid. All directions get the noise that the least curved one needs, so that other methods are more
    accurate.

    Attributes:
        rounds: 1.
        batch: All units, and no others.
        strength: Of the penalty (strength / 2) |w|^2 on the sum of losses, for rows of norm at most 1; None
            is (n (k z)^2 / (2 D^2))^(1/3) for n rows and noise z, with D = 30, and k = 2 under replace-one
            and else 1.
        tolerance: Norm of the gradient that a solution may have, in rows; None is 1e-6, or what rounding
            allows.
    """

    paper: ClassVar[str] = "Chaudhuri, Monteleoni and Sarwate (2011)"

    def _estimator(self, problem: Problem, fields: Mapping[str, object]) -> Estimator:
        """Return the noisy minimum.

        The default strength has the least strength D^2 / 2 + n s^2 / 8 for noise of deviation s = k z /
        strength on a solution of norm D: the first is what the penalty costs, the second what the noise does,
        where losses are most curved.
        """
        noise = problem.protection.multiplier * _moved(problem)
        chosen = math.cbrt(problem.rows * noise**2 / (2 * _DISTANCE**2)) if noise else _PLAIN
        made = NoisyMinimum(strength=self.strength or chosen, tolerance=self.tolerance or 1.0, **fields)  # type: ignore[arg-type]
        if self.tolerance is not None:
            return made
        return msgspec.structs.replace(made, tolerance=max(_SHORT, made.least(2 * problem.rows)))


def _radius(problem: Problem) -> float:
    """Return the norm that rows are clipped to: that of features, or less for shorter gradients."""
    return min(problem.feature_norm, problem.radius)


def _moved(problem: Problem) -> int:
    """Return by how many rows' worth one unit moves a gradient."""
    return 2 if problem.protection.neighbours.relation is Relation.REPLACE_ONE else 1
