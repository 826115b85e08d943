"""Every figure and table of the papers, by name."""

from tacit.experiments.registry import EXPERIMENTS, Experiment, Report, find

__all__ = ["EXPERIMENTS", "Experiment", "Report", "find"]
