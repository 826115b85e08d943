"""Vectors with an exact correlation: the partitions of the paper, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data import synthetic_equicorrelated, synthetic_groups
from tacit.errors import ParameterError


def correlation(X: np.ndarray) -> float:
    gram = X @ X.T
    return float((gram.sum() - np.trace(gram)) / np.trace(gram))


@pytest.mark.parametrize(
    ("expected", "sizes"),
    [
        (4, [9, 4, *[1] * 8]),
        (8, [13, 4, *[1] * 4]),
        (12, [16, 4, 1]),
        (10, [23, 2, 2, *[1] * 24]),
        (20, [32, 5, 3, 2, *[1] * 9]),
        (30, [39, 7, 3, 1, 1]),
        (2, [5, 2, *[1] * 4]),
        (4, [7, 2, 1, 1]),
    ],
)
def test_the_partitions_of_the_spec(expected: int, sizes: list[int]) -> None:
    X = synthetic_groups(sizes, 64)
    assert X.shape == (sum(sizes), 64)
    assert correlation(X) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 51])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_every_correlation_can_be_had(n: int, share: float) -> None:
    X = synthetic_equicorrelated(n, share * (n - 1), 64)
    assert np.linalg.norm(X, axis=1) == pytest.approx(1)
    assert correlation(X) == pytest.approx(share * (n - 1), abs=1e-12)


def test_what_is_refused() -> None:
    for sizes, dim in (([], 4), ([0, 2], 4), ([1, 1, 1], 2)):
        with pytest.raises(ParameterError):
            synthetic_groups(sizes, dim)
    for n, r, dim in ((5, 4.1, 9), (5, -0.1, 9), (5, 2.0, 5), (0, 0.0, 5), (5, float("nan"), 9)):
        with pytest.raises(ParameterError):
            synthetic_equicorrelated(n, r, dim)
