from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from tacit.errors import ParameterError
from tacit.frequencies import MECHANISMS, BinaryHadamard, make_oracle
from tacit.literature import frequency_lower_bound, unlimited_frequency_bound
from tacit.numerics import binary_entropy, binary_entropy_inv


@pytest.mark.parametrize(
    ("k", "epsilon", "bits", "n", "l2", "l1", "printed", "attained"),
    [
        (16, 1.0, 1.0, 1e6, 6.860806e-6, 9.280805e-4, 1.722667e-6, 7.392311e-5),
        (16, 1.0, 0.1, 1e6, 3.955762e-4, 8.118974e-3, 5.458801e-3, 8.598544e-3),
        (16, 1.0, 0.01, 1e7, 5.317669e-4, 1.000453e-2, 1.244226e-1, 1.309466e-2),
        (1000, 1.0, 1.0, 5e5, 3.190124e-5, 8.203151e-2, 2.153334e-4, 9.363400e-3),
        (1000, 1.0, 1.0, 1e9, 4.234669e-7, 1.834280e-3, 1.076667e-7, 4.681694e-6),
        (4, 0.5, 1.0, 1e4, 8.719144e-4, 5.621206e-3, 2.527837e-4, 6.568317e-3),
    ],
)
def test_derived_numbers(
    k: int, epsilon: float, bits: float, n: float, l2: float, l1: float, printed: float, attained: float
) -> None:
    m = int(n)
    assert frequency_lower_bound(k, epsilon, m, random_bits=bits) == pytest.approx(l2, rel=1e-6)
    assert frequency_lower_bound(k, epsilon, m, random_bits=bits, loss="l1") == pytest.approx(l1, rel=1e-6)
    tau = frequency_lower_bound(k, epsilon, m, random_bits=bits, form="printed")
    assert tau == pytest.approx(printed, rel=1e-6)
    total = frequency_lower_bound(k, epsilon, m, random_bits=bits, form="printed", loss="l1")
    assert total == pytest.approx(math.sqrt(k * tau / 8), rel=1e-12)
    oracle = BinaryHadamard(k=k, epsilon=epsilon, random_bits=bits, assignment="blocks", skip_constant=False)
    assert oracle.mse(m) == pytest.approx(attained, rel=1e-3)
    # Only the printed form crosses what is attained, where random bits are few.
    assert l2 < attained
    assert (printed > attained) == (bits == 0.01)


def test_no_mechanism_beats_the_sound_bound() -> None:
    rng = np.random.default_rng(6)
    closest = 0.0
    for _ in range(300):
        k, n = int(rng.integers(2, 200)), int(10 ** rng.uniform(3, 9))
        epsilon, bits = float(rng.uniform(0.05, 6)), float(10 ** rng.uniform(-4, 0))
        bound = frequency_lower_bound(k, epsilon, n, random_bits=bits)
        error = BinaryHadamard(
            k=k, epsilon=epsilon, random_bits=bits, assignment="random", skip_constant=False
        ).mse(n)
        closest = max(closest, bound / error)
        free = frequency_lower_bound(k, epsilon, n)
        assert all(make_oracle(name, k, epsilon).mse(n) > free for name in MECHANISMS)
    assert 0.1 < closest < 0.3
    # For two values and a small level it is nearly attained, by one randomized bit.
    assert 0.95 < frequency_lower_bound(2, 0.015, 10**9) / BinaryHadamard(k=2, epsilon=0.015).mse(10**9) < 1


def test_more_random_bits_than_the_threshold_lower_no_bound() -> None:
    full = frequency_lower_bound(16, 1.0, 10**6)
    assert frequency_lower_bound(16, 1.0, 10**6, random_bits=0.84) == full
    assert frequency_lower_bound(16, 1.0, 10**6, random_bits=0.01) > 10 * full
    assert frequency_lower_bound(17, 1.0, 10**6) == full


def test_the_printed_bound_needs_many_clients() -> None:
    # One client, and the estimate that all values are equally frequent: no distribution is further away.
    assert frequency_lower_bound(16, 1.0, 1, form="printed") > 1 - 1 / 16
    assert frequency_lower_bound(16, 1.0, 1) < 1 - 1 / 16


def distance(one: list[float], other: list[float]) -> float:
    """Return the sum of (x - y)^2 / (x + y) over outputs."""
    return sum((x - y) ** 2 / (x + y) for x, y in zip(one, other, strict=True))


def test_a_third_output_says_more_than_two() -> None:
    # epsilon = 1, R = 0.1. Silence is free of randomness but for whether there is any.
    e, t = math.e, math.tanh(0.5)
    q = binary_entropy_inv(0.1)
    u = q * (1 + 1 / e)
    two = distance([q, 1 - q], [q / e, 1 - q / e])
    assert two == pytest.approx(2 * q**2 * (1 - 1 / e) ** 2 / (u * (2 - u)), rel=1e-12)
    assert two == pytest.approx(0.003828, abs=6e-7)
    assert 2 * q**2 * (e - 1) ** 2 / e**2 == pytest.approx(0.000135, abs=6e-7)
    full = binary_entropy(1 / (1 + e))
    speak = optimize.brentq(lambda s: binary_entropy(s) + s * full - 0.1, 1e-6, 0.1)
    high, low = speak * (1 + t) / 2, speak * (1 - t) / 2
    three = distance([high, low, 1 - speak], [low, high, 1 - speak])
    assert three == pytest.approx(0.004898, abs=6e-7)
    # Both are below what the sound bound allows for.
    allowed = 2 * t**2 * q + (q * (1 - 1 / e)) ** 2 / (2 * (1 - q))
    assert two < three < allowed == pytest.approx(0.00558089, abs=6e-9)


def test_two_hypotheses_are_two_steps_apart() -> None:
    t, delta = math.tanh(0.05), 0.01
    up = 0.5 + delta * t
    divergence = up * math.log(up / (1 - up)) + (1 - up) * math.log((1 - up) / up)
    assert divergence == pytest.approx(1.996672e-6, rel=1e-6)
    printed = 2 * math.exp(0.1) * delta**2 * 2 * t**2
    assert printed == pytest.approx(1.103332e-6, rel=1e-5)
    assert printed < divergence < 4 * printed


def test_without_a_limit_on_randomness() -> None:
    at = math.log(3)
    assert unlimited_frequency_bound(8, at * (1 - 1e-12), 10) == pytest.approx(8 / (512 * 10 / 4))
    assert unlimited_frequency_bound(8, at * (1 + 1e-12), 10) == pytest.approx(8 / (64 * 10 * 2))


def test_bad_input_is_refused() -> None:
    with pytest.raises(ParameterError, match="k must be"):
        frequency_lower_bound(1, 1.0, 10)
    with pytest.raises(ParameterError, match="random_bits must be in"):
        frequency_lower_bound(4, 1.0, 10, random_bits=0.0)
    with pytest.raises(ParameterError, match="form must be one of"):
        frequency_lower_bound(4, 1.0, 10, form="seed")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="epsilon must be"):
        unlimited_frequency_bound(4, math.nan, 10)
