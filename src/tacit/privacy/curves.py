"""Privacy curves: the hockey-stick divergence of a release, as a function of epsilon.

delta(epsilon) = H_a(M(D) || M(D')) = sup_S M(D)(S) - a M(D')(S) with a = e^epsilon, for the worst neighbours.
A curve holds both directions, because under add-remove they differ. Every function here may return more than
the truth, never less. Bounds compose through `tacit.privacy.pld`; this module is about one release, and
`tacit.privacy.curve_sampling` about one on a secret sample.

Source: Zhu, Dong and Wang (2022), arXiv:2106.08567, for dominating pairs and the duality
H_a(Q||P) = 1 - a + a H_{1/a}(P||Q).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_probability, real, shown

__all__ = [
    "LARGEST_MU",
    "LEAST_MU",
    "Curve",
    "Profile",
    "approximate_dp_curve",
    "as_numbers",
    "bounded",
    "discrete_gaussian_curve",
    "discrete_laplace_curve",
    "gaussian_curve",
    "gaussian_deltas",
    "laplace_curve",
    "maximum",
    "minimum",
    "nothing_hidden",
    "pmf_curve",
    "symmetric",
    "total_loss",
    "zcdp_curve",
]

LEAST_MU = 1e-100  # keeps (epsilon / mu)^2 finite; a smaller level is priced as this one
LARGEST_MU = 1e5  # epsilon would be about mu^2 / 2: not a privacy statement, and beyond the search for one

Array = npt.NDArray[np.float64]
Profile = Callable[[Array], Array]
"""Maps epsilon (any sign, any shape) to delta."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Upper bounds on the hockey-stick divergence of one release.

    Attributes:
        forward: Bound for (D, D'); under add-remove and zero-out, D is the data set with the unit.
        backward: Bound for (D', D). The same function under replace-one, where neighbours are symmetric.
        max_loss: No privacy loss exceeds this (pure DP level); infinity where there is no such level.
        atom: A loss at which much of the mass lies, 0 where none does; a grid that holds it is tighter.
    """

    forward: Profile
    backward: Profile
    max_loss: float = math.inf
    atom: float = 0.0

    @property
    def is_symmetric(self) -> bool:
        """Whether both directions share one bound."""
        return self.forward is self.backward

    def delta(self, epsilon: npt.ArrayLike) -> Array:
        """Return the larger delta of both directions at `epsilon`, clipped to [0, 1]."""
        eps = as_numbers("epsilon", epsilon)
        worst = bounded(self.forward, eps)
        return worst if self.is_symmetric else np.maximum(worst, bounded(self.backward, eps))


def as_numbers(name: str, values: npt.ArrayLike) -> Array:
    """Return real numbers from elsewhere as an array of float64; NaN and infinities pass.

    Raises:
        ParameterError: Texts, truth values, complex numbers, integers beyond all floats, or no array.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of several lengths
        raise ParameterError(f"{name} must be an array of numbers, got {shown(values)}.") from error
    if array.dtype.kind in "fiu":
        return array.astype(np.float64, copy=False)
    # Integers of more than 64 bits, and fractions, are objects.
    numbers = [real(name, value) for value in array.ravel().tolist()]
    return np.array(numbers, dtype=np.float64).reshape(array.shape)


def bounded(profile: Profile, epsilon: Array) -> Array:
    """Return a profile clipped to [0, 1]; where it cannot be computed it proves nothing, which is 1."""
    return np.asarray(np.fmax(np.fmin(profile(epsilon), 1.0), 0.0))


def symmetric(profile: Profile, *, max_loss: float = math.inf, atom: float = 0.0) -> Curve:
    """Extend a bound on epsilon >= 0 to all epsilon by duality; both directions are then equal."""

    def extended(epsilon: Array) -> Array:
        at = np.abs(epsilon)
        value = profile(at)
        there = epsilon >= 0
        if there.all():
            return value
        dual = -np.expm1(-at) + np.exp(-at) * value
        return np.where(there, value, dual)

    return Curve(forward=extended, backward=extended, max_loss=max_loss, atom=atom)


def nothing_hidden() -> Curve:
    """Return the curve of a release that claims nothing: delta is 1 at every epsilon."""
    return symmetric(np.ones_like)


def gaussian_curve(mu: float) -> Curve:
    """Return the curve of N(mu, 1) against N(0, 1) (Balle and Wang 2018, arXiv:1805.06530, Theorem 8)."""
    if mu == 0:
        return symmetric(np.zeros_like, max_loss=0.0)
    return symmetric(lambda epsilon: gaussian_deltas(epsilon, np.float64(mu)))


def gaussian_deltas(epsilon: Array, mu: Array | np.float64) -> Array:
    """Return the deltas of N(mu, 1) against N(0, 1), rounded up, for arrays that broadcast.

    Args:
        epsilon: Each >= 0.
        mu: Each > 0.
    """
    level = np.clip(mu, LEAST_MU, LARGEST_MU)
    ratio = epsilon / level
    log_first = special.log_ndtr(level / 2 - ratio)
    log_second = epsilon + special.log_ndtr(-level / 2 - ratio)
    # The difference of two near-equal terms, taken in logs so that a delta of 1e-300 keeps its digits, and
    # widened by what these logs may be off.
    off = 2.0**-50 * (1 - log_first + epsilon + np.abs(log_second - epsilon))
    delta = np.exp(log_first) * -np.expm1(np.minimum(log_second - log_first, 0.0) - off)
    return np.asarray(np.where(mu > LARGEST_MU, 1.0, delta))


def laplace_curve(epsilon0: float) -> Curve:
    """Return the curve of one-dimensional Laplace noise with sensitivity / scale = `epsilon0`."""

    def profile(epsilon: Array) -> Array:
        return -np.expm1(np.minimum((epsilon - epsilon0) / 2, 0.0))

    return symmetric(profile, max_loss=epsilon0)


def discrete_laplace_curve(scale: float, sensitivity: int) -> Curve:
    """Return the curve of P(y) ~ exp(-|y| / scale) on the integers against its shift by `sensitivity`."""
    level = sensitivity / scale
    log_norm = math.log1p(math.exp(-1 / scale))

    def profile(epsilon: Array) -> Array:
        # The loss at y is (sensitivity - 2 y) / scale, cut to +-level: with m >= 0 the last y whose loss
        # exceeds epsilon, H = P(Y <= m) - a P(Y <= m - sensitivity).
        at = np.minimum(epsilon, level)
        with np.errstate(over="ignore"):
            last = np.ceil((sensitivity - at * scale) / 2) - 1
            above = np.exp(-(last + 1) / scale - log_norm)
            moved = np.exp(np.minimum(at - (sensitivity - last) / scale, 0.0) - log_norm)
        return np.where(epsilon < level, np.maximum(1 - above - moved, 0.0), 0.0)

    return symmetric(profile, max_loss=level)


def discrete_gaussian_curve(std: float, shift: int) -> Curve:
    """Return the curve of P(y) ~ exp(-y^2 / (2 std^2)) on the integers against its shift by `shift` >= 1.

    The loss at y, shift (2 y - shift) / (2 std^2), rises with y: the best test is a threshold t, and H =
    P(Y > t - shift) - a P(Y > t). For each t that rises with the shift, so a smaller one costs no more.

    Cost:
        O(std) time and memory, once.
    """
    width = math.ceil(39 * std) + 2  # beyond, less than the smallest float
    y = np.arange(-width, width + 1, dtype=np.float64)
    with np.errstate(over="ignore"):
        log_above = np.logaddexp.accumulate((-0.5 * (y / std) ** 2)[::-1])[::-1]
    log_above = np.concatenate([[0.0], log_above - log_above[0], [-math.inf]])  # log P(Y >= y)

    def above(first: Array) -> Array:
        index = np.clip(first + (width + 1), 0, log_above.size - 1).astype(np.int64)
        return log_above[index]

    def profile(epsilon: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            crossing = np.nan_to_num(epsilon * std * std / shift + shift / 2, nan=np.inf)
        crossing = np.clip(crossing, -width - 2.0, width + shift + 2.0)
        # Near a tie, round-off may move the threshold by one; each is a test, so the larger value holds.
        off = 2.0**-48 * (np.abs(crossing) + shift + 1)
        first = np.floor(np.stack([crossing - off, crossing + off], axis=-1)) + 1
        log_first, log_second = above(first - shift), np.asarray(epsilon)[..., None] + above(first)
        sizes = std + 2 - log_first + np.where(np.isfinite(log_second), np.abs(log_second), 0.0)
        with np.errstate(invalid="ignore"):
            log_ratio = np.where(np.isneginf(log_second), -np.inf, log_second - log_first)
        sizes += np.abs(np.asarray(epsilon))[..., None]
        value: Array = (np.exp(log_first) * -np.expm1(np.minimum(log_ratio, 0.0) - 2.0**-50 * sizes)).max(
            axis=-1
        )
        return value

    return symmetric(profile)


def approximate_dp_curve(epsilon0: float, delta0: float = 0.0) -> Curve:
    """Return the curve of the worst (epsilon0, delta0)-DP release (Kairouz, Oh and Viswanath 2015)."""

    def profile(epsilon: Array) -> Array:
        # (e^e0 - e^eps) / (e^e0 + 1), arranged so that nothing overflows.
        pure = -np.expm1(np.minimum(epsilon - epsilon0, 0.0)) * special.expit(epsilon0)
        return delta0 + (1 - delta0) * pure

    return symmetric(profile, max_loss=epsilon0 if delta0 == 0 else math.inf, atom=epsilon0)


def zcdp_curve(rho: float) -> Curve:
    """Return the best curve that `rho`-zCDP alone proves.

    delta(eps) = min over alpha > 1 of exp((alpha-1)(alpha rho - eps)) / (alpha-1) * (1 - 1/alpha)^alpha
    (Canonne, Kamath and Steinke 2020, Proposition 12). The logarithm is convex in alpha, so a
    golden-section search over alpha - 1 finds it; any alpha is a proof, so stopping early is safe.
    """
    golden, rho = (math.sqrt(5) - 1) / 2, max(rho, LEAST_MU)

    def log_delta(order_minus_1: Array, epsilon: Array) -> Array:
        alpha = 1 + order_minus_1
        spent = order_minus_1 * (alpha * rho - epsilon)
        # log of (alpha - 1)^(alpha - 1) / alpha^alpha: two near-equal terms of size alpha log alpha would
        # leave no digits at the large orders of a small rho.
        saved: Array = -order_minus_1 * np.log1p(1 / order_minus_1) - np.log1p(order_minus_1)
        return spent + saved

    def profile(epsilon: Array) -> Array:
        # At the minimum alpha - 1 <= max(eps / (2 rho), 0) + O(1 / sqrt(rho)); the bracket is generous.
        low = np.full(epsilon.shape, -30.0)
        high = np.log(np.maximum(epsilon, 0.0) / rho + 10.0 / math.sqrt(rho) + 10.0)
        for _ in range(64):
            width = (high - low) * golden
            left, right = high - width, low + width
            rising = log_delta(np.exp(left), epsilon) < log_delta(np.exp(right), epsilon)
            low, high = np.where(rising, low, left), np.where(rising, right, high)
        best: Array = np.exp(np.minimum(log_delta(np.exp((low + high) / 2), epsilon), 0.0))
        return best

    return symmetric(profile)


def pmf_curve(log_p: npt.ArrayLike, log_q: npt.ArrayLike, *, hidden_mass: float = 0.0) -> Curve:
    """Return the exact curve of two finite laws, in both directions.

    Args:
        log_p: Log-probabilities with the unit (or of D), shape (m,).
        log_q: Log-probabilities without it (or of D'), shape (m,).
        hidden_mass: Probability that the tables leave out; it is added to every delta.
    """
    p, q = as_numbers("log_p", log_p), as_numbers("log_q", log_q)
    _check_law("log_p", p, hidden_mass)
    _check_law("log_q", q, hidden_mass)
    if p.shape != q.shape:
        raise ParameterError(f"log_p and log_q must have one shape, got {p.shape} and {q.shape}.")
    loss = _loss(p, q)
    largest = float(np.max(np.abs(loss))) if hidden_mass == 0 else math.inf
    return Curve(
        forward=_pmf_profile(p, loss, hidden_mass),
        backward=_pmf_profile(q, -loss, hidden_mass),
        max_loss=largest,
    )


def _check_law(name: str, log_mass: Array, hidden_mass: float) -> None:
    """Refuse log-probabilities that are no law: mass that a table forgets would not be charged."""
    check_probability("hidden_mass", hidden_mass)
    if log_mass.ndim != 1 or log_mass.size == 0 or not np.all(log_mass < 1e-6):
        raise ParameterError(f"{name} must be a vector of log-probabilities, got shape {log_mass.shape}.")
    total = float(np.exp(log_mass).sum())
    if total + hidden_mass < 1 - 1e-7 or total > 1 + 1e-7:
        raise ParameterError(
            f"{name} must have probabilities that sum to 1, but for hidden_mass = {hidden_mass!r}; "
            f"they sum to {total!r}."
        )


def _pmf_profile(log_mass: Array, loss: Array, hidden_mass: float) -> Profile:
    """Return epsilon -> sum of (p - e^epsilon q)_+ for a table of log p and log p / q."""
    order = np.argsort(loss, kind="stable")
    ordered, log_first = loss[order], log_mass[order]
    # log q = log p - loss; an infinite loss has q = 0, and one of -infinity is never above epsilon.
    finite = np.isfinite(ordered)
    log_second = np.where(finite, log_first - np.where(finite, ordered, 0.0), -np.inf)
    upper = np.append(np.cumsum(np.exp(log_first)[::-1])[::-1], 0.0)
    log_lower = np.append(np.logaddexp.accumulate(log_second[::-1])[::-1], -np.inf)

    def profile(epsilon: Array) -> Array:
        above = np.searchsorted(ordered, epsilon, side="right")
        # In logs, because e^epsilon overflows where the sum of q is as small; the product is at most `upper`.
        product = np.exp(np.minimum(epsilon + log_lower[above], 0.0))
        delta: Array = hidden_mass + np.maximum(upper[above] - product, 0.0)
        return delta

    return profile


def _loss(p: Array, q: Array) -> Array:
    """Return log p - log q, with impossible outcomes of both laws at loss 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(p) & np.isneginf(q), 0.0, p - q)


def total_loss(levels: Iterable[float]) -> float:
    """Return the sum of pure levels, infinity where it overflows."""
    try:
        return math.fsum(levels)
    except OverflowError:
        return math.inf


def maximum(curves: Sequence[Curve]) -> Curve:
    """Return the curve of disjoint data: the differing unit is in one part, at worst the dearest."""
    return _combine(curves, np.maximum.reduce, max(c.max_loss for c in curves))


def minimum(curves: Sequence[Curve]) -> Curve:
    """Return the curve of one release with several whole proofs: at each epsilon the best one holds."""
    return _combine(curves, np.minimum.reduce, min(c.max_loss for c in curves))


def mixture(curves: Sequence[Curve], weights: Sequence[float]) -> Curve:
    """Return the curve of one of several releases, drawn at random in sight of all; of none with the rest."""
    rest = max(1 - math.fsum(weights), 0.0)

    def mean(at: Sequence[Array], epsilon: Array) -> Array:
        none = rest * -np.expm1(np.minimum(epsilon, 0.0))
        return np.asarray(none + np.tensordot(weights, np.stack(at), axes=1))

    def forward(epsilon: Array) -> Array:
        return mean([bounded(c.forward, epsilon) for c in curves], epsilon)

    def backward(epsilon: Array) -> Array:
        return mean([bounded(c.backward, epsilon) for c in curves], epsilon)

    is_symmetric = all(c.is_symmetric for c in curves)
    largest = max(c.max_loss for c in curves)
    return Curve(forward=forward, backward=forward if is_symmetric else backward, max_loss=largest)


def _combine(curves: Sequence[Curve], pick: Callable[[list[Any]], Array], max_loss: float) -> Curve:
    """Return the pointwise extreme of several curves, per direction."""

    def forward(epsilon: Array) -> Array:
        return pick([c.forward(epsilon) for c in curves])

    def backward(epsilon: Array) -> Array:
        return pick([c.backward(epsilon) for c in curves])

    is_symmetric = all(c.is_symmetric for c in curves)
    return Curve(forward=forward, backward=forward if is_symmetric else backward, max_loss=max_loss)
