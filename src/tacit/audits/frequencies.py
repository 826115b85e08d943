"""Attacks on one message of a mechanism of frequencies."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from tacit.audits.attack import Target
from tacit.frequencies import FrequencyOracle, LevelledHadamard
from tacit.frequencies.symbols import SymbolOracle
from tacit.numerics import Array

__all__ = ["coalition_target", "oracle_target"]

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


def coalition_target(
    scheme: LevelledHadamard, members: Collection[int], *, claim: LevelledHadamard | None = None
) -> Target:
    """Return what some analysts see together as something to attack: messages, and all their keys.

    Args:
        scheme: What really makes messages and keys.
        members: The analysts, 0 to d - 1; none: who sees public messages alone.
        claim: What is claimed to make them; None: `scheme`.

    Returns:
        A target whose runs are independent messages. The score is the likelihood ratio of the first value and
        the last, off the bit of the most trusted member; the other keys break ties, and tell nothing.
    """
    last = len(scheme.epsilons) - 1
    best = min(members, default=last)

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001 - as `Run` says
        messages, keys = scheme.publish(np.full(size, 0 if present else scheme.k - 1), rng)
        seen = scheme.view(best, messages, (*keys, None)[best])
        bits, columns = seen & 1, seen >> 1
        # Both values have the entry +1 in a column of which the last one's parity is even.
        apart = np.bitwise_count(np.int64(scheme.k - 1) & columns) & 1
        score = np.where(apart == 1, 2.0 * bits - 1, 0.0)
        for member in members:
            if best < member < last:
                score = score + 1e-3 * keys[member].read()
        return score

    return Target(run=run, event=(claim or scheme).event(members), attack="likelihood ratio")


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
