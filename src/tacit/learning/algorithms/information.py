"""What a person chooses an algorithm by: what it needs and what it asks, read off the algorithm itself."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tacit.errors import TacitError, check_choice
from tacit.federation import Batch, Disjoint, Fixed, Full, Plan, Poisson, with_honest
from tacit.learning.algorithms.base import (
    Algorithm,
    Convexity,
    Method,
    Problem,
    needs_delta,
    traits_of,
)
from tacit.learning.algorithms.protection import Protection
from tacit.learning.algorithms.registry import ALGORITHMS, make_algorithm
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Logistic, Loss, Squared
from tacit.means import GaussianNoise
from tacit.privacy import TrustModel

__all__ = ["AlgorithmInfo", "RoundInfo", "about"]

_LENGTHS = (600, 1200)
"""Rounds of two runs that are looked at: how often a kind is asked in each tells its rule."""


@dataclass(frozen=True)
class RoundInfo:
    """One kind of round of an algorithm with its own options.

    Attributes:
        statistics: What a unit contributes to its means.
        batch: Which units are in it: "full", "fixed", "poisson" or "disjoint".
        count: How often it is asked, in words.
    """

    statistics: tuple[str, ...]
    batch: str
    count: str


@dataclass(frozen=True)
class AlgorithmInfo:
    """What a person chooses an algorithm by.

    Attributes:
        name: In `ALGORITHMS`.
        summary: One line.
        trusts: The trust models that it runs under; every algorithm also runs without privacy.
        statistics: What it asks of units.
        options: What can be set.
        paper: Where it comes from.
        convexity: The weakest class of objectives that its bound holds for.
        smooth: Whether its own step sizes need a smooth loss, whose smoothness is known.
        delta: Whether it needs delta > 0 with its own options.
        pure: Whether an option gives it noise with a pure epsilon, for delta = 0.
        penalties: What penalties and domains it takes: "any", "none", "squared loss" where it takes them
            beside that loss alone, or "l1, l2, ball" where its silos apply these.
        rounds: Its kinds of rounds, with its own options, in order.
    """

    name: str
    summary: str
    trusts: tuple[str, ...]
    statistics: tuple[str, ...]
    options: tuple[str, ...]
    paper: str
    convexity: Convexity
    smooth: bool
    delta: bool
    pure: bool
    penalties: str
    rounds: tuple[RoundInfo, ...]

    @property
    def needs(self) -> str:
        """What it needs, in words."""
        delta = "delta > 0 unless pure" if self.pure else "delta > 0"
        facts = [self.convexity, *(["smooth"] if self.smooth else []), *([delta] if self.delta else [])]
        return ", ".join(facts)


def about(name: str) -> AlgorithmInfo:
    """Return what the algorithm of that name is.

    Raises:
        UnknownNameError: No such algorithm; the nearest name is suggested.
    """
    kind = ALGORITHMS[check_choice("algorithm", name, ALGORITHMS)]
    algorithm = make_algorithm(name)
    return AlgorithmInfo(
        name=name,
        summary=(kind.__doc__ or "").split("\n", 1)[0],
        trusts=tuple(trust.value for trust in kind.trusts),
        statistics=tuple(kind.statistics),
        options=kind.__struct_fields__,
        paper=kind.paper,
        convexity=kind.needs,
        smooth=_needs_smoothness(algorithm),
        delta=needs_delta(algorithm),
        pure="pure" in kind.__struct_fields__,
        penalties=_taken(algorithm),
        rounds=_rounds(algorithm),
    )


def _taken(algorithm: Algorithm) -> str:
    """Return what penalties an algorithm takes, by a linear model of each kind."""
    if traits_of(algorithm).hidden:
        return "l1, l2, ball"
    losses: dict[str, Loss] = {"squared loss": Squared(), "classification": Logistic()}
    taken = [
        name
        for name, loss in losses.items()
        if not isinstance(algorithm, Method)
        or not algorithm.why_no_regularizer(LinearObjective(loss=loss, features=1, feature_norm=1.0))
    ]
    return "any" if len(taken) == len(losses) else taken[0] if taken else "none"


class _Watched(Problem):
    """An example of a problem that knows whether its smoothness was asked for."""

    asked_for_smoothness = False

    @property
    def known_smoothness(self) -> float:
        """The smoothness of a record's loss."""
        object.__setattr__(self, "asked_for_smoothness", True)
        return super().known_smoothness


def _example() -> _Watched:
    """Return a problem that every algorithm can plan for: logistic, with features of norm 1."""
    return _Watched(
        smoothness=0.25,
        radius=1.0,
        diameter=10.0,
        dim=5,
        variance=0.1,
        lipschitz=1.0,
        protection=Protection(noise=GaussianNoise, multiplier=1.0, epsilon=1.0, delta=1e-6),
        sizes=(10_000,),
        features=5,
        feature_norm=1.0,
        loss=Logistic(),
        rows=10_000,
        errors={"gradient": 0.1},
    )


def _needs_smoothness(algorithm: Algorithm) -> bool:
    """Return whether an algorithm counts on a smoothness that nobody knows, before it runs."""
    problem = replace(_example(), smoothness=math.inf)
    with suppress(TacitError):
        algorithm.check(problem, algorithm.rounds or _LENGTHS[0])
    return problem.asked_for_smoothness


def _rounds(algorithm: Algorithm) -> tuple[RoundInfo, ...]:
    """Return the kinds of rounds of an algorithm, from the plans of two runs."""
    lengths = _LENGTHS if algorithm.rounds is None else (algorithm.rounds, algorithm.rounds)
    short, long = (_counts(algorithm, rounds) for rounds in lengths)
    return tuple(
        RoundInfo(statistics=statistics, batch=batch, count=_rule(lengths, (less, long[statistics, batch])))
        for (statistics, batch), less in short.items()
    )


def _counts(algorithm: Algorithm, rounds: int) -> Counter[tuple[tuple[str, ...], str]]:
    """Return how often a run of that length asks what, of which batches."""
    found: Counter[tuple[tuple[str, ...], str]] = Counter()
    problem = _example()
    kinds: dict[str, Any]
    if TrustModel.LOCAL in algorithm.trusts:
        kinds = {"steps": algorithm.steps(problem, rounds), "parties": 1}
    else:
        sizes, trust = (5000, 5000), TrustModel.SHUFFLE
        hidden = replace(problem.protection, trust=trust, silos=sizes, fewest=2)
        steps = with_honest(
            algorithm.steps(replace(problem, protection=hidden), rounds), sizes, n_min=2, colluding=0
        )
        kinds = {"steps": steps, "parties": 2, "trust": trust, "n_min": 2}
    for step, count in Plan(**kinds).kinds:
        found[tuple(measure.statistic for measure in step.measures), _batch(step.batch)] += count
    return found


def _batch(batch: Batch) -> str:
    """Return the name of a kind of batch."""
    match batch:
        case Full():
            return "full"
        case Fixed():
            return "fixed"
        case Poisson():
            return "poisson"
        case Disjoint():
            return "disjoint"


def _rule(lengths: tuple[int, int], counts: tuple[int, int]) -> str:
    """Return in words how often a kind is asked, from its numbers in runs of two lengths."""
    (short, long), (less, more) = lengths, counts
    if less == more:
        return "once" if less == 1 else f"{less} times"
    share = Fraction(more - less, long - short)
    if share == 1:
        return "every round" if less == short else f"all rounds but {short - less}"
    if share == Fraction(less, short):
        return f"{share.numerator} in {share.denominator} rounds"
    return f"{less} of {short} rounds"  # the share changes with the length
