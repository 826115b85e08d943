"""The algorithms by the names that people type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

from tacit.errors import ParameterError, check_choice
from tacit.federation import Statistic
from tacit.learning.algorithms.accelerated import AcceleratedNoisyMinibatchSGD
from tacit.learning.algorithms.adaped import AdaPeD
from tacit.learning.algorithms.base import Algorithm, Method
from tacit.learning.algorithms.ce_psgm import NoisyLocalStorm
from tacit.learning.algorithms.clipped_ac_sa import ClippedACSA
from tacit.learning.algorithms.clipped_prox_sgd import ClippedProximalSGD
from tacit.learning.algorithms.clipped_sgd import ClippedSGD
from tacit.learning.algorithms.clipped_subgradient import ClippedSubgradient
from tacit.learning.algorithms.diff2 import NoisyDiff2
from tacit.learning.algorithms.fed_avg import FedAvg
from tacit.learning.algorithms.fed_spider import NoisyFedSpider
from tacit.learning.algorithms.ftrl import NoisyFTRL
from tacit.learning.algorithms.lan import LanAcceleratedSGD
from tacit.learning.algorithms.lipschitz import LipschitzSGD
from tacit.learning.algorithms.local import NoisyLocalSGD
from tacit.learning.algorithms.localized import LocalizedSubgradient, PhasedLocalizedSubgradient
from tacit.learning.algorithms.minibatch import NoisyMinibatchSGD
from tacit.learning.algorithms.mirror_descent import PublicMirrorDescent
from tacit.learning.algorithms.multistage import MultiStageAcceleratedNoisyMinibatchSGD
from tacit.learning.algorithms.options import read_option
from tacit.learning.algorithms.perturbation import ObjectivePerturbation, OutputPerturbation
from tacit.learning.algorithms.phases import PhasedAcceleratedSGD
from tacit.learning.algorithms.preconditioned import NoisySufficientStatistics, PreconditionedNoisyGD
from tacit.learning.algorithms.prox_sgd import NoisyProximalSGD
from tacit.learning.algorithms.prox_svrg import NoisyProximalPLSVRG, NoisyProximalSVRG
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
from tacit.learning.gradient_norms import NORMS, GradientNorms
from tacit.learning.objective import Objective

__all__ = ["ALGORITHMS", "algorithm_name", "make_algorithm", "statistics_of"]

_METHODS: tuple[type[Method], ...] = (
    NoisyMinibatchSGD,
    AcceleratedNoisyMinibatchSGD,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyLocalSGD,
    NoisySignSGD,
    WhitenedNoisyGD,
    PreconditionedNoisyGD,
    NoisySufficientStatistics,
    OutputPerturbation,
    ObjectivePerturbation,
    NoisyFTRL,
    LipschitzSGD,
    LanAcceleratedSGD,
    PhasedAcceleratedSGD,
    NoisySpider,
    NoisyFedSpider,
    NoisyDiff2,
    NoisyStorm,
    NoisyLocalStorm,
    NoisyProximalSGD,
    NoisyProximalSVRG,
    NoisyProximalPLSVRG,
    SemiPrivateSGD,
    PrivateShuffle,
    PrivatePublicShuffle,
    PublicPrivateShuffle,
    InterleavedShuffle,
    CompressedShuffledSGD,
    SelfSampledSGD,
    PublicMirrorDescent,
    SemiLocalSGD,
    ClippedACSA,
    ClippedSGD,
    ClippedProximalSGD,
    ClippedSubgradient,
    LocalizedSubgradient,
    PhasedLocalizedSubgradient,
    FedAvg,
    AdaPeD,
)

_Entry = TypeVar("_Entry")


def _once(pairs: Iterable[tuple[str, _Entry]], what: str) -> dict[str, _Entry]:
    """Return what names stand for; one name for two things is a mistake of whoever wrote the second."""
    found: dict[str, _Entry] = {}
    for name, entry in pairs:
        if found.setdefault(name, entry) is not entry:
            raise ParameterError(f"{what} must have names of their own, got {name!r} for two of them.")
    return found


ALGORITHMS: dict[str, type[Method]] = _once(
    ((str(kind.__struct_config__.tag), kind) for kind in _METHODS), "algorithms"
)
"""Algorithms by the names that people type; all that takes or shows such a name reads this one list."""

_STATISTICS = _once(
    [
        *(pair for kind in _METHODS if kind.unit is None for pair in kind.statistics.items()),
        (NORMS, GradientNorms.of),
    ],
    "statistics",
)


def statistics_of(objective: Objective) -> dict[str, Statistic]:
    """Return everything that an algorithm of the library may ask of a record, by name."""
    return {name: cast(Statistic, make(objective)) for name, make in _STATISTICS.items()}


def make_algorithm(name: str, **options: object) -> Algorithm:
    """Return an algorithm by the name that people type.

    Args:
        name: One of `ALGORITHMS`.
        options: Its attributes, such as `rounds`, as Python or TOML say them (`batch=8` is `Fixed(size=8)`);
            None leaves one at the algorithm's own default.

    Raises:
        UnknownNameError: No such algorithm; the nearest name is suggested.
        ParameterError: An option that the algorithm does not have, or a value that is not allowed.

    Example:
        >>> make_algorithm("local", rounds=5, local_steps=None).local_steps
        10
    """
    check_choice("algorithm", name, ALGORITHMS)
    make: Any = ALGORITHMS[name]
    known = make.__struct_fields__
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option not in known:
            raise ParameterError(
                f"{option} is not an option of the algorithm {name!r}, got {value!r}; "
                f"it has {', '.join(known)}."
            )
    made: Algorithm = make(**{option: read_option(make, option, value) for option, value in given.items()})
    return made


def algorithm_name(algorithm: Algorithm) -> str:
    """Return the name in `ALGORITHMS`; for an algorithm of the user's own, that of its class.

    Example:
        >>> algorithm_name(NoisyLocalSGD())
        'local'
    """
    kind: type[object] = type(algorithm)
    return next((name for name, make in ALGORITHMS.items() if make is kind), kind.__name__)
