"""The rule of thumb for runs of CLDP-SGD: rounds, level, and the order of error that they have."""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_positive, check_probability

__all__ = ["CldpRule", "cldp_rule"]


class CldpRule(NamedTuple):
    """What `cldp_rule` says.

    Attributes:
        rounds: T, rounded up.
        local_epsilon: epsilon0 of one report.
        order: Of the excess risk; constants are dropped, so that it bounds nothing.
    """

    rounds: int
    local_epsilon: float
    order: float


def cldp_rule(
    epsilon: float,
    delta: float,
    *,
    clients: int,
    dim: int,
    rate: float = 1.0,
    records: int = 1,
    lipschitz: float = 1.0,
    diameter: float = 1.0,
) -> CldpRule:
    """Return T = m n / q and epsilon0 = epsilon sqrt(m n / (q T ln(2 q T / delta) ln(2 / delta))).

    The risk is then of the order L D ln^(3/2)(m n / delta) sqrt(d ln(1 / delta)) / (m n epsilon): that of the
    best central algorithm, but for logarithms. For comparison: `tacit.planning.plan_reports` tries rounds and
    prices them.

    Args:
        epsilon: Of the run, > 0.
        delta: In (0, 1).
        clients: n.
        dim: d.
        rate: q in (0, 1], the probability that a round is about a record: k s / (n m).
        records: m of each client.
        lipschitz: L, of a record's loss.
        diameter: D of the domain.

    Raises:
        ParameterError: An argument out of its range, or more rounds than can be counted.

    Reference:
        Girgis (2023), (4.4) and the remark before it, which comes of (4.3); (4.3) is an order, so that the
        price of such a run is to be computed (here it is below epsilon by a logarithm).

    Example:
        >>> rule = cldp_rule(1.0, 1e-6, clients=1000, dim=10, rate=0.1)
        >>> rule.rounds, round(rule.local_epsilon, 4)
        (10000, 0.0567)
    """
    check_positive("epsilon", epsilon)
    check_probability("delta", delta, low_open=True, high_open=True)
    check_count("clients", clients, high=LARGEST_COUNT)
    check_count("dim", dim, high=LARGEST_COUNT)
    check_probability("rate", rate, low_open=True)
    check_count("records", records, high=LARGEST_COUNT)
    check_positive("lipschitz", lipschitz)
    check_positive("diameter", diameter)
    items = clients * records
    if items / LARGEST_COUNT > rate:
        raise ParameterError(
            f"rate must be at least {items / LARGEST_COUNT:.3g} of {items:,} records, got {rate!r}: the rule "
            "has more rounds than can be counted."
        )
    rounds = math.ceil(items / rate * (1 - 1e-12))
    asked = rate * rounds  # q T, of one record
    level = epsilon * math.sqrt(items / (asked * math.log(2 * asked / delta) * math.log(2 / delta)))
    order = lipschitz * diameter * math.log(items / delta) ** 1.5 * math.sqrt(dim * -math.log(delta))
    return CldpRule(rounds, level, order / (items * epsilon))
