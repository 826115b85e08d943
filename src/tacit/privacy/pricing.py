"""What an event costs: compose numerically what is left when all that has a closed form is merged.

Sampling, disjoint data and several proofs act on the curve of what they hold.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from tacit.errors import ParameterError, check_non_negative, check_probability
from tacit.privacy import curve_sampling, curves, events, renyi_sampling
from tacit.privacy.budget import DECIMAL
from tacit.privacy.curves import Array, Curve
from tacit.privacy.divergences import check_orders, pure_dp_renyi, renyi_of_mixture
from tacit.privacy.events import Event, neighbours_of
from tacit.privacy.merging import flatten, merge, multiplied
from tacit.privacy.pld import compose_curves
from tacit.privacy.renyi import ORDERS, Renyi, interpolate_orders, renyi_curve
from tacit.privacy.work import check_work

__all__ = [
    "curve_of",
    "delta_at",
    "delta_of",
    "epsilon_of",
    "method_of",
    "pure_epsilon_of",
    "renyi_of",
    "rho_of",
]

_ROUND_UP = 1 + 1e-12
"""Closed forms are computed to a few units in the last place; a price is rounded up past that."""

_LARGEST_SUM, _MOST_SUMS = 1 << 17, 512
"""Orders of a sampled release are sums of as many terms: the largest, and how many of them are summed."""

_LEAST_ACCURACY = 1e-300
_GAUSSIAN = (events.Gaussian, events.DiscreteGaussian, events.DiscreteGaussianSum)

_LEAST_EPSILON, _LARGEST_EPSILON = 1e-9, 1e9
"""Between them the least epsilon of a curve is looked for; beyond, it is 0 or infinity, or a bound."""


def epsilon_of(event: Event, delta: float) -> float:
    """Return an epsilon at which the event is (epsilon, delta)-DP under its neighbours.

    Args:
        event: Any event tree.
        delta: In [0, 1). At 0 only releases with a pure level have a finite answer.

    Returns:
        The least epsilon that the event's curve proves, rounded up; infinity where nothing is proven.
    """
    delta = check_probability("delta", delta, high_open=True)
    check_work(event)  # also where the answer is known: the caller's limit may be another one
    return _epsilon_of(event, delta)


@lru_cache(maxsize=512)  # what is calibrated is priced again, then stated, reserved and verified
def _epsilon_of(event: Event, delta: float) -> float:
    """Return the price of an event whose work has been looked at."""
    pure = pure_epsilon_of(event)
    if delta == 0 or pure == 0:
        return pure
    least = _least_epsilon(_curve_of(event, accuracy=delta), delta) * _ROUND_UP
    return min(least, pure, _stated_epsilon(event, delta))


def delta_of(event: Event, epsilon: float) -> float:
    """Return a delta at which the event is (epsilon, delta)-DP.

    Args:
        event: Any event tree.
        epsilon: Finite, >= 0.
    """
    # The accuracy of cut-off tails follows the answer: first roughly, then at that size.
    rough = delta_at(event, epsilon, accuracy=1e-6)
    if rough == 0 or rough > 1e-6:
        return min(rough * _ROUND_UP, 1.0)
    return min(delta_at(event, epsilon, accuracy=rough) * _ROUND_UP, 1.0)


def delta_at(event: Event, epsilon: float, *, accuracy: float) -> float:
    """Return the delta of an event's curve at one epsilon, as it is computed: `delta_of` rounds it up.

    Args:
        event: Any event tree.
        epsilon: Finite, >= 0.
        accuracy: The smallest delta of interest, in (0, 1).
    """
    epsilon = check_non_negative("epsilon", epsilon)
    accuracy = check_probability("accuracy", accuracy, low_open=True, high_open=True)
    check_work(event)
    return _delta_at(event, epsilon, accuracy)


@lru_cache(maxsize=512)  # searches come back to their ends, and plans to equal rounds
def _delta_at(event: Event, epsilon: float, accuracy: float) -> float:
    """Return a point of the curve of an event whose work has been looked at."""
    return float(_curve_of(event, accuracy=accuracy).delta(epsilon))


def rho_of(event: Event) -> float:
    """Return the concentrated-DP level of Gaussian-like and pure releases together; else infinity.

    A pure level epsilon gives epsilon tanh(epsilon / 2) <= epsilon^2 / 2 (docs/theory/accounting.md).
    """
    total = 0.0
    for part, count in flatten(event).items():
        match part:
            case events.Gaussian(noise_multiplier=z):
                rho = 0.5 / z / z
            case events.Gdp(mu=mu):
                rho = mu * mu / 2
            case events.Zcdp(rho=level):
                rho = level
            case events.PureDP(epsilon=eps):
                rho = eps * math.tanh(eps / 2)
            case events.Parallel(parts=parts):
                rho = max(rho_of(p) for p in parts)
            case events.AnyOf(proofs=proofs):
                rho = min(rho_of(p) for p in proofs)
            case events.Leaf() if (known := part.concentrated) is not None:
                rho = known.rho
            case _:
                return math.inf
        total += count * rho
    return total * _ROUND_UP


def renyi_of(event: Event, orders: npt.ArrayLike) -> Array:
    """Return bounds on the Rényi divergences of an event, in both directions.

    Args:
        event: Any event tree.
        orders: Finite orders > 1, shape (m,).

    Returns:
        Shape (m,): a bound per order, infinity where none is known.

    Raises:
        ParameterError: An order that is not finite and > 1.

    Reference:
        Mironov (2017), arXiv:1702.07476, Proposition 1, for composition; `tacit.privacy.renyi_sampling` for
        samples.
    """
    alpha = check_orders(orders)
    if alpha.ndim != 1 or not np.all(np.isfinite(alpha)):
        raise ParameterError(f"orders must be a vector of finite numbers > 1, got shape {alpha.shape}.")
    check_work(event)
    return _renyi_of(event, alpha)


def _renyi_of(event: Event, alpha: Array) -> Array:
    """Return the Rényi bounds of an event whose work has been looked at."""
    total = np.zeros(alpha.shape)
    for part, count in sorted(flatten(event).items(), key=repr):
        match part:
            case events.Sampled():
                bound = _sampled_renyi(part, alpha)
            case events.Replaced():
                bound = _replaced_renyi(part, alpha)
            case events.Parallel(parts=parts):
                bound = np.maximum.reduce([_renyi_of(p, alpha) for p in parts])
            case events.ByChance(parts=parts, weights=weights):
                bound = renyi_of_mixture(np.stack([_renyi_of(p, alpha) for p in parts]), weights, alpha)
            case events.AnyOf(proofs=proofs):
                bound = np.minimum.reduce([_renyi_of(p, alpha) for p in proofs])
            case events.Leaf():
                bound = part.renyi(alpha)
            case _:
                raise ParameterError(f"no price is known for the event {type(part).__name__}.")
        with np.errstate(over="ignore"):
            total = total + count * bound
    return total * _ROUND_UP


def pure_epsilon_of(event: Event) -> float:
    """Return the pure-DP level by basic composition; infinity where there is none."""
    match event:
        case events.Compose(parts=parts):
            return curves.total_loss(pure_epsilon_of(p) for p in parts)
        case events.Repeat(part=part, count=count):
            return multiplied(1, count) * pure_epsilon_of(part)
        case events.Sampled(part=part, rate=rate):
            return curve_sampling.amplified(pure_epsilon_of(part), rate)
        case events.Replaced() | events.Aligned():
            return math.inf if event.mu > 0 else 0.0
        case events.Parallel(parts=parts) | events.ByChance(parts=parts):
            return max(pure_epsilon_of(p) for p in parts)
        case events.AnyOf(proofs=proofs):
            return min(pure_epsilon_of(p) for p in proofs)
        case events.NonPrivate():
            return math.inf
        case events.Leaf():
            return _leaf_curve(event).max_loss
        case _:
            raise ParameterError(f"no price is known for the event {type(event).__name__}.")


def _stated_epsilon(event: Event, delta: float) -> float:
    """Return the sum of the epsilons that releases state, where their deltas add up to no more than `delta`.

    A curve proves at least that, but for the rounding up of prices, which would turn 0.3 into 0.300001.
    """
    if isinstance(event, events.AnyOf):
        return min(_stated_epsilon(proof, delta) for proof in event.proofs)
    epsilon, needed = _stated(event)
    return epsilon if needed <= delta * DECIMAL else math.inf


def _stated(event: Event) -> tuple[float, float]:
    """Return an (epsilon, delta) by basic composition; infinite where a part states none."""
    match event:
        case events.ApproximateDP(epsilon=epsilon, delta=delta):
            return epsilon, delta
        case events.Compose(parts=parts):
            stated = [_stated(part) for part in parts]
            return math.fsum(e for e, _ in stated), math.fsum(d for _, d in stated)
        case events.Repeat(part=part, count=count):
            epsilon, delta = _stated(part)
            return multiplied(1, count) * epsilon, multiplied(1, count) * delta
        case events.Parallel(parts=parts):
            stated = [_stated(part) for part in parts]
            return max(e for e, _ in stated), max(d for _, d in stated)
        case _:
            return pure_epsilon_of(event), 0.0


def method_of(event: Event, delta: float) -> str:
    """Return how `epsilon_of` prices the event at `delta`, in words; of several proofs, which one wins."""
    releases = flatten(event)
    parts = merge(releases)
    if any(isinstance(part, events.NonPrivate) for part in parts):
        return "nothing is claimed"
    if sum(parts.values()) > 1:
        method = "privacy loss distribution, connect-the-dots"
    else:
        method = _method_of_one(next(iter(parts)), delta)
    if sum(parts.values()) > 1 and _renyi_orders(event):
        method += ", or Rényi divergences"
    grids = any(isinstance(part, events.GaussianOnGrid) and part not in parts for part in releases)
    return method + (", discrete noise as rounded Gaussian or concentrated" if grids else "")


def _method_of_one(part: Event, delta: float) -> str:
    """Return how one release of a flattened event is priced."""
    match part:
        case events.Leaf():
            return part.method
        case events.Sampled():
            return "sampled privacy curve"
        case events.Replaced():
            return "exact privacy curve of a replaced unit"
        case events.ByChance():
            return "mean of privacy curves"
        case events.AnyOf(proofs=proofs):
            best = min(proofs, key=lambda proof: epsilon_of(proof, delta))
            return f"{method_of(best, delta)}, best of {len(proofs)} proofs"
        case _:
            return "exact privacy curve"


def curve_of(event: Event, *, accuracy: float) -> Curve:
    """Return the privacy curve of any event tree.

    Args:
        event: Any event tree.
        accuracy: The smallest delta of interest, in (0, 1).
    """
    accuracy = check_probability("accuracy", accuracy, low_open=True, high_open=True)
    check_work(event)
    return _curve_of(event, accuracy=accuracy)


@lru_cache(maxsize=1)  # delta, then epsilon of one event; a composed curve may hold some 10 MB
def _curve_of(event: Event, *, accuracy: float) -> Curve:
    """Return the curve of an event whose work has been looked at."""
    parts = merge(flatten(event))
    each = max(accuracy / sum(parts.values()), _LEAST_ACCURACY)
    priced = [(_part_curve(part, accuracy=each), k) for part, k in parts.items()]
    if len(priced) == 1 and priced[0][1] == 1:
        return priced[0][0]
    composed = compose_curves(priced, accuracy=accuracy)
    # Concentrated levels and Rényi bounds add up without a grid; where that is better, it holds as well.
    proofs = [composed]
    may_help = any(isinstance(part, events.Zcdp | events.AnyOf | events.Parallel) for part in parts)
    if may_help and math.isfinite(rho := rho_of(event)):
        proofs.append(curves.zcdp_curve(rho))
    if known := _renyi_orders(event):
        orders = np.union1d(_orders_to(max(known)), list(known))
        proofs.append(renyi_curve(orders, _renyi_of(event, orders)))
    several = [part for part in parts if isinstance(part, events.AnyOf)]
    if len(several) == 1:
        # A proof may compose better by itself than the curve of them all.
        rest = tuple(events.Repeat(part, count) for part, count in parts.items() if part is not several[0])
        for proof in several[0].proofs:
            whole = events.Compose((events.Repeat(proof, parts[several[0]]), *rest))
            proofs.append(_curve_of(whole, accuracy=accuracy))
    return curves.minimum(proofs) if len(proofs) > 1 else composed


def _renyi_orders(event: Event) -> set[float]:
    """Return the orders of all Rényi releases that an event contains; none where there is no such release."""
    if isinstance(event, Renyi):
        return set(event.orders)
    return set().union(*map(_renyi_orders, events.parts_of(event)))


def _orders_to(largest: float) -> Array:
    """Return the default orders up to `largest`."""
    return ORDERS[np.less_equal(ORDERS, largest)]


def _sampled_renyi(event: events.Sampled, orders: Array) -> Array:
    """Return Rényi bounds of a release on a sample: at whole orders, and between them by convexity."""
    rate, relation = event.rate, neighbours_of(event).relation
    # Telling who was sampled cannot make a divergence smaller.
    simple = np.minimum(_renyi_of(event.part, orders), pure_dp_renyi(pure_epsilon_of(event), orders))
    whole = np.unique(np.concatenate([np.floor(orders), np.ceil(orders)]))
    whole = whole[(whole >= 2) & (whole <= _LARGEST_SUM)]
    if whole.size == 0:
        return simple
    if whole.size > _MOST_SUMS:  # the others follow by convexity
        whole = whole[np.unique(np.linspace(0, whole.size - 1, _MOST_SUMS).astype(np.int64))]
    parts = flatten(event.part)
    merged = merge(parts, own_laws=False)
    match next(iter(merged)):
        case events.Gdp(mu=mu) if sum(merged.values()) == 1 and mu > 0:
            if event.how is events.Sample.FIXED:
                single = parts.total() == 1 and isinstance(next(iter(parts)), _GAUSSIAN)
                found = renyi_sampling.fixed_size_gaussian_renyi(
                    1 / mu, rate, whole, relation=relation, single=single
                )
            else:
                found = renyi_sampling.poisson_gaussian_renyi(1 / mu, rate, whole, relation=relation)
        case _:
            # The sum needs every whole order; what lies between the usual ones follows by convexity.
            known = np.union1d(_orders_to(whole[-1]), whole)
            inner = interpolate_orders(known, _renyi_of(event.part, known), np.arange(2.0, whole[-1] + 1))
            general = (
                renyi_sampling.fixed_size_renyi
                if event.how is events.Sample.FIXED
                else renyi_sampling.poisson_renyi
            )
            found = general(inner, rate, whole, relation=relation, pure_level=pure_epsilon_of(event.part))
    return np.minimum(interpolate_orders(whole, found, orders), simple)


def _replaced_renyi(event: events.Replaced, orders: Array) -> Array:
    """Return Rényi bounds of a replaced unit: those of a fixed size, whose units move twice as far.

    Its ternary moments are about any three laws of which no two are further apart than 2 mu: here the unit,
    its replacement, and neither. The binomial sum over them needs no more of the sample than its rate.
    """
    near = events.Gaussian(0.5 / max(event.mu, 1e-100), event.neighbours)
    return _sampled_renyi(events.Sampled(near, event.rate), orders)


@lru_cache(maxsize=256)
def _leaf_curve(leaf: events.Leaf) -> Curve:
    """Return the curve of a leaf, which may be costly to tabulate."""
    return leaf.curve()


@lru_cache(maxsize=32)  # a composed curve may hold some 10 MB
def _part_curve(part: Event, *, accuracy: float) -> Curve:
    """Return the curve of one release of a flattened event."""
    match part:
        case events.Sampled(part=inner, rate=rate, how=how):
            base = _curve_of(inner, accuracy=accuracy)
            fixed = how is events.Sample.FIXED
            return (curve_sampling.sampled_fixed if fixed else curve_sampling.sampled_poisson)(base, rate)
        case events.Replaced(rate=rate):
            return curve_sampling.replaced_curve(part.mu, rate)
        case events.Parallel(parts=inner_parts):
            return curves.maximum([_curve_of(p, accuracy=accuracy) for p in dict.fromkeys(inner_parts)])
        case events.ByChance(parts=inner_parts, weights=weights):
            return curves.mixture([_curve_of(p, accuracy=accuracy) for p in inner_parts], weights)
        case events.AnyOf(proofs=proofs):
            return curves.minimum([_curve_of(p, accuracy=accuracy) for p in dict.fromkeys(proofs)])
        case events.Leaf():
            return _leaf_curve(part)
        case _:
            raise ParameterError(f"no price is known for the event {type(part).__name__}.")


def _least_epsilon(curve: Curve, delta: float) -> float:
    """Return the least epsilon on the safe side of `delta`, to a relative 1e-12."""
    delta *= DECIMAL

    @cache
    def at(epsilon: float) -> float:
        return float(curve.delta(epsilon))

    def gap(epsilon: float) -> float:  # cut where a delta of 0 would be infinitely far
        size = max(at(epsilon), delta * 1e-30, 5e-324)
        ratio = size / delta
        return math.log(ratio) if ratio < math.inf else math.log(size) - math.log(delta)  # subnormal delta

    if at(0.0) <= delta:
        return 0.0
    # Most losses are about Gaussian: from there, in steps that double, to either side of the answer.
    low = high = _gaussian_epsilon(at(0.0), delta)
    step = 1.01
    if at(high) > delta:
        while math.isfinite(high) and at(high) > delta:
            further = min(high * step, _LARGEST_EPSILON) if high < _LARGEST_EPSILON else math.inf
            low, high, step = high, further, step * step
    else:
        while low > 0 and at(low) <= delta:
            nearer = max(low / step, _LEAST_EPSILON) if low > _LEAST_EPSILON else 0.0
            low, high, step = nearer, low, step * step
    if math.isinf(high):
        return high
    # log delta is close to a parabola in epsilon: a few evaluations find the root, and the curve may be dear.
    root = float(scipy.optimize.toms748(gap, low, high, xtol=1e-300, rtol=1e-13)) if gap(high) < 0 else high
    step = 1e-13 * root
    while at(root) > delta:
        root, step = min(root + step, high), 2 * step
    return root


def _gaussian_epsilon(at_zero: float, delta: float) -> float:
    """Return about the epsilon that has `delta` on the Gaussian curve through `at_zero` > `delta` at 0."""
    mu = 2 * float(special.ndtri((1 + min(at_zero, 1 - 1e-12)) / 2))
    epsilon = mu * np.linspace(0, mu / 2 + 38, 256)
    falling = -np.log(np.maximum(curves.gaussian_curve(mu).delta(epsilon), 5e-324))
    guess = float(np.interp(-math.log(delta), falling, epsilon))
    return min(max(guess, _LEAST_EPSILON), _LARGEST_EPSILON)
