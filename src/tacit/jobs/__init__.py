"""Training jobs: from files and a description of their columns to a model, a statement and its report.

Each name is imported when it is first used: what a role of a federation does not need costs it nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.jobs.config import DEMO, SPLITS, JobConfig
    from tacit.jobs.data import JobData, load_job_data
    from tacit.jobs.facts import PublicFacts, facts_of_description
    from tacit.jobs.fair import CURVE_WEIGHTS, FairJob
    from tacit.jobs.fair_result import CurvePoint, FairResult
    from tacit.jobs.job import Job, Ledgers, Progress
    from tacit.jobs.model import MODEL_FILE, TrainedModel, load_model
    from tacit.jobs.personal import PersonalScores
    from tacit.jobs.results import JobResult, PlannedRun, TrustResult
    from tacit.jobs.scores import Bin, ClassScores, NumberScores, Scores, SiloScore, SweepPoint
    from tacit.jobs.terms import FEWEST_UNITS, JobTerms
    from tacit.learning.preparation import PlannedMean

_HOMES = {
    "tacit.jobs.config": ("DEMO", "SPLITS", "JobConfig"),
    "tacit.jobs.data": ("JobData", "load_job_data"),
    "tacit.jobs.facts": ("PublicFacts", "facts_of_description"),
    "tacit.jobs.fair": ("CURVE_WEIGHTS", "FairJob"),
    "tacit.jobs.fair_result": ("CurvePoint", "FairResult"),
    "tacit.jobs.job": ("Job", "Ledgers", "Progress"),
    "tacit.jobs.model": ("MODEL_FILE", "TrainedModel", "load_model"),
    "tacit.jobs.personal": ("PersonalScores",),
    "tacit.jobs.results": ("JobResult", "PlannedRun", "TrustResult"),
    "tacit.jobs.scores": ("Bin", "ClassScores", "NumberScores", "Scores", "SiloScore", "SweepPoint"),
    "tacit.jobs.terms": ("FEWEST_UNITS", "JobTerms"),
    "tacit.learning.preparation": ("PlannedMean",),
}

__all__ = [
    "CURVE_WEIGHTS",
    "DEMO",
    "FEWEST_UNITS",
    "MODEL_FILE",
    "SPLITS",
    "Bin",
    "ClassScores",
    "CurvePoint",
    "FairJob",
    "FairResult",
    "Job",
    "JobConfig",
    "JobData",
    "JobResult",
    "JobTerms",
    "Ledgers",
    "NumberScores",
    "PersonalScores",
    "PlannedMean",
    "PlannedRun",
    "Progress",
    "PublicFacts",
    "Scores",
    "SiloScore",
    "SweepPoint",
    "TrainedModel",
    "TrustResult",
    "facts_of_description",
    "load_job_data",
    "load_model",
]


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
