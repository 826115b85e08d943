"""`tacit account noise` and `epsilon`: noise that one trusted place adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.account.options import (
    Budget,
    Delta,
    RoundsOption,
    SampleRate,
    SamplingOption,
    as_drawn,
    clauses_of,
    composition,
)
from tacit.cli.account.output import DIGITS, observer, print_price, rounded_up, rounds_in_words, warn_of_price
from tacit.cli.choices import OneOf
from tacit.cli.neighbours import RelationOption, neighbours_named
from tacit.cli.output import JsonFlag, print_facts, print_json
from tacit.errors import check_choice, check_positive

if TYPE_CHECKING:
    from tacit.privacy import Event

__all__ = ["epsilon", "event_of", "noise"]

_MECHANISMS: Final = ("gaussian", "laplace")


def noise(
    epsilon: Budget,
    delta: Delta,
    rounds: RoundsOption = 1,
    sample_rate: SampleRate = 1.0,
    neighbours: RelationOption = "replace-one",
    sampling: SamplingOption = None,
    json: JsonFlag = False,
) -> None:
    """Find the least Gaussian noise that meets a budget.

    The noise multiplier is standard deviation / L2 sensitivity, under the same neighbours.
    """
    from tacit.privacy import Gaussian, PrivacyBudget, calibrate, guarantee

    budget = PrivacyBudget(epsilon, delta)
    relation = neighbours_named(neighbours)

    def event_at(multiplier: float) -> Event:
        part = Gaussian(multiplier, relation)
        return composition(part, rounds=rounds, sample_rate=sample_rate, sampling=sampling)

    multiplier = rounded_up(calibrate(event_at, budget))
    price = guarantee(event_at(multiplier), delta, observer=observer(rounds))
    warn_of_price(price)
    found: dict[str, Any] = {
        "noise_multiplier": multiplier,
        "epsilon": epsilon,
        "delta": delta,
        "rounds": rounds,
        "sample_rate": sample_rate,
        "neighbours": neighbours,
        **as_drawn(sampling),
        "method": price.method,
    }
    if json:
        print_json(found)
        return
    facts = {"noise multiplier": f"{multiplier:.{DIGITS}f}", **_facts(found)}
    print_facts(facts, title="Gaussian noise, standard deviation / L2 sensitivity")


def epsilon(
    noise: Annotated[
        float,
        typer.Option(help="Noise multiplier: standard deviation or scale, over the sensitivity."),
    ],
    delta: Delta,
    rounds: RoundsOption = 1,
    sample_rate: SampleRate = 1.0,
    neighbours: RelationOption = "replace-one",
    sampling: SamplingOption = None,
    mechanism: Annotated[
        str,
        typer.Option(
            click_type=OneOf(_MECHANISMS, told={"laplace": "of one number"}),
            help="Noise that is added: {names}.",
        ),
    ] = "gaussian",
    json: JsonFlag = False,
) -> None:
    """Price repeated releases with a given noise.

    With --json the output is a statement, which `tacit account verify` accepts.
    """
    from tacit.privacy import guarantee

    check_positive("noise", noise)
    check_choice("mechanism", mechanism, _MECHANISMS)
    asked: dict[str, Any] = {
        "noise_multiplier": noise,
        "mechanism": mechanism,
        "rounds": rounds,
        "sample_rate": sample_rate,
        "neighbours": neighbours,
        **as_drawn(sampling),
    }
    price = guarantee(event_of(asked), delta, observer=observer(rounds), assumptions=clauses_of(asked))
    found = {"epsilon": price.epsilon, "delta": delta, **asked, "method": price.method}
    facts = {**_facts(found), "noise multiplier": f"{noise:.10g} ({mechanism})"}
    print_price("account epsilon", price, answer=found, facts=facts, title="Price", json=json)


def event_of(asked: dict[str, Any]) -> Event:
    """Return what was released, from the facts that an answer of `epsilon` holds."""
    from tacit.privacy import Gaussian, Laplace

    noise, relation = asked["noise_multiplier"], neighbours_named(asked["neighbours"])
    check_choice("mechanism", asked["mechanism"], _MECHANISMS)
    laplace = asked["mechanism"] == "laplace"
    part = Laplace(noise, neighbours=relation) if laplace else Gaussian(noise, relation)
    return composition(
        part, rounds=asked["rounds"], sample_rate=asked["sample_rate"], sampling=asked.get("sampling")
    )


def _facts(found: dict[str, Any]) -> dict[str, str]:
    """Return the lines that the tables of both commands share."""
    return {
        "epsilon": f"{found['epsilon']:.10g}",
        "delta": f"{found['delta']:.10g}",
        "rounds": rounds_in_words(
            found["rounds"], found["sample_rate"], found["neighbours"], found.get("sampling")
        ),
        "neighbours": found["neighbours"],
        "method": found["method"],
    }
