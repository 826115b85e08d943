"""Distributed tasks that ask for one mean a round, on any mean estimator; for simulation and comparison."""

from tacit.learning.tasks.kmeans import kmeans
from tacit.learning.tasks.power_iteration import power_iteration, top_eigenvector
from tacit.learning.tasks.regression import linear_regression
from tacit.learning.tasks.rounds import TaskRound, TaskRun

__all__ = ["TaskRound", "TaskRun", "kmeans", "linear_regression", "power_iteration", "top_eigenvector"]
