"""Attacks: what an adversary can really find out, beside what is claimed."""

from tacit.audits.attack import Audit, Guesses, Run, Target, audit, claimed_power, power
from tacit.audits.bandits import reward_target
from tacit.audits.bounds import (
    LEAST_RUNS,
    check_confidence,
    check_scores,
    clopper_pearson,
    epsilon_from_guesses,
    epsilon_lower_bound,
    most_share,
    tails,
)
from tacit.audits.frequencies import coalition_target, oracle_target
from tacit.audits.means import audit_mean, mean_target
from tacit.audits.mechanisms import MECHANISMS, mechanism_target
from tacit.audits.randomizers import audit_randomizer, randomizer_target
from tacit.audits.sums import sum_target
from tacit.audits.training import audit_training, canary_settings, training_target

__all__ = [
    "LEAST_RUNS",
    "MECHANISMS",
    "Audit",
    "Guesses",
    "Run",
    "Target",
    "audit",
    "audit_mean",
    "audit_randomizer",
    "audit_training",
    "canary_settings",
    "check_confidence",
    "check_scores",
    "claimed_power",
    "clopper_pearson",
    "coalition_target",
    "epsilon_from_guesses",
    "epsilon_lower_bound",
    "mean_target",
    "mechanism_target",
    "most_share",
    "oracle_target",
    "power",
    "randomizer_target",
    "reward_target",
    "sum_target",
    "tails",
    "training_target",
]
