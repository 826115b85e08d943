"""Absolute-loss regression behind a shuffler (Cheu, Joseph, Mao and Peng 2022, Algorithms 2 to 5).

The paper is theory and has no figure; what it proves is measured here. Unit features a in all directions, y =
<a, truth> + Laplace(0.2), the unit ball as domain. Every round is a binomial sum that is priced behind the
shuffler. P_SGD and the smoothed P_AGD ask every record once, P_GD asks all of them in every round.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.experiments.report import Report, number, yes
from tacit.learning.algorithms.lan import lan_ac_sa, lan_bound
from tacit.learning.algorithms.minibatch import minibatch_sgd
from tacit.means import BinomialMean, Facts, Round
from tacit.numerics import Array, L2Ball, moreau_absolute
from tacit.privacy import Gaussian, PrivacyBudget, Repeat, TrustModel, calibrate, guarantee
from tacit.randomness import simulated

__all__ = ["DIM", "Data", "Descent", "Planned", "SmoothedACSA", "excess", "methods", "run", "statements"]

DIM = 10
_RADIUS, _DIAMETER, _LIPSCHITZ = 1.0, 2.0, 1.0
_SCALE = 0.2  # of the Laplace residuals
_BUDGET = PrivacyBudget(1.0, 1e-5)
_MOST_ROUNDS = 200
_FACTS = Facts(radius=_LIPSCHITZ)


@dataclass(frozen=True, kw_only=True)
class Data:
    """Records of one seed.

    Attributes:
        features: Unit vectors, shape (n, d).
        targets: Shape (n,).
        truth: Minimiser of the expected loss, of norm 1/2, shape (d,).
    """

    features: Array
    targets: Array
    truth: Array

    @classmethod
    def drawn(cls, n: int, seed: int) -> Data:
        """Draw n records."""
        rng = simulated(seed, "shuffled-sco/data", n)
        features = rng.normal(size=(n, DIM))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        truth = rng.normal(size=DIM)
        truth /= 2 * np.linalg.norm(truth)
        return cls(
            features=features, targets=features @ truth + rng.laplace(scale=_SCALE, size=n), truth=truth
        )


def excess(w: Array, truth: Array) -> float:
    """Return the expected loss at `w` less the smallest one, exactly but for quadrature.

    For Laplace residuals of scale b the expected loss of a residual that is off by r is |r| + b e^(-|r|/b),
    and b at r = 0. Over all directions r = |w - truth| t, where t has a density prop. to (1 - t^2)^((d-3)/2).
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    t = (nodes + 1) / 2
    weights = weights * (1 - t * t) ** ((len(w) - 3) / 2)
    r = float(np.linalg.norm(w - truth)) * t
    return float(weights @ (r + _SCALE * np.expm1(-r / _SCALE)) / weights.sum())


@dataclass(frozen=True, kw_only=True)
class Planned(ABC):
    """Rounds over disjoint batches; or over all records where the batch is n.

    Attributes:
        name: What the table calls it.
        n: Number of records.
        batch: Records of a round.
        rounds: T.
        beta: Smoothness of the envelope; None asks for subgradients of the loss itself.
    """

    name: str
    n: int
    batch: int
    rounds: int
    beta: float | None = None

    @cached_property
    def mean(self) -> BinomialMean:
        """What every round sends: noise for all rounds that a record is in."""
        return BinomialMean.calibrated(_BUDGET, self.batch, DIM, rounds=self._asked)

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
        return guarantee(event, _BUDGET.delta, observer="the analyst").epsilon

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
class SmoothedACSA(Planned):
    """AC-SA on the Moreau envelope of every record's loss, with disjoint batches."""

    beta: float

    @property
    def _noise_std(self) -> float:
        return math.sqrt(_LIPSCHITZ**2 / self.batch + self.variance)

    @property
    def bound(self) -> float:
        """That of AC-SA on the envelope, and L^2/(2 beta) for what the envelope lies below the loss."""
        found = lan_bound(
            smoothness=self.beta, noise_std=self._noise_std, rounds=self.rounds, diameter=_DIAMETER
        )
        return found + _LIPSCHITZ**2 / (2 * self.beta)

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


def methods(n: int) -> Iterator[Planned]:
    """Yield the three methods, tuned by the formulas of the paper with 2/mu in place of its logarithms.

    mu is the level of a Gaussian release that costs the whole budget, see docs/theory/noise.md.
    """
    mu, d = 1 / calibrate(Gaussian, _BUDGET), DIM
    few = math.ceil(2 * math.sqrt(d) / mu)
    yield Descent(name="P_SGD", n=n, batch=few, rounds=n // few)
    beta = (n * mu / 2) ** (2 / 3) * _LIPSCHITZ / (d ** (1 / 3) * _DIAMETER)
    best = (2 * n**1.5 * math.sqrt(d) * _LIPSCHITZ / (mu * beta * _DIAMETER)) ** 0.4
    batch = min(max(round(best), 2), n // 2)
    yield SmoothedACSA(name="smoothed P_AGD", n=n, batch=batch, rounds=n // batch, beta=beta)
    rounds = min(n, math.ceil((mu * n) ** 2 / (4 * d)), _MOST_ROUNDS)
    yield Descent(name="P_GD", n=n, batch=n, rounds=rounds)


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Run the methods; `quick` takes two sizes and two seeds in place of three and six."""
    sizes, seeds = ((2000, 8000), 2) if quick else ((5000, 20_000, 80_000), 6)
    planned = [method for n in sizes for method in methods(n)]
    rows: list[dict[str, object]] = []
    for done, method in enumerate(planned):
        progress(done, len(planned))
        rows.append(_row(method, seeds))
    progress(len(planned), len(planned))
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
        ),
    )


def _row(method: Planned, seeds: int) -> dict[str, object]:
    """Run one method on the records of every seed."""
    found = []
    for seed in range(seeds):
        data = Data.drawn(method.n, seed)
        w = method.fit(data, simulated(seed, "shuffled-sco/noise", method.name, method.n))
        found.append(excess(w, data.truth))
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


def statements(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield what should hold of these rows, and whether it does.

    Args:
        rows: With the keys n, method, excess and bound.
    """
    below = sum(number(row["excess"]) < number(row["bound"]) for row in rows)
    yield f"Every excess is below its bound: {yes(below == len(rows))}, {below} of {len(rows)}."
    names = list(dict.fromkeys(str(row["method"]) for row in rows))
    lines = {name: [row for row in rows if row["method"] == name] for name in names}
    pairs = list(zip(lines["P_SGD"], lines["smoothed P_AGD"], strict=True))
    wins = sum(number(smooth["excess"]) < number(plain["excess"]) for plain, smooth in pairs)
    yield f"Smoothed P_AGD is below P_SGD: {yes(wins == len(pairs))}, at {wins} of {len(pairs)} sizes."
    for name, line in lines.items():
        powers = [_power(line, key) for key in ("excess", "bound")]
        yield f"{name}: the excess goes with n to the power {powers[0]:.2f}, its bound with {powers[1]:.2f}."


def _power(line: Sequence[Mapping[str, object]], key: str) -> float:
    """Return the slope of a column against n, both logarithmic."""
    x, y = (np.log([number(row[name]) for row in line]) for name in ("n", key))
    return float(np.polyfit(x, y, 1)[0])
