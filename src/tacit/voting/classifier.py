"""A scikit-learn classifier whose predictions are private majorities of fitted binary classifiers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _num_samples, check_is_fitted

from tacit.errors import (
    BudgetError,
    ParameterError,
    RefusalError,
    check_choice,
    check_count,
    check_probability,
    shown,
)
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget
from tacit.privacy.weak import warn_of_weak
from tacit.randomness import secure, simulated
from tacit.voting import plan
from tacit.voting.guarantee import majority_guarantee
from tacit.voting.noise_function import NoiseFunction, check_design
from tacit.voting.proofs import (
    check_stated,
    guarantees_of,
    guarantees_within,
    proven_level,
    stated_neighbours,
    with_proofs,
)
from tacit.voting.report import Shards, VotedBy
from tacit.voting.setting import Ties, allowance

__all__ = ["PrivateVotingClassifier"]

_MADE_BY_FIT = ("classes_", "guarantee_")


class PrivateVotingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Answers with the noisy majority of private binary classifiers, one release for every row.

    Every row of `predict`, hence also of `score`, is a query and is counted; beyond `max_queries` nothing is
    answered. The teachers are trained elsewhere, each privately; `fit` only designs the noise and prices it.
    A copy, a clone or a pickle counts for itself: what several of them answer about the same data adds up.

    Args:
        estimators: K fitted classifiers of the same two classes. `sklearn.base.clone` empties them, unless
            each is wrapped in a `sklearn.frozen.FrozenEstimator`.
        epsilon: Epsilon of each teacher, as a model (`voted_by` "fixed") or for each row ("fresh"). Default:
            that of the weakest `guarantee_`, with its delta, if all teachers carry one. Needed otherwise,
            unless `design` is a noise function, whose own it must not differ from. A value below the
            guarantee of a teacher, or of a part of a teacher, is refused.
        delta: Delta of each teacher, where epsilon is given.
        m: Number of teachers that a published bit may cost as much as, in [1, K]. With disjoint shards,
            m = 1 and an optimal design publish the plain majority.
        design: A name of `DESIGNS`, or a `NoiseFunction` for K teachers; then epsilon, delta, m and ties are
            its own. The default never falls towards unanimity; "optimal" may.
        ties: "coin": what an even number of teachers publishes at a tie; must be given then.
        voted_by: "fixed": predictions are functions of models that were trained once. "fresh": every
            prediction of every teacher draws new randomness and is private by itself.
        shards: "shared", or "disjoint" where each record reached one teacher, chosen without looking at it.
        max_queries: Largest number of rows that are answered.
        budget: The most that `max_queries` answers may cost; its delta is that of the guarantee. None for no
            limit but `max_queries`.
        neighbours: Under which the teachers are private: "replace-one", "add-remove" or "zero-out", all of a
            record, or `Neighbours`; None: those of their guarantees, or replacing one record where they carry
            none.
        random_state: Seed of a simulation; None takes secret randomness from the operating system.

    Attributes:
        classes_: The two labels.
        noise_: The certified design.
        guarantee_: For those who see the answers, whatever number up to `max_queries`, and however the rows
            are chosen. It assumes what the teachers' guarantees assume, and is simulated where one of them
            is.
        notes_: What else to know.
        queries_: Rows answered so far.
        n_features_in_: Number of features, where a teacher tells it.

    Example:
        >>> from sklearn.dummy import DummyClassifier
        >>> teachers = [DummyClassifier().fit([[0], [1]], [0, 1]) for _ in range(3)]
        >>> model = PrivateVotingClassifier(teachers, epsilon=0.5, m=2, max_queries=10).fit()
        >>> model.predict([[3], [4]]).shape, model.queries_, model.guarantee_.epsilon
        ((2,), 2, 1.5)

    Reference:
        Jiang (2025), Algorithm 1; docs/theory/voting.md, section 5, for the price.
    """

    def __init__(
        self,
        estimators: Sequence[Any],
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        m: float = 1.0,
        design: str | NoiseFunction = plan.DEFAULT_DESIGN,
        ties: str | None = None,
        voted_by: str = "fixed",
        shards: str = "shared",
        max_queries: int = 100,
        budget: PrivacyBudget | None = None,
        neighbours: str | Neighbours | None = None,
        random_state: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.epsilon = epsilon
        self.delta = delta
        self.m = m
        self.design = design
        self.ties = ties
        self.voted_by = voted_by
        self.shards = shards
        self.max_queries = max_queries
        self.budget = budget
        self.neighbours = neighbours
        self.random_state = random_state

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002  # what scikit-learn calls it with
        """Design the noise and price all answers; no data are used.

        Args:
            X: Ignored: the teachers are trained.
            y: Ignored.

        Raises:
            BudgetError: `max_queries` answers cost more than the budget.
            NotFittedError: A teacher is not fitted (from scikit-learn).
            ParameterError: A parameter out of its range, teachers of other than two common classes, or a
                level or neighbours that the teachers' guarantees contradict.
            RefusalError: Answers were given already, and fitting again would forget them; or a guarantee of
                a teacher does not hold when priced again.
        """
        answered = int(getattr(self, "queries_", 0))
        if answered:
            raise RefusalError(
                f"{answered} rows were answered, and fitting again would forget them. Make a new "
                "classifier; its price adds to this one's."
            )
        check_count("max_queries", self.max_queries, high=10**7)
        check_choice("voted_by", self.voted_by, [kind.value for kind in VotedBy])
        check_choice("shards", self.shards, [kind.value for kind in Shards])
        if self.random_state is not None:
            check_count("random_state", self.random_state, low=0)
        if self.budget is not None and not isinstance(self.budget, PrivacyBudget):
            raise ParameterError(f"budget must be a PrivacyBudget or None, got {shown(self.budget)}.")
        stated_neighbours(self.neighbours)
        classes = _common_classes(self.estimators)
        proofs = [guarantees_of(one, k) for k, one in enumerate(self.estimators)]
        within = [proofs[k] or guarantees_within(one, k) for k, one in enumerate(self.estimators)]
        noise, near = self._designed(proofs, within)
        price, notes = majority_guarantee(
            noise,
            queries=int(self.max_queries),
            shards=Shards(self.shards),
            voted_by=VotedBy(self.voted_by),
            delta=None if self.budget is None else self.budget.delta,
            neighbours=near,
        )
        every = [proof for own in proofs for proof in own]
        price = with_proofs(price, every, proven=all(proofs), simulated=self.random_state is not None)
        if self.budget is not None and not self.budget.covers(price.epsilon, price.delta):
            raise BudgetError(
                f"{self.max_queries} answers cost epsilon {price.epsilon!r} at delta {price.delta!r}, more "
                f"than the budget of {self.budget.epsilon!r}."
            )
        warn_of_weak(price.epsilon, price.delta, unit=price.neighbours.unit, stacklevel=3)
        told = [one.n_features_in_ for one in self.estimators if hasattr(one, "n_features_in_")]
        if told:
            self.n_features_in_ = told[0]
        self.classes_, self.noise_, self.guarantee_, self.notes_ = classes, noise, price, notes
        # What was promised is what is kept, whatever `set_params` says later.
        self._teachers, self._most = tuple(self.estimators), int(self.max_queries)
        self._seed = self.random_state
        self._fitted = [_fitted_as(one) for one in self._teachers]
        self._counting = threading.Lock()
        self.queries_ = 0
        return self

    def predict(self, X: Any) -> Array:
        """Publish one label for each row.

        Args:
            X: What the teachers take, shape (rows, features).

        Returns:
            Labels, shape (rows,). The same row asked twice is two releases, with noise of their own.

        Raises:
            BudgetError: The rows exceed what is left of `max_queries`; none is answered.
            NotFittedError: Before `fit` (from scikit-learn).
            ParameterError: A teacher predicts something else than one of the two classes for each row.
            RefusalError: A teacher was fitted again since `fit`: that is a new release of its data.
        """
        check_is_fitted(self, "noise_")
        rows = _num_samples(X)
        with self._counting:
            left = self._most - self.queries_
            if rows > left:
                raise BudgetError(
                    f"{rows} rows were asked, and {left} of {self._most} are left; none was answered."
                )
            self._check_fitted()
            votes = self._votes(X, rows)
            rng = (
                secure() if self._seed is None else simulated(self._seed, "voting-classifier", self.queries_)
            )
            # Counted before the answer exists: one that is lost on its way was still paid for.
            self.queries_ += rows
        return np.asarray(self.classes_[self.noise_.release(votes, rng)])

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without its lock, which cannot be copied."""
        state = dict(super().__getstate__())
        state.pop("_counting", None)
        state.pop("_fitted", None)  # a copy has teachers of its own
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state with a lock of its own."""
        super().__setstate__(state)
        if "queries_" in state:
            self._counting = threading.Lock()
            self._fitted = [_fitted_as(one) for one in self._teachers]

    def _designed(
        self, proofs: list[list[Guarantee]], within: list[list[Guarantee]]
    ) -> tuple[NoiseFunction, Neighbours]:
        """Return the design that was asked for, and whom the teachers protect.

        Args:
            proofs: What each teacher carries itself.
            within: That, or what its parts carry.
        """
        if self.voted_by == VotedBy.FRESH and any(within):
            k = [bool(own) for own in within].index(True)
            raise ParameterError(
                f"voted_by must be 'fixed' where a teacher carries a guarantee, as number {k} does: it is "
                "that of a model, whose answers do not add up as those of fresh randomness do."
            )
        level = self._level(proofs)
        near = check_stated(within, level, stated_neighbours(self.neighbours))
        if isinstance(self.design, NoiseFunction):
            return self.design, near
        if self.ties is not None:
            check_choice("ties", self.ties, [tie.value for tie in Ties])
        ties = None if self.ties is None else Ties(self.ties)
        # Where a record reaches one teacher, all that teacher's votes may be published: no noise is needed.
        reached = 1 if self.shards == Shards.DISJOINT and self.m == 1 else None
        setting = allowance(
            len(proofs), level.epsilon, self.m, delta=level.delta, ties=ties, affected=reached
        )
        return plan.design(setting, self.design), near

    def _level(self, proofs: list[list[Guarantee]]) -> PrivacyBudget:
        """Return the level of each teacher: the stated one, or what all of them prove."""
        if isinstance(self.design, NoiseFunction):
            check_design(self.design, teachers=len(proofs), epsilon=self.epsilon, delta=self.delta)
            return PrivacyBudget(self.design.setting.epsilon, self.design.setting.delta)
        if self.epsilon is not None:
            check_probability("delta", self.delta, high_open=True)
            return PrivacyBudget(self.epsilon, self.delta)
        level = proven_level(proofs)
        if level is None:
            k = [bool(own) for own in proofs].index(False)
            raise ParameterError(
                f"epsilon must be given, the privacy of each teacher: number {k} carries no guarantee, and "
                "it cannot be seen."
            )
        if self.delta:
            raise ParameterError(f"delta must come with epsilon, got {self.delta!r} without.")
        return level

    def _check_fitted(self) -> None:
        """Refuse a teacher that is no longer the one that was priced."""
        for k, (one, before) in enumerate(zip(self._teachers, self._fitted, strict=True)):
            if any(now is not then for now, then in zip(_fitted_as(one), before, strict=True)):
                raise RefusalError(
                    f"number {k} of the estimators was fitted again: what it learned anew is not paid for. "
                    "Make a new classifier; its price adds to this one's."
                )

    def _votes(self, X: Any, rows: int) -> IntArray:
        """Return 1 where a teacher predicts the second class: shape (rows, K)."""
        found = np.empty((rows, len(self._teachers)), dtype=np.int64)
        for k, teacher in enumerate(self._teachers):
            said = np.asarray(teacher.predict(X))
            if said.shape != (rows,) or not np.isin(said, self.classes_).all():
                raise ParameterError(
                    f"estimators must predict one of the two classes for each row; number {k} does not."
                )
            found[:, k] = said == self.classes_[1]
        return found


def _fitted_as(teacher: Any) -> tuple[Any, ...]:
    """Return what every fit of a teacher makes anew; None for what it makes anew whenever it is read."""
    reads = [(getattr(teacher, name, None), getattr(teacher, name, None)) for name in _MADE_BY_FIT]
    return tuple(one if one is other else None for one, other in reads)


def _common_classes(estimators: Any) -> Array:
    """Return the two classes of all teachers; which ones they are is not quoted."""
    if not isinstance(estimators, Sequence) or not estimators:
        raise ParameterError("estimators must be a list of at least one fitted classifier.")
    known: list[Any] = [getattr(one, "classes_", None) for one in estimators]
    for k, classes in enumerate(known):
        if classes is None:
            raise NotFittedError(f"estimators must be fitted classifiers; number {k} has no classes_.")
        if np.shape(classes) != (2,) or not np.array_equal(classes, known[0]):
            raise ParameterError(
                f"estimators must all know the same two classes; number {k} has shape {np.shape(classes)} or "
                "other classes."
            )
    return np.asarray(known[0])
