"""Private optimisers, and scikit-learn style estimators on top of them."""

from tacit.learning.algorithms import (
    ALGORITHMS,
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    AlgorithmInfo,
    LanAcceleratedSGD,
    LipschitzSGD,
    Method,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyFTRL,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    NoisySignSGD,
    NoisySufficientStatistics,
    ObjectivePerturbation,
    OutputPerturbation,
    PhasedAcceleratedSGD,
    PreconditionedNoisyGD,
    Problem,
    Protection,
    WhitenedNoisyGD,
    about,
    algorithm_name,
    make_algorithm,
)
from tacit.learning.difference import RecordDifference, difference_radius
from tacit.learning.distance import DistanceObjective
from tacit.learning.estimators import FederatedLinearRegression, FederatedLogisticRegression
from tacit.learning.linear import ConvexGradient, LinearObjective
from tacit.learning.losses import Hinge, Huber, Logistic, Loss, Multinomial, Squared
from tacit.learning.model import FeatureMap, LinearModel, Scaling
from tacit.learning.objective import Grouped, Objective, PerPerson, RecordGradient, Records
from tacit.learning.prediction import Prediction, predict
from tacit.learning.public import PublicSample
from tacit.learning.settings import NOISES, Settings
from tacit.learning.stream import PanPrivateStream
from tacit.learning.training import Trained, in_process, make_silos, train

__all__ = [
    "ALGORITHMS",
    "NOISES",
    "AcceleratedNoisyMinibatchSGD",
    "Algorithm",
    "AlgorithmInfo",
    "ConvexGradient",
    "DistanceObjective",
    "FeatureMap",
    "FederatedLinearRegression",
    "FederatedLogisticRegression",
    "Grouped",
    "Hinge",
    "Huber",
    "LanAcceleratedSGD",
    "LinearModel",
    "LinearObjective",
    "LipschitzSGD",
    "Logistic",
    "Loss",
    "Method",
    "MultiStageAcceleratedNoisyMinibatchSGD",
    "Multinomial",
    "NoisyFTRL",
    "NoisyLocalSGD",
    "NoisyMinibatchSGD",
    "NoisySignSGD",
    "NoisySufficientStatistics",
    "Objective",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PanPrivateStream",
    "PerPerson",
    "PhasedAcceleratedSGD",
    "PreconditionedNoisyGD",
    "Prediction",
    "Problem",
    "Protection",
    "PublicSample",
    "RecordDifference",
    "RecordGradient",
    "Records",
    "Scaling",
    "Settings",
    "Squared",
    "Trained",
    "WhitenedNoisyGD",
    "about",
    "algorithm_name",
    "difference_radius",
    "in_process",
    "make_algorithm",
    "make_silos",
    "predict",
    "train",
]
