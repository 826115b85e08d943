"""Regression behind a shuffler: its excess, its prices, its bounds, and verdicts both ways."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.experiments import EXPERIMENTS
from tacit.experiments.shuffled_sco import DIM, Data, excess, methods, statements
from tacit.privacy import Relation
from tacit.randomness import simulated

Row = dict[str, object]


def test_records_are_as_they_are_said_to_be() -> None:
    data = Data.drawn(500, 3)
    assert np.linalg.norm(data.features, axis=1) == pytest.approx(1.0)
    assert np.linalg.norm(data.truth) == pytest.approx(0.5)
    assert np.array_equal(data.targets, Data.drawn(500, 3).targets)
    assert not np.array_equal(data.targets, Data.drawn(500, 4).targets)


@pytest.mark.parametrize("off", [0.05, 0.7])
def test_the_excess_is_that_of_drawn_records(off: float) -> None:
    data = Data.drawn(400_000, 0)
    w = data.truth + off * np.eye(DIM)[0]
    residuals = data.targets - data.features @ data.truth
    gains = np.abs(residuals - off * data.features[:, 0]) - np.abs(residuals)
    # Bounded by 0.7 each: 6 standard errors of 400000 are below 1e-8.
    assert abs(gains.mean() - excess(w, data.truth)) < 6 * gains.std() / math.sqrt(len(gains))
    assert excess(data.truth, data.truth) == 0.0


def test_the_tuning_of_20000_records_is_the_published_one_with_tight_noise() -> None:
    sgd, agd, gd = methods(20_000)
    assert (sgd.batch, sgd.rounds) == (24, 833)
    assert (agd.batch, agd.rounds) == (223, 89)
    assert (gd.batch, gd.rounds) == (20_000, 200)
    assert getattr(agd, "beta", None) == pytest.approx(44.78, abs=0.005)
    assert [(m.mean.resolution, m.mean.noise_bits) for m in (sgd, agd)] == [(20, 1000), (28, 200)]


def test_every_run_costs_at_most_the_budget_and_most_of_it() -> None:
    for method in methods(2000):
        assert 0.9 < method.epsilon() <= 1.0


def test_results_are_in_the_ball_and_below_their_bounds() -> None:
    data = Data.drawn(2000, 0)
    for method in methods(2000):
        w = method.fit(data, simulated(0, "test", method.name))
        assert np.linalg.norm(w) <= 1 + 1e-9
        # Bounds hold in expectation; measured means are 10 to 250 times smaller.
        assert excess(w, data.truth) < method.bound / 2


def test_verdicts_go_both_ways() -> None:
    def rows(plain: float, smooth: float, bound: float) -> list[Row]:
        found = {"P_SGD": plain, "smoothed P_AGD": smooth, "P_GD": 0.01}
        return [
            {"n": n, "method": name, "excess": value / n, "bound": bound}
            for n in (100, 400)
            for name, value in found.items()
        ]

    good = list(statements(rows(2.0, 1.0, 1.0)))
    assert "Every excess is below its bound: yes, 6 of 6." in good
    assert "Smoothed P_AGD is below P_SGD: yes, at 2 of 2 sizes." in good
    assert "P_SGD: the excess goes with n to the power -1.00, its bound with 0.00." in good
    bad = list(statements(rows(1.0, 2.0, 0.015)))
    assert "Every excess is below its bound: no, 5 of 6." in bad
    assert "Smoothed P_AGD is below P_SGD: no, at 0 of 2 sizes." in bad


def test_other_neighbours_are_refused() -> None:
    with pytest.raises(ParameterError, match="number of messages is public"):
        EXPERIMENTS["shuffled-sco"].under(Relation.ADD_REMOVE)
