"""Private means by bit planes against Laplace and PrivUnit (Girgis 2023, Figures 3.2a to 3.2c).

The figures of the thesis are pictures; the column `reference` holds what an independent computation found for
the same settings. MSE is exact: the worst case for numbers, the mean over the drawn vectors for vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np

from tacit.experiments.reference import reference
from tacit.experiments.report import Report, number
from tacit.means import (
    AdditiveMean,
    BitplaneMean,
    Facts,
    LaplaceNoise,
    MeanEstimator,
    PrivUnitMean,
    RotatedMean,
    Round,
)
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, Shuffled, TrustModel, calibrate
from tacit.randomness import simulated

__all__ = [
    "Case",
    "compute",
    "local_cases",
    "orderings",
    "run",
    "scalar_cases",
    "vector_baselines",
    "vector_cases",
]

PARTIES, DELTA, VECTOR_DIM = 1000, 1e-5, 300
_MORE_TRIALS = 20  # numbers are simulated faster than vectors
HALF = 0.5  # numbers lie in [-1/2, 1/2]
_LOCAL = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)  # epsilons of Figure 3.2a
_SCALAR = (0.25, 0.5, 1.0, 2.0, 3.0)  # of 3.2b
_VECTOR = (0.5, 1.0, 2.0, 3.0)  # of 3.2c


@dataclass(frozen=True, kw_only=True)
class Case:
    """One point of a figure.

    Attributes:
        figure: Which.
        name: Of the line.
        epsilon: Budget.
        estimator: Calibrated to it.
        rows: What the parties hold, shape (n, d); the MSE is that of these rows.
        radius: Norm bound of a row.
        exact: MSE by formula, without the bias of clipping; None where there is no formula.
    """

    figure: str
    name: str
    epsilon: float
    estimator: MeanEstimator
    rows: Array
    radius: float
    exact: float | None

    @property
    def reference(self) -> float | None:
        """What an independent computation found; None where there is none."""
        return reference("private-dme").get((self.figure, self.name, self.epsilon))

    def measured(self, trials: int) -> tuple[float, float]:
        """Return the mean squared error over simulated rounds, and its standard error."""
        n, target = len(self.rows), self.rows.mean(axis=0)
        trials *= _MORE_TRIALS if self.rows.shape[1] == 1 else 1
        rng = simulated(0, self.figure, self.name, repr(self.epsilon))
        rounds = (Round(n=n, radius=self.radius, parties=n, number=t, seed=1) for t in range(trials))
        off = [self.estimator.estimate(self.rows, one, rng=rng) - target for one in rounds]
        squares = np.array([float(one @ one) for one in off])
        return float(squares.mean()), float(squares.std(ddof=1) / math.sqrt(trials))


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figures; `quick` takes one budget of those that are shuffled, and fewer lines."""
    makers: list[Callable[[], Iterator[Case]]] = [partial(local_cases, _LOCAL)]
    planes = ((4, "rdp"),) if quick else tuple((m, shares) for m in (4, 6) for shares in ("ldp", "rdp"))
    makers += [partial(scalar_cases, (e,), planes) for e in ((1.0,) if quick else _SCALAR)]
    samples = ((200, 1),) if quick else ((200, 1), (250, 1), (250, 2))
    for e in (1.0,) if quick else _VECTOR:
        makers.append(partial(vector_baselines, (e,)))
        makers += [partial(vector_cases, (e,), (pair,)) for pair in samples]
    return compute(makers, trials=20 if quick else 50, progress=progress)


def compute(
    makers: Sequence[Callable[[], Iterator[Case]]], *, trials: int, progress: Callable[[int, int], Any]
) -> Report:
    """Measure all cases.

    Args:
        makers: Each makes some cases; calibration takes the time.
        trials: Simulated rounds of a case.
        progress: Called with (done, total).
    """
    rows: list[dict[str, object]] = []
    for done, make in enumerate(makers):
        progress(done, len(makers))
        rows += [_row(case, trials) for case in make()]
    progress(len(makers), len(makers))
    found = sorted(rows, key=lambda row: (str(row["figure"]), str(row["line"]), number(row["epsilon"])))
    return Report(
        rows=found,
        x="epsilon",
        y="measured",
        error="standard error",
        line="line",
        panel="figure",
        log_y=True,
        notes=(
            "Synthetic data, as in the thesis: a: one number, at its worst place; b: 1000 numbers at their "
            f"worst place; c: 1000 random unit vectors with d = {VECTOR_DIM}. In b and c, delta = {DELTA:g}.",
            "MSE is exact, without the bias of clipping in c; measured is over simulated rounds, with it.",
            "The thesis shows pictures only, so no value of it can be compared; `reference` is an "
            "independent computation for the same settings (in c with a decoder of slightly larger error).",
            *orderings(found),
        ),
    )


def local_cases(epsilons: Sequence[float]) -> Iterator[Case]:
    """Yield Figure 3.2a: one number under local trust, Laplace noise against m = 1 to 4 bits."""
    for epsilon in epsilons:
        noise = AdditiveMean(dim=1, noise=LaplaceNoise(1 / epsilon))
        yield _scalar("a: local, n = 1", "Laplace", epsilon, noise, 1, 0.0)
        for m in (1, 2, 3, 4):
            planes = BitplaneMean.calibrated(
                dim=1, planes=m, samples=1, budget=PrivacyBudget(epsilon), n=1, trust=TrustModel.LOCAL
            )
            name = f"{m} bit{'s' if m > 1 else ''}"
            yield _scalar("a: local, n = 1", name, epsilon, planes, 1, _worst_number(m))


def scalar_cases(epsilons: Sequence[float], planes: Sequence[tuple[int, str]]) -> Iterator[Case]:
    """Yield Figure 3.2b: shuffled numbers, Laplace noise against pairs (m, how planes share the budget)."""
    figure = f"b: shuffled, n = {PARTIES}"
    for epsilon in epsilons:
        budget = PrivacyBudget(epsilon, DELTA)
        for randomizer in ("general", "laplace"):
            noise = AdditiveMean(dim=1, noise=LaplaceNoise(1 / local_level(budget, randomizer)))
            yield _scalar(figure, _baseline("Laplace", randomizer), epsilon, noise, PARTIES, 0.0)
        for m, shares in planes:
            mean = BitplaneMean.calibrated(
                dim=1, planes=m, samples=1, budget=budget, n=PARTIES, trust=TrustModel.SHUFFLE,
                allocation=shares,
            )  # fmt: skip
            yield _scalar(figure, f"{m} bits, {shares}", epsilon, mean, PARTIES, _worst_number(m))


def vector_baselines(epsilons: Sequence[float]) -> Iterator[Case]:
    """Yield PrivUnit of Figure 3.2c, priced by a bound for any message, as in the thesis, and by its own."""
    for epsilon in epsilons:
        budget = PrivacyBudget(epsilon, DELTA)
        any_message = PrivUnitMean(
            dim=VECTOR_DIM, local_epsilon=local_level(budget, "general"), lift=False, trust=TrustModel.SHUFFLE
        )
        its_own = PrivUnitMean.calibrated(
            dim=VECTOR_DIM, budget=budget, n=PARTIES, trust=TrustModel.SHUFFLE, lift=False
        )
        for randomizer, mean in (("general", any_message), ("privunit", its_own)):
            name, exact = _baseline("PrivUnit", randomizer), mean.error(PARTIES).variance
            yield _vectors(name, epsilon, mean, exact)


def vector_cases(epsilons: Sequence[float], samples: Sequence[tuple[int, int]]) -> Iterator[Case]:
    """Yield Figure 3.2c: shuffled unit vectors by pairs (s messages a plane, m planes), in several boxes."""
    for epsilon in epsilons:
        for s, m in samples:
            levels = RotatedMean.calibrated(
                dim=VECTOR_DIM, planes=m, samples=s, budget=PrivacyBudget(epsilon, DELTA), n=PARTIES,
                trust=TrustModel.SHUFFLE, encoder="orthogonal", kappa=3.0,
            )  # fmt: skip
            # Neither the box nor the rotation enters the price.
            boxes: list[tuple[str, dict[str, Any]]] = [
                (f"kappa={k:g}", {"kappa": k}) for k in (2.0, 3.0, 4.0)
            ]
            boxes.append(("certified", {"kappa": None, "encoder": "hadamard"}))
            for box, change in boxes:
                mean: RotatedMean = msgspec.structs.replace(levels, **change)
                coded = mean.coded_variance_on(_unit_vectors(), Round(n=PARTIES, radius=1.0))
                # Dropping the padding leaves about d / D of the error.
                exact = coded * mean.dim / mean.coded_dim
                yield _vectors(f"s={s}, m={m}, {box}", epsilon, mean, exact)


def local_level(budget: PrivacyBudget, randomizer: str) -> float:
    """Return the largest local level of one shuffled message that meets a budget.

    Args:
        budget: For the observer of the batch.
        randomizer: "general" for a bound that holds for any message, as in the thesis, or a name of its own.
    """
    return 1 / calibrate(lambda x: Shuffled(1 / x, PARTIES, randomizer), budget, low=1 / 29)


def _unit_vectors() -> Array:
    """Return the vectors of Figure 3.2c."""
    X = simulated(0, "private-dme/vectors").normal(size=(PARTIES, VECTOR_DIM))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _vectors(name: str, epsilon: float, estimator: MeanEstimator, exact: float) -> Case:
    """Return a case of the vectors."""
    return Case(
        figure=f"c: shuffled vectors, n = {PARTIES}",
        name=name,
        epsilon=epsilon,
        estimator=estimator,
        rows=_unit_vectors(),
        radius=1.0,
        exact=exact,
    )


def _scalar(figure: str, name: str, epsilon: float, estimator: MeanEstimator, n: int, at: float) -> Case:
    """Return a case of n numbers at one place."""
    return Case(
        figure=figure,
        name=name,
        epsilon=epsilon,
        estimator=estimator,
        rows=np.full((n, 1), at),
        radius=HALF,
        exact=estimator.error(n, Facts(parties=n, radius=HALF)).variance,
    )


def _worst_number(planes: int) -> float:
    """Return a number in [-1/2, 1/2] whose last bit is rounded with probability 1/2."""
    return 0.5**planes - HALF


def _baseline(name: str, randomizer: str) -> str:
    """Return the name of a baseline with the bound that prices it."""
    return f"{name}, any-message bound" if randomizer == "general" else f"{name}, bound of its own"


def _row(case: Case, trials: int) -> dict[str, object]:
    """Return the row of a case."""
    measured, stderr = case.measured(trials)
    return {
        "figure": case.figure,
        "line": case.name,
        "epsilon": case.epsilon,
        "MSE": case.exact,
        "measured": measured,
        "standard error": stderr,
        "reference": case.reference,
        "bits": case.estimator.bits_per_party(1),
    }


def orderings(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Say where bit planes win, one sentence a figure."""
    for figure in dict.fromkeys(str(row["figure"]) for row in rows):
        mine = [row for row in rows if row["figure"] == figure]
        for baseline in dict.fromkeys(str(r["line"]) for r in mine if _is_baseline(str(r["line"]))):
            base = {r["epsilon"]: number(r["MSE"]) for r in mine if r["line"] == baseline}
            better = []
            for line in dict.fromkeys(str(r["line"]) for r in mine if not _is_baseline(str(r["line"]))):
                wins = [
                    r["epsilon"] for r in mine if r["line"] == line and number(r["MSE"]) < base[r["epsilon"]]
                ]
                better += [f"{line} at {', '.join(f'{e:g}' for e in wins)}"] if wins else []
            yield f"{figure}: below {baseline}, by exact MSE: {'; '.join(better) if better else 'none'}."


def _is_baseline(line: str) -> bool:
    return line.startswith(("Laplace", "PrivUnit"))
