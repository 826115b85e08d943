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
from tacit.learning.kinks import Absolute, Hinge, Kinked, Quantile, Smoothed
from tacit.learning.linear import ConvexGradient, LinearObjective
from tacit.learning.losses import Huber, Logistic, Loss, Multinomial, PoissonLoss, Squared
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
    "Absolute",
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
    "Kinked",
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
    "PoissonLoss",
    "PreconditionedNoisyGD",
    "Prediction",
    "Problem",
    "Protection",
    "PublicSample",
    "Quantile",
    "RecordDifference",
    "RecordGradient",
    "Records",
    "Scaling",
    "Settings",
    "Smoothed",
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
