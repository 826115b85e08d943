"""Plans, silos and rounds; the same algorithm and the same result, whatever carries the messages."""

from tacit.federation.inprocess import InProcess, SiloDownError, Traffic, Weights
from tacit.federation.participation import Everybody, Participation, RandomSubset, Scheduled
from tacit.federation.plan import Batch, Disjoint, Fixed, Full, Plan, Poisson, Step
from tacit.federation.query import Ask, FusedStatistic, Query, Statistic, Units
from tacit.federation.silo import Silo, open_answer

__all__ = [
    "Ask",
    "Batch",
    "Disjoint",
    "Everybody",
    "Fixed",
    "Full",
    "FusedStatistic",
    "InProcess",
    "Participation",
    "Plan",
    "Poisson",
    "Query",
    "RandomSubset",
    "Scheduled",
    "Silo",
    "SiloDownError",
    "Statistic",
    "Step",
    "Traffic",
    "Units",
    "Weights",
    "open_answer",
]
