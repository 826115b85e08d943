"""Linear regression with public records beside private ones (Lowy 2023, Figures 2.2 to 2.5).

Records have standard normal features, and outcomes that are linear in them up to noise of deviation 1/2. Some
are public. Every method starts at the least squares solution of these, and has the best step size and weight
of a grid, which is tuning without privacy; here it is done on other draws than those that are measured. The
error on a new record is exact: the squared distance from the truth, and 1/4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from tacit.experiments.report import Report
from tacit.experiments.semi_dp_digits import digit_rows
from tacit.experiments.semi_dp_statements import (
    digit_statements,
    local_statements,
    statements,
)
from tacit.federation import Disjoint
from tacit.learning import (
    Algorithm,
    LinearObjective,
    NoisyMinibatchSGD,
    PublicMirrorDescent,
    PublicObjective,
    Records,
    SemiLocalSGD,
    SemiPrivateSGD,
    Settings,
    Squared,
    train,
)
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.training import silos_for
from tacit.literature import throw_away_regression_error
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated

__all__ = ["LOCAL", "METHODS", "Cell", "Method", "Size", "report", "run", "table_rows"]

_STD, _DELTA, _CLIP = 0.5, 1e-5, 1.0
SHARES = (0.03, 0.04, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
_SWEPT = (1.0, 2.0)
"""Of these epsilon, all shares are run; of the two least shares, all epsilon."""
LOCAL_SHARES, LOCAL_EPSILONS = (0.03, 0.05, 0.1, 0.2), (16.0, 32.0, 64.0, 128.0)


@dataclass(frozen=True)
class Size:
    """How much there is to learn from.

    Attributes:
        dim: d.
        records: n, public and private.
        rounds: Of all private records, under central trust.
        trials: Draws that are measured.
        tuning: Draws that are tuned on.
        thrown: Draws on which throwing the private records away is measured.
        batch: Records of a step under local trust.
    """

    dim: int = 100
    records: int = 3750
    rounds: int = 20
    trials: int = 10
    tuning: int = 2
    thrown: int = 50
    batch: int = 10


@dataclass(frozen=True)
class Cell:
    """One draw of records, of which some are public.

    Attributes:
        size: Of the problem.
        share: Of public records.
        seed: Of the draw.
    """

    size: Size
    share: float
    seed: int

    @property
    def objective(self) -> LinearObjective:
        """What is minimised: half of the squared error."""
        return LinearObjective(loss=Squared(), features=self.size.dim)

    def parts(self) -> tuple[Records, Records, Array]:
        """Return the private records, the public ones, and the truth."""
        return _drawn(self)

    def start(self) -> Array:
        """Return the least squares solution of the public records, of least norm."""
        _, public, _ = self.parts()
        return np.asarray(np.linalg.lstsq(public.X, public.y, rcond=None)[0])

    def error(self, w: Array) -> float:
        """Return the expected squared error on a new record."""
        return _STD**2 + float(np.sum((w - self.parts()[2]) ** 2))


@lru_cache(maxsize=4)
def _drawn(cell: Cell) -> tuple[Records, Records, Array]:
    rng, (n, d) = simulated(cell.seed, "semi-dp"), (cell.size.records, cell.size.dim)
    kind = np.float32 if n * d > 10**7 else np.float64
    truth = rng.standard_normal(d)
    X = rng.standard_normal((n, d), dtype=kind)
    y = X @ truth.astype(kind) + _STD * rng.standard_normal(n, dtype=kind)
    cut = round(cell.share * n)
    return Records.of(X[cut:], y[cut:]), Records.of(X[:cut], y[:cut]), truth


@lru_cache(maxsize=256)
def _priced(objective: LinearObjective, epsilon: float, rounds: int, n: int) -> Prepared:
    """Return the plan of that many full gradients."""
    return prepare(
        Settings(
            objective=objective,
            algorithm=NoisyMinibatchSGD(rounds=rounds, step_size=1.0),
            trust=TrustModel.CENTRAL,
            budget=PrivacyBudget(epsilon, _DELTA),
            clip=_CLIP,
        ),
        [n],
    )


@dataclass(frozen=True)
class Method:
    """A method, as far as it is not tuned.

    Attributes:
        name: What the table calls it.
        grid: What is tuned, by name: the values of each.
        make: Makes the algorithm for the size and tuned values.
        union: Whether public records are protected as well: one silo holds all.
        public: Whether it trains on public records.
        warm: Whether it starts at their least squares solution.
        trust: Who adds the noise.
    """

    name: str
    grid: dict[str, tuple[float, ...]]
    make: Callable[..., Algorithm]
    union: bool = False
    public: bool = False
    warm: bool = True
    trust: TrustModel = TrustModel.CENTRAL

    def choices(self) -> Iterator[dict[str, float]]:
        """Yield every combination of tuned values."""
        for values in itertools.product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))

    def error(self, cell: Cell, epsilon: float, chosen: dict[str, float]) -> float:
        """Return the error of one run; the seed is of the draw and the noise."""
        private, public, _ = cell.parts()
        if self.union:
            private = Records.of(np.concatenate([public.X, private.X]), np.concatenate([public.y, private.y]))
        local = self.trust is TrustModel.LOCAL
        settings = Settings(
            objective=cell.objective,
            algorithm=self.make(cell.size, **chosen),
            trust=self.trust,
            budget=PrivacyBudget(epsilon) if local else PrivacyBudget(epsilon, _DELTA),
            clip=_CLIP,
            start=cell.start() if self.warm else None,
            public=PublicObjective(cell.objective, public) if self.public else None,
        )
        prepared = None
        if not local:  # all of them ask for the same gradients: the noise need not be searched for anew
            known = _priced(cell.objective, epsilon, cell.size.rounds, len(private))
            prepared = replace(known, problem=replace(known.problem, public=settings.public))
        silos = silos_for(settings, [private], names=["all"], seed=cell.seed)
        return cell.error(train(silos, settings, prepared=prepared).w)

    def tuned(self, size: Size, share: float, epsilon: float) -> dict[str, float]:
        """Return the values with the least mean error on draws of their own."""
        cells = [Cell(size, share, 10_000 + k) for k in range(size.tuning)]

        def mean(chosen: dict[str, float]) -> float:
            return float(np.mean([self.error(cell, epsilon, chosen) for cell in cells]))

        return min(self.choices(), key=mean)


def _sgd(size: Size, *, step: float) -> Algorithm:
    return NoisyMinibatchSGD(rounds=size.rounds, step_size=step)


def _mirror(size: Size, *, step: float) -> Algorithm:
    return PublicMirrorDescent(rounds=size.rounds, step_size=step, warm_start=False)


def _weighted(size: Size, *, step: float, weight: float) -> Algorithm:
    return SemiPrivateSGD(
        rounds=size.rounds,
        step_size=step,
        weight=weight,
        # Public gradients add up to 0 at the start, and their directions do not: few private ones weigh less.
        public_norm="rescale" if weight > 0.5 else "raw",
        metric="plain",
        start="given",
    )


def _in_metric(size: Size, *, step: float, weight: float) -> Algorithm:
    return SemiPrivateSGD(rounds=size.rounds, step_size=step, weight=weight, metric="public", start="given")


def _reports(size: Size, *, step: float, scale: Literal["match", "raw"] = "match") -> Algorithm:
    return SemiLocalSGD(
        batch=Disjoint(size=size.batch),
        randomizer="privunit-g",
        public_scale=scale,
        start="given",
        step_size=step,
        average=0.5,
    )


def _raw(size: Size, *, step: float) -> Algorithm:
    return _reports(size, step=step, scale="raw")


_NEAR = (0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Steps from the public least squares: with the shortest, one hardly leaves it."""

METHODS = (
    Method("private only", {"step": (0.5, 2.0, 5.0, 10.0, 20.0, 40.0)}, _sgd, warm=False),
    Method("DP-SGD", {"step": _NEAR}, _sgd, union=True),
    Method("PDA", {"step": _NEAR}, _mirror, public=True),
    Method(
        "semi-dp",
        {"step": (0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), "weight": (0.03, 0.2, 0.6, 0.9, 0.97, 1.0)},
        _weighted,
        public=True,
    ),
    Method(
        "semi-dp, public metric",
        {"step": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), "weight": (0.6, 0.9, 0.97)},
        _in_metric,
        public=True,
    ),
)
"""What is run under central trust beside throwing the private records away. The last is not in the paper:
Algorithm 11 with clipped public gradients, and its steps in the metric of public features."""

_STEPS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
LOCAL = (
    Method("LDP-SGD", {"step": _STEPS}, _reports, union=True, trust=TrustModel.LOCAL),
    Method("semi-ldp", {"step": _STEPS}, _reports, public=True, trust=TrustModel.LOCAL),
    Method("semi-ldp, raw", {"step": _STEPS}, _raw, public=True, trust=TrustModel.LOCAL),
)
"""The same under local trust; the last takes public gradients as they are."""

CENTRAL_CELLS = [(e, s) for e in EPSILONS for s in SHARES if e in _SWEPT or s in SHARES[:2]]
LOCAL_CELLS = list(itertools.product(LOCAL_EPSILONS, LOCAL_SHARES))


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Run the methods; `quick` takes a few cells, smaller grids and fewer draws."""
    size = replace(Size(), trials=2, tuning=1, batch=25) if quick else Size()
    central = [(1.0, share) for share in SHARES[:3]] if quick else CENTRAL_CELLS
    local = LOCAL_CELLS[5:6] if quick else LOCAL_CELLS
    total, done = len(central) + len(local) + 1, itertools.count()

    def step(_row: int) -> None:
        progress(next(done), total)

    def thinned(methods: Sequence[Method]) -> Sequence[Method]:
        return [_thinned(one) for one in methods] if quick else methods

    rows = table_rows(thinned(METHODS), central, size, step)
    own = table_rows(thinned(LOCAL), local, replace(size, trials=2 if quick else 5), step)
    digits = digit_rows(quick)
    progress(total, total)
    return report(rows, own, digits, size)


def report(
    rows: list[dict[str, object]],
    own: list[dict[str, object]],
    digits: list[dict[str, object]],
    size: Size,
) -> Report:
    """Return what is said of the rows: of central trust, of local trust, and of digits."""
    draws = f"{size.trials} draws; tuned without privacy on {size.tuning} other draws"
    more = {
        "local": _table(
            own,
            "The same where nobody is trusted: every private record speaks once",
            f"d = {size.dim}, n = {size.records}, {size.batch} records a step, each with its own report.",
            *local_statements(own),
        ),
        "digits": _table(
            digits,
            "Test error of ten digits by softmax regression, in place of CIFAR-10",
            *digit_statements(digits),
            error="test error",
        ),
    }
    return replace(
        _table(
            rows,
            "Error with some public records, at equal privacy of the others",
            f"d = {size.dim}, n = {size.records}, {size.rounds} rounds of all private records, delta = "
            f"{_DELTA:g}, clip {_CLIP:g}, {draws}.",
            *statements(rows),
        ),
        more=more,
    )


def _table(
    rows: list[dict[str, object]], title: str, *notes: str, error: str = "expected squared error"
) -> Report:
    return Report(
        rows=rows,
        x="share",
        y="error",
        error="standard error",
        line="method",
        panel="epsilon",
        log_y=True,
        title=title,
        labels={"share": "share of public records", "error": error},
        shown=("epsilon", "share", "method", "error", "standard error"),
        notes=notes,
    )


def _thinned(method: Method) -> Method:
    """Return a method with every second value of its grids."""
    return replace(method, grid={k: v[1::2] for k, v in method.grid.items()})


def table_rows(
    methods: Sequence[Method],
    cells: Iterable[tuple[float, float]],
    size: Size,
    progress: Callable[[int], Any],
) -> list[dict[str, object]]:
    """Return rows of throwing away and of the methods, for every epsilon and share."""
    rows: list[dict[str, object]] = []
    for done, (epsilon, share) in enumerate(cells):
        progress(done)
        rows += [_thrown(size, share, epsilon), *(_row(one, size, share, epsilon) for one in methods)]
    return rows


@lru_cache(maxsize=64)  # of every epsilon alike
def _thrown_errors(size: Size, share: float) -> list[float]:
    cells = (Cell(size, share, 20_000 + k) for k in range(size.thrown))
    return [cell.error(cell.start()) for cell in cells]


def _thrown(size: Size, share: float, epsilon: float) -> dict[str, object]:
    """Return the row of least squares on the public records, of more draws: they are cheap."""
    found = _thrown_errors(size, share)
    n = round(share * size.records)
    exact = throw_away_regression_error(n_public=n, dim=size.dim, noise_std=_STD)
    return _told(epsilon, share, "throw-away", found, step=None, weight=None, exact=exact)


def _row(method: Method, size: Size, share: float, epsilon: float) -> dict[str, object]:
    """Return the row of one method: tuned, then measured on fresh draws."""
    chosen = method.tuned(size, share, epsilon)
    found = [method.error(Cell(size, share, k), epsilon, chosen) for k in range(size.trials)]
    values = {name: chosen.get(name) for name in ("step", "weight")}
    return _told(epsilon, share, method.name, found, **values, exact=None)


def _told(epsilon: float, share: float, method: str, found: list[float], **more: object) -> dict[str, object]:
    return {
        "epsilon": epsilon,
        "share": share,
        "method": method,
        "error": float(np.mean(found)),
        "standard error": float(np.std(found, ddof=1)) / math.sqrt(len(found)),
        **more,
    }
