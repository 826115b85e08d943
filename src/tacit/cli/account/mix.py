"""`tacit account compose` and `calibrate`: any mix of releases, and what a budget allows."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from tacit.cli.account.options import (
    DIGITS,
    STATEMENT_VERSION,
    Delta,
    Mechanism,
    Relation,
    Rounds,
    SampleRate,
    composition,
    neighbours_named,
    rounded_down,
    rounded_up,
    shuffled_rounds,
)
from tacit.cli.account.releases import parse_release
from tacit.cli.output import JsonFlag, print_facts, print_json, print_table, print_text
from tacit.errors import ParameterError, check_choice

__all__ = ["calibrate", "compose"]

_TRUST: Final = ("central", "shuffle", "local")


def compose(
    releases: Annotated[
        list[str], typer.Argument(help="NAME:VALUES[@SAMPLE_RATE][xCOUNT] each, or JSON files of events.")
    ],
    delta: Delta,
    neighbours: Relation = "replace-one",
    json: JsonFlag = False,
) -> None:
    """Price any mix of releases on the same data.

    A release is gaussian:Z, laplace:Z, gdp:MU, zcdp:RHO, pure:EPSILON, approx:EPSILON,DELTA,
    discrete-gaussian:STD,SENSITIVITY, discrete-laplace:SCALE,SENSITIVITY, binomial:TRIALS,RESOLUTION,DIM or
    shuffle:LOCAL_EPSILON,PARTIES[,RANDOMIZER]; with @0.01 on secret samples of 1%, with x1000 that often.
    """
    from tacit.privacy import Compose, epsilon_of, guarantee

    parts = tuple(parse_release(text, neighbours=neighbours) for text in releases)
    event = parts[0] if len(parts) == 1 else Compose(parts)
    price = guarantee(event, delta, observer="an observer of all releases")
    alone = [{"release": t, "epsilon": epsilon_of(p, delta)} for t, p in zip(releases, parts, strict=True)]
    if json:
        print_json(
            {
                "version": STATEMENT_VERSION,
                "epsilon": price.epsilon,
                "delta": delta,
                "neighbours": neighbours,
                "method": price.method,
                "releases": alone,
                "guarantees": [price.to_builtins()],
            }
        )
        return
    rows = [(row["release"], f"{row['epsilon']:.6g}") for row in alone]
    print_table(
        ("release", "epsilon alone"),
        [*rows, ("all together", f"{price.epsilon:.6g}")],
        right=("epsilon alone",),
    )
    print_text(f"\n{price}")


def calibrate(
    epsilon: Annotated[float, typer.Option(help="Privacy loss that is allowed in all.")],
    delta: Delta,
    trust: Annotated[
        str, typer.Option(help="Who adds the noise: central, shuffle (a little each), local (each in full).")
    ] = "central",
    n: Annotated[int | None, typer.Option(help="Parties, each with one message a round (shuffle).")] = None,
    rounds: Rounds = 1,
    sample_rate: SampleRate = 1.0,
    mechanism: Mechanism = "general",
    neighbours: Relation = "replace-one",
    json: JsonFlag = False,
) -> None:
    """Find what a budget allows: the least noise of a trusted place, or the largest local epsilon.

    The answer is rounded to the safe side and priced again.
    """
    from tacit import privacy

    check_choice("trust", trust, _TRUST)
    budget = privacy.PrivacyBudget(epsilon, delta)
    relation = neighbours_named(neighbours)
    if trust == "shuffle" and n is None:
        raise ParameterError("n must be given for --trust shuffle: what a shuffle hides depends on it.")
    shuffles = shuffled_rounds(n=n or 1, mechanism=mechanism, rounds=rounds, sample_rate=sample_rate)

    def event_at(noise: float) -> privacy.Event:
        """Return the release as a function of something that costs less the more there is of it."""
        if trust == "shuffle":
            return shuffles(1 / noise)
        part = (
            privacy.Gaussian(noise, relation) if trust == "central" else privacy.PureDP(1 / noise, relation)
        )
        return composition(part, rounds=rounds, sample_rate=sample_rate if trust == "central" else 1.0)

    # A local epsilon above 30 hides nothing, one below 1e-6 says nothing.
    low, high = (1e-3, 1e7) if trust == "central" else (1 / 30, 1e6)
    level = privacy.calibrate(event_at, budget, low=low, high=high)
    if trust == "central":
        found: dict[str, Any] = {"noise_multiplier": rounded_up(level)}
        event = event_at(found["noise_multiplier"])
    else:
        found = {"local_epsilon": rounded_down(1 / level)}
        event = event_at(1 / found["local_epsilon"])
    observer = {"central": "an observer of the releases", "shuffle": "an observer of the shuffled batches"}
    price = privacy.guarantee(event, delta, observer=observer.get(trust, "whoever reads the messages"))
    found |= {
        "epsilon": price.epsilon,
        "budget_epsilon": epsilon,
        "delta": delta,
        "trust": trust,
        "rounds": rounds,
        "sample_rate": sample_rate,
        "method": price.method,
    }
    if trust == "shuffle":
        found |= {"n": n, "mechanism": mechanism}
    if json:
        print_json({"version": STATEMENT_VERSION, **found, "guarantees": [price.to_builtins()]})
        return
    first = next(iter(found))
    facts = {first.replace("_", " "): f"{found[first]:.{DIGITS}f}"}
    facts |= {key.replace("_", " "): f"{value}" for key, value in found.items() if key != first}
    print_facts(facts, title="What the budget allows")
    print_text(f"\n{price}")
