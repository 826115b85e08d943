"""Local SGD, from the server's side: silos take steps by themselves, the server averages where they end."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tacit.errors import check_count
from tacit.federation import Ask, Batch, Fixed, Walk
from tacit.learning.algorithms.base import Follow, Kinds, Method, Problem, check_optional
from tacit.learning.objective import Objective
from tacit.numerics import Array, Regularizer
from tacit.privacy import TrustModel

__all__ = ["NoisyLocalSGD", "local_sgd"]


class NoisyLocalSGD(Method, frozen=True, kw_only=True, tag="local"):
    """Local SGD (FedAvg); with a budget every local step is private by itself.

    Attributes:
        rounds: R; None chooses it.
        local_steps: K >= 2 steps in a silo per round, each on a fresh uniform batch. One step per round is
            `NoisyMinibatchSGD`.
        batch: Units per local step.
        step_size: eta of a local step; None is min(1/beta, D / (V sqrt(R K))).
    """

    local_steps: int = 10
    batch: Batch = Fixed(size=1)
    step_size: float | None = None

    paper: ClassVar[str] = "McMahan et al. (2017); Lowy and Razaviyayn (2023)"
    trusts: ClassVar[tuple[TrustModel, ...]] = (TrustModel.LOCAL,)
    why_no_sums: ClassVar[str] = (
        "a silo walks by its own noisy means, and its share of noise alone is too little"
    )
    caveat: ClassVar[str] = "how far silos drift apart is not in its bound"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(step_size=self.step_size)
        check_count("local_steps", self.local_steps, low=2)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the points where silos arrive, in all rounds."""
        walk = Walk(measures=(problem.measure("gradient"),), batch=self.batch, steps=self.local_steps)
        return ((walk, rounds),)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound of R K plain steps of one silo; how far silos drift apart is not in it."""
        eta, steps = self._step(problem, rounds), rounds * self.local_steps
        return problem.diameter**2 / (eta * steps) + eta * problem.variance

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown smoothness where a step size has to be made."""
        self._step(problem, rounds)

    def why_no_regularizer(self, objective: Objective) -> str:  # noqa: ARG002 - of none
        """Return that silos take their steps without it.

        One proximal step of the server after K steps of a silo settles where the walk and the penalty cancel,
        which is off the minimum by the order of K eta beta: a quarter of the distance at K = 10 and the
        default step (tests/learning/test_regularizers.py).
        """
        return "silos take several steps without it, and one proximal step after them ends elsewhere"

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point."""
        return local_sgd(
            ask,
            w,
            rounds=rounds,
            local_steps=self.local_steps,
            step_size=self._step(problem, rounds),
            radius=problem.radius,
            prox=prox,
            follow=follow,
        )

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        return problem.plain_step(rounds * self.local_steps)


def local_sgd(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    local_steps: int,
    step_size: float,
    radius: float,
    prox: Regularizer,
    follow: Follow,
) -> Array:
    """Run (noisy) local SGD, FedAvg with plain steps (Lowy 2023, Appendix B.1.10).

    Args:
        ask: Returns the mean of the points that silos reach by their own steps from "w".
        w: Start, shape (size,).
        rounds: Number of rounds R.
        local_steps: Steps K that a silo takes per round; the plan says the same.
        step_size: eta of a local step.
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint. The server applies it once a round, with the step K eta of the whole
            round: then a solution of the regularised problem stays where it is, up to what silos drift apart.
        follow: Called after each round.

    Returns:
        The last point, shape (size,).
    """
    for r in range(rounds):
        (mean,) = ask(r, {"w": w, "step_size": np.asarray(step_size)}, (radius,))
        w = prox(local_steps * step_size, mean)
        follow(r, w)
    return w
