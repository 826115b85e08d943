"""Shuffled gradient methods: one record a step, in an order, with what is hidden in between."""

from tacit.learning.shuffled.bounds import (
    RiskBound,
    SurrogateEpoch,
    largest_step_size,
    order_dissimilarity,
    surrogate_bound,
    surrogate_epochs,
)
from tacit.learning.shuffled.engine import (
    ShuffledGradient,
    noisy_gradient_descent,
    noisy_sampled_descent,
)
from tacit.learning.shuffled.kernels import RecordSteps, ShuffledObjective
from tacit.learning.shuffled.means import MeanInstance, mean_risk
from tacit.learning.shuffled.schedules import ShuffledMethod, ShuffledRun

__all__ = [
    "MeanInstance",
    "RecordSteps",
    "RiskBound",
    "ShuffledGradient",
    "ShuffledMethod",
    "ShuffledObjective",
    "ShuffledRun",
    "SurrogateEpoch",
    "largest_step_size",
    "mean_risk",
    "noisy_gradient_descent",
    "noisy_sampled_descent",
    "order_dissimilarity",
    "surrogate_bound",
    "surrogate_epochs",
]
