"""The algorithms: a loop over `ask` each, with what it asks and how far it gets."""

from tacit.learning.algorithms.accelerated import AcceleratedNoisyMinibatchSGD
from tacit.learning.algorithms.adaped import AdaPeD
from tacit.learning.algorithms.base import (
    Algorithm,
    Bounded,
    Convexity,
    Follow,
    Kinds,
    Method,
    Problem,
    needs_delta,
    traits_of,
)
from tacit.learning.algorithms.ce_psgm import NoisyLocalStorm
from tacit.learning.algorithms.clipped_ac_sa import ClippedACSA
from tacit.learning.algorithms.clipped_prox_sgd import ClippedProximalSGD
from tacit.learning.algorithms.clipped_sgd import ClippedSGD
from tacit.learning.algorithms.clipped_subgradient import ClippedSubgradient
from tacit.learning.algorithms.diff2 import NoisyDiff2
from tacit.learning.algorithms.fed_avg import FedAvg
from tacit.learning.algorithms.fed_spider import NoisyFedSpider
from tacit.learning.algorithms.ftrl import NoisyFTRL
from tacit.learning.algorithms.information import AlgorithmInfo, RoundInfo, about
from tacit.learning.algorithms.lan import LanAcceleratedSGD
from tacit.learning.algorithms.lipschitz import LipschitzSGD
from tacit.learning.algorithms.local import NoisyLocalSGD
from tacit.learning.algorithms.localized import LocalizedSubgradient, PhasedLocalizedSubgradient
from tacit.learning.algorithms.minibatch import NoisyMinibatchSGD
from tacit.learning.algorithms.mirror_descent import PublicMirrorDescent
from tacit.learning.algorithms.multistage import MultiStageAcceleratedNoisyMinibatchSGD
from tacit.learning.algorithms.perturbation import ObjectivePerturbation, OutputPerturbation
from tacit.learning.algorithms.phases import PhasedAcceleratedSGD
from tacit.learning.algorithms.preconditioned import NoisySufficientStatistics, PreconditionedNoisyGD
from tacit.learning.algorithms.protection import Protection
from tacit.learning.algorithms.prox_sgd import NoisyProximalSGD
from tacit.learning.algorithms.prox_svrg import NoisyProximalPLSVRG, NoisyProximalSVRG
from tacit.learning.algorithms.registry import (
    ALGORITHMS,
    algorithm_name,
    make_algorithm,
    statistics_of,
)
from tacit.learning.algorithms.semi_local import SemiLocalSGD
from tacit.learning.algorithms.semi_sgd import SemiPrivateSGD
from tacit.learning.algorithms.shuffle import (
    InterleavedShuffle,
    PrivatePublicShuffle,
    PrivateShuffle,
    PublicPrivateShuffle,
)
from tacit.learning.algorithms.shuffled_reports import CompressedShuffledSGD, SelfSampledSGD
from tacit.learning.algorithms.sign_vote import NoisySignSGD
from tacit.learning.algorithms.spider import NoisySpider
from tacit.learning.algorithms.storm import NoisyStorm
from tacit.learning.algorithms.whitened import WhitenedNoisyGD

__all__ = [
    "ALGORITHMS",
    "AcceleratedNoisyMinibatchSGD",
    "AdaPeD",
    "Algorithm",
    "AlgorithmInfo",
    "Bounded",
    "ClippedACSA",
    "ClippedProximalSGD",
    "ClippedSGD",
    "ClippedSubgradient",
    "CompressedShuffledSGD",
    "Convexity",
    "FedAvg",
    "Follow",
    "InterleavedShuffle",
    "Kinds",
    "LanAcceleratedSGD",
    "LipschitzSGD",
    "LocalizedSubgradient",
    "Method",
    "MultiStageAcceleratedNoisyMinibatchSGD",
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
    "needs_delta",
    "statistics_of",
    "traits_of",
]
