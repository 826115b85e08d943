"""What a run with hidden iterates must state, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import BudgetError, ParameterError
from tacit.literature import paper_epsilon, paper_noise, renyi_epsilon
from tacit.privacy import (
    Neighbours,
    PrivacyBudget,
    Relation,
    calibrate,
    epsilon_of,
    event_from_json,
    event_to_json,
)
from tacit.privacy.iteration import Iteration, Order, Release, check_contraction
from tests.privacy.iteration_reference import FACTS, Array, run

DELTA = 1e-6
ALL, EPOCHS, LAST = Release.ALL, Release.EPOCHS, Release.LAST
RR = Order.RR


def test_blanking_out_halves_the_sensitivity_not_the_multiplier() -> None:
    out = Neighbours(Relation.ZERO_OUT)
    assert epsilon_of(Iteration(2.0, 9, 4, neighbours=out), DELTA) == epsilon_of(Iteration(2.0, 9, 4), DELTA)
    with pytest.raises(ParameterError, match="must be replace-one or zero-out, got add-remove"):
        Iteration(2.0, 9, 4, neighbours=Neighbours(Relation.ADD_REMOVE))


def test_steps_that_may_expand_are_refused() -> None:
    check_contraction(0.1, 20.0)
    check_contraction(0.1, 30.0, convex=False, clip_safe=False, prox_convex=False, release=ALL)
    check_contraction(0.1, 20.0, prox_convex=False, release=EPOCHS)
    for release in (EPOCHS, LAST):
        with pytest.raises(ParameterError, match=r'step_size <= 2 / smoothness.*release="all"'):
            check_contraction(0.1, 20.1, release=release)
        with pytest.raises(ParameterError, match=r'convex loss.*release="all"'):
            check_contraction(0.1, 1.0, convex=False, release=release)
        with pytest.raises(ParameterError, match=r'clip_safe=True.*release="all"'):
            check_contraction(0.1, 1.0, clip_safe=False, release=release)
    with pytest.raises(ParameterError, match=r'convex regulariser.*release="epochs".*release="all"'):
        check_contraction(0.1, 1.0, prox_convex=False)
    for step, smoothness, name in (
        (0.0, 1.0, "step_size"),
        (math.nan, 1.0, "step_size"),
        (0.1, math.nan, "smooth"),
    ):
        with pytest.raises(ParameterError, match=name):
            check_contraction(step, smoothness)


def test_clipping_a_general_convex_gradient_expands() -> None:
    # Why `clip_safe` is a fact of its own. f = x' H x / 2, clip 0.5, step size 1 = 1 / L.
    curvature = np.array([1.0, 0.05])

    def step(x: Array) -> Array:
        gradient = curvature * x
        moved: Array = x - gradient * min(1.0, 0.5 / float(np.linalg.norm(gradient)))
        return moved

    x, y = np.array([-0.37126081, 7.54645529]), np.array([-0.38576776, 7.56758874])
    assert np.linalg.norm(step(x) - step(y)) / np.linalg.norm(x - y) == pytest.approx(1.1168, abs=1e-4)


def test_hidden_iterates_need_their_facts() -> None:
    for fact, message in (
        ("step_times_smoothness", "needs step_times_smoothness"),
        ("convex", "convex loss"),
        ("clip_safe", "clip_safe=True"),
        ("prox_convex", "convex regulariser"),
    ):
        known = {name: value for name, value in FACTS.items() if name != fact}
        with pytest.raises(ParameterError, match=message):
            Iteration(1.0, 5, 5, order=RR, release=LAST, **known)
        Iteration(1.0, 5, 5, order=RR, release=ALL, **known)
    without = {name: value for name, value in FACTS.items() if name != "prox_convex"}
    Iteration(1.0, 5, 5, release=EPOCHS, **without)
    with pytest.raises(ParameterError, match="step_size <= 2 / smoothness"):
        run(1.0, 5, 5, None, RR, LAST, step_times_smoothness=2.001)
    forged = event_to_json(run(1.0, 5, 5, None, RR, LAST)).replace(b'"convex":true', b'"convex":false', 1)
    with pytest.raises(ParameterError, match="convex"):
        event_from_json(forged)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"noise_multiplier": bad}, "noise_multiplier must be") for bad in (0.0, -1.0, NAN, INF)),
        *(({"n": bad}, "n must be a whole number") for bad in (0, -1, 2.5, True)),
        *(({"epochs": bad}, "epochs must be a whole number") for bad in (0, 1.5)),
        *(({"private": bad}, "private must be a whole number") for bad in (-1, 11, 1.5)),
        *(({"step_times_smoothness": bad}, "step_times_smoothness must be") for bad in (NAN, INF, -1.0)),
        *(({"epoch_contraction": bad}, "epoch_contraction must be in") for bad in (0.0, 1.1, NAN)),
        *(({"diameter": bad}, "diameter must be") for bad in (0.0, -1.0, NAN, INF)),
        *(({"epoch_contraction": 0.9, "release": r}, 'need release="last"') for r in (ALL, EPOCHS)),
        ({"diameter": 1.0, "release": EPOCHS}, 'need release="last"'),
        ({"order": "rr"}, "order must be an Order, got 'rr'"),
        ({"release": "last"}, "release must be a Release, got 'last'"),
        ({"convex": 1}, "convex must be True or False"),
        ({"worst_case_order": None}, "worst_case_order must be True or False"),
    ],
)
def test_values_out_of_range_are_refused(change: dict[str, Any], message: str) -> None:
    good = {"noise_multiplier": 1.0, "n": 10, "epochs": 5, "order": RR, "release": LAST, **FACTS}
    Iteration(**good)
    with pytest.raises(ParameterError, match=message):
        Iteration(**{**good, **change})


@pytest.mark.parametrize("price", [paper_noise, paper_epsilon, renyi_epsilon])
def test_comparison_accountants_refuse_bad_input(price: Any) -> None:
    assert price(1.0, DELTA, n=10, epochs=2) > 0
    for arguments, more, name in (
        ((0.0, DELTA), {}, "(epsilon|noise_multiplier) must be"),
        ((NAN, DELTA), {}, "(epsilon|noise_multiplier) must be"),
        ((1.0, 0.0), {}, "delta must be in"),
        ((1.0, 1.0), {}, "delta must be in"),
        ((1.0, DELTA), {"n": 0}, "n must be"),
        ((1.0, DELTA), {"epochs": 0}, "epochs must be"),
        ((1.0, DELTA), {"private": 0}, "private must be"),
        ((1.0, DELTA), {"private": 11}, "private must be"),
    ):
        with pytest.raises(ParameterError, match=name):
            price(*arguments, **{"n": 10, "epochs": 2, **more})


def test_what_cannot_be_met_is_refused() -> None:
    with pytest.raises(BudgetError, match="cannot be met"):
        calibrate(lambda z: Iteration(z, 10, 5), PrivacyBudget(1.0, 0.0))
