"""Transforms T(lambda): how strongly a decoder discounts what several parties have sent (Jiang 2025).

The linear family T(lambda) = 1 + rho (lambda - 1) goes from plain averaging, rho = 0, to least squares,
rho = 1. The best T for a given correlation R is the linear one with rho = R / (n - 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from tacit.errors import ParameterError, check_choice, check_count, check_finite
from tacit.numerics import Array, settle

__all__ = [
    "Linear",
    "Transform",
    "TransformName",
    "advised_transform",
    "check_transform",
    "transform",
    "transform_values",
]

TransformName = Literal["one", "avg", "max", "opt"]
"""Names in the literature: `one` (T = 1), `avg`, `max` (T(m) = m), `opt` (known correlation)."""


@dataclass(frozen=True, slots=True)
class Linear:
    """T(lambda) = 1 + rho (lambda - 1).

    Attributes:
        rho: Slope, finite; > -1 / (n - 1) for n parties.

    Example:
        >>> Linear(0.5)(3.0)
        2.0
    """

    rho: float

    def __post_init__(self) -> None:
        settle(self)
        check_finite("rho", self.rho)

    def __call__(self, values: Array | float) -> Array | float:
        """Return T, elementwise."""
        # In this form T(lambda) = lambda exactly at rho = 1.
        return (1 - self.rho) + self.rho * values


Transform: TypeAlias = Linear | Callable[[Array], Array]
"""A linear transform, or any function that is positive on (0, n]; scaling it changes nothing."""


def transform(name: TransformName, n: int, *, correlation: float | None = None) -> Linear:
    """Make a transform of the linear family by name.

    Args:
        name: `one`: rho = 0. `avg`: rho = n / (2 (n - 1)), the default of a server that knows nothing of the
            correlation. `max`: rho = 1, for (nearly) identical vectors only. `opt`: rho = R / (n - 1).
        n: Number of parties that took part, >= 1. With one party every name means T = 1.
        correlation: R in (-1, n - 1], for `opt` and only there; see `correlation_ratio`.

    Returns:
        The transform.

    Raises:
        ParameterError: unknown name, `n` < 1, or `correlation` missing, superfluous or out of range. R = -1
            says that the mean is zero.

    Example:
        >>> transform("avg", 11), transform("opt", 11, correlation=5.0)
        (Linear(rho=0.55), Linear(rho=0.5))

    Reference:
        Jiang (2025), Eq 2.11.
    """
    check_choice("name", name, get_args(TransformName))
    check_count("n", n)
    if (correlation is None) == (name == "opt"):
        raise ParameterError("correlation must be given for the transform opt and for no other.")
    if correlation is not None:
        slack = 1e-9 * max(n - 1, 1)
        if not -1 < correlation <= n - 1 + slack:
            raise ParameterError(f"correlation must be in (-1, n - 1] = (-1, {n - 1}], got {correlation!r}.")
        correlation = min(correlation, float(n - 1))
    if n == 1:
        return Linear(0.0)
    match name:
        case "one":
            return Linear(0.0)
        case "avg":
            return Linear(n / (2 * (n - 1)))
        case "max":
            return Linear(1.0)
        case "opt":
            assert correlation is not None  # noqa: S101 - checked above; tells the type checker
            return Linear(correlation / (n - 1))


def check_transform(T: Transform, n: int) -> None:
    """Refuse a linear transform that is not positive at 1 and n, and what cannot be called.

    Other values are checked where they are used, by `transform_values`.

    Raises:
        ParameterError: T is not a transform for n parties.
    """
    if not callable(T):
        raise ParameterError(f"transform must be Linear or a function, got {type(T).__name__}.")
    if isinstance(T, Linear) and not T(float(n)) > 0:
        low = -1 / (n - 1) if n > 1 else -math.inf
        raise ParameterError(f"rho must be > -1 / (n - 1) = {low:.6g} for {n} parties, got {T.rho!r}.")


def transform_values(T: Transform, values: Array) -> Array:
    """Evaluate T where it must be positive.

    Args:
        T: The transform.
        values: Shape (m,), counts or eigenvalues > 0.

    Returns:
        Shape (m,), float64.

    Raises:
        ParameterError: T has another shape there, or is not finite and > 0 everywhere.
    """
    found = np.asarray(T(values), dtype=np.float64)
    if found.shape != values.shape:
        raise ParameterError(f"transform must keep the shape {values.shape}, got {found.shape}.")
    bad = ~(np.isfinite(found) & (found > 0))
    if np.any(bad):
        where = float(values[bad].flat[0])
        raise ParameterError(f"transform must be finite and > 0 on the spectrum, is not at {where:.6g}.")
    return found


def advised_transform(correlation: float | None, parties: int) -> Literal["one", "avg", "opt"]:
    """Return the transform for a correlation R, or for none that is known.

    Args:
        correlation: R in [-1, parties - 1], or None.
        parties: Number n of parties, >= 1.

    Returns:
        `opt` for a known R above -1, `avg` for an unknown one, `one` (Rand-k) for R = -1: the rows then add
        up to zero, and the matched transform degenerates.

    Example:
        >>> advised_transform(4.5, 10), advised_transform(None, 10)
        ('opt', 'avg')
    """
    check_count("parties", parties)
    if correlation is None:
        return "avg"
    return "opt" if correlation > -1 + 1e-9 else "one"
