"""SGD on reports: single gradients, each compressed and randomised by itself, then shuffled.

Source: Girgis (2023), Chapter 4: CLDP-SGD, whose parties are drawn for every round, and DSS-SGD, whose
parties join by themselves. Which parties a round is about, and which of their records, nobody learns but the
shuffler; that is most of what makes a round cheap (docs/theory/shuffling.md, section 11).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, get_args

from tacit.errors import ParameterError, check_choice, check_count, check_probability
from tacit.federation import Ask, Batch, DrawnStep, Fixed, Full, Poisson, Step
from tacit.learning.algorithms.base import Follow, Kinds, Method, Problem, check_optional
from tacit.learning.algorithms.noise_steps import noise_step
from tacit.means import (
    BitplaneMean,
    HadamardMean,
    HemisphereMean,
    PrivUnitMean,
    RotatedMean,
    multiset_bits,
    plane_levels,
)
from tacit.mechanisms import HIGHEST_LEVEL, HIGHEST_UNIT_LEVEL, LOWEST_LEVEL
from tacit.numerics import Array, Regularizer, RunningAverage
from tacit.privacy import Event, Repeat, TrustModel
from tacit.privacy.shuffling import drawn_round, self_drawn_round

__all__ = [
    "CompressedShuffledSGD",
    "ReportRandomizer",
    "SelfSampledSGD",
    "event_of_reports",
    "report_bits",
    "report_mean",
    "sgd_on_reports",
]

ReportRandomizer = Literal["hemisphere", "privunit", "rotated", "hadamard", "bitplane"]
"""How a gradient becomes a report: of an l2 ball the first three, of an l1 ball, of an l-infinity ball."""

StepRule = Literal["noise", "bound"]
"""What a first step goes by where none is given: how far noise takes a score, or the bound on the error."""

ReportMean = BitplaneMean | HadamardMean | HemisphereMean | PrivUnitMean | RotatedMean


def report_mean(
    randomizer: ReportRandomizer,
    multiplier: float,
    *,
    dim: int,
    planes: int = 1,
    samples: int = 1,
    **fields: Any,
) -> ReportMean:
    """Return the mean of reports with that much noise.

    Args:
        randomizer: Which.
        multiplier: 1 / v > 0, in which noise is linear: a bit of parameter v is wrong so often that its
            standard deviation is 1 / v of what its row moves it by, and its exact level is 2 asinh(v / 2).
            (Girgis 2023 accounts with v itself.)
        dim: Number of coordinates.
        planes: Bits of a number, for "rotated" and "bitplane".
        samples: Messages of every plane, for the same; they share v.
        **fields: Further fields of the estimator: trust, neighbours, on_violation.

    Raises:
        ParameterError: No name of a randomizer.

    Example:
        >>> round(report_mean("hadamard", 0.5, dim=4).local_epsilon, 6)
        1.762747
    """
    check_choice("randomizer", randomizer, get_args(ReportRandomizer))
    v = 1 / multiplier
    level = min(max(2 * math.asinh(v / 2), LOWEST_LEVEL), HIGHEST_LEVEL)
    fields |= {"dim": dim}
    match randomizer:
        case "hadamard":
            return HadamardMean(local_epsilon=level, **fields)
        case "hemisphere":
            return HemisphereMean(local_epsilon=level, **fields)
        case "privunit":
            return PrivUnitMean(local_epsilon=min(level, HIGHEST_UNIT_LEVEL), **fields)
    shuffled = fields.get("trust") is TrustModel.SHUFFLE
    levels = plane_levels(
        v, planes=planes, samples=samples, allocation="rdp" if shuffled else "ldp", rule="v"
    )
    fields |= {"local_epsilons": levels, "samples": samples}
    return BitplaneMean(**fields) if randomizer == "bitplane" else RotatedMean(**fields)


def report_bits(mean: ReportMean, reports: int = 1) -> int:
    """Return the bits of the reports of one party in a round, without their order where they are symbols.

    Args:
        mean: Of reports.
        reports: s, how many a party sends.
    """
    match mean:
        case HadamardMean() | BitplaneMean() | RotatedMean():
            alphabets = mean.randomizer.channels.alphabets.tolist()
            return sum(multiset_bits(reports, alphabet) for alphabet in alphabets)
        case HemisphereMean():
            return multiset_bits(reports, 2**64)
        case _:
            return 32 * mean.dim * reports


def event_of_reports(
    mean: ReportMean,
    *,
    clients: int,
    rounds: int,
    records: int = 1,
    sampled: int = 1,
    drawn: int | None = None,
    rate: float | None = None,
) -> Event:
    """Return what rounds of shuffled reports cost, whose clients are drawn or join by themselves.

    Args:
        mean: Of reports.
        clients: n, honest.
        rounds: T.
        records: m of each client.
        sampled: s of which a client reports on.
        drawn: k clients of a round; None: all of them, or those that join.
        rate: Probability with which each joins by itself; None where they are drawn.

    Raises:
        ParameterError: A number out of its range.
    """

    def once(joined: int) -> Event:
        return mean.event(joined * sampled, TrustModel.SHUFFLE)

    sizes: dict[str, Any] = {"clients": clients, "records": records, "sampled": sampled}
    if rate is not None:
        return Repeat(self_drawn_round(once, rate=rate, **sizes), rounds)
    return Repeat(drawn_round(once, drawn=clients if drawn is None else drawn, **sizes), rounds)


class _Reports(Method, frozen=True, kw_only=True):
    """What both methods share.

    Attributes:
        batch: Records of a drawn party in a round, each with a report of its own. One costs the least.
        randomizer: How a gradient becomes a report. The clip is a radius in its norm: l1 for "hadamard",
            l-infinity for "bitplane", else l2.
        planes: Bits of a number, for "rotated" and "bitplane".
        samples: Messages of every plane, for the same.
        step_size: eta_1; None goes by `step_rule`.
        step_rule: "noise": the step for which errors of all rounds take a score 1.5 away (0.25 for numbers
            and networks), at most D / G; "bound": D / G, which minimises the bound.
        decay: Whether the step of round t is eta_1 / sqrt(t), or eta_1.
        average: Share of the last points that are averaged, in [0, 1]; 0 returns the last one.
    """

    batch: Batch = Fixed(size=1)
    randomizer: ReportRandomizer = "hemisphere"
    planes: int = 1
    samples: int = 1
    step_size: float | None = None
    step_rule: StepRule = "noise"
    decay: bool = True
    average: float = 0.0

    paper: ClassVar[str] = "Girgis (2023), Chapter 4"
    caveat: ClassVar[str] = "it is for the last point and the steps of step_rule='bound'"
    why_no_sums: ClassVar[str] = "every record is randomised by itself, and a sum hides it no better"
    own_noise: ClassVar[str] = "every gradient is randomised by itself"
    counted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("randomizer", self.randomizer, get_args(ReportRandomizer))
        check_count("planes", self.planes)
        check_count("samples", self.samples)
        if self.randomizer not in ("rotated", "bitplane"):
            for name, value in (("planes", self.planes), ("samples", self.samples)):
                if value != 1:
                    raise ParameterError(
                        f"{name} must be left out for the randomizer {self.randomizer!r}, got {value!r}."
                    )
        check_optional(step_size=self.step_size)
        check_choice("step_rule", self.step_rule, get_args(StepRule))
        check_probability("average", self.average)
        if not isinstance(self.batch, Fixed | Full):
            raise ParameterError(
                f"batch must be full or a fixed number of records, drawn afresh, got {self.batch!r}."
            )

    @property
    def pure_noise(self) -> bool:
        """Whether its noise has a pure epsilon: every report has."""
        return True

    def drawn(self, problem: Problem) -> Fixed | Poisson | None:  # noqa: ARG002 - for those that draw
        """Return who is drawn of the parties; None takes all."""
        return None

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for means of randomised gradients in all rounds; without privacy, of all parties' gradients."""
        protection = problem.protection
        if protection.multiplier == 0:
            return problem.gradients(rounds, self.batch)
        if protection.trust not in self.trusts:
            raise ParameterError(
                f"trust must be {' or '.join(self.trusts)}, got {protection.trust.value}: every record is "
                "randomised before it leaves its silo."
            )
        measure = problem.measure("gradient", lambda **fields: self._mean(protection.multiplier, **fields))
        drawn = self.drawn(problem)
        if drawn is None or protection.trust is not TrustModel.SHUFFLE:
            return ((Step(measures=(measure,), batch=self.batch), rounds),)
        return ((DrawnStep(measures=(measure,), batch=self.batch, parties=drawn), rounds),)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return 2 D G (2 + ln T) / sqrt(T), for convex objectives and the last point.

        Shamir and Zhang (2013), Theorem 2, for eta_t = D / (G sqrt(t)) and E |g|^2 <= G^2. Rounds in which
        nobody joins are no steps: T is the expected number of the others.
        """
        steps = max(rounds * self._busy(problem), 1.0)
        return 2 * problem.diameter * self._moment(problem) * (2 + math.log(steps)) / math.sqrt(steps)

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse nothing that its plan does not."""

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point, or the average of the last ones."""
        first = self._first_step(problem, rounds)
        sizes = (first / math.sqrt(t) if self.decay else first for t in range(1, rounds + 1))
        return sgd_on_reports(
            ask,
            w,
            step_sizes=sizes,
            radius=problem.radius,
            prox=prox,
            averaged=max(math.ceil(rounds * self.average), 1),
            rounds=rounds,
            follow=follow,
        )

    def _mean(self, multiplier: float, **fields: Any) -> ReportMean:
        """Return the mean of reports; `noise` says nothing of it."""
        del fields["noise"]
        return report_mean(self.randomizer, multiplier, planes=self.planes, samples=self.samples, **fields)

    def _moment(self, problem: Problem) -> float:
        """Return G: of a gradient that is no longer than its clip allows, and of all errors of a round."""
        clip = problem.radius * (math.sqrt(problem.dim) if self.randomizer == "bitplane" else 1.0)
        return math.sqrt(min(clip, problem.lipschitz) ** 2 + problem.variance)

    def _first_step(self, problem: Problem, rounds: int) -> float:
        """Return eta_1, from public facts alone."""
        if self.step_size is not None:
            return self.step_size
        longest = problem.diameter / self._moment(problem)
        if self.step_rule == "bound":
            return longest
        squares = math.fsum(1 / t for t in range(1, rounds + 1)) if self.decay else rounds
        return min(longest, noise_step(problem, squares=squares * self._busy(problem)))

    def _busy(self, problem: Problem) -> float:  # noqa: ARG002 - where rounds may be empty
        """Return the share of the rounds in which anybody answers, on average."""
        return 1.0


class CompressedShuffledSGD(_Reports, frozen=True, kw_only=True, tag="cldp-sgd"):
    """SGD on compressed, randomised and shuffled gradients of secret parties (Girgis 2023, CLDP-SGD).

    In every round the shuffler draws k of all parties, each of these a few of its records, and every gradient
    is clipped and randomised by itself into some bits. Under local trust all parties take part.

    Attributes:
        rounds: T; None chooses it.
        clients: k, or a share of the parties, drawn afresh in every round; None takes all.
        batch: Records of a drawn party in a round, each with a report of its own. One costs the least.
        randomizer: How a gradient becomes a report. The clip is a radius in its norm: l1 for "hadamard",
            l-infinity for "bitplane", else l2.
        planes: Bits of a number, for "rotated" and "bitplane".
        samples: Messages of every plane, for the same.
        step_size: eta_1; None goes by `step_rule`.
        step_rule: "noise": the step for which errors of all rounds take a score 1.5 away (0.25 for numbers
            and networks), at most D / G; "bound": D / G, which minimises the bound.
        decay: Whether the step of round t is eta_1 / sqrt(t), or eta_1.
        average: Share of the last points that are averaged, in [0, 1]; 0 returns the last one.
    """

    clients: Fixed | None = None

    trusts: ClassVar[tuple[TrustModel, ...]] = (TrustModel.SHUFFLE, TrustModel.LOCAL)

    def drawn(self, problem: Problem) -> Fixed | None:
        """Return how many parties are drawn.

        Raises:
            ParameterError: More than there are, or any without a shuffler that hides who they are.
        """
        if self.clients is None:
            return None
        if problem.protection.trust is not TrustModel.SHUFFLE:
            raise ParameterError(
                f"clients must be left out under {problem.protection.trust.value} trust, where everybody "
                f"sees who answers and drawing hides nobody, got {self.clients!r}."
            )
        parties = len(problem.protection.silos)
        if self.clients.size is not None and self.clients.size > parties:
            raise ParameterError(f"clients must be at most the {parties} silos, got {self.clients.size}.")
        return Fixed(size=self.clients.size_for(parties))


class SelfSampledSGD(_Reports, frozen=True, kw_only=True, tag="dss-sgd"):
    """SGD on randomised, shuffled gradients of parties that join by themselves (Girgis 2023, DSS-SGD).

    Every party joins a round with the same probability, by randomness of its own; the mean is divided by how
    many joined, which everybody sees, and a round that nobody joins is no step.

    Attributes:
        rounds: T; None chooses it.
        rate: q, the probability that a party joins a round, in (0, 1].
        batch: Records of a party that joins, each with a report of its own. One costs the least.
        randomizer: How a gradient becomes a report. The clip is a radius in its norm: l1 for "hadamard",
            l-infinity for "bitplane", else l2.
        planes: Bits of a number, for "rotated" and "bitplane".
        samples: Messages of every plane, for the same.
        step_size: eta_1; None goes by `step_rule`.
        step_rule: "noise": the step for which errors of all rounds take a score 1.5 away (0.25 for numbers
            and networks), at most D / G; "bound": D / G, which minimises the bound.
        decay: Whether the step of round t is eta_1 / sqrt(t), or eta_1.
        average: Share of the last points that are averaged, in [0, 1]; 0 returns the last one.
    """

    rate: float = 0.5

    trusts: ClassVar[tuple[TrustModel, ...]] = (TrustModel.SHUFFLE,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_probability("rate", self.rate, low_open=True)

    def drawn(self, problem: Problem) -> Poisson:  # noqa: ARG002 - as methods define it
        """Return how often a party joins."""
        return Poisson(rate=self.rate)

    def _busy(self, problem: Problem) -> float:
        """Return 1 - (1 - q)^n."""
        parties = len(problem.protection.silos)
        return -math.expm1(parties * math.log1p(-self.rate)) if parties and self.rate < 1 else 1.0


def sgd_on_reports(
    ask: Ask,
    w: Array,
    *,
    step_sizes: Iterator[float],
    radius: float,
    prox: Regularizer,
    averaged: int,
    rounds: int,
    follow: Follow,
) -> Array:
    """Run projected SGD (Girgis 2023, Algorithm 4.3.1, from the server's side).

    Args:
        ask: Returns the mean of the reports on clipped gradients at a point.
        w: Start, shape (size,).
        step_sizes: eta_1, eta_2, ...
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint; stays on the server.
        averaged: How many of the last points are averaged; 1 returns the last.
        rounds: T.
        follow: Called after each round.

    Returns:
        Shape (size,).
    """
    average = RunningAverage()
    for t, eta in enumerate(step_sizes):
        (gradient,) = ask(t, {"w": w}, (radius,))
        w = prox(eta, w - eta * gradient)
        average = average.add(w, 0.0 if t >= rounds - averaged else -math.inf)
        follow(t, w)
    return average.value
