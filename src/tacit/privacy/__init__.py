"""Numbers only, never data: events, curves, calibration, guarantees, the ledger."""

from tacit.privacy.binomial import Binomial, BinomialAlone, BinomialSum, calibrate_binomial_sum
from tacit.privacy.budget import Budget, PrivacyBudget, ZcdpBudget
from tacit.privacy.calibration import calibrate, meets
from tacit.privacy.certified import Certified
from tacit.privacy.composition import basic_composition, general_composition
from tacit.privacy.correlated_rounds import correlated
from tacit.privacy.curves import Curve
from tacit.privacy.divergences import hockey_stick, renyi_divergence
from tacit.privacy.event_json import event_from_builtins, event_from_json, event_to_json
from tacit.privacy.events import (
    Aligned,
    AnyOf,
    ApproximateDP,
    Compose,
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteLaplace,
    Event,
    Gaussian,
    Gdp,
    Laplace,
    Leaf,
    NonPrivate,
    ObjectivePerturbed,
    Parallel,
    PureDP,
    Repeat,
    Replaced,
    Sample,
    Sampled,
    Zcdp,
    assumptions_of,
    neighbours_of,
    squared_level,
)
from tacit.privacy.guarantee import CONTINUOUS, Guarantee, guarantee, verify
from tacit.privacy.iteration import Iteration, Order, Placement, Release, check_contraction
from tacit.privacy.neighbours import Neighbours, Part, Relation, TrustModel, Unit
from tacit.privacy.pricing import curve_of, delta_of, epsilon_of, pure_epsilon_of, renyi_of, rho_of
from tacit.privacy.renyi import ORDERS, Renyi, renyi_to_delta, renyi_to_epsilon
from tacit.privacy.shuffling import Shuffled, ShuffledGaussian, clones_level
from tacit.privacy.silo_level import calibrate_user_level, whole_silo_budget
from tacit.privacy.slopes import Slopes, gamma_epsilon, gamma_multiplier
from tacit.privacy.work import MOST_WORK, VERIFY_WORK, work_limit, work_of

__all__ = [
    "CONTINUOUS",
    "MOST_WORK",
    "ORDERS",
    "VERIFY_WORK",
    "Aligned",
    "AnyOf",
    "ApproximateDP",
    "Binomial",
    "BinomialAlone",
    "BinomialSum",
    "Budget",
    "Certified",
    "Compose",
    "Curve",
    "DiscreteGaussian",
    "DiscreteGaussianSum",
    "DiscreteLaplace",
    "Event",
    "Gaussian",
    "Gdp",
    "Guarantee",
    "Iteration",
    "Laplace",
    "Leaf",
    "Neighbours",
    "NonPrivate",
    "ObjectivePerturbed",
    "Order",
    "Parallel",
    "Part",
    "Placement",
    "PrivacyBudget",
    "PureDP",
    "Relation",
    "Release",
    "Renyi",
    "Repeat",
    "Replaced",
    "Sample",
    "Sampled",
    "Shuffled",
    "ShuffledGaussian",
    "Slopes",
    "TrustModel",
    "Unit",
    "Zcdp",
    "ZcdpBudget",
    "assumptions_of",
    "basic_composition",
    "calibrate",
    "calibrate_binomial_sum",
    "calibrate_user_level",
    "check_contraction",
    "clones_level",
    "correlated",
    "curve_of",
    "delta_of",
    "epsilon_of",
    "event_from_builtins",
    "event_from_json",
    "event_to_json",
    "gamma_epsilon",
    "gamma_multiplier",
    "general_composition",
    "guarantee",
    "hockey_stick",
    "meets",
    "neighbours_of",
    "pure_epsilon_of",
    "renyi_divergence",
    "renyi_of",
    "renyi_to_delta",
    "renyi_to_epsilon",
    "rho_of",
    "squared_level",
    "verify",
    "whole_silo_budget",
    "work_limit",
    "work_of",
]
