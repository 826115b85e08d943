"""The price of a sum of discrete Gaussian shares, against its law by exact convolution."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.mechanisms import convolution_slack, shares_slack
from tacit.numerics import Array
from tacit.privacy import (
    Aligned,
    Compose,
    DiscreteGaussian,
    DiscreteGaussianSum,
    Event,
    Gaussian,
    Neighbours,
    Parallel,
    PrivacyBudget,
    Relation,
    Repeat,
    Sample,
    Sampled,
    Unit,
    assumptions_of,
    calibrate,
    delta_of,
    epsilon_of,
    event_from_json,
    event_to_json,
    renyi_of,
    rho_of,
    squared_level,
)
from tests.privacy.sums_reference import as_floats, exact_delta, gaussian_law, sum_law, wrapped_delta

RATIOS = [
    # std, shares, largest logarithm of a ratio up to 5 deviations, and its bound, to the digits given
    (0.5, 2, "0.21419", "3.425e-01"),
    (0.5, 10, "0.37036", "9.419e-01"),
    (0.7, 2, "0.016255", "3.175e-02"),
    (0.7, 10, "0.0045636", "4.717e-02"),
    (1.0, 2, "1.0346e-4", "2.069e-04"),
    (1.0, 10, "4.3868e-7", "2.174e-04"),
    (1.5, 2, "4.5376e-10", "9.075e-10"),
    (1.5, 10, "8.842e-17", "9.081e-10"),
]


def largest_log_ratio(std: float, shares: int) -> Decimal:
    """How far the sum is from the discrete Gaussian of its variance, up to 5 deviations."""
    law = sum_law(std, shares)
    reach = len(law) // 2
    whole = Decimal(shares).sqrt() * Decimal(std)
    # The law of an irrational parameter: only the square enters.
    half = [(-(Decimal(y) ** 2) / (2 * shares * Decimal(std) ** 2)).exp() for y in range(reach + 1)]
    norm = half[0] + 2 * sum(half[1:])
    return max(abs((law[reach + y] / (half[y] / norm)).ln()) for y in range(int(5 * whole) + 1))


@pytest.mark.parametrize(("std", "shares", "ratio", "bound"), RATIOS)
def test_a_sum_of_shares_is_as_close_to_one_law_as_is_said(
    std: float, shares: int, ratio: str, bound: str
) -> None:
    with localcontext(prec=60):
        exact = largest_log_ratio(std, shares)
    given = Decimal(ratio)
    assert abs(exact / given - 1) < Decimal(10) ** (1 - len(given.as_tuple().digits))
    slack = shares_slack(std, shares)
    assert f"{slack:.3e}" == bound
    assert exact <= Decimal(slack)
    if shares == 2:  # the bound is not vacuous
        assert exact > Decimal("0.3") * Decimal(slack)


def test_shares_of_three_steps_are_one_law_to_within_1e_38() -> None:
    assert f"{shares_slack(2.0, 1000):.3e}" == "2.863e-17"
    assert f"{shares_slack(3.0, 1000):.3e}" == "1.060e-38"
    assert shares_slack(3.0, 2**63 - 1) + convolution_slack(3.0) < 1.1e-38
    # Every term but the first few is next to eta(3): more than 10^37 shares would be too many.
    few, rest = shares_slack(3.0, 1000), convolution_slack(3 * math.sqrt(1000 / 1001))
    assert few + 1e37 * rest < 1.1e-38
    assert few + 1e38 * convolution_slack(3.0) > 1.1e-38


PRICES = [
    # shares, std, shift, epsilon: exact delta, the bound, and the continuous law of that variance
    (10, 3.0, 10, 1.0, "1.459865752e-01", "1.674799354e-01", "1.463428317e-01"),
    (25, 3.0, 15, 2.0, "2.094759180e-02", "2.369795135e-02", "2.092363582e-02"),
    (4, 5.0, 10, 1.0, "1.266433621e-01", "1.442266120e-01", "1.269367375e-01"),
    (10, 10.0, 30, 0.5, "2.179692288e-01", "2.196711681e-01", "2.179586520e-01"),
]


@pytest.mark.parametrize(("shares", "std", "shift", "epsilon", "exact", "bound", "continuous"), PRICES)
def test_reference_prices_of_one_number(
    shares: int, std: float, shift: int, epsilon: float, exact: str, bound: str, continuous: str
) -> None:
    delta = exact_delta(sum_law(std, shares), shift, epsilon)
    assert f"{delta:.9e}".replace("e-0", "e-").replace("e-", "e-0") == exact
    assert f"{delta_of(DiscreteGaussianSum(std, shares, shift, dim=1), epsilon):.9e}" == bound
    assert f"{delta_of(Gaussian(math.sqrt(shares) * std / shift), epsilon):.9e}" == continuous
    assert delta <= Decimal(bound)


def test_the_continuous_law_of_the_whole_variance_is_no_bound() -> None:
    above = [Decimal(exact) > Decimal(continuous) for *_, exact, _, continuous in PRICES]
    assert above == [False, True, False, True]
    assert exact_delta(sum_law(1.0, 2), 1, 1.0) > Decimal("3.963259300e-02")
    assert f"{exact_delta(sum_law(1.0, 2), 1, 1.0):.9e}" == "4.282728129e-2"
    assert f"{delta_of(Gaussian(math.sqrt(2)), 1.0):.9e}" == "3.963259300e-02"


def delta_2d(law: Array, shift: tuple[int, int], epsilon: float) -> float:
    """Exact delta of two coordinates."""
    sides = []
    for k in shift:
        zeros = np.zeros(k)
        sides.append((np.concatenate([law, zeros]), np.concatenate([zeros, law])))
    (a, b), (c, d) = sides
    return float(np.maximum(np.outer(a, c) - math.exp(epsilon) * np.outer(b, d), 0).sum())


def test_reference_prices_of_two_numbers() -> None:
    law = as_floats(sum_law(3.0, 8))
    exact = [f"{delta_2d(law, (6, 8), epsilon):.9e}" for epsilon in (0.5, 1.0, 2.0)]
    assert exact == ["3.092820606e-01", "1.931469861e-01", "5.181059434e-02"]
    # The lemma holds for them, but 8 shares of 3 steps are below the 81 steps^2 that are asked for.
    bound = [f"{delta_of(Gaussian(math.sqrt(8 * 9 - 9) / 10), epsilon):.9e}" for epsilon in (0.5, 1.0, 2.0)]
    assert bound == ["3.411210798e-01", "2.249044678e-01", "7.089400878e-02"]
    with pytest.raises(ParameterError, match=r"shares \* std"):
        DiscreteGaussianSum(3.0, 8, 10.0, dim=2)


def float_law(std: float, shares: int) -> Array:
    """The law of a sum in floats, each probability to some 1e-15 of the largest."""
    y = np.arange(-int(10 * std), int(10 * std) + 1)
    one = np.exp(-0.5 * (y / std) ** 2)
    found = np.ones(1)
    for _ in range(shares):
        found = np.convolve(found, one / one.sum())
    return found


def test_a_price_is_never_below_the_truth_and_close_to_it() -> None:
    rng, ratios = np.random.default_rng(0), []
    for _ in range(100):
        shares = int(rng.integers(2, 13))
        std = round(float(max(3.0, 9 / math.sqrt(shares)) * rng.uniform(1.0, 3.0)), 1) + 0.1
        whole = math.sqrt(shares) * std
        shift = max(1, int(whole * rng.uniform(0.05, 3.0)))
        law = float_law(std, shares)
        for epsilon in rng.uniform(0, 3 * shift / whole + (shift / whole) ** 2 / 2, 3):
            priced = delta_of(DiscreteGaussianSum(std, shares, float(shift), dim=1), epsilon)
            zeros = np.zeros(shift)
            truth = np.maximum(
                np.concatenate([law, zeros]) - math.exp(epsilon) * np.concatenate([zeros, law]), 0
            ).sum()
            assert truth <= priced * (1 + 1e-9) + 1e-15
            ratios.append(truth / priced)
        if shares <= 4 and std < 12:
            split = int(shift * 0.6), math.isqrt(shift**2 - int(shift * 0.6) ** 2)
            wide = DiscreteGaussianSum(std, shares, math.hypot(*split) or 1.0, dim=2)
            assert delta_2d(law, split, 0.5) <= delta_of(wide, 0.5) + 1e-14
    assert max(ratios) > 0.97
    assert np.median(ratios) > 0.8


def test_wrapping_around_costs_no_privacy() -> None:
    law = sum_law(1.0, 2)
    assert f"{wrapped_delta(law, 16, 1, 1.0):.9e}" == "4.282716324e-2"
    assert f"{wrapped_delta(law, 8, 1, 1.0):.9e}" == "2.371089171e-2"
    lost = 0
    for shares, std, shift, modulus in product((2, 3, 5), (0.5, 1.0, 2.0, 3.0), (1, 2, 5), (4, 8, 16, 64)):
        law = sum_law(std, shares)
        for epsilon in (0.3, 1.0, 2.5):
            whole, folded = exact_delta(law, shift, epsilon), wrapped_delta(law, modulus, shift, epsilon)
            assert folded - whole <= Decimal("1e-40")
            lost += folded < whole / 2
    assert lost > 10


def saturated_delta(shares: int, std: float, top: int, inputs: tuple[int, int], epsilon: float) -> float:
    """Delta of the sum of messages of which each is cut to [-top, top] after its noise; one party's moves."""
    reach = 60 * int(std)
    law = as_floats(gaussian_law(std, reach))

    def cut(x: int) -> Array:
        found = np.zeros(2 * top + 1)
        np.add.at(found, np.clip(np.arange(-reach, reach + 1) + x, -top, top) + top, law)
        return found

    totals = []
    for x in inputs:
        total = cut(x)
        for _ in range(shares - 1):  # the others hold so much that they are cut almost surely
            total = np.convolve(total, cut(4 * top))
        totals.append(total)
    return float(np.maximum(totals[0] - math.exp(epsilon) * totals[1], 0).sum())


def test_saturation_after_the_noise_would_be_a_violation() -> None:
    claimed = delta_of(DiscreteGaussianSum(5.0, 4, 10.0, dim=1), 2.0)
    assert f"{claimed:.4f}" == "0.0277"
    assert exact_delta(sum_law(5.0, 4), 10, 2.0) < claimed
    assert round(saturated_delta(4, 5.0, 20, (0, 10), 2.0), 3) == 0.329


def test_one_share_is_a_discrete_gaussian() -> None:
    for std, moved, dim in ((2.0, 1.0, 1), (2.0, 2.0, None), (40.0, 12.0, 7), (300.0, 31.5, 10**6)):
        one, alone = DiscreteGaussianSum(std, 1, moved, dim=dim), DiscreteGaussian(std, moved, dim=dim)
        for rounds in (1, 20):
            first, second = Repeat(one, rounds), Repeat(alone, rounds)
            assert delta_of(first, 0.7) == delta_of(second, 0.7)
            assert rho_of(first) == rho_of(second)
        assert assumptions_of(one) == ()
        assert (one.distance, one.has_own_law) == (alone.distance, alone.has_own_law)
        assert one.rounded(3) == alone.rounded(3)
        assert one.curve().delta(0.3) == alone.curve().delta(0.3)
        assert one.work(many=True) == alone.work(many=True)


def test_more_shares_cost_no_more() -> None:
    counts = (1, 2, 3, 8, 10**6, 2**60)
    prices = [delta_of(DiscreteGaussianSum(10.0, shares, 25.0, dim=9), 1.0) for shares in counts]
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] < 1e-300


NEAR = DiscreteGaussianSum(30.0, 8, 24.3, dim=65)
LEVEL = math.sqrt(8 * 30.0**2 - 9) / 24.3
"""The multiplier of the noise that its price counts, from the definition."""

COMBINED: dict[str, Callable[[Event], Event]] = {
    "alone": lambda x: x,
    "repeated": lambda x: Repeat(x, 60),
    "composed": lambda x: Compose((x, Gaussian(3.0), x)),
    "sampled": lambda x: Repeat(Sampled(x, 0.1), 30),
    "sampled together": lambda x: Sampled(Compose((x, x)), 0.05),
    "disjoint": lambda x: Parallel((Repeat(x, 3), x)),
    "aligned": lambda x: Aligned(x, Repeat(x, 5)),
    "aligned rows": lambda x: Aligned(Gaussian(2.0), x, 0.01),
}


@pytest.mark.parametrize("name", COMBINED)
def test_in_what_is_combined_it_is_the_gaussian_release_of_its_level(name: str) -> None:
    ours, plain = COMBINED[name](NEAR), COMBINED[name](Gaussian(LEVEL))
    for delta in (1e-5, 1e-9):
        # What must be convolved is exact to the grid's accuracy only.
        assert epsilon_of(ours, delta) == pytest.approx(epsilon_of(plain, delta), rel=1e-7)
    assert event_from_json(event_to_json(ours)) == ours
    assert assumptions_of(NEAR)[0] == "at least 8 honest parties add their share of the noise to every sum"
    assert set(assumptions_of(NEAR)) <= set(assumptions_of(ours))


def test_poisson_samples_of_parties() -> None:
    near = Neighbours(Relation.ADD_REMOVE, Unit.PARTY)
    ours = Sampled(DiscreteGaussianSum(30.0, 8, 24.3, near, 65), 0.1, Sample.POISSON)
    plain = Sampled(Gaussian(LEVEL, near), 0.1, Sample.POISSON)
    assert epsilon_of(Repeat(ours, 9), 1e-6) == pytest.approx(epsilon_of(Repeat(plain, 9), 1e-6), rel=1e-9)


def test_the_second_proof_is_concentrated_and_needs_no_nine_steps() -> None:
    whole, orders = 8 * 30.0**2, np.array([1.5, 2.0, 30.0])
    assert NEAR.concentrated.rho == pytest.approx(24.3**2 / (2 * whole), rel=1e-14)
    assert rho_of(NEAR) >= 24.3**2 / (2 * whole)
    assert np.allclose(renyi_of(NEAR, orders), NEAR.concentrated.rho * orders)
    assert squared_level(NEAR) == pytest.approx(1 / LEVEL**2, rel=1e-14)
    # Where much of the variance is given up, it wins far out.
    coarse = DiscreteGaussianSum(3.0, 9, 1.0, dim=4)
    fine = coarse.rounded()
    assert fine is not None
    assert coarse.curve().delta(1.5) < delta_of(fine, 1.5)


def test_renyi_divergences_of_sums_are_below_those_stated() -> None:
    law, shift = sum_law(3.0, 9), 7
    middle = len(law) // 2
    with localcontext(prec=45):
        for order in (2, 3, 8):
            # Eleven deviations to both sides: beyond, less than 1e-20 of the moment.
            inside = range(middle - 100, middle + 100)
            moment = sum((law[y - shift] ** order / law[y] ** (order - 1) for y in inside), Decimal(0))
            exact = float(moment.ln()) / (order - 1)
            stated = float(renyi_of(DiscreteGaussianSum(3.0, 9, 7.0, dim=1), [float(order)])[0])
            assert stated * 0.999 < exact <= stated


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ((2.9, 10, 10.0), "std must be >= 3 grid steps.*take more steps"),
        ((3.0, 8, 10.0), r"shares \* std.2 must be >= 81.*take more steps"),
        ((0.0, 10, 10.0), "std"),
        ((math.nan, 10, 10.0), "std"),
        ((5.0, 0, 10.0), "shares"),
        ((5.0, 2.5, 10.0), "shares"),
        ((5.0, 10**37 + 1, 10.0), "shares must be a whole number from 1 to 10{37}, got 10{36}1"),
        ((5.0, 10, math.inf), "sensitivity"),
        ((5.0, 10, 10.0, Neighbours(), 2**32 + 1), "dim"),
        ((5.0, 10, 10.0, Neighbours(), 0), "dim"),
    ],
)
def test_what_is_not_proven_is_refused(fields: tuple[float, ...], complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        DiscreteGaussianSum(*fields)  # type: ignore[arg-type]


def test_the_limits_have_a_price() -> None:
    for event in (
        DiscreteGaussianSum(3.0, 9, 1.0, dim=2**32),
        DiscreteGaussianSum(3.0, 9, 1.0),
        DiscreteGaussianSum(1e300, 2**62, 1e-300),
        DiscreteGaussianSum(3.0, 2**62, 1e300),
        DiscreteGaussianSum(3.0, 10**37, 1.0),
    ):
        assert 0 <= delta_of(Repeat(event, 2**40), 1.0) <= 1


def test_a_silo_that_counts_its_own_larger_noise_in_all_shares_claims_too_little() -> None:
    """Shares that follow the slack of every silo's own sensitivity: a large one among small ones."""
    steps, dim, shares, z = 512, 65, 8, 3.7306316348

    def length(rows: int) -> float:  # of replacing one, with what float64 sums of so many rows add
        return 2 * steps * (1 + rows**2 * 2.0**-53) + math.sqrt(dim)

    large, small = length(10**7), length(100)
    own, others = (math.sqrt(((z * distance) ** 2 + 9) / shares) for distance in (large, small))
    claimed = delta_of(DiscreteGaussianSum(own, shares, large, dim=dim), 1.0)
    assert claimed == pytest.approx(1e-5, rel=1e-6)
    honest = math.sqrt(own**2 + (shares - 1) * others**2)
    assert round(delta_of(Gaussian(honest / large), 1.0) / claimed, 2) == 1.17


def test_the_least_share_that_meets_a_budget() -> None:
    found = calibrate(
        lambda s: DiscreteGaussianSum(s, 8, 1032.0623, dim=65), PrivacyBudget(1.0, 1e-5), low=10.0, high=1e6
    )
    assert found == pytest.approx(math.sqrt(((3.7306316348 * 1032.0623) ** 2 + 9) / 8), rel=1e-8)
