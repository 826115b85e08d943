"""Attacks on one message of a mechanism of frequencies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.audits.attack import Target
from tacit.frequencies import FrequencyOracle
from tacit.frequencies.symbols import SymbolOracle
from tacit.numerics import Array

__all__ = ["oracle_target"]

_AT_ONCE = 2**22  # entries of sets that are drawn at once


def oracle_target(oracle: FrequencyOracle, *, claim: FrequencyOracle | None = None) -> Target:
    """Return one message as something to attack: the likelihood ratio of the first value and the last.

    Args:
        oracle: What really makes the message.
        claim: What is claimed to make it; None: `oracle`.

    Returns:
        A target for `tacit.audits.audit`; its runs are independent messages.

    Example:
        >>> from tacit.audits import audit
        >>> from tacit.frequencies import BinaryHadamard
        >>> weak, claimed = BinaryHadamard(k=100, epsilon=2.0), BinaryHadamard(k=100, epsilon=1.0)
        >>> target = oracle_target(weak, claim=claimed)
        >>> found = audit(target.run, (target.event, 0.0), runs=20_000, rng=np.random.default_rng(0))
        >>> found.refuted
        True
    """
    k = oracle.k
    ratio = _symbol_ratio(oracle) if isinstance(oracle, SymbolOracle) else _set_ratio

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001 - as `Run` says
        step = max(1, _AT_ONCE // (1 if isinstance(oracle, SymbolOracle) else k))
        held = 0 if present else k - 1
        parts = [min(step, size - start) for start in range(0, size, step)]
        return np.concatenate([ratio(oracle.encode(np.full(part, held), rng)) for part in parts])

    return Target(run=run, event=(claim or oracle).event(1), attack="likelihood ratio")


def _symbol_ratio(oracle: SymbolOracle) -> Callable[[Array], Array]:
    """Return the log-likelihood ratio of symbols, off a table."""
    ends = np.zeros((2, oracle.k))
    ends[0, 0] = ends[1, -1] = 1.0
    law = oracle.message_law(ends)
    possible = law > 0
    logs = np.log(law, out=np.zeros_like(law), where=possible)
    table = logs[0] - logs[1]
    return lambda symbols: np.asarray(table[symbols])


def _set_ratio(sets: Array) -> Array:
    """Return the ratio up to a factor: all that counts is which of the two values is named."""
    return sets[:, 0].astype(np.float64) - sets[:, -1]
