"""One solve of a regularised logistic loss, with noise in the objective or on the solution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec
import numpy as np

from tacit.errors import ParameterError
from tacit.federation import Ask, Batch, Full, Step
from tacit.learning.algorithms.base import (
    UNMIXED,
    Follow,
    Kinds,
    MakeStatistic,
    Method,
    Problem,
    check_optional,
    other_loss,
)
from tacit.learning.losses import Logistic
from tacit.learning.objective import Objective
from tacit.learning.signed import SignedRow
from tacit.means import DiscreteGaussianNoise, Estimator, GammaNoise, NoisyMinimum, PerturbedMinimum
from tacit.numerics import Array, Regularizer
from tacit.privacy import Relation, TrustModel

__all__ = ["ObjectivePerturbation", "OutputPerturbation"]

_STATISTICS: Mapping[str, MakeStatistic] = MappingProxyType({"signed-row": SignedRow})

_DISTANCE = 30.0
"""Norm of a solution for rows of norm at most 1 that the penalty is made for, as public data sets have it."""

_FIRM = 3.0
"""Strength over the noise on a gradient, for noise on a solution: about the best on breast-cancer, german,
digits-odd-even and adult alike, however many records and features there are (docs/how-to/perturbation.md)."""

_PLAIN = 1.0
"""Strength without noise: that of C = 1 in scikit-learn."""

_SHORT = 1e-6
"""A gradient of that many rows is as good as none."""

_LEVEL = {Relation.REPLACE_ONE: 2.5}
"""Strength times epsilon from which on logistic loss costs no more than a Gaussian release; else 1."""

_OUTPUT = 50.0
"""Multiplier of the noise on a solution over that in the objective: it takes 1/5000 of what is spent."""


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

    trusts: ClassVar[tuple[TrustModel, ...]] = UNMIXED
    why_no_sums: ClassVar[str] = "silos send minima of their own, whose noise is no share of that of a sum"
    statistics: ClassVar[Mapping[str, MakeStatistic]] = _STATISTICS
    clip_share: ClassVar[float] = 1.0
    """No gradient of a row is longer than the row: shorter rows have the same labels, and more noise."""

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

    def why_no_regularizer(self, objective: Objective) -> str:  # noqa: ARG002 - of none
        """Return that it has a penalty of its own."""
        return "its price rests on a penalty of its own, the option strength"

    def _check(self, problem: Problem) -> None:
        """Refuse what the price of a minimum is not known for."""
        if not isinstance(self.batch, Full):
            raise ParameterError(
                f"batch must be 'full' for a minimum, which is that of all units; got {self.batch!r}."
            )
        if not isinstance(problem.loss, Logistic):
            raise other_loss(problem, needs="a perturbed minimum needs the logistic loss of two classes")
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

    def _estimator(self, problem: Problem, fields: Any) -> Estimator:
        """Return the estimator with the fields that every mean gets."""
        made = self._make(problem, fields, tolerance=self.tolerance or 1.0)
        if self.tolerance is not None:
            return made
        # Prices are about all rows, of which under add-remove there may be twice as many as are planned.
        return msgspec.structs.replace(made, tolerance=max(_SHORT, made.least(2 * problem.rows)))

    def _make(self, problem: Problem, fields: Any, *, tolerance: float) -> NoisyMinimum | PerturbedMinimum:
        """Return it for a tolerance."""
        raise NotImplementedError


class ObjectivePerturbation(_Perturbation, frozen=True, kw_only=True, tag="objective-perturbation"):
    """A logistic regression with a random linear term in its objective (Chaudhuri et al. 2011).

    One round. The solution costs what one sum of gradients with that noise would, and has less of it in every
    direction in which the data vary: the most accurate of what asks once, as soon as there are many more
    records than features. Silos that solve for themselves each pay for their own noise and penalty: for local
    trust, take another method. There is no exact noise for it.

    Attributes:
        rounds: 1.
        batch: All units, and no others.
        strength: Of the penalty (strength / 2) |w|^2 on the sum of losses, for rows of norm at most 1; None
            is the least that the price of one Gaussian release allows (1 / epsilon; 2.5 / epsilon under
            replace-one), or k z sqrt(d) / 30 if that is more, for d parameters, noise z, and k = 2 under
            replace-one and else 1: then the noise alone takes a solution about 30 away.
        tolerance: Norm of the gradient that a solution may have, in rows; None is 1e-6, or what rounding
            allows.
        pure: Whether the length of the linear term has a Gamma law in place of that of a Gaussian vector:
            for a pure epsilon. It is sqrt(d) times as long, and the default strength for it k z, or
            k z d / 30 if that is more.
    """

    pure: bool = False

    paper: ClassVar[str] = "Chaudhuri, Monteleoni and Sarwate (2011); Kifer, Smith and Thakurta (2012)"

    @property
    def pure_noise(self) -> bool:
        """Whether its noise has a pure epsilon."""
        return self.pure

    def _make(self, problem: Problem, fields: Any, *, tolerance: float) -> PerturbedMinimum:
        if isinstance(fields["noise"], DiscreteGaussianNoise):
            raise ParameterError(
                "noise must be 'gaussian' for the algorithm 'objective-perturbation', whose proofs need a "
                "random linear term that has a density, got 'discrete-gaussian'; 'output-perturbation' and "
                "'preconditioned' have exact noise."
            )
        protection, scale = problem.protection, problem.protection.multiplier * _moved(problem)
        z = protection.multiplier
        if self.pure:
            # A Gamma length is about d scales, and the determinant is free from one scale on.
            least, long = scale, scale * problem.dim
            fields = {**fields, "noise": GammaNoise(z) if z else fields["noise"]}
        else:
            # A hundredth of the level is left to the noise on the solution.
            least = _LEVEL.get(protection.neighbours.relation, 1.0) / (0.99 * protection.epsilon)
            long = scale * math.sqrt(problem.dim)
        return PerturbedMinimum(
            strength=self.strength or (max(least, long / _DISTANCE) if z else _PLAIN),
            tolerance=tolerance,
            output=_OUTPUT * z or 1.0,
            **fields,
        )


class OutputPerturbation(_Perturbation, frozen=True, kw_only=True, tag="output-perturbation"):
    """Noise on the solution of a regularised logistic regression (Chaudhuri et al. 2011).

    One round, and nothing is assumed of the solver but a short gradient; noise is exact where it is asked for
    on a grid. All directions get the noise that the least curved one needs, so that other methods are more
    accurate (docs/how-to/perturbation.md).

    Attributes:
        rounds: 1.
        batch: All units, and no others.
        strength: Of the penalty (strength / 2) |w|^2 on the sum of losses, for rows of norm at most 1; None
            is 3 k z for noise z, and k = 2 under replace-one and else 1: then every coordinate of a solution
            gets noise of deviation 1/3.
        tolerance: Norm of the gradient that a solution may have, in rows; None is 1e-6, or what rounding
            allows.
    """

    paper: ClassVar[str] = "Chaudhuri, Monteleoni and Sarwate (2011)"

    def _make(self, problem: Problem, fields: Any, *, tolerance: float) -> NoisyMinimum:
        z = problem.protection.multiplier
        chosen = _FIRM * z * _moved(problem) if z else _PLAIN
        return NoisyMinimum(strength=self.strength or chosen, tolerance=tolerance, **fields)


def _radius(problem: Problem) -> float:
    """Return the norm that rows are clipped to: that of features, or less for shorter gradients."""
    return min(problem.feature_norm, problem.radius)


def _moved(problem: Problem) -> int:
    """Return by how many rows' worth one unit moves a gradient."""
    return 2 if problem.protection.neighbours.relation is Relation.REPLACE_ONE else 1
