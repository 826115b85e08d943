"""Real digits: one default configuration meets the promises at every budget (8,000 and 2,000 records)."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import pytest

from tacit import data
from tacit.jobs import Job, JobConfig

pytestmark = pytest.mark.skipif("TACIT_DATA_HOME" not in os.environ, reason="needs TACIT_DATA_HOME")


@pytest.fixture(scope="module", autouse=True)
def digits_read_once_and_no_sweeps() -> Iterator[None]:
    """Other budgets and rounds are looked at on small data; here one model counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "load", functools.cache(data.load))
        patch.setattr(Job, "_simulates", False)
        yield


@pytest.mark.parametrize(("epsilon", "promised"), [(0.5, 0.80), (1.0, 0.85), (3.0, 0.88)])
def test_central_trust_keeps_its_promise(epsilon: float, promised: float) -> None:
    job = JobConfig(data="mnist-odd-even", trust="central", epsilon=epsilon, delta=1e-5, seed=0)
    (result,) = Job(job).run().results
    assert result.guarantee.epsilon <= epsilon
    assert result.score >= promised


def test_local_trust_learns_over_25_pairs_of_digits() -> None:
    job = JobConfig(data="mnist-odd-even", silos="pairs", epsilon=3.0, seed=0)
    (result,) = Job(job).run().results
    assert len(result.guarantees) == 25
    assert result.guarantee.epsilon <= 3.0
    assert result.score >= 0.82
