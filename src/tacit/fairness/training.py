"""How a fair model is trained: the solver and its numbers, checked before anything is done."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError, check_choice, check_count, check_positive, check_probability
from tacit.fairness.fermi import FairProblem, Fitted, StepSizes, fermi, fermi_exact
from tacit.numerics import Array

__all__ = ["Training"]

_SHORTEST = 100.0
"""Steps times their size at least: fewer of them end before the model is where it is going."""
_FASTEST = 0.2


@dataclass(frozen=True, kw_only=True)
class Training:
    """A solver and its numbers; None leaves a number to the batch size and to the weight of the penalty.

    Attributes:
        solver: "exact", L-BFGS on all records, or "sgda", descent and ascent on batches.
        batch_size: Of "sgda"; the whole data where there is less.
        epochs: Passes over the data.
        one_pass: Whether each record is used once.
        step: Of the model, > 0.
        dual_step: Of dual variables times the weight, in (0, 1/2].
        warmup: Epochs without the penalty before.
        tail: Share of the last steps whose parameters are averaged, in [0, 1).
        iterations: Most of "exact".
        tolerance: Relative decrease at which "exact" stops.
    """

    solver: str = "exact"
    batch_size: int = 64
    epochs: int | None = None
    one_pass: bool = False
    step: float | None = None
    dual_step: float | None = None
    warmup: int = 0
    tail: float = 0.0
    iterations: int = 300
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        check_choice("solver", self.solver, ["exact", "sgda"])
        check_count("batch_size", self.batch_size)
        check_count("max_iter", self.iterations)
        check_count("warmup", self.warmup, low=0)
        check_probability("tail", self.tail, high_open=True)
        check_positive("tolerance", self.tolerance)
        if self.epochs is not None:
            check_count("epochs", self.epochs)
        if self.one_pass and self.epochs not in (None, 1):
            raise ParameterError(f"epochs must be 1 or None with one_pass, got {self.epochs}.")
        if self.step is not None:
            check_positive("step", self.step)
        if self.dual_step is not None and check_positive("dual_step", self.dual_step) > 0.5:
            raise ParameterError(f"dual_step must be at most 0.5, got {self.dual_step!r}.")
        unsaid = {
            "epochs": None,
            "one_pass": False,
            "step": None,
            "dual_step": None,
            "warmup": 0,
            "tail": 0.0,
        }
        for name, value in unsaid.items() if self.solver == "exact" else ():
            if (given := getattr(self, name)) != value:
                raise ParameterError(f"{name} is for solver='sgda', got {given!r} with solver='exact'.")

    def fit(self, rng: np.random.Generator, problem: FairProblem, start: Array | None = None) -> Fitted:
        """Train a model.

        Args:
            rng: Shuffles records, for "sgda".
            problem: Of all records.
            start: Parameters; None starts where the model says.
        """
        if self.solver == "exact":
            return fermi_exact(problem, start=start, iterations=self.iterations, tolerance=self.tolerance)
        n = len(problem.y)
        b = min(self.batch_size, n)
        return fermi(
            problem,
            steps=self.steps(b, problem.weight),
            batch_size=b,
            epochs=self.passes(b, n),
            rng=rng,
            start=start,
            warmup=self.warmup,
            tail=self.tail,
        )

    def steps(self, batch_size: int, weight: float) -> StepSizes:
        """Return step sizes: larger ones for larger batches, smaller ones for the model at larger weights."""
        fast = min(_FASTEST, 0.002 * batch_size**0.75)
        return StepSizes(
            fast / (1 + weight / 5) if self.step is None else self.step,
            fast if self.dual_step is None else self.dual_step,
        )

    def passes(self, batch_size: int, n: int) -> int:
        """Return the number of epochs: 2 for single records, 30 for 512 of them, more where data is short."""
        if self.one_pass:
            return 1
        if self.epochs is not None:
            return self.epochs
        far = _SHORTEST * batch_size / (n * self.steps(batch_size, 0.0).of_dual)
        return max(round(2 * math.pow(batch_size, 0.43)), math.ceil(far))
