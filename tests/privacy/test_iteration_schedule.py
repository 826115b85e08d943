"""Epochs of several kinds, and noise at the ends of epochs: energies by the programme itself, and prices."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.privacy import (
    EpochSteps,
    Gdp,
    IterationSchedule,
    Neighbours,
    Order,
    Placement,
    PrivacyBudget,
    Relation,
    Release,
    Repeat,
    calibrate,
    delta_of,
    epsilon_of,
    guarantee,
    verify,
)
from tacit.privacy.iteration import Iteration
from tests.privacy.iteration_reference import FACTS, least_energy, run
from tests.privacy.reference import gaussian_delta

DELTA = 1e-6
END, EVERY = Placement.EPOCH_END, Placement.EVERY_STEP
EPOCHS, LAST = Release.EPOCHS, Release.LAST
IG, SO, RR = Order.IG, Order.SO, Order.RR


def schedule(*epochs: EpochSteps, z: float = 1.0, order: Order = IG, **more: Any) -> IterationSchedule:
    return IterationSchedule(z, epochs, order, **{**FACTS, **more})


def by_programme(epochs: tuple[EpochSteps, ...], touches: tuple[int, ...], contraction: float = 1.0) -> float:
    """The energy with the record in a known step of each epoch (0: in none), every step written down."""
    shifts, variances, contractions = [], [], []
    for k, (epoch, touch) in enumerate(zip(epochs, touches, strict=True)):
        steps = epoch.private + epoch.public
        ends = epoch.placement is END
        drawn = [not ends and (t <= epoch.private or epoch.public_noise) for t in range(1, steps + 1)]
        drawn[-1] |= ends and (epoch.private > 0 or epoch.public_noise)
        shifts += [float(t == touch) for t in range(1, steps + 1)]
        variances += [float(d) for d in drawn]
        contractions += [contraction if k and t == 1 else 1.0 for t in range(1, steps + 1)]
    return least_energy(np.array(shifts), np.array(variances), np.array(contractions), 0.0)


# --- one draw of noise an epoch


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 59.74598), (5.0, 13.85999), (10.0, 7.65212)])
def test_one_draw_an_epoch_is_a_composition_wherever_the_record_comes(epsilon: float, sigma: float) -> None:
    for order, release in itertools.product(Order, (EPOCHS, LAST)):
        found = run(sigma / 2, 1000, 50, None, order, release, placement=END)
        assert delta_of(found, epsilon) == pytest.approx(DELTA, rel=1e-3)


@pytest.mark.parametrize(
    ("private", "sigmas"), [(500, (43.7972, 10.2648, 5.7095)), (250, (32.7405, 7.7665, 4.3550))]
)
def test_reshuffled_epochs_that_miss_a_record_mix_by_how_many_use_it(
    private: int, sigmas: tuple[float, ...]
) -> None:
    """As if all iterates left, where only the number of uses matters either."""
    for epsilon, sigma in zip((1.0, 5.0, 10.0), sigmas, strict=True):
        event = run(sigma / 2, 1000, 50, private, RR, LAST, placement=END)
        assert delta_of(event, epsilon) == pytest.approx(DELTA, rel=1e-3)
        once = run(sigma / 2, 1000, 50, private, RR, LAST, placement=END, worst_case_order=True)
        assert delta_of(once, epsilon) == pytest.approx(gaussian_delta(math.sqrt(50) * 2 / sigma, epsilon))
    shared = run(1.0, 10, 20, 4, SO, LAST, placement=END)
    assert delta_of(shared, 1.0) == pytest.approx(0.4 * delta_of(Gdp(math.sqrt(20)), 1.0))


def test_less_variance_in_all_than_a_draw_a_step() -> None:
    """At n = 1000, K = 50, epsilon 5: 192 G^2 an epoch against 1998."""
    budget = PrivacyBudget(5.0, DELTA)
    once = 2 * calibrate(lambda z: run(z, 1000, 50, None, RR, LAST, placement=END), budget)
    every = 2 * calibrate(lambda z: run(z, 1000, 50, None, RR, LAST, placement=EVERY), budget)
    assert (once**2, 1000 * every**2) == pytest.approx((192.1, 1997.4), rel=1e-3)


def test_ends_of_epochs_that_contract_or_are_bounded_are_hulls_of_one_draw_an_epoch() -> None:
    ends = tuple(EpochSteps(private=3, placement=END) for _ in range(6))
    expected = by_programme(ends, (3,) * 6, contraction=0.8)
    for order in Order:
        found = run(1.0, 3, 6, None, order, LAST, placement=END, epoch_contraction=0.8)
        assert found.law.largest == pytest.approx(expected, rel=1e-9)
        bounded = run(1.0, 3, 400, None, order, LAST, placement=END, diameter=4.0)
        # From the best start on: m epochs absorb a distance of 4 and m shifts, (4 + m)^2 / m at m = 4.
        assert bounded.law.largest == pytest.approx(16.0, rel=1e-9)
    rare = run(1.0, 4, 6, 2, RR, LAST, placement=END, epoch_contraction=0.8)
    plain = run(1.0, 4, 6, 2, RR, LAST, placement=END)
    assert delta_of(rare, 1.0) < delta_of(plain, 1.0)
    # All 2^6 equally likely sets of epochs that use the record, each by the programme.
    half = tuple(EpochSteps(private=2, public=2, placement=END) for _ in range(6))
    exact = np.mean(
        [
            gaussian_delta(math.sqrt(by_programme(half, used, contraction=0.8)), 1.0) if any(used) else 0.0
            for used in itertools.product((0, 1), repeat=6)
        ]
    )
    assert exact <= delta_of(rare, 1.0)


def test_steps_without_noise_must_be_hidden() -> None:
    with pytest.raises(ParameterError, match='must be hidden, got release="all"'):
        Iteration(1.0, 10, 5, placement=END)
    with pytest.raises(ParameterError, match="placement must be a Placement"):
        run(1.0, 10, 5, None, RR, LAST, placement="epoch-end")


# --- epochs of several kinds


def test_noise_on_public_epochs_hides_the_private_ones_before() -> None:
    after = EpochSteps(private=0, public=1000, public_noise=True, count=25)
    assert schedule(EpochSteps(private=1000, count=25), after).energy == pytest.approx(0.012754841738)
    assert run(1.0, 1000, 25, None, IG, LAST).law.largest == pytest.approx(1.024)


def test_public_epochs_without_noise_change_nothing_at_the_ends() -> None:
    private, public = EpochSteps(private=5, count=3), EpochSteps(private=0, public=5, count=2)
    alone = schedule(private)
    assert schedule(public, private, public).energy == pytest.approx(alone.energy)
    assert alone.energy == pytest.approx(run(1.0, 5, 3, None, IG, LAST).law.largest)
    # Private steps alone are the noisy ones of an epoch whose public steps have none.
    bare = EpochSteps(private=3, public=2, count=4)
    assert schedule(bare).energy == pytest.approx(run(1.0, 3, 4, None, IG, LAST).law.largest)
    noisy = EpochSteps(private=3, public=2, public_noise=True, count=4)
    assert schedule(noisy).energy == pytest.approx(run(1.0, 5, 4, 3, IG, LAST).law.largest)


def test_energies_are_those_of_the_programme() -> None:
    rng = np.random.default_rng(7)
    for trial in range(25):
        epochs = tuple(
            EpochSteps(
                private=int(rng.integers(0 if k else 1, 4)),
                public=int(rng.integers(1, 3)),
                public_noise=bool(rng.integers(2)),
                placement=END if rng.integers(3) == 0 else EVERY,
            )
            for k in range(4)
        )
        contraction = 0.7 if trial % 2 else 1.0
        worst = max(
            by_programme(epochs, tuple(j if j <= e.private else 0 for e in epochs), contraction)
            for j in range(1, 4)
            if any(j <= e.private for e in epochs)
        )
        fixed = schedule(*epochs, epoch_contraction=contraction).energy
        assert fixed == pytest.approx(worst, rel=1e-7)
        fresh = schedule(*epochs, order=RR, epoch_contraction=contraction).energy
        every = itertools.product(*[range(e.private + 1) for e in epochs])
        most = max(by_programme(epochs, touches, contraction) for touches in list(every)[1:])
        assert fresh == pytest.approx(most, rel=1e-7)


def test_its_price_is_one_gaussian() -> None:
    event = schedule(
        EpochSteps(private=4, count=3), EpochSteps(private=0, public=4, public_noise=True), z=2.0
    )
    same = Gdp(math.sqrt(event.energy) / 2)
    assert epsilon_of(event, DELTA) == pytest.approx(epsilon_of(same, DELTA), rel=1e-9)
    assert epsilon_of(Repeat(event, 3), DELTA) == pytest.approx(epsilon_of(Repeat(same, 3), DELTA), rel=1e-9)
    np.testing.assert_allclose(event.renyi(np.array([2.0, 9.0])), same.renyi(np.array([2.0, 9.0])))
    claimed = guarantee(event, DELTA, observer="the server")
    assert any("only the last iterate leaves" in clause for clause in claimed.assumptions)
    verify(claimed)


WRONG: dict[str, tuple[Any, str]] = {
    "nothing private": (lambda: schedule(EpochSteps(private=0, public=3)), "the private steps must be"),
    "no epoch": (schedule, "the number of epochs"),
    "too many": (lambda: schedule(*[EpochSteps(private=1, count=2**16)] * 2), "the number of epochs must be"),
    "no step": (lambda: EpochSteps(private=0), "the steps of an epoch"),
    "a word": (lambda: EpochSteps(private=1, placement="epoch-end"), "placement must be a Placement"),  # type: ignore[arg-type]
    "not convex": (lambda: schedule(EpochSteps(private=1), convex=False), "a convex loss"),
    "clipped": (lambda: schedule(EpochSteps(private=1), clip_safe=False), "clip_safe=True"),
    "long steps": (lambda: schedule(EpochSteps(private=1), step_times_smoothness=2.1), "step_size <= 2"),
    "no facts": (lambda: IterationSchedule(1.0, (EpochSteps(private=1),)), "needs step_times_smoothness"),
    "a secret number": (
        lambda: schedule(EpochSteps(private=1), neighbours=Neighbours(Relation.ADD_REMOVE)),
        "add-remove",
    ),
}


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_bad_schedules(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()
