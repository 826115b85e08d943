"""Training jobs: from files and a description of their columns to a model, a statement and its report."""

from tacit.jobs.config import DEMO, SPLITS, JobConfig
from tacit.jobs.data import JobData, load_job_data
from tacit.jobs.job import FEWEST_UNITS, Job, Ledgers, Progress
from tacit.jobs.model import MODEL_FILE, TrainedModel, load_model
from tacit.jobs.results import JobResult, PlannedRun, TrustResult
from tacit.jobs.scores import Bin, ClassScores, NumberScores, Scores, SiloScore, SweepPoint
from tacit.learning.preparation import PlannedMean

__all__ = [
    "DEMO",
    "FEWEST_UNITS",
    "MODEL_FILE",
    "SPLITS",
    "Bin",
    "ClassScores",
    "Job",
    "JobConfig",
    "JobData",
    "JobResult",
    "Ledgers",
    "NumberScores",
    "PlannedMean",
    "PlannedRun",
    "Progress",
    "Scores",
    "SiloScore",
    "SweepPoint",
    "TrainedModel",
    "TrustResult",
    "load_job_data",
    "load_model",
]
