"""Private optimisers, and scikit-learn style estimators on top of them."""

from tacit.learning.algorithms import (
    ALGORITHMS,
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    Problem,
)
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Hinge, Huber, Logistic, Loss, Multinomial, Squared
from tacit.learning.objective import Grouped, Objective, PersonGradient, RecordGradient, Records
from tacit.learning.training import NOISES, Settings, Trained, make_silos, train

__all__ = [
    "ALGORITHMS",
    "NOISES",
    "AcceleratedNoisyMinibatchSGD",
    "Algorithm",
    "Grouped",
    "Hinge",
    "Huber",
    "LinearObjective",
    "Logistic",
    "Loss",
    "MultiStageAcceleratedNoisyMinibatchSGD",
    "Multinomial",
    "NoisyLocalSGD",
    "NoisyMinibatchSGD",
    "Objective",
    "PersonGradient",
    "Problem",
    "RecordGradient",
    "Records",
    "Settings",
    "Squared",
    "Trained",
    "make_silos",
    "train",
]
