"""Regression behind a shuffler (Cheu, Joseph, Mao and Peng 2022, Algorithms 2 to 5).

The paper is theory and has no figure; what it proves is measured here. Every round is a binomial sum that is
priced behind the shuffler. P_SGD and P_AGD ask every record once, P_GD asks all of them in every round. One
table has the absolute loss of a regression that is curved about its minimum; in another the loss is flat
and epsilon small, and there errors go with n as the bounds do.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tacit.experiments.report import Report
from tacit.experiments.sco_statements import THEORY, slope_statements, statements
from tacit.experiments.sco_tasks import DIM, Curved, Data, Flat, RegressionTask
from tacit.learning.algorithms.lan import lan_ac_sa, lan_bound
from tacit.learning.algorithms.minibatch import minibatch_sgd
from tacit.learning.tuning import accelerated_batch, descent_rounds, envelope_smoothness, plain_batch
from tacit.means import BinomialMean, Facts, Round
from tacit.numerics import Array, L2Ball, moreau_absolute
from tacit.privacy import Gaussian, PrivacyBudget, Repeat, TrustModel, calibrate, guarantee
from tacit.randomness import simulated

__all__ = ["Descent", "Planned", "methods", "run", "slope_rows"]

_RADIUS, _DIAMETER, _LIPSCHITZ = 1.0, 2.0, 1.0
_BUDGET = PrivacyBudget(1.0, 1e-5)
_SMALL = PrivacyBudget(0.25, 1e-5)
"""Below 4 d / mu^2 records, 7060 at this budget, noise costs more than the sampling of records."""
_MOST_ROUNDS = 200
_HUBER = 1.0  # smoothness of the Huber loss of threshold 1
_FACTS = Facts(radius=_LIPSCHITZ)

_SIZES = (5000, 20_000, 80_000)
_ONE_PASS, _MANY = (16_000, 64_000, 250_000, 1_000_000), (500, 1000, 2000, 4000)
"""Records of flat losses, where each is asked once, and where P_GD asks all of them about n^2 times."""


@dataclass(frozen=True, kw_only=True)
class Planned(ABC):
    """Rounds over disjoint batches; or over all records where the batch is n.

    Attributes:
        name: What the table calls it.
        n: Number of records.
        batch: Records of a round.
        rounds: T.
        budget: Of the whole run.
        beta: Smoothness of the envelope; None asks for subgradients of the loss itself.
        noise: False leaves rounding and noise out, to see what they cost; steps stay as they are.
    """

    name: str
    n: int
    batch: int
    rounds: int
    budget: PrivacyBudget = _BUDGET
    beta: float | None = None
    noise: bool = True

    @cached_property
    def mean(self) -> BinomialMean:
        """What every round sends: noise for all rounds that a record is in."""
        return BinomialMean.calibrated(self.budget, self.batch, DIM, rounds=self._asked)

    @property
    def _asked(self) -> int:
        """Rounds that a record is in."""
        return self.rounds if self.batch == self.n else 1

    @property
    def variance(self) -> float:
        """Bound on the variance that rounding and noise add to a mean gradient."""
        return self.mean.error(self.batch, _FACTS).variance

    def epsilon(self) -> float:
        """Return the price behind the shuffler: disjoint batches cost what the dearest of them costs."""
        event = Repeat(self.mean.event(self.batch, TrustModel.SHUFFLE), self._asked)
        return guarantee(event, self.budget.delta, observer="the analyst").epsilon

    @property
    @abstractmethod
    def bound(self) -> float:
        """Bound on the expected excess over the population."""

    @abstractmethod
    def fit(self, data: Data, rng: np.random.Generator) -> Array:
        """Return the result of a run on these records."""

    def ask(self, data: Data, rng: np.random.Generator) -> Callable[..., tuple[Array]]:
        """Return what answers round `step` with the estimated mean gradient of its batch."""

        def answer(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array]:
            first = 0 if self.batch == self.n else step * self.batch
            a = data.features[first : first + self.batch]
            residuals = a @ at["w"] - data.targets[first : first + self.batch]
            # Features have unit length, so that the envelope is that of the residual itself.
            slopes = np.sign(residuals) if self.beta is None else moreau_absolute(residuals, self.beta)[1]
            if not self.noise:
                return (slopes @ a / self.batch,)
            asked = Round(n=self.batch, parties=self.batch, radius=radius[0], number=step)
            return (self.mean.estimate(slopes[:, None] * a, asked, rng=rng),)

        return answer


@dataclass(frozen=True, kw_only=True)
class Descent(Planned):
    """Projected subgradient steps: P_SGD on disjoint batches, P_GD on all records."""

    @property
    def _second_moment(self) -> float:
        return _LIPSCHITZ**2 + self.variance

    @property
    def bound(self) -> float:
        """D G/sqrt(T); with full batches that is about the records, and 2 (D/2) L/sqrt(n) leads beyond them.

        The latter is twice the Rademacher complexity of linear models in the ball, by contraction.
        """
        beyond = _DIAMETER * _LIPSCHITZ / math.sqrt(self.n) if self.batch == self.n else 0.0
        return _DIAMETER * math.sqrt(self._second_moment / self.rounds) + beyond

    def fit(self, data: Data, rng: np.random.Generator) -> Array:
        """Return the average of the points that were asked at."""
        return minibatch_sgd(
            self.ask(data, rng),
            np.zeros(DIM),
            rounds=self.rounds,
            step_size=_DIAMETER / math.sqrt(self.rounds * self._second_moment),
            radius=_LIPSCHITZ,
            prox=L2Ball(_RADIUS),
            log_weights=itertools.repeat(0.0),
            follow=lambda step, w: None,  # noqa: ARG005 - nobody watches
        )


@dataclass(frozen=True, kw_only=True)
class ACSA(Planned):
    """AC-SA on a loss of this smoothness, with disjoint batches."""

    beta: float

    @property
    def _noise_std(self) -> float:
        return math.sqrt(_LIPSCHITZ**2 / self.batch + self.variance)

    @property
    def bound(self) -> float:
        """That of AC-SA with Lan's steps."""
        return lan_bound(
            smoothness=self.beta, noise_std=self._noise_std, rounds=self.rounds, diameter=_DIAMETER
        )

    def fit(self, data: Data, rng: np.random.Generator) -> Array:
        """Return the aggregate point."""
        return lan_ac_sa(
            self.ask(data, rng),
            np.zeros(DIM),
            rounds=self.rounds,
            smoothness=self.beta,
            noise_std=self._noise_std,
            diameter=_DIAMETER,
            radius=_LIPSCHITZ,
            prox=L2Ball(_RADIUS),
            follow=lambda step, w: None,  # noqa: ARG005 - nobody watches
        )


@dataclass(frozen=True, kw_only=True)
class SmoothedACSA(ACSA):
    """AC-SA on the Moreau envelope of every record's loss."""

    @property
    def bound(self) -> float:
        """That of AC-SA on the envelope, and L^2/(2 beta) for what the envelope lies below the loss."""
        return super().bound + _LIPSCHITZ**2 / (2 * self.beta)


def methods(
    n: int, budget: PrivacyBudget = _BUDGET, *, most_rounds: int = _MOST_ROUNDS
) -> Iterator[Descent | ACSA]:
    """Yield the methods, tuned by the formulas of the paper with 2/mu in place of its logarithms.

    mu is the level of a Gaussian release that costs the whole budget, see docs/theory/noise.md. The smooth
    P_AGD is for the Huber loss.

    Args:
        n: Number of records.
        budget: Of each run.
        most_rounds: Of P_GD, which would take up to n.
    """
    mu, d = 1 / calibrate(Gaussian, budget), DIM
    few = plain_batch(dim=d, level=mu)
    yield Descent(name="P_SGD", n=n, batch=few, rounds=n // few, budget=budget)
    beta = envelope_smoothness(n=n, dim=d, level=mu, lipschitz=_LIPSCHITZ, diameter=_DIAMETER)
    kinds: tuple[tuple[str, type[ACSA], float], ...] = (
        ("smoothed P_AGD", SmoothedACSA, beta),
        ("smooth P_AGD", ACSA, _HUBER),
    )
    for name, kind, smooth in kinds:
        best = accelerated_batch(
            n=n, dim=d, level=mu, smoothness=smooth, lipschitz=_LIPSCHITZ, diameter=_DIAMETER
        )
        batch = min(max(round(best), 2), n // 2)
        yield kind(name=name, n=n, batch=batch, rounds=n // batch, budget=budget, beta=smooth)
    rounds = min(descent_rounds(n=n, dim=d, level=mu), most_rounds)
    yield Descent(name="P_GD", n=n, batch=n, rounds=rounds, budget=budget)


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Run the methods; `quick` takes fewer and smaller sizes, and two seeds in place of six."""
    seeds = 2 if quick else 6
    sizes = (2000, 8000) if quick else _SIZES
    # The smooth method has no row: the absolute loss is not smooth.
    curved = [one for n in sizes for one in methods(n) if one.name != "smooth P_AGD"]
    flat = _flat(*((_ONE_PASS[:3], _MANY[1:]) if quick else (_ONE_PASS, _MANY)))
    total = len(curved) + len(flat)
    rows = []
    for done, method in enumerate(curved):
        progress(done, total)
        rows.append(_row(method, Curved(), seeds) | {"without noise": _bare(method, seeds)})
    slopes = slope_rows(flat, seeds, lambda done: progress(len(curved) + done, total))
    progress(total, total)
    return Report(
        rows=rows,
        x="n",
        y="excess",
        error="standard error",
        line="method",
        log_y=True,
        title="Excess of the absolute loss behind a shuffler",
        labels={"n": "n, records", "excess": "expected loss above the smallest one"},
        notes=(
            f"d = {DIM}, epsilon = {_BUDGET.epsilon:g}, delta = {_BUDGET.delta:g}, {seeds} seeds. The excess "
            "is over the whole population, exact for a result.",
            *statements(rows),
            *slope_statements(slopes),
        ),
        more={
            "slopes": Report(
                rows=slopes,
                x="n",
                y="excess",
                error="standard error",
                line="method",
                log_y=True,
                title=f"Excess of flat losses behind a shuffler at epsilon {_SMALL.epsilon:g}",
                labels={"n": "n, records", "excess": "expected loss above the smallest one"},
                notes=tuple(slope_statements(slopes)),
            )
        },
    )


def _flat(once: Sequence[int], often: Sequence[int]) -> list[Descent | ACSA]:
    """Return the methods at a small epsilon: P_GD at the sizes `often`, all others at `once`."""
    planned = [one for n in once for one in methods(n, _SMALL) if one.batch < n]
    planned += [one for n in often for one in methods(n, _SMALL, most_rounds=n) if one.batch == n]
    return sorted(planned, key=lambda one: list(THEORY).index(one.name))


def slope_rows(
    planned: Sequence[Descent | ACSA], seeds: int, progress: Callable[[int], Any]
) -> list[dict[str, object]]:
    """Return rows of runs on the flat loss.

    Args:
        planned: What is run.
        seeds: Of each.
        progress: Called with the number of rows that are there.
    """
    rows = []
    for done, method in enumerate(planned):
        progress(done)
        rows.append(_row(method, Flat(), seeds))
    return rows


def _bare(method: Planned, seeds: int) -> float:
    """Return the mean excess of the same runs without rounding and noise."""
    return float(np.mean(_excesses(replace(method, noise=False), Curved(), seeds)))


def _excesses(method: Planned, task: RegressionTask, seeds: int) -> list[float]:
    """Run one method on the records of every seed."""
    found = []
    for seed in range(seeds):
        data = task.drawn(method.n, seed)
        w = method.fit(data, simulated(seed, "shuffled-sco/noise", method.name, method.n))
        found.append(task.excess(w, data.truth))
    return found


def _row(method: Planned, task: RegressionTask, seeds: int) -> dict[str, object]:
    """Return the row of one method."""
    found = _excesses(method, task, seeds)
    spread = float(np.std(found, ddof=1))
    return {
        "n": method.n,
        "method": method.name,
        "rounds": method.rounds,
        "batch": method.batch,
        "noise bits": method.mean.noise_bits,
        "grid": method.mean.resolution,
        "epsilon": method.epsilon(),
        "excess": float(np.mean(found)),
        "sd": spread,
        "standard error": spread / math.sqrt(seeds),
        "bound": method.bound,
    }
