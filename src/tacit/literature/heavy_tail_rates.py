"""Heavy tails: rates up to constants and logarithms, and what stability says of generalisation."""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.errors import (
    ParameterError,
    check_count,
    check_finite,
    check_non_negative,
    check_positive,
)
from tacit.means import MomentBound, MomentKind

__all__ = [
    "HeavyTailRates",
    "erm_stability",
    "full_batch_rate",
    "heavy_tail_lower_rate",
    "heavy_tail_rate_table",
    "heavy_tail_upper_rate",
    "regularized_erm_gap",
    "stability_generalization_bound",
]


def heavy_tail_lower_rate(
    moment: MomentBound,
    *,
    n: int,
    dim: int,
    rho: float,
    diameter: float | None = None,
    strong_convexity: float | None = None,
) -> float:
    """Return the order of the least excess risk under rho-zCDP, for rho <= d.

    With q = min{1, sqrt(d) / (sqrt(rho) n)}: r D (n^(-1/2) + q^((k - 1) / k)) for convex losses, and
    (r^2 / mu) (1 / n + q^((2 k - 2) / k)) for strongly convex ones. With a moment of coordinates, r grows by
    sqrt(d).

    Args:
        moment: Of gradients.
        n: Records, >= 1.
        dim: d >= 1.
        rho: > 0.
        diameter: D > 0 of the domain, for convex losses.
        strong_convexity: mu > 0, for strongly convex ones; one of both is given.

    Returns:
        The rate, without constants: those of the proof need more records than it says.

    Raises:
        ParameterError: A value is out of its range, or none or both of the last two are given.

    Example:
        >>> heavy_tail_lower_rate(MomentBound(2, 2.0), n=10_000, dim=4, rho=0.5, diameter=1.0)
        0.053635...

    Reference:
        Lowy (2023), Theorems 57 and 58.
    """
    check_positive("rho", rho)
    ratio = min(1.0, math.sqrt(dim) / (math.sqrt(rho) * n))
    return _rate(moment, ratio, n=n, dim=dim, diameter=diameter, strong_convexity=strong_convexity)


def heavy_tail_upper_rate(
    moment: MomentBound,
    *,
    n: int,
    dim: int,
    epsilon: float,
    diameter: float | None = None,
    strong_convexity: float | None = None,
    condition: float = 1.0,
) -> float:
    """Return the order of the excess risk of localised clipped methods under epsilon^2/2-zCDP.

    As `heavy_tail_lower_rate`, with sqrt(d ln n) / (epsilon n); one pass over smooth, strongly convex losses
    has sqrt(d kappa ln n).

    Args:
        moment: Of gradients; the theorems take the moment of order 2 k inside the supremum where losses need
            not be smooth.
        n: Records, >= 1.
        dim: d >= 1.
        epsilon: > 0.
        diameter: D > 0 of the domain, for convex losses.
        strong_convexity: mu > 0, for strongly convex ones; one of both is given.
        condition: kappa >= 1 of one-pass methods; 1 for the localised ones.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Lowy (2023), Theorems 50, 56 and 61.
    """
    check_positive("epsilon", epsilon)
    if not check_finite("condition", condition) >= 1:
        raise ParameterError(f"condition must be >= 1, got {condition!r}.")
    check_count("n", n)
    ratio = math.sqrt(dim * condition * max(math.log(n), 1.0)) / (epsilon * n)
    return _rate(moment, ratio, n=n, dim=dim, diameter=diameter, strong_convexity=strong_convexity)


def _rate(
    moment: MomentBound,
    ratio: float,
    *,
    n: int,
    dim: int,
    diameter: float | None,
    strong_convexity: float | None,
) -> float:
    """Return r D (n^(-1/2) + ratio^((k - 1) / k)), or (r^2 / mu) (1 / n + ratio^((2 k - 2) / k))."""
    check_count("n", n)
    check_count("dim", dim)
    if (diameter is None) == (strong_convexity is None):
        raise ParameterError("one of diameter and strong_convexity must be given, and only one.")
    coordinates = moment.kind in (MomentKind.COORDINATE, MomentKind.ENTRY)
    r = moment.value * (math.sqrt(dim) if coordinates else 1.0)
    power: float = (moment.order - 1) / moment.order
    if diameter is not None:
        return r * check_positive("diameter", diameter) * (1 / math.sqrt(n) + math.pow(ratio, power))
    mu = check_positive("strong_convexity", strong_convexity or 0.0)
    return r * r / mu * (1 / n + math.pow(ratio, 2 * power))


def full_batch_rate(
    moment: MomentBound, *, n: int, dim: int, epsilon: float, strong_convexity: float, condition: float
) -> float:
    """Return the order of the excess risk of noisy gradient descent on all records, clipped by coordinates.

    (v^2 d / mu) (kappa^3 / n + (sqrt(d kappa^3) / (epsilon n))^((2 k - 2) / k)): the rate of earlier work
    after its proof is mended, which took E |.|^2 for at most (E |.|)^2.

    Args:
        moment: Of coordinates, v^k; others are converted.
        n: Records, >= 1.
        dim: d >= 1.
        epsilon: > 0.
        strong_convexity: mu > 0.
        condition: kappa >= 1 of single losses.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Lowy (2023), Appendix C.3 and (C.2), of Wang, Xiao, Devadas and Xu (2020) and Kamath, Liu and Zhang
        (2022).
    """
    check_count("n", n)
    check_positive("epsilon", epsilon)
    check_positive("strong_convexity", strong_convexity)
    if not check_finite("condition", condition) >= 1:
        raise ParameterError(f"condition must be >= 1, got {condition!r}.")
    v, k = moment.as_kind(MomentKind.COORDINATE, dim=dim).value, moment.order
    private = math.sqrt(dim * condition**3) / (epsilon * n)
    return v * v * dim / strong_convexity * (condition**3 / n + math.pow(private, (2 * k - 2) / k))


class HeavyTailRates(NamedTuple):
    """What is known of one class of losses, up to constants and logarithms; None: nothing.

    Attributes:
        losses: The class.
        lower: That no method can do better.
        upper: The best that is known, by the method named beside it.
        method: Its name.
        linear_time: The best with a number of gradients linear in n.
        linear_method: Its name.
        prior: Before Lowy (2023), as corrected there.
    """

    losses: str
    lower: float
    upper: float | None
    method: str | None
    linear_time: float | None
    linear_method: str | None
    prior: float | None


def heavy_tail_rate_table(
    *, n: int, dim: int, epsilon: float, condition: float = 1.0
) -> tuple[HeavyTailRates, ...]:
    """Return the rates for k = 2, a moment of sqrt(d), and D = mu = 1.

    The prior rate of smooth convex losses is for epsilon about 1 and a minimiser without a gradient; that of
    strongly convex ones is the corrected one, as expected squares had been bounded by squares of
    expectations.

    Args:
        n: Records, >= 1.
        dim: d >= 1.
        epsilon: > 0.
        condition: kappa >= 1, of F and of single losses alike.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> for row in heavy_tail_rate_table(n=10_000, dim=10, epsilon=1.0):
        ...     print(row.losses, f"{row.lower:.3g}")
        convex 0.0879
        smooth convex 0.0879
        strongly convex 0.00416
        smooth strongly convex 0.00416
        proximal-PL 0.00416

    Reference:
        Lowy (2023), Figure 4.1; (C.2) for the prior rate of smooth strongly convex losses.
    """
    check_count("n", n)
    check_count("dim", dim)
    check_positive("epsilon", epsilon)
    if not check_finite("condition", condition) >= 1:
        raise ParameterError(f"condition must be >= 1, got {condition!r}.")
    d, kappa, private = dim, condition, math.sqrt(dim) / (epsilon * n)
    convex = math.sqrt(d) * (1 / math.sqrt(n) + math.sqrt(private))
    strong = d * (1 / n + private)
    one_pass = convex * (1 + (epsilon * n / d**1.5) ** (1 / 18))
    return (
        HeavyTailRates("convex", convex, convex, "localized", None, None, None),
        HeavyTailRates(
            "smooth convex", convex, convex, "localized", one_pass, "clipped-ac-sa", d / math.sqrt(n)
        ),
        HeavyTailRates("strongly convex", strong, strong, "localized-phases", None, None, None),
        HeavyTailRates(
            "smooth strongly convex",
            strong,
            strong,
            "localized-phases",
            d * (1 / n + math.sqrt(kappa) * private),
            "clipped-sgd",
            d * (kappa**3 / n + kappa**1.5 * private),
        ),
        HeavyTailRates(
            "proximal-PL",
            strong,
            None,
            None,
            d * kappa * (1 / n + private),
            "clipped-prox-sgd",
            kappa**2 * d**3 / (n * epsilon**4),
        ),
    )


def stability_generalization_bound(moment: float, stability: float, *, balance: float | None = None) -> float:
    """Bound E[F(A(X)) - F_X(A(X))] of an algorithm that is stable on average, for convex losses.

    r^2 / (2 zeta) + zeta alpha^2 / 2 for every zeta > 0; the least is r alpha.

    Args:
        moment: r >= 0: root of the second moment of gradients, supremum outside.
        stability: alpha >= 0: alpha^2 bounds the mean over i of E |A(X) - A(X with record i replaced)|^2.
        balance: zeta > 0; None for the best.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Lowy (2023), Definition 52 and Proposition 53.
    """
    check_non_negative("moment", moment)
    check_non_negative("stability", stability)
    if balance is None:
        return moment * stability
    check_positive("balance", balance)
    return moment * moment / (2 * balance) + balance * stability * stability / 2


def erm_stability(moment: float, *, strong_convexity: float, n: int) -> float:
    """Return alpha = 2 r / (lambda n): how stable the minimiser of strongly convex losses is.

    Its bound on generalisation is then r alpha = 2 r^2 / (lambda n).

    Args:
        moment: r >= 0: root of the second moment of gradients, supremum outside.
        strong_convexity: lambda > 0.
        n: Records, >= 1.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Lowy (2023), Proposition 161.
    """
    check_non_negative("moment", moment)
    check_positive("strong_convexity", strong_convexity)
    check_count("n", n)
    return 2 * moment / (strong_convexity * n)


def regularized_erm_gap(
    moment: float, *, n: int, distance: float, regularization: float | None = None
) -> float:
    """Bound E F(w) - F(y) of the minimiser w of convex losses plus lambda |w - w0|^2 / 2.

    2 r^2 / (lambda n) + lambda |y - w0|^2 / 2; the least over lambda is 2 r |y - w0| / sqrt(n).

    Args:
        moment: r >= 0: root of the second moment of gradients, supremum outside.
        n: Records, >= 1.
        distance: |y - w0| >= 0.
        regularization: lambda > 0; None for the best.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Lowy (2023), Proposition 54.
    """
    check_non_negative("moment", moment)
    check_count("n", n)
    check_non_negative("distance", distance)
    if regularization is None:
        return 2 * moment * distance / math.sqrt(n)
    check_positive("regularization", regularization)
    return 2 * moment * moment / (regularization * n) + regularization * distance * distance / 2
