"""The table of docs/how-to/neighbours.md is what calibration finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.privacy import (
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Relation,
    Repeat,
    Replaced,
    Sample,
    Sampled,
    calibrate,
)

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "neighbours.md"
BUDGET = PrivacyBudget(1.0, 1e-5)
ABSENT = Neighbours(Relation.ZERO_OUT)
ASKED = [(1, 1.0), (100, 1.0), (1, 0.01), (100, 0.01), (1000, 0.01), (10_000, 0.01), (100, 0.1), (1000, 0.1)]


def row(count: int, rate: float) -> str:
    """Return one line of the table: standard deviations in norms of a row."""
    fixed = 2 * calibrate(lambda z: Repeat(Sampled(Gaussian(z), rate), count), BUDGET)
    poisson = calibrate(lambda z: Repeat(Replaced(Gaussian(z, ABSENT), rate), count), BUDGET)
    absent = calibrate(lambda z: Repeat(Sampled(Gaussian(z, ABSENT), rate, Sample.POISSON), count), BUDGET)
    drawn = "all records" if rate == 1 else f"samples of {100 * rate:g} %"
    means = "1 mean" if count == 1 else f"{count:,} means"
    cells = (f"{means} of {drawn}", f"{fixed:.3f}", f"{poisson:.3f}", f"{absent:.3f}")
    return f"| {' | '.join(cells)} | {min(fixed, poisson) / absent:.2f} |"


@pytest.mark.parametrize(("count", "rate"), ASKED)
def test_the_page_says_what_is_computed(count: int, rate: float) -> None:
    assert row(count, rate) in PAGE.read_text(encoding="utf-8").splitlines()
