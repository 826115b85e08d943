"""Private means by bit planes against Laplace and PrivUnit (Girgis 2023, Figures 3.2a to 3.2c).

The figures of the thesis are pictures; the column `reference` holds what an independent computation found for
the same settings. MSE is exact: the worst case for numbers, the mean over the drawn vectors for vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from tacit.experiments.report import Report
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

_LOCAL: Mapping[float, tuple[float, ...]] = {
    0.5: (8.0, 4.16770, 8.02096, 11.52640, 14.21222),
    1.0: (2.0, 1.17067, 2.02135, 2.87011, 3.53468),
    2.0: (0.5, 0.43102, 0.52284, 0.70670, 0.86584),
    3.0: (0.22222, 0.30514, 0.24736, 0.30705, 0.37242),
    4.0: (0.125, 0.26901, 0.15301, 0.16823, 0.20059),
    5.0: (0.08, 0.25683, 0.11121, 0.10499, 0.12191),
}
"""Figure 3.2a, computed independently: epsilon to Laplace and m = 1 to 4."""

_SCALAR: Mapping[float, tuple[float, ...]] = {
    0.25: (1.061e-3, 2.80e-4, 2.66e-4, 2.88e-4, 2.60e-4),
    0.5: (4.636e-4, 9.22e-5, 8.79e-5, 9.23e-5, 8.33e-5),
    1.0: (2.339e-4, 3.21e-5, 3.06e-5, 2.96e-5, 2.66e-5),
    2.0: (1.505e-4, 1.40e-5, 1.29e-5, 1.08e-5, 9.23e-6),
    3.0: (1.364e-4, 1.10e-5, 9.89e-6, 7.86e-6, 6.23e-6),
}
"""Figure 3.2b: epsilon to Laplace, m = 4 (ldp, rdp shares), m = 6 (ldp, rdp shares)."""

_VECTOR: Mapping[float, tuple[float, Mapping[tuple[int, int], tuple[float, float, float]]]] = {
    0.5: (
        0.4494,
        {(200, 1): (0.329, 0.741, 1.32), (250, 1): (0.327, 0.737, 1.31), (250, 2): (0.338, 0.761, 1.35)},
    ),
    1.0: (
        0.2330,
        {(200, 1): (0.107, 0.242, 0.432), (250, 1): (0.104, 0.235, 0.419), (250, 2): (0.103, 0.231, 0.410)},
    ),
    2.0: (
        0.1541,
        {
            (200, 1): (0.0403, 0.0918, 0.164),
            (250, 1): (0.0373, 0.0850, 0.152),
            (250, 2): (0.0336, 0.0756, 0.134),
        },
    ),
    3.0: (
        0.1407,
        {
            (200, 1): (0.0252, 0.0578, 0.104),
            (250, 1): (0.0223, 0.0513, 0.0920),
            (250, 2): (0.0184, 0.0414, 0.0734),
        },
    ),
}
"""Figure 3.2c: epsilon to PrivUnit, and (s, m) to kappa = 2, 3, 4."""


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
        reference: What an independent computation found; None where there is none.
    """

    figure: str
    name: str
    epsilon: float
    estimator: MeanEstimator
    rows: Array
    radius: float
    exact: float | None
    reference: float | None

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
    makers: list[Callable[[], Iterator[Case]]] = [lambda: local_cases(tuple(_LOCAL))]
    epsilons = (1.0,) if quick else tuple(_SCALAR)
    planes = ((4, "rdp"),) if quick else tuple((m, shares) for m in (4, 6) for shares in ("ldp", "rdp"))
    makers += [lambda e=e: scalar_cases((e,), planes) for e in epsilons]  # type: ignore[misc]
    samples = ((200, 1),) if quick else ((200, 1), (250, 1), (250, 2))
    for e in (1.0,) if quick else tuple(_VECTOR):
        makers.append(lambda e=e: vector_baselines((e,)))  # type: ignore[misc]
        makers += [lambda e=e, pair=pair: vector_cases((e,), (pair,)) for pair in samples]  # type: ignore[misc]
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
    found = sorted(rows, key=lambda row: (str(row["figure"]), str(row["line"]), float(str(row["epsilon"]))))
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
        values = _LOCAL.get(epsilon, (None,) * 5)
        noise = AdditiveMean(dim=1, noise=LaplaceNoise(1 / epsilon))
        yield _scalar("a: local, n = 1", "Laplace", epsilon, noise, 1, 0.0, values[0])
        for m in (1, 2, 3, 4):
            planes = BitplaneMean.calibrated(
                dim=1, planes=m, samples=1, budget=PrivacyBudget(epsilon), n=1, trust=TrustModel.LOCAL
            )
            worst = _worst_number(m)
            yield _scalar(
                "a: local, n = 1", f"{m} bit{'s' if m > 1 else ''}", epsilon, planes, 1, worst, values[m]
            )


def scalar_cases(epsilons: Sequence[float], planes: Sequence[tuple[int, str]]) -> Iterator[Case]:
    """Yield Figure 3.2b: shuffled numbers, Laplace noise against pairs (m, how planes share the budget)."""
    figure, lines = f"b: shuffled, n = {PARTIES}", ((4, "ldp"), (4, "rdp"), (6, "ldp"), (6, "rdp"))
    for epsilon in epsilons:
        budget, values = PrivacyBudget(epsilon, DELTA), _SCALAR.get(epsilon, (None,) * 5)
        for randomizer, said in (("general", values[0]), ("laplace", None)):
            noise = AdditiveMean(dim=1, noise=LaplaceNoise(1 / local_level(budget, randomizer)))
            yield _scalar(figure, _baseline("Laplace", randomizer), epsilon, noise, PARTIES, 0.0, said)
        for m, shares in planes:
            mean = BitplaneMean.calibrated(
                dim=1, planes=m, samples=1, budget=budget, n=PARTIES, trust=TrustModel.SHUFFLE,
                allocation=shares,
            )  # fmt: skip
            said = dict(zip(lines, values[1:], strict=True)).get((m, shares))
            yield _scalar(figure, f"{m} bits, {shares}", epsilon, mean, PARTIES, _worst_number(m), said)


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
        said = _VECTOR[epsilon][0] if epsilon in _VECTOR else None
        exact = any_message.error(PARTIES).variance
        yield _vectors(_baseline("PrivUnit", "general"), epsilon, any_message, exact, said)
        exact = its_own.error(PARTIES).variance
        yield _vectors(_baseline("PrivUnit", "privunit"), epsilon, its_own, exact, None)


def vector_cases(epsilons: Sequence[float], samples: Sequence[tuple[int, int]]) -> Iterator[Case]:
    """Yield Figure 3.2c: shuffled unit vectors by pairs (s messages a plane, m planes), in several boxes."""
    for epsilon in epsilons:
        table = _VECTOR[epsilon][1] if epsilon in _VECTOR else {}
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
            values = (*table.get((s, m), (None,) * 3), None)
            for (box, change), value in zip(boxes, values, strict=True):
                mean: RotatedMean = msgspec.structs.replace(levels, **change)
                coded = mean.coded_variance_on(_unit_vectors(), Round(n=PARTIES, radius=1.0))
                # Dropping the padding leaves about d / D of the error.
                exact = coded * mean.dim / mean.coded_dim
                yield _vectors(f"s={s}, m={m}, {box}", epsilon, mean, exact, value)


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


def _vectors(name: str, epsilon: float, estimator: MeanEstimator, exact: float, said: float | None) -> Case:
    """Return a case of the vectors."""
    return Case(
        figure=f"c: shuffled vectors, n = {PARTIES}",
        name=name,
        epsilon=epsilon,
        estimator=estimator,
        rows=_unit_vectors(),
        radius=1.0,
        exact=exact,
        reference=said,
    )


def _scalar(
    figure: str, name: str, epsilon: float, estimator: MeanEstimator, n: int, at: float, said: float | None
) -> Case:
    """Return a case of n numbers at one place."""
    return Case(
        figure=figure,
        name=name,
        epsilon=epsilon,
        estimator=estimator,
        rows=np.full((n, 1), at),
        radius=HALF,
        exact=estimator.error(n, Facts(parties=n, radius=HALF)).variance,
        reference=said,
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
            base = {r["epsilon"]: float(str(r["MSE"])) for r in mine if r["line"] == baseline}
            better = []
            for line in dict.fromkeys(str(r["line"]) for r in mine if not _is_baseline(str(r["line"]))):
                wins = [
                    r["epsilon"]
                    for r in mine
                    if r["line"] == line and float(str(r["MSE"])) < base[r["epsilon"]]
                ]
                better += [f"{line} at {', '.join(f'{e:g}' for e in wins)}"] if wins else []
            yield f"{figure}: below {baseline}, by exact MSE: {'; '.join(better) if better else 'none'}."


def _is_baseline(line: str) -> bool:
    return line.startswith(("Laplace", "PrivUnit"))
