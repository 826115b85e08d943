"""Upper bounds on shuffling against the tables, against each other, and on inputs far from them."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError, PrivacyWarning
from tacit.literature.shuffling.closed_forms import (
    chernoff_renyi,
    simplified_renyi,
    subgaussian_renyi,
)
from tacit.literature.shuffling.lower import shuffle_renyi_lower
from tacit.literature.shuffling.upper import METHODS, log_power_excess, reduction_renyi, shuffle_renyi
from tacit.privacy.divergences import pure_dp_renyi
from tacit.privacy.renyi import renyi_to_epsilon
from tacit.privacy.shuffling.renyi import clones_renyi
from tests.literature.shuffling.renyi_tables import EXACT, THESIS

DIGITS = 6e-9  # nine digits are printed
ORDERS = np.array([2.0, 4, 8, 16, 32, 64])


@pytest.mark.parametrize(("e", "n"), sorted({(r.local_epsilon, r.parties) for r in THESIS}))
def test_thesis_forms_agree_with_the_table(e: float, n: int) -> None:
    rows = [r for r in THESIS if (r.local_epsilon, r.parties) == (e, n)]
    orders = [r.order for r in rows]
    assert orders == ORDERS.tolist()
    assert chernoff_renyi(e, n, orders) == pytest.approx([r.chernoff for r in rows], rel=DIGITS)
    assert subgaussian_renyi(e, n, orders) == pytest.approx([r.subgaussian for r in rows], rel=DIGITS)
    paper = simplified_renyi(e, n, orders, check=False)
    assert paper == pytest.approx([r.simplified for r in rows], rel=DIGITS)
    for row in rows:
        if row.simplified_holds:
            assert simplified_renyi(e, n, row.order).item() == pytest.approx(row.simplified, rel=DIGITS)
        else:
            with pytest.raises(ParameterError, match=r"order\^4 e\^\(5 local_epsilon\) < parties / 9"):
                simplified_renyi(e, n, row.order)


@pytest.mark.parametrize(("e", "n"), sorted({(r.local_epsilon, r.parties) for r in EXACT}))
def test_exact_sums_agree_with_the_table_and_their_quick_forms_are_just_above(e: float, n: int) -> None:
    rows = [r for r in EXACT if (r.local_epsilon, r.parties) == (e, n)]
    orders = np.array([r.order for r in rows])
    for bound, wanted in (
        (reduction_renyi, np.array([r.reduction for r in rows])),
        (clones_renyi, np.array([r.clones for r in rows])),
    ):
        quick = bound(e, n, orders)
        assert np.all(quick >= wanted * (1 - 6e-5))  # the table's own buckets, at a million parties, add 4e-5
        assert np.all(quick <= wanted * 1.005)
        if n == 1000 or (n, e) == (10_000, 3.0):  # quick enough to sum without buckets
            exact = bound(e, n, orders, accuracy=1e-6)
            assert exact == pytest.approx(wanted, rel=6e-8)
            assert np.all(quick >= exact * (1 - 1e-9))


def test_sixty_digit_values() -> None:
    assert clones_renyi(1, 50, 4, accuracy=1e-9).item() == pytest.approx(0.094394066617, rel=1e-10)
    assert clones_renyi(2, 100, 8, accuracy=1e-9).item() == pytest.approx(1.01408510647, rel=1e-10)
    assert reduction_renyi(1, 50, 4, accuracy=1e-9).item() == pytest.approx(0.107225376484, rel=1e-10)
    assert reduction_renyi(2, 100, 8, accuracy=1e-9).item() == pytest.approx(0.775288858878, rel=1e-10)
    assert chernoff_renyi(2, 10**6, 64).item() == pytest.approx(0.015319521242923, rel=1e-10)
    assert chernoff_renyi(0.5, 10**6, 64).item() == pytest.approx(3.1249323180798e-05, rel=1e-10)
    assert chernoff_renyi(3, 1000, 64).item() == pytest.approx(2.9489339656756, rel=1e-10)


def test_bounds_at_real_orders() -> None:
    orders = [1.5, 2.5, 3.3, 7.9]
    wanted = [0.000590130876, 0.000837944744, 0.00112817958, 0.00358977814]
    assert chernoff_renyi(1, 10**4, orders) == pytest.approx(wanted, rel=DIGITS)
    wanted = [0.000221426036, 0.000368970786, 0.000486964809, 0.00116471131]
    assert reduction_renyi(1, 10**4, orders) == pytest.approx(wanted, rel=2e-3)
    assert np.all(reduction_renyi(1, 10**4, orders) > wanted)
    wanted = [0.00722076956, 0.00668589774]
    assert subgaussian_renyi(1, 10**4, orders[:2]) == pytest.approx(wanted, rel=DIGITS)
    # A bound of a convex function on chords: (a - 1) bound(a) of whole orders, joined.
    low, high = (chernoff_renyi(1, 10**4, a).item() for a in (3.0, 4.0))
    assert chernoff_renyi(1, 10**4, 3.3).item() == pytest.approx(
        (0.7 * 2 * low + 0.3 * 3 * high) / 2.3, rel=1e-9
    )


def test_full_sums_are_their_definition() -> None:
    n, e, a = 40, 1.3, 5.5
    chance = stats.binom.pmf(np.arange(n), n - 1, math.exp(-e))
    low = 1 / (1 + math.exp(e))
    reduction, clones = 0.0, 0.0
    for c in range(n):
        weight = float(chance[c])
        j = np.arange(c + 2)
        ratio = (math.exp(e) * j + (c + 1 - j) / math.exp(e)) / (c + 1)
        reduction += weight * float(stats.binom.pmf(j, c + 1, low) @ ratio**a)
        half = stats.binom.pmf(np.arange(c + 1), c, 0.5)
        pair = [np.append(half * (1 - flip), 0) + np.append(0, half * flip) for flip in (1 - low, low)]
        clones += weight * float(pair[1] @ (pair[0] / pair[1]) ** a)
    assert reduction_renyi(e, n, a, accuracy=1e-9).item() == pytest.approx(
        math.log(reduction) / (a - 1), rel=1e-9
    )
    assert clones_renyi(e, n, a, accuracy=1e-9).item() == pytest.approx(math.log(clones) / (a - 1), rel=1e-9)


def test_no_upper_bound_is_below_a_lower_bound_on_the_grid() -> None:
    for e, n in sorted({(r.local_epsilon, r.parties) for r in THESIS}):
        lower = shuffle_renyi_lower(e, n, ORDERS)
        uppers = {
            "chernoff": chernoff_renyi(e, n, ORDERS),
            "sharp": chernoff_renyi(e, n, ORDERS, variant="sharp", chernoff="opt"),
            "subgaussian": subgaussian_renyi(e, n, ORDERS),
            "tight": subgaussian_renyi(e, n, ORDERS, variant="tight"),
            "reduction": reduction_renyi(e, n, ORDERS),
            "clones": clones_renyi(e, n, ORDERS),
            "best": shuffle_renyi(e, n, ORDERS),
        }
        for name, upper in uppers.items():
            assert np.all(upper >= lower * (1 - 1e-9)), (name, e, n)
        for name in ("chernoff", "sharp", "subgaussian", "tight"):
            # The reduction is what these bound: none of them can be smaller.
            assert np.all(uppers[name] >= uppers["reduction"] * 0.995), (name, e, n)
        assert np.all(uppers["best"] <= np.minimum(uppers["reduction"], uppers["clones"]) * (1 + 1e-12))
        assert np.all(uppers["best"] <= pure_dp_renyi(e, ORDERS) * (1 + 1e-10))


def test_variants_are_sharper() -> None:
    for e, n in ((0.5, 1000), (1.0, 10_000), (3.0, 10_000)):
        printed = chernoff_renyi(e, n, ORDERS)
        sharp = chernoff_renyi(e, n, ORDERS, variant="sharp")
        best = chernoff_renyi(e, n, ORDERS, chernoff="opt")
        assert np.all(sharp <= printed * (1 + 1e-10))
        assert np.all(best <= printed * (1 + 1e-10))
        assert best[0] < 0.95 * printed[0]
        tight = subgaussian_renyi(e, n, ORDERS, variant="tight")
        assert np.all(tight <= subgaussian_renyi(e, n, ORDERS) * (1 + 1e-10))
    # Half of the leading term is saved.
    e, n = 0.5, 10**6
    halves = [subgaussian_renyi(e, n, 64, variant=v).item() for v in ("tight", "printed")]
    assert halves[0] / halves[1] == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(("e", "n", "rounds", "delta", "wanted", "order"), [
    (0.5, 10**6, 1000, 1e-8, 0.170227286, 137), (1.0, 10**5, 100, 1e-6, 0.478774999, 35),
])  # fmt: skip
def test_composed_epsilons(e: float, n: int, rounds: int, delta: float, wanted: float, order: float) -> None:
    orders = np.arange(2.0, 400.0)
    found = renyi_to_epsilon(orders, rounds * chernoff_renyi(e, n, orders), delta)
    assert found.epsilon == pytest.approx(wanted, rel=1e-8)
    assert found.order == order


def test_the_far_left_tail_is_not_lumped_together() -> None:
    # One bucket for [0, mean - 10 sd], evaluated at no blanket at all, gives 1.777 here.
    assert shuffle_renyi(3.0, 10**6, 64).item() < 0.00212
    assert shuffle_renyi(3.0, 10**6, [64.0, 1e4])[0] < 0.00212


LEVELS, PARTIES = st.floats(1e-4, 15.0), st.integers(2, 10**9)
UPPER = ["chernoff", "subgaussian", "reduction", "clones", "best"]


@pytest.mark.parametrize("method", UPPER)
@settings(max_examples=8)
@given(e=LEVELS, n=PARTIES)
def test_no_overflow_and_never_above_the_pure_level(method: str, e: float, n: int) -> None:
    orders = np.array([1.001, 1.5, 2.0, 7.3, 64.0, 1e3, 1e4])
    bound = shuffle_renyi(e, n, orders, method=method)
    assert np.all(np.isfinite(bound))
    assert np.all((bound > 0) & (bound <= e * (1 + 1e-9)))
    assert np.all(bound >= shuffle_renyi_lower(e, min(n, 10**6), orders) * (1 - 1e-9)) or n > 10**6


@pytest.mark.parametrize("method", UPPER)
@settings(max_examples=8)
@given(e=st.floats(1e-3, 8.0), n=st.integers(2, 10**7), more=st.floats(1.05, 2.0))
def test_bounds_rise_with_the_level_and_the_order_and_fall_with_parties(
    method: str, e: float, n: int, more: float
) -> None:
    orders = np.array([2.0, 3.0, 10.0, 100.0])
    # Rounding for speed may shift a bound by less than a percent.
    slack = 1.01 if method in ("reduction", "clones", "best") else 1 + 1e-9
    bound = shuffle_renyi(e, n, orders, method=method)
    assert np.all(bound <= shuffle_renyi(e * more, n, orders, method=method) * slack)
    assert np.all(bound * slack >= shuffle_renyi(e, 2 * n, orders, method=method))
    if method not in ("chernoff", "subgaussian"):  # e^(epsilon0 a / (a - 1)) falls, and diverges at order 1
        assert np.all(bound[:-1] <= bound[1:] * slack)


@pytest.mark.parametrize("bound", [reduction_renyi, clones_renyi])
def test_exact_sums_are_convex_in_the_order(bound: object) -> None:
    orders = np.arange(2.0, 60.0)
    assert callable(bound)
    moment = (orders - 1) * bound(2.0, 300, orders, accuracy=1e-9)
    assert np.all(np.diff(moment, 2) >= -1e-9 * moment[1:-1])


def test_ends_of_the_range() -> None:
    for method in METHODS:
        if method != "simplified":
            assert shuffle_renyi(0.0, 10, [2.0, 3.0], method=method).tolist() == [0.0, 0.0]
            assert shuffle_renyi(1.0, 1, [2.0], method=method).item() == pytest.approx(
                pure_dp_renyi(1.0, 2.0)
            )
    with pytest.warns(PrivacyWarning, match="hides nothing") as caught:
        assert shuffle_renyi(200.0, 10**9, 3.0).item() <= 200 * (1 + 1e-9)
    assert caught[0].filename == __file__  # it points at who asked


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"local_epsilon": -1.0}, "local_epsilon"),
        ({"local_epsilon": math.nan}, "local_epsilon"),
        ({"local_epsilon": math.inf}, "local_epsilon"),
        ({"parties": 0}, "parties"),
        ({"parties": 2.5}, "parties"),
        ({"orders": [1.0]}, "orders"),
        ({"orders": [math.inf]}, "orders"),
        ({"orders": []}, "orders"),
        ({"method": "worst"}, "method"),
    ],
)
def test_bad_arguments_are_refused(changed: dict[str, object], message: str) -> None:
    given_ = {"local_epsilon": 1.0, "parties": 10, "orders": [2.0]} | changed
    with pytest.raises(ParameterError, match=message):
        shuffle_renyi(**given_)  # type: ignore[arg-type]  # wrong on purpose


def test_bad_options_are_refused() -> None:
    with pytest.raises(ParameterError, match="chernoff"):
        chernoff_renyi(1.0, 10, 2.0, chernoff=1.0)
    with pytest.raises(ParameterError, match="variant"):
        chernoff_renyi(1.0, 10, 2.0, variant="loose")
    with pytest.raises(ParameterError, match="blanket"):
        clones_renyi(1.0, 10, 2.0, blanket=0.6)
    with pytest.raises(ParameterError, match="accuracy"):
        reduction_renyi(1.0, 10, 2.0, accuracy=0.0)


@given(x=st.floats(-0.999, 50.0), power=st.floats(-50.0, 60.0))
def test_excess_of_a_power_is_its_definition(x: float, power: float) -> None:
    if -1e-3 <= power <= 1 + 1e-9 or power * math.log1p(x) > 600:
        return
    with decimal.localcontext(prec=60):
        wanted = (1 + Decimal(x)) ** Decimal(power) - 1 - Decimal(power) * Decimal(x)
        if wanted < Decimal("1e-40"):
            return
        exact = float(wanted.ln())
    assert log_power_excess(np.array(x), np.array(power)).item() == pytest.approx(exact, rel=1e-9, abs=2e-8)


def test_the_simplified_bound_is_below_what_it_simplifies_for_tiny_levels() -> None:
    # Girgis (2023), Corollary 5.3.1, inside of its condition; it stays above what is proven otherwise.
    e, n = 1e-4, 150
    whole, best, checked = (f(e, n, 2.0).item() for f in (chernoff_renyi, shuffle_renyi, simplified_renyi))
    simple = simplified_renyi(e, n, 2.0, check=False).item()
    assert (simple, whole) == pytest.approx((2.6667e-10, 8.3022e-9), rel=1e-4)
    assert best < simple < whole == checked


@pytest.mark.parametrize("x", [-9e-4, 9e-4])
def test_small_excess_keeps_its_digits(x: float) -> None:
    # The second term of the series weighs 1e-8 here; without it a moment could be too low.
    with decimal.localcontext(prec=60):
        power = Decimal("1.0625")
        exact = float(((1 + Decimal(x)) ** power - 1 - power * Decimal(x)).ln())
    assert log_power_excess(np.array(x), np.array(1.0625)).item() == pytest.approx(exact, abs=1e-11)
