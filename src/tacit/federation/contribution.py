"""What the units of a batch contribute, and which plans a silo can answer with what it knows of statistics.

Whether a statistic can be evaluated at a point at all is found out on no units, where nothing is private.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np

from tacit.errors import ParameterError, RefusalError
from tacit.federation.batches import Full, Poisson
from tacit.federation.correlated import CorrelatedStep
from tacit.federation.descent import Descent, UnitSteps
from tacit.federation.epochs import Descend
from tacit.federation.guarded import guarded_rows, guarded_scaled, guarded_sum
from tacit.federation.limits import MOST_STATE
from tacit.federation.plan import Plan
from tacit.federation.query import (
    AcuteStatistic,
    AlignedStatistic,
    AnyStatistic,
    ConvexStatistic,
    FusedStatistic,
    JoinedStatistic,
    OneHotStatistic,
    PublicStatistic,
    ScaledStatistic,
    StatefulStatistic,
    Statistic,
    SteppingStatistic,
    Units,
)
from tacit.federation.steps import AnyStep, Group, HiddenRun, HiddenWalk, Measure, Walk
from tacit.means import Message, Round, ScaledEncoder, SumEncoder
from tacit.means.additive import is_acute, is_one_hot
from tacit.numerics import Array, IntArray
from tacit.privacy import TrustModel

__all__ = ["Contributions", "States"]

States = dict[str, Array]
"""What stateful statistics keep, by name: one row per unit."""

_FORMS = 256
"""A server that keeps inventing forms must not fill the memory."""


class Contributions:
    """The statistics of a silo, evaluated on its units.

    Args:
        units: All units of the silo.
        statistics: What can be computed from them, by name.
    """

    def __init__(self, units: Units, statistics: Mapping[str, AnyStatistic]) -> None:
        self._units = units
        # Looked at once: to look for the methods of an object takes longer than most of a round.
        self._statistics = dict(statistics)
        self._stateful: dict[str, StatefulStatistic] = _offering(self._statistics, StatefulStatistic)
        forgetful = {n: s for n, s in self._statistics.items() if n not in self._stateful}
        self._fused: dict[str, FusedStatistic] = _offering(forgetful, FusedStatistic)
        self._scaled: dict[str, ScaledStatistic] = _offering(forgetful, ScaledStatistic)
        offered: dict[str, JoinedStatistic] = _offering(forgetful, JoinedStatistic)
        self._joined = {n: s for n, s in offered.items() if n in self._fused and s.joins is True}
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._tried: dict[tuple[Any, ...], bool] = {}

    @property
    def names(self) -> list[str]:
        """The statistics that a plan may name."""
        return list(self._statistics)

    def check(self, step: AnyStep, at: Mapping[str, Array]) -> list[bool]:
        """Refuse points that a statistic of the step cannot be evaluated at, whatever the data.

        Only the form of the points decides, so what is returned holds for all queries of that form.

        Returns:
            For every statistic whether `messages` can do without its rows.

        Raises:
            RefusalError: A statistic fails on no units, or its rows have another length than the estimator's.
        """
        form = tuple((name, point.dtype.char, point.shape) for name, point in at.items())
        if len(self._tried) >= _FORMS:
            self._tried.clear()
        found = []
        for measure in step.measures:
            estimator = measure.estimator
            # Of an estimator nothing else matters: kinds of rounds that differ in their noise are tried once.
            key = (measure.statistic, type(estimator), estimator.dim, estimator.sums, form)
            if key not in self._tried:
                self._tried[key] = self._try(measure, at)
            found.append(self._tried[key])
        if isinstance(step, HiddenRun) and step.uses_public:
            self.public_units(step.measures[0], at)
        return found

    def public_units(self, measure: Measure, at: Mapping[str, Array]) -> Any:
        """Return the public records of a query as units of a statistic.

        Raises:
            RefusalError: Records of another form, or that the statistic fails on.
        """
        statistic = cast(PublicStatistic, self._statistics[measure.statistic])
        try:
            return statistic.public_units(at["public"], at["public_outcomes"])
        except ParameterError as error:  # no unit was involved, so it may be shown
            raise RefusalError(str(error)) from error

    def joined(self, measure: Measure) -> JoinedStatistic | None:
        """Return what adds up rows of a measure with those of other silos; None where nothing does."""
        return self._joined.get(measure.statistic) if measure.estimator.sums else None

    def descend(self, measure: Measure, public: Any, *, radius: float) -> Descend:
        """Return what takes the steps of a hidden run; a unit that the statistic fails on counts as zero.

        Args:
            measure: Of the run.
            public: Units of public records; None where it uses none.
            radius: What rows are clipped to, public ones as well.
        """
        sides = {False: self._units} if public is None else {False: self._units, True: public}
        return Descent({side: self._steps(measure, units, radius) for side, units in sides.items()})

    def _steps(self, measure: Measure, units: Any, radius: float) -> UnitSteps:
        """Return what takes steps on units."""
        statistic = self._statistics[measure.statistic]
        stepper = None
        if isinstance(statistic, SteppingStatistic):
            with suppress(Exception):  # whatever it raises may tell about a unit
                stepper = statistic.stepper(units)

        def rows(index: IntArray, w: Array) -> Array:
            return self.rows(measure, units.take(index), {"w": w})

        return UnitSteps(units=len(units), rows=rows, radius=radius, stepper=stepper)

    def messages(
        self,
        measure: Measure,
        units: Any,
        *,
        at: Mapping[str, Array],
        round: Round,
        fused: bool,
        party: int,
        rng: np.random.Generator,
        states: States | None = None,
        total: Array | None = None,
    ) -> list[Message]:
        """Return the messages about one mean; rows are added up unseen where that is possible.

        Their number and their lengths depend on the measure and the public facts only. Where the sum of the
        clipped rows is given, units are not asked for.
        """
        estimator, name = measure.estimator, measure.statistic
        if fused and not estimator.sums:
            scaled = cast(ScaledEncoder, estimator)
            form = (estimator.dim, self._dtypes[name])
            factors, vectors = guarded_scaled(self._scaled[name], units, at, round.radius, form)
            return scaled.encode_scaled(factors, vectors, round, party=party, rng=rng)
        if fused:
            # What takes sums is a SumEncoder; to look for its methods takes as long as to encode.
            encoder = cast(SumEncoder, estimator)
            if total is None:
                total = guarded_sum(self._fused[name], units, at, round.radius, encoder)
            if total is not None:
                return encoder.encode_sum(total, rows=round.n, round=round, party=party, rng=rng)
        return estimator.encode(self.rows(measure, units, at, states), round, party=party, rng=rng)

    def rows(
        self, measure: Measure, units: Any, at: Mapping[str, Array], states: States | None = None
    ) -> Array:
        """Return one row per unit, shape (k, dim), float64, not clipped; zero where the statistic fails.

        What a stateful statistic keeps is replaced in `states`, whose rows are those units.
        """
        name, dim = measure.statistic, measure.estimator.dim
        statistic = self._stateful.get(name)
        if statistic is None:
            return guarded_rows(cast(Statistic, self._statistics[name]), units, at, dim)
        states = {name: np.zeros((len(units), statistic.state_size))} if states is None else states
        joined, units = _Joined(statistic), _WithState(units, states[name])
        done, rows, kept = np.split(
            guarded_rows(joined, units, at, 1 + dim + statistic.state_size), [1, 1 + dim], axis=1
        )
        # A unit that it fails on keeps what it had, and so does one whose numbers would be spoiled for good.
        good = (done == 1) & np.asarray(np.isfinite(kept)).all(axis=1, keepdims=True)
        states[name] = np.where(good, kept, states[name])
        return rows

    def states(self, plan: Plan, *, units: int) -> dict[str, tuple[int, int]]:
        """Return version and size of what each stateful statistic of a plan keeps, by name.

        Raises:
            ParameterError: The plan asks for one of them about a part of the units, in a walk, twice in a
                step, or under central trust; or what is kept of all units is too much for a ledger.
        """
        found = {}
        for step, _ in plan.kinds:
            for measure in step.measures:
                statistic = self._stateful.get(measure.statistic)
                if statistic is None:
                    continue
                if not isinstance(step.batch, Full | Poisson) or isinstance(
                    step, Walk | HiddenRun | CorrelatedStep
                ):
                    raise ParameterError(
                        f"the statistic {measure.statistic!r} keeps a state, which needs full or Poisson "
                        "batches and no walk: what is kept would tell which units another sample held."
                    )
                if sum(other.statistic == measure.statistic for other in step.measures) > 1:
                    raise ParameterError(
                        f"the statistic {measure.statistic!r} keeps a state, so a step may name it once."
                    )
                found[measure.statistic] = (int(statistic.state_version), int(statistic.state_size))
        if found and plan.trust is TrustModel.CENTRAL:
            raise ParameterError(
                f"the statistic {next(iter(found))!r} keeps a state, which needs local trust: under central "
                "trust a silo has no ledger, and would have lost it where a run goes on."
            )
        if units * sum(size for _, size in found.values()) > MOST_STATE:
            raise ParameterError(f"what is kept of all units must be at most {MOST_STATE} numbers.")
        return found

    def check_hidden(self, plan: Plan) -> None:
        """Refuse hidden steps along statistics of which the silo does not know what their price rests on.

        Raises:
            ParameterError: A statistic is not known to be convex, clipped as it is, and that smooth; or it
                takes no public records, and a run has some.
        """
        for step, _ in plan.kinds:
            if not isinstance(step, HiddenWalk | HiddenRun):
                continue
            what = "run" if isinstance(step, HiddenRun) else "walk"
            name = step.measures[0].statistic
            facts = self._statistics[name]
            if not isinstance(facts, ConvexStatistic) or facts.clip_safe is not True:
                raise ParameterError(
                    f"a hidden {what} needs a statistic that is known to be the gradient of a convex loss, "
                    f"however it is clipped, and {name!r} is not."
                )
            if not 0 <= facts.smoothness <= step.smoothness:  # stated as what is allowed: NaN fails it
                raise ParameterError(
                    f"smoothness must be at least the {facts.smoothness!r} that the silo knows of the "
                    f"statistic {name!r}, got {step.smoothness!r}."
                )
            if isinstance(step, HiddenRun) and step.uses_public and not isinstance(facts, PublicStatistic):
                raise ParameterError(
                    f"a hidden run with public records needs a statistic that takes some, and {name!r} does "
                    "not."
                )

    def check_acute(self, plan: Plan) -> None:
        """Refuse a price that rests on what rows there can be, where the silo does not know them.

        Raises:
            ParameterError: A statistic is not known to be acute, or one-hot.
        """
        for step, _ in plan.kinds:
            for measure in step.measures:
                if is_acute(measure.estimator) and not self._has(measure, AcuteStatistic, "acute"):
                    raise ParameterError(
                        "an acute mean needs a statistic of whose rows no two are known to be at more than a "
                        f"right angle, and {measure.statistic!r} is not."
                    )
                if is_one_hot(measure.estimator) and not self._has(measure, OneHotStatistic, "one_hot"):
                    raise ParameterError(
                        "a mean of one-hot rows needs a statistic that is known to make such, and "
                        f"{measure.statistic!r} is not."
                    )

    def _has(self, measure: Measure, protocol: Any, promise: str) -> bool:
        """Whether a statistic follows a protocol, and keeps what its name promises."""
        statistic = self._statistics[measure.statistic]
        return isinstance(statistic, protocol) and getattr(statistic, promise) is True

    def check_aligned(self, plan: Plan) -> None:
        """Refuse prices of several rounds together, where the silo does not know what they have in common.

        Raises:
            ParameterError: A statistic is not known to be x x^T, or x p^T, or the x may differ.
        """
        groups = [one for one, _ in plan.steps if isinstance(one, Group) and one.aligned]
        for group in groups:
            lengths = set()
            for measure in [measure for step, _ in group.steps for measure in step.measures]:
                statistic, squared = self._statistics[measure.statistic], is_acute(measure.estimator)
                if not isinstance(statistic, AlignedStatistic) or statistic.squared is not squared:
                    raise ParameterError(
                        "an aligned group needs statistics that are known to be x x^T, for acute means, and "
                        f"x p^T, for others; {measure.statistic!r} is not {'x x^T' if squared else 'x p^T'}."
                    )
                lengths.add(statistic.length)
                if squared and not measure.max_radius <= statistic.length**2:  # NaN fails it
                    raise ParameterError(
                        "max_radius of x x^T in an aligned group must be at most the squared length "
                        f"of all x, {statistic.length**2!r}, got {measure.max_radius!r}."
                    )
            if len(lengths) > 1:
                raise ParameterError("all statistics of an aligned group must be of the same x.")

    def _try(self, measure: Measure, at: Mapping[str, Array]) -> bool:
        """Evaluate a statistic on no units; return whether its rows need not be materialised."""
        estimator, name = measure.estimator, measure.statistic
        fused = self._fused.get(name) if estimator.sums else None
        multiples = self._scaled.get(name) if hasattr(estimator, "encode_scaled") else None
        nothing = self._units.take(np.arange(0))
        try:
            stateful = self._stateful.get(name)
            if stateful is None:
                given = cast(Statistic, self._statistics[name])(nothing, at)
            else:
                given, kept = stateful.update(nothing, at, np.zeros((0, stateful.state_size)))
                _check_empty(name, "keeps for", kept, stateful.state_size)
            _check_empty(name, "gives", given, estimator.dim)
            total = None if fused is None else fused.clipped_sum(nothing, at, 1.0, estimator.sums[-1])
            scaled = None if multiples is None else multiples.scaled(nothing, at, 1.0)
        except RefusalError:
            raise
        except Exception as error:  # whatever a statistic raises; no unit was involved, so it may be shown
            raise RefusalError(f"the statistic {name!r} cannot be evaluated at such a point.") from error
        if scaled is not None:  # no unit may decide in which precision others are rounded
            kind = scaled[1].dtype
            return kind.type in (np.float32, np.float64) and self._dtypes.setdefault(name, kind) == kind
        return total is not None and total.dtype in estimator.sums


@cache
def _members(protocol: Any) -> frozenset[str]:
    """Return the names that a protocol without bases asks for."""
    return frozenset(name for name in (*vars(protocol), *protocol.__annotations__) if name[0] != "_")


def _offering(statistics: Mapping[str, AnyStatistic], protocol: Any) -> dict[str, Any]:
    """Return the statistics that follow a protocol.

    As `isinstance` says, which up to Python 3.11 searches the protocol anew for each: a sixth of a run of
    small silos.
    """
    names = _members(protocol)
    return {n: s for n, s in statistics.items() if all(getattr(s, each, None) is not None for each in names)}


@dataclass(frozen=True)
class _WithState:
    """Units with what was kept of them."""

    units: Any
    state: Array

    def __len__(self) -> int:
        return len(self.units)

    def take(self, index: IntArray) -> _WithState:
        """Return a part of them."""
        return _WithState(self.units.take(index), self.state[index])


@dataclass(frozen=True)
class _Joined:
    """A stateful statistic as one whose rows end in what is kept, so that both fail together."""

    statistic: StatefulStatistic

    def __call__(self, units: _WithState, at: Mapping[str, Array]) -> Array:
        """Return a one, the row and the state of each unit side by side; zeros would say that it failed."""
        # A copy for every attempt: one that fails half-way through must not have changed what others kept.
        rows, kept = map(np.asarray, self.statistic.update(units.units, at, units.state.copy()))
        if rows.ndim != 2 or kept.shape != units.state.shape:  # what is joined must come apart at its seams
            raise ValueError
        return np.concatenate([np.ones((len(units), 1)), rows, kept], axis=1)


def _check_empty(name: str, verb: str, values: Any, width: int) -> None:
    """Refuse what a statistic says about no units if it has another shape; the dtype may tell of a unit."""
    shape = np.shape(values)
    if shape != (0, width):
        raise RefusalError(
            f"the statistic {name!r} {verb} no units the shape {shape}, the plan expects (0, {width})."
        )
