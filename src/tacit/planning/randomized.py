"""Proposals whose every row is randomised by itself: bits, bit planes and unit vectors, local or shuffled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from scipy import special

from tacit.errors import BudgetError
from tacit.means import (
    BitplaneMean,
    HadamardMean,
    HemisphereMean,
    MeanEstimator,
    PrivUnitGMean,
    PrivUnitMean,
    RotatedMean,
)
from tacit.means.binomial import BinomialMean
from tacit.means.planes import plane_levels
from tacit.means.rotated import EncoderName
from tacit.numerics import next_power_of_two
from tacit.planning.candidate import ComputeCost
from tacit.planning.planes import guessed_levels, shuffled_levels
from tacit.planning.problem import MeanProblem
from tacit.planning.proposals import Proposal

__all__ = ["binomial", "bit_planes", "clipping_bias", "one_message", "rotated"]

_PLANES = range(1, 9)
_KAPPAS: tuple[float | None, ...] = (None, 2.0, 3.0, 4.0)
_FEW = 16
_LARGEST_MATRIX = 2000
"""Dimension up to which a dense rotation is proposed."""


def one_message(problem: MeanProblem) -> Iterator[Proposal]:
    """Propose the mechanisms that send one randomised message a row."""
    d, n, shuffle = problem.dim, problem.n, problem.trust == "shuffle"
    K = next_power_of_two(d)
    kinds: list[tuple[str, Any, Any, ComputeCost, ComputeCost, str]] = [
        (
            "hadamard",
            HadamardMean,
            "l1",
            ComputeCost("d", float(d)),
            ComputeCost("n + d log d", n + K * math.log2(K + 1)),
            "",
        ),
        ("hemisphere", HemisphereMean, "l2", ComputeCost("d", 4.0 * d), ComputeCost("n d", 4.0 * n * d), ""),
        ("privunit", PrivUnitMean, "l2", ComputeCost("d", 4.0 * d), ComputeCost("n d", float(n) * d), _REAL),
        (
            "privunit-g",
            PrivUnitGMean,
            "l2",
            ComputeCost("d", 4.0 * d),
            ComputeCost("n d", float(n) * d),
            _REAL,
        ),
    ]
    for family, kind, norm, encode, decode, note in kinds:

        def make(kind: Any = kind) -> MeanEstimator:
            found: MeanEstimator = kind.calibrated(
                dim=d,
                budget=problem.known_budget,
                n=n,
                trust=problem.observer,
                neighbours=problem.neighbours,
            )
            return found

        level = min(max(problem.known_budget.epsilon, 2.0**-30), 30.0)
        if shuffle:
            level = guessed_levels(n, 1, 1, problem.known_budget)[0]
        guess = kind(dim=d, local_epsilon=level, trust=problem.observer, neighbours=problem.neighbours)
        yield Proposal(
            name=family,
            family=family,
            guess=guess,
            make=make,
            norm=norm,
            encode=encode,
            decode=decode,
            note=note,
        )


_REAL = "real numbers, priced as if exact: for simulation"


def bit_planes(problem: MeanProblem) -> Iterator[Proposal]:
    """Propose bit planes of the coordinates themselves, for rows in a box.

    In a box around an l1 or l2 ball the noise is that of d coordinates as large as the whole row: in more
    than a few dimensions rotations are far better.
    """
    d = problem.dim
    if problem.norm != "linf" and d > _FEW:
        return
    for m in _PLANES:
        for s in _geometric(d):

            def build(levels: tuple[float, ...], s: int = s) -> MeanEstimator:
                return BitplaneMean(
                    dim=d,
                    samples=s,
                    local_epsilons=levels,
                    trust=problem.observer,
                    neighbours=problem.neighbours,
                )

            yield _planes_proposal(
                problem, "bit planes", f"bit planes, m={m}, s={s}", m, s, d, build, norm="linf"
            )


def rotated(problem: MeanProblem) -> Iterator[Proposal]:
    """Propose bit planes of publicly rotated rows: every encoder, certified and clipping boxes."""
    d = problem.dim
    if d == 1:
        return
    encoders: list[EncoderName] = ["hadamard", "kashin"]
    if next_power_of_two(d) != d:
        encoders += ["cosine", *(("orthogonal",) if d <= _LARGEST_MATRIX else ())]
    for encoder in encoders:
        D = _coded_dim(d, encoder)
        for kappa in (None,) if encoder == "kashin" else _KAPPAS:
            if kappa is not None and kappa**2 >= D:
                continue
            for m in _PLANES:
                for s in _geometric(D):

                    def build(
                        levels: tuple[float, ...],
                        s: int = s,
                        encoder: EncoderName = encoder,
                        kappa: float | None = kappa,
                    ) -> MeanEstimator:
                        return RotatedMean(
                            dim=d,
                            samples=s,
                            local_epsilons=levels,
                            encoder=encoder,
                            kappa=kappa,
                            trust=problem.observer,
                            neighbours=problem.neighbours,
                        )

                    box = (
                        ""
                        if encoder == "kashin"
                        else "certified box, "
                        if kappa is None
                        else f"kappa={kappa:g}, "
                    )
                    peak = 2.0 if encoder == "cosine" else 1.0
                    yield _planes_proposal(
                        problem,
                        "rotated",
                        f"rotated ({encoder}), {box}m={m}, s={s}",
                        m,
                        s,
                        D,
                        build,
                        norm="l2",
                        bias=None if kappa is None else clipping_bias(kappa / math.sqrt(peak), peak=peak),
                        rotation=d * d if encoder == "orthogonal" else D * math.log2(D),
                        note=""
                        if kappa is None
                        else "over the public rotation, which must not depend on the rows",
                    )


def binomial(problem: MeanProblem) -> Iterator[Proposal]:
    """Propose shuffled binomial sums: as accurate as a trusted server, for many one-bit messages."""
    d, n, budget = problem.dim, problem.n, problem.known_budget
    if n < 2 or budget.delta == 0:
        return
    for overhead in (0.1, 1.0):

        def make(overhead: float = overhead) -> BinomialMean:
            return BinomialMean.calibrated(budget, n, d, mse_overhead=overhead, neighbours=problem.neighbours)

        try:
            found = make()
        except BudgetError:
            # Nothing ranks it; its calibration, which comes again, gives the reason.
            found = BinomialMean(dim=d, noise_bits=1, resolution=1, neighbours=problem.neighbours)
        per_row = found.bits_per_coordinate
        yield Proposal(
            name=f"binomial sums, {per_row} bits a coordinate",
            family="binomial",
            guess=found,
            make=make,
            norm="l2",
            encode=ComputeCost("(g + b) d", float(per_row) * d),
            decode=ComputeCost("n (g + b) d", float(n) * per_row * d),
            note="every one-bit message is shuffled by itself; nothing is claimed for what one party sends",
        )


def clipping_bias(kappa: float, *, peak: float = 1.0) -> float:
    """Bound the root mean squared length that a box takes off a rotated unit vector.

    A coefficient w of a unit vector is sub-Gaussian with variance proxy s^2 = peak / D over the rotation
    (Hoeffding; Marchal and Arbel 2017 for the uniform one), so that

        D E (|w| - kappa s)_+^2 <= D int 2 (t - kappa s) 2 exp(-t^2 / (2 s^2)) dt
                                = 4 peak (exp(-kappa^2 / 2) - kappa sqrt(2 pi) Q(kappa)).

    The mean of clipped rows is off by at most the root mean square of what its rows lose, whatever the rows
    are, as long as they do not depend on the rotation.

    Args:
        kappa: Half-width of the box in units of s, > 0.
        peak: D times the largest squared entry of the rotation.

    Returns:
        At most 1.

    Example:
        >>> round(clipping_bias(3.0), 4)
        0.0619

    Reference:
        Derived above. Random unit vectors in 300 dimensions lose much less: 3.6e-4 against 3.8e-3, squared.
    """
    tail = math.exp(-(kappa**2) / 2) - kappa * math.sqrt(2 * math.pi) * float(special.ndtr(-kappa))
    return min(1.0, math.sqrt(4 * peak * max(tail, 0.0)))


def _planes_proposal(
    problem: MeanProblem,
    family: str,
    name: str,
    m: int,
    s: int,
    D: int,
    build: Callable[[tuple[float, ...]], MeanEstimator],
    *,
    norm: Any,
    bias: float | None = None,
    rotation: float = 0.0,
    note: str = "",
) -> Proposal:
    """Return a proposal of m planes with s messages each."""
    budget = problem.known_budget
    if problem.trust == "shuffle":

        def levels() -> tuple[float, ...]:
            return shuffled_levels(problem.n, s, m, budget, problem.neighbours)

        guess = guessed_levels(problem.n, s, m, budget)
    else:
        # Pure levels add up; the last bits of the floats must not add up to more.
        guess = plane_levels(
            budget.epsilon * (1 - 1e-12), planes=m, samples=s, allocation="ldp", rule="level"
        )

        def levels() -> tuple[float, ...]:
            return guess

    turned = rotation > 0
    return Proposal(
        name=name,
        family=family,
        guess=build(guess),
        make=lambda: build(levels()),
        norm=norm,
        encode=ComputeCost("d log d + m s" if turned else "m s", rotation + m * s),
        decode=ComputeCost(
            "n m s + d log d" if turned else "n m s + d", rotation + problem.n * m * s + m * D
        ),
        bias=bias,
        note=note,
    )


def _geometric(D: int) -> list[int]:
    """Return 1, 2, 4, ... and D."""
    return [*(2**k for k in range(D.bit_length()) if 2**k < D), D]


def _coded_dim(d: int, encoder: str) -> int:
    """Return the number of coefficients of an encoder."""
    if encoder == "hadamard":
        return next_power_of_two(d)
    return next_power_of_two(2 * d) if encoder == "kashin" else d
