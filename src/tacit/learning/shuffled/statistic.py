"""What a silo runs shuffled gradients along: the gradient of each record, and steps of many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError
from tacit.federation import Statistic
from tacit.learning.linear import ConvexGradient, LinearObjective
from tacit.learning.objective import Objective, RecordGradient, Records
from tacit.learning.shuffled.kernels import RecordSteps
from tacit.numerics import Array

__all__ = ["HiddenGradient", "hidden_gradient"]


@dataclass(frozen=True)
class HiddenGradient(ConvexGradient):
    """`ConvexGradient` for hidden runs: of public records too, and step after step in one go."""

    def public_units(self, rows: Array, outcomes: Array) -> Records:
        """Return public records as units; one that is longer than `feature_norm` counts as zero.

        Args:
            rows: Shape (k, features), finite.
            outcomes: Shape (k,), finite.

        Raises:
            ParameterError: Another number of features.
        """
        if rows.shape[1] != self.objective.features:
            raise ParameterError(
                f"public records must have {self.objective.features} features, as private ones, got "
                f"{rows.shape[1]}."
            )
        return Records.of(rows.astype(np.float64), outcomes)

    def stepper(self, units: Records) -> Callable[..., Array]:
        """Return what takes steps on these records.

        Raises:
            ParameterError: An objective whose gradients are not its loss's slopes; its steps go one by one.
        """
        return RecordSteps.of(self.objective, units)


def hidden_gradient(objective: Objective) -> Statistic:
    """Return the statistic of hidden runs for an objective; of others, one that no silo accepts."""
    if isinstance(objective, LinearObjective) and objective.outputs == 1:
        return HiddenGradient(objective)
    return RecordGradient(objective)
