"""Numbers only, never data: events, curves, calibration, guarantees, the ledger."""

from tacit.privacy.budget import Budget, PrivacyBudget, ZcdpBudget
from tacit.privacy.calibration import calibrate, meets
from tacit.privacy.curves import Curve
from tacit.privacy.event_json import event_from_builtins, event_from_json, event_to_json
from tacit.privacy.events import (
    AnyOf,
    ApproximateDP,
    Compose,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Gdp,
    Laplace,
    Leaf,
    NonPrivate,
    Parallel,
    PureDP,
    Repeat,
    Sample,
    Sampled,
    Zcdp,
    neighbours_of,
)
from tacit.privacy.guarantee import Guarantee, guarantee, verify
from tacit.privacy.neighbours import Neighbours, Part, Relation, TrustModel, Unit
from tacit.privacy.pricing import curve_of, delta_of, epsilon_of, pure_epsilon_of, rho_of

__all__ = [
    "AnyOf",
    "ApproximateDP",
    "Budget",
    "Compose",
    "Curve",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Gaussian",
    "Gdp",
    "Guarantee",
    "Laplace",
    "Leaf",
    "Neighbours",
    "NonPrivate",
    "Parallel",
    "Part",
    "PrivacyBudget",
    "PureDP",
    "Relation",
    "Repeat",
    "Sample",
    "Sampled",
    "TrustModel",
    "Unit",
    "Zcdp",
    "ZcdpBudget",
    "calibrate",
    "curve_of",
    "delta_of",
    "epsilon_of",
    "event_from_builtins",
    "event_from_json",
    "event_to_json",
    "guarantee",
    "meets",
    "neighbours_of",
    "pure_epsilon_of",
    "rho_of",
    "verify",
]
