"""What Jiang (2025) states about private majorities of simulated teachers, and whether it came out.

Everything is read off the points of `vote_simulation`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.experiments.reference import reference
from tacit.numerics import Array
from tacit.voting import NoiseFunction, Setting, certify

__all__ = ["Case", "Composed", "Point", "known", "statements", "table_b1"]

COMPOSED, TIGHT, SUB, DSUB = "composed const", "certified const", "Sub", "DSub"
MONOTONE, OPT, P_MONOTONE, P_OPT, ERROR = "monotone opt", "opt", "monotone opt-P", "opt-P", "opt-E"
UNIFORM, HALF, LOW = "p in [0, 1]", "p = 1/2", "p in [0, 0.1]"
CONSENSUS_U, CONSENSUS_P = 0.75, 0.85  # means of U[1/2, 1] and U[0.7, 1], which the thesis optimises for

_SAME = 1e-6  # of gamma: what the solver leaves open

_PRINTED_B1 = {  # M to m, tau, lambda, m epsilon, delta as printed in the thesis
    10: (6.4521, 14.0328, 0.1003, 0.6452, 0.1001),
    13: (7.5742, 14.0328, 0.1003, 0.7574, 0.1001),
    15: (8.2708, 14.0328, 0.1003, 0.8271, 0.1001),
    20: (9.8823, 14.0328, 0.1003, 0.9882, 0.1002),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One guarantee of a figure, for which all designs are made.

    Attributes:
        figure: Which.
        setting: Teachers and guarantee.
        sampled: M, how many votes gamma_Sub samples.
        votes_epsilon: What composition proves for all votes together.
        votes_delta: The delta that goes with it.
        laws: Where the error is taken.
    """

    figure: str
    setting: Setting
    sampled: int
    votes_epsilon: float
    votes_delta: float
    laws: tuple[str, ...] = (UNIFORM,)

    @property
    def m(self) -> float:
        """The allowance, as the thesis prints it."""
        return round(self.setting.allowance, 4)

    @property
    def title(self) -> str:
        """The figure and its teachers."""
        return (
            f"{self.figure}: K = {self.setting.teachers}, {'approximate' if self.setting.delta else 'pure'}"
        )


@dataclass(frozen=True, kw_only=True)
class Point:
    """A design under a law of the teachers.

    Attributes:
        case: What it is designed for.
        law: Of the p_i.
        line: Which design.
        noise: It.
        value: Of the thesis's objective: P(bit = majority side) - 1/2 at the mean of the line's consensus.
        error: Expected error.
        stderr: Its standard error; 0 where it is exact.
    """

    case: Case
    law: str
    line: str
    noise: NoiseFunction
    value: float
    error: float
    stderr: float

    @property
    def gamma(self) -> Array:
        """The values for a majority of ones."""
        return np.array(self.noise.gamma)

    @property
    def panel(self) -> str:
        """The panel of the figure."""
        return self.case.title + (f", {self.law}" if len(self.case.laws) > 1 else "")


class Composed(NamedTuple):
    """A column of Table B.1, and what the certificate asks for at its epsilon.

    Attributes:
        sampled: M.
        m: What M votes cost by general composition, in votes.
        tau: The same of all votes.
        lam: The delta of all votes.
        epsilon: Of M votes.
        delta: Of M votes.
        majority_needs: The least delta of the plain majority of all votes.
        subsampling_needs: The least delta of the majority of M votes.
    """

    sampled: int
    m: float
    tau: float
    lam: float
    epsilon: float
    delta: float
    majority_needs: float
    subsampling_needs: float

    @property
    def printed(self) -> bool:
        """Whether all digits that the thesis prints come out."""
        said = _PRINTED_B1.get(self.sampled)
        pairs = zip(self[1:6], said or (), strict=said is not None)
        return said is not None and all(f"{value:.4f}" == f"{digits:.4f}" for value, digits in pairs)


def table_b1(found: Sequence[Point]) -> tuple[Composed, ...]:
    """Return Table B.1, by the points of Figure B.4."""
    table = []
    for point in found:
        case, s = point.case, point.case.setting
        if case.figure != "B.4" or point.line != SUB:
            continue
        whole = certify(np.ones(s.free), s).delta_required
        sampled = point.noise.certificate.delta_required
        table.append(
            Composed(
                case.sampled, s.allowance, case.votes_epsilon / s.epsilon, case.votes_delta,
                s.target_epsilon, s.target_delta, whole, sampled,
            )
        )  # fmt: skip
    return tuple(table)


def known(point: Point) -> tuple[float | None, float | None]:
    """Return value and error of a point by an independent computation; None where there is none."""
    case, line = point.case, point.line
    if case.figure == "B.4":
        return None, 0.0 if line == OPT else None
    # gamma_Sub and gamma_DSub do not depend on delta.
    pure = case.setting.delta == 0 or line in (SUB, DSUB)
    teachers = f"K = {case.setting.teachers}, {'pure' if pure else 'approximate'}"
    table, m = reference("vote-simulation"), round(case.m)
    law = "" if point.law == UNIFORM else f", {point.law}"
    error = 0.0 if point.law == HALF else table.get((f"{teachers}, error{law}", line, m))
    return table.get((f"{teachers}, value", line, m)), error


_Lines = dict[float, dict[str, Point]]  # by m and line


def statements(found: Sequence[Point]) -> Iterator[str]:
    """Yield each statement of the thesis with whether it holds, and what else the points show.

    Args:
        found: All designs of some cases; statements about others are passed over.
    """
    panels: dict[tuple[str, str], _Lines] = {}
    for point in found:
        by_m = panels.setdefault((point.case.figure, point.law), {})
        by_m.setdefault(point.case.m, {})[point.line] = point
    if lines := panels.get(("3.2", UNIFORM)):
        above = {m: of for m, of in lines.items() if m > 1}
        yield _verdict("Fig. 3.2, m = 1: opt overlaps Sub", _apart(lines, (1,), (OPT, SUB)))
        yield _verdict("Fig. 3.2, m > 1: opt is the highest gamma at every count", _below(above))
        failed = _not_less(above, OPT, (SUB, COMPOSED))
        yield _verdict("Fig. 3.2, m > 1: opt errs less than Sub and composed const", failed)
    if lines := panels.get(("B.4", UNIFORM)):
        yield from _about_b1(table_b1(found))
        failed = [f"not at m = {m:g}" for m, of in lines.items() if of[OPT].gamma.min() < 1]
        yield _verdict("Not in the thesis: opt is 1, the plain majority, in all of Fig. B.4", failed)
    if lines := panels.get(("B.5", UNIFORM)):
        yield _verdict("Fig. B.5, m = 7, 9: DSub and opt overlap", _apart(lines, (7, 9), (OPT, DSUB)))
        failed = _apart(lines, (11,), (OPT, SUB, DSUB, COMPOSED))
        yield _verdict("Fig. B.5, m = 11: opt, Sub, DSub and composed const overlap", failed)
        failed = [
            f"{line} errs {of[line].error:.2g} at m = {m:g}"
            for m, of in lines.items()
            for line in (OPT, DSUB)
            if m >= 7 and of[line].error > 0
        ]
        yield _verdict("Fig. B.5, m >= 7: the errors of opt and DSub are 0", failed)
    for law, line, others in (
        (UNIFORM, OPT, (P_OPT, SUB, COMPOSED)),
        (HALF, OPT, (P_OPT, SUB, COMPOSED)),
        (LOW, P_OPT, (OPT, SUB, COMPOSED)),
        (UNIFORM, P_OPT, (SUB, COMPOSED)),
        (LOW, OPT, (SUB, COMPOSED)),
    ):
        if lines := panels.get(("B.7", law)):
            text = f"Fig. B.7, {law}: {line} errs less than {', '.join(others)}"
            yield _verdict(text, _not_less(lines, line, others))
    for (figure, law), lines in panels.items():
        if figure in ("3.2", "B.5", "B.6"):
            yield from _against_opt(figure, {m: of for m, of in lines.items() if of[OPT].error > 0})
        if law == LOW:
            text = f"Not in the thesis: Fig. {figure}, {law}: opt-E errs less than Sub"
            yield _verdict(text, _not_less(lines, ERROR, (SUB,)))
        yield f"Fig. {figure}, {law}: least error: {_least(lines)}."
    yield from _against_reference(found)


def _against_opt(figure: str, lines: _Lines) -> Iterator[str]:
    """Say what errs less than opt, where it errs."""
    where = f"Not in the thesis: Fig. {figure}, wherever opt errs"
    yield _verdict(f"{where}: opt errs less than DSub", _not_less(lines, OPT, (DSUB,)))
    for line in (TIGHT, ERROR):
        yield _verdict(f"{where}: {line} errs less than opt", _not_less(lines, line, (OPT,)))


def _about_b1(table: Sequence[Composed]) -> Iterator[str]:
    """Say what Table B.1 is."""
    failed = [f"not at M = {column.sampled}" for column in table if not column.printed]
    yield _verdict("Table B.1 comes out in all printed digits", failed)
    for c in table:
        yield (
            f"Table B.1, M = {c.sampled}: m {c.m:.4f}, tau {c.tau:.4f}, lambda {c.lam:.4f}, m epsilon "
            f"{c.epsilon:.4f}, delta {c.delta:.4f}; the certificate asks for delta {c.majority_needs:.3g} "
            f"for the plain majority of all votes and {c.subsampling_needs:.2g} for Sub(M)."
        )


def _against_reference(found: Sequence[Point]) -> Iterator[str]:
    """Say how far the points are from an independent computation, whose own standard error is about 0.1 %."""
    values = [abs(p.value - said) for p in found if (said := known(p)[0]) is not None]
    pairs = [(p, said) for p in found if (said := known(p)[1]) is not None]
    drawn = [
        abs(p.error - said) / math.hypot(p.stderr, 1e-3 * said)
        for p, said in pairs
        if said > 0 and p.law == UNIFORM
    ]
    exact = [abs(p.error / said - 1) for p, said in pairs if said > 0 and p.law != UNIFORM]
    zero = [p.error for p, said in pairs if said == 0]
    for name, off, unit in (
        ("consensus values", values, ""),
        ("simulated errors", drawn, " joint standard errors"),
        ("exact errors", exact, " of their size"),
        ("errors that are 0 there", zero, ""),
    ):
        if off:
            yield f"Independent computation: {len(off)} {name} are met within {max(off):.2g}{unit}."


def _verdict(text: str, failed: Sequence[str]) -> str:
    """Return a statement with whether it holds, or where it does not."""
    return f"{text}: no: {'; '.join(failed)}." if failed else f"{text}: yes."


def _apart(lines: _Lines, allowances: Sequence[float], names: Sequence[str]) -> list[str]:
    """Return where the first design is another than the others."""
    return [
        f"{name} differs by {gap:.2g} at m = {m:g}"
        for m in allowances
        if m in lines
        for name in names[1:]
        if (gap := np.abs(lines[m][names[0]].gamma - lines[m][name].gamma).max()) > _SAME
    ]


def _below(lines: _Lines) -> list[str]:
    """Return where opt is below another gamma of the figure, among the counts of a majority."""
    failed = []
    for m, of in lines.items():
        for name in (SUB, COMPOSED):
            low = np.flatnonzero(of[OPT].gamma < of[name].gamma - _SAME) + of[OPT].case.setting.majority
            if low.size:
                failed.append(f"below {name} at m = {m:g}, l = {', '.join(map(str, low))}")
    return failed


def _not_less(lines: _Lines, line: str, others: Sequence[str]) -> list[str]:
    """Return where a line does not err less than others."""
    failed = []
    for other in others:
        pairs = [(m, of[line].error, of[other].error) for m, of in lines.items()]
        same = [m for m, mine, its in pairs if math.isclose(mine, its, rel_tol=_SAME)]
        less = [m for m, mine, its in pairs if its < mine and m not in same]
        failed += [f"{other} errs less at m = {_listed(less)}"] if less else []
        failed += [f"{other} errs the same at m = {_listed(same)}"] if same else []
    return failed


def _least(lines: _Lines) -> str:
    """Return the lines of least error, by m."""
    best: dict[str, list[float]] = {}
    for m, of in lines.items():
        least = min(point.error for point in of.values())
        names = [name for name, point in of.items() if point.error <= least * (1 + _SAME)]
        best.setdefault("all" if len(names) == len(of) else ", ".join(names), []).append(m)
    return "; ".join(f"{names} at m = {_listed(ms)}" for names, ms in best.items())


def _listed(allowances: Sequence[float]) -> str:
    return ", ".join(f"{m:g}" for m in allowances)
