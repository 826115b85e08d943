"""Objective perturbation: reference values, exact attacks in one and two dimensions, hostile numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.privacy import (
    Compose,
    Gaussian,
    Gdp,
    Neighbours,
    ObjectivePerturbed,
    Part,
    Relation,
    Slopes,
    delta_of,
    epsilon_of,
    gamma_epsilon,
    gamma_multiplier,
    neighbours_of,
    renyi_of,
    rho_of,
)
from tacit.privacy.curves import gaussian_curve
from tacit.privacy.perturbed import logistic_curve
from tests.privacy.event_examples import ADD_REMOVE, EVENTS, ZERO_OUT
from tests.privacy.perturbed_reference import (
    LOGISTIC,
    DataSet,
    Loss,
    Record,
    attack,
    largest_loss,
    laws,
    of_either_sign,
    of_one_sign,
    three_classes,
    total,
)

DELTA = 1e-5


def delta_gaussian(epsilon: float, mu: float) -> float:
    return float(gaussian_curve(mu).delta(epsilon))


@pytest.mark.parametrize("neighbours", [ADD_REMOVE, ZERO_OUT])
@pytest.mark.parametrize(
    ("epsilon", "strength", "tied", "one_sign", "either_sign"),
    [
        (0.5, 1.960354, 7.031827, 9.0462, 7.351149),
        (1.0, 0.965320, 3.730632, 4.7370, 3.884141),
        (3.0, 0.306884, 1.390593, 1.6918, 1.438069),
    ],
)
def test_the_noise_that_an_epsilon_takes(
    neighbours: Neighbours, epsilon: float, strength: float, tied: float, one_sign: float, either_sign: float
) -> None:
    """Logistic loss costs one Gaussian release; the determinant is paid for by all others."""
    logistic = ObjectivePerturbed(tied, strength, neighbours=neighbours)
    assert epsilon_of(logistic, DELTA) == pytest.approx(epsilon, rel=2e-6)
    clipped = ObjectivePerturbed(one_sign, strength, Slopes.ONE_SIGN, neighbours, curvature=0.25)
    assert epsilon_of(clipped, DELTA) == pytest.approx(epsilon, rel=2e-5)
    flat = ObjectivePerturbed(either_sign, strength, Slopes.EITHER_SIGN, neighbours, curvature=1e-12)
    assert epsilon_of(flat, DELTA) == pytest.approx(epsilon, rel=2e-6)


@pytest.mark.parametrize(
    ("part", "delta"), [(0.25, 2.138e-3), (0.5, 3.539e-5), (0.9, 1.0121e-5), (1.0, 1e-5), (4.0, 1e-5)]
)
def test_too_little_regularisation_costs_what_the_determinant_does(part: float, delta: float) -> None:
    event = ObjectivePerturbed(3.730632, 0.965320 * part, neighbours=ADD_REMOVE)
    assert delta_of(event, 1.0) == pytest.approx(delta, rel=3e-4)


def test_with_enough_regularisation_it_is_a_gaussian_release() -> None:
    for neighbours, steps in ((ADD_REMOVE, 1), (ZERO_OUT, 1), (Neighbours(), 2)):
        least = 2 * (steps * 1.7) ** 2
        strong = ObjectivePerturbed(1.7, least * 1.0001, neighbours=neighbours)
        both = Compose((strong, Gaussian(30.0, neighbours)))
        exact = Gdp(math.hypot(1 / 1.7, 1 / 30), neighbours)
        assert epsilon_of(both, DELTA) == epsilon_of(exact, DELTA)
        weak = Compose(
            (ObjectivePerturbed(1.7, least * 0.1, neighbours=neighbours), Gaussian(30.0, neighbours))
        )
        assert epsilon_of(weak, DELTA) > epsilon_of(exact, DELTA)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_replacing_a_record_costs_a_gaussian_release_from_twice_the_strength_on(epsilon: float) -> None:
    z = 2.0
    mu = 0.5 / z
    least = 1 / (epsilon / 2 + mu * mu)
    enough = ObjectivePerturbed(z, least * 1.0001)
    assert delta_of(enough, epsilon) == pytest.approx(delta_gaussian(epsilon, 1 / z), rel=1e-9)
    assert delta_of(ObjectivePerturbed(z, least * 0.8), epsilon) > delta_gaussian(epsilon, 1 / z) * 1.0005


@pytest.mark.parametrize(
    ("z", "epsilons"), [(0.2, (0.0, 6.2, 8.0, 30.0, 80.0)), (2.0, (0.0, 0.06, 3.0, 12.0)), (50.0, (0.0, 1.0))]
)
def test_two_steps_of_a_gaussian_are_one_of_twice_its_length(z: float, epsilons: tuple[float, ...]) -> None:
    """At epsilons up to mu^2 whatever the strength, and from the threshold on."""
    mu = 0.5 / z
    for epsilon in epsilons:
        strength = 0.02 if epsilon <= mu * mu else 1.001 / (epsilon / 2 + mu * mu)
        found = delta_of(ObjectivePerturbed(z, strength), epsilon)
        assert found == pytest.approx(delta_gaussian(epsilon, 2 * mu), rel=1e-6)


@pytest.mark.parametrize("loss", Slopes)
@pytest.mark.parametrize(("mu", "strength"), [(0.13, 1.5), (1.0, 0.2), (2.5, 2.0)])
def test_no_other_split_of_epsilon_proves_more(loss: Slopes, mu: float, strength: float) -> None:
    facts: dict[str, Any] = {"classes": 10} if loss is Slopes.MULTINOMIAL else {}
    facts |= {"curvature": 0.5} if loss in (Slopes.ONE_SIGN, Slopes.EITHER_SIGN) else {}
    alone = ObjectivePerturbed(1 / mu, strength, loss, ADD_REMOVE, **facts).curve()
    both = ObjectivePerturbed(0.5 / mu, strength, loss, **facts).curve()
    part = np.linspace(-3, 40, 20_001)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 12.0, 25.0):
        least = min(
            float(np.min(first(part) + np.exp(part) * np.clip(second(epsilon - part), 0, 1)))
            for first, second in ((alone.forward, alone.backward), (alone.backward, alone.forward))
        )
        found = float(both.delta(epsilon))
        assert found <= least * 1.002 + 1e-250
        # The tangent that makes it convex may prove more than any split.
        assert found >= 0.8 * least


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0, 10**400, True, "1"])
@pytest.mark.parametrize("name", ["noise_multiplier", "strength", "curvature"])
def test_numbers_out_of_range_are_refused(name: str, bad: Any) -> None:
    fields: dict[str, Any] = {"noise_multiplier": 1.0, "strength": 1.0, "loss": Slopes.ONE_SIGN}
    fields |= {"curvature": 1.0, name: bad}
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        ObjectivePerturbed(**fields)


@pytest.mark.parametrize("bad", [0, 1, 2.5, True, 10**400, math.nan])
def test_numbers_of_classes_out_of_range_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"^classes must be"):
        ObjectivePerturbed(1.0, 1.0, Slopes.MULTINOMIAL, classes=bad)


@pytest.mark.parametrize(
    ("loss", "facts"),
    [
        (Slopes.LOGISTIC, {"curvature": 0.25}),
        (Slopes.LOGISTIC, {"classes": 2}),
        (Slopes.ONE_SIGN, {}),
        (Slopes.EITHER_SIGN, {"classes": 2}),
        (Slopes.MULTINOMIAL, {}),
        (Slopes.MULTINOMIAL, {"classes": 3, "curvature": 1.0}),
    ],
)
def test_facts_of_another_loss_are_refused(loss: Slopes, facts: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"^(curvature|classes) must be"):
        ObjectivePerturbed(1.0, 1.0, loss, **facts)


def test_a_bare_string_is_no_loss() -> None:
    bare: Any = "logistic"
    with pytest.raises(ParameterError, match="loss must be a Slopes"):
        ObjectivePerturbed(1.0, 1.0, bare)


@pytest.mark.parametrize("part", [Part.SENSITIVE, Part.REWARD])
def test_a_unit_without_a_part_of_it_still_has_a_loss(part: Part) -> None:
    for relation in (Relation.ADD_REMOVE, Relation.ZERO_OUT):
        with pytest.raises(ParameterError, match="must differ in a whole record"):
            ObjectivePerturbed(1.0, 1.0, neighbours=Neighbours(relation, part=part))
    # With another such part it is one of the records that it may be replaced by.
    assert epsilon_of(ObjectivePerturbed(2.0, 3.0, neighbours=Neighbours(part=part)), DELTA) == epsilon_of(
        ObjectivePerturbed(2.0, 3.0), DELTA
    )


@pytest.mark.parametrize(
    ("loss", "strength", "facts", "bound"),
    [
        (Slopes.EITHER_SIGN, 1.0, {"curvature": 1e-12}, 1.520393),
        (Slopes.ONE_SIGN, 1.0, {"curvature": 1e-12}, 1.045640),
        (Slopes.ONE_SIGN, 1.0, {"curvature": 0.5}, 1.045640 + math.log(1.5)),
        (Slopes.LOGISTIC, 1.0, {}, 1.045640 + math.log(1.25)),
        (Slopes.LOGISTIC, 2.0, {}, 1.0),
        (Slopes.MULTINOMIAL, 1e12, {"classes": 2}, math.log(1 + math.e * 0.9332)),
    ],
)
def test_renyi_divergences(loss: Slopes, strength: float, facts: dict[str, Any], bound: float) -> None:
    event = ObjectivePerturbed(1.0, strength, loss, ADD_REMOVE, **facts)
    found = renyi_of(event, [2.0])[0]
    if loss is Slopes.MULTINOMIAL:
        assert 1.045639 <= found <= bound
    else:
        assert found == pytest.approx(bound, abs=2e-6)


def test_renyi_divergences_are_claimed_where_they_are_known() -> None:
    assert np.all(np.isinf(renyi_of(ObjectivePerturbed(1.0, 1.0), [2.0, 8.0])))
    assert renyi_of(ObjectivePerturbed(1.0, 8.0), [2.0]) == pytest.approx([1.0])
    assert rho_of(ObjectivePerturbed(1.0, 8.0)) == pytest.approx(0.5)
    assert math.isinf(rho_of(ObjectivePerturbed(1.0, 7.9)))


EXTREMES = [
    (z, strength)
    for z in (1e-300, 1.1e-5, 1e-2, 1.0, 1e4, 0.9e9, 1e99, 1e300)
    for strength in (5e-324, 1e-51, 1e-20, 1e-3, 1.0, 1e18, 1e300)
]


@pytest.mark.parametrize("loss", Slopes)
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE])
def test_extreme_numbers_have_curves_that_fall_and_lie_above_a_gaussian(
    loss: Slopes, relation: Relation
) -> None:
    facts: dict[str, Any] = {"classes": 10**6} if loss is Slopes.MULTINOMIAL else {}
    facts |= {"curvature": 0.25} if loss in (Slopes.ONE_SIGN, Slopes.EITHER_SIGN) else {}
    epsilon = np.array([-1e6, -50.0, -1.0, -1e-12, 0.0, 1e-300, 1e-12, 1e-3, 1.0, 30.0, 709.0, 1e5, 1e12])
    for z, strength in EXTREMES:
        curve = ObjectivePerturbed(z, strength, loss, Neighbours(relation), **facts).curve()
        least = Gdp(min(1 / z, 1e200)).curve().delta(epsilon)
        for profile in (curve.forward, curve.backward):
            delta = profile(epsilon)
            assert np.all(np.isfinite(delta))
            assert np.all(np.diff(np.clip(delta, 0, 1)) <= 1e-9)
            assert np.all(delta >= least * (1 - 1e-9) - 1e-14)


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-20, 0.3])
def test_tiny_and_large_deltas_have_a_price(delta: float) -> None:
    for event in (
        ObjectivePerturbed(3.7, 1.0, neighbours=ADD_REMOVE),
        ObjectivePerturbed(3.7, 0.5),
        ObjectivePerturbed(5.0, 3.0, Slopes.EITHER_SIGN, curvature=1.0),
        ObjectivePerturbed(5.0, 3.0, Slopes.MULTINOMIAL, classes=10),
    ):
        epsilon = epsilon_of(event, delta)
        exact = epsilon_of(Gdp(1 / event.noise_multiplier), delta)
        assert exact <= epsilon * (1 + 1e-9) + 1e-12
        assert epsilon <= exact + 12
        if epsilon > 0:
            assert delta_of(event, epsilon) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("name", [name for name in EVENTS if name.startswith("ObjectivePerturbed")])
def test_composing_with_noise_on_the_minimiser_costs_next_to_nothing(name: str) -> None:
    event = EVENTS[name]
    alone = epsilon_of(event, DELTA)
    both = epsilon_of(Compose((event, Gaussian(400.0, neighbours_of(event)))), DELTA)
    assert alone * (1 - 1e-6) <= both <= alone * 1.003


@pytest.mark.parametrize("strength", [0.02, 0.3, 1.0, 3.0])
def test_regularisation_and_noise_never_cost(strength: float) -> None:
    for neighbours in (ADD_REMOVE, Neighbours()):
        more_noise = [
            delta_of(ObjectivePerturbed(z, strength, neighbours=neighbours), 0.7)
            for z in (0.3, 1.0, 2.0, 5.0, 20.0)
        ]
        assert more_noise == sorted(more_noise, reverse=True)
        stronger = [
            delta_of(ObjectivePerturbed(2.0, strength * more, neighbours=neighbours), 0.7)
            for more in (0.5, 1.0, 1.5, 4.0, 100.0)
        ]
        assert all(low <= high * (1 + 1e-9) for high, low in itertools.pairwise(stronger))


@pytest.mark.parametrize(
    ("mu", "strength"),
    [(0.3, 0.02), (1.0, 0.2), (1.0, 1.9), (2.5, 0.02), (2.5, 0.3), (8.0, 1e-3), (0.01, 3.0)],
)
def test_the_integral_of_the_largest_loss_is_rounded_up_and_no_further(mu: float, strength: float) -> None:
    """Against sums over a fine grid of noise and of slopes."""
    x, q = np.linspace(-9, 9, 2001), np.linspace(0, 1, 4001)[:, None]
    largest = np.max(np.log1p(q * (1 - q) / strength) + mu * q * (mu * q / 2 + x), axis=0)
    weights = np.exp(-0.5 * x * x)
    weights /= weights.sum()
    curve = logistic_curve(mu, strength)
    for epsilon in (0.3, 1.0, 2.0, 4.0):
        summed = float(np.maximum(-np.expm1(np.minimum(epsilon - largest, 0.0)), 0) @ weights)
        found = float(curve.forward(np.array(epsilon)))
        # Where chords from the total variation prove more, they count.
        assert found <= summed * (1 + 1e-3) + 1e-12
        if found < 0.2 * delta_gaussian(0.0, mu):
            assert found >= summed * (1 - 1e-3) - 1e-12


# Exact attacks: each data set is written by somebody who wants the claim to be wrong.

PULLS: list[DataSet] = [[], [Record((-0.1,), 3000.0)], [Record((-0.03,), 1e5)]]
WEAK_PULLS: list[DataSet] = [[Record((-0.001,), weight)] for weight in (1e3, 2e3, 4e3, 14e3)]
CROWDS: list[DataSet] = [
    [Record((1.0,), 5.0), Record((-1.0,), 5.0)],
    [Record((-1.0,), 3.0)],
    [Record((0.3,), 40.0)],
]
UNITS = [Record((x,)) for x in (1.0, -1.0, 0.5, -0.3)]
EPSILONS = (0.0, 0.2, 1.0, 3.0)
ROUND_OFF = 1 + 2e-5


def random_crowds(seed: int, count: int) -> list[list[Record]]:
    rng = np.random.default_rng(seed)
    return [
        [Record((float(rng.uniform(-1, 1)),), float(rng.lognormal(0, 2))) for _ in range(rng.integers(1, 6))]
        for _ in range(count)
    ]


class Worst(NamedTuple):
    """The largest delta of any attack, over the claim, by epsilon: removal, addition, replacement."""

    removed: dict[float, float]
    added: dict[float, float]
    replaced: dict[float, float]

    @property
    def largest(self) -> float:
        return max(max(found.values()) for found in self)


def worst(
    loss: Loss,
    claim: ObjectivePerturbed,
    *,
    sigma: float,
    strength: float,
    bases: Sequence[DataSet],
    units: Sequence[Record] = UNITS,
    dim: int = 1,
    points: int = 0,
) -> Worst:
    """Attack every base with and without every unit, and with one for the other."""
    alone = msgspec.structs.replace(claim, neighbours=ADD_REMOVE).curve()
    other = msgspec.structs.replace(
        claim, noise_multiplier=claim.noise_multiplier / 2, neighbours=Neighbours()
    ).curve()
    found, at = Worst({}, {}, {}), np.array(EPSILONS)
    bounds = alone.forward(at), alone.backward(at), other.delta(at)

    def note(where: dict[float, float], epsilon: float, delta: float, bound: float) -> None:
        where[epsilon] = max(where.get(epsilon, 0.0), delta / (bound + 1e-12))

    for base in bases:
        data = [list(base), *([*base, unit] for unit in units)]
        without, *rest = laws(loss, data, strength=strength, sigma=sigma, dim=dim, points=points)
        assert all(abs(total(law) - 1) < 1e-6 for law in (without, *rest))
        for epsilon, removed, added, replaced in zip(EPSILONS, *map(np.ndarray.tolist, bounds), strict=True):
            for law in rest:
                note(found.removed, epsilon, attack(law, without, epsilon), removed)
                note(found.added, epsilon, attack(without, law, epsilon), added)
            for one, another in itertools.permutations(rest, 2):
                note(found.replaced, epsilon, attack(one, another, epsilon), replaced)
    return found


SETTINGS = [(0.3, 0.02), (0.3, 0.957), (1.0, 2 / 3), (1.0, 3.0), (2.5, 0.02), (2.5, 0.5)]


@pytest.mark.parametrize(("mu", "strength"), SETTINGS)
def test_no_attack_on_logistic_loss_gains_more_than_its_curve(mu: float, strength: float) -> None:
    bases = [*PULLS, *WEAK_PULLS, *CROWDS, *random_crowds(5, 4)]
    found = worst(
        LOGISTIC, ObjectivePerturbed(1 / mu, strength), sigma=1 / mu, strength=strength, bases=bases
    )
    assert found.largest <= ROUND_OFF
    # Whoever is far on the wrong side has slope 1: then all of it is used, from the threshold on.
    for epsilon in EPSILONS:
        if delta_gaussian(epsilon, mu) > 1e-6:
            assert found.added[epsilon] >= 1 - 1e-4
            if epsilon + mu * mu / 2 >= 1 / strength:
                assert found.removed[epsilon] >= 1 - 1e-4


@pytest.mark.parametrize("loss", [Slopes.ONE_SIGN, Slopes.EITHER_SIGN])
@pytest.mark.parametrize(("mu", "strength", "curvature"), [(0.3, 2.0, 0.5), (1.0, 0.2, 0.5), (1.0, 3.0, 3.0)])
def test_no_attack_on_other_slopes_gains_more_than_their_curve(
    loss: Slopes, mu: float, strength: float, curvature: float
) -> None:
    bent = (of_one_sign if loss is Slopes.ONE_SIGN else of_either_sign)(curvature)
    claim = ObjectivePerturbed(1 / mu, strength, loss, curvature=curvature)
    bases = [*PULLS, *CROWDS, *random_crowds(6, 4)]
    found = worst(bent, claim, sigma=1 / mu, strength=strength, bases=bases)
    assert 0.2 < found.largest <= ROUND_OFF


@pytest.mark.parametrize(("mu", "strength"), [(0.5, 1.0), (1.0, 0.2)])
def test_no_attack_on_three_classes_gains_more_than_their_curve(mu: float, strength: float) -> None:
    claim = ObjectivePerturbed(1 / mu, strength, Slopes.MULTINOMIAL, classes=3)
    found = worst(
        three_classes,
        claim,
        sigma=math.sqrt(2) / mu,
        strength=strength,
        bases=[[], [Record((0.1, 0), 300.0), Record((0.1, 1), 300.0)], [Record((0.03, 2), 1e4)]],
        units=[Record((1.0, 0)), Record((1.0, 2)), Record((-1.0, 2))],
        dim=2,
        points=201,
    )
    assert 0.5 < found.largest <= ROUND_OFF


@pytest.mark.parametrize(("mu", "strength"), [(1.0, 3.0), (1.0, 0.5), (1.0, 0.1), (0.3, 1.0)])
def test_attacks_in_two_dimensions_come_close_to_the_price_of_replacing_a_record(
    mu: float, strength: float
) -> None:
    """Two rows that are almost opposite, both on the wrong side because others pull there."""
    found = [
        worst(
            LOGISTIC,
            ObjectivePerturbed(1 / mu, strength),
            sigma=1 / mu,
            strength=strength,
            bases=[[Record((0.0, -0.01), pull)]],
            units=[Record((side * math.cos(angle), math.sin(angle))) for side in (1, -1)],
            dim=2,
        )
        for angle, pull in ((0.1, 3e5), (0.6, 5e3))
    ]
    assert max(one.largest for one in found) <= 1 + 1e-4  # of a coarser grid
    assert found[0].replaced[0.0] >= 0.99


def test_half_the_noise_is_found_out() -> None:
    """Controls: what is refuted if a claim is made with too little noise, or too little regularisation."""
    found = worst(LOGISTIC, ObjectivePerturbed(2.0, 3.0), sigma=1.0, strength=3.0, bases=PULLS)
    assert min(found.removed[1.0], found.added[1.0], found.added[0.0]) > 1.9
    found = worst(LOGISTIC, ObjectivePerturbed(1 / 0.3, 0.8), sigma=1 / 0.3, strength=0.2, bases=WEAK_PULLS)
    assert found.removed[1.0] > 20
    pair = [Record((side * math.cos(0.1), math.sin(0.1))) for side in (1, -1)]
    found = worst(
        LOGISTIC,
        ObjectivePerturbed(2.0, 3.0),
        sigma=1.0,
        strength=3.0,
        bases=[[Record((0.0, -0.01), 3e5)]],
        units=pair,
        dim=2,
    )
    assert found.replaced[1.0] > 1.9


def test_below_the_threshold_the_determinant_does_cost() -> None:
    """One record against none: delta .1105 in the order of removal, where a Gaussian release has .0498."""
    mu, strength, epsilon = 0.3, 0.02, 0.2
    without, with_it = laws(
        LOGISTIC, [[], [Record((1.0,))]], strength=strength, sigma=1 / mu, dim=1, points=40_001
    )
    delta = attack(with_it, without, epsilon)
    assert delta == pytest.approx(0.1105, abs=1e-4)
    assert delta_gaussian(epsilon, mu) == pytest.approx(0.0498, abs=1e-4)
    claim = ObjectivePerturbed(1 / mu, strength, neighbours=ADD_REMOVE).curve()
    assert delta < float(claim.forward(np.array(epsilon))) < 1.07 * delta


# Pure epsilon


@pytest.mark.parametrize(("scale", "strength"), [(2.0, 2.0), (1.0, 1.0), (1.0, 0.7), (1.0, 0.2), (2.0, 0.4)])
def test_no_loss_under_gamma_noise_exceeds_its_pure_epsilon(scale: float, strength: float) -> None:
    single, both = (
        gamma_epsilon(scale / steps, strength, relation=relation)
        for steps, relation in ((1, Relation.ADD_REMOVE), (2, Relation.REPLACE_ONE))
    )
    largest = 0.0
    for base in [*PULLS, *WEAK_PULLS, *CROWDS]:
        data: list[DataSet] = [base, *([*base, unit] for unit in UNITS)]
        without, *rest = laws(LOGISTIC, data, strength=strength, sigma=scale, dim=1, gamma=True)
        for law in rest:
            assert largest_loss(without, law) <= 1 / scale + 1e-9
            largest = max(largest, largest_loss(law, without))
        for one, another in itertools.permutations(rest, 2):
            assert largest_loss(one, another) <= both
    assert largest <= single
    assert largest >= 0.995 * single  # also where the determinant counts: it is needed
    if strength >= scale:
        assert single == pytest.approx(1 / scale, rel=1e-9)
        assert both == pytest.approx(2 / scale, rel=1e-9)


def test_next_to_no_gamma_noise_hides_nothing() -> None:
    assert gamma_epsilon(5e-324, 1.0) == math.inf
    assert gamma_epsilon(1.0, 5e-324) == math.inf


def test_gamma_noise_in_two_dimensions_keeps_its_pure_epsilon() -> None:
    pair = [Record((side * math.cos(0.1), math.sin(0.1))) for side in (1, -1)]
    base = [Record((0.0, -0.01), 3e5)]
    one, other = laws(
        LOGISTIC, [[*base, pair[0]], [*base, pair[1]]], strength=1.0, sigma=1.0, dim=2, gamma=True
    )
    assert 1.95 < largest_loss(one, other) <= gamma_epsilon(0.5, 1.0) == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(
    ("loss", "facts"),
    [
        (Slopes.LOGISTIC, {}),
        (Slopes.ONE_SIGN, {"curvature": 0.5}),
        (Slopes.EITHER_SIGN, {"curvature": 0.5}),
        (Slopes.MULTINOMIAL, {"classes": 10}),
    ],
)
def test_the_least_gamma_noise_keeps_to_epsilon(
    relation: Relation, loss: Slopes, facts: dict[str, Any]
) -> None:
    for epsilon, strength in itertools.product((0.3, 1.0, 4.0), (0.05, 0.6, 2.0, 30.0)):
        if gamma_epsilon(1e12, strength, loss, relation, **facts) >= epsilon:
            with pytest.raises(ParameterError, match=r"strength must be larger .* determinant alone costs"):
                gamma_multiplier(epsilon, strength, loss, relation, **facts)
            continue
        z = gamma_multiplier(epsilon, strength, loss, relation, **facts)
        assert gamma_epsilon(z, strength, loss, relation, **facts) <= epsilon
        assert gamma_epsilon(z * (1 - 1e-9), strength, loss, relation, **facts) > epsilon


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0, 10**400, True])
def test_gamma_noise_of_hostile_numbers_is_refused(bad: Any) -> None:
    sloped = {"curvature": bad}
    for name, price, arguments, facts in (
        ("noise_multiplier", gamma_epsilon, (bad, 1.0), {}),
        ("strength", gamma_epsilon, (1.0, bad), {}),
        ("epsilon", gamma_multiplier, (bad, 1.0), {}),
        ("strength", gamma_multiplier, (1.0, bad), {}),
        ("curvature", gamma_epsilon, (1.0, 1.0, Slopes.ONE_SIGN), sloped),
        ("curvature", gamma_multiplier, (1.0, 1.0, Slopes.EITHER_SIGN), sloped),
    ):
        with pytest.raises(ParameterError, match=rf"^{name} must be"):
            price(*arguments, **facts)
