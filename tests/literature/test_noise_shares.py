"""The published constant of sums of discrete Gaussian shares."""

from __future__ import annotations

import pytest

from tacit.errors import ParameterError
from tacit.literature import paper_shares_slack
from tacit.mechanisms import shares_slack


@pytest.mark.parametrize(
    ("std", "shares", "printed"),
    [
        *((0.5, 2, 0.848), (0.5, 10, 2.345), (0.7, 2, 0.0794), (0.7, 10, 0.1179), (1.0, 2, 5.172e-4)),
        *((1.0, 10, 5.435e-4), (1.5, 2, 2.269e-9), (1.5, 10, 2.270e-9), (2.0, 1000, 7.2e-17)),
        (3.0, 1000, 2.7e-38),
    ],
)
def test_it_is_as_printed_and_two_and_a_half_times_ours(std: float, shares: int, printed: float) -> None:
    found = paper_shares_slack(std, shares)
    assert found == pytest.approx(printed, rel=0.02)
    assert 2.4 < found / shares_slack(std, shares) < 2.6


def test_one_share_is_exact_and_none_is_refused() -> None:
    assert paper_shares_slack(1.0, 1) == 0
    for std, shares in ((0.0, 2), (1.0, 0)):
        with pytest.raises(ParameterError):
            paper_shares_slack(std, shares)
