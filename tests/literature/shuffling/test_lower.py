"""Lower bounds against the tables and against enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.literature.shuffling.baselines import clones_epsilon
from tacit.literature.shuffling.lower import (
    shuffle_delta_lower,
    shuffle_epsilon_lower,
    shuffle_renyi_lower,
)
from tacit.privacy.divergences import pure_dp_renyi
from tests.literature.shuffling.renyi_tables import THESIS
from tests.privacy.reference import Array, hockey_stick

DIGITS = 6e-9
ORDERS = np.array([2.0, 4, 8, 16, 32, 64])


@pytest.mark.parametrize(("e", "n"), sorted({(r.local_epsilon, r.parties) for r in THESIS}))
def test_both_directions_agree_with_the_table(e: float, n: int) -> None:
    rows = [r for r in THESIS if (r.local_epsilon, r.parties) == (e, n)]
    forward = shuffle_renyi_lower(e, n, ORDERS, direction="forward")
    reverse = shuffle_renyi_lower(e, n, ORDERS, direction="reverse")
    assert forward == pytest.approx([r.forward for r in rows], rel=DIGITS)
    assert reverse == pytest.approx([r.reverse for r in rows], rel=DIGITS)
    assert np.all(reverse >= forward)
    assert shuffle_renyi_lower(e, n, ORDERS).tolist() == reverse.tolist()


def _laws(e: float, n: int, rate: float = 1.0) -> tuple[Array, Array]:
    """The number of ones where all hold 0, and where one holds 1 and is sampled with chance `rate`."""
    low = 1 / (1 + math.exp(e))
    equal = stats.binom.pmf(np.arange(n + 1), n, low)
    others = stats.binom.pmf(np.arange(n), n - 1, low)
    changed = np.append(others * low, 0) + np.append(0, others * (1 - low))
    return equal, (1 - rate) * equal + rate * changed


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize(("e", "n"), [(0.5, 1), (1.0, 3), (2.0, 12), (4.0, 40)])
def test_lower_bounds_are_the_divergences_of_an_attained_pair(e: float, n: int, rate: float) -> None:
    equal, changed = _laws(e, n, rate)
    for a in (1.5, 2.0, 7.0, 30.0):
        forward = math.log(equal @ (changed / equal) ** a) / (a - 1)
        reverse = math.log(changed @ (equal / changed) ** a) / (a - 1)
        for direction, wanted in (("forward", forward), ("reverse", reverse)):
            found = shuffle_renyi_lower(e, n, a, rate=rate, direction=direction).item()
            assert found == pytest.approx(wanted, rel=1e-9)
    for epsilon in (0.0, 0.1 * e, 0.6 * e, e):
        wanted = max(hockey_stick(equal, changed, epsilon), hockey_stick(changed, equal, epsilon))
        assert shuffle_delta_lower(e, n, epsilon, rate=rate) == pytest.approx(wanted, abs=1e-13)


def test_limits() -> None:
    for direction in ("forward", "reverse"):
        one = shuffle_renyi_lower(2.0, 1, ORDERS, direction=direction)
        assert one == pytest.approx(pure_dp_renyi(2.0, ORDERS), rel=1e-9)
    assert shuffle_renyi_lower(2.0, 50, 1e5).item() == pytest.approx(2.0, rel=2e-2)
    assert shuffle_renyi_lower(0.0, 50, 2.0).item() == 0
    assert shuffle_renyi_lower(1.0, 50, 2.0, rate=0.0).item() == 0
    e, n, a = 1.0, 10**9, 5.0  # the leading term a (E - 1)^2 / (2 n E)
    assert shuffle_renyi_lower(e, n, a).item() == pytest.approx(
        a * math.expm1(e) ** 2 / (2 * n * math.exp(e)), rel=1e-6
    )


def test_subsampled_values() -> None:
    wanted = [3.0171101e-06, 6.0342566e-06, 1.2068659e-05, 2.41379e-05, 4.8278128e-05, 9.656556e-05]
    found = shuffle_renyi_lower(1.0, 10_000, ORDERS, rate=1 / 6, direction="forward")
    assert found == pytest.approx(wanted, rel=1e-7)
    wanted = [5.5243914e-09, 1.1048823e-08, 2.2097809e-08, 4.4196267e-08, 8.839513e-08, 1.7680065e-07]
    found = shuffle_renyi_lower(2.0, 1000, ORDERS, rate=1e-3, direction="forward")
    assert found == pytest.approx(wanted, rel=1e-7)


def test_epsilon_lower_is_below_every_proof() -> None:
    assert shuffle_epsilon_lower(1.0, 1000, 1e-5) == pytest.approx(0.105373, abs=6e-7)
    for e, n, delta in ((0.5, 1000, 1e-6), (1.0, 1000, 1e-5), (2.0, 10_000, 1e-8), (4.0, 10**6, 1e-6)):
        found = shuffle_epsilon_lower(e, n, delta)
        assert 0 < found < clones_epsilon(e, n, delta)
        assert shuffle_delta_lower(e, n, found) >= delta * (1 - 1e-9)
    assert shuffle_epsilon_lower(1.0, 10**6, 0.5) == 0.0
    assert shuffle_epsilon_lower(0.0, 10, 1e-5) == 0.0


def test_a_larger_level_or_fewer_parties_raise_the_bound() -> None:
    assert np.all(shuffle_renyi_lower(1.0, 100, ORDERS) < shuffle_renyi_lower(1.1, 100, ORDERS))
    assert np.all(shuffle_renyi_lower(1.0, 100, ORDERS) > shuffle_renyi_lower(1.0, 110, ORDERS))
    assert np.all(np.isfinite(shuffle_renyi_lower(500.0, 10**9, [1.1, 1e4])))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match="rate"):
        shuffle_renyi_lower(1.0, 10, 2.0, rate=1.1)
    with pytest.raises(ParameterError, match="direction"):
        shuffle_renyi_lower(1.0, 10, 2.0, direction="both")
    with pytest.raises(ParameterError, match="delta"):
        shuffle_epsilon_lower(1.0, 10, 0.0)
