"""Private optimisers, and scikit-learn style estimators on top of them.

Each name is imported when it is first used: a process that answers for one silo needs few of them.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.learning.algorithms import (
        ALGORITHMS,
        AcceleratedNoisyMinibatchSGD,
        AdaPeD,
        Algorithm,
        AlgorithmInfo,
        ClippedACSA,
        ClippedProximalSGD,
        ClippedSGD,
        ClippedSubgradient,
        CompressedShuffledSGD,
        FedAvg,
        InterleavedShuffle,
        LanAcceleratedSGD,
        LipschitzSGD,
        LocalizedSubgradient,
        Method,
        MultiStageAcceleratedNoisyMinibatchSGD,
        NoisyDiff2,
        NoisyFedSpider,
        NoisyFTRL,
        NoisyLocalSGD,
        NoisyLocalStorm,
        NoisyMinibatchSGD,
        NoisyProximalPLSVRG,
        NoisyProximalSGD,
        NoisyProximalSVRG,
        NoisySignSGD,
        NoisySpider,
        NoisyStorm,
        NoisySufficientStatistics,
        ObjectivePerturbation,
        OutputPerturbation,
        PhasedAcceleratedSGD,
        PhasedLocalizedSubgradient,
        PreconditionedNoisyGD,
        PrivatePublicShuffle,
        PrivateShuffle,
        Problem,
        Protection,
        PublicMirrorDescent,
        PublicPrivateShuffle,
        RoundInfo,
        SelfSampledSGD,
        SemiLocalSGD,
        SemiPrivateSGD,
        WhitenedNoisyGD,
        about,
        algorithm_name,
        make_algorithm,
    )
    from tacit.learning.architecture import MODELS, Architecture
    from tacit.learning.band_pass import BandPassFeatures
    from tacit.learning.clipping import AutoClip
    from tacit.learning.difference import RecordDifference, difference_radius
    from tacit.learning.distance import DistanceObjective
    from tacit.learning.estimators import FederatedLinearRegression, FederatedLogisticRegression
    from tacit.learning.grid_minimum import GridMinimum, ball_grid
    from tacit.learning.halving import HalvedStep, HalvingTuner
    from tacit.learning.kinks import Absolute, Hinge, Kinked, Quantile, Smoothed
    from tacit.learning.linear import ConvexGradient, LinearObjective
    from tacit.learning.loss_choice import LOSSES, LogLink, LossChoice
    from tacit.learning.losses import Huber, Logistic, Loss, Multinomial, PoissonLoss, Squared
    from tacit.learning.model import FeatureMap, FittedModel, LinearModel, RowMap, Scaling
    from tacit.learning.modules import ModuleObjective, PrivateOptimizer, torch_objective
    from tacit.learning.networks import NetworkObjective
    from tacit.learning.neural import PrivateNeuralClassifier, PrivateNeuralRegressor
    from tacit.learning.neural_task import NetworkModel
    from tacit.learning.objective import Grouped, Objective, PerPerson, RecordGradient, Records
    from tacit.learning.personal import (
        Distillation,
        DistillationPrior,
        GaussianPrior,
        LaplacePrior,
        PersonalFit,
        PersonalizedMAP,
        Predictive,
        Prior,
        adaped_event,
    )
    from tacit.learning.personal_classifier import PersonalClassifier
    from tacit.learning.prediction import Prediction, predict
    from tacit.learning.public import PublicSample
    from tacit.learning.public_objective import PublicObjective
    from tacit.learning.raw_features import RawFeatures
    from tacit.learning.regularization import Regularization, read_domain
    from tacit.learning.scattering import ScatteringFeatures
    from tacit.learning.settings import NOISES, Settings
    from tacit.learning.stream import PanPrivateStream
    from tacit.learning.training import PartitionSilos, Trained, in_process, make_silos, train

_HOMES = {
    "tacit.learning.algorithms": (
        "ALGORITHMS",
        "AcceleratedNoisyMinibatchSGD",
        "AdaPeD",
        "Algorithm",
        "AlgorithmInfo",
        "ClippedACSA",
        "ClippedProximalSGD",
        "ClippedSGD",
        "ClippedSubgradient",
        "CompressedShuffledSGD",
        "FedAvg",
        "InterleavedShuffle",
        "LanAcceleratedSGD",
        "LipschitzSGD",
        "LocalizedSubgradient",
        "Method",
        "MultiStageAcceleratedNoisyMinibatchSGD",
        "NoisyDiff2",
        "NoisyFedSpider",
        "NoisyFTRL",
        "NoisyLocalSGD",
        "NoisyLocalStorm",
        "NoisyMinibatchSGD",
        "NoisyProximalPLSVRG",
        "NoisyProximalSGD",
        "NoisyProximalSVRG",
        "NoisySignSGD",
        "NoisySpider",
        "NoisyStorm",
        "NoisySufficientStatistics",
        "ObjectivePerturbation",
        "OutputPerturbation",
        "PhasedAcceleratedSGD",
        "PhasedLocalizedSubgradient",
        "PreconditionedNoisyGD",
        "PrivatePublicShuffle",
        "PrivateShuffle",
        "Problem",
        "Protection",
        "PublicMirrorDescent",
        "PublicPrivateShuffle",
        "RoundInfo",
        "SelfSampledSGD",
        "SemiLocalSGD",
        "SemiPrivateSGD",
        "WhitenedNoisyGD",
        "about",
        "algorithm_name",
        "make_algorithm",
    ),
    "tacit.learning.architecture": ("MODELS", "Architecture"),
    "tacit.learning.band_pass": ("BandPassFeatures",),
    "tacit.learning.clipping": ("AutoClip",),
    "tacit.learning.difference": ("RecordDifference", "difference_radius"),
    "tacit.learning.distance": ("DistanceObjective",),
    "tacit.learning.estimators": ("FederatedLinearRegression", "FederatedLogisticRegression"),
    "tacit.learning.grid_minimum": ("GridMinimum", "ball_grid"),
    "tacit.learning.halving": ("HalvedStep", "HalvingTuner"),
    "tacit.learning.kinks": ("Absolute", "Hinge", "Kinked", "Quantile", "Smoothed"),
    "tacit.learning.linear": ("ConvexGradient", "LinearObjective"),
    "tacit.learning.loss_choice": ("LOSSES", "LogLink", "LossChoice"),
    "tacit.learning.losses": ("Huber", "Logistic", "Loss", "Multinomial", "PoissonLoss", "Squared"),
    "tacit.learning.model": ("FeatureMap", "FittedModel", "LinearModel", "RowMap", "Scaling"),
    "tacit.learning.modules": ("ModuleObjective", "PrivateOptimizer", "torch_objective"),
    "tacit.learning.networks": ("NetworkObjective",),
    "tacit.learning.neural": ("PrivateNeuralClassifier", "PrivateNeuralRegressor"),
    "tacit.learning.neural_task": ("NetworkModel",),
    "tacit.learning.objective": ("Grouped", "Objective", "PerPerson", "RecordGradient", "Records"),
    "tacit.learning.personal": (
        "Distillation",
        "DistillationPrior",
        "GaussianPrior",
        "LaplacePrior",
        "PersonalFit",
        "PersonalizedMAP",
        "Predictive",
        "Prior",
        "adaped_event",
    ),
    "tacit.learning.personal_classifier": ("PersonalClassifier",),
    "tacit.learning.prediction": ("Prediction", "predict"),
    "tacit.learning.public": ("PublicSample",),
    "tacit.learning.public_objective": ("PublicObjective",),
    "tacit.learning.raw_features": ("RawFeatures",),
    "tacit.learning.regularization": ("Regularization", "read_domain"),
    "tacit.learning.scattering": ("ScatteringFeatures",),
    "tacit.learning.settings": ("NOISES", "Settings"),
    "tacit.learning.stream": ("PanPrivateStream",),
    "tacit.learning.training": ("PartitionSilos", "Trained", "in_process", "make_silos", "train"),
}

__all__ = [
    "ALGORITHMS",
    "LOSSES",
    "MODELS",
    "NOISES",
    "Absolute",
    "AcceleratedNoisyMinibatchSGD",
    "AdaPeD",
    "Algorithm",
    "AlgorithmInfo",
    "Architecture",
    "AutoClip",
    "BandPassFeatures",
    "ClippedACSA",
    "ClippedProximalSGD",
    "ClippedSGD",
    "ClippedSubgradient",
    "CompressedShuffledSGD",
    "ConvexGradient",
    "DistanceObjective",
    "Distillation",
    "DistillationPrior",
    "FeatureMap",
    "FedAvg",
    "FederatedLinearRegression",
    "FederatedLogisticRegression",
    "FittedModel",
    "GaussianPrior",
    "GridMinimum",
    "Grouped",
    "HalvedStep",
    "HalvingTuner",
    "Hinge",
    "Huber",
    "InterleavedShuffle",
    "Kinked",
    "LanAcceleratedSGD",
    "LaplacePrior",
    "LinearModel",
    "LinearObjective",
    "LipschitzSGD",
    "LocalizedSubgradient",
    "LogLink",
    "Logistic",
    "Loss",
    "LossChoice",
    "Method",
    "ModuleObjective",
    "MultiStageAcceleratedNoisyMinibatchSGD",
    "Multinomial",
    "NetworkModel",
    "NetworkObjective",
    "NoisyDiff2",
    "NoisyFTRL",
    "NoisyFedSpider",
    "NoisyLocalSGD",
    "NoisyLocalStorm",
    "NoisyMinibatchSGD",
    "NoisyProximalPLSVRG",
    "NoisyProximalSGD",
    "NoisyProximalSVRG",
    "NoisySignSGD",
    "NoisySpider",
    "NoisyStorm",
    "NoisySufficientStatistics",
    "Objective",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PanPrivateStream",
    "PartitionSilos",
    "PerPerson",
    "PersonalClassifier",
    "PersonalFit",
    "PersonalizedMAP",
    "PhasedAcceleratedSGD",
    "PhasedLocalizedSubgradient",
    "PoissonLoss",
    "PreconditionedNoisyGD",
    "Prediction",
    "Predictive",
    "Prior",
    "PrivateNeuralClassifier",
    "PrivateNeuralRegressor",
    "PrivateOptimizer",
    "PrivatePublicShuffle",
    "PrivateShuffle",
    "Problem",
    "Protection",
    "PublicMirrorDescent",
    "PublicObjective",
    "PublicPrivateShuffle",
    "PublicSample",
    "Quantile",
    "RawFeatures",
    "RecordDifference",
    "RecordGradient",
    "Records",
    "Regularization",
    "RoundInfo",
    "RowMap",
    "Scaling",
    "ScatteringFeatures",
    "SelfSampledSGD",
    "SemiLocalSGD",
    "SemiPrivateSGD",
    "Settings",
    "Smoothed",
    "Squared",
    "Trained",
    "WhitenedNoisyGD",
    "about",
    "adaped_event",
    "algorithm_name",
    "ball_grid",
    "difference_radius",
    "in_process",
    "make_algorithm",
    "make_silos",
    "predict",
    "read_domain",
    "torch_objective",
    "train",
]

# MKL reads this once, before its first product. Else, on some processors, numbers of a record are rounded by
# where in memory it begins, and records of PyTorch modules go one by one.
os.environ.setdefault("MKL_CBWR", "AUTO")


if not TYPE_CHECKING:  # or a name that is not there would pass for one

    def __getattr__(name: str) -> Any:
        """Import a name of this room from where it is written."""
        for module, names in _HOMES.items():
            if name in names:
                globals()[name] = getattr(importlib.import_module(module), name)
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
