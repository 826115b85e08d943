from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.audits import audit_randomizer
from tacit.errors import ParameterError
from tacit.mechanisms import (
    BinaryRandomizedResponse,
    KaryRandomizedResponse,
    level_from_v,
    lie_threshold,
    randomize_bits,
)
from tacit.privacy import PureDP
from tests.statistics import FALSE_ALARM

EPSILONS = [2.0**-30, 1e-3, 0.5, 1.0, 4.0, 30.0]


@pytest.mark.parametrize(
    ("v", "p", "epsilon"),
    [
        (0.1, 0.4750311915, 0.0999583801),
        (0.5, 0.3787321875, 0.4949329231),
        (1.0, 0.2763932023, 0.9624236501),
        (2.0, 0.1464466094, 1.7627471740),
        (5.0, 0.0357616546, 3.2944622927),
        (10.0, 0.0097096622, 4.6248766825),
    ],
)
def test_the_thesis_parameter(v: float, p: float, epsilon: float) -> None:
    response = BinaryRandomizedResponse.from_v(v)
    assert response.flip_prob == pytest.approx(p, abs=5e-11)
    assert response.epsilon == pytest.approx(epsilon, abs=5e-11)
    assert response.variance == pytest.approx(1 / v**2, rel=1e-12)
    assert 2 * math.sinh(level_from_v(v) / 2) == pytest.approx(v, rel=1e-12)
    # The identity behind it, and the root without cancellation.
    assert response.gap**2 / (p * (1 - p)) == pytest.approx(v**2, rel=1e-8)
    assert response.flip_prob == pytest.approx(2 / (v**2 + 4 + v * math.sqrt(v**2 + 4)), rel=1e-12)
    assert response.epsilon <= v


@pytest.mark.parametrize(
    ("epsilon", "p", "variance", "renyi"),
    [
        (0.5, 0.3775406688, 3.9176980890, [0.1783694067, 0.2273362938, 0.3518911447, 0.4683948801]),
        (1.0, 0.2689414214, 0.9206735942, [0.6273326470, 0.7353256641, 0.8958832596, 0.9791158875]),
        (2.0, None, None, [1.7824438337, 1.8755476741, 1.9576909402, 1.9915381326]),
    ],
)
def test_the_exact_rule(epsilon: float, p: float | None, variance: float | None, renyi: list[float]) -> None:
    response = BinaryRandomizedResponse(epsilon)
    if p is not None:
        assert response.flip_prob == pytest.approx(p, abs=5e-11)
        assert response.variance == pytest.approx(variance, abs=5e-10)
    assert response.renyi([1.5, 2, 4, 16]) == pytest.approx(renyi, abs=5e-10)
    assert response.renyi([1e6])[0] == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("values", [2, 3, 100])
def test_the_level_is_met_by_what_is_sampled_and_hardly_wasted(epsilon: float, values: int) -> None:
    t = lie_threshold(epsilon, values)
    lie = Fraction(t, 2**64)
    # Exactly as sampled, in rational numbers: (1 - lie) / (lie / (k - 1)) <= e^epsilon.
    ratio = (1 - lie) * (values - 1) / lie
    low, high = (Fraction(math.exp(epsilon)) * (1 + Fraction(s, 2**50)) for s in (-1, 1))
    assert ratio <= high
    closer = Fraction(t - 1, 2**64)
    assert (1 - closer) * (values - 1) / closer >= low
    assert ratio > 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_enumerated_laws(epsilon: float) -> None:
    binary, kary = BinaryRandomizedResponse(epsilon), KaryRandomizedResponse(epsilon, 5)
    for law, values in ((binary.log_pmf, range(2)), (kary.log_pmf, range(5))):
        for held in values:
            assert sum(math.exp(law(report, held)) for report in values) == pytest.approx(1, rel=1e-14)
        largest = max(law(y, a) - law(y, b) for y, a, b in product(values, repeat=3))
        assert largest <= epsilon * (1 + 1e-6) + 1e-12
        assert largest >= epsilon * (1 - 1e-6) - 1e-12
    decoded = binary.decode([0, 1])
    for bit in (0, 1):
        probs = [math.exp(binary.log_pmf(report, bit)) for report in (0, 1)]
        assert decoded @ probs == pytest.approx(bit, abs=1e-5)
        if epsilon > 1e-6:
            assert (decoded - bit) ** 2 @ probs == pytest.approx(binary.variance, rel=1e-9)


@pytest.mark.parametrize("held", [0, 1])
def test_reports_follow_the_law(held: int) -> None:
    rng, bits = np.random.default_rng(7), np.full(200_000, held)
    right, weak = BinaryRandomizedResponse(1.0), BinaryRandomizedResponse(1.1)
    for response, fits in ((right, True), (weak, False)):
        flips = int((response.sample(bits, rng) != held).sum())
        pvalue = stats.binomtest(flips, bits.size, right.flip_prob).pvalue
        assert (pvalue > FALSE_ALARM) == fits


def test_k_ary_reports_follow_the_law_and_decode() -> None:
    response, rng = KaryRandomizedResponse(1.0, 4), np.random.default_rng(8)
    seen = np.bincount(response.sample(np.full(100_000, 2), rng), minlength=4)
    law = np.array([math.exp(response.log_pmf(y, 2)) for y in range(4)])
    assert stats.chisquare(seen, 100_000 * law).pvalue > FALSE_ALARM
    assert response.decode(1000 * law) == pytest.approx([0, 0, 1000, 0], abs=1e-9)


def test_flips_depend_on_their_word_alone() -> None:
    class Words(np.random.Generator):
        def integers(self, *args: Any, **kwargs: Any) -> Any:
            return np.array([0, 2**63, 2**64 - 1, 4], dtype=np.uint64)

    rng = Words(np.random.PCG64(0))
    assert randomize_bits(np.array([0, 0, 1, 1]), 5, rng).tolist() == [1, 0, 1, 0]
    each = np.array([0, 2**63 + 1, 2**64 - 1, 4], dtype=np.uint64)
    assert randomize_bits(np.array([0, 0, 1, 1]), each, rng).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("broken", [False, True])
def test_the_audit_stays_below_the_claim_and_catches_half_the_noise(broken: bool) -> None:
    response = BinaryRandomizedResponse(2.0 if broken else 1.0)
    found = audit_randomizer(
        lambda bit, size, rng: response.sample(np.full(size, bit), rng),
        lambda reports: reports,
        (PureDP(1.0), 0.0),
        inputs=(1, 0),
        runs=50_000,
        confidence=1 - FALSE_ALARM,
        rng=np.random.default_rng(9),
    )
    assert found.refuted == broken
    assert found.empirical_epsilon_lower > 0.8


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 30.1, 2.0**-31])
def test_levels_out_of_range_are_refused(epsilon: float) -> None:
    with pytest.raises(ParameterError, match=r"epsilon must be in \[2\*\*-30, 30\]"):
        BinaryRandomizedResponse(epsilon)
    with pytest.raises(ParameterError, match="epsilon must be"):
        KaryRandomizedResponse(epsilon, 3)


def test_bad_input_is_refused() -> None:
    response, rng = BinaryRandomizedResponse(1.0), np.random.default_rng(0)
    with pytest.raises(ParameterError, match="bits must be from 0 to 1"):
        response.sample([0, 2], rng)
    with pytest.raises(ParameterError, match="bits must be whole numbers, got dtype float64"):
        response.sample([0.5], rng)
    with pytest.raises(ParameterError, match=r"v must be a finite number > 0, got 0\.0"):
        BinaryRandomizedResponse.from_v(0.0)
    with pytest.raises(ParameterError, match="values must be a whole number from 2"):
        KaryRandomizedResponse(1.0, 1)
    with pytest.raises(ParameterError, match=r"counts must have shape \(3,\)"):
        KaryRandomizedResponse(1.0, 3).decode([1.0])
    with pytest.raises(ParameterError, match="orders must be above 1"):
        response.renyi([1.0])
