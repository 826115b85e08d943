from __future__ import annotations

import numpy as np
import pytest

from tacit.means import PrivUnitGMean, PrivUnitMean, Round


@pytest.mark.parametrize("kind", [PrivUnitMean, PrivUnitGMean])
@pytest.mark.parametrize("length", [5e-324, 1e-310, 1e-200])
def test_tiny_rows_are_not_refused_since_that_would_tell_of_them(
    kind: type[PrivUnitMean], length: float
) -> None:
    mean = kind(dim=5, local_epsilon=8.0, lift=False)
    rows = np.full((4, 5), length)
    (first, *_) = mean.encode(rows, Round(n=4, radius=1.0), party=0, rng=np.random.default_rng(0))
    assert np.isfinite(first.payload).all()
    # A row too short to have a direction counts as the first unit vector, like a zero row.
    zero = mean.estimate(0 * rows, Round(n=4, radius=1.0), rng=np.random.default_rng(1))
    tiny = mean.estimate(rows, Round(n=4, radius=1.0), rng=np.random.default_rng(1))
    assert tiny.tolist() == zero.tolist()
