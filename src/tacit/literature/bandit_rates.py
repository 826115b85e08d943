"""Orders of the regret of private linear bandits in the literature: for reports and trends, never a bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tacit.errors import check_choice, check_count, check_positive

__all__ = ["BANDIT_ORDERS", "BanditOrder", "bandit_order"]


@dataclass(frozen=True, kw_only=True)
class BanditOrder:
    """What an algorithm loses, up to constants, logarithms and the dimension.

    Attributes:
        source: Authors and year.
        trust: "central", "local" or "shuffle".
        contexts: "adversarial", "stochastic", or "free" for bandits without contexts (and with those of a
            known law).
        regret: As a formula.
        order: Its value at (horizon T, epsilon); of one message under local trust.
        pure: Whether delta is 0.
    """

    source: str
    trust: str
    contexts: str
    regret: str
    order: Callable[[int, float], float]
    pure: bool


BANDIT_ORDERS: Final[dict[str, BanditOrder]] = {
    "SS18": BanditOrder(
        source="Shariff and Sheffet (2018)",
        trust="central",
        contexts="adversarial",
        regret="sqrt(T) / epsilon",
        order=lambda t, eps: math.sqrt(t) / eps,
        pure=False,
    ),
    "ZCH20": BanditOrder(
        source="Zheng, Cai, Huang, Li and Wang (2020)",
        trust="local",
        contexts="adversarial",
        regret="T^(3/4) / epsilon",
        order=lambda t, eps: t**0.75 / eps,
        pure=False,
    ),
    "GCP22": BanditOrder(
        source="Garcelon, Chaudhuri, Perchet and Pirotta (2022)",
        trust="shuffle",
        contexts="adversarial",
        regret="T^(2/3) / epsilon^(1/3)",
        order=lambda t, eps: t ** (2 / 3) / eps ** (1 / 3),
        pure=False,
    ),
    "CZ22": BanditOrder(
        source="Chowdhury and Zhou (2022)",
        trust="shuffle",
        contexts="adversarial",
        regret="T^(3/5)",
        order=lambda t, _: t**0.6,
        pure=False,
    ),
    "HLW21": BanditOrder(
        source="Han, Liang, Wang and Zhang (2021)",
        trust="local",
        contexts="stochastic",
        regret="sqrt(T) / epsilon",
        order=lambda t, eps: math.sqrt(t) / eps,
        pure=False,
    ),
    "central": BanditOrder(
        source="Girgis (2023), Theorem 6.3.1",
        trust="central",
        contexts="free",
        regret="sqrt(T) + 1 / epsilon",
        order=lambda t, eps: math.sqrt(t) + 1 / eps,
        pure=True,
    ),
    "local": BanditOrder(
        source="Girgis (2023), Theorem 6.4.1",
        trust="local",
        contexts="free",
        regret="sqrt(T) / epsilon",
        order=lambda t, eps: (1 + 1 / eps) * math.sqrt(t),
        pure=True,
    ),
    "shuffle": BanditOrder(
        source="Girgis (2023), Theorem 6.5.1",
        trust="shuffle",
        contexts="free",
        regret="sqrt(T) + 1 / epsilon",
        order=lambda t, eps: math.sqrt(t) + 1 / eps,
        pure=False,
    ),
    "lower": BanditOrder(
        source="Rusmevichientong and Tsitsiklis (2010); Shariff and Sheffet (2018)",
        trust="central",
        contexts="free",
        regret="max(sqrt(T), ln(T) / epsilon)",
        order=lambda t, eps: max(math.sqrt(t), math.log(t) / eps),
        pure=True,
    ),
}
"""By the names of Girgis (2023), Table 6.1 and Section 6.7; "lower" is what no algorithm beats."""


def bandit_order(name: str, *, horizon: int, epsilon: float) -> float:
    """Return the order of the regret of an algorithm, without constants and logarithms.

    Args:
        name: In `BANDIT_ORDERS`.
        horizon: Number T of rounds.
        epsilon: Level of one reward, > 0.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> bandit_order("SS18", horizon=1_000_000, epsilon=0.5)
        2000.0

    Reference:
        Girgis (2023), Table 6.1.
    """
    check_choice("name", name, BANDIT_ORDERS)
    check_count("horizon", horizon)
    check_positive("epsilon", epsilon)
    return BANDIT_ORDERS[name].order(horizon, epsilon)
