"""Private majorities of simulated teachers (Jiang 2025, Figures 3.2, B.4 to B.7, Table B.1).

All designs of a figure are made for the same guarantee. Their error is that of the published bit against the
majority: simulated where the teachers' probabilities are uniform on [0, 1], on the same draws for every
design, and exact elsewhere. The figures of the thesis are pictures; the columns of the reference hold what
an independent computation found for the same settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.experiments.report import Report
from tacit.experiments.vote_statements import (
    COMPOSED,
    CONSENSUS_P,
    CONSENSUS_U,
    DSUB,
    ERROR,
    HALF,
    LOW,
    MONOTONE,
    OPT,
    P_MONOTONE,
    P_OPT,
    SUB,
    TIGHT,
    UNIFORM,
    Case,
    Point,
    known,
    statements,
)
from tacit.numerics import Array
from tacit.privacy import basic_composition, general_composition
from tacit.randomness import simulated
from tacit.voting import (
    DesignObjective,
    NoiseFunction,
    Prior,
    Setting,
    allowance,
    certified,
    design,
    expected_error,
    gamma_constant,
    gamma_subsampling,
    majority_error,
    one_sided,
    optimise_gamma,
    poisson_binomial_pmf,
    rr_probability_composed,
    uniform_prior,
)

__all__ = ["cases", "compute", "designs", "points", "run", "shapes", "simulated_errors"]

EPSILON, DELTA, SLACK = 0.1, 1e-5, 0.1  # of one vote; delta' of the general composition of Table B.1
_BATCH = 20_000  # draws at a time
_MEANS = {HALF: 0.5, LOW: 0.05}  # of laws under which no p_i crosses 1/2


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute all figures; `quick` takes a twentieth of the draws."""
    draws = {11: 1_000_000, 35: 400_000, 101: 200_000}
    return compute(cases(), {k: n // 20 if quick else n for k, n in draws.items()}, progress)


def compute(asked: Sequence[Case], draws: Mapping[int, int], progress: Callable[[int, int], Any]) -> Report:
    """Compute some cases.

    Args:
        asked: The cases.
        draws: Of the teachers' probabilities, by the number of teachers.
        progress: Called with (done, total).
    """
    found = points(asked, draws, progress)
    return Report(
        rows=[_row(point) for point in found],
        x="m",
        y="error",
        error="standard error",
        line="design",
        panel="figure",
        log_x=False,
        shown=("figure", "design", "m", "error", "standard error", "reference"),
        notes=(
            f"One vote is ({EPSILON:g}, delta)-DP with delta = {DELTA:g} or 0 (pure), the published bit "
            f"(m {EPSILON:g}, `delta`)-DP; `delta needed` is what the exact certificate asks for.",
            "M is what Sub samples. `gamma` is at six counts, from the narrowest majority to unanimity; "
            "of 11 teachers these are all.",
            f"opt maximises `consensus value` at mean {CONSENSUS_U:g} as the thesis does, opt-P at "
            f"{CONSENSUS_P:g}; the monotone ones do so among those that do not fall towards unanimity. opt-E "
            "lowers the error under U[0, 1] itself.",
            *statements(found),
        ),
        more={
            "gamma": Report(
                rows=shapes(found),
                x="l",
                y="gamma",
                error=None,
                line="design",
                panel="figure",
                log_x=False,
                title="Noise functions gamma(l): how often the majority is published, and not a coin",
                labels={"l": "l, votes for 1"},
            )
        },
    )


def cases() -> tuple[Case, ...]:
    """Return the guarantees of all figures."""
    found = [_case("3.2", allowance(11, EPSILON, m, delta=DELTA)) for m in (1, 3, 5, 7)]
    votes = general_composition(EPSILON, DELTA, 35, SLACK)
    for sampled in (10, 13, 15, 20):
        total = general_composition(EPSILON, DELTA, sampled, SLACK)
        setting = Setting(
            teachers=35,
            epsilon=EPSILON,
            delta=DELTA,
            target_epsilon=total.epsilon,
            target_delta=total.delta,
        )
        found.append(
            Case(
                figure="B.4",
                setting=setting,
                sampled=sampled,
                votes_epsilon=votes.epsilon,
                votes_delta=votes.delta,
            )
        )
    found += [_case("B.5", allowance(11, EPSILON, m)) for m in (1, 3, 5, 7, 9, 11)]
    found += [_case("B.6", allowance(101, EPSILON, m)) for m in (10, 20, 30, 40, 60, 80)]
    found += [_case("B.7", allowance(11, EPSILON, m), (UNIFORM, HALF, LOW)) for m in (3, 5)]
    return tuple(found)


def designs(case: Case, error: DesignObjective) -> dict[str, NoiseFunction]:
    """Make all designs of a case; those for the polarised prior belong to Figure B.7.

    Args:
        case: The guarantee.
        error: Objective of opt-E.
    """
    s, k = case.setting, case.setting.teachers
    # Not design(s, ...): there, votes compose by the basic theorem, and M is the allowance.
    constant = rr_probability_composed(s, votes_epsilon=case.votes_epsilon, votes_delta=case.votes_delta)
    found = {
        COMPOSED: certified(gamma_constant(k, constant), s, method=COMPOSED),
        TIGHT: design(s, "constant"),
        SUB: certified(gamma_subsampling(k, case.sampled), s, method=SUB),
        DSUB: design(s, "double-subsampling"),
        MONOTONE: design(s, "optimal-monotone"),
        OPT: design(s, "optimal"),
        ERROR: optimise_gamma(s, error, method="exact"),
    }
    if case.figure == "B.7":
        polarised = one_sided(k, CONSENSUS_P)
        found[P_MONOTONE] = optimise_gamma(s, polarised, method="monotone")
        found[P_OPT] = optimise_gamma(s, polarised, method="exact")
    return found


def points(
    asked: Sequence[Case], draws: Mapping[int, int], progress: Callable[[int, int], Any]
) -> tuple[Point, ...]:
    """Make and measure all designs of some cases; arguments as `compute`."""
    sizes = sorted({case.setting.teachers for case in asked})
    total = len(asked) + 2 * len(sizes)
    objectives: dict[int, DesignObjective] = {}
    made: dict[tuple[int, str], NoiseFunction] = {}
    errors: dict[tuple[int, str], tuple[float, float]] = {}
    for done, k in enumerate(sizes):
        progress(done, total)
        stream = simulated(0, "vote-simulation/objective", str(k))
        objectives[k] = expected_error(k, uniform_prior(), draws=max(draws[k] // 5, 1), rng=stream)
    for i, case in enumerate(asked):
        progress(len(sizes) + i, total)
        found = designs(case, objectives[case.setting.teachers])
        made |= {(i, line): noise for line, noise in found.items()}
    for done, k in enumerate(sizes, start=len(sizes) + len(asked)):
        progress(done, total)
        mine = {at: noise for at, noise in made.items() if noise.setting.teachers == k}
        stream = simulated(0, "vote-simulation/error", str(k))
        drawn = simulated_errors(list(mine.values()), uniform_prior(), draws=draws[k], rng=stream)
        errors |= dict(zip(mine, drawn, strict=True))
    progress(total, total)
    return tuple(
        _point(asked[i], law, line, noise, errors[i, line])
        for law in (UNIFORM, HALF, LOW)
        for (i, line), noise in made.items()
        if law in asked[i].laws
    )


def simulated_errors(
    noises: Sequence[NoiseFunction], prior: Prior, *, draws: int, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Return what `expected_majority_error` does, for many designs on the same draws.

    Args:
        noises: Designs for the same number of teachers, at least one.
        prior: What the p_i are drawn from.
        draws: How many, >= 2.
        rng: Source of the draws.

    Returns:
        Mean and standard error of each design.
    """
    k = noises[0].setting.teachers
    majority = np.arange(k + 1) > k / 2
    off = np.stack([noise.output_probabilities() - majority for noise in noises], axis=1)
    total, squares = np.zeros(len(noises)), np.zeros(len(noises))
    for start in range(0, draws, _BATCH):
        p = prior(min(_BATCH, draws - start), k, rng)
        errors = np.abs(poisson_binomial_pmf(p) @ off)
        total += errors.sum(axis=0)
        squares += (errors**2).sum(axis=0)
    mean: Array = total / draws
    stderr: Array = np.sqrt(np.maximum(squares / draws - mean**2, 0.0) / (draws - 1))
    return list(zip(mean.tolist(), stderr.tolist(), strict=True))


def shapes(found: Sequence[Point]) -> list[dict[str, object]]:
    """Return the upper panels of the figures: gamma over the number of ones, a row for each."""
    return [
        {
            "figure": f"{point.case.title}, m = {point.case.m:.3g}",
            "design": point.line,
            "l": ones,
            "gamma": float(gamma),
        }
        for point in found
        if point.law == UNIFORM
        for ones, gamma in enumerate(point.noise.full)
    ]


def _case(figure: str, setting: Setting, laws: tuple[str, ...] = (UNIFORM,)) -> Case:
    """Return a case in which votes compose by the basic theorem."""
    votes = basic_composition(setting.epsilon, setting.delta, setting.teachers)
    return Case(
        figure=figure,
        setting=setting,
        sampled=setting.whole_allowance,
        votes_epsilon=votes.epsilon,
        votes_delta=votes.delta,
        laws=laws,
    )


def _point(case: Case, law: str, line: str, noise: NoiseFunction, drawn: tuple[float, float]) -> Point:
    """Return a point; `drawn` is the simulated error under the uniform law, with its standard error."""
    k = case.setting.teachers
    error, stderr = drawn
    if law != UNIFORM:
        # With all p_i on one side the error is linear in each: their means give its mean.
        error, stderr = float(majority_error(noise.gamma, np.full(k, _MEANS[law]))), 0.0
    consensus = CONSENSUS_P if line in (P_MONOTONE, P_OPT) else CONSENSUS_U
    value = one_sided(k, consensus).value(noise.gamma)
    return Point(case=case, law=law, line=line, noise=noise, value=value, error=error, stderr=stderr)


def _row(point: Point) -> dict[str, object]:
    """Return the row of a point."""
    value, error = known(point)
    shown = point.gamma[np.linspace(0, len(point.gamma) - 1, 6).round().astype(int)]
    return {
        "figure": point.panel,
        "design": point.line,
        "m": point.case.m,
        "M": point.case.sampled,
        "delta": point.case.setting.target_delta,
        "delta needed": point.noise.certificate.delta_required,
        "error": point.error,
        "standard error": point.stderr,
        "reference": error,
        "consensus value": point.value,
        "its reference": value,
        "gamma": " ".join(f"{g:.4g}" for g in shown),
    }
