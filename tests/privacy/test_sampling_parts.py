"""Samples and shuffles where neighbours differ in a part of a unit only: the rest shows who is in them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from tacit.errors import ParameterError
from tacit.federation import Fixed, Measure, Plan, Poisson, Step
from tacit.means import AdditiveMean, GaussianNoise
from tacit.privacy import (
    Binomial,
    Compose,
    Event,
    Gaussian,
    Neighbours,
    Parallel,
    Part,
    Relation,
    Repeat,
    Sample,
    Sampled,
    Shuffled,
    TrustModel,
    Unit,
    delta_of,
    epsilon_of,
    event_from_builtins,
)

DELTA, RATE = 1e-5, 0.1
PARTS = (Part.SENSITIVE, Part.REWARD)
HOW = {
    Relation.REPLACE_ONE: Sample.FIXED,
    Relation.ADD_REMOVE: Sample.POISSON,
    Relation.ZERO_OUT: Sample.POISSON,
}


def attribute_delta(epsilon: float, *, common: float, step: float = 0.04) -> float:
    """Return delta of two unit Gaussian statistics on one Poisson sample when one attribute changes.

    The record puts (common, 1/2) or (common, -1/2) into them, so the change has size 1 and the noise hides it
    with multiplier 1; nothing bounds the common part. The hockey-stick divergence, summed over a grid.
    """
    x = np.arange(-9, common + 9, step)[:, None]
    y = np.arange(-9.5, 9.5, step)[None, :]
    absent = stats.norm.pdf(x) * stats.norm.pdf(y)
    here, there = (stats.norm.pdf(x - common) * stats.norm.pdf(y - at) for at in (0.5, -0.5))
    first, second = ((1 - RATE) * absent + RATE * present for present in (here, there))
    return float(np.maximum(first - np.exp(epsilon) * second, 0).sum() * step * step)


def test_the_counterexample_costs_more_than_twice_the_curve_of_a_hidden_sample() -> None:
    hidden = epsilon_of(Sampled(Gaussian(1.0), RATE), DELTA)
    assert hidden == pytest.approx(1.6845, abs=1e-3)
    assert attribute_delta(hidden, common=8.0) > 400 * DELTA
    needed = optimize.brentq(lambda e: attribute_delta(e, common=8.0) - DELTA, 3.0, 5.0, xtol=1e-6)
    assert needed == pytest.approx(3.8044, abs=1e-3)
    # That is the price of the revealed sample, q times the delta of the release on all records.
    assert RATE * delta_of(Gaussian(1.0), needed) == pytest.approx(DELTA, rel=1e-2)
    # Where nothing else of the record is in the release, the curve of the hidden sample holds.
    assert attribute_delta(hidden, common=0.0) < DELTA


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("relation", HOW)
@pytest.mark.parametrize("unit", Unit)
def test_a_sample_is_refused(part: Part, relation: Relation, unit: Unit) -> None:
    release = Gaussian(1.0, Neighbours(relation, unit, part))
    inside: list[Event] = [release, Compose((release, release)), Repeat(release, 3), Parallel((release,))]
    for event in inside:
        with pytest.raises(ParameterError, match=f"a sample hides nobody .* in the {part.value} part only"):
            Sampled(event, RATE, HOW[relation])
    assert epsilon_of(Sampled(release, 1.0, HOW[relation]), DELTA) == epsilon_of(release, DELTA)


@pytest.mark.parametrize("part", [Part.ALL, Part.PRIVATE])
@pytest.mark.parametrize("relation", HOW)
def test_a_sample_of_whole_units_is_priced(part: Part, relation: Relation) -> None:
    event = Sampled(Gaussian(1.0, Neighbours(relation, part=part)), RATE, HOW[relation])
    assert epsilon_of(event, DELTA) < 3.8


@pytest.mark.parametrize("part", PARTS)
def test_a_shuffle_is_refused_and_a_sum_with_noise_is_not(part: Part) -> None:
    near = Neighbours(part=part)
    with pytest.raises(ParameterError, match="a shuffled batch hides nobody"):
        Shuffled(1.0, 1000, "general", near)
    assert epsilon_of(Binomial(7148, 10, neighbours=near), DELTA) == epsilon_of(Binomial(7148, 10), DELTA)


@pytest.mark.parametrize("part", PARTS)
def test_a_written_event_is_refused(part: Part) -> None:
    written: dict[str, Any] = {
        "event": "Sampled",
        "part": {"event": "Gaussian", "noise_multiplier": 1.0, "neighbours": {"part": part.value}},
        "rate": RATE,
    }
    with pytest.raises(ParameterError, match="a sample hides nobody"):
        event_from_builtins(json.loads(json.dumps(written)))


@pytest.mark.parametrize("batch", [Fixed(size=5), Poisson(rate=0.1)])
def test_a_plan_with_secret_batches_is_refused(batch: Fixed | Poisson) -> None:
    relation = Relation.REPLACE_ONE if isinstance(batch, Fixed) else Relation.ZERO_OUT
    noise = GaussianNoise(noise_multiplier=2.0)
    estimator = AdditiveMean(dim=2, noise=noise, neighbours=Neighbours(relation, part=Part.SENSITIVE))
    measure = Measure(statistic="gradient", estimator=estimator, max_radius=1.0)
    plan = Plan(steps=((Step(measures=(measure,), batch=batch), 3),), parties=1, delta=DELTA)
    with pytest.raises(ParameterError, match="a sample hides nobody"):
        plan.event([50], TrustModel.LOCAL)
