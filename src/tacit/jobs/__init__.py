"""Training jobs: from files and a description of their columns to a model, a statement and its report."""

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
