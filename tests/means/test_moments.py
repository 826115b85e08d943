"""Stated moments: what clipping costs at most, and which clip balances it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize

from tacit.errors import ParameterError, UnknownNameError
from tacit.means import (
    AdditiveMean,
    Facts,
    GaussianNoise,
    MomentBound,
    MomentKind,
    Round,
    balanced_clip,
    clip_bias,
    clip_variance,
    gradient_moment,
)
from tacit.numerics import Array, clip_rows
from tacit.privacy import TrustModel


def bias_of(values: Array, mass: Array, clip: float) -> float:
    """E (z - C)_+ of a law with finitely many values >= 0."""
    return float(np.sum(mass * np.maximum(values - clip, 0)))


@pytest.mark.parametrize(
    ("order", "value", "kind"),
    [
        (1.0, 1.0, "sup-outside"),
        (0.5, 1.0, "sup-outside"),
        (math.nan, 1.0, "sup-outside"),
        (2.0, 0.0, "entry"),
    ],
)
def test_orders_of_at_most_one_are_refused(order: float, value: float, kind: str) -> None:
    with pytest.raises(ParameterError, match="must be"):
        MomentBound(order, value, MomentKind(kind))


def test_it_is_written_as_order_and_value() -> None:
    assert MomentBound.parse("1.5:3") == MomentBound(1.5, 3.0)
    for text in ("4", "1:3", "4:0", "4:nan", "a:b", "4:5:6"):
        with pytest.raises(ParameterError):
            MomentBound.parse(text)
    with pytest.raises(ParameterError, match="kind"):
        MomentBound(2, 1.0, "entry")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("order", "sharp", "paper"),
    [(2, 0.25, 1), (3, 0.148148, 0.5), (4, 0.105469, 1 / 3), (8, 0.0490870, 1 / 7)],
)
def test_the_sharp_constants(order: float, sharp: float, paper: float) -> None:
    moment = MomentBound(order, 1.0)
    assert clip_bias(moment, 1.0) == pytest.approx(sharp, rel=1e-5)
    assert clip_bias(moment, 1.0, method="paper") == pytest.approx(paper)


@pytest.mark.parametrize(
    ("clip", "exact", "bound"), [(2, 0.125, 0.375), (4, 0.03125, 0.1875), (8, 0.0078125, 0.09375)]
)
def test_the_bias_of_a_pareto_law(clip: float, exact: float, bound: float) -> None:
    """Density 3 x^-4 from 1 on: E z^2 = 3."""
    found = integrate.quad(lambda x: (x - clip) * 3 * x**-4, clip, np.inf)[0]
    assert found == pytest.approx(exact)
    moment = MomentBound(2, math.sqrt(3))
    assert clip_bias(moment, clip) == pytest.approx(bound)
    assert found <= clip_bias(moment, clip) <= clip_bias(moment, clip, method="paper")


@pytest.mark.parametrize("order", [1.1, 1.5, 2.0, 3.0, 7.5])
@pytest.mark.parametrize("clip", [0.05, 0.4, 1.0, 3.0, 10.0])
def test_no_law_exceeds_the_bounds_and_some_attain_them(order: float, clip: float) -> None:
    """The laws with E z^k <= r^k on a grid: both expectations are linear programs."""
    moment, r = MomentBound(order, 2.0), 2.0
    far = order * clip / (order - 1)
    grid = np.unique(np.concatenate([np.linspace(0, 3 * max(far, r), 400), [clip, far, r, min(r, clip)]]))
    for goal, bound in (
        (np.maximum(grid - clip, 0), clip_bias(moment, clip)),
        (np.minimum(grid, clip) ** 2, clip_variance(moment, clip)),
    ):
        found = optimize.linprog(
            -goal, A_ub=(grid**order)[None], b_ub=[r**order], A_eq=np.ones((1, grid.size)), b_eq=[1]
        )
        assert found.fun is not None
        assert -found.fun == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("order", [1.2, 1.7, 2.0, 3.0, 6.0])
@pytest.mark.parametrize("multiplier", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("ball", ["l2", "linf", "linf, of norms"])
def test_the_balanced_clip_has_the_least_bound(order: float, multiplier: float, ball: str) -> None:
    rows, dim, name = 50, 4, ball[:4].rstrip(",")
    moment = MomentBound(order, 3.0, MomentKind.SUP_OUTSIDE if "norms" in ball else MomentKind.ENTRY)
    inside = moment if "norms" in ball else moment.for_ball(name, dim=dim)  # type: ignore[arg-type]
    # A cube has the bias of each coordinate, and moves by sqrt(d) times its half side. By a moment of norms,
    # its bias is that of the ball inside it, and its variance that of the ball around it.
    squares = dim if ball == "linf" else 1
    wide = math.sqrt(dim) if "norms" in ball else 1.0

    def total(log_clip: float) -> float:
        clip = math.exp(log_clip)
        noise = dim * (dim if name == "linf" else 1) * (multiplier * 2 * clip / rows) ** 2
        # The variance of clipped rows is balanced where its bound still grows.
        variance = (wide * clip) ** (2 - order) * inside.value**order / rows if order < 2 else 0.0
        return squares * (clip_bias(inside, clip) ** 2 + variance) + noise

    found = balanced_clip(moment, rows=rows, dim=dim, noise_multiplier=multiplier, ball=name)  # type: ignore[arg-type]
    if found < (order - 1) / order * inside.value and order < 2:
        assert found <= inside.value  # rows are drowned: the variance is that of the radius then
        return
    grid = np.linspace(math.log(found) - 6, math.log(found) + 6, 2001)
    assert total(math.log(found)) <= min(map(total, grid)) * (1 + 1e-9)


def test_the_balanced_clip_of_the_example() -> None:
    """k = 2, d = 4, s = 100, epsilon = 1 (rho = 1/2), r = 2: clip 5, bias 0.2, noise 0.04."""
    moment = MomentBound(2, 2.0)
    multiplier = 1 / math.sqrt(2 * 0.5)
    clip = balanced_clip(moment, rows=100, dim=4, noise_multiplier=multiplier)
    assert clip == pytest.approx(5.0)
    assert clip_bias(moment, clip) == pytest.approx(0.2)
    assert 4 * (multiplier * 2 * clip / 100) ** 2 == pytest.approx(0.04)
    paper = balanced_clip(moment, rows=100, dim=4, noise_multiplier=multiplier, method="paper")
    assert paper == pytest.approx(14.142136)


def test_what_the_balance_refuses() -> None:
    moment = MomentBound(2, 1.0)
    with pytest.raises(ParameterError, match="noise_multiplier"):
        balanced_clip(moment, rows=10, dim=2, noise_multiplier=0.0)
    with pytest.raises(ParameterError, match="rows"):
        balanced_clip(moment, rows=0, dim=2, noise_multiplier=1.0)
    with pytest.raises(UnknownNameError):
        balanced_clip(moment, rows=1, dim=2, noise_multiplier=1.0, method="best")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="clip"):
        clip_bias(moment, 0.0)
    with pytest.raises(ParameterError, match="raw moment"):
        clip_bias(MomentBound(2, 1.0, MomentKind.COORDINATE), 1.0)
    # Without noise the variance alone keeps the clip finite where rows have none.
    free = balanced_clip(MomentBound(1.5, 1.0), rows=10, dim=2, noise_multiplier=0.0)
    assert math.isfinite(free)
    assert clip_bias(MomentBound(400, 1e300), 1e-9, method="paper") == math.inf


def test_the_error_of_the_two_point_law() -> None:
    """The hard instance at d = 4, s = 100, epsilon = 1, C = 6: bias, noise and sampling to the digit."""
    p, clip, rows = 2 / (100 * math.sqrt(0.5)), 6.0, 100
    length = p**-0.5 * 2
    bias, sampling = p * (length - clip), p * (1 - p) * clip**2 / rows
    mean = AdditiveMean(dim=4, noise=GaussianNoise(1.0), trust=TrustModel.CENTRAL)
    assert bias == pytest.approx(0.166652939)
    assert sampling == pytest.approx(0.00989433765)
    noise = mean.error(rows, Facts(parties=1, radius=clip)).variance
    assert noise == pytest.approx(4 * 0.0144)
    assert bias**2 + sampling + noise == pytest.approx(0.0952675396)
    moment = MomentBound(2, 2.0)
    assert bias <= clip_bias(moment, clip)
    assert p * clip**2 <= clip_variance(moment, clip)


def test_a_sample_strays_further_than_the_bias() -> None:
    """Signs, one row, k = 8, C = 10: the printed chain says E|clipped mean - mean| <= 1.5e-8; it is 1."""
    moment = MomentBound(8, 1.0)
    bound = clip_bias(moment, 10.0, method="paper")
    assert bound < 1.5e-8
    signs = np.array([[-1.0], [1.0]])
    assert np.abs(clip_rows(signs, 10.0)).mean() == 1.0 > bound
    assert abs(clip_rows(signs, 10.0).mean()) <= clip_bias(moment, 10.0) <= bound


def test_replacing_a_row_moves_the_clipped_mean_by_two_clips_over_s() -> None:
    mean, this_round = AdditiveMean(dim=3, on_violation="clip"), Round(n=5, radius=2.0)
    rows = np.random.default_rng(0).standard_t(3, (5, 3))
    low, high = rows.copy(), rows.copy()
    low[0], high[0] = [-1e200, 0, 0], [1e200, 0, 0]
    rng = np.random.default_rng(1)
    moved = mean.estimate(high, this_round, rng=rng) - mean.estimate(low, this_round, rng=rng)
    assert np.linalg.norm(moved) == pytest.approx(2 * 2.0 / 5, rel=1e-12)
    assert np.linalg.norm(clip_rows(high, 2.0), axis=1).max() <= 2.0


def test_a_symmetric_law_has_no_bias_at_any_clip() -> None:
    half = np.random.default_rng(2).standard_cauchy((50, 3))
    mean = AdditiveMean(dim=3, on_violation="clip")
    for clip in (0.1, 1.0, 1e6):
        found = mean.estimate(
            np.concatenate([half, -half]), Round(n=100, radius=clip), rng=np.random.default_rng(0)
        )
        assert np.allclose(found, 0, atol=1e-12 * clip)


# Moments of other kinds


@pytest.mark.parametrize("order", [1.3, 2.0, 3.0, 5.0])
def test_conversions_hold_for_every_law(order: float) -> None:
    rng, dim = np.random.default_rng(3), 3
    for _ in range(40):
        law = rng.standard_t(2, (4, dim)) * rng.choice([0.1, 1, 10], size=(4, dim)) + rng.normal(size=dim)
        found = {kind: gradient_moment([law], order, kind=kind) for kind in MomentKind}
        for one in MomentKind:
            for other in MomentKind:
                if other is MomentKind.SUP_INSIDE and one is not other:
                    with pytest.raises(ParameterError, match="bounds none"):
                        found[one].as_kind(other, dim=dim)
                else:
                    assert found[other].value <= found[one].as_kind(other, dim=dim).value * (1 + 1e-12)


def test_the_factor_of_the_lemma_is_halved() -> None:
    moment = MomentBound(3, 1.0, MomentKind.COORDINATE)
    assert moment.as_kind(MomentKind.SUP_OUTSIDE, dim=9).value == pytest.approx(2 * 3)
    assert moment.at_order(2) == MomentBound(2, 1.0, MomentKind.COORDINATE)
    with pytest.raises(ParameterError, match="order"):
        moment.at_order(4)
