"""Which intervals a mechanism can return: those of some count, and none that is narrower."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.frequencies import BinaryHadamard, KaryResponse, SubsetSelection, UnaryEncoding


def test_the_largest_number_of_messages_ends() -> None:
    """A statement may say any number: the search must not run over."""
    support = KaryResponse(k=6, epsilon=2.0).support
    assert not support.allows(np.array([[0.2, 0.3]]), 2**63 - 1, 0.95)


@pytest.mark.parametrize("n", [1, 7, 500, 10**6])
@pytest.mark.parametrize(
    "oracle",
    [
        BinaryHadamard(k=6, epsilon=1.0),
        KaryResponse(k=6, epsilon=2.0),
        UnaryEncoding(k=6, epsilon=0.3),
        SubsetSelection(k=6, epsilon=1.0),
    ],
)
def test_intervals_of_counts_are_known_again(
    oracle: BinaryHadamard | KaryResponse | UnaryEncoding | SubsetSelection, n: int
) -> None:
    rng, support = np.random.default_rng(n), oracle.support
    assert support is not None
    for _ in range(5):
        counts = rng.integers(0, n + 1, size=6)
        counts[:2] = 0, n
        ends = support.band(counts, n, 0.95).intervals
        assert support.allows(ends, n, 0.95)
        inner = (ends > 0) & (ends < 1)
        for end, shift in ((0, 1e-4), (1, -1e-4)):
            moved = ends.copy()
            moved[:, end] += shift * inner[:, end]
            if inner[:, end].any():
                assert not support.allows(moved, n, 0.95)
        # A lower confidence has narrower intervals.
        if inner.any():
            assert not support.allows(support.band(counts, n, 0.5).intervals, n, 0.95)
