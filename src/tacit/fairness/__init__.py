"""Fair models: notions and their violations, ERMI, and training that trades accuracy for fairness."""

from tacit.fairness.attributes import attribute_names
from tacit.fairness.corruption import force_attributes, hide_attributes
from tacit.fairness.covariance import CovariancePenalty
from tacit.fairness.declared import declared_groups
from tacit.fairness.dual import ErmiDual
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
from tacit.fairness.estimator import FairLogisticRegression
from tacit.fairness.fermi import FairProblem, Fitted, StepSizes, fermi, fermi_exact
from tacit.fairness.frames import MetricTable, metric_frame, metric_table
from tacit.fairness.group_cuts import GroupCuts, least_error_cuts
from tacit.fairness.groups import Groups
from tacit.fairness.iterates import random_round
from tacit.fairness.metrics import (
    GroupRates,
    equal_opportunity_violation,
    equalized_odds_violation,
    group_rates,
    parity_violation,
    violation,
)
from tacit.fairness.mixtures import CutModel, Mixture, fair_mixture, naive_majority_mixture
from tacit.fairness.mutual_information import MutualInformationDual, MutualInformationPenalty
from tacit.fairness.noisy_sgda import NoisySGDA, Saddle
from tacit.fairness.notions import Conditions, Fairness
from tacit.fairness.penalties import PenaltyName, penalty_of
from tacit.fairness.penalty import Climber, ErmiPenalty, Membership, Penalty, Still
from tacit.fairness.plug_in import PlugInPenalty
from tacit.fairness.private_estimator import PrivateFairLogisticRegression
from tacit.fairness.private_fermi import FairPoint, PrivateFermi, PublicRecords, Shares
from tacit.fairness.private_lagrangian import PrivateFairLagrangian
from tacit.fairness.private_tables import DPEqualizedOddsPostprocessor, equalized_odds_mixture
from tacit.fairness.private_training import PrivateRun, PrivateTraining
from tacit.fairness.public_start import default_step, plain_fit
from tacit.fairness.reductions import exponentiated_gradient, grid_search, threshold_optimizer
from tacit.fairness.scores import LinearScores, Scores
from tacit.fairness.search import FoundWeight, least_weight
from tacit.fairness.standard import Standard
from tacit.fairness.summary import FairnessSummary, GroupSummary, ViolationSummary, summarise
from tacit.fairness.thresholds import Cut, best_cut
from tacit.fairness.torch_scores import TorchScores, network_scores
from tacit.fairness.tradeoffs import pareto, tradeoff
from tacit.fairness.training import Training
from tacit.fairness.units import FairUnits

__all__ = [
    "Climber",
    "Conditions",
    "CovariancePenalty",
    "Cut",
    "CutModel",
    "DPEqualizedOddsPostprocessor",
    "ErmiBounds",
    "ErmiDual",
    "ErmiPenalty",
    "FairLogisticRegression",
    "FairPoint",
    "FairProblem",
    "FairUnits",
    "Fairness",
    "FairnessSummary",
    "Fitted",
    "FoundWeight",
    "GroupCuts",
    "GroupRates",
    "GroupSummary",
    "Groups",
    "LinearScores",
    "Membership",
    "MetricTable",
    "Mixture",
    "MutualInformationDual",
    "MutualInformationPenalty",
    "NoisySGDA",
    "Penalty",
    "PenaltyName",
    "PlugInPenalty",
    "PrivateFairLagrangian",
    "PrivateFairLogisticRegression",
    "PrivateFermi",
    "PrivateRun",
    "PrivateTraining",
    "PublicRecords",
    "Saddle",
    "Scores",
    "Shares",
    "Standard",
    "StepSizes",
    "Still",
    "TorchScores",
    "Training",
    "ViolationSummary",
    "attribute_names",
    "best_cut",
    "conditional_ermi",
    "declared_groups",
    "default_step",
    "equal_opportunity_violation",
    "equalized_odds_mixture",
    "equalized_odds_violation",
    "ermi",
    "ermi_bounds",
    "ermi_dual_value",
    "ermi_optimal_dual",
    "exponentiated_gradient",
    "fair_mixture",
    "fermi",
    "fermi_exact",
    "force_attributes",
    "grid_search",
    "group_rates",
    "hide_attributes",
    "joint_table",
    "joint_tables",
    "least_error_cuts",
    "least_weight",
    "metric_frame",
    "metric_table",
    "naive_majority_mixture",
    "network_scores",
    "pareto",
    "parity_violation",
    "penalty_of",
    "plain_fit",
    "plug_in_bias",
    "random_round",
    "summarise",
    "threshold_optimizer",
    "tradeoff",
    "violation",
]
