"""Personal models: every party keeps its own, and parties share what is common, if they wish privately."""

from tacit.learning.personal.accounting import View, adaped_event
from tacit.learning.personal.bayesian import PersonalFit, PersonalizedMAP, PriorName
from tacit.learning.personal.distillation import Direction, Distillation, Predictive
from tacit.learning.personal.priors import DistillationPrior, GaussianPrior, LaplacePrior, Prior

__all__ = [
    "Direction",
    "Distillation",
    "DistillationPrior",
    "GaussianPrior",
    "LaplacePrior",
    "PersonalFit",
    "PersonalizedMAP",
    "Predictive",
    "Prior",
    "PriorName",
    "View",
    "adaped_event",
]
