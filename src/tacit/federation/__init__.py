"""Plans, silos and rounds; the same algorithm and the same result, whatever carries the messages.

Each name is imported when it is first used: a process that only hands on messages starts in a third of the
time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.federation.answers import open_answer
    from tacit.federation.batches import Batch, Disjoint, Fixed, Full, Poisson
    from tacit.federation.circle import Circle
    from tacit.federation.correlated import CorrelatedStep
    from tacit.federation.crowd import Crowd, CrowdRounds
    from tacit.federation.drawn import DrawnStep
    from tacit.federation.epochs import Descend, Epoch, run_epochs
    from tacit.federation.inprocess import InProcess, InProcessRounds, SiloDownError
    from tacit.federation.least_noise import least_multiplier
    from tacit.federation.participation import Everybody, Participation, RandomSubset, Scheduled
    from tacit.federation.plan import Plan
    from tacit.federation.protocols import Federation, Party, Rounds, Traffic, Weights
    from tacit.federation.query import (
        AcuteStatistic,
        AlignedStatistic,
        AnyStatistic,
        Ask,
        ConvexStatistic,
        FusedStatistic,
        JoinedStatistic,
        OneHotStatistic,
        PublicStatistic,
        Query,
        ScaledStatistic,
        StatefulStatistic,
        Statistic,
        SteppingStatistic,
        Units,
    )
    from tacit.federation.schedule import Schedule
    from tacit.federation.server import Server
    from tacit.federation.shuffler import Batched, Shuffler
    from tacit.federation.silo import Silo
    from tacit.federation.steps import (
        AnyStep,
        EpochKind,
        Group,
        HiddenRun,
        HiddenWalk,
        Kinds,
        Measure,
        Step,
        TurnWalk,
        Walk,
        with_honest,
        with_widths,
    )
    from tacit.federation.sums import OpenSums, Sums

_HOMES = {
    "answers": ("open_answer",),
    "batches": ("Batch", "Disjoint", "Fixed", "Full", "Poisson"),
    "circle": ("Circle",),
    "correlated": ("CorrelatedStep",),
    "crowd": ("Crowd", "CrowdRounds"),
    "drawn": ("DrawnStep",),
    "epochs": ("Descend", "Epoch", "run_epochs"),
    "inprocess": ("InProcess", "InProcessRounds", "SiloDownError"),
    "least_noise": ("least_multiplier",),
    "participation": ("Everybody", "Participation", "RandomSubset", "Scheduled"),
    "plan": ("Plan",),
    "protocols": ("Federation", "Party", "Rounds", "Traffic", "Weights"),
    "query": (
        "AcuteStatistic",
        "AlignedStatistic",
        "AnyStatistic",
        "Ask",
        "ConvexStatistic",
        "FusedStatistic",
        "JoinedStatistic",
        "OneHotStatistic",
        "PublicStatistic",
        "Query",
        "ScaledStatistic",
        "StatefulStatistic",
        "Statistic",
        "SteppingStatistic",
        "Units",
    ),
    "schedule": ("Schedule",),
    "server": ("Server",),
    "shuffler": ("Batched", "Shuffler"),
    "silo": ("Silo",),
    "steps": (
        "AnyStep",
        "EpochKind",
        "Group",
        "HiddenRun",
        "HiddenWalk",
        "Kinds",
        "Measure",
        "Step",
        "TurnWalk",
        "Walk",
        "with_honest",
        "with_widths",
    ),
    "sums": ("OpenSums", "Sums"),
}

__all__ = [
    "AcuteStatistic",
    "AlignedStatistic",
    "AnyStatistic",
    "AnyStep",
    "Ask",
    "Batch",
    "Batched",
    "Circle",
    "ConvexStatistic",
    "CorrelatedStep",
    "Crowd",
    "CrowdRounds",
    "Descend",
    "Disjoint",
    "DrawnStep",
    "Epoch",
    "EpochKind",
    "Everybody",
    "Federation",
    "Fixed",
    "Full",
    "FusedStatistic",
    "Group",
    "HiddenRun",
    "HiddenWalk",
    "InProcess",
    "InProcessRounds",
    "JoinedStatistic",
    "Kinds",
    "Measure",
    "OneHotStatistic",
    "OpenSums",
    "Participation",
    "Party",
    "Plan",
    "Poisson",
    "PublicStatistic",
    "Query",
    "RandomSubset",
    "Rounds",
    "ScaledStatistic",
    "Schedule",
    "Scheduled",
    "Server",
    "Shuffler",
    "Silo",
    "SiloDownError",
    "StatefulStatistic",
    "Statistic",
    "Step",
    "SteppingStatistic",
    "Sums",
    "Traffic",
    "TurnWalk",
    "Units",
    "Walk",
    "Weights",
    "least_multiplier",
    "open_answer",
    "run_epochs",
    "with_honest",
    "with_widths",
]


if not TYPE_CHECKING:  # or a name that is not there would pass for one

    def __getattr__(name: str) -> Any:
        """Import a name of this room from where it is written."""
        for module, names in _HOMES.items():
            if name in names:
                globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
