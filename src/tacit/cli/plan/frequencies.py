"""`tacit plan frequencies`: which mechanism for the frequencies of k values?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.choices import OneOf
from tacit.cli.flags import takes
from tacit.cli.frequencies import (
    TRUSTS,
    DeltaOption,
    LevelsOption,
    MaxMessageBitsOption,
    MaxRandomBitsOption,
    budget_of,
    check_levels,
)
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress
from tacit.cli.plan.levels import plan_levels
from tacit.errors import ParameterError, check_count

if TYPE_CHECKING:
    from tacit.frequencies import FrequencyOracle
    from tacit.privacy import Guarantee, PrivacyBudget

__all__ = ["frequencies"]


@dataclass(frozen=True, kw_only=True)
class FrequencyPlanFlags:
    """Frequencies, and what clients can afford."""

    k: Annotated[int, typer.Option(help="Number of values.")]
    n: Annotated[int, typer.Option(help="Number of clients, with one value each.")]
    epsilon: Annotated[
        float | None,
        typer.Option(help="Privacy budget of the frequencies.", show_default="the largest of --levels"),
    ] = None
    levels: LevelsOption = None
    parties: Annotated[
        int | None,
        typer.Option(
            help="Tables that hold the clients and hide each other, with --trust aggregate.",
            show_default="one for every client",
        ),
    ] = None
    delta: DeltaOption = None
    trust: Annotated[
        str,
        typer.Option(
            click_type=OneOf(TRUSTS, told={"local": "nobody", "shuffle": "a shuffler", "aggregate": "a sum"}),
            help="Who is trusted: {names}.",
        ),
    ] = "local"
    colluding: Annotated[
        int, typer.Option(help="Tables that may tell what they added, with --trust aggregate.")
    ] = 0
    max_random_bits: MaxRandomBitsOption = None
    max_message_bits: MaxMessageBitsOption = None
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Values are independent draws from one distribution: Hadamard answers are one bit then.",
        ),
    ] = False
    json: JsonFlag = False

    def __post_init__(self) -> None:
        if self.levels is not None:
            others = {
                "trust": self.trust if self.trust != "local" else None,
                "delta": self.delta or None,
                "max_random_bits": self.max_random_bits,
                "max_message_bits": self.max_message_bits,
                "independent": self.independent or None,
            }
            check_levels(self.levels, self.epsilon, others)
        elif self.epsilon is None:
            raise ParameterError("--epsilon must be given, or --levels with one for every analyst.")
        if self.trust != "aggregate" and (self.parties is not None or self.colluding):
            raise ParameterError(
                f"parties and colluding are for trust 'aggregate', got {self.parties} and {self.colluding} "
                f"with trust {self.trust!r}."
            )

    @property
    def sizes(self) -> list[int]:
        """Clients of each table under aggregate trust, dealt evenly."""
        if self.trust != "aggregate":
            return []
        n = check_count("n", self.n)
        parties = check_count("parties", n if self.parties is None else self.parties, high=n)
        return [n // parties + (place < n % parties) for place in range(parties)]


@takes(FrequencyPlanFlags)
def frequencies(flags: FrequencyPlanFlags) -> None:
    """Rank mechanisms for the frequencies of k values by their exact squared error.

    With --levels: what several analysts find, each at an epsilon of its own, from one message of a client.
    """
    if flags.levels is not None:
        plan_levels(flags.k, flags.n, flags.levels, json=flags.json)
        return
    budget = budget_of(0.0 if flags.epsilon is None else flags.epsilon, flags.delta, flags.trust)
    check_count("n", flags.n)
    with progress("calibrating"):
        found = _candidates(flags, budget)
    if flags.json:
        print_json(
            {
                "version": 1,
                "problem": {
                    "k": flags.k,
                    "n": flags.n,
                    "trust": flags.trust,
                    "parties": len(flags.sizes) or None,
                    "colluding": flags.colluding,
                    "epsilon": budget.epsilon,
                    "delta": budget.delta,
                    "max_random_bits": flags.max_random_bits,
                    "max_message_bits": flags.max_message_bits,
                    "independent": flags.independent,
                },
                "target": _target(flags),
                "pick": found[0]["name"],
                "candidates": found,
                "lower_bound": _lower_bound(flags, budget),
            }
        )
    else:
        _show(flags, budget, found)


def _candidates(flags: FrequencyPlanFlags, budget: PrivacyBudget) -> list[dict[str, Any]]:
    """Return all mechanisms that can be used, the best first."""
    from tacit.frequencies import MECHANISMS, FrequenciesQuery, choose_mechanism, observer_of_frequencies
    from tacit.privacy import TrustModel, Unit, guarantee

    trust = TrustModel(flags.trust)
    if trust in (TrustModel.CENTRAL, TrustModel.AGGREGATE):
        if flags.independent:
            raise ParameterError(
                f"independent is for clients who randomise; under {trust.value} trust none does."
            )
        query = FrequenciesQuery.calibrated(
            k=flags.k,
            n=flags.n,
            budget=budget,
            trust=trust,
            max_random_bits=flags.max_random_bits,
            max_message_bits=flags.max_message_bits,
            parties=flags.sizes,
            colluding=flags.colluding,
        )
        what = "counts with noise" + (
            f", a share from each of {query.tables:,} tables" if query.tables else ""
        )
        line = _line(query.mechanism, what, query.mse, query.k, query.message_bits, 0.0)
        return [line | _priced(query.price) | {"local_epsilon": None, "detectable": None}]
    ranked = choose_mechanism(
        flags.k,
        budget.epsilon,
        flags.n,
        delta=budget.delta,
        trust=trust,
        max_random_bits=flags.max_random_bits,
        max_message_bits=flags.max_message_bits,
        independent=flags.independent,
    )
    lines = []
    for one in ranked:
        price = guarantee(
            one.oracle.event(flags.n, trust),
            budget.delta,
            observer=observer_of_frequencies(trust, Unit.RECORD),
        )
        line = _line(one.name, MECHANISMS[one.name], one.mse, flags.k, one.message_bits, one.random_bits)
        lines.append(
            line
            | _priced(price)
            | {"local_epsilon": one.oracle.epsilon, "detectable": _detectable(one.oracle, flags)}
        )
    return lines


def _line(name: str, what: str, mse: float, k: int, bits: int, random: float) -> dict[str, Any]:
    """Return one candidate for programs."""
    return {
        "name": name,
        "message": what,
        "mse": mse,
        "rmse": (mse / k) ** 0.5,
        "bits_per_client": bits,
        "random_bits_per_client": random,
    }


def _priced(price: Guarantee) -> dict[str, Any]:
    """Return what a candidate costs."""
    return {
        "epsilon": price.epsilon,
        "delta": price.delta,
        "guarantee": str(price),
        "event": price.event,
    }


def _detectable(oracle: FrequencyOracle, flags: FrequencyPlanFlags) -> float | None:
    """Return how frequent a value must be to be found; None where none is, or rows are taken in turn."""
    import math

    from tacit.frequencies import detectable_frequency

    if flags.independent:
        return None
    found = detectable_frequency(oracle, flags.n)
    return found if math.isfinite(found) else None


def _target(flags: FrequencyPlanFlags) -> str:
    """Say what errors are measured against."""
    if flags.independent:
        return f"the distribution that {flags.n} independent values come from"
    return f"the frequencies of the {flags.n} values"


def _lower_bound(flags: FrequencyPlanFlags, budget: PrivacyBudget) -> float | None:
    """Return what no mechanism beats under local trust; None under another."""
    from tacit.literature import frequency_lower_bound

    if flags.trust != "local":
        return None
    bits = 1.0 if flags.max_random_bits is None else min(flags.max_random_bits, 1.0)
    return frequency_lower_bound(flags.k, budget.epsilon, flags.n, random_bits=bits)


def _show(flags: FrequencyPlanFlags, budget: PrivacyBudget, found: list[dict[str, Any]]) -> None:
    """Print the plan for people."""
    print_text(f"squared l2 error against {_target(flags)}, {flags.k} values, before any projection")
    columns = ("mechanism", "mse", "rmse", "bits", "random bits", "one message", "found from")
    rows = [
        (
            one["name"],
            f"{one['mse']:.3g}",
            f"{one['rmse']:.3g}",
            f"{one['bits_per_client']:,}",
            f"{one['random_bits_per_client']:,.3g}",
            "-" if one["local_epsilon"] is None else f"epsilon {one['local_epsilon']:.4g}",
            "-" if one["detectable"] is None else f"{one['detectable']:.3g}",
        )
        for one in found
    ]
    print_table(columns, rows, right=columns[1:])
    print_text("")
    for one in found:
        print_text(f"- {one['name']}: {one['message']}.")
    print_text("- found from: about how frequent a value must be so that 95 % of heavy hitters are found.")
    bound = _lower_bound(flags, budget)
    if bound is not None:
        print_text(f"- over all distributions, no mechanism has a smaller error than {bound:.3g}.")
    print_text(f"\n{found[0]['guarantee']}")
