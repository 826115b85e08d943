"""Attacks on one party's randomizer, by the likelihood ratio of its reports: no test is better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.audits.attack import Audit, Target, audit
from tacit.numerics import Array
from tacit.privacy import Event, Guarantee

__all__ = ["audit_randomizer", "randomizer_target"]

Sample = Callable[[Any, int, np.random.Generator], Array]
"""`sample(value, size, rng)`: that many independent reports of a party that holds `value`, size first."""

Score = Callable[[Array], Array]
"""Maps reports to one number each, shape (size,); higher speaks for the first input."""


def audit_randomizer(
    sample: Sample,
    score: Score,
    claim: Guarantee | tuple[Event, float],
    *,
    inputs: tuple[Any, Any],
    runs: int,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Audit:
    """Attack one party's randomizer.

    Args:
        sample: The randomizer, vectorised over independent reports.
        score: Log-likelihood ratio of a report under the two inputs, or any increasing function of it; for
            unknown laws, any statistic.
        claim: A guarantee, or an event and its delta.
        inputs: Two neighbouring values.
        runs: Number of reports in all.
        confidence: Of the lower bound, in (0, 1).
        rng: Source of all randomness.

    Returns:
        The lower bound beside the claim; see `tacit.audits.audit` for errors.

    Example:
        >>> from tacit.privacy import PureDP
        >>> flip = lambda bit, size, rng: bit ^ (rng.random(size) < 0.25)  # epsilon is ln 3 = 1.0986
        >>> found = audit_randomizer(
        ...     flip, lambda bits: 2.0 * bits - 1, (PureDP(1.0), 0.0), inputs=(1, 0), runs=100_000,
        ...     rng=np.random.default_rng(0),
        ... )
        >>> found.refuted
        True
    """
    event = claim.event if isinstance(claim, Guarantee) else claim[0]
    target = randomizer_target(sample, score, event, inputs=inputs)
    return audit(target.run, claim, runs=runs, confidence=confidence, rng=rng, attack=target.attack)


def randomizer_target(sample: Sample, score: Score, event: Event, *, inputs: tuple[Any, Any]) -> Target:
    """Return a local randomizer as something to attack; arguments as for `audit_randomizer`."""

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001 - as `Run` says
        return score(sample(inputs[0] if present else inputs[1], size, rng))

    return Target(run=run, event=event, attack="likelihood ratio")
