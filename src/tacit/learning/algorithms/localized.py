"""Localised clipped subgradient descent: phases on records of their own, each pulled to where the last ended.

Source: Lowy (2023), Algorithm 7 with Theorem 50, Remark 55, and Appendix C.4.3 for strong convexity.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_choice
from tacit.federation import Ask, Disjoint, Full, Step
from tacit.learning.algorithms.base import (
    Convexity,
    Follow,
    Kinds,
    Method,
    Problem,
    check_optional,
)
from tacit.learning.algorithms.clipped_subgradient import clipped_subgradient
from tacit.learning.algorithms.heavy_tails import (
    CLIP_METHODS,
    length_of,
    noise_at_one,
    open_clip,
    stated,
    variance_at,
)
from tacit.learning.algorithms.localized_phases import (
    LocalizedPhase,
    localization_bound,
    paper_phases,
    sharp_phases,
    spread_rounds,
    strongly_convex_rows,
)
from tacit.means.moments import ClipMethod
from tacit.numerics import Array, Regularizer, project_l2_ball
from tacit.privacy import TrustModel

__all__ = ["LocalizedSubgradient", "PhasedLocalizedSubgradient", "WithinBall"]

_WORK = 1e10
"""Numbers that all rounds read above which a run warns."""

Sampled = Literal["all", "sqrt"]
"""How many units of its block a round draws: all, or about the square root of them."""


class LocalizedSubgradient(Method, frozen=True, kw_only=True, tag="localized"):
    """Phases on halves of what is left, heavy tails and rough losses (Lowy 2023, Algorithm 7).

    Phase i has 2^-i of every silo's records, asked again and again: a record is in one phase, and every phase
    costs it the whole budget.

    Attributes:
        rounds: T_1 + ... + T_l of the l = log2(n) phases; fewer than l have fewer phases. None chooses them.
        batch: The block of a phase, whole.
        sample: Units of the block that a round draws: `all`, or about the square root of them (`sqrt`).
        lipschitz: L of a record's loss on the domain; None takes what public facts bound. The paper's
            constants need it, and points then stay within 2 L / lambda of where a phase began.
        second_moment: r_2 of gradients, where it is known to be less than the stated moment.
        method: `sharp` constants, or those of the `paper`.
    """

    batch: Full = Full()
    sample: Sampled = "all"
    lipschitz: float | None = None
    second_moment: float | None = None
    method: ClipMethod = "sharp"

    clip_share: ClassVar[float] = 1.0
    chooses_clip: ClassVar[bool] = True
    trusts: ClassVar[tuple[TrustModel, ...]] = (TrustModel.LOCAL, TrustModel.AGGREGATE, TrustModel.CENTRAL)
    """Behind a shuffler, the many rounds of a small block take long to price."""
    round_choices: ClassVar[tuple[int, ...]] = (40, 80, 160, 320)
    paper: ClassVar[str] = "Lowy and Razaviyayn (2023), heavy tails"
    caveat: ClassVar[str] = (
        "it holds as far as the stated moment and diameter do, with the supremum over points inside"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(lipschitz=self.lipschitz, second_moment=self.second_moment)
        check_choice("sample", self.sample, ("all", "sqrt"))
        check_choice("method", self.method, CLIP_METHODS)

    def phases(self, problem: Problem, rounds: int) -> tuple[LocalizedPhase, ...]:
        """Return the phases of a run with the noise that the problem has."""
        return self._run_of(problem, rounds, share=1.0, diameter=problem.diameter)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the mean clipped gradient of each phase's block as often as the phase is long."""
        kinds = []
        for phase in self.phases(problem, rounds):
            batch = Disjoint(rate=phase.share, repeats=phase.rounds, sample=self._rate(problem, phase.share))
            measure = problem.measure("gradient", batch=batch, max_radius=phase.clip, share=phase.budget)
            kinds.append((Step(measures=(measure,), batch=batch), phase.rounds))
        return tuple(kinds)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return `localization_bound` of the phases."""
        return localization_bound(
            self.phases(problem, rounds), length=length_of(problem), diameter=problem.diameter
        )

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown gradients, fewer than 4 records, and a clip by a moment of an order up to 2.

        So is what the paper's constants lack. Less noise than they are proven for is warned of, as is work
        beyond 10^10 numbers.
        """
        length_of(problem)
        if min(problem.sizes) < 4:
            raise ParameterError(
                f"the smallest silo must have at least 4 units for phases, got {min(problem.sizes)}."
            )
        z = problem.protection.multiplier
        if self.method == "paper" and self.sample == "all" and 0 < z < 1 / math.sqrt(problem.dim):
            warnings.warn(
                "the paper's constants are for a zero-concentrated epsilon of at most the root of "
                f"{problem.dim} parameters, got {1 / z:.3g}.",
                stacklevel=2,
            )
        phases = self.phases(problem, rounds)
        work = problem.dim * sum(phase.rows * phase.rounds for phase in phases)
        if work > _WORK and self.sample == "all":
            warnings.warn(f"the phases read {work:.2g} numbers; sample='sqrt' reads far fewer.", stacklevel=2)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run all phases on an `ask`, each from where the one before ended."""
        done = 0
        for phase in self.phases(problem, rounds):
            w, _ = clipped_subgradient(
                ask,
                w,
                rounds=phase.rounds,
                step_size=phase.step_size,
                pull=phase.pull,
                radius=phase.clip,
                prox=WithinBall(prox, w, phase.reach) if math.isfinite(phase.reach) else prox,
                follow=follow,
                first=done,
            )
            done += phase.rounds
        return w

    def _rate(self, problem: Problem, share: float) -> float | None:
        """Return the share of a block that a round draws; None for all."""
        if self.sample == "all":
            return None
        return min(1.0, 1 / math.sqrt(max(share * min(problem.sizes), 1.0)))

    def _run_of(
        self, problem: Problem, rounds: int, *, share: float, diameter: float
    ) -> tuple[LocalizedPhase, ...]:
        """Return the phases on that share of the records, for a start within that diameter."""
        count = max(1, min(_halvings(share * min(problem.sizes)), rounds))
        rows, lengths = share * problem.rows, spread_rounds(rounds, [2.0**-i for i in range(1, count + 1)])
        rates = [self._rate(problem, share / 2**i) or 1.0 for i in range(1, count + 1)]
        # Of every release, such that all blocks cost about as much; the largest is 1.
        levels = [1 / (given * rate**2) for given, rate in zip(lengths, rates, strict=True)]
        moment, most = stated(problem), 1.0 if self.sample == "all" else max(levels)
        facts: dict[str, Any] = {
            "rows": rows,
            "share": share,
            "rounds": lengths,
            # Of a mean of all rows with the whole budget, per clip; 0 without privacy.
            "noise": noise_at_one(problem, rows) * most,
            "diameter": diameter,
            "lipschitz": self._lipschitz(problem),
        }
        chosen = open_clip(problem)
        if self.method == "paper":
            if moment is None or moment.order <= 2:
                raise ParameterError(
                    "the paper's constants of 'localized' need a moment of an order above 2, 2k: got "
                    f"{None if moment is None else moment.order}."
                )
            free = self.sample == "all"
            found = paper_phases(
                **facts,
                moment=moment,
                second=self.second_moment or moment.value,
                free=free,
            )
        elif moment is not None and moment.order <= 2 and chosen is None:
            raise ParameterError(
                f"'localized' needs a moment of an order above 2, or a clip, got {moment.order}: what is cut "
                "off of averages over all records is bounded by half that order."
            )
        else:
            found = sharp_phases(
                **facts,
                moment=moment,
                length=length_of(problem),
                clip=chosen,
                most=problem.radius,
            )
        if self.sample == "all":
            return found
        return tuple(
            self._sampled(problem, phase, rate, level / most)
            for phase, rate, level in zip(found, rates, levels, strict=True)
        )

    def _sampled(self, problem: Problem, phase: LocalizedPhase, rate: float, budget: float) -> LocalizedPhase:
        """Return a phase whose rounds draw samples: with their noise, and by how much samples differ."""
        rows = phase.rows * rate
        noise = noise_at_one(problem, rows) / budget * phase.clip**2
        drawn = variance_at(problem, phase.clip) / rows if rate < 1 else 0.0
        return replace(phase, budget=budget, noise_std=math.sqrt(noise + drawn))

    def _lipschitz(self, problem: Problem) -> float:
        """Return L, infinite where nothing bounds it."""
        found = problem.lipschitz if self.lipschitz is None else self.lipschitz
        if self.method == "paper" and not math.isfinite(found):
            raise ParameterError(
                "lipschitz must be given for the paper's constants of 'localized': nothing bounds it."
            )
        return found


class PhasedLocalizedSubgradient(LocalizedSubgradient, frozen=True, kw_only=True, tag="localized-phases"):
    """Localised runs on more and more records, heavy tails, strongly convex (Lowy 2023, Appendix C.4.3).

    Attributes:
        rounds: Of all runs together; None chooses them.
        batch: The block of a phase, whole.
        sample: Units of the block that a round draws: `all`, or about the square root of them (`sqrt`).
        lipschitz: L of a record's loss on the domain; None takes what public facts bound.
        second_moment: r_2 of gradients, where it is known to be less than the stated moment.
        method: `sharp` constants, or those of the `paper`.
        mu: Strong convexity of the expected loss; None is that of the regulariser, and without a squared
            penalty 1e-3, a guess, for which the bound is not proven.
    """

    mu: float | None = None

    needs: ClassVar[Convexity] = "strongly-convex"
    composite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(mu=self.mu)

    def phases(self, problem: Problem, rounds: int) -> tuple[LocalizedPhase, ...]:
        """Return the phases of all runs, each run on fresh records and from a shorter distance."""
        return tuple(itertools.chain.from_iterable(run for run, _ in self._runs(problem, rounds)))

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound of the last run."""
        return self._runs(problem, rounds)[-1][1]

    def _runs(self, problem: Problem, rounds: int) -> list[tuple[tuple[LocalizedPhase, ...], float]]:
        """Return the phases of every run with the bound on the excess behind it.

        Of fewer rounds than phases, the last and largest run has all.
        """
        mu = self.mu or problem.strong_convexity or 1e-3
        length, smallest = length_of(problem), min(problem.sizes)
        shares = [s for s in strongly_convex_rows(problem.rows) if _halvings(s * smallest) > 0] or [0.5]
        counts = [max(1, _halvings(share * smallest)) for share in shares]
        if sum(counts) > rounds:
            shares, counts = shares[-1:], [min(counts[-1], rounds)]
        ends = [(rounds - sum(counts)) * sum(shares[:j]) / sum(shares) for j in range(len(shares) + 1)]
        excess, found = 2 * length**2 / mu, []
        diameter = min(problem.diameter, math.sqrt(2 * excess / mu))
        for j, (share, count) in enumerate(zip(shares, counts, strict=True)):
            part = count + round(ends[j + 1]) - round(ends[j])
            run = self._run_of(problem, part, share=share, diameter=diameter)
            excess = min(excess, localization_bound(run, length=length, diameter=diameter))
            found.append((run, excess))
            diameter = min(diameter, math.sqrt(2 * excess / mu))
        return found


def _halvings(rows: float) -> int:
    """Return how often so many rows can be halved: log2, rounded down."""
    return int(math.log2(max(rows, 1.0) * (1 + 1e-12)))


@dataclass(frozen=True, eq=False)
class WithinBall:
    """A regulariser on the points of a ball alone, by Dykstra's algorithm for proximal maps.

    A point that the regulariser's own map brings into the ball is the answer. Else the two maps take turns,
    with what each took away given back before its next turn (Bauschke and Combettes 2008, "A Dykstra-like
    algorithm for two monotone operators", Pacific J. Optim. 4(3)); the regulariser's has the last one.

    Attributes:
        prox: The regulariser.
        center: Of the ball, shape (size,).
        radius: Of the ball.
    """

    prox: Regularizer
    center: Array
    radius: float

    @property
    def strong_convexity(self) -> float:
        """Return that of the regulariser."""
        return self.prox.strong_convexity

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Return the proximal point in the ball."""
        found, z = self.prox(eta, z), np.asarray(z, dtype=np.float64)
        if self._inside(found):
            return found
        x, p, q = z, np.zeros_like(z), np.zeros_like(z)
        for _ in range(1000):
            y = project_l2_ball(x + p, self.radius, center=self.center)
            p = x + p - y
            before, x = x, self.prox(eta, y + q)
            q = y + q - x
            if np.linalg.norm(x - before) <= 1e-12 * (1 + np.linalg.norm(x)) and self._inside(x):
                break
        return x

    def value(self, w: npt.ArrayLike) -> float:
        """Return the regulariser's in the ball, and infinity outside."""
        return self.prox.value(w) if self._inside(np.asarray(w)) else math.inf

    def _inside(self, w: Array) -> bool:
        return bool(np.linalg.norm(w - self.center) <= self.radius * (1 + 1e-9))
