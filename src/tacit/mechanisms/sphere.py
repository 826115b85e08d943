"""Private unit vectors: PrivUnit, its Gaussian surrogate, and one sign of a random hemisphere.

All three tilt a law that everybody knows towards the vector that is held, by two densities only. PrivUnit and
PrivUnitG send real numbers, which are for simulation: floating point leaks (Mironov 2012), and their price
takes arithmetic for exact. A hemisphere report is a seed and a bit, and is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from tacit.errors import ParameterError, check_count
from tacit.mechanisms.randomized_response import BinaryRandomizedResponse
from tacit.numerics import Array, as_rows, row_norms, settle

__all__ = [
    "HIGHEST_UNIT_LEVEL",
    "Cap",
    "PrivUnit",
    "PrivUnitG",
    "ball_to_sphere",
    "draw_directions",
    "hemisphere_scale",
]

HIGHEST_UNIT_LEVEL = 256.0
"""Above this level of a private unit vector, the tail beyond its cap may be below the smallest of floats."""

_MOST_LOGIT = 30.0
"""Of the probability of the cap: reports outside of it must still be drawn, by 53 bits."""

_UNIT = 1e-6
"""How far a norm may be from 1 before a vector is refused."""


class Cap(NamedTuple):
    """Parameters of PrivUnit or PrivUnitG.

    Attributes:
        prob: Probability p of a report on the side of the vector held, >= 1/2.
        measure: Probability q of that side under the base law.
        edge: Least inner product gamma on that side; in standard deviations (zeta) for the surrogate.
        scale: m, the mean of the inner product: reports are divided by it.
        second_moment: Mean of the squared inner product.
    """

    prob: float
    measure: float
    edge: float
    scale: float
    second_moment: float


def _log_q(epsilon: float, logit_p: float) -> float:
    """Logarithm of the measure that spends exactly epsilon: p (1 - q) = e^epsilon q (1 - p)."""
    return -float(np.logaddexp(0.0, epsilon - logit_p))


def _sphere_cap(dim: int, epsilon: float, logit_p: float) -> Cap:
    """Return the cap of PrivUnit for a probability of the cap.

    Everything is computed from the small tail t = (1 - gamma) / 2: 1 - gamma^2 = 4 t (1 - t).
    """
    a = (dim - 1) / 2
    p, q = float(special.expit(logit_p)), math.exp(_log_q(epsilon, logit_p))
    t = float(special.betaincinv(a, a, q))
    log_c = a * (math.log(4) + math.log(t) + math.log1p(-t)) - (dim - 2) * math.log(2)
    c = math.exp(log_c - math.log(dim - 1) - float(special.betaln(a, a)))  # E[<u, v>; cap]
    edge = 1 - 2 * t
    # By parts: E[<u, v>^2; cap] = (q + (d - 1) gamma c) / d.
    inside = (q + (dim - 1) * edge * c) / dim
    second = p / q * inside + (1 - p) / (1 - q) * max(1 / dim - inside, 0.0)
    return Cap(p, q, edge, c * (p / q - (1 - p) / (1 - q)), second)


def _gaussian_cap(dim: int, epsilon: float, logit_p: float) -> Cap:
    """Return the half-line of PrivUnitG, for coordinates of variance 1 / d."""
    p, log_q = float(special.expit(logit_p)), _log_q(epsilon, logit_p)
    q, zeta = math.exp(log_q), -float(special.ndtri_exp(log_q))
    # phi / q by logarithms: both underflow together.
    density = math.exp(-(zeta**2) / 2 - math.log(2 * math.pi) / 2)
    ratio = math.exp(-(zeta**2) / 2 - math.log(2 * math.pi) / 2 - log_q)
    scale = (p * ratio - (1 - p) * density / (1 - q)) / math.sqrt(dim)
    second = p * (1 + zeta * ratio) + (1 - p) * (1 - zeta * density / (1 - q))
    return Cap(p, q, zeta, scale, second / dim)


_CAPS = {"sphere": _sphere_cap, "gaussian": _gaussian_cap}


@lru_cache(maxsize=256)
def _best_cap(dim: int, epsilon: float, kind: str) -> Cap:
    """Return the cap with the least error: that of the largest scale, or nearly so for the surrogate."""
    build = _CAPS[kind]

    def error(logit_p: float) -> float:
        return _mse(build(dim, epsilon, logit_p), dim, kind)

    found = scipy.optimize.minimize_scalar(
        error, bounds=(0.0, min(epsilon, _MOST_LOGIT)), method="bounded", options={"xatol": 1e-12}
    )
    return build(dim, epsilon, float(found.x))


def _mse(cap: Cap, dim: int, kind: str) -> float:
    """Mean squared error of a report on a unit vector."""
    norm = cap.second_moment + (dim - 1) / dim if kind == "gaussian" else 1.0
    return norm / cap.scale**2 - 1


@dataclass(frozen=True, slots=True)
class _TwoLevels:
    """What PrivUnit and its surrogate share: a cap, on which reports are e^epsilon times as dense."""

    dim: int
    epsilon: float
    cap_prob: float | None = None

    _kind: ClassVar[Literal["sphere", "gaussian"]] = "sphere"

    def __post_init__(self) -> None:
        settle(self)
        _check(self.dim, self.epsilon, self.cap_prob)

    @property
    def cap(self) -> Cap:
        """The parameters."""
        if self.cap_prob is None:
            return _best_cap(self.dim, self.epsilon, self._kind)
        return _CAPS[self._kind](self.dim, self.epsilon, float(special.logit(self.cap_prob)))

    @property
    def mse(self) -> float:
        """Mean squared error of one report, whatever the vector: the mean squared norm, minus 1."""
        return _mse(self.cap, self.dim, self._kind)

    def log_density(self, cosines: npt.ArrayLike) -> Array:
        """Log-density of reports relative to the base law.

        Args:
            cosines: Of PrivUnit, of a report with the vector held; of the surrogate, the component of a
                report along that vector over its standard deviation.

        Returns:
            The shape of `cosines`.
        """
        cap = self.cap
        high = math.log(cap.prob) - math.log(cap.measure)
        low = math.log1p(-cap.prob) - math.log1p(-cap.measure)
        return np.where(np.asarray(cosines) >= cap.edge, high, low)


@dataclass(frozen=True, slots=True)
class PrivUnit(_TwoLevels):
    """A report on the sphere, in the cap around the vector held with a larger probability.

    Attributes:
        dim: Dimension of the vectors, >= 2.
        epsilon: Pure level of one report, under replace-one; in (0, 256].
        cap_prob: Probability p of the cap, from 1/2 to 1 / (1 + e^-epsilon); None: the one of least error.

    Guarantee:
        The density of a report takes two values, whose ratio is e^epsilon exactly (in exact arithmetic).

    Example:
        >>> unit = PrivUnit(10, 1.0)
        >>> round(unit.cap.scale, 6), round(unit.cap.edge, 6), round(unit.mse, 6)
        (0.128318, 0.128318, 59.732635)

    Reference:
        Bhowmick et al. (2018), arXiv:1812.00984; optimal parameters by Asi, Feldman and Talwar (2022);
        Lowy (2023), Algorithm 12, prints a plus in m where a minus belongs (docs/errata.md).
    """

    @property
    def squared_norm(self) -> float:
        """Squared norm of every report."""
        return 1 / self.cap.scale**2

    def sample(self, rows: npt.ArrayLike, rng: np.random.Generator) -> Array:
        """Randomize unit vectors.

        Args:
            rows: Shape (n, dim), of norm 1 within 1e-6.
            rng: Source of the randomness.

        Returns:
            Shape (n, dim), float64, unbiased, of norm 1 / m.

        Raises:
            ParameterError: Another shape or dtype, or a row of another norm.
        """
        v = _unit_rows(rows, self.dim)
        cap, a = self.cap, (self.dim - 1) / 2
        inside = rng.random(len(v)) < cap.prob
        u = 1.0 - rng.random(len(v))  # never 0
        # The tail t of the cap and of its complement, each from the small end of the beta law.
        t = special.betaincinv(a, a, u * np.where(inside, cap.measure, 1 - cap.measure))
        cosine = np.where(inside, 1 - 2 * t, 2 * t - 1)
        across = _orthogonal(v, rng)
        across /= row_norms(across)[:, None]
        report = cosine[:, None] * v + (2 * np.sqrt(t * (1 - t)))[:, None] * across
        return np.asarray(report / cap.scale)


@dataclass(frozen=True, slots=True)
class PrivUnitG(_TwoLevels):
    """PrivUnit for Gaussian reports: nearly as accurate, and cheap in any dimension.

    Attributes:
        dim: Dimension of the vectors, >= 2.
        epsilon: Pure level of one report, under replace-one; in (0, 256].
        cap_prob: Probability p of the far side; None: the one of least error.

    Example:
        >>> round(PrivUnitG(100, 1.0).mse, 5)
        633.00166

    Reference:
        Asi, Feldman and Talwar (2022), ICML.
    """

    _kind: ClassVar[Literal["sphere", "gaussian"]] = "gaussian"

    @property
    def squared_norm(self) -> float:
        """Mean squared norm of a report."""
        return self.mse + 1

    def sample(self, rows: npt.ArrayLike, rng: np.random.Generator) -> Array:
        """Randomize unit vectors, shape (n, dim); as `PrivUnit.sample`, but of a random norm."""
        v, cap = _unit_rows(rows, self.dim), self.cap
        inside = rng.random(len(v)) < cap.prob
        log_u = np.log(1.0 - rng.random(len(v)))
        tail = special.ndtri_exp(log_u + np.where(inside, math.log(cap.measure), math.log1p(-cap.measure)))
        along = np.where(inside, -tail, tail)
        report = along[:, None] * v + _orthogonal(v, rng)
        return np.asarray(report / (math.sqrt(self.dim) * cap.scale))


def hemisphere_scale(dim: int, epsilon: float) -> float:
    """Return the norm B of a report on the unit ball by the sign of a random hemisphere.

    Args:
        dim: Dimension d, >= 1.
        epsilon: Pure level of the sign, in [2**-30, 30].

    Returns:
        sqrt(pi) Gamma((d + 1) / 2) / (Gamma(d / 2) tanh(epsilon / 2)): the report (sign) B u for a uniform
        direction u is unbiased, and its mean squared error is B^2 - ||x||^2.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> round(hemisphere_scale(10, 1.0), 10)
        8.3650466656

    Reference:
        Duchi, Jordan and Wainwright (2018), J. Am. Stat. Assoc. 113(521).
    """
    check_count("dim", dim)
    gap = BinaryRandomizedResponse(epsilon).gap
    return (
        math.sqrt(math.pi) * math.exp(float(special.gammaln((dim + 1) / 2) - special.gammaln(dim / 2))) / gap
    )


def draw_directions(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Draw n uniform points of the unit sphere of R^dim, shape (n, dim)."""
    points = rng.standard_normal((n, dim))
    # A vector of zeros has probability 0, and still must not become NaN.
    points[:, 0] += points[:, 0] == 0
    return np.asarray(points / row_norms(points)[:, None])


def ball_to_sphere(rows: npt.ArrayLike) -> Array:
    """Lift vectors of the unit ball to the unit sphere of one more dimension.

    Args:
        rows: Shape (n, d), of norm at most 1 (a little more by rounding counts as 1).

    Returns:
        Shape (n, d + 1), float64: the vector, then sqrt(1 - norm^2); of norm 1. An unbiased report on the
        lifted vector is one on the vector, once its last entry is dropped.

    Raises:
        ParameterError: Another shape or dtype.

    Example:
        >>> ball_to_sphere([[0.6, 0.0]]).round(12).tolist()
        [[0.6, 0.0, 0.8]]

    Reference:
        Derived here: the map keeps the first d entries, and an unbiased report has unbiased entries.
    """
    x = as_rows("rows", rows).astype(np.float64)
    norm = row_norms(x)
    # (1 - norm)(1 + norm) keeps the digits that 1 - norm**2 loses near the sphere.
    last = np.sqrt(np.maximum((1 - norm) * (1 + norm), 0.0))
    lifted = np.concatenate([x, last[:, None]], axis=1)
    return np.asarray(lifted / row_norms(lifted)[:, None])


def _check(dim: int, epsilon: float, cap_prob: float | None) -> None:
    """Refuse parameters without a cap."""
    check_count("dim", dim, low=2)
    if not 0 < epsilon <= HIGHEST_UNIT_LEVEL:
        raise ParameterError(f"epsilon must be in (0, 256], got {epsilon!r}.")
    if cap_prob is not None and not 0.5 <= cap_prob <= special.expit(epsilon):
        raise ParameterError(f"cap_prob must be from 1/2 to 1 / (1 + e^-epsilon), got {cap_prob!r}.")


def _unit_rows(rows: npt.ArrayLike, dim: int) -> Array:
    """Read unit vectors, and bring their norms to 1 in float64: what is left would tell inputs apart."""
    v = as_rows("rows", rows).astype(np.float64)
    norms = row_norms(v)
    if v.shape[1] != dim or not np.all(np.abs(norms - 1) <= _UNIT):
        raise ParameterError(f"rows must be unit vectors of shape (n, {dim}), got shape {v.shape}.")
    return np.asarray(v / norms[:, None])


def _orthogonal(v: Array, rng: np.random.Generator) -> Array:
    """Draw standard normal vectors orthogonal to unit vectors, shape (n, dim)."""
    g = rng.standard_normal(v.shape)
    g -= (g * v).sum(axis=1, keepdims=True) * v
    return g
