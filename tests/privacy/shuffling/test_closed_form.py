"""The inverse of the closed form: on the safe side, where that is proven, and never below epsilon."""

from __future__ import annotations

import math

import pytest

from tacit.errors import ParameterError
from tacit.privacy import Shuffled, delta_of
from tacit.privacy.shuffling.closed_form import clones_closed_form, clones_closed_limit, paper_level


@pytest.mark.parametrize("parties", [1, 100, 5000, 10**6])
@pytest.mark.parametrize("epsilon", [0.01, 0.7, 3.0, 20.0])
def test_the_level_is_the_largest_that_is_proven(parties: int, epsilon: float) -> None:
    delta = 1e-6
    level, limit = paper_level(epsilon, parties, delta), clones_closed_limit(parties, delta)
    assert level >= epsilon
    if level > epsilon:
        assert level <= limit
        assert clones_closed_form(level, parties, delta) <= epsilon
        assert level == limit or clones_closed_form(level * (1 + 1e-9), parties, delta) > epsilon
        assert delta_of(Shuffled(level, parties), epsilon) <= delta


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"parties": 0},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": 5e-324},
    ],
)
def test_what_has_no_level_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        paper_level(**{"epsilon": 1.0, "parties": 100, "delta": 1e-6, **wrong})  # type: ignore[arg-type]
