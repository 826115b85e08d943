"""What one bit of a noisy majority reveals: the exact certificate, and the event that is priced by it."""

from tacit.privacy.certified.event import INDEPENDENT, Certified, private_votes, reached
from tacit.privacy.certified.exact import GRID, exact_worst_case
from tacit.privacy.certified.scan import Worst, monotone_pairs, worst_case, worst_types
from tacit.privacy.certified.tables import Violator
from tacit.privacy.certified.vertices import (
    MOST_TEACHERS,
    Counts,
    Teachers,
    check_vote_level,
    is_monotone,
    number_of_types,
    output_probabilities,
    types,
    vertex_pairs,
)

__all__ = [
    "GRID",
    "INDEPENDENT",
    "MOST_TEACHERS",
    "Certified",
    "Counts",
    "Teachers",
    "Violator",
    "Worst",
    "check_vote_level",
    "exact_worst_case",
    "is_monotone",
    "monotone_pairs",
    "number_of_types",
    "output_probabilities",
    "private_votes",
    "reached",
    "types",
    "vertex_pairs",
    "worst_case",
    "worst_types",
]
