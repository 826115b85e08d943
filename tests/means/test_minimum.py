"""Minima with noise on them or in their objective: laws, lengths, prices, and who answers for the rows."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.means import (
    DiscreteGaussianNoise,
    GammaNoise,
    GaussianNoise,
    Message,
    NoisyMinimum,
    NoNoise,
    PerturbedMinimum,
    Round,
)
from tacit.numerics import Array
from tacit.privacy import (
    Compose,
    Gaussian,
    Neighbours,
    NonPrivate,
    ObjectivePerturbed,
    Part,
    PureDP,
    Relation,
    TrustModel,
    epsilon_of,
    neighbours_of,
)
from tests.statistics import FALSE_ALARM, z_bound

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
ONE = Round(n=1, radius=1.0)


def minimum(**changes: Any) -> NoisyMinimum:
    fields: dict[str, Any] = {"dim": 2, "strength": 0.5, "tolerance": 1e-8} | changes
    return NoisyMinimum(**fields)


def solved(rows: Array, **changes: Any) -> Array:
    return minimum(dim=rows.shape[1], **changes).estimate(rows, Round(n=1, radius=1.0), rng=NO_RNG)


NO_RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("relation", "std"), [(Relation.ADD_REMOVE, 0.0466329), (Relation.REPLACE_ONE, 0.0932658)]
)
def test_the_noise_is_what_the_sensitivity_of_a_minimum_asks_for(relation: Relation, std: float) -> None:
    """At epsilon 1 and delta 1e-5, strength 80 and rows of norm 1: z k L / strength."""
    mean = minimum(
        dim=1, strength=80.0, tolerance=1e-7, noise=GaussianNoise(3.730632), neighbours=Neighbours(relation)
    )
    assert mean.noise_multiplier * mean.reach == pytest.approx(std, rel=1e-6)
    assert mean.event(8000, LOCAL) == Gaussian(3.730632, Neighbours(relation))
    facts = mean.error(1)
    assert facts.variance == pytest.approx(std**2, rel=1e-5)


@pytest.mark.parametrize(("relation", "moved"), [(Relation.ZERO_OUT, 1), (Relation.REPLACE_ONE, 2)])
def test_solutions_may_stop_short_on_either_side(relation: Relation, moved: int) -> None:
    """Where all slopes are full, J is strength w^2 / 2 - slope w, and a solver stops early or late."""
    mean = minimum(dim=1, strength=0.5, tolerance=0.25, neighbours=Neighbours(relation))
    slope = 100.0
    late = (slope + moved + mean.tolerance) / mean.strength
    early = (slope - mean.tolerance) / mean.strength
    assert late - early <= mean.reach == pytest.approx(late - early)


@pytest.mark.parametrize("relation", list(Relation))
def test_no_neighbours_are_further_apart_than_the_price_says(relation: Relation) -> None:
    grid = [np.array(p) for p in product([-1.0, -0.8, 0.0, 0.6], repeat=2) if math.hypot(*p) <= 1]
    kept = [
        np.zeros((0, 2)),
        np.array([[0.3, 0.1]]),
        np.array([[-1.0, 0.0]] * 40),
        np.array([[0.0, 1.0]] * 9),
    ]
    mean = minimum(neighbours=Neighbours(relation))
    farthest = 0.0
    for rows in kept:
        found = [solved(np.vstack([rows, row]), strength=mean.strength) for row in grid]
        without = solved(rows, strength=mean.strength)
        pairs = [(v, without) for v in found] if mean.sensitivity == 1 else list(product(found, repeat=2))
        farthest = max(farthest, *(float(np.linalg.norm(a - b)) for a, b in pairs))
    assert 0.5 * mean.reach < farthest <= mean.reach


@pytest.mark.parametrize("noise", [NoNoise(), GaussianNoise(1.0), DiscreteGaussianNoise(1.0)], ids=str)
@pytest.mark.parametrize("relation", list(Relation))
def test_lengths_say_nothing_of_secret_rows(noise: Any, relation: Relation) -> None:
    for trust in (LOCAL, CENTRAL):
        mean = minimum(noise=noise, trust=trust, neighbours=Neighbours(relation), on_violation="clip")
        counts = range(9) if relation is Relation.ADD_REMOVE else [4]
        for k in counts:
            rows = np.full((k, 2), 0.3)
            (message,) = mean.encode(rows, Round(n=4, radius=1.0), party=0, rng=np.random.default_rng(1))
            assert 8 * len(message.to_bytes()) == mean.bits_per_party(4)


def test_padding_changes_nothing() -> None:
    rows = np.array([[0.3, 0.4], [-0.5, 0.1], [0.0, 0.9]])
    counted, known = (
        minimum(trust=CENTRAL, neighbours=Neighbours(relation)).encode(
            rows, Round(n=3, radius=1.0), party=0, rng=NO_RNG
        )
        for relation in (Relation.ADD_REMOVE, Relation.ZERO_OUT)
    )
    mean = minimum(trust=CENTRAL)
    assert np.array_equal(mean.decode(counted, ONE), mean.decode(known, ONE))


def test_a_server_clips_what_a_party_did_not() -> None:
    mean = minimum(trust=CENTRAL, noise=GaussianNoise(1e-9))
    honest, long = ([Message(payload=np.array([x, 0.0]), sender=0)] for x in (1.0, 1e300))
    first, second = (mean.decode(sent, ONE, rng=np.random.default_rng(0)) for sent in (honest, long))
    assert first == pytest.approx(second, abs=1e-12)
    for wrong in (np.ones(3), np.array([1.0, math.nan]), np.ones(2, dtype=np.float32)):
        with pytest.raises(ParameterError, match="a message must"):
            mean.decode([Message(payload=wrong, sender=0)], ONE, rng=NO_RNG)
    with pytest.raises(ParameterError, match="at most one message of each sender"):
        mean.decode(honest * 2, ONE, rng=NO_RNG)
    with pytest.raises(ParameterError, match="needs rng"):
        mean.decode(honest, ONE)
    with pytest.raises(ParameterError, match="at least one message"):
        mean.decode([], ONE, rng=NO_RNG)


def test_hostile_rows_neither_warn_nor_fail() -> None:
    rows = np.array([[1e308, 1e308], [math.nan, 0.0], [math.inf, 1.0], [5e-324, 0.0], [-1e-300, 1e300]])
    for trust in (LOCAL, CENTRAL):
        mean = minimum(noise=GaussianNoise(1.0), trust=trust)
        sent = mean.encode(rows, Round(n=5, radius=2.0**-90), party=0, rng=NO_RNG)
        assert np.isfinite(mean.decode(sent, Round(n=5, radius=2.0**-90), rng=NO_RNG)).all()


def test_what_rounding_could_hide_is_refused_before_anything_is_asked() -> None:
    mean = minimum(dim=100, tolerance=1e-9, noise=GaussianNoise(1.0))
    with pytest.raises(ParameterError, match=r"tolerance must be at least 1e-\d\d for these rows, got 1e-09"):
        mean.event(100_000, LOCAL)
    loose = msgspec.structs.replace(mean, tolerance=mean.least(100_000))
    assert loose.event(100_000, LOCAL) == Gaussian(1.0)
    with pytest.raises(ParameterError, match="too long for a message"):
        msgspec.structs.replace(loose, trust=CENTRAL, tolerance=1e6).event(2**31, CENTRAL)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strength": 0.0}, "strength must be a finite number > 0, got 0.0"),
        ({"strength": 1e-7}, "strength must be at least 1e-06, got 1e-07"),
        ({"tolerance": 0.0}, "tolerance must be a finite number > 0, got 0.0"),
        ({"dim": 0}, "dim must be"),
        ({"trust": TrustModel.SHUFFLE}, "trust must be TrustModel.LOCAL or TrustModel.CENTRAL"),
        ({"on_violation": "x"}, "on_violation must be"),
    ],
)
def test_values_out_of_range_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        minimum(**changes)


def test_nobody_else_is_promised_anything() -> None:
    central = minimum(noise=GaussianNoise(1.0), trust=CENTRAL)
    assert central.event(3, LOCAL) == NonPrivate()
    assert minimum().event(3, LOCAL) == NonPrivate()
    with pytest.raises(ParameterError, match="a Poisson batch needs sums"):
        central.against_nothing()


# A noisy objective


def perturbed(**changes: Any) -> PerturbedMinimum:
    fields: dict[str, Any] = {
        "dim": 2,
        "strength": 0.5,
        "tolerance": 1e-8,
        "output": 100.0,
        "noise": GaussianNoise(1.5),
    }
    return PerturbedMinimum(**(fields | changes))


def drawn(mean: PerturbedMinimum, rows: Array, trials: int, seed: int = 3) -> Array:
    rng, one = np.random.default_rng(seed), Round(n=1, radius=1.0)
    return np.array(
        [mean.decode(mean.encode(rows, one, party=0, rng=rng), one, rng=rng) for _ in range(trials)]
    )


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_without_rows_a_solution_shows_the_law_of_the_linear_term(
    trust: TrustModel, relation: Relation
) -> None:
    """It is -b / strength: Gaussian, of deviation z times how far a unit moves the sum of gradients."""
    moved = 2 if relation is Relation.REPLACE_ONE else 1
    mean = perturbed(trust=trust, neighbours=Neighbours(relation))
    found = drawn(mean, np.zeros((0, 2)), 800)
    standard = found * 0.5 / (1.5 * moved)
    assert stats.kstest(standard.ravel(), "norm").pvalue > FALSE_ALARM
    assert abs(np.asarray(np.corrcoef(standard.T))[0, 1]) < z_bound(1) / math.sqrt(800)
    assert stats.kstest(1.4 * standard.ravel(), "norm").pvalue < FALSE_ALARM
    assert mean.event(1, trust) == Compose(
        (ObjectivePerturbed(1.5, 0.5, neighbours=Neighbours(relation)), Gaussian(100.0, Neighbours(relation)))
    )


def test_a_second_noise_hides_which_of_the_near_solutions_was_found() -> None:
    """With next to no linear term, it is what is left: output times 2 tolerance / strength."""
    mean = perturbed(noise=GaussianNoise(1e-12), tolerance=1e-3, output=30.0)
    found = drawn(mean, np.zeros((0, 2)), 800)
    assert stats.kstest(found.ravel() / (30 * 2 * 1e-3 / 0.5), "norm").pvalue > FALSE_ALARM


def test_the_linear_term_is_part_of_what_is_minimised() -> None:
    """Where rows hold against it, it moves a solution by the inverse of the curvature."""
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]] * 200)
    found = drawn(perturbed(noise=GaussianNoise(1.0)), rows, 400)
    along, across = found.std(axis=0)
    # Half of two rows of opposite signs: a curvature of 1/4 each.
    assert along == pytest.approx(2 / (400 / 4 + 0.5), rel=0.2)
    assert across == pytest.approx(2 / 0.5, rel=0.2)


@pytest.mark.parametrize("relation", list(Relation))
def test_a_linear_term_makes_no_length_tell(relation: Relation) -> None:
    for trust in (LOCAL, CENTRAL):
        mean = perturbed(trust=trust, neighbours=Neighbours(relation))
        for k in range(9) if relation is Relation.ADD_REMOVE else [4]:
            sent = mean.encode(np.full((k, 2), 0.3), Round(n=4, radius=1.0), party=0, rng=NO_RNG)
            assert [8 * len(one.to_bytes()) for one in sent] == [mean.bits_per_party(4)]


def test_a_tolerance_that_rounding_could_hide_counts_the_linear_term() -> None:
    mean = perturbed(dim=100, noise=GaussianNoise(1e4), strength=1e-3)
    assert mean.least(1000) > 10 * msgspec.structs.replace(mean, noise=GaussianNoise(1.0)).least(1000)
    with pytest.raises(ParameterError, match="tolerance must be at least"):
        mean.event(1000, LOCAL)
    for wrong in (0.0, -1.0, math.inf):
        with pytest.raises(ParameterError, match="output must be a finite number > 0"):
            perturbed(output=wrong)
    with pytest.raises(ParameterError, match="noise"):
        perturbed(noise=DiscreteGaussianNoise(1.0))


@pytest.mark.parametrize("noise", [GaussianNoise(2.0), GammaNoise(2.0)])
@pytest.mark.parametrize("relation", [Relation.ZERO_OUT, Relation.ADD_REMOVE])
@pytest.mark.parametrize("part", [Part.SENSITIVE, Part.REWARD])
def test_a_record_without_a_part_still_has_a_loss_and_is_not_priced(
    part: Part, relation: Relation, noise: GaussianNoise | GammaNoise
) -> None:
    mean = perturbed(strength=30.0, tolerance=1e-6, noise=noise, neighbours=Neighbours(relation, part=part))
    with pytest.raises(ParameterError, match="still has a loss"):
        mean.event(10, LOCAL)


@pytest.mark.parametrize("relation", list(Relation))
def test_a_linear_term_of_gamma_length_has_a_pure_epsilon(relation: Relation) -> None:
    moved, near = (2 if relation is Relation.REPLACE_ONE else 1), Neighbours(relation)
    mean = perturbed(dim=3, noise=GammaNoise(0.2), strength=moved * 0.2, neighbours=near)
    event = mean.event(1, LOCAL)
    assert isinstance(event, Compose)
    assert [type(part) for part in event.parts] == [PureDP, PureDP]
    assert neighbours_of(event) == near
    assert epsilon_of(event, 0.0) == pytest.approx(1 / 0.2 + 1 / 100, rel=1e-6)
    found = drawn(mean, np.zeros((0, 3)), 800)  # -b / strength, and b has the scale 0.2 of a unit
    lengths = np.linalg.norm(found, axis=1)
    assert stats.kstest(lengths, "gamma", args=(3,)).pvalue > FALSE_ALARM
    assert stats.kstest(lengths / 1.4, "gamma", args=(3,)).pvalue < FALSE_ALARM
    heights = found[:, 0] / lengths  # of points of a sphere in three dimensions
    assert stats.kstest(heights, "uniform", args=(-1, 2)).pvalue > FALSE_ALARM
    weak = msgspec.structs.replace(mean, strength=0.1 * mean.strength).event(1, LOCAL)
    assert epsilon_of(weak, 0.0) > 5.1
