"""What nobody named against the best of a random search in hindsight, at the same privacy.

Every point of the search is trained with the whole budget and scored on the test part: nobody could search
so without paying for it, which is what makes it a bar. The best of many noisy scores is too high by chance,
so the winner is scored again, on divisions of the records that the search did not see.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.data import Dataset, load
from tacit.errors import PrivacyWarning
from tacit.experiments.report import Report, number, yes
from tacit.learning import ALGORITHMS, Algorithm, FederatedLogisticRegression, make_algorithm
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget
from tacit.randomness import simulated

__all__ = ["DATA", "EPSILONS", "Cell", "Point", "compute", "points", "run", "statements"]

DATA = ("breast-cancer", "credit-default", "compas", "german")
EPSILONS, DELTA = (1.0, 3.0), 1e-5
POINTS, DIVISIONS, CLOSE = 200, 20, 1.0
"""Points of the search, divisions that scores are compared on, and how many points of 100 are close."""
_TESTED = 500  # test records, over all divisions, that a point of the search is scored on
_FIRST_FRESH = 1000  # seeds of the divisions that the search did not see
_SEARCHED = ("whitened", "preconditioned", "accelerated", "minibatch")
_RANGES: Mapping[str, tuple[float, float]] = {
    "rounds": (5, 320),
    "clip": (0.05, 1.0),
    "step_size": (2.0, 500.0),
    "nu": (0.005, 5.0),
    "average": (0.1, 1.0),
    "share": (0.05, 0.7),
    "damping": (0.1, 3.0),
    "ridge": (0.02, 2.0),
    "distance": (4.0, 200.0),
}
_LINES = ("default", "winner, on fresh divisions", "best score of the search")


@dataclass(frozen=True)
class Point:
    """A point of the search; the default is the one where nothing is said.

    Attributes:
        algorithm: With its options; None takes what the rule chooses.
        clip: Share of the Lipschitz constant that gradients are clipped to; None as the rule has it.
        said: What a table says of it.
    """

    algorithm: Algorithm | None = None
    clip: float | None = None
    said: str = ""


@dataclass(frozen=True)
class Cell:
    """One data set at one budget.

    Attributes:
        data: In memory.
        epsilon: What every training may spend.
    """

    data: Dataset
    epsilon: float

    @cached_property
    def searched(self) -> int:
        """On how many divisions a point of the search is scored: small test parts say little."""
        return max(round(_TESTED / (self.data.n // 5)), 1)

    def score(self, point: Point, seed: int) -> float:
        """Train on four fifths of the records, dealt by the seed, and return the accuracy on the others."""
        order = simulated(seed, "defaults/division").permutation(self.data.n)
        held, rest = np.split(order, [self.data.n // 5])
        model = FederatedLogisticRegression(
            algorithm="auto" if point.algorithm is None else point.algorithm,
            clip=point.clip,  # the Lipschitz constant of two classes is 1
            trust="central",
            budget=PrivacyBudget(self.epsilon, DELTA),
            bounds=(-1.0, 1.0),
            classes=range(2),
            random_state=seed,
        )
        model.fit(self.data.X[rest], self.data.y[rest])
        return float(model.score(self.data.X[held], self.data.y[held]))

    def scores(self, point: Point, seeds: Sequence[int]) -> Array:
        """Return the accuracy on every division."""
        return np.array([self.score(point, seed) for seed in seeds])


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the table; `quick` takes two small data sets, 12 points of the search and 5 divisions."""
    names = ("breast-cancer", "german") if quick else DATA
    data = [load(name) for name in names]
    cells = [Cell(one, epsilon) for one in data for epsilon in EPSILONS]
    return compute(
        cells,
        points(12 if quick else POINTS),
        seeds=range(_FIRST_FRESH, _FIRST_FRESH + (5 if quick else DIVISIONS)),
        progress=progress,
    )


def compute(
    cells: Sequence[Cell],
    searched: Sequence[Point],
    *,
    seeds: Sequence[int],
    progress: Callable[[int, int], Any],
) -> Report:
    """Search every cell, and compare its winner with the default.

    Args:
        cells: Data sets and budgets.
        searched: Points of the search.
        seeds: Of the divisions that winner and default are compared on; the search takes others.
        progress: Called with (done, total).
    """
    rows: list[dict[str, object]] = []
    for done, cell in enumerate(cells):
        progress(done, len(cells))
        rows += _rows(cell, searched, seeds)
    progress(len(cells), len(cells))
    return Report(
        rows=rows,
        x="epsilon",
        y="accuracy",
        error="standard error",
        line="line",
        panel="data",
        shown=("data", "epsilon", "line", "accuracy", "standard error", "behind", "error of behind"),
        notes=(
            f"Central trust, replace-one records, delta = {DELTA:g}; four fifths of the records to train. "
            f"Accuracies are means over {len(seeds)} divisions; `behind` is how many points of 100 the "
            "default is behind the winner on the same divisions.",
            f"{len(searched)} points of the search, each trained at the full budget and scored on the test "
            f"part, of {_TESTED} records or one division: a search in hindsight, without privacy.",
            *statements(rows),
        ),
    )


def points(count: int) -> list[Point]:
    """Return points of a random search (Bergstra and Bengio 2012), the same ones for every cell."""
    rng = simulated(0, "defaults/search")
    found = []
    for _ in range(count):
        name = _SEARCHED[int(rng.integers(len(_SEARCHED)))]
        drawn = {key: float(np.exp(rng.uniform(*np.log(ends)))) for key, ends in _RANGES.items()}
        options: dict[str, Any] = {k: v for k, v in drawn.items() if k in ALGORITHMS[name].__struct_fields__}
        options["rounds"] = round(drawn["rounds"])
        said = [f"{key} {value:.3g}" for key, value in {"clip": drawn["clip"], **options}.items()]
        algorithm = make_algorithm(name, **options)
        found.append(Point(algorithm, drawn["clip"], f"{name}: {'; '.join(said)}"))
    return found


def statements(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield, for every cell, whether the default is close to the winner.

    Args:
        rows: With the keys data, epsilon, line, accuracy, behind and error of behind.
    """
    close = 0
    cells = [row for row in rows if row["line"] == _LINES[0]]
    for row in cells:
        behind = number(row["behind"])
        close += behind <= CLOSE
        yield (
            f"{row['data']}, epsilon {number(row['epsilon']):g}: the default is within {CLOSE:g} point of "
            f"the winner: {yes(behind <= CLOSE)}, {behind:.2f} ± {number(row['error of behind']):.2f} behind."
        )
    yield f"Within {CLOSE:g} point of the winner in {close} of {len(cells)} cells."
    lines = [
        {(row["data"], row["epsilon"]): number(row["accuracy"]) for row in rows if row["line"] == line}
        for line in _LINES[1:]
    ]
    chance = [100 * (lines[1][cell] - again) for cell, again in lines[0].items()]
    yield (
        "The best score of the search is higher than what its winner reaches on fresh divisions by "
        f"{np.mean(chance):.2f} points on average, {max(chance):.2f} at most."
    )


def _rows(cell: Cell, searched: Sequence[Point], seeds: Sequence[int]) -> Iterator[dict[str, object]]:
    """Yield the rows of a cell: the default, the winner, and the score that made it one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # of small data sets, at every fit
        tried = [cell.scores(point, range(cell.searched)) for point in searched]
        best = int(np.argmax([scores.mean() for scores in tried]))
        default, winner = (cell.scores(point, seeds) for point in (Point(), searched[best]))
    behind = 100 * (winner - default)
    for line, scores in zip(_LINES, (default, winner, tried[best]), strict=True):
        first = line == _LINES[0]
        yield {
            "data": cell.data.name,
            "epsilon": cell.epsilon,
            "line": line,
            "accuracy": float(scores.mean()),
            "standard error": _error(scores, cell.data.n // 5),
            "behind": float(behind.mean()) if first else None,
            "error of behind": float(behind.std(ddof=1) / math.sqrt(len(seeds))) if first else None,
            "setting": "" if first else searched[best].said,
        }


def _error(scores: Array, tested: int) -> float:
    """Return the standard error of a mean of scores; of a single one, that of its test records."""
    if len(scores) > 1:
        return float(scores.std(ddof=1) / math.sqrt(len(scores)))
    return math.sqrt(float(scores[0]) * (1 - float(scores[0])) / tested)
