"""Public records with their labels: a silo of their own that needs no noise, and that a server has itself."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError
from tacit.learning.objective import Objective, Records
from tacit.numerics import Array

__all__ = ["PublicObjective"]


@dataclass(frozen=True)
class PublicObjective:
    """What is minimised, on records that nobody protects.

    Attributes:
        objective: As that of the private records.
        records: Mapped rows and outcomes, as the objective takes them; at least one.
    """

    objective: Objective
    records: Records

    def __post_init__(self) -> None:
        if len(self.records) == 0:
            raise ParameterError("public must hold at least one record, got none.")

    def __len__(self) -> int:
        return len(self.records)

    @property
    def digest(self) -> str:
        """SHA-256 of the records, in hexadecimal."""
        both = (np.asarray(part, dtype="<f8").tobytes() for part in (self.records.X, self.records.y))
        return hashlib.sha256(b"".join(both)).hexdigest()

    def gradients(self, w: Array) -> Array:
        """Return one gradient per public record, shape (m, size)."""
        return self.objective.gradients(w, self.records)

    def gradient(self, w: Array) -> Array:
        """Return the mean gradient, shape (size,)."""
        return np.asarray(self.gradients(w).mean(axis=0))
