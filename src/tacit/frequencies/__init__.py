"""How often values are held: local randomizers, unbiased estimates, intervals, heavy hitters."""

from tacit.frequencies.bands import Band
from tacit.frequencies.binary_hadamard import BinaryHadamard
from tacit.frequencies.central import NoisyHistogram
from tacit.frequencies.choice import MECHANISMS, MechanismChoice, choose_mechanism, make_oracle
from tacit.frequencies.counts import Counts
from tacit.frequencies.hadamard import HadamardResponse
from tacit.frequencies.heavy import HeavyHitters, detectable_frequency, heavy_hitters, heavy_of
from tacit.frequencies.kary import KaryResponse
from tacit.frequencies.oracle import FrequencyOracle
from tacit.frequencies.projections import PROJECTIONS, project
from tacit.frequencies.query import (
    MOST_DRAWS,
    Frequencies,
    FrequenciesQuery,
    estimate_frequencies,
    observer_of_frequencies,
)
from tacit.frequencies.sets import SubsetSelection, UnaryEncoding

__all__ = [
    "MECHANISMS",
    "MOST_DRAWS",
    "PROJECTIONS",
    "Band",
    "BinaryHadamard",
    "Counts",
    "Frequencies",
    "FrequenciesQuery",
    "FrequencyOracle",
    "HadamardResponse",
    "HeavyHitters",
    "KaryResponse",
    "MechanismChoice",
    "NoisyHistogram",
    "SubsetSelection",
    "UnaryEncoding",
    "choose_mechanism",
    "detectable_frequency",
    "estimate_frequencies",
    "heavy_hitters",
    "heavy_of",
    "make_oracle",
    "observer_of_frequencies",
    "project",
]
