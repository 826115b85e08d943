"""Fair models: notions and their violations, ERMI, and training that trades accuracy for fairness."""

from tacit.fairness.ermi import (
    ErmiBounds,
    conditional_ermi,
    ermi,
    ermi_bounds,
    ermi_dual_value,
    ermi_optimal_dual,
    joint_table,
    joint_tables,
    plug_in_bias,
)
from tacit.fairness.fermi import FairProblem, Fitted, StepSizes, fermi, fermi_exact
from tacit.fairness.groups import Groups
from tacit.fairness.metrics import (
    GroupRates,
    equal_opportunity_violation,
    equalized_odds_violation,
    group_rates,
    parity_violation,
    violation,
)
from tacit.fairness.notions import Conditions, Fairness
from tacit.fairness.penalty import ErmiPenalty, Membership
from tacit.fairness.scores import LinearScores, Scores

__all__ = [
    "Conditions",
    "ErmiBounds",
    "ErmiPenalty",
    "FairProblem",
    "Fairness",
    "Fitted",
    "GroupRates",
    "Groups",
    "LinearScores",
    "Membership",
    "Scores",
    "StepSizes",
    "conditional_ermi",
    "equal_opportunity_violation",
    "equalized_odds_violation",
    "ermi",
    "ermi_bounds",
    "ermi_dual_value",
    "ermi_optimal_dual",
    "fermi",
    "fermi_exact",
    "group_rates",
    "joint_table",
    "joint_tables",
    "parity_violation",
    "plug_in_bias",
    "violation",
]
