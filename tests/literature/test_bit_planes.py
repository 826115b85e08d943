"""Closed forms of Girgis (2023), Theorem 3.3.2, against a table, and against what their v really costs."""

from __future__ import annotations

import math

import pytest

from tacit.mechanisms import level_from_v
from tacit.numerics import certified_radius
from tacit.privacy import Repeat, Shuffled, epsilon_of

ROWS = [
    (1000, 1, 1.0, 1e-5, 0.7767, 0.4484),
    (1000, 10, 1.0, 1e-5, 2.4560, 1.4180),
    (1000, 10, 0.5, 1e-5, 1.2280, 0.7090),
    (1000, 100, 1.0, 1e-5, 7.7665, 4.4840),
    (1000, 100, 3.0, 1e-5, 13.452, 13.452),
    (1000, 4, 3.0, 1e-5, 2.6904, 2.6904),
    (100_000, 10, 2.0, 1e-6, 31.707, None),
    (1000, 10, 0.5, 1e-10, 0.8683, None),
]


def printed_v(epsilon: float, delta: float, n: int, samples: int) -> float:
    """Return v of Girgis (2023), Theorem 3.3.2, as printed: not a proof."""
    return math.sqrt(samples * n * min(epsilon**2, epsilon) / (144 * math.log(1 / delta)))


def chain_v(epsilon: float, delta: float, n: int, samples: int) -> float:
    """Return the v that its chain of lemmas gives, where Lemma 3.3.2 covers the order."""
    return math.sqrt(samples * n * min(epsilon**2 / 432, epsilon / 144) / math.log(1 / delta))


def price(v: float, n: int, samples: int, delta: float) -> float:
    return epsilon_of(Repeat(Shuffled(level_from_v(v / samples), n, "2rr"), samples), delta)


@pytest.mark.parametrize(("n", "samples", "epsilon", "delta", "printed", "corrected"), ROWS)
def test_closed_forms_are_those_of_the_table(
    n: int, samples: int, epsilon: float, delta: float, printed: float, corrected: float | None
) -> None:
    assert printed_v(epsilon, delta, n, samples) == pytest.approx(printed, rel=1e-4)
    if corrected is not None:
        assert chain_v(epsilon, delta, n, samples) == pytest.approx(corrected, rel=1e-4)


@pytest.mark.parametrize(("samples", "real"), [(1, 0.0871), (10, 0.0783)])
def test_what_the_printed_form_really_costs(samples: int, real: float) -> None:
    v = printed_v(1.0, 1e-5, 1000, samples)
    assert price(v, 1000, samples, 1e-5) == pytest.approx(real, rel=0.005)


def test_the_printed_v_does_not_follow_from_its_chain() -> None:
    # Girgis (2023), Theorem 3.3.2 at n = 10^6, s = 1, epsilon = 1: with rho = 48 v^2 / (s n), Lemma 2.1.5
    # gives sqrt(3), and it takes an order that Lemma 3.3.2 does not cover for messages of that level.
    n, log = 10**6, math.log(1e5)
    v = printed_v(1.0, 1e-5, n, 1)
    assert v == pytest.approx(24.560, abs=5e-4)
    rho, level = 48 * v * v / n, level_from_v(v)
    assert 3 * max(rho * log, math.sqrt(rho * log)) == pytest.approx(math.sqrt(3))
    assert level == pytest.approx(6.4055, abs=5e-5)
    assert 1 + math.sqrt(log / rho) == pytest.approx(20.94, abs=5e-3)
    assert n / (16 * level * math.exp(level)) == pytest.approx(16.12, abs=1e-2)


def test_the_printed_radius_is_useless() -> None:
    # Girgis (2023), Algorithm 3.6.1, line 5: above the trivial bound r2.
    assert 10 * math.sqrt(math.log(300 * 1000 / 0.01) / 300) == pytest.approx(2.396, abs=5e-4)
    assert certified_radius(1.0, n=1000, coded_dim=512, beta=1e-300) <= 1.0
