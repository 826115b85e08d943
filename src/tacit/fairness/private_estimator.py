"""A fair logistic regression whose groups, or whole records, stay private, in the manner of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from tacit.data.validated import validated
from tacit.errors import (
    DataError,
    ParameterError,
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from tacit.fairness.attributes import attribute_names
from tacit.fairness.classifier import FairClassifier
from tacit.fairness.iterates import random_round
from tacit.fairness.notions import Fairness
from tacit.fairness.private_fermi import PrivateFermi, PublicRecords, Shares
from tacit.fairness.private_inputs import FairInputs, conditions_of, groups_of, private_scaling, share_of
from tacit.fairness.private_training import PrivateRun, PrivateTraining
from tacit.fairness.public_start import default_step, plain_fit
from tacit.fairness.scores import LinearScores
from tacit.fairness.standard import Standard
from tacit.learning.defaults import AUTO
from tacit.learning.fitting import Request, with_notes
from tacit.learning.silo_units import silo_codes
from tacit.learning.spending import fits_of_this_process, warn_without_budget
from tacit.learning.task import array_of, label_codes, labels
from tacit.ledger import Accounts, new_run, run_about
from tacit.numerics import Array
from tacit.privacy import Guarantee, Part, PrivacyBudget, TrustModel, Unit
from tacit.privacy.run_clauses import clauses_of_part, clauses_of_public
from tacit.privacy.weak import warn_of_weak

__all__ = ["PrivateFairLogisticRegression"]

_STEP, _UNIT_STEP = 2.0, 8.0
"""Of the model on private features: as they are (Lowy 2023, the runs on Adult), and in rows of norm 1."""

_PARTS = {"sensitive": Part.SENSITIVE, "record": Part.ALL}


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
        budget: What each silo may spend, or the server under central trust. None trains without
            privacy, and warns.
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
        iterate: "mean" of the last points, or "random", the point of one round, drawn uniformly by public
            randomness, which the theorem is about; both cost the same.
        least_share: Share below which no group counts, in (0, 1 / groups). None is 0.02, and half of 1 /
            groups, with a warning, where there are more than 25.
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
        run: Name of the run in ledgers. The same fit under the same name goes on where it stopped, at no
            cost. None makes a name of its own for every fit.
        n_min: Under shuffle and aggregate trust, silos below which a round is given up; None is all of them.
        colluding: Silos there that may tell what they sent.

    Attributes:
        classes_: Labels.
        groups_: Groups.
        coef_: Weights of scaled features, shape (1, d) for two classes, else (classes, d).
        intercept_: Constants, shape (1,) or (classes,).
        threshold_: 0.
        weight_: Of the penalty in the last round: with `max_violation`, what was found.
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
    iterate: str = "mean"
    least_share: float | None = None
    shares: Shares | None = None
    l2: float = 1e-4
    standardise: bool = True
    feature_bound: float | None = None
    noise: str = "auto"
    random_state: Any = None
    ledger: Any = None
    run: str | None = None
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
            LedgerError: The ledger cannot be used, or is about other neighbours, attributes or silos; nothing
                was spent.
            ValueError: X is not numbers, or not finite where that is no secret (from scikit-learn).
        """
        request, notion, part = self._checked()
        warn_without_budget(self, stacklevel=2)
        names = attribute_names(sensitive_features)
        records, notes = self._records(request, notion, part, X, y, sensitive_features, silos)
        seed, noise, said = request.randomness()
        run = new_run("fit") if self.run is None else self.run
        drawn = random_round(self.rounds, run if seed is None else str(seed))
        training = PrivateTraining(
            method=self._method(
                part,
                records,
                private=request.private,
                penalised=sensitive_features is not None,
                only=drawn if self.iterate == "random" else None,
            ),
            budget=self.budget,
            trust=TrustModel(self.trust) if request.private else TrustModel.CENTRAL,
            noise=noise,
            n_min=self.n_min,
            colluding=self.colluding,
            run=run_about(run, names) if part is Part.SENSITIVE else run,
        )
        if request.private:
            notes += clauses_of_part(training.neighbours, names)
            notes += clauses_of_public(sample=self.public is not None, trained_with=0)
        found = self._run(request, training, records, seed, X)
        self._keep_parameters(training.method.model, found.theta)
        self.threshold_, self.n_iter_ = 0.0, self.rounds
        self.groups_, self.silos_ = records.groups.names, records.names
        self.weight_, self.noise_multiplier_, self.plan_ = found.weight, found.noise_multiplier, found.plan
        self.guarantees_: list[Guarantee] = with_notes(found.guarantees, notes + said)
        self.guarantees_alone_: list[Guarantee] = with_notes(found.alone, notes + said)
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
        check_count("rounds", self.rounds)
        check_choice("iterate", self.iterate, ["mean", "random"])
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

    def _records(
        self, request: Request, notion: Fairness, part: Part, X: Any, y: Any, sensitive: Any, silos: Any
    ) -> tuple[FairInputs, list[str]]:
        """Return the records silo by silo, and what the statement must say of how they were read."""
        hidden = request.private and part is Part.ALL
        given, labelled = X, y
        notes: list[str] = []
        X, y = self._read(X, y, hidden=hidden)
        if part is Part.SENSITIVE:
            self.scaling_ = Standard.of(X, scale=self.standardise, bound=self.feature_bound)
        else:
            self.scaling_, notes = private_scaling(
                given,
                X,
                bounds=self.bounds,
                public=self.public,
                names=getattr(self, "feature_names_in_", None),
                standardise=self.standardise,
                private=request.private,
            )
        self.classes_, of_classes = labels(self.classes, y, private=hidden)
        listed = labelled if isinstance(labelled, list | tuple) else y
        codes = np.nan_to_num(label_codes(self.classes_, listed), nan=-1).astype(np.int64)
        groups, of_groups = groups_of(sensitive, self.groups, len(y), private=request.private)
        conditions = conditions_of(notion, codes, self.classes_, self.advantaged)
        rows = self.scaling_.transform(X)
        if part is Part.ALL and rows.dtype != np.float64:
            rows = rows.astype(np.float64)
        names, of = silo_codes(silos, len(y))
        records = FairInputs.sorted(rows, codes, groups, conditions, names=names, silos=of)
        return records, [*notes, *of_classes, *of_groups]

    def _read(self, X: Any, y: Any, *, hidden: bool) -> tuple[Array, Array]:
        """Return features and labels, of which no error tells where records are private."""
        if not hidden:
            X, y = validated(self, X, y, dtype=(np.float64, np.float32))
            if self.classes is None:
                check_classification_targets(y)
            return X, y
        X = validated(self, X, dtype=np.float64, ensure_all_finite=False)
        y = array_of(y)
        if y.shape != (len(X),):
            raise DataError(f"y must have one label per record ({len(X)}), got shape {y.shape}.")
        return X, y

    def _method(
        self, part: Part, records: FairInputs, *, private: bool, penalised: bool, only: int | None
    ) -> PrivateFermi:
        """Return what is asked; nothing but public features and numbers is looked at."""
        rows, classes, groups = records.rows, len(self.classes_), len(records.groups)
        weight = self.weight if penalised else 0.0
        step = self.step
        if step is None:
            step = _UNIT_STEP if self.standardise else _STEP
            if part is Part.SENSITIVE:
                step = default_step(rows, classes, weight)
        return PrivateFermi(
            model=LinearScores(rows.shape[1], classes),
            conditions=len(records.conditions),
            groups=groups,
            weight=weight,
            part=part,
            rounds=self.rounds,
            step=step,
            dual_step=self.dual_step,
            tail=self.tail,
            only=only,
            clip=self.clip,
            least_share=share_of(self.least_share, groups, private=private),
            l2=self.l2,
            target=self.max_violation if penalised else None,
            shares=Shares() if self.shares is None else self.shares,
        )

    def _run(
        self, request: Request, training: PrivateTraining, records: FairInputs, seed: int | None, X: Any
    ) -> PrivateRun:
        """Train, with accounts where a ledger pays."""
        place, units = request.place(self.ledger), records.units()
        start, public = training.method.model.start(), None
        if training.method.part is Part.SENSITIVE:
            public = PublicRecords(records.rows, records.codes, records.conditions.codes)
            start = plain_fit(training.method.model, records.rows, records.codes, self.l2)
        if self.budget is not None:
            most = max(len(one) for one in units) if self.trust == "local" else len(records.rows)
            warn_of_weak(self.budget.epsilon, self.budget.delta, units=most, unit=Unit.RECORD, stacklevel=4)
        if place is None:
            federation = training.federation(units, names=records.names, seed=seed)
            run = training.train(federation, start, public=public)
            if self.budget is not None and seed is None:
                fits_of_this_process.warn(X, self.budget, stacklevel=4)
            return run
        own = training.trust is not TrustModel.CENTRAL
        with Accounts.open(place, records.names if own else ()) as accounts:
            federation = training.federation(units, names=records.names, accounts=accounts)
            return training.train(federation, start, public=public)
