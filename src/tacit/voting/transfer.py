"""Private knowledge transfer: teachers learn from private records, a student from their published labels.

Source: Papernot et al. (2017), arXiv:1610.05755, with teachers that are private or not; Jiang (2025),
Section 3.7.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from tacit.data.validated import validated
from tacit.errors import (
    BudgetError,
    DataError,
    ParameterError,
    TacitError,
    check_choice,
    check_count,
    shown,
)
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, Unit
from tacit.privacy.weak import warn_of_weak
from tacit.randomness import PublicStream, secure, simulated
from tacit.voting import plan
from tacit.voting.gnmax import GNMax
from tacit.voting.noise_function import NoiseFunction, certified, check_design
from tacit.voting.proofs import stated_neighbours, with_proofs
from tacit.voting.report import Shards
from tacit.voting.setting import Ties, allowance
from tacit.voting.staircase import Staircase
from tacit.voting.teachers import (
    check_neighbours,
    check_teacher,
    check_unfitted,
    index_shards,
    proofs_of,
    seed_parts,
)
from tacit.voting.vote_rule import VoteRule, check_open, public_labels, said_codes

__all__ = ["KnowledgeTransfer"]

_MAJORITY = "majority"
# Beyond these a plain majority goes without a certificate, which could only lower the price of one label.
_MOST_EXPONENT, _MOST_CERTIFIED = 300.0, 301
_PUBLIC = "no private record had an influence on the public rows"


class KnowledgeTransfer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train a student on labels of public rows that private teachers publish by a vote.

    K teachers learn from private records; for some public rows the (noisy) winner of their votes is
    published; the student learns from these labels. All that `predict` says is computed from the published
    labels, so `guarantee_` covers the student, its predictions and its pickle, however often it is used.

    Every call of `fit` trains new teachers and is a release of its own: the prices of several calls on the
    same records add up, and so do those of copies and clones.

    Neither teachers nor votes are kept: both reveal more than the labels, and would leave with a pickle.

    Args:
        teacher: An unfitted classifier; K clones of it are trained. Under private designs every clone must
            prove its level by `guarantee_`, as `FederatedLogisticRegression` does, before any label is
            published. A parameter `classes` that is None is set to the public labels.
        student: An unfitted classifier for labels 0, ..., C - 1, and -1 with `semi_supervised`.
        teachers: K >= 1.
        design: "majority": publish the winner as it is, for private teachers; with disjoint shards it costs
            what one teacher costs. A name of `DESIGNS` or a `NoiseFunction`: noise on the majority of
            private teachers, two classes. For teachers that are not private, on disjoint shards: `GNMax`,
            any number of classes, or `Staircase`, two, which is the better for few labels.
        epsilon: Epsilon of each private teacher; None takes `teacher.budget`, with its delta. A noise
            function has its own, and teachers that are not private need none.
        delta: Delta of each private teacher, where epsilon is given.
        m: Number of teachers that a label may cost as much as, in [1, K]; for the names of `DESIGNS`.
        ties: "coin": what an even number of teachers publishes at a tie of two classes; must be given then.
            GNMax has no ties, and a majority without a `noise_` always breaks them at random.
        shards: "disjoint": each record reaches one teacher, chosen by its index and `split_seed` alone.
            "shared": every private teacher learns from all records, with randomness of its own.
        queries: Number of public rows that get a label; None: all of them.
        classes: Public labels. None reads them off `y`, with a warning, and the guarantee names that.
        semi_supervised: Also hand the public rows without a label to the student, with label -1.
        budget: The most that one fit may cost; its delta is that of the guarantee. Needed for GNMax, whose
            delta must be > 0; else None for no limit and the delta that the teachers' deltas add up to.
        teachers_are_private: You vouch that teachers without a `guarantee_` are (epsilon, delta)-DP under
            `neighbours`; the guarantee then assumes it.
        neighbours: Under which the labels are private: "replace-one", "add-remove" or "zero-out", all of a
            record, or `Neighbours`. Private teachers must have the same, and disjoint shards refuse to add or
            remove a record. None: those of the teachers' guarantees, or replacing one record where they
            carry none.
        split_seed: Public: decides the shards, and which public rows are asked.
        random_state: Seed of a simulation; None takes secret randomness from the operating system.

    Attributes:
        student_: The trained student.
        classes_: The C labels.
        labels_: Published, shape (queries,), values of `classes_`.
        queries_: Indices of the public rows that they belong to, shape (queries,).
        guarantee_: For those who see the labels, the student, or anything made of them.
        notes_: What else to know.
        noise_: The `NoiseFunction`, `GNMax` or `Staircase`; None for a majority as it is whose price no noise
            function carries (more than two classes, or very many teachers).
        n_features_in_: Number of features.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from tacit.voting import GNMax, KnowledgeTransfer
        >>> X, X_public = (np.linspace(-1, 1, rows).reshape(-1, 1) for rows in (400, 100))
        >>> model = KnowledgeTransfer(
        ...     LogisticRegression(), LogisticRegression(), design=GNMax(sigma=4.0), queries=20,
        ...     classes=[0, 1], budget=PrivacyBudget(20.0, 1e-5), random_state=0,
        ... ).fit(X, (X[:, 0] > 0).astype(int), X_public=X_public)
        >>> bool(model.score(X, X[:, 0] > 0) > 0.8), len(model.labels_), model.guarantee_.epsilon < 12
        (True, 20, True)

    Reference:
        Jiang (2025), Section 3.7.2; the price is that of models that were trained once
        (docs/theory/voting.md, section 5).
    """

    def __init__(
        self,
        teacher: Any,
        student: Any,
        *,
        teachers: int = 11,
        design: str | NoiseFunction | GNMax | Staircase = _MAJORITY,
        epsilon: float | None = None,
        delta: float = 0.0,
        m: float = 1.0,
        ties: str | None = None,
        shards: str = "disjoint",
        queries: int | None = None,
        classes: Any = None,
        semi_supervised: bool = False,
        budget: PrivacyBudget | None = None,
        teachers_are_private: bool = False,
        neighbours: str | Neighbours | None = None,
        split_seed: int = 0,
        random_state: int | None = None,
    ) -> None:
        self.teacher = teacher
        self.student = student
        self.teachers = teachers
        self.design = design
        self.epsilon = epsilon
        self.delta = delta
        self.m = m
        self.ties = ties
        self.shards = shards
        self.queries = queries
        self.classes = classes
        self.semi_supervised = semi_supervised
        self.budget = budget
        self.teachers_are_private = teachers_are_private
        self.neighbours = neighbours
        self.split_seed = split_seed
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, X_public: Any, progress: Callable[[int, int], object] | None = None
    ) -> Self:
        """Train the teachers, publish labels, train the student: one release.

        Args:
            X: Private records, shape (n, d), numbers, n >= K.
            y: Their labels, shape (n,).
            X_public: Public rows, shape (rows, d); no private record may have had an influence on them.
            progress: Called with (teachers trained, K).

        Raises:
            BudgetError: The labels would cost more than the budget; nothing was trained.
            DataError: `y` holds labels outside `classes`, or fewer than two are known; a teacher could not
                be trained.
            ParameterError: A parameter is out of its range, or does not fit the others; nothing was trained.
            RefusalError: A teacher does not prove its level, or proves it under neighbours that do not fit
                the shards; no label was published.
            ValueError: X, y or X_public is not numbers, or not finite (from scikit-learn).
        """
        # A fit that is refused must leave nothing behind.
        probe = type(self)(self.teacher, self.student)
        X, y = validated(probe, X, y)
        check_classification_targets(y)
        rows = validated(probe, X_public, reset=False)
        self._check_plain()
        classes, clauses = public_labels(self.classes, y)
        queries = len(rows) if self.queries is None else self.queries
        check_count("queries", queries, high=len(rows))
        shards = Shards(self.shards)
        stated = stated_neighbours(self.neighbours)
        near = stated or Neighbours()
        if stated is not None:
            check_neighbours(stated, stated, shards)
        rule = self._rule(classes, int(queries), shards)
        check_teacher(
            self.teacher,
            rule.level,
            vouched=self.teachers_are_private,
            seeded=self.random_state is not None,
        )
        delta = None if self.budget is None else self.budget.delta
        price, notes = rule.price(delta=delta, neighbours=near)
        self._check_budget(price, int(queries))
        units = len(X) if near.unit is Unit.RECORD else None
        warn_of_weak(price.epsilon, price.delta, units=units, unit=near.unit, stacklevel=3)
        parts = [np.arange(len(X))] * int(self.teachers)
        if shards is Shards.DISJOINT:
            parts = index_shards(len(X), int(self.teachers), self.split_seed)
        chosen = PublicStream(self.split_seed, 0, purpose="knowledge-transfer queries")
        asked = np.sort(chosen.permutation(len(rows))[: int(queries)])

        votes, proofs, proven = self._votes(
            rule, classes, [(X[part], y[part]) for part in parts], rows[asked], stated, progress
        )
        if proofs:
            price, _ = rule.price(delta=delta, neighbours=proofs[0].neighbours)
        price = with_proofs(
            price,
            proofs,
            proven=proven,
            clauses=(*clauses, _PUBLIC),
            simulated=self.random_state is not None,
        )
        codes = rule.release(votes, self._stream("release"))
        # What is paid for is kept, also if the student should fail; not a student of other labels.
        self.__dict__.pop("student_", None)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(probe, name):
                setattr(self, name, getattr(probe, name))
        self.classes_, self.queries_, self.labels_ = classes, asked, classes[codes]
        self.guarantee_, self.notes_, self.noise_ = price, notes, rule.noise
        self.student_ = self._taught(rows, asked, codes)
        return self

    def _check_budget(self, price: Guarantee, queries: int) -> None:
        """Refuse labels that cost more than the budget."""
        if self.budget is not None and not self.budget.covers(price.epsilon, price.delta):
            raise BudgetError(
                f"{queries} labels cost epsilon {price.epsilon!r} at delta {price.delta!r}, more than the "
                f"budget of {self.budget.epsilon!r}; nothing was trained."
            )

    def predict(self, X: Any) -> Array:
        """Return the student's labels, shape (rows,); that costs no privacy.

        Raises:
            NotFittedError: Before `fit` (from scikit-learn).
            ParameterError: The student says something that is not a label.
        """
        check_is_fitted(self, "student_")
        X = validated(self, X, reset=False)
        return np.asarray(self.classes_[said_codes(self.student_, X, len(self.classes_))])

    def _check_plain(self) -> None:
        """Check the parameters one by one."""
        check_unfitted("teacher", self.teacher)
        check_unfitted("student", self.student)
        check_count("teachers", self.teachers, high=10**4)
        check_choice("shards", self.shards, [kind.value for kind in Shards])
        check_count("split_seed", self.split_seed, low=0)
        if self.random_state is not None:
            check_count("random_state", self.random_state, low=0)
        if self.ties is not None:
            check_choice("ties", self.ties, [tie.value for tie in Ties])
        if self.budget is not None and not isinstance(self.budget, PrivacyBudget):
            raise ParameterError(f"budget must be a PrivacyBudget or None, got {shown(self.budget)}.")
        if isinstance(self.design, str):
            check_choice("design", self.design, [_MAJORITY, *plan.DESIGNS])
        elif not isinstance(self.design, NoiseFunction | GNMax | Staircase):
            raise ParameterError(
                "design must be a name, a NoiseFunction, a GNMax or a Staircase, got a "
                f"{type(self.design).__name__}."
            )

    def _rule(self, classes: Array, queries: int, shards: Shards) -> VoteRule:
        """Return how votes become labels, checked against the number of teachers and classes."""
        teachers, many = int(self.teachers), len(classes) > 2
        if isinstance(self.design, GNMax | Staircase):
            check_open(self.design, classes=len(classes), teachers=teachers, shards=shards)
            if self.epsilon is not None or self.delta:
                raise ParameterError(
                    f"epsilon and delta must not be given for {type(self.design).__name__}, got "
                    f"{(self.epsilon, self.delta)!r}: its teachers are not private, and the design says what "
                    "a label costs."
                )
            if isinstance(self.design, GNMax) and (self.budget is None or self.budget.delta == 0):
                raise ParameterError(
                    "budget must be given with a delta > 0 for GNMax, that of the guarantee."
                )
            return VoteRule(self.design, None, teachers, len(classes), queries, shards)
        if many and self.design != _MAJORITY:
            raise ParameterError(
                f"design must be 'majority' or a GNMax for {len(classes)} classes: the privacy condition of "
                "a noise function is about one bit. GNMax publishes the winner of several classes."
            )
        if isinstance(self.design, NoiseFunction):
            s = self.design.setting
            check_design(self.design, teachers=teachers, epsilon=self.epsilon, delta=self.delta)
            if shards is Shards.SHARED and s.affected not in (None, teachers):
                raise ParameterError(
                    f"design must be certified for records that reach all {teachers} teachers, as they do "
                    f"with shards='shared'; got one for records that reach {s.affected}."
                )
            return VoteRule(self.design, PrivacyBudget(s.epsilon, s.delta), teachers, 2, queries, shards)
        level = self._level()
        plain = self.design == _MAJORITY
        few = teachers <= _MOST_CERTIFIED and teachers * level.epsilon <= _MOST_EXPONENT
        if plain and (many or not few):
            return VoteRule(None, level, teachers, len(classes), queries, shards)
        ties = None if self.ties is None else Ties(self.ties)
        m = float(teachers) if plain else self.m
        setting = allowance(teachers, level.epsilon, m, delta=level.delta, ties=ties)
        noise = (
            certified(np.ones(setting.free), setting, method=_MAJORITY)
            if plain
            else plan.design(setting, str(self.design))
        )
        return VoteRule(noise, level, teachers, 2, queries, shards)

    def _level(self) -> PrivacyBudget:
        """Return what each private teacher must keep."""
        if self.epsilon is not None:
            return PrivacyBudget(self.epsilon, self.delta)
        found = getattr(self.teacher, "budget", None)
        if not isinstance(found, PrivacyBudget):
            raise ParameterError(
                "epsilon must be given, the privacy of each teacher, where teacher has no `budget`."
            )
        if self.delta:
            raise ParameterError(f"delta must come with epsilon, got {self.delta!r} without.")
        return found

    def _stream(self, *purpose: str | int) -> np.random.Generator:
        """Return randomness for one purpose."""
        if self.random_state is None:
            return secure()
        return simulated(self.random_state, "knowledge-transfer", *purpose)

    def _votes(
        self,
        rule: VoteRule,
        classes: Array,
        parts: list[tuple[Array, Array]],
        rows: Array,
        stated: Neighbours | None,
        progress: Callable[[int, int], object] | None,
    ) -> tuple[IntArray, list[Guarantee], bool]:
        """Train the teachers in turn; return votes (queries, K), proofs, and whether all gave one."""
        votes = np.empty((len(rows), len(parts)), dtype=np.int64)
        proofs: list[Guarantee] = []
        first = stated
        proven = rule.level is not None
        for k, (X, y) in enumerate(parts):
            teacher = clone(self.teacher)
            if teacher.get_params(deep=False).get("classes", classes) is None:
                teacher.set_params(classes=classes)
            if self.random_state is not None:
                seed_parts(teacher, self._stream("teacher", k))
            elif rule.level is None:
                # On one common stream, what a teacher draws would move all that are trained after it.
                seed_parts(teacher, self._stream(), only_unset=True)
            if rule.level is None and len(np.unique(y)) == 1:
                # Any function of the own shard will do for a teacher that is not private.
                teacher = DummyClassifier(strategy="most_frequent")
            try:
                teacher.fit(X, y)
            except TacitError:
                raise
            except Exception as error:  # whatever a library raises
                raise DataError(f"teacher number {k} could not be trained.") from error
            if rule.level is not None:
                found = proofs_of(teacher, k, rule.level, vouched=self.teachers_are_private)
                for near in [proof.neighbours for proof in found] or [stated or Neighbours()]:
                    first = near if first is None else first
                    check_neighbours(near, first, rule.shards)
                proven = proven and bool(found)
                proofs += [proof for proof in found if proof not in proofs]
            said = np.asarray(teacher.predict(rows))
            if said.shape != (len(rows),) or not np.isin(said, classes).all():
                raise ParameterError(
                    f"teacher must predict one of the classes for each row; number {k} does not."
                )
            votes[:, k] = np.searchsorted(classes, said)
            if progress is not None:
                progress(k + 1, len(parts))
        return votes, proofs, proven

    def _taught(self, rows: Array, asked: IntArray, codes: IntArray) -> Any:
        """Return the student, trained on nothing but public rows and published labels."""
        if len(np.unique(codes)) == 1:
            student: Any = DummyClassifier(strategy="most_frequent")
            return student.fit(rows[asked], codes)
        student = clone(self.student)
        if self.random_state is not None:
            seed_parts(student, self._stream("student"), only_unset=True)
        known = np.full(len(rows), -1, dtype=np.int64)
        known[asked] = codes
        used = slice(None) if self.semi_supervised else asked
        student.fit(rows[used], known[used])
        said_codes(student, rows, len(self.classes_))
        return student
