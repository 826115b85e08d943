"""The error of a proposal: the estimator's own, or what a sharper bound says of its bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from tacit.means import Error, Facts, MeanEstimator
from tacit.means.proposals import ComputeCost, Proposal
from tacit.planning import MeanProblem


@dataclass
class Stated:
    """An estimator that states an error, and is asked nothing else."""

    variance: float = 0.25

    def error(self, n: int, facts: Facts) -> Error:
        assert (n, facts.radius) == (9, 2.0)
        return Error(variance=self.variance, bias=0.3, exact=False)


@pytest.mark.parametrize(("bias", "bound"), [(None, 0.3), (0.1, 0.2), (0.0, 0.0), (0.15, 0.3), (0.4, 0.3)])
def test_a_bound_on_the_bias_counts_where_it_is_smaller(bias: float | None, bound: float) -> None:
    asked = MeanProblem(n=9, dim=3, trust="none", radius=2.0)
    rest: dict[str, Any] = {
        "make": Stated,
        "norm": "l2",
        "encode": ComputeCost("d", 3),
        "decode": ComputeCost("d", 3),
    }
    one = Proposal(name="a", family="a", bias=bias, **rest)
    assert one.error(cast("MeanEstimator", Stated()), asked) == Error(variance=0.25, bias=bound, exact=False)
    rounded = cast("MeanEstimator", Stated(-1e-18))
    assert one.error(rounded, asked) == Error(variance=0.0, bias=bound, exact=False)
