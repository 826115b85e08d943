"""Private optimisers, and scikit-learn style estimators on top of them."""

from tacit.learning.algorithms import (
    ALGORITHMS,
    AcceleratedNoisyMinibatchSGD,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    algorithm_name,
    make_algorithm,
)
from tacit.learning.estimators import FederatedLinearRegression, FederatedLogisticRegression
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Hinge, Huber, Logistic, Loss, Multinomial, Squared
from tacit.learning.model import FeatureMap, LinearModel
from tacit.learning.objective import Grouped, Objective, PersonGradient, RecordGradient, Records
from tacit.learning.paper import PaperParameters, PaperProblem, paper_parameters
from tacit.learning.problem import Algorithm, Problem
from tacit.learning.settings import NOISES, Settings
from tacit.learning.sign_vote import NoisySignSGD
from tacit.learning.training import Trained, make_silos, train

__all__ = [
    "ALGORITHMS",
    "NOISES",
    "AcceleratedNoisyMinibatchSGD",
    "Algorithm",
    "FeatureMap",
    "FederatedLinearRegression",
    "FederatedLogisticRegression",
    "Grouped",
    "Hinge",
    "Huber",
    "LinearModel",
    "LinearObjective",
    "Logistic",
    "Loss",
    "MultiStageAcceleratedNoisyMinibatchSGD",
    "Multinomial",
    "NoisyLocalSGD",
    "NoisyMinibatchSGD",
    "NoisySignSGD",
    "Objective",
    "PaperParameters",
    "PaperProblem",
    "PersonGradient",
    "Problem",
    "RecordGradient",
    "Records",
    "Settings",
    "Squared",
    "Trained",
    "algorithm_name",
    "make_algorithm",
    "make_silos",
    "paper_parameters",
    "train",
]
