"""What the estimators share: which facts are public, and one training run with a person's parameters."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from tacit.data.cells import positions, texts
from tacit.data.tables import person_ids
from tacit.errors import (
    DataError,
    ParameterError,
    PrivacyWarning,
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
)
from tacit.federation import Participation, Weights
from tacit.learning.algorithms import ALGORITHMS, Algorithm, Method, make_algorithm
from tacit.learning.defaults import AUTO, Choice, choose, clip_share
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Logistic, Loss, Multinomial, Squared
from tacit.learning.model import FeatureMap, LinearModel, bounds_arrays
from tacit.learning.objective import Grouped, Records
from tacit.learning.public import PublicSample
from tacit.learning.settings import Sampling, Settings
from tacit.learning.spending import fits_of_this_process
from tacit.learning.training import Trained, silos_for, train
from tacit.ledger import Accounts, Ledger, new_run
from tacit.numerics import Array, ElasticNet
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, Relation, TrustModel, Unit
from tacit.privacy.run_clauses import SAMPLE, clauses_of_ids
from tacit.privacy.weak import warn_of_weak

__all__ = [
    "DEFAULT_DIAMETER",
    "REGRESSION_DIAMETER",
    "LinearTask",
    "Request",
    "Trust",
    "clipping_bound",
    "feature_bounds",
    "label_codes",
    "labels",
    "public_sample",
    "target_bounds",
    "with_notes",
]

DEFAULT_DIAMETER = 150.0
"""Size of a classifier for rows of norm at most 1, from public data sets (docs/tutorials/first-run.md)."""

REGRESSION_DIAMETER = 8.0
"""Size of a regression for rows of norm at most 1 and targets in [-1, 1]: 2 to 10 on public data sets."""

Trust = Literal["local", "shuffle", "central", "none"]

_UNCLIPPED = 1e6
"""A radius that gradients of rows in the unit ball and of targets in [-1, 1] stay below."""


@dataclass(frozen=True, kw_only=True)
class LinearTask:
    """The public shape of one linear model: its features, and what it predicts.

    Attributes:
        features: How rows are mapped.
        classes: Labels in order, or None for a regression.
        target: Bounds of a regression's target.
        sample: Public records that say how rows are mapped; None without.
    """

    features: FeatureMap
    classes: Array | None = None
    target: tuple[float, float] | None = None
    sample: PublicSample | None = None

    @classmethod
    def of(
        cls,
        lower: Array,
        upper: Array,
        *,
        classes: Array | None = None,
        target: tuple[float, float] | None = None,
        sample: PublicSample | None = None,
    ) -> LinearTask:
        """Return the task of features with these public bounds, scaled by them or by a public sample."""
        unit_rows = classes is not None
        if sample is None:
            features = FeatureMap(lower=lower, upper=upper, unit_rows=unit_rows)
        else:
            features = sample.features(unit_rows=unit_rows)
        return cls(features=features, classes=classes, target=target, sample=sample)

    @property
    def objective(self) -> LinearObjective:
        """What is minimised, on mapped rows."""
        many = 0 if self.classes is None else len(self.classes)
        loss: Loss = Squared() if self.classes is None else Multinomial() if many > 2 else Logistic()
        return LinearObjective(
            loss=loss, features=self.features.size, outputs=many if many > 2 else 1, feature_norm=1.0
        )

    @cached_property
    def gram(self) -> Array | None:
        """About the mean of x x^T over mapped rows x, from the public sample; None without."""
        return None if self.sample is None else self.sample.gram(self.features)

    @property
    def diameter(self) -> float:
        """About the size of a solution."""
        return REGRESSION_DIAMETER if self.classes is None else DEFAULT_DIAMETER

    def model(self, w: Array) -> LinearModel:
        """Return the model with those parameters, ready to predict."""
        return LinearModel(features=self.features, w=w, classes=self.classes, target=self.target)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The parameters that every estimator has, checked.

    Attributes:
        trust: "local", "shuffle", "central" or "none".
        budget: What may be spent; None trains without privacy.
        algorithm: "auto", a name of `ALGORITHMS`, or an `Algorithm`.
        rounds: Number of rounds, or "auto".
        clip: Clipping bound of a unit's gradient; None takes the default.
        noise: "auto", "gaussian" or "discrete-gaussian".
        random_state: Seed of a simulation, or None.
        l1: Strength of an L1 penalty, >= 0.
        l2: Strength of a squared L2 penalty, >= 0.
        neighbours: "replace-one", "add-remove" or "zero-out".
        sampling: How batches of a fixed number of units are drawn, as in `Settings`.
        weights: How silos count.
        participation: Which silos take part in a round; None is everybody.
        n_min: Under shuffle trust, silos below which a round is given up; None is as many as are asked.
        colluding: Under shuffle trust, how many silos may add no noise.
        run: Name of the run in ledgers.
    """

    trust: str
    budget: PrivacyBudget | None
    algorithm: str | Algorithm
    rounds: int | str
    clip: float | None
    noise: str
    random_state: Any
    l1: float = 0.0
    l2: float = 0.0
    neighbours: str = Relation.REPLACE_ONE
    sampling: Sampling = "given"
    weights: Weights = "records"
    participation: Participation | None = None
    n_min: int | None = None
    colluding: int = 0
    run: str = "run"

    def __post_init__(self) -> None:
        check_choice("trust", self.trust, get_args(Trust))
        check_choice("noise", self.noise, ["auto", "gaussian", "discrete-gaussian"])
        check_choice("neighbours", self.neighbours, Relation)
        if self.budget is not None and not isinstance(self.budget, PrivacyBudget):
            raise ParameterError(f"budget must be a PrivacyBudget or None, got {self.budget!r}.")
        if self.trust == "none" and self.budget is not None:
            raise ParameterError("a budget needs trust 'local', 'shuffle' or 'central', got trust='none'.")
        if self.rounds != "auto":
            check_count("rounds", self.rounds)  # type: ignore[arg-type]  # a string is refused there
        if self.clip is not None:
            check_positive("clip", self.clip)
        check_non_negative("l1", self.l1)
        check_non_negative("l2", self.l2)
        if isinstance(self.algorithm, str):
            check_choice("algorithm", self.algorithm, [AUTO, *ALGORITHMS])
        elif not isinstance(self.algorithm, Algorithm):
            raise ParameterError(
                f"algorithm must be a name or an Algorithm, got {self.algorithm!r}, which lacks "
                f"{_lacking(self.algorithm)}."
            )
        elif self.rounds != "auto":
            raise ParameterError("rounds must be 'auto' where `algorithm` is an object: it has its own.")

    @property
    def relation(self) -> Relation:
        """What neighbours differ in."""
        return Relation(self.neighbours)

    @property
    def private(self) -> bool:
        """Whether anything is claimed."""
        return self.budget is not None

    def train(
        self, task: LinearTask, X: Array, y: Array, *, silos: Any, persons: Any, ledger: Any = None
    ) -> tuple[Trained, list[str]]:
        """Train silo by silo.

        Args:
            task: What is fitted.
            X: Features, shape (n, d).
            y: Shape (n,): positions of classes, or scaled targets.
            silos: Silo of each record, shape (n,); None: all of them are in one silo.
            persons: Person of each record, shape (n,); None where a record is the unit.
            ledger: A `Ledger`, or the path of one or of a folder of them; None keeps no account, and warns
                from the second private fit on the same records on.

        Returns:
            The run, and clauses that the statement must contain.

        Raises:
            DataError: `silos` or `persons` has another shape.
            ParameterError: The parameters do not fit the data.
            BudgetError: The ledger has less left; nothing was spent.
            LedgerError: The ledger is of other neighbours or silos, or cannot be used.
        """
        place = self._place(ledger)
        names, units = _split(task.features(X), y, silos=silos, persons=persons)
        seed, noise, notes = self._randomness()
        if persons is not None and len(names) > 1:
            notes.append("no person has records in two silos")
        unit = Unit.RECORD if persons is None else Unit.PERSON
        if self.private:
            notes.extend(clauses_of_ids(Neighbours(self.relation, unit)))
            notes.extend([] if task.sample is None else [SAMPLE])
        sizes = [len(one) for one in units]
        settings = replace(self, run=new_run("fit")).settings(task, unit=unit, noise=noise, sizes=sizes)
        if self.budget is not None:
            most = max(sizes) if self.trust == "local" else sum(sizes)
            warn_of_weak(self.budget.epsilon, self.budget.delta, units=most, unit=unit, stacklevel=4)
        if place is not None:
            own = settings.trust in (TrustModel.LOCAL, TrustModel.SHUFFLE)  # silos add noise, and pay
            with Accounts.open(place, names if own else ()) as accounts:
                federation = silos_for(
                    settings,
                    units,
                    names=names,
                    ledgers=accounts.silos if own else None,
                    ledger=None if own else accounts.central,
                    data_ledger=accounts.data,
                )
                return train(federation, settings), notes

        def begin(_rounds: int) -> None:
            # Only here is everything checked and nothing asked yet. A seed makes a simulation of a run, which
            # protects nobody: there is nothing to add up.
            if self.budget is not None and seed is None:
                fits_of_this_process.warn(X, self.budget, stacklevel=5)

        return train(silos_for(settings, units, names=names, seed=seed), settings, begin=begin), notes

    def _place(self, ledger: Any) -> Path | None:
        """Return where the ledger lies that a run is charged to."""
        if ledger is None:
            return None
        if self.random_state is not None:
            raise ParameterError(
                "random_state and ledger exclude each other: seeded noise protects nobody; leave one of them "
                "out."
            )
        if not self.private:
            raise ParameterError(
                "ledger needs a budget: what is trained without privacy has no price to charge."
            )
        if isinstance(ledger, Ledger):
            return ledger.path
        if not isinstance(ledger, str | os.PathLike):
            raise ParameterError(f"ledger must be a Ledger, a path or None, got {ledger!r:.80}.")
        return Path(ledger)

    def settings(self, task: LinearTask, *, unit: Unit, noise: str, sizes: Sequence[int]) -> Settings:
        """Return everything about the run that is not data.

        Args:
            task: What is fitted.
            unit: What is protected.
            noise: A name in `NOISES`.
            sizes: Public number of units of each silo.
        """
        objective = task.objective
        choice = self._choice(task, sizes)
        return Settings(
            objective=objective,
            algorithm=choice.algorithm,
            trust=self._trusted,
            budget=self.budget,
            relation=self.relation,
            sampling=self.sampling,
            unit=unit,
            clip=clipping_bound(self.clip, objective, share=choice.share if self.private else None),
            diameter=task.diameter,
            regularizer=ElasticNet(l1=self.l1, l2=self.l2),
            noise=noise,
            weights=self.weights,
            participation=self.participation,
            n_min=self.n_min,
            colluding=self.colluding,
            run=self.run,
        )

    @property
    def _trusted(self) -> TrustModel | None:
        """Who is trusted; None where nothing is claimed."""
        return TrustModel(self.trust) if self.private else None

    def _choice(self, task: LinearTask, sizes: Sequence[int]) -> Choice:
        """Return the algorithm, and how short gradients are clipped."""
        rounds = self.rounds if isinstance(self.rounds, int) else None
        if self.algorithm == AUTO:
            return choose(
                task.objective,
                trust=self._trusted,
                budget=self.budget,
                relation=self.relation,
                sizes=sizes,
                rounds=rounds,
                gram=task.gram,
            )
        algorithm = self.algorithm
        if isinstance(algorithm, str):
            algorithm = make_algorithm(algorithm, rounds=rounds)
        if isinstance(algorithm, Method) and task.gram is not None:
            algorithm = algorithm.with_gram(task.gram)
        return Choice(algorithm=algorithm, share=clip_share(algorithm))

    def _randomness(self) -> tuple[int | None, str, list[str]]:
        """Return the seed, the kind of noise, and what the statement must say about it."""
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31))
            return seed, "gaussian" if self.noise == "auto" else self.noise, []
        if self.noise == "gaussian" and self.private:
            # The guarantee says so by itself.
            _warned("continuous noise leaks through floating point", "noise='discrete-gaussian'")
        return None, "discrete-gaussian" if self.noise == "auto" else self.noise, []


def _lacking(algorithm: object) -> str:
    """Return the members of an `Algorithm` that are not there."""
    return ", ".join(m for m in vars(Algorithm) if not m.startswith("_") and not hasattr(algorithm, m))


def clipping_bound(clip: float | None, objective: LinearObjective, *, share: float | None) -> float:
    """Return the clipping bound, the norm that a unit's gradient is clipped to.

    Args:
        clip: What a person asked for; None takes the default.
        objective: Its rows have norm at most 1, and the targets of a regression are in [-1, 1].
        share: Of the Lipschitz constant, or of 1 where there is none; None without noise.

    Returns:
        `clip`; else with noise that share, and without noise a radius that no gradient reaches.
    """
    if clip is not None:
        return clip
    if share is None:
        return _UNCLIPPED
    return share * (objective.lipschitz if math.isfinite(objective.lipschitz) else 1.0)


def feature_bounds(bounds: Any, X: Array, *, private: bool) -> tuple[Array, Array, list[str]]:
    """Return public bounds of the features, and clauses for the statement.

    Only without a budget are they silently read off the data.

    Args:
        bounds: As a person wrote them: (lower, upper), "data" or None.
        X: Shape (n, d).
        private: Whether there is a budget.

    Raises:
        ParameterError: None with a budget, or something that is not bounds.
    """
    if bounds is not None and not _is_data(bounds):
        return *bounds_arrays(bounds, X.shape[1]), []
    _refuse_none("bounds", bounds, private=private)
    notes = [_read_off("the features' bounds", "bounds")] if private else []
    return X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64), notes


def public_sample(
    public: Any, *, bounds: Any, lower: Array, upper: Array, given: Any, names: Any
) -> PublicSample | None:
    """Return the public sample of an estimator, checked; None without.

    Args:
        public: As a person wrote it.
        bounds: The same.
        lower: What `feature_bounds` made of them, shape (d,).
        upper: The same.
        given: The private records, of which it may not be a part.
        names: Of their columns; None where they have no names.

    Raises:
        ParameterError: Bounds that were read off the data, or the private records themselves.
        DataError: As in `PublicSample.of`.
    """
    if public is None:
        return None
    if bounds is None or _is_data(bounds):
        raise ParameterError(
            "bounds must be given with public: a sample does not say what else there may be."
        )
    stored = isinstance(public, np.ndarray | pd.DataFrame) and isinstance(given, np.ndarray | pd.DataFrame)
    if public is given or (stored and np.shares_memory(np.asarray(public), np.asarray(given))):
        raise ParameterError("public must be other records than X: what is made of them is not protected.")
    return PublicSample.of(public, lower=lower, upper=upper, names=None if names is None else list(names))


def target_bounds(bounds: Any, y: Array, *, private: bool) -> tuple[float, float, list[str]]:
    """Return public bounds of a regression target, and clauses for the statement; see `feature_bounds`."""
    if bounds is not None and not _is_data(bounds):
        try:
            low, high = (float(bound) for bound in bounds)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"target_bounds must be a pair of numbers, got {bounds!r}.") from error
        return low, high, []
    _refuse_none("target_bounds", bounds, private=private)
    notes = [_read_off("the target's bounds", "target_bounds")] if private else []
    low, high = float(y.min()), float(y.max())
    if not math.isfinite(high - low):
        raise DataError("y holds targets too far apart to read bounds off them; give target_bounds.")
    return low, high, notes


def labels(classes: Any, y: Array, *, private: bool) -> tuple[Array, list[str]]:
    """Return the public labels, sorted, and clauses for the statement.

    Raises:
        DataError: Fewer than two labels, or `y` holds others and there is no budget.
    """
    notes = []
    if classes is None:
        found = np.unique(y)
        if private:
            notes.append(_read_off("the classes", "classes"))
    else:
        found = np.unique(np.asarray(classes))
        # With a budget an error would tell of a record.
        if not private and np.isnan(label_codes(found, y)).any():
            raise DataError("y holds labels outside `classes`.")
    if len(found) < 2:
        raise DataError("y must hold at least two classes, got one class.")
    return found, notes


def label_codes(classes: Array, y: Any) -> Array:
    """Return every label's position in the classes, NaN for any other, whose record counts as zero.

    Labels are compared as text, each by itself: in an array, one text among numbers would make all text.
    """
    codes = positions(texts(pd.Series(_column(y))), classes.tolist()).astype(np.float64)
    return np.where(codes < 0, np.nan, codes)


def with_notes(guarantees: list[Guarantee], notes: list[str]) -> list[Guarantee]:
    """Return guarantees that say what was done outside of them."""
    return [msgspec.structs.replace(g, assumptions=(*g.assumptions, *notes)) for g in guarantees]


def _split(rows: Array, y: Array, *, silos: Any, persons: Any) -> tuple[list[str], list[Records | Grouped]]:
    """Return the names of the silos and the units of each."""
    n = len(rows)
    where = np.zeros(n, dtype=np.int64) if silos is None else _column(silos)
    whose = None if persons is None else _column(persons)
    for name, given in (("silos", where), ("persons", whose)):
        if given is not None and given.shape != (n,):
            raise DataError(f"{name} must have one entry per record ({n}), got shape {given.shape}.")
    # Each id by itself: of 19-digit numbers and one 1.5, an array of floats would make one id.
    where = texts(pd.Series(where)) if where.dtype == object else where
    if whose is not None and whose.dtype.kind in "OSTU":  # as of a table: a blank makes nobody another person
        whose = person_ids(pd.Series(whose))
    names, codes = np.unique(where, return_inverse=True)
    units: list[Records | Grouped] = []
    for k in range(len(names)):
        held = codes == k
        records = Records.of(rows[held], y[held])
        units.append(records if whose is None else Grouped.of(records, whose[held]))
    return [str(name) for name in names], units


def _column(values: Any) -> Array:
    """Return values as an array; those of a list keep their own types."""
    return np.array(values, dtype=object) if isinstance(values, list | tuple) else np.asarray(values)


def _is_data(bounds: Any) -> bool:
    """Whether bounds are to be read off the data."""
    return isinstance(bounds, str) and bounds == "data"


def _refuse_none(name: str, bounds: Any, *, private: bool) -> None:
    """Refuse to read bounds off the data under a budget without being asked to."""
    if bounds is None and private:
        raise ParameterError(
            f"{name} must be given with a budget, as (lower, upper) from public knowledge; 'data' reads them "
            "off the data, which no guarantee covers."
        )


def _read_off(what: str, name: str) -> str:
    """Warn that a fact was read off the data, and return the clause that says so."""
    return _warned(f"{what} were read off the data without privacy", f"`{name}` from public knowledge")


def _warned(clause: str, cure: str) -> str:
    """Warn, and return the clause for the statement."""
    warnings.warn(f"{clause}; pass {cure}.", PrivacyWarning, stacklevel=5)
    return f"it does not matter that {clause}"
