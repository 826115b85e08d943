"""Silos that are gone under aggregate trust: where keys are recovered rounds go on, else none is opened."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tacit.federation import InProcess, OpenSums
from tacit.learning import LinearObjective, Logistic, NoisyMinibatchSGD, Records, Settings, make_silos, train
from tacit.learning.training import Trained
from tacit.numerics import Array, clip_rows
from tacit.privacy import PrivacyBudget, TrustModel

SIZES = (30, 50, 20, 40, 60)
OBJECTIVE = LinearObjective(loss=Logistic(), features=4, feature_norm=1.0)
LONG = PrivacyBudget(1000.0, 1e-5)
"""So little noise that a step is nearly that without any."""


def data() -> list[Records]:
    rng = np.random.default_rng(1)
    rows = [clip_rows(rng.standard_normal((n, 4)), 1.0) for n in SIZES]
    return [Records.of(X, (X[:, 0] > 0).astype(np.float64)) for X in rows]


def trained(
    is_down: Callable[[int, int], bool], *, recover: bool, n_min: int | None = None, rounds: int = 2
) -> Trained:
    settings = Settings(
        objective=OBJECTIVE,
        algorithm=NoisyMinibatchSGD(rounds=rounds, step_size=1.0, average=1e-9),
        trust=TrustModel.AGGREGATE,
        budget=LONG,
        n_min=n_min,
        recover=recover,
    )
    silos = make_silos(data(), OBJECTIVE, sums=OpenSums(), seed=3)
    return train(InProcess(silos, is_down=is_down, rng=np.random.default_rng(0), public_seed=3), settings)


def step_of(silos: list[int]) -> Array:
    """The first step from 0, on the records of these silos."""
    rows = data()
    X = np.vstack([rows[k].X for k in silos])
    y = np.concatenate([rows[k].y for k in silos])
    return np.asarray(-((0.5 - y)[:, None] * X).mean(axis=0))


def test_a_round_goes_on_without_silos_that_are_gone_and_divides_by_those_that_are_there() -> None:
    found = trained(lambda _step, silo: silo == 4, recover=True, n_min=4)
    assert found.traffic.skipped == 0
    assert found.traffic.answered.tolist() == [2, 2, 2, 2, 0]
    np.testing.assert_allclose(found.w, step_of([0, 1, 2, 3]), atol=0.02)
    assert np.abs(found.w - step_of([0, 1, 2, 3, 4])).max() > 0.005


@pytest.mark.parametrize(("recover", "n_min", "gone"), [(True, 4, {3, 4}), (False, None, {4})])
def test_below_the_quorum_nothing_is_opened_and_the_price_is_the_same(
    recover: bool, n_min: int | None, gone: set[int]
) -> None:
    whole = trained(lambda *_: False, recover=recover, n_min=n_min)
    found = trained(lambda step, silo: step == 0 and silo in gone, recover=recover, n_min=n_min)
    assert found.traffic.skipped == 1
    assert found.guarantees == whole.guarantees
    assert not found.w.any()  # the step that would have led away from the start
    assert whole.w.any()
