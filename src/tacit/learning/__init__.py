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
    NoisyFedSpider,
    NoisyFTRL,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    NoisyProximalPLSVRG,
    NoisyProximalSGD,
    NoisyProximalSVRG,
    NoisySignSGD,
    NoisySpider,
    NoisySufficientStatistics,
    ObjectivePerturbation,
    OutputPerturbation,
    PhasedAcceleratedSGD,
    PreconditionedNoisyGD,
    Problem,
    Protection,
    RoundInfo,
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
from tacit.learning.loss_choice import LOSSES, LogLink, LossChoice
from tacit.learning.losses import Huber, Logistic, Loss, Multinomial, PoissonLoss, Squared
from tacit.learning.model import FeatureMap, LinearModel, Scaling
from tacit.learning.networks import NetworkObjective
from tacit.learning.neural import FederatedNeuralClassifier, NetworkModel
from tacit.learning.objective import Grouped, Objective, PerPerson, RecordGradient, Records
from tacit.learning.prediction import Prediction, predict
from tacit.learning.public import PublicSample
from tacit.learning.public_objective import PublicObjective
from tacit.learning.regularization import Regularization, read_domain
from tacit.learning.settings import NOISES, Settings
from tacit.learning.stream import PanPrivateStream
from tacit.learning.training import PartitionSilos, Trained, in_process, make_silos, train

__all__ = [
    "ALGORITHMS",
    "LOSSES",
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
    "FederatedNeuralClassifier",
    "Grouped",
    "Hinge",
    "Huber",
    "Kinked",
    "LanAcceleratedSGD",
    "LinearModel",
    "LinearObjective",
    "LipschitzSGD",
    "LogLink",
    "Logistic",
    "Loss",
    "LossChoice",
    "Method",
    "MultiStageAcceleratedNoisyMinibatchSGD",
    "Multinomial",
    "NetworkModel",
    "NetworkObjective",
    "NoisyFTRL",
    "NoisyFedSpider",
    "NoisyLocalSGD",
    "NoisyMinibatchSGD",
    "NoisyProximalPLSVRG",
    "NoisyProximalSGD",
    "NoisyProximalSVRG",
    "NoisySignSGD",
    "NoisySpider",
    "NoisySufficientStatistics",
    "Objective",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PanPrivateStream",
    "PartitionSilos",
    "PerPerson",
    "PhasedAcceleratedSGD",
    "PoissonLoss",
    "PreconditionedNoisyGD",
    "Prediction",
    "Problem",
    "Protection",
    "PublicObjective",
    "PublicSample",
    "Quantile",
    "RecordDifference",
    "RecordGradient",
    "Records",
    "Regularization",
    "RoundInfo",
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
    "read_domain",
    "train",
]
