"""What is stated of heavy tails: a moment of rows whose norm nobody can bound, and the clip that fits it."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal, get_args

import msgspec

from tacit.errors import (
    ParameterError,
    check_choice,
    check_count,
    check_finite,
    check_non_negative,
    check_positive,
)
from tacit.numerics import settle

__all__ = [
    "ClipMethod",
    "MomentBound",
    "MomentKind",
    "balanced_clip",
    "clip_bias",
    "clip_variance",
]

ClipMethod = Literal["sharp", "paper"]
"""`sharp`: constants that a law attains. `paper`: those of Lowy (2023)."""

ClipBall = Literal["l2", "linf"]
"""What rows are clipped to: a ball, or a cube."""


class MomentKind(StrEnum):
    """Where the supremum over points stands, and of what the moment is."""

    SUP_INSIDE = "sup-inside"
    """(E sup_w |g(w, x)|^k)^(1/k), at least that of `sup-outside` (Lowy 2023, Assumption 5)."""
    SUP_OUTSIDE = "sup-outside"
    """sup_w (E |g(w, x)|^k)^(1/k) (Assumption 9)."""
    COORDINATE = "coordinate"
    """sup_w max_j E |g_j(w, x) - E g_j(w, x)|^k, to the power 1/k, of gradients whose mean is no longer than
    sqrt(d) times that (Assumption 10)."""
    ENTRY = "entry"
    """sup_w max_j E |g_j(w, x)|^k, to the power 1/k: entries as they are, not about their mean."""


_NORMS = (MomentKind.SUP_INSIDE, MomentKind.SUP_OUTSIDE)


class MomentBound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bound on the k-th moment of a row, known beforehand or from public records: never from private ones.

    It sets how rows are clipped. No guarantee depends on whether it is true: only the error does.

    Attributes:
        order: k > 1, a real number. Below 2 rows need have no variance.
        value: The k-th root of the moment, > 0, in the units of a row.
        kind: Of what the moment is.

    Raises:
        ParameterError: A number that is not finite, an order of at most 1, or a value that is not > 0.

    Example:
        >>> MomentBound.parse("4:10")
        MomentBound(order=4.0, value=10.0, kind=<MomentKind.SUP_OUTSIDE: 'sup-outside'>)
    """

    order: float
    value: float
    kind: MomentKind = MomentKind.SUP_OUTSIDE

    def __post_init__(self) -> None:
        settle(self)
        check_finite("the order of a moment", self.order)
        if not self.order > 1:
            raise ParameterError(f"the order of a moment must be above 1, got {self.order!r}.")
        check_positive("the value of a moment", self.value)
        if not isinstance(self.kind, MomentKind):
            raise ParameterError(f"kind must be a MomentKind, got {self.kind!r}.")

    @classmethod
    def parse(cls, text: str) -> MomentBound:
        """Return what people write as ORDER:VALUE.

        Raises:
            ParameterError: It is written otherwise, or out of range.
        """
        try:
            order, value = (float(part) for part in text.split(":"))
        except ValueError as error:
            raise ParameterError(
                f"moment must look like ORDER:VALUE, such as 4:10, got {text!r:.80}."
            ) from error
        return cls(order, value)

    def at_order(self, order: float) -> MomentBound:
        """Return the same bound for a lower order, by Jensen's inequality.

        Raises:
            ParameterError: The order is not in (1, `self.order`].
        """
        if not 1 < order <= self.order:
            raise ParameterError(
                f"order must be above 1 and at most the one that is known, {self.order!r}, got {order!r}."
            )
        return MomentBound(order, self.value, self.kind)

    def as_kind(self, kind: MomentKind, *, dim: int) -> MomentBound:
        """Return what this bound says of another kind of moment, for gradients of `dim` coordinates.

        With p = max(1/2, 1/k), entries g give a norm of at most d^p g; deviations v of coordinates, whose
        mean is at most sqrt(d) v, at most (d^p + sqrt(d)) v (the lemma says 4 sqrt(d) v, for k >= 2). A
        central moment is at most twice the raw one, and no more than it for k = 2.

        Raises:
            ParameterError: A moment with the supremum inside is asked of one without, or `dim` is no count.

        Example:
            >>> MomentBound(2, 3.0, MomentKind.COORDINATE).as_kind(MomentKind.SUP_OUTSIDE, dim=4).value
            12.0

        Reference:
            Lowy (2023), Lemma 155; its proof gives the smaller factor.
        """
        check_count("dim", dim)
        if kind == self.kind:
            return self
        spread = dim ** max(0.5, 1 / self.order)
        match kind:
            case MomentKind.SUP_OUTSIDE if self.kind is MomentKind.COORDINATE:
                factor = spread + math.sqrt(dim)
            case MomentKind.SUP_OUTSIDE if self.kind is MomentKind.ENTRY:
                factor = spread
            case MomentKind.ENTRY if self.kind is MomentKind.COORDINATE:
                factor = 1 + math.sqrt(dim)
            case MomentKind.COORDINATE:
                factor = 1.0 if self.order == 2 else 2.0
            case MomentKind.SUP_OUTSIDE | MomentKind.ENTRY if self.kind in _NORMS:
                factor = 1.0
            case _:
                raise ParameterError(
                    f"a moment of kind {self.kind.value!r} bounds none of kind {kind.value!r}."
                )
        return MomentBound(self.order, self.value * factor, kind)

    def for_ball(self, ball: ClipBall, *, dim: int) -> MomentBound:
        """Return the moment that clipping to a ball depends on: of norms, or of entries for `linf`."""
        check_choice("ball", ball, get_args(ClipBall))
        if ball == "linf":
            return self.as_kind(MomentKind.ENTRY, dim=dim)
        return self if self.kind is MomentKind.SUP_INSIDE else self.as_kind(MomentKind.SUP_OUTSIDE, dim=dim)


def clip_bias(moment: MomentBound, clip: float, *, method: ClipMethod = "sharp") -> float:
    """Bound how far clipping moves the mean: E (|z| - C)_+ for E |z|^k <= r^k.

    `sharp` is the largest there is: c_k r^k / C^(k - 1) with c_k = (k - 1)^(k - 1) / k^k, which |z| in {0,
    k C / (k - 1)} attains, and r - C where C < (k - 1) r / k. `paper`: r^k / ((k - 1) C^(k - 1)).

    Args:
        moment: Of norms; or of entries, and then the bound is that of one coordinate.
        clip: C > 0.
        method: Which constant.

    Raises:
        ParameterError: `clip` is not > 0, or the moment is one about the mean (`MomentBound.for_ball`).
        UnknownNameError: An unknown method.

    Example:
        >>> clip_bias(MomentBound(2, 2.0), 5.0), clip_bias(MomentBound(2, 2.0), 5.0, method="paper")
        (0.2, 0.8)

    Reference:
        Lowy (2023), Lemma 49 with its erratum: the bound is on the mean of clipped rows, not on a sample's.
    """
    check_choice("method", method, get_args(ClipMethod))
    check_positive("clip", clip)
    if moment.kind is MomentKind.COORDINATE:
        raise ParameterError("clipping to a ball about 0 needs a raw moment: see MomentBound.for_ball.")
    k, r = moment.order, moment.value
    if method == "paper":
        return r / (k - 1) * _power(r / clip, k - 1)
    if clip < (k - 1) * r / k:
        return r - clip
    return _sharp_constant(k) * r * _power(r / clip, k - 1)


def clip_variance(moment: MomentBound, clip: float) -> float:
    """Bound E min(|z|, C)^2, and so the variance of a clipped row, for E |z|^k <= r^k.

    min(r, C)^2 for k >= 2; C^(2 - k) min(r, C)^k for k < 2, where z itself need have no variance. Attained.

    Args:
        moment: Of norms; or of entries, and then the bound is that of one coordinate.
        clip: C > 0.

    Raises:
        ParameterError: `clip` is not > 0.
    """
    check_positive("clip", clip)
    inside = min(moment.value, clip)
    if moment.order >= 2:
        return inside * inside
    return clip * clip * _power(inside / clip, moment.order)


def balanced_clip(
    moment: MomentBound,
    *,
    rows: int,
    dim: int,
    noise_multiplier: float,
    sensitivity: float = 2.0,
    ball: ClipBall = "l2",
    method: ClipMethod = "sharp",
) -> float:
    """Return the clip whose squared bias and noise add up to the least.

    A mean of s clipped rows moves by `sensitivity` C / s (times sqrt(d) for a cube), and its noise has a
    standard deviation of `noise_multiplier` times that in every coordinate: 1 / sqrt(2 rho) for rho-zCDP,
    and what `calibrate` finds for `Gaussian` for (epsilon, delta); times sqrt(m) for m such means of the
    same rows. For k >= 2, r ((k - 1) c_k^2 s^2 / (4 d z^2))^(1 / (2 k)) under replace-one. For k < 2 the
    variance of clipped rows, which then grows with C, is balanced too. `paper`: r (s / (z sqrt(d)))^(1/k).

    Args:
        moment: Of any kind; one of norms bounds the bias of a cube as that of the ball inside it.
        rows: Number s of rows in the mean, >= 1.
        dim: Number d of coordinates, >= 1.
        noise_multiplier: z >= 0; 0 only for k < 2, since without noise nothing else keeps C finite.
        sensitivity: Clips by which one unit moves the sum: 2 under replace-one, 1 under zero-out.
        ball: What rows are clipped to; for `linf` the clip is that of one coordinate.
        method: Which constants.

    Raises:
        ParameterError: A value is out of its range.
        UnknownNameError: An unknown ball or method.

    Example:
        >>> balanced_clip(MomentBound(2, 2.0), rows=100, dim=4, noise_multiplier=1.0)
        5.0

    Reference:
        Minimises the bounds of `clip_bias` and `clip_variance`; the paper's choices, such as that of Lowy
        (2023), Theorem 59, have the same order.
    """
    check_choice("method", method, get_args(ClipMethod))
    check_count("rows", rows)
    check_positive("sensitivity", sensitivity)
    check_non_negative("noise_multiplier", noise_multiplier)
    of_norm = moment.kind in _NORMS
    moment = moment if of_norm else moment.for_ball(ball, dim=dim)
    k, r = moment.order, moment.value
    noise = dim * (noise_multiplier * sensitivity / rows) ** 2
    if noise == 0 and (k >= 2 or method == "paper"):
        raise ParameterError("noise_multiplier must be > 0, got 0: without noise nothing is to be clipped.")
    if method == "paper":
        return r * math.pow(rows / (noise_multiplier * math.sqrt(dim)), 1 / k)
    # Of one clip of 1, where a cube has the bias and the variance of each of its d coordinates: the squared
    # bias A C^(2 - 2k), the noise N C^2, the variance V C^(2 - k), in units of r.
    rise = (2 - k) / rows if k < 2 else 0.0
    if of_norm and ball == "linf":
        # The bias is that of the ball inside the cube, the noise and the variance are of the one around it.
        noise, rise = noise * dim, rise * dim ** (1 - k / 2)
    fall = 2 * (k - 1) * _sharp_constant(k) ** 2
    # The derivative vanishes where 2 N u^2 + (2 - k) V u = 2 (k - 1) A, with u = C^k.
    root = 2 * fall / (rise + math.sqrt(rise * rise + 8 * noise * fall))
    clip = math.pow(root, 1 / k)
    if clip < (k - 1) / k:
        # Even a row of norm r is clipped: the bias is 1 - C, and a convex sum is least where its slope is 0.
        clip = 1 / (1 + noise)
    return r * clip


def _sharp_constant(order: float) -> float:
    """Return c_k = (k - 1)^(k - 1) / k^k."""
    return math.exp((order - 1) * math.log(order - 1) - order * math.log(order))


def _power(base: float, exponent: float) -> float:
    """Return a power, infinite where no float holds it."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
