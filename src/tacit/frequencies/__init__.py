"""How often values are held: local randomizers, unbiased estimates, intervals, heavy hitters."""

from tacit.frequencies.bands import Band
from tacit.frequencies.binary_hadamard import BinaryHadamard
from tacit.frequencies.central import NoisyHistogram
from tacit.frequencies.choice import MECHANISMS, MechanismChoice, choose_mechanism, make_oracle
from tacit.frequencies.counts import Counts
from tacit.frequencies.federated import (
    FederatedHistogram,
    federated_histogram,
    histogram_plan,
)
from tacit.frequencies.hadamard import HadamardResponse
from tacit.frequencies.hashes import hashed_items
from tacit.frequencies.heavy import HeavyHitters, detectable_frequency, heavy_hitters, heavy_of
from tacit.frequencies.items import ITEMS, ItemCounts, Items
from tacit.frequencies.kary import KaryResponse
from tacit.frequencies.keyed import KeyedMechanism, column_sum_test, entropy_bits_of
from tacit.frequencies.keys import (
    KeyLaw,
    flat_heavy_set,
    heavy_key_count,
    key_entropy_floor,
    least_key_entropy,
    minimum_entropy_key,
    two_level_entropy,
)
from tacit.frequencies.level_estimates import LevelEstimate, estimate_levels
from tacit.frequencies.levels import LevelledHadamard, SeparateLevels
from tacit.frequencies.message_files import (
    MOST_BATCHES,
    CountsFile,
    MessagesHead,
    count_files,
    read_counts,
    write_messages,
)
from tacit.frequencies.oracle import FrequencyOracle
from tacit.frequencies.prefix_layout import Layout
from tacit.frequencies.prefix_tree import Found, PrefixTree, find_heavy_hitters
from tacit.frequencies.projections import PROJECTIONS, project
from tacit.frequencies.query import (
    MOST_DRAWS,
    Frequencies,
    FrequenciesQuery,
    estimate_frequencies,
    observer_of_frequencies,
)
from tacit.frequencies.recoverable import CyclicResponse, RecoverableHadamard, RecoverableOracle
from tacit.frequencies.secrets import OneTimeKeys
from tacit.frequencies.sequences import JointKey, SequenceResponse, least_sequence_entropy
from tacit.frequencies.sets import SubsetSelection, UnaryEncoding
from tacit.frequencies.summed import SummedHistogram
from tacit.frequencies.tables import (
    TABLES,
    MarginalTable,
    TableFrequencies,
    TablesQuery,
    consistent_tables,
    estimate_tables,
    places_in_table,
)
from tacit.frequencies.tree_levels import TREE_MECHANISMS, TreeLevel, event_of_levels

__all__ = [
    "ITEMS",
    "MECHANISMS",
    "MOST_BATCHES",
    "MOST_DRAWS",
    "PROJECTIONS",
    "TABLES",
    "TREE_MECHANISMS",
    "Band",
    "BinaryHadamard",
    "Counts",
    "CountsFile",
    "CyclicResponse",
    "FederatedHistogram",
    "Found",
    "Frequencies",
    "FrequenciesQuery",
    "FrequencyOracle",
    "HadamardResponse",
    "HeavyHitters",
    "ItemCounts",
    "Items",
    "JointKey",
    "KaryResponse",
    "KeyLaw",
    "KeyedMechanism",
    "Layout",
    "LevelEstimate",
    "LevelledHadamard",
    "MarginalTable",
    "MechanismChoice",
    "MessagesHead",
    "NoisyHistogram",
    "OneTimeKeys",
    "PrefixTree",
    "RecoverableHadamard",
    "RecoverableOracle",
    "SeparateLevels",
    "SequenceResponse",
    "SubsetSelection",
    "SummedHistogram",
    "TableFrequencies",
    "TablesQuery",
    "TreeLevel",
    "UnaryEncoding",
    "choose_mechanism",
    "column_sum_test",
    "consistent_tables",
    "count_files",
    "detectable_frequency",
    "entropy_bits_of",
    "estimate_frequencies",
    "estimate_levels",
    "estimate_tables",
    "event_of_levels",
    "federated_histogram",
    "find_heavy_hitters",
    "flat_heavy_set",
    "hashed_items",
    "heavy_hitters",
    "heavy_key_count",
    "heavy_of",
    "histogram_plan",
    "key_entropy_floor",
    "least_key_entropy",
    "least_sequence_entropy",
    "make_oracle",
    "minimum_entropy_key",
    "observer_of_frequencies",
    "places_in_table",
    "project",
    "read_counts",
    "two_level_entropy",
    "write_messages",
]
