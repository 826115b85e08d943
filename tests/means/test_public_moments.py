"""What public records show of moments, and what becomes of them phase by phase."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.means import MomentKind, block_moments, gradient_moment, phase_moment
from tacit.numerics import Array


def residual_gradients(m: int, rng: np.random.Generator) -> list[Array]:
    """Gradients of (w a - b)^2 / 2 at w = -1 and 1, where their size is largest over [-1, 1]."""
    a, b = rng.normal(size=(2, m))
    return [((w * a - b) * a)[:, None] for w in (-1.0, 1.0)]


@pytest.mark.parametrize(
    ("order", "value"), [(2, 2.558609), (3, 3.471201), (4, 4.376823), (6, 6.174873), (8, 7.962721)]
)
def test_the_moment_of_least_squares_is_small_where_its_largest_gradient_is_not(
    order: int, value: float
) -> None:
    """E (|a| (|a| + |b|))^k for standard normal a, b (Lowy 2023, Example 47)."""

    def absolute(power: int) -> float:
        return 2 ** (power / 2) * math.gamma((power + 1) / 2) / math.sqrt(math.pi)

    terms = [math.comb(order, j) * absolute(order + j) * absolute(order - j) for j in range(order + 1)]
    assert math.fsum(terms) ** (1 / order) == pytest.approx(value, rel=1e-6)
    if order == 2:
        found = gradient_moment(
            residual_gradients(200_000, np.random.default_rng(4)), 2, kind=MomentKind.SUP_INSIDE
        )
        # The square has a standard deviation of about 18.
        assert found.value**2 == pytest.approx(value**2, abs=6 * 18 / math.sqrt(200_000))


def test_larger_blocks_have_smaller_moments_from_inside_to_outside() -> None:
    """Lowy (2023), Lemma 157: for nested blocks of the same records it holds without sampling error."""
    grid = residual_gradients(256, np.random.default_rng(5))
    norms = np.abs(np.stack([rows[:, 0] for rows in grid]))
    found = block_moments(norms, 3)
    assert sorted(found) == [2**j for j in range(9)]
    values = list(found.values())
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(values))
    assert found[1] == pytest.approx(gradient_moment(grid, 3, kind=MomentKind.SUP_INSIDE).value)
    assert found[256] == pytest.approx(gradient_moment(grid, 3).value)
    assert phase_moment(values[-2::-1]) <= found[1]
    assert phase_moment([2.0]) == pytest.approx(math.sqrt(2))


def test_what_public_gradients_must_be() -> None:
    rows = np.ones((3, 2))
    for bad in ([], [rows[:0]], [rows, rows[:2]], [np.where(rows > 0, np.nan, rows)]):
        with pytest.raises(ParameterError, match="gradients"):
            gradient_moment(bad, 2)
    with pytest.raises(ParameterError, match="value"):
        gradient_moment([0 * rows], 2)
    with pytest.raises(ParameterError, match="order"):
        gradient_moment([rows], 1)
    with pytest.raises(ParameterError, match="norms"):
        block_moments(-rows, 2)
    with pytest.raises(ParameterError, match="moments"):
        phase_moment([])
    assert gradient_moment([np.full((2, 2), 1e200)], 4).value == pytest.approx(math.sqrt(2) * 1e200)
