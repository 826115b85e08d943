"""The same noise, priced against a unit that contributes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    GaussianNoise,
    HadamardMean,
    NoNoise,
    RandK,
    Round,
    SignVoteMean,
)
from tacit.privacy import Gaussian, Neighbours, Relation, TrustModel, Unit
from tacit.randomness import simulated

ZERO_OUT = Neighbours(Relation.ZERO_OUT, Unit.PERSON)
PERSON = Neighbours(unit=Unit.PERSON)
MEANS: dict[str, AdditiveMean | RandK | SignVoteMean] = {
    "gaussian": AdditiveMean(dim=8, noise=GaussianNoise(3.0), neighbours=PERSON),
    "grid": AdditiveMean(dim=8, noise=DiscreteGaussianNoise(3.0), neighbours=PERSON),
    "central": AdditiveMean(
        dim=8, noise=DiscreteGaussianNoise(3.0), trust=TrustModel.CENTRAL, neighbours=PERSON
    ),
    "acute": AdditiveMean(dim=8, noise=DiscreteGaussianNoise(3.0), neighbours=PERSON, acute=True),
    "acute, central": AdditiveMean(
        dim=8, noise=DiscreteGaussianNoise(3.0), trust=TrustModel.CENTRAL, neighbours=PERSON, acute=True
    ),
    "shortened": RandK(dim=8, k=4, noise=DiscreteGaussianNoise(3.0), neighbours=PERSON),
    "votes": SignVoteMean(dim=8, noise=GaussianNoise(3.0), neighbours=PERSON),
    "counted votes": SignVoteMean(
        dim=8, noise=DiscreteGaussianNoise(3.0), trust=TrustModel.CENTRAL, neighbours=PERSON
    ),
}


@pytest.mark.parametrize("name", MEANS)
def test_what_leaves_is_the_same(name: str) -> None:
    mean, rows = MEANS[name], np.random.default_rng(1).normal(size=(20, 8))
    alone = mean.against_nothing()
    assert alone.neighbours == ZERO_OUT
    this = Round(n=20, radius=1.0, parties=2)
    first, second = (m.estimate(rows, this, rng=simulated(3, "noise")) for m in (mean, alone))
    np.testing.assert_array_equal(first, second)
    # Priced under zero-out, messages are made for the public n and not for the rows that there are.
    lengths = {
        len(message.to_bytes())
        for k in (0, 1, 20)
        for message in alone.encode(rows[:k], Round(n=9, radius=1.0), party=0, rng=simulated(k, "noise"))
    }
    assert len(lengths) == 1


def test_a_row_counts_once_and_the_flip_of_a_vote_twice() -> None:
    for name, multiplier in (("gaussian", 6.0), ("votes", 6.0)):
        trust = MEANS[name].trust
        assert MEANS[name].against_nothing().event(20, trust) == Gaussian(multiplier, ZERO_OUT)
    # A row at no more than a right angle to others moves a sum by the root of two where it is replaced.
    matrix = AdditiveMean(dim=8, noise=GaussianNoise(3.0), acute=True).against_nothing()
    assert matrix.noise_multiplier == pytest.approx(3 * 2**0.5, rel=1e-12)
    # A record that joins may tip all signs of its silo, as far as one that is exchanged.
    votes = MEANS["counted votes"]
    assert votes.against_nothing().noise_multiplier == votes.noise_multiplier == 3.0


def test_without_noise_and_with_reports() -> None:
    assert AdditiveMean(dim=8, noise=NoNoise()).against_nothing().neighbours.relation is Relation.ZERO_OUT
    with pytest.raises(ParameterError, match="a Poisson batch needs sums of rows, got HadamardMean"):
        HadamardMean(dim=4, local_epsilon=1.0).against_nothing()
