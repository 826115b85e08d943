"""Shuffled gradient methods: one record a step, in an order, with what is hidden in between."""

from tacit.learning.shuffled.kernels import RecordSteps, ShuffledObjective

__all__ = ["RecordSteps", "ShuffledObjective"]
