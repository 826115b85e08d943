"""One level of a prefix tree: what clients send, and how likely a score misleads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from tacit.errors import ParameterError, check_count
from tacit.frequencies.bands import Band
from tacit.frequencies.central import NoisyHistogram
from tacit.frequencies.choice import make_oracle
from tacit.frequencies.oracle import FrequencyOracle, least_private
from tacit.frequencies.prefix_layout import SET_DRAWS, Layout
from tacit.frequencies.query import split_budget
from tacit.frequencies.support import Support
from tacit.numerics import Array, IntArray
from tacit.privacy import Compose, Event, Neighbours, Parallel, PrivacyBudget, TrustModel, calibrate

__all__ = ["TREE_MECHANISMS", "TreeLevel", "event_of_levels", "levels_of"]

TREE_MECHANISMS: Final = ("bh", "krr", "oue", "rappor", "ss")
"""Mechanisms whose messages support values, which is what the bounds of a prefix tree are about."""


@dataclass(frozen=True, kw_only=True)
class TreeLevel:
    """One level: who answers about which prefixes.

    Attributes:
        prefix: Length of the prefixes, in bits.
        step: Bits by which they are longer than those of the level before.
        n: Number of clients who answer.
        mechanism: One of `TREE_MECHANISMS`, or "histogram" under central trust.
        oracle: What they send: the place of the prefix among the candidates, or the last place, "other".
    """

    prefix: int
    step: int
    n: int
    mechanism: str
    oracle: FrequencyOracle | NoisyHistogram

    def above(self, score: int, frequency: float) -> float:
        """Return a bound on the probability of a score or more, of a prefix of that frequency or less."""
        if isinstance(self.oracle, NoisyHistogram):
            return _laplace_tail(self.oracle.scale, score - self.n * frequency)
        mean = _mean(self.oracle, frequency)
        # One and more off its mean, the tail of a sum of different bits is at most that of equal ones.
        if score < self.n * mean + 1:
            return 1.0
        return float(special.betainc(score, self.n - score + 1, mean)) if score <= self.n else 0.0

    def below(self, score: int, frequency: float) -> float:
        """Return a bound on the probability of a score or less, of a prefix of that frequency or more."""
        if isinstance(self.oracle, NoisyHistogram):
            return _laplace_tail(self.oracle.scale, self.n * frequency - score)
        mean = _mean(self.oracle, frequency)
        if score > self.n * mean - 1:
            return 1.0
        return float(special.betaincc(score + 1, self.n - score, mean)) if score >= 0 else 0.0

    def band(self, scores: IntArray, confidence: float) -> Band:
        """Return intervals of the frequencies among the clients of this level, for some scores of all."""
        if isinstance(self.oracle, NoisyHistogram):
            return self.oracle.band(scores, self.n, confidence)
        return _support(self.oracle).band(scores, self.n, confidence, intervals=self.oracle.k)

    def estimate(self, places: IntArray, rng: np.random.Generator) -> tuple[IntArray, Array]:
        """Let clients answer: scores, shape (k,), which grow with frequencies, and unbiased estimates."""
        if isinstance(self.oracle, NoisyHistogram):
            counts = self.oracle.counts(places, rng)
            return counts, counts / self.n
        estimates = self.oracle.estimate(self.oracle.collect(places, rng))
        return np.rint(self.scores(estimates)).astype(np.int64), estimates

    def scores(self, estimates: Array) -> Array:
        """Return the scores of which these are the estimates, but for rounding."""
        if isinstance(self.oracle, NoisyHistogram):
            return estimates * self.n
        support = _support(self.oracle)
        return np.asarray((estimates * support.gap + support.other) * self.n)

    def event(self, trust: TrustModel, neighbours: Neighbours) -> Event:
        """Return what an observer of this level learns."""
        if isinstance(self.oracle, NoisyHistogram):
            return self.oracle.event(neighbours)
        return self.oracle.event(self.n, trust, neighbours)


def event_of_levels(
    levels: tuple[TreeLevel, ...], trust: TrustModel, neighbours: Neighbours, *, dealt: bool
) -> Event:
    """Return what an observer of all levels learns.

    Args:
        levels: Of a tree.
        trust: Of the observer.
        neighbours: A replace-one relation.
        dealt: Whether every client answers in one level only.
    """
    parts = tuple(level.event(trust, neighbours) for level in levels)
    return parts[0] if len(parts) == 1 else (Parallel if dealt else Compose)(parts)


def levels_of(
    bits: int,
    n: int,
    budget: PrivacyBudget,
    trust: TrustModel,
    neighbours: Neighbours,
    mechanism: str | None,
    layout: Layout,
) -> tuple[TreeLevel, ...]:
    """Return the levels of a layout, each with the mechanism whose rare values vary least."""
    steps = np.diff((0, *layout.prefixes)).tolist()
    if not layout.prefixes or min(steps) < 1 or layout.prefixes[-1] != bits:
        raise ParameterError(f"prefixes must grow up to {bits} bits, got {layout.prefixes}.")
    check_count("kept", layout.kept, high=2 ** layout.prefixes[0])
    if min(layout.rows(n)) < 1:
        raise ParameterError(f"n must be at least {len(steps)}, one client a level, got {n}.")
    share = split_budget(budget, 1 if layout.dealt else len(steps))
    domains = [candidates + 1 for candidates in layout.candidates]
    if trust is TrustModel.CENTRAL:
        if layout.dealt:
            raise ParameterError(
                "dealt must be False under central trust, whose noise does not grow with the rows."
            )

        def histograms(scale: float) -> tuple[NoisyHistogram, ...]:
            return tuple(NoisyHistogram(k=k, scale=scale) for k in domains)

        scale = calibrate(
            lambda scale: Compose(tuple(one.event(neighbours) for one in histograms(scale))), budget
        )
        oracles: list[tuple[str, FrequencyOracle | NoisyHistogram]] = [
            ("histogram", one) for one in histograms(scale)
        ]
    else:
        # Equal levels have equal mechanisms.
        made: dict[tuple[int, int], tuple[str, FrequencyOracle]] = {}
        for key in zip(domains, layout.rows(n), strict=True):
            if key not in made:
                made[key] = _mechanism(*key, share, trust, neighbours, mechanism)
        oracles = [made[key] for key in zip(domains, layout.rows(n), strict=True)]
    return tuple(
        TreeLevel(prefix=prefix, step=step, n=rows, mechanism=name, oracle=oracle)
        for prefix, step, rows, (name, oracle) in zip(
            layout.prefixes, steps, layout.rows(n), oracles, strict=True
        )
    )


def _mechanism(
    k: int,
    n: int,
    budget: PrivacyBudget,
    trust: TrustModel,
    neighbours: Neighbours,
    mechanism: str | None,
) -> tuple[str, FrequencyOracle]:
    """Return the mechanism of one level whose rare values vary least."""

    def made(name: str) -> FrequencyOracle:
        return least_private(
            lambda level: make_oracle(name, k, level),
            budget if trust is TrustModel.SHUFFLE else PrivacyBudget(budget.epsilon),
            n=n,
            trust=trust,
            neighbours=neighbours,
        )

    if mechanism is not None:
        return mechanism, made(mechanism)
    if trust is TrustModel.SHUFFLE:
        # The level that a batch allows for hardly depends on the mechanism: one is calibrated, not two.
        sent = made("krr")
        return (
            ("krr", sent) if _rare(sent) < _rare(make_oracle("bh", k, sent.epsilon)) else ("bh", made("bh"))
        )
    names = ("bh", "krr") if n * k > SET_DRAWS else TREE_MECHANISMS
    return min(((name, made(name)) for name in names), key=lambda one: _rare(one[1]))


def _support(oracle: FrequencyOracle) -> Support:
    """Return how likely a message supports a value."""
    if oracle.support is None:
        raise ParameterError(f"mechanism must be one of {', '.join(TREE_MECHANISMS)}, got {oracle.name}.")
    return oracle.support


def _rare(oracle: FrequencyOracle) -> float:
    """Return n times the variance of the frequency of a value that nobody holds."""
    support = _support(oracle)
    return support.other * (1 - support.other) / support.gap**2


def _mean(oracle: FrequencyOracle, frequency: float) -> float:
    """Return the share of messages that support a value, on average."""
    support = _support(oracle)
    return min(support.other + frequency * support.gap, 1.0)


def _laplace_tail(scale: float, least: float) -> float:
    """Return the probability that discrete Laplace noise is at least a number."""
    least = math.ceil(least - 1e-9)
    return 1.0 if least <= 0 else math.exp(-least / scale) / (1 + math.exp(-1 / scale))
