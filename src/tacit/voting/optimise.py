"""The optimal noise function: a linear program over the worst cases of the certificate.

Maximise sum c_l g_l over 0 <= g_l <= 1 for l = h, ..., K, subject to one row for every way in which the
teachers can sit on the vertices:

    sum_l [(alpha_l - alpha_{K-l}) - E (alpha'_l - alpha'_{K-l})] g_l <= E - 1 + 2 target_delta.

The solver drops entries below 1e-9 and accepts small violations, so whatever it returns is certified and
scaled down by what is missing before it is used (docs/theory/voting.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

from tacit.errors import ParameterError, check_choice
from tacit.numerics import Array
from tacit.privacy.certified import MOST_TEACHERS, Counts, number_of_types, types, vertex_pairs, worst_types
from tacit.voting.error import leanings, poisson_binomial_pmf
from tacit.voting.functions import gamma_double_subsampling
from tacit.voting.noise_function import NoiseFunction, certified, certify
from tacit.voting.objectives import DesignObjective, check_objective, one_sided
from tacit.voting.setting import Setting

__all__ = ["METHODS", "optimise_gamma"]

METHODS = ("monotone", "exact", "enumerate")
_MOST_ROWS = 2_000_000
_MOST_CUTS = 60
_TOLERANCE = 1e-10  # the least that HiGHS accepts
_VIOLATION = 1e-9
_NUDGE = 1e-9  # near an even split the objective of many teachers is flat: the larger gamma is taken there


def optimise_gamma(
    setting: Setting,
    objective: DesignObjective | None = None,
    *,
    method: str = "monotone",
    floor: str | None = None,
) -> NoiseFunction:
    """Design the noise function that is best for an objective among all that meet the target.

    Args:
        setting: The teachers and the target.
        objective: What to maximise; a one-sided consensus with mean 0.75 if not given.
        method: "monotone": best among those that do not fall towards unanimity. "exact": best of all, by
            cutting planes; up to 61 teachers at delta > 0. "enumerate": the same with all rows written out,
            for comparison; at most 2e6 rows.
        floor: "dsub" to be nowhere below double subsampling; None for no such bound. Needs a target_delta of
            at least 1 - (1 - delta)^floor(m).

    Returns:
        The design with its certificate. Deterministic.

    Raises:
        ParameterError: Unknown method or floor, an objective of another length, too many rows or teachers, a
            floor that the target does not allow.

    Example:
        >>> from tacit.voting import allowance
        >>> noise = optimise_gamma(allowance(11, 0.1, 3), method="exact")
        >>> [round(g, 4) for g in noise.gamma]
        [0.9397, 0.5421, 1.0, 1.0, 0.9773, 1.0]

    Reference:
        Jiang (2025), Section 3.6 and Lemma 3.6.1.
    """
    check_choice("method", method, METHODS)
    objective = one_sided(setting.teachers) if objective is None else objective
    check_objective(objective)
    if len(objective.coefficients) != setting.free:
        raise ParameterError(
            f"objective must have {setting.free} coefficients for {setting.teachers} teachers, got "
            f"{len(objective.coefficients)}."
        )
    lowest = _floor(setting, floor)
    name = f"optimal, {method}" + ("" if floor is None else f", not below {floor}")
    ones = np.ones(setting.free)
    if certify(ones, setting).holds and min(objective.coefficients) >= 0:
        return certified(ones, setting, method=name, objective=objective.name)
    if method == "monotone":
        rows = _rows(setting, sorted(set(types(setting.voters, monotone=True))))
        found = _solve(setting, objective, rows, lowest, monotone=True)
    elif method == "enumerate":
        count = number_of_types(setting.voters, monotone=False)
        if count > _MOST_ROWS:
            raise ParameterError(
                f"method 'enumerate' would need {count} rows, more than {_MOST_ROWS}; use 'exact', which "
                "finds the same optimum."
            )
        rows = _rows(setting, sorted(set(types(setting.voters, monotone=False))))
        found = _solve(setting, objective, rows, lowest, monotone=False)
    else:
        found = _cutting_planes(setting, objective, lowest)
    return certified(found, setting, method=name, objective=objective.name)


def _floor(setting: Setting, floor: str | None) -> Array:
    """Return the lower bounds of gamma."""
    if floor is None:
        return np.zeros(setting.free)
    check_choice("floor", floor, ("dsub",))
    m = setting.whole_allowance
    needed = -math.expm1(m * math.log1p(-setting.delta))
    if setting.target_delta < needed * (1 - 1e-9):
        raise ParameterError(
            f"target_delta must be at least 1 - (1 - delta)^{m} = {needed!r} for floor 'dsub', got "
            f"{setting.target_delta!r}."
        )
    # Some of its constraints are tight; a hair below, the program stays feasible under rounding.
    return gamma_double_subsampling(setting.teachers, m) * (1 - 1e-9)


def _cutting_planes(setting: Setting, objective: DesignObjective, lowest: Array) -> Array:
    """Return the optimum over all cases, adding those that the last solution violates."""
    if not setting.voters.scannable:
        raise ParameterError(
            f"method 'exact' is for up to {MOST_TEACHERS} teachers at delta > 0, got {setting.teachers}; use "
            "'monotone'."
        )
    known = set(types(setting.voters, monotone=True))
    rows = _rows(setting, sorted(known))
    above = setting.target_delta + _VIOLATION * setting.room / 2
    while True:
        found = _solve(setting, objective, rows, lowest, monotone=False)
        worst = worst_types(setting.voters, found, setting.target_epsilon, above=above)
        # What is violated although it has its row is within the tolerance of the solver: repair takes it.
        new = [v for v in sorted(worst, key=lambda v: -v.value) if v.counts not in known][:_MOST_CUTS]
        if not new:
            return found
        known.update(v.counts for v in new)
        rows = np.concatenate([rows, _rows(setting, [v.counts for v in new])])


def _rows(setting: Setting, counts: Sequence[Counts]) -> Array:
    """Return the rows of these cases, divided by the right-hand side: shape (cases, ceil(K / 2))."""
    pairs = vertex_pairs(setting.voters)
    chosen = np.array(counts, dtype=np.int64)
    law, neighbour = (_laws(chosen, pairs[:, side]) for side in (0, 1))
    rows = leanings(law) - math.exp(setting.target_epsilon) * leanings(neighbour)
    return np.asarray(rows / setting.room)


def _laws(counts: npt.NDArray[np.int64], p: Array) -> Array:
    """Return the laws of L where counts[:, v] teachers vote 1 with probability p[v]: shape (cases, K + 1)."""
    k = int(counts[0].sum())
    certain = counts[:, p == 1].sum(axis=1)
    open_ones = [v for v in range(len(p)) if 0 < p[v] < 1 and counts[:, v].any()]
    if len(open_ones) > 1:
        return poisson_binomial_pmf(np.repeat(np.tile(p, len(counts)), counts.ravel()).reshape(-1, k))
    # One probability besides 0 and 1: binomial laws, moved by the certain ones.
    number = counts[:, open_ones[0]] if open_ones else np.zeros(len(counts), dtype=np.int64)
    binomials = np.zeros((k + 1, k + 1))
    binomials[0, 0] = 1.0
    for n in range(1, k + 1 if open_ones else 1):
        one = p[open_ones[0]]
        binomials[n, 1:] = binomials[n - 1, :-1] * one
        binomials[n] += binomials[n - 1] * (1 - one)
    at = np.arange(k + 1) - certain[:, None]
    return np.where(at >= 0, binomials[number[:, None], np.maximum(at, 0)], 0.0)


def _solve(
    setting: Setting, objective: DesignObjective, rows: Array, lowest: Array, *, monotone: bool
) -> Array:
    """Return the optimum of one program, in [0, 1]."""
    c = np.array(objective.coefficients)
    c = c / np.abs(c).max() + _NUDGE
    matrix, bound = rows, np.ones(len(rows))
    if monotone and setting.free > 1:
        steps = sparse.diags_array(
            [1.0, -1.0], offsets=[0, 1], shape=(setting.free - 1, setting.free)
        ).toarray()
        matrix, bound = np.concatenate([rows, steps]), np.append(bound, np.zeros(setting.free - 1))
    best = _highs(c, matrix, bound, lowest)
    return np.maximum.accumulate(best) if monotone else best


def _highs(c: Array, matrix: Array, bound: Array, lowest: Array) -> Array:
    """Return the maximiser of c g subject to matrix g <= bound and lowest <= g <= 1."""
    found = optimize.linprog(
        -c,
        A_ub=matrix,
        b_ub=bound,
        bounds=[(low, 1.0) for low in lowest.tolist()],
        method="highs",
        options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
    )
    if found.status != 0:  # gamma = 0, or the floor, is feasible: this cannot happen but by a fault
        raise RuntimeError(f"the linear program of a noise function failed: {found.message}")
    return np.clip(np.asarray(found.x, dtype=np.float64), 0.0, 1.0)
