"""Proposals without privacy: linear maps of all kinds, kept coordinates, and rounded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tacit.means import (
    AdditiveMean,
    Induced,
    MeanEstimator,
    QuantizedMean,
    RandK,
    RandKSpatial,
    RandProjSpatial,
    TopKMean,
    Wangni,
)
from tacit.planning.candidate import ComputeCost
from tacit.planning.problem import MeanProblem
from tacit.planning.proposals import Proposal
from tacit.planning.rules import advised_transform

__all__ = ["kept_coordinates", "linear_maps", "whole_rows"]

_SHARES = (1, 4, 16, 64)
"""Numbers that a party sends, as shares of the most that it may."""


def whole_rows(problem: MeanProblem) -> Iterator[Proposal]:
    """Propose what others are measured against: rows in full, or every coordinate rounded at random."""
    d, n = problem.dim, problem.n
    yield _proposal(
        "rows in full",
        "rows in full",
        AdditiveMean(dim=d),
        problem,
        ComputeCost("d", d),
        ComputeCost("n d", n * d),
    )
    for scheme, rotate, levels in [
        *(("uniform", turned, 2**bits) for bits in (1, 2, 4, 8, 16) for turned in (False, True)),
        *(("qsgd", False, levels) for levels in (1, 3, 15, 255)),
    ]:
        found = QuantizedMean(dim=d, levels=levels, scheme=scheme, rotate=rotate)  # type: ignore[arg-type]
        cost = d * problem.log_dim if rotate else float(d)
        yield _proposal(
            f"quantized ({scheme}{', rotated' if rotate else ''}), {levels} levels",
            "quantized",
            found,
            problem,
            ComputeCost("d log d" if rotate else "d", cost),
            ComputeCost("n d", n * d + cost),
        )


def linear_maps(problem: MeanProblem) -> Iterator[Proposal]:
    """Propose Rand-k and the spatial decoders: `opt` for a correlation that is known, else `avg`."""
    d, n, R = problem.dim, problem.n, problem.total_correlation
    for k in _counts(problem, lambda k: RandK(dim=d, k=k), d):
        yield _proposal(
            f"rand-k, k={k}",
            "rand-k",
            RandK(dim=d, k=k),
            problem,
            ComputeCost("k", k),
            ComputeCost("n k + d", n * k + d),
        )
    if n == 1:
        return
    advised = advised_transform(R, n)
    for k in _counts(problem, lambda k: RandK(dim=d, k=k), d):
        yield _proposal(
            f"rand-k-spatial ({advised}), k={k}",
            "rand-k-spatial",
            RandKSpatial(dim=d, k=k, transform=advised, correlation=R if advised == "opt" else None),
            problem,
            ComputeCost("k", k),
            ComputeCost("n k + d", n * k + d),
        )
    # Where many parties send much, the error of one such map takes seconds: only the largest is proposed.
    proposed = _counts(problem, lambda k: RandK(dim=d, k=k), d)
    for k in [k for k in proposed if k == proposed[0] or n * k <= d]:
        if k == d:
            continue  # then nothing is lost, and Rand-k is simpler
        yield _proposal(
            f"rand-proj-spatial ({advised}), k={k}",
            "rand-proj-spatial",
            RandProjSpatial(dim=d, k=k, transform=advised, correlation=R if advised == "opt" else None),
            problem,
            ComputeCost("d log d", d * problem.log_dim),
            ComputeCost("n d log d", 40 * n * d * problem.log_dim),
        )


def kept_coordinates(problem: MeanProblem) -> Iterator[Proposal]:
    """Propose coordinates that depend on the row: the largest, or drawn in proportion to their size."""
    d, n = problem.dim, problem.n
    kinds: list[tuple[str, Callable[[int], MeanEstimator]]] = [
        ("wangni", lambda k: Wangni(dim=d, k=k)),
        ("induced", lambda k: Induced(dim=d, k=k, restrict=True)),
        ("top-k", lambda k: TopKMean(dim=d, k=k)),
    ]
    for family, build in kinds:
        for k in _counts(problem, build, d):
            yield _proposal(
                f"{family}, k={k}",
                family,
                build(k),
                problem,
                ComputeCost("d log d", d * problem.log_dim),
                ComputeCost("n k + d", n * k + d),
                note="much better for rows with few large coordinates",
            )


def _counts(problem: MeanProblem, build: Callable[[int], MeanEstimator], high: int) -> list[int]:
    """Return numbers k to send: the most that the bits allow (or half the row), and fractions of it."""
    most = max(1, high // 2)
    if problem.bits is not None:
        low, top = 1, high + 1
        while top - low > 1:
            middle = (low + top) // 2
            low, top = (middle, top) if build(middle).bits_per_party(1) <= problem.bits else (low, middle)
        most = low
    return sorted({max(1, most // share) for share in _SHARES}, reverse=True)


def _proposal(
    name: str,
    family: str,
    estimator: MeanEstimator,
    problem: MeanProblem,  # noqa: ARG001 - all proposals are made from it
    encode: ComputeCost,
    decode: ComputeCost,
    note: str = "",
) -> Proposal:
    """Return a proposal that needs no calibration."""
    return Proposal(
        name=name,
        family=family,
        guess=estimator,
        make=lambda: estimator,
        norm="l2",
        encode=ComputeCost(encode.order, float(encode.operations)),
        decode=ComputeCost(decode.order, float(decode.operations)),
        note=note,
    )
