"""A fair logistic regression whose groups, or whole records, stay private, in the manner of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tacit.errors import (
    DataError,
    ParameterError,
    check_choice,
    check_non_negative,
    check_positive,
    check_probability,
)
from tacit.fairness.attributes import attribute_names, check_same_attributes, run_about
from tacit.fairness.classifier import FairClassifier
from tacit.fairness.declared import declared_groups
from tacit.fairness.groups import Groups
from tacit.fairness.notions import Conditions, Fairness
from tacit.fairness.private_fermi import PrivateFermi, PublicRecords, Shares
from tacit.fairness.private_training import PrivateRun, PrivateTraining
from tacit.fairness.public_start import default_step, plain_fit
from tacit.fairness.scores import LinearScores
from tacit.fairness.standard import Standard
from tacit.fairness.units import FairUnits
from tacit.learning.defaults import AUTO
from tacit.learning.fitting import Request, silo_codes, with_notes
from tacit.learning.labelled import public_sample
from tacit.learning.model import FeatureMap
from tacit.learning.spending import fits_of_this_process
from tacit.learning.task import (
    array_of,
    bounded_features,
    feature_bounds,
    label_codes,
    labels,
    warned_clause,
)
from tacit.ledger import Accounts, new_run
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, Part, PrivacyBudget, TrustModel, Unit
from tacit.privacy.run_clauses import clauses_of_part, clauses_of_public
from tacit.privacy.weak import warn_of_weak

__all__ = ["PrivateFairLogisticRegression"]

_STEP, _UNIT_STEP = 2.0, 8.0
"""Of the model on private features: as they are (Lowy 2023, the runs on Adult), and in rows of norm 1."""

_PARTS = {"sensitive": Part.SENSITIVE, "record": Part.ALL}


@dataclass(frozen=True)
class _Mapped:
    """Features by public bounds, or by a public sample.

    Attributes:
        features: The map.
    """

    features: FeatureMap

    def transform(self, X: Array) -> Array:
        """Return rows of norm at most 1 with the constant as last column, shape (n, d + 1)."""
        return np.asarray(self.features(X))


@dataclass(frozen=True)
class _Bounded:
    """Features as they are, within public bounds.

    Attributes:
        lower: Shape (d,).
        upper: Shape (d,).
    """

    lower: Array
    upper: Array

    def transform(self, X: Array) -> Array:
        """Return rows with the constant 1 as last column, shape (n, d + 1); NaN stays."""
        return np.column_stack([np.clip(X, self.lower, self.upper), np.ones(len(X))])


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateFairLogisticRegression(FairClassifier):
    """Fair logistic regression under differential privacy, of the sensitive attribute or of whole records.

    It minimises what `FairLogisticRegression` does, by rounds on all records. With `protect="sensitive"`
    neighbours differ in the group of one record, and features and labels are public: the guarantee says
    nothing of them. With `protect="record"` they differ in one whole record. A record whose sensitive
    attribute is missing, or is none of `groups`, counts as no group.

    Args:
        fairness: "demographic-parity", "equalized-odds" or "equal-opportunity".
        weight: Of the penalty beside the mean loss, >= 0; with `max_violation`, the first one.
        max_violation: The largest violation that hard predictions of the training records should have, in
            [0, 1]. The weight follows noisy counts of decisions by group, which the budget pays for; nothing
            is promised, as the counts have noise.
        budget: What each silo may spend, or the server under central trust. None trains without privacy.
        protect: "sensitive" or "record".
        trust: "central", "aggregate", "shuffle" or "local".
        groups: All groups there may be, a public list of values, or of tuples of one value per column. None
            reads them off the data: a warning and the guarantee say so.
        classes: All labels there may be. None reads them off the labels, and where these are private, a
            warning and the guarantee say so.
        bounds: Of whole records: public (lower, upper) of features, needed with a budget; "data" reads them
            off, and a warning and the guarantee say so.
        public: Of whole records: public features, shape (m, d), that say how features are scaled.
        advantaged: For equal opportunity, the labels that it is about; None is the last of two classes.
        rounds: Of training.
        step: Of the model; None goes by the weight and by public features. With private ones it is 8 for rows
            of norm 1, and 2 for features as they are.
        dual_step: Of dual variables, in (0, 1/2].
        tail: Share of the last rounds whose points are averaged, in [0, 1).
        clip: Bound on a record's row of a gradient; None as in `PrivateFermi`.
        least_share: Share below which no group counts, in (0, 1 / groups).
        shares: Of the budget.
        l2: Strength of a squared L2 penalty, (l2 / 2) times the squared norm of all parameters.
        standardise: Whether features are centred and divided by their spread; where records are private, by
            that of the bounds or of the public sample, and rows then have norm 1 at most. False takes
            features as they are, within bounds, as is best where they have public scales already.
        feature_bound: Where features are public: they stay within [-feature_bound, feature_bound] after that.
        noise: "auto", "gaussian" or "discrete-gaussian"; "auto" is exact unless there is a seed.
        random_state: Seed of a simulation, which protects nobody.
        ledger: A `Ledger`, or the path of one or of a folder of them, that pays. One of sensitive attributes
            pays for the same ones only, by the names that a series or a frame gives them.
        n_min: Under shuffle and aggregate trust, silos below which a round is given up; None is all of them.
        colluding: Silos there that may tell what they sent.

    Attributes:
        classes_: Labels.
        groups_: Groups.
        coef_: Weights of scaled features, shape (1, d) for two classes, else (classes, d).
        intercept_: Constants, shape (1,) or (classes,).
        threshold_: 0.
        noise_multiplier_: Standard deviation / sensitivity of one release with all of the budget; 0 without.
        plan_: What silos were asked.
        guarantee_: The weakest guarantee.
        guarantees_: One in all under central trust, else one per silo, in the order of `silos_`.
        guarantees_alone_: Under shuffle and aggregate trust, what the messages of each silo show alone.
        silos_: Names of silos.
        n_iter_: Rounds.
        n_features_in_: Number of features.
        feature_names_in_: Names of the columns, shape (d,), if X was a frame.

    Example:
        >>> import numpy as np
        >>> from tacit import PrivacyBudget
        >>> from tacit.fairness import PrivateFairLogisticRegression, parity_violation
        >>> rng = np.random.default_rng(0)
        >>> s = rng.integers(0, 2, 5000)
        >>> X = np.column_stack([rng.standard_normal(5000) + s, rng.standard_normal(5000)])
        >>> y = (X.sum(axis=1) + rng.standard_normal(5000) > 0.5).astype(int)
        >>> for weight in (0, 20):
        ...     model = PrivateFairLogisticRegression(
        ...         weight=weight, budget=PrivacyBudget(1.0, 1e-6), groups=[0, 1], random_state=0
        ...     ).fit(X, y, sensitive_features=s)
        ...     print(round(model.score(X, y), 1), round(parity_violation(model.predict(X), s), 1))
        0.8 0.3
        0.7 0.1

    Reference:
        Lowy (2023), Chapter 6, Algorithm 10 (DP-FERMI), corrected (docs/theory/private-fairness.md).
    """

    fairness: str = "demographic-parity"
    weight: float = 1.0
    max_violation: float | None = None
    budget: PrivacyBudget | None = None
    protect: str = "sensitive"
    trust: str = "central"
    groups: Any = None
    classes: Any = None
    bounds: Any = None
    public: Any = None
    advantaged: Any = None
    rounds: int = 100
    step: float | None = None
    dual_step: float = 0.25
    tail: float = 0.5
    clip: float | None = None
    least_share: float = 0.02
    shares: Shares | None = None
    l2: float = 1e-4
    standardise: bool = True
    feature_bound: float | None = None
    noise: str = "auto"
    random_state: Any = None
    ledger: Any = None
    n_min: int | None = None
    colluding: int = 0

    def fit(self, X: Any, y: Any, sensitive_features: Any = None, silos: Any = None) -> Self:
        """Train.

        Args:
            X: Shape (n, d), finite numbers; of whole records with a budget, a record with another counts as
                zero.
            y: Labels, shape (n,), compared with `classes` as text; of whole records with a budget, a record
                of any other label counts as zero.
            sensitive_features: Shape (n,), or (n, columns). None, without a budget only, trains without the
                penalty.
            silos: Silo of each record, shape (n,); None: all of them are in one silo.

        Raises:
            DataError: Another number of records, one class only, or public labels outside `classes`.
            ParameterError: A parameter is out of range, or does not fit the data; nothing was spent.
            BudgetError: The ledger has less left than the fit costs; nothing was spent.
            LedgerError: The ledger cannot be used, or is about other neighbours or silos; nothing was spent.
            ValueError: X is not numbers, or not finite where that is no secret (from scikit-learn).
        """
        request, notion, part = self._checked()
        hidden = request.private and part is Part.ALL
        given, labelled = X, y
        X, y = self._read(X, y, hidden=hidden)
        scaling, notes = self._scaling(given, X, part, private=request.private)
        self.scaling_ = scaling
        self.classes_, more = labels(self.classes, y, private=hidden)
        notes += more
        listed = labelled if isinstance(labelled, list | tuple) else y
        codes = np.nan_to_num(label_codes(self.classes_, listed), nan=-1).astype(np.int64)
        groups, more = self._groups(sensitive_features, len(y), private=request.private)
        notes += more
        where = self._conditions(notion, codes)
        rows = scaling.transform(X)
        if part is Part.ALL and rows.dtype != np.float64:
            rows = rows.astype(np.float64)
        names, of = silo_codes(silos, len(y))
        about = attribute_names(sensitive_features)
        order = np.argsort(of, kind="stable")
        rows, codes, of = rows[order], codes[order], of[order]
        group, condition = groups.codes[order], where.codes[order]
        alone = sensitive_features is None
        weight, most = (0.0, None) if alone else (self.weight, self.max_violation)
        method = self._method(part, rows, len(where), len(groups), weight, most)
        seed, noise, said = request.randomness()
        training = PrivateTraining(
            method=method,
            budget=self.budget,
            trust=TrustModel(self.trust) if request.private else TrustModel.CENTRAL,
            noise=noise,
            n_min=self.n_min,
            colluding=self.colluding,
            run=run_about(about) if part is Part.SENSITIVE else new_run("fit"),
        )
        units = [
            FairUnits.of(rows[held], codes[held], group[held], condition[held])
            for held in (of == k for k in range(len(names)))
        ]
        start, public = method.model.start(), None
        if part is Part.SENSITIVE:
            public = PublicRecords(rows, codes, condition)
            start = plain_fit(method.model, rows, codes, self.l2)
            notes += clauses_of_part(training.neighbours, about) if request.private else []
        if request.private:
            notes += clauses_of_public(sample=self.public is not None, trained_with=0)
        run = self._run(request, training, units, names, seed, start, public, X)
        self._keep_parameters(method.model, run.theta)
        self.threshold_, self.n_iter_ = 0.0, method.rounds
        self.groups_ = groups.names
        self.noise_multiplier_ = run.noise_multiplier
        self.plan_ = run.plan
        self.silos_ = names
        self.guarantees_: list[Guarantee] = with_notes(run.guarantees, notes + said)
        self.guarantees_alone_: list[Guarantee] = with_notes(run.alone, notes + said)
        self.guarantee_ = max(self.guarantees_, key=lambda one: one.epsilon)
        return self

    def _checked(self) -> tuple[Request, Fairness, Part]:
        """Return parameters that are checked before data is looked at."""
        check_non_negative("weight", self.weight)
        check_non_negative("l2", self.l2)
        if self.max_violation is not None:
            check_probability("max_violation", self.max_violation)
        check_choice("protect", self.protect, list(_PARTS))
        check_choice("trust", self.trust, list(TrustModel))
        for name in ("step", "feature_bound"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if check_positive("dual_step", self.dual_step) > 0.5:
            raise ParameterError(f"dual_step must be at most 0.5, got {self.dual_step!r}.")
        part = _PARTS[self.protect]
        if part is Part.SENSITIVE and (self.bounds is not None or self.public is not None):
            raise ParameterError("bounds and public are for protect='record': else features are public.")
        request = Request(
            trust=self.trust,
            budget=self.budget,
            algorithm=AUTO,
            rounds="auto",
            clip=None,
            noise=self.noise,
            random_state=self.random_state,
            n_min=self.n_min,
            colluding=self.colluding,
        )
        request.check_noise()
        return request, Fairness.of(self.fairness), part

    def _read(self, X: Any, y: Any, *, hidden: bool) -> tuple[Array, Array]:
        """Return features and labels, of which no error tells where records are private."""
        if not hidden:
            X, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
            if self.classes is None:
                check_classification_targets(y)
            return X, y
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        y = array_of(y)
        if y.shape != (len(X),):
            raise DataError(f"y must have one label per record ({len(X)}), got shape {y.shape}.")
        return X, y

    def _scaling(
        self, given: Any, X: Array, part: Part, *, private: bool
    ) -> tuple[Standard | _Mapped | _Bounded, list[str]]:
        """Return how features are scaled, and what the statement must say of it."""
        if part is Part.SENSITIVE:
            return Standard.of(X, scale=self.standardise, bound=self.feature_bound), []
        lower, upper, notes = feature_bounds(self.bounds, X, private=private)
        if not self.standardise:
            if self.public is not None:
                raise ParameterError("public must be None with standardise=False: nothing is scaled by it.")
            return _Bounded(lower, upper), notes
        sample = public_sample(
            self.public,
            bounds=self.bounds,
            lower=lower,
            upper=upper,
            given=given,
            names=getattr(self, "feature_names_in_", None),
            encode=_no_labels,
        )
        return _Mapped(bounded_features(lower, upper, unit_rows=True, sample=sample)), notes

    def _groups(self, sensitive_features: Any, n: int, *, private: bool) -> tuple[Groups, list[str]]:
        """Return the group of each record, and what the statement must say of their list."""
        if sensitive_features is None:
            if private:
                raise ParameterError("sensitive_features must be given with a budget, got None.")
            return Groups(np.full(n, -1), (None, None)), []
        notes = []
        if self.groups is not None:
            groups = declared_groups(sensitive_features, self.groups)
        else:
            groups = Groups.of(sensitive_features, missing=True)
            if private:
                notes.append(
                    warned_clause(
                        "the groups were read off the data without privacy", "`groups` from public knowledge"
                    )
                )
        if len(groups.codes) != n:
            raise DataError(
                f"sensitive_features must have one entry per record ({n}), got {len(groups.codes)}."
            )
        if len(groups) < 2:
            raise DataError("sensitive_features must have two groups or more, got one group only.")
        return groups, notes

    def _conditions(self, notion: Fairness, codes: IntArray) -> Conditions:
        """Return where the notion looks."""
        wanted: Sequence[int] | None = None
        if self.advantaged is not None:
            listed = self.advantaged if isinstance(self.advantaged, list | tuple) else [self.advantaged]
            found = label_codes(self.classes_, list(listed))
            if np.isnan(found).any():
                raise ParameterError(
                    f"advantaged must be some of the {len(self.classes_)} classes, got {self.advantaged!r}."
                )
            wanted = found.astype(int).tolist()
        return Conditions.of(notion, codes, classes=list(range(len(self.classes_))), advantaged=wanted)

    def _method(
        self, part: Part, rows: Array, conditions: int, groups: int, weight: float, target: float | None
    ) -> PrivateFermi:
        """Return what is asked; nothing but public features and numbers is looked at."""
        step = self.step
        if step is None:
            step = _UNIT_STEP if self.standardise else _STEP
            if part is Part.SENSITIVE:
                step = default_step(rows, len(self.classes_), weight)
        shares = {} if self.shares is None else {"shares": self.shares}
        return PrivateFermi(
            model=LinearScores(rows.shape[1], len(self.classes_)),
            conditions=conditions,
            groups=groups,
            weight=weight,
            part=part,
            rounds=self.rounds,
            step=step,
            dual_step=self.dual_step,
            tail=self.tail,
            clip=self.clip,
            least_share=min(self.least_share, 0.5 / groups),
            l2=self.l2,
            target=target,
            **shares,
        )

    def _run(
        self,
        request: Request,
        training: PrivateTraining,
        units: list[FairUnits],
        names: list[str],
        seed: int | None,
        start: Array,
        public: PublicRecords | None,
        X: Array,
    ) -> PrivateRun:
        """Train, with accounts where a ledger pays."""
        place = request.place(self.ledger)
        if self.budget is not None:
            most = max(len(one) for one in units) if self.trust == "local" else len(X)
            warn_of_weak(self.budget.epsilon, self.budget.delta, units=most, unit=Unit.RECORD, stacklevel=4)
        if place is None:
            federation = training.federation(units, names=names, seed=seed)
            run = training.train(federation, start, public=public)
            if self.budget is not None and seed is None:
                fits_of_this_process.warn(X, self.budget, stacklevel=4)
            return run
        own = training.trust is not TrustModel.CENTRAL
        with Accounts.open(place, names if own else ()) as accounts:
            if training.method.part is Part.SENSITIVE:
                check_same_attributes(accounts, training.run)
            return training.train(
                training.federation(units, names=names, accounts=accounts), start, public=public
            )


def _no_labels(_labels: Array) -> Array:
    """Refuse labels of public records, which nothing is made of here."""
    raise ParameterError("public must be features alone: the model is not trained on public records.")
