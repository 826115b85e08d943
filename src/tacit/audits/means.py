"""Attacks on a round of any mean estimator, along the way in which two worst-case neighbours differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

import numpy as np

from tacit.audits.attack import Audit, Target, audit
from tacit.errors import check_count, check_positive
from tacit.means.base import MeanEstimator
from tacit.means.message import Message, Round
from tacit.means.shuffle import shuffle
from tacit.numerics import Array
from tacit.privacy import Relation, TrustModel

__all__ = ["audit_mean", "mean_target"]

_FAR: Final = 1e6
"""Rows are that many radii long, so that a clip that is missing is noticed."""


def audit_mean(
    estimator: MeanEstimator,
    delta: float,
    *,
    trust: TrustModel | None = None,
    n: int = 2,
    radius: float = 1.0,
    score: Callable[[list[Message]], float] | None = None,
    runs: int,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Audit:
    """Attack one round of mean estimation, as the observer of a trust model sees it.

    Two data sets of n rows differ in one row, opposite under replace-one, gone under add-remove, zero under
    zero-out. The observer sees the messages of one party that holds all rows (local), the permuted messages
    of n parties with one row each (shuffle), or the released mean (central).

    Args:
        estimator: Any mean estimator, with the noise that it really adds.
        delta: In [0, 1).
        trust: Whose view; None is the trust model of the estimator.
        n: Number of rows.
        radius: Of the round, > 0.
        score: What the attack computes from the messages that the observer sees; None decodes them and
            projects the mean on the direction in which the rows differ.
        runs: Number of rounds in all. An `AdditiveMean` is run on a million coordinates at once, anything
            else round by round, at some 50 microseconds each.
        confidence: Of the lower bound, in (0, 1).
        rng: Source of all randomness.

    Returns:
        The lower bound beside what `estimator.event` claims.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import AdditiveMean, GaussianNoise
        >>> mean = AdditiveMean(dim=4, noise=GaussianNoise(1.0))
        >>> found = audit_mean(mean, 1e-5, runs=100_000, rng=np.random.default_rng(0))
        >>> found.refuted, found.claimed_epsilon
        (False, 4.377179)
    """
    target = mean_target(estimator, trust=trust, n=n, radius=radius, score=score)
    return audit(
        target.run, (target.event, delta), runs=runs, confidence=confidence, rng=rng, attack=target.attack
    )


def mean_target(
    estimator: MeanEstimator,
    *,
    trust: TrustModel | None = None,
    n: int = 2,
    radius: float = 1.0,
    score: Callable[[list[Message]], float] | None = None,
) -> Target:
    """Return one round of mean estimation as something to attack; arguments as for `audit_mean`."""
    check_count("n", n, low=2)
    check_positive("radius", radius)
    view = estimator.trust if trust is None else TrustModel(trust)
    present, absent = _neighbouring_rows(estimator, n, radius)
    scores = _one_by_one(estimator, view, n, radius, score)
    if isinstance(estimator, _AllAtOnce) and score is None:
        scores = _all_at_once(estimator, Round(n=n, radius=radius))

    def run(there: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001 - as `Run` says
        return scores(present if there else absent, size, rng)

    attack = f"projection of what {view.value} trust shows" if score is None else "score of the messages"
    return Target(run=run, event=estimator.event(n, view), attack=attack)


def _neighbouring_rows(estimator: MeanEstimator, n: int, radius: float) -> tuple[Array, Array]:
    """Return two data sets that differ in the first row, in the first coordinate."""
    rows = np.zeros((n, estimator.dim))
    # All other rows at the far end: randomizers of single rows then hide the first one the least.
    rows[:, 0] = -_FAR * radius
    present = rows.copy()
    present[0, 0] = _FAR * radius
    match estimator.neighbours.relation:
        case Relation.REPLACE_ONE:
            return present, rows
        case Relation.ADD_REMOVE:
            return present, rows[1:]
        case _:
            rows[0] = 0.0
            return present, rows


_Scores = Callable[[Array, int, np.random.Generator], Array]


@runtime_checkable
class _AllAtOnce(Protocol):
    """An estimator that can run its first coordinate many times in one call."""

    def first_coordinates(self, rows: Array, round: Round, *, size: int, rng: np.random.Generator) -> Array:
        """Return `size` draws of it."""


def _all_at_once(estimator: _AllAtOnce, this_round: Round) -> _Scores:
    """Return how to run an estimator many times in one call."""
    return lambda rows, size, rng: estimator.first_coordinates(rows, this_round, size=size, rng=rng)


def _one_by_one(
    estimator: MeanEstimator,
    view: TrustModel,
    n: int,
    radius: float,
    score: Callable[[list[Message]], float] | None,
) -> _Scores:
    """Return how to run an estimator round by round."""
    shuffled = view is TrustModel.SHUFFLE
    this_round = Round(n=n, radius=radius, parties=n if shuffled else 1)

    def seen(rows: Array, rng: np.random.Generator) -> list[Message]:
        if not shuffled:
            return estimator.encode(rows, this_round, party=0, rng=rng)
        batch = [
            message
            for party, row in enumerate(rows)
            for message in estimator.encode(row[None], this_round, party=party, rng=rng)
        ]
        return shuffle(batch, rng=rng)

    def one(rows: Array, rng: np.random.Generator) -> float:
        messages = seen(rows, rng)
        return float(estimator.decode(messages, this_round, rng=rng)[0]) if score is None else score(messages)

    def scores(rows: Array, size: int, rng: np.random.Generator) -> Array:
        return np.array([one(rows, rng) for _ in range(size)])

    return scores
