"""Which design to use: every candidate side by side, by its objective and its expected error."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_choice, check_count
from tacit.voting.error import Prior, drawn, majority_error
from tacit.voting.functions import (
    gamma_constant,
    gamma_double_subsampling,
    gamma_subsampling,
    rr_probability_composed,
    rr_probability_tight,
)
from tacit.voting.noise_function import NoiseFunction, certified
from tacit.voting.objectives import DesignObjective, check_objective, one_sided
from tacit.voting.optimise import optimise_gamma
from tacit.voting.setting import Setting

__all__ = ["DEFAULT_DESIGN", "DESIGNS", "DesignCandidate", "design", "plan_designs"]

DESIGNS = (
    "constant-composed",
    "constant",
    "subsampling",
    "double-subsampling",
    "optimal-monotone",
    "optimal",
)
DEFAULT_DESIGN = "optimal-monotone"
"""The best design that never falls towards unanimity.

The exact optimum wins little by falling there: for 35 teachers with epsilon 0.1 and m = 3 the objective is
2e-4 of 0.435 better, and a unanimous vote is turned with probability 18 % instead of 0.15 %. It is there by
name.
"""

_ROUNDING = 1e-9
_MOST_NUMBERS = 10**8  # of a prior, drawn at once


class DesignCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """One design and what it achieves.

    Attributes:
        name: One of `DESIGNS`.
        noise: The certified design.
        value: Of the objective; larger is better.
        error: Expected error under the prior; NaN where none was given.
        error_std: Its standard error.
    """

    name: str
    noise: NoiseFunction
    value: float
    error: float = math.nan
    error_std: float = math.nan

    @property
    def falls(self) -> bool:
        """Whether the majority is published less surely where more teachers agree, beyond rounding."""
        return bool(np.any(np.diff(self.noise.gamma) < -_ROUNDING))

    @property
    def unanimous_error(self) -> float:
        """The chance that the other side is published where all teachers agree."""
        return (1.0 - self.noise.gamma[-1]) / 2


def design(
    setting: Setting, name: str = DEFAULT_DESIGN, objective: DesignObjective | None = None
) -> NoiseFunction:
    """Make one design by name.

    Args:
        setting: The teachers and the target.
        name: "constant-composed" (what composition proves), "constant" (the largest certified constant),
            "subsampling" of m votes, "double-subsampling" of 2m - 1, "optimal-monotone" (the best that never
            falls towards unanimity) or "optimal" (the best of all, exactly).
        objective: For the optimal ones; a one-sided consensus with mean 0.75 if not given.

    Raises:
        ParameterError: An unknown name; "optimal" for more than 61 teachers at delta > 0.

    Example:
        >>> from tacit.voting import allowance
        >>> design(allowance(3, 0.5, 1), "subsampling").method
        'subsampling'
    """
    check_choice("name", name, DESIGNS)
    k, m = setting.teachers, setting.whole_allowance
    match name:
        case "constant-composed":
            gamma = gamma_constant(k, rr_probability_composed(setting))
        case "constant":
            gamma = gamma_constant(k, rr_probability_tight(setting))
        case "subsampling":
            gamma = gamma_subsampling(k, m)
        case "double-subsampling":
            gamma = gamma_double_subsampling(k, m)
        case _:
            method = "exact" if name == "optimal" else "monotone"
            return optimise_gamma(setting, objective, method=method)
    return certified(gamma, setting, method=name)


def plan_designs(
    setting: Setting,
    objective: DesignObjective | None = None,
    *,
    prior: Prior | None = None,
    draws: int = 10_000,
    rng: np.random.Generator | None = None,
) -> tuple[DesignCandidate, ...]:
    """Return all designs that can be made, the best first; those that fall towards unanimity come last.

    Args:
        setting: The teachers and the target.
        objective: What the optimal designs maximise; a one-sided consensus with mean 0.75 if not given.
        prior: Where the expected errors are taken; without it, candidates are ordered by the objective.
        draws: Of the prior, the same for all candidates.
        rng: Source of the draws, needed with a prior; no privacy rests on it.

    Returns:
        Candidates by expected error if there is a prior, else by objective; ties keep the simpler design.
        A design that publishes the majority less surely as more teachers agree is listed after all others,
        however good on average: whoever wants it takes it by name.

    Raises:
        ParameterError: A prior without rng.

    Reference:
        docs/theory/voting.md, sections 4 and 5, for the candidates.
    """
    if prior is not None and rng is None:
        raise ParameterError("rng must be given with a prior.")
    check_count("draws", draws, low=2, high=_MOST_NUMBERS // setting.teachers)
    objective = one_sided(setting.teachers) if objective is None else objective
    check_objective(objective)
    names = [n for n in DESIGNS if n != "optimal" or setting.voters.scannable]
    p = None if prior is None or rng is None else drawn(prior, draws, setting.teachers, rng)
    found = []
    for name in names:
        noise = design(setting, name, objective)
        error, std = math.nan, math.nan
        if p is not None:
            errors = majority_error(noise.gamma, p)
            error, std = float(errors.mean()), float(errors.std(ddof=1)) / math.sqrt(draws)
        found.append(
            DesignCandidate(
                name=name, noise=noise, value=objective.value(noise.gamma), error=error, error_std=std
            )
        )
    if p is None:
        return tuple(sorted(found, key=lambda c: (c.falls, -round(c.value, 9))))
    return tuple(sorted(found, key=lambda c: (c.falls, round(c.error, 9))))
