"""Modules of PyTorch as objectives: `tacit[torch]`, which is imported where it is used."""

from tacit.learning.modules.objective import ModuleObjective, torch_objective

__all__ = ["ModuleObjective", "torch_objective"]
