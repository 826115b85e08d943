"""Private min-max optimisation: descent and ascent along noisy means of clipped gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.fairness.iterates import KeptPoints
from tacit.federation import Ask, Batch, Full, Kinds, Plan, Step
from tacit.learning.algorithms import Problem, Protection
from tacit.numerics import Array
from tacit.privacy import TrustModel

__all__ = ["NoisySGDA", "Saddle"]


@dataclass(frozen=True)
class Saddle:
    """Where a run ends.

    Attributes:
        theta: Of the minimum, shape (d_theta,).
        w: Of the maximum, shape (d_w,).
    """

    theta: Array
    w: Array


@dataclass(frozen=True, kw_only=True)
class NoisySGDA:
    """min over theta, max over w in a set, of the mean over records of f(theta, w, record).

    Both gradients of a round are means on one batch, and so one joint release: with a secret sample they are
    priced as one, with the multiplier that both have together. Silos must know the statistics "descent" and
    "ascent", which return each record's gradient in theta and in w at the points "theta" and "w".

    Attributes:
        dims: d_theta and d_w.
        clips: Bounds C_theta and C_w on the norm of a record's gradient in each, > 0.
        rounds: T >= 1.
        step: Of theta, > 0.
        dual_step: Of w, > 0.
        batch: `Full()`, or under neighbours that differ in whole records `Fixed` or `Poisson` for secret
            samples.
        share: Of the budget that the gradient in theta has, in (0, 1).
        tail: Share of the last rounds whose points are averaged, in [0, 1).
        only: The round whose points are returned instead, in 1..rounds, such as that of `random_round`.

    Raises:
        ParameterError: A number out of range.

    Reference:
        Lowy (2023), Theorem 226 (noisy DP-SGDA) and the remark on its noise; Yang, Hu and others (2022).
    """

    dims: tuple[int, int]
    clips: tuple[float, float]
    rounds: int
    step: float
    dual_step: float
    batch: Batch = Full()  # noqa: RUF009 - immutable
    share: float = 0.5
    tail: float = 0.0
    only: int | None = None

    def __post_init__(self) -> None:
        check_count("rounds", self.rounds)
        for name in ("step", "dual_step"):
            check_positive(name, getattr(self, name))
        for clip in self.clips:
            check_positive("clips", clip)
        for dim in self.dims:
            check_count("dims", dim)
        check_probability("share", self.share, low_open=True, high_open=True)
        check_probability("tail", self.tail, high_open=True)
        if self.only is not None:
            check_count("only", self.only, high=self.rounds)

    def steps(self, problem: Problem) -> Kinds:
        """Return all that is asked: both means of each round on one batch.

        Args:
            problem: Of which the protection is used.
        """
        means = (("descent", self.share), ("ascent", 1 - self.share))
        measures = tuple(
            problem.measure(name, dim=dim, max_radius=clip, share=share, batch=self.batch)
            for (name, share), dim, clip in zip(means, self.dims, self.clips, strict=True)
        )
        return ((Step(measures=measures, batch=self.batch), self.rounds),)

    def plan(self, protection: Protection, *, parties: int = 1) -> Plan:
        """Return the plan of a run under central or local trust.

        Args:
            protection: Who adds how much noise, and for whom.
            parties: Number of silos.

        Raises:
            ParameterError: Another trust model.
        """
        if protection.trust not in (TrustModel.CENTRAL, TrustModel.LOCAL):
            raise ParameterError(f"trust must be central or local, got {protection.trust.value}.")
        problem = Problem(
            smoothness=1.0,
            radius=self.clips[0],
            diameter=1.0,
            dim=self.dims[0],
            variance=0.0,
            protection=protection,
        )
        return Plan(
            steps=self.steps(problem), parties=parties, trust=protection.trust, delta=protection.delta
        )

    def run(
        self,
        ask: Ask,
        theta: Array,
        w: Array,
        *,
        project: Callable[[Array], Array] = lambda w: w,
        first: int = 0,
        at: Mapping[str, Array] | None = None,
        follow: Callable[[int, Array, Array], None] | None = None,
    ) -> Saddle:
        """Return the last points, the mean of the last ones, or those of one round.

        Both steps of a round are taken at one point.

        Args:
            ask: Answers what `steps` says.
            theta: Public start, shape (d_theta,).
            w: Public start, shape (d_w,).
            project: Returns the nearest point of the set of w; public.
            first: Number of rounds that were asked before.
            at: Further public points that statistics are told.
            follow: Called after each round with its number and the points: in simulation only.

        Raises:
            ParameterError: A start of another shape.
        """
        if theta.shape != self.dims[:1] or w.shape != self.dims[1:]:
            raise ParameterError(
                f"theta and w must have shapes {self.dims}, got {theta.shape} and {w.shape}."
            )
        theta, w = theta.astype(np.float64), w.astype(np.float64)
        kept = KeptPoints(self.rounds, tail=self.tail, only=self.only)
        for t in range(self.rounds):
            down, up = ask(first + t, {**(at or {}), "theta": theta, "w": w}, self.clips)
            theta, w = theta - self.step * np.asarray(down), project(w + self.dual_step * np.asarray(up))
            kept.add(t + 1, theta, w)
            if follow is not None:
                follow(t + 1, theta, w)
        return Saddle(*kept.points)
