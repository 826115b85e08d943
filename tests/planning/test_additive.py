"""Guesses of additive noise need no more and no less than the budget, however coarse the grid."""

from __future__ import annotations

from typing import Literal

import pytest

from tacit.means import AdditiveMean
from tacit.planning import MeanProblem
from tacit.privacy import PrivacyBudget, epsilon_of, pure_epsilon_of


@pytest.mark.parametrize("trust", ["local", "central"])
@pytest.mark.parametrize("dim", [16, 4096])
def test_guesses_count_what_rounding_adds_to_a_distance(trust: Literal["local", "central"], dim: int) -> None:
    """Rounding 4096 numbers to 256 steps lengthens an L1 distance ninefold, an L2 distance by an eighth."""
    asked = MeanProblem(n=60, dim=dim, trust=trust, norm="l1", budget=PrivacyBudget(2.0, 1e-5))
    found = [
        (one.family, one.guess.event(asked.n, asked.observer))
        for one in AdditiveMean.proposals(asked)
        if one.guess
    ]
    pure = [pure_epsilon_of(event) for family, event in found if family == "additive laplace"]
    assert pure == pytest.approx([2.0] * len(pure), rel=1e-6)
    # The classic formula's multiplier, priced exactly, whatever the grid.
    levels = [epsilon_of(event, 1e-5) for family, event in found if family == "additive gaussian"]
    assert levels == pytest.approx([1.627559] * len(levels), rel=1e-5)
    assert len(pure) == len(levels) == (3 if trust == "local" else 1)
