"""`tacit plan frequencies --levels`: what several analysts find from one message, before anybody sends it."""

from __future__ import annotations

import math
from typing import Any

from tacit.cli.frequencies import facts_of_separate
from tacit.cli.output import print_json, print_table, print_text
from tacit.errors import check_count

__all__ = ["plan_levels"]


def plan_levels(k: int, n: int, levels: list[float], *, json: bool) -> None:
    """Print each analyst's exact error, and bits beside those of separate messages.

    Args:
        k: Number of values.
        n: Number of clients.
        levels: Epsilon of every analyst, in any order.
        json: Whether for programs.
    """
    found = _facts(k, check_count("n", n), levels)
    if json:
        print_json({"version": 1, **found})
        return
    print_text(f"squared l2 error against {found['target']}, {k} values, before any projection")
    columns = ("analyst", "epsilon", "mse", "rmse", "found from")
    rows = [
        (
            str(j),
            f"{one['epsilon']:g}",
            f"{one['mse']:.3g}",
            f"{one['rmse']:.3g}",
            "-" if one["detectable"] is None else f"{one['detectable']:.3g}",
        )
        for j, one in enumerate(found["analysts"])
    ]
    print_table(columns, rows, right=columns)
    separate = found["separate_messages"]
    print_text("")
    print_text(
        f"- one message for all: {found['bits_per_client']} public bits, {found['private_bits_per_client']} "
        f"bits of keys and {found['random_bits_per_client']:.4g} random bits a client."
    )
    print_text(
        f"- separate messages: {separate['bits_per_client']} bits and "
        f"{separate['random_bits_per_client']:.4g} random bits; all analysts together would learn epsilon "
        f"{separate['epsilon_together']:.4g}."
    )
    print_text("- found from: about how frequent a value must be so that 95 % of heavy hitters are found.")
    for one in found["analysts"]:
        print_text(f"\n{one['guarantee']}")


def _facts(k: int, n: int, levels: list[float]) -> dict[str, Any]:
    """Return the plan for programs."""
    from tacit.frequencies import LevelledHadamard, detectable_frequency

    scheme = LevelledHadamard.of_levels(k, levels)
    analysts = []
    for j, oracle in enumerate(scheme.oracles):
        price = scheme.price(range(j, len(levels)))
        mse, detectable = oracle.frequency_mse(n), detectable_frequency(oracle, n)
        analysts.append(
            {
                "epsilon": oracle.epsilon,
                "mse": mse,
                "rmse": math.sqrt(mse / k),
                "detectable": detectable if math.isfinite(detectable) else None,
                "guarantee": str(price),
                "event": price.event,
            }
        )
    return {
        "problem": {"k": k, "n": n, "trust": "local", "levels": list(scheme.epsilons)},
        "target": f"the frequencies of the {n} values",
        "analysts": analysts,
        "bits_per_client": scheme.oracles[-1].message_bits,
        "private_bits_per_client": scheme.private_bits,
        "random_bits_per_client": scheme.random_bits,
        "separate_messages": facts_of_separate(scheme),
        "guarantee": str(scheme.price()),
    }
