"""A job that trains a fair classifier: data to model, scores by group and the price of fairness."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from tacit.errors import DataError, ParameterError
from tacit.fairness import (
    FairLogisticRegression,
    FairnessSummary,
    Groups,
    MetricTable,
    PrivateFairLogisticRegression,
    attribute_names,
    declared_groups,
    metric_table,
    pareto,
    summarise,
    violation,
)
from tacit.federation import Plan
from tacit.jobs.config import JobConfig
from tacit.jobs.data import JobData, load_job_data, with_description
from tacit.jobs.fair_groups import check_named, known_groups, sensitive_frame
from tacit.jobs.fair_model import saved_model
from tacit.jobs.fair_result import CurvePoint, FairResult
from tacit.jobs.ledgers import Ledgers
from tacit.jobs.model import TrainedModel
from tacit.jobs.terms import JobTerms
from tacit.ledger import run_about
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, NonPrivate, Part, PrivacyBudget, TrustModel, guarantee

__all__ = ["CURVE_WEIGHTS", "FairJob"]

CURVE_WEIGHTS: Final = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Weights of the penalty that the curve of a run is drawn through."""

_L2: Final = 1e-4
_PARTS: Final = {"sensitive": Part.SENSITIVE, "record": Part.ALL}


@dataclass
class FairJob:
    """A job with its data loaded; `run` trains.

    Attributes:
        config: What to do; it names a sensitive column.
        data: Records and silos.

    Raises:
        DataError: The label is no class, the table cannot be used, or a sensitive column names no groups.
    """

    config: JobConfig
    data: JobData = field(init=False)

    def __post_init__(self) -> None:
        self.config = with_description(self.config)
        self.data = load_job_data(self.config)
        if not self.data.classes:
            raise DataError("the label must be a class for a fair model, and it is a number.")
        if self.config.protect == "sensitive":
            self.data = _with_labels(self.data)
        self._terms = JobTerms(self.config, self.data.facts)
        self._labels = np.asarray(self.data.classes, dtype=object)
        check_named(self.config, self.data)
        self._sensitive = sensitive_frame(self.data)

    @property
    def ledger_part(self) -> Part | None:
        """What a ledger that pays for the job must be about; None where nothing is claimed."""
        return None if self.config.protect is None else _PARTS[self.config.protect]

    @property
    def budget(self) -> PrivacyBudget | None:
        """What each silo may spend; None where nothing is claimed.

        Raises:
            ParameterError: No delta for so few records.
        """
        if self.config.protect is None:
            return None
        return PrivacyBudget(self.config.epsilon, self._terms.delta)

    @property
    def _run_name(self) -> str:
        """What ledgers call the run, without the attributes that it is about."""
        return self._terms.run_name(self.config.trust)

    @property
    def run_names(self) -> tuple[str, ...]:
        """What ledgers call the run; none where nothing is claimed."""
        match self.ledger_part:
            case None:
                return ()
            case Part.SENSITIVE:
                return (run_about(self._run_name, attribute_names(self._sensitive)),)
            case _:
                return (self._run_name,)

    def accounts(self, ledger: Path) -> Ledgers:
        """Open the accounts that `run` charges, to see what it has reserved in them.

        Args:
            ledger: Folder or file that pays.

        Raises:
            LedgerError: An account is missing or damaged.
        """
        own = self.config.trust != TrustModel.CENTRAL
        return Ledgers.open(ledger, self.data.silo_names if own else ())

    def run(
        self, *, ledger: Path | None = None, progress: Callable[[int, int], None] | None = None
    ) -> FairResult:
        """Train, with and without the penalty, and score by group.

        Args:
            ledger: Folder or file that pays; None keeps no account. A run that it knows goes on, or is told
                again, at no cost.
            progress: Told how many models are trained, and how many there are.

        Raises:
            ParameterError: No weight reaches the violation that the job asks for, or the job does not fit.
            DataError: A record without a sensitive value, or a group without records of some label.
            BudgetError: A ledger has less left than the job costs; nothing was spent.
            LedgerError: A ledger is about other silos or neighbours; nothing was spent.
        """
        # Of private records a curve, or the score of another model on them, would be one more release.
        weights = CURVE_WEIGHTS if self.config.protect is None or self.data.public else ()
        total = 1 + len(weights)

        def say(done: int, _: int = 0) -> None:
            if progress is not None:
                progress(done, total)

        say(0)
        start = time.perf_counter()
        trained = self._trained() if self.config.protect is None else self._trained_in_private(ledger)
        seconds = time.perf_counter() - start
        found = self._points(weights, lambda done, _: say(1 + done))
        fair, tables = self._scores(trained.model)
        return FairResult(
            job=self.config,
            data=self.data,
            model=trained.saved,
            weight=trained.weight,
            fair=fair,
            unconstrained=found[0][1] if found else None,
            tables=tables,
            guarantees=tuple(trained.guarantees),
            alone=tuple(trained.alone),
            plan=trained.plan,
            curve=_with_pareto([point for point, _ in found]),
            seconds=seconds,
        )

    def _trained(self) -> _Trained:
        """Train without privacy."""
        model = self._estimator(self.config.weight_of_fairness).fit(*self._train())
        nothing = guarantee(NonPrivate(), 0.0, observer="whoever sees the model")
        return _Trained(
            model,
            saved_model(model, self.data, run=self.config.run, trust="none", promise=nothing),
            float(model.weight_),
            [nothing],
        )

    def _trained_in_private(self, ledger: Path | None) -> _Trained:
        """Train in rounds, with noise."""
        job = self.config
        if self.data.persons is not None:
            raise ParameterError(
                "person must be None for a fair model, which protects records, got a column: leave it out "
                "of the description."
            )
        model = PrivateFairLogisticRegression(
            fairness=self._notion,
            weight=job.weight_of_fairness,
            max_violation=job.max_violation,
            budget=self.budget,
            protect=str(job.protect),
            trust=job.trust,
            groups=known_groups(self.config, self.data),
            classes=[str(one) for one in self.data.classes],
            bounds=(self.data.lower, self.data.upper) if job.protect == "record" else None,
            l2=job.l2 or _L2,
            rounds=100 if job.rounds == "auto" else job.rounds,
            clip=None if job.clip is None else float(job.clip),
            noise=job.noise,
            random_state=job.seed,
            ledger=ledger,
            run=self._run_name,
            n_min=job.n_min,
            colluding=job.colluding,
        )
        index = np.concatenate(self.data.train)
        silos = np.repeat(np.array(self.data.silo_names), [len(one) for one in self.data.train])
        if job.protect == "record":
            # Whatever stands in a record, it is one: to leave out one without a label would tell of it.
            y = np.full(len(index), "", dtype=object)
            known = np.isfinite(self.data.y[index])
            y[known] = self._labels[self.data.y[index][known].astype(np.int64)].astype(str)
            X, sensitive = self.data.X[index], self._sensitive.iloc[index].reset_index(drop=True)
        else:
            X, y, sensitive = self._part(index)
        model.fit(X, y, sensitive_features=sensitive, silos=silos)
        promises, alone = (
            self._terms.with_clauses(self._in_order(model.silos_, found), trained_with=0)
            for found in (model.guarantees_, model.guarantees_alone_)
        )
        weakest = max(promises, key=lambda one: one.epsilon)
        saved = saved_model(model, self.data, run=job.run, trust=job.trust, promise=weakest)
        return _Trained(model, saved, model.weight_, list(promises), alone=list(alone), plan=model.plan_)

    def _in_order(self, silos: Sequence[str], found: list[Guarantee]) -> list[Guarantee]:
        """Return guarantees in the order of the job's silos; one about all of them stays."""
        if len(found) != len(silos):
            return found
        return [found[silos.index(name)] for name in self.data.silo_names]

    @property
    def _notion(self) -> str:
        """Name of the notion."""
        return self.config.fairness or "demographic-parity"

    def curve(
        self, weights: Sequence[float], *, progress: Callable[[int, int], None] | None = None
    ) -> tuple[CurvePoint, ...]:
        """Train a model for each weight, without privacy, and score it on the held-out records.

        Args:
            weights: Each >= 0.
            progress: As in `run`.
        """
        return _with_pareto([point for point, _ in self._points(weights, progress or (lambda *_: None))])

    def _points(
        self, weights: Sequence[float], progress: Callable[[int, int], None]
    ) -> list[tuple[CurvePoint, FairnessSummary]]:
        """Train a model for each weight."""
        found = []
        for done, weight in enumerate(weights):
            progress(done, len(weights))
            found.append(self._point(weight, self._estimator(weight, search=False).fit(*self._train())))
        progress(len(weights), len(weights))
        return found

    def _estimator(self, weight: float, *, search: bool = True) -> FairLogisticRegression:
        """Return the estimator of the job at another weight."""
        return FairLogisticRegression(
            fairness=self._notion,
            weight=weight,
            max_violation=self.config.max_violation if search else None,
            missing=self.config.missing,
            l2=self.config.l2 or _L2,
            random_state=self.config.seed,
        )

    def _train(self) -> tuple[Array, Array, pd.DataFrame]:
        """Return features, labels and sensitive columns of the training records that have a label."""
        return self._part(np.concatenate(self.data.train))

    def _part(self, index: IntArray) -> tuple[Array, Array, pd.DataFrame]:
        """Return some of the records that have a label, without other records' cells having a say."""
        good = index[np.isfinite(self.data.y[index])]
        if len(good) == 0:
            raise DataError("no record has a label.")
        codes = self.data.y[good].astype(np.int64)
        return (
            self.data.X[good],
            self._labels[codes].astype(str),
            self._sensitive.iloc[good].reset_index(drop=True),
        )

    def _scores(self, model: Any) -> tuple[FairnessSummary | None, tuple[MetricTable, ...]]:
        """Return how fair the model of the job is, and rates by group.

        What a private run has paid for is handed out whatever stands in held-out records: that there is
        nothing to score is a score itself, which stays with the owner of the data.
        """
        try:
            X, y, groups = self._held_out()
            said, classes = model.predict(X), list(model.classes_)
            fair = summarise(y, said, groups, classes=classes)
        except DataError:
            if self.config.protect is None or self.data.public:
                raise
            return None, ()
        return fair, tuple(metric_table(y, said, groups, classes=classes))

    def _held_out(self) -> tuple[Array, Array, Groups]:
        """Return the held-out records that have a label; where groups are private, some may have none."""
        X, y, sensitive = self._part(self.data.test)
        declared = None if self.config.protect is None else known_groups(self.config, self.data)
        if declared is not None:
            return X, y, declared_groups(sensitive, declared)
        return X, y, Groups.of(sensitive, missing=self.config.missing)

    def _point(self, weight: float, model: FairLogisticRegression) -> tuple[CurvePoint, FairnessSummary]:
        """Return a point of the curve."""
        X, y, groups = self._held_out()
        notion, classes = self._notion, list(model.classes_)
        found = summarise(y, model.predict(X), groups, classes=classes)
        soft = violation(model.predict_proba(X), groups, fairness=notion, labels=y, classes=classes)
        point = CurvePoint(
            weight=weight,
            accuracy=found.accuracy,
            violation=found.violation(notion),
            soft_violation=soft,
            pareto=False,
        )
        return point, found


@dataclass(frozen=True)
class _Trained:
    """One model with what is claimed of it."""

    model: Any
    saved: TrainedModel
    weight: float
    guarantees: list[Guarantee]
    alone: list[Guarantee] = field(default_factory=list)
    plan: Plan | None = None


def _with_labels(data: JobData) -> JobData:
    """Return data without the training records that have no label, where labels are public.

    Raises:
        DataError: A silo has no record with a label.
    """
    train = [one[np.isfinite(data.y[one])] for one in data.train]
    for name, kept in zip(data.silo_names, train, strict=True):
        if len(kept) == 0:
            raise DataError(f"silo {name!r} has no training record with a label; leave it out.")
    return replace(data, train=train)


def _with_pareto(points: list[CurvePoint]) -> tuple[CurvePoint, ...]:
    """Mark the points that no other one beats."""
    best = pareto(np.array([p.accuracy for p in points]), np.array([p.violation for p in points]))
    return tuple(replace(point, pareto=bool(one)) for point, one in zip(points, best, strict=True))
