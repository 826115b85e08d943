"""What crosses the door to dp-accounting is priced alike on both sides; the rest is refused."""

from __future__ import annotations

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from tacit.errors import ParameterError
from tacit.privacy import (
    Compose,
    DiscreteGaussian,
    Event,
    Gaussian,
    Gdp,
    Laplace,
    Neighbours,
    NonPrivate,
    Relation,
    Repeat,
    Sample,
    Sampled,
    Zcdp,
    epsilon_of,
)
from tacit.privacy.dp_accounting import to_dp_accounting

AROUND = Neighbours(Relation.ADD_REMOVE)


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(1.3, AROUND),
        Repeat(Laplace(3.0, 1, AROUND), 5),
        Repeat(Sampled(Gaussian(0.9, AROUND), 0.02, Sample.POISSON), 200),
        Compose((Gaussian(2.0, AROUND), Sampled(Gaussian(1.0, AROUND), 0.3, Sample.POISSON))),
    ],
)
def test_both_sides_agree_on_the_price(event: Event) -> None:
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(to_dp_accounting(event))
    assert epsilon_of(event, 1e-6) == pytest.approx(accountant.get_epsilon(1e-6), rel=2e-3)


def test_a_concentrated_release_costs_the_same_by_their_renyi_accountant() -> None:
    accountant = RdpAccountant(
        orders=[1 + k / 50 for k in range(1, 3000)],
        neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    )
    accountant.compose(to_dp_accounting(Zcdp(0.1, AROUND)))
    assert epsilon_of(Zcdp(0.1, AROUND), 1e-6) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


def test_a_release_without_a_claim_stays_one() -> None:
    assert isinstance(to_dp_accounting(NonPrivate(AROUND)), dp_accounting.NonPrivateDpEvent)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Gaussian(1.0), "must have add-remove neighbours, got replace-one"),
        (Laplace(1.0, 4, AROUND), "no event that means what Laplace means"),
        (DiscreteGaussian(20.0, 1.0, AROUND), "no event that means what DiscreteGaussian means"),
    ],
)
def test_what_would_change_its_meaning_is_refused(event: Event, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        to_dp_accounting(event)


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_gaussian_differential_privacy_is_a_gaussian_release(mu: float) -> None:
    assert to_dp_accounting(Gdp(mu, AROUND)) == dp_accounting.GaussianDpEvent(1 / mu)
