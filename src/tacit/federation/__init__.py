"""Plans, silos and rounds; the same algorithm and the same result, whatever carries the messages."""

from tacit.federation.batches import Batch, Disjoint, Fixed, Full, Poisson
from tacit.federation.inprocess import InProcess, SiloDownError, Traffic
from tacit.federation.participation import Everybody, Participation, RandomSubset, Scheduled
from tacit.federation.plan import Plan, Schedule, Step
from tacit.federation.query import Ask, FusedStatistic, Query, Statistic, Units
from tacit.federation.server import Server, Weights
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
    "Schedule",
    "Scheduled",
    "Server",
    "Silo",
    "SiloDownError",
    "Statistic",
    "Step",
    "Traffic",
    "Units",
    "Weights",
    "open_answer",
]
