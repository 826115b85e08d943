"""Which mechanism: predicted error, bits and cost of every candidate, and measurements of them."""

from tacit.compression import advised_transform
from tacit.means.problem import MeanProblem, Trust
from tacit.means.proposals import ComputeCost
from tacit.means.rotated import clipping_bias
from tacit.planning.candidate import Candidate, Kind
from tacit.planning.comparison import ErrorOrder, Reference, lower_bounds, references
from tacit.planning.heavy import HeavyPlan, plan_heavy_tailed
from tacit.planning.hidden import HiddenPlan, HiddenProblem, plan_hidden
from tacit.planning.mean import PlanProgress, plan_mean
from tacit.planning.public import PublicOption, plan_public_mean
from tacit.planning.rules import break_even_correlation
from tacit.planning.sco import Interactivity, ScoMethod, ScoProblem, sco_plan
from tacit.planning.shuffled_sgd import ReportPlan, plan_reports, report_risk
from tacit.planning.simulate import Measured, measure, synthetic_rows
from tacit.planning.train import TrainingProblem, plan_training

__all__ = [
    "Candidate",
    "ComputeCost",
    "ErrorOrder",
    "HeavyPlan",
    "HiddenPlan",
    "HiddenProblem",
    "Interactivity",
    "Kind",
    "MeanProblem",
    "Measured",
    "PlanProgress",
    "PublicOption",
    "Reference",
    "ReportPlan",
    "ScoMethod",
    "ScoProblem",
    "TrainingProblem",
    "Trust",
    "advised_transform",
    "break_even_correlation",
    "clipping_bias",
    "lower_bounds",
    "measure",
    "plan_heavy_tailed",
    "plan_hidden",
    "plan_mean",
    "plan_public_mean",
    "plan_reports",
    "plan_training",
    "references",
    "report_risk",
    "sco_plan",
    "synthetic_rows",
]
