"""Privacy curves of a release on a secret sample, from the curve of the release on all units.

Source: Zhu, Dong and Wang (2022), arXiv:2106.08567, for Poisson samples; docs/theory/accounting.md,
section 3, for those of a fixed size.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from tacit.privacy.curves import LARGEST_MU, LEAST_MU, Array, Curve, gaussian_curve, symmetric

__all__ = ["amplified", "replaced_curve", "sampled_fixed", "sampled_poisson"]


def sampled_fixed(curve: Curve, rate: float) -> Curve:
    """Return the curve of a release on a uniform sample of fixed size, under replace-one.

    H'(a) = q H(1 + (a - 1)/q) for a >= 1, and its dual below 1 (docs/theory/accounting.md, section 3). The
    single pair ((1-q)Q + qP, Q) is weaker below a = 1 and unsound under composition; see
    tests/privacy/test_sampling.py::test_single_pair_is_not_sound_under_replace_one.
    """
    if rate == 1:
        return curve

    def profile(epsilon: Array) -> Array:
        return rate * curve.delta(_shifted(epsilon, rate))

    return symmetric(profile, max_loss=amplified(curve.max_loss, rate), atom=amplified(curve.atom, rate))


def sampled_poisson(curve: Curve, rate: float) -> Curve:
    """Return the curve of a release on a Poisson sample, under add-remove or zero-out.

    With the unit the law is (1-q)Q + qP, without it Q (Zhu, Dong and Wang 2022, Theorem 11); the two
    directions differ, and each is composed on its own.
    """
    if rate == 1:
        return curve
    floor = math.log1p(-rate)

    def forward(epsilon: Array) -> Array:
        certain = epsilon <= floor  # the mixture never falls below (1 - q) Q
        inside = rate * curve.forward(_shifted(np.where(certain, 0.0, epsilon), rate))
        return np.where(certain, -np.expm1(np.minimum(epsilon, 0.0)), inside)

    def backward(epsilon: Array) -> Array:
        never = epsilon >= -floor
        at = np.where(never, 0.0, epsilon)
        left = -np.expm1(np.minimum(at + floor, -1e-16))  # 1 - a (1 - q)
        inside = left * curve.backward(math.log(rate) + at - np.log(left))
        return np.where(never, 0.0, inside)

    return Curve(forward=forward, backward=backward, max_loss=amplified(curve.max_loss, rate))


def replaced_curve(mu: float, rate: float) -> Curve:
    """Return the curve of (1-q) N(0, 1) + q N(mu, 1) against (1-q) N(0, 1) + q N(-mu, 1).

    The likelihood ratio rises, and reaches e^epsilon at t with
    mu t = epsilon / 2 + asinh(sinh(epsilon / 2) / c), c = q e^{-mu^2 / 2} / (1 - q). Reflection exchanges the
    two laws, so both directions are equal.

    Source: docs/theory/accounting.md, section 3.
    """
    if rate == 1 or mu == 0:
        return gaussian_curve(2 * mu)
    if mu > LARGEST_MU:
        return symmetric(lambda epsilon: np.full_like(epsilon, rate))
    mu, absent = max(mu, LEAST_MU), math.log1p(-rate)
    log_c = math.log(rate) - absent - mu * mu / 2

    def profile(epsilon: Array) -> Array:
        with np.errstate(divide="ignore"):
            log_rise = epsilon + np.log(-np.expm1(-epsilon))  # log(e^epsilon - 1)
        log_ratio = log_rise - epsilon / 2 - math.log(2) - log_c
        angle = np.where(
            log_ratio > 20, log_ratio + math.log(2), np.arcsinh(np.exp(np.minimum(log_ratio, 20)))
        )
        t = (epsilon / 2 + angle) / mu
        log_first = math.log(rate) + special.log_ndtr(mu - t)
        log_second = np.logaddexp(
            absent + log_rise + special.log_ndtr(-t), math.log(rate) + epsilon + special.log_ndtr(-mu - t)
        )
        # As in `gaussian_deltas`: a difference in logs, widened by what these may be off.
        with np.errstate(invalid="ignore"):
            off = 2.0**-49 * (2 - log_first + epsilon + np.abs(log_second - epsilon))
            gap = np.where(np.isneginf(log_first), 0.0, np.minimum(log_second - log_first, 0.0) - off)
        delta: Array = np.exp(log_first) * -np.expm1(gap)
        return delta

    return symmetric(profile)


def _shifted(epsilon: Array, rate: float) -> Array:
    """Return log(1 + (e^epsilon - 1) / rate), without overflow."""
    large = epsilon > 1
    # Just above the point where the sum is 0, round-off must not take it below.
    near = np.log1p(np.maximum(np.expm1(np.where(large, 0.0, epsilon)) / rate, 1e-16 - 1))
    far = np.where(large, epsilon, 1.0)
    return np.where(large, far - math.log(rate) + np.log1p((rate - 1) * np.exp(-far)), near)


def amplified(epsilon: float, rate: float) -> float:
    """Return ln(1 + q (e^epsilon - 1)): Balle, Barthe and Gaboardi (2018), arXiv:1807.01647, Theorem 8."""
    if epsilon > 600:
        return epsilon + math.log(rate) + math.exp(-epsilon) / rate if math.isfinite(epsilon) else math.inf
    return math.log1p(rate * math.expm1(epsilon))
