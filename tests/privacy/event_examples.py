"""One example of every event, by name; a new event type is added here and is then held to all laws."""

from __future__ import annotations

from tacit.privacy import (
    AnyOf,
    ApproximateDP,
    Compose,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Gdp,
    Laplace,
    Neighbours,
    NonPrivate,
    Parallel,
    PureDP,
    Relation,
    Repeat,
    Sample,
    Sampled,
    Zcdp,
)

ADD_REMOVE = Neighbours(Relation.ADD_REMOVE)
ZERO_OUT = Neighbours(Relation.ZERO_OUT)

EVENTS: dict[str, Event] = {
    "Gaussian": Gaussian(1.7),
    "Gaussian, add-remove": Gaussian(1.7, ADD_REMOVE),
    "Gdp": Gdp(0.4),
    "Laplace": Laplace(2.5),
    "Laplace, 3 dimensions": Laplace(2.5, dim=3),
    "PureDP": PureDP(0.3),
    "ApproximateDP": ApproximateDP(0.3, 1e-8),
    "Zcdp": Zcdp(0.07),
    "DiscreteGaussian, coarse": DiscreteGaussian(2.0, 1.0),
    "DiscreteGaussian, fine": DiscreteGaussian(40.0, 12.0),
    "DiscreteLaplace": DiscreteLaplace(3.0, 2),
    "DiscreteLaplace, 2 dimensions": DiscreteLaplace(3.0, 2, dim=2),
    "NonPrivate": NonPrivate(),
    "Compose": Compose((Gaussian(2.0), Laplace(4.0))),
    "Compose of many kinds": Compose((Gaussian(2.0), Sampled(Gaussian(1.0), 0.01), Zcdp(0.01), PureDP(0.1))),
    "Repeat": Repeat(Laplace(5.0), 3),
    "Sampled": Sampled(Gaussian(1.0), 0.1),
    "Sampled, Poisson": Sampled(Gaussian(1.0, ADD_REMOVE), 0.1, Sample.POISSON),
    "Sampled, zero-out": Sampled(Laplace(1.0, 1, ZERO_OUT), 0.2, Sample.POISSON),
    "Sampled, composed": Sampled(Compose((Gaussian(2.0), Laplace(2.0))), 0.1),
    "Sampled, twice": Sampled(Repeat(Sampled(PureDP(1.0), 0.5), 2), 0.5),
    "Sampled, concentrated": Sampled(Zcdp(0.5), 0.05),
    "Parallel": Parallel((Gaussian(2.0), Laplace(2.0))),
    "AnyOf": AnyOf((Gaussian(1.5), PureDP(0.9))),
}
