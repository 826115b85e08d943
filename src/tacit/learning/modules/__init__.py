"""Modules of PyTorch as objectives: `tacit[torch]`, which is imported where it is used."""

from tacit.learning.modules.objective import ModuleObjective, torch_objective
from tacit.learning.modules.optimizer import PrivateOptimizer

__all__ = ["ModuleObjective", "PrivateOptimizer", "torch_objective"]
