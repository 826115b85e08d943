"""What is asked for: ranges, even numbers of teachers, allowances."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.voting import Setting, Ties, allowance

GOOD: dict[str, Any] = {
    "teachers": 11,
    "epsilon": 0.1,
    "delta": 1e-5,
    "target_epsilon": 0.3,
    "target_delta": 1e-4,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teachers": 10}, "teachers must be odd, got 10"),
        ({"teachers": 0}, "teachers must be a whole number"),
        ({"teachers": 10.5}, "teachers must be a whole number"),
        ({"epsilon": 0.0}, "epsilon must be a finite number > 0"),
        ({"epsilon": math.inf}, "epsilon must be a finite number > 0"),
        ({"delta": -1e-9}, "delta must be in"),
        ({"target_epsilon": 0.05}, r"allowance = target_epsilon / epsilon must be in \[1, 11\]"),
        ({"target_epsilon": 1.2}, r"must be in \[1, 11\]"),
        ({"target_epsilon": math.nan}, "target_epsilon must be a finite number > 0"),
        ({"target_delta": 1e-6}, "target_delta must be at least the delta of one vote"),
        ({"target_delta": 1.0}, "target_delta must be in"),
        ({"ties": "coin"}, "ties must be a Ties"),
    ],
)
def test_values_out_of_range_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Setting(**{**GOOD, **change})


@pytest.mark.parametrize("m", [0.5, 12, math.nan])
def test_an_allowance_out_of_range_is_refused(m: float) -> None:
    with pytest.raises(ParameterError, match=r"m must be (in \[1, 11\]|a finite number)"):
        allowance(11, 0.1, m)


def test_a_tie_needs_a_rule() -> None:
    asked = allowance(10, 0.1, 3, ties=Ties.COIN)
    assert (asked.majority, asked.free) == (6, 5)
    assert allowance(11, 0.1, 3).majority == 6


def test_decimals_do_not_lower_a_whole_allowance() -> None:
    for epsilon in (0.1, 0.0892, 0.0852, 1 / 3):
        assert [allowance(11, epsilon, m).whole_allowance for m in range(1, 12)] == list(range(1, 12))
    assert allowance(11, 0.1, 3.99).whole_allowance == 3


def test_the_default_delta_is_the_union_of_m() -> None:
    assert allowance(11, 0.1, 3, delta=1e-5).target_delta == pytest.approx(1 - (1 - 1e-5) ** 3, rel=1e-10)
    assert allowance(11, 0.1, 1, delta=1e-5).target_delta >= 1e-5
    assert allowance(11, 0.1, 3).target_delta == 0.0
    assert allowance(11, 0.1, 3).room == pytest.approx(math.expm1(0.3))
