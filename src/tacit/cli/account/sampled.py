"""`tacit account subsample`: what a release costs on a secret sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.account.options import (
    Delta,
    RoundsOption,
    SampleRate,
    SamplingOption,
    as_drawn,
    check_same,
    clauses_of,
    composition,
)
from tacit.cli.account.output import observer, print_price, rounds_in_words
from tacit.cli.account.releases import parse_release
from tacit.cli.neighbours import RelationOption
from tacit.cli.output import JsonFlag

if TYPE_CHECKING:
    from tacit.privacy import Event

__all__ = ["check_prices", "event_of", "subsample"]


def subsample(
    release: Annotated[
        str, typer.Argument(help="What is released on the sample, such as gaussian:1.5; see `compose`.")
    ],
    sample_rate: SampleRate,
    delta: Delta,
    rounds: RoundsOption = 1,
    neighbours: RelationOption = "replace-one",
    sampling: SamplingOption = None,
    json: JsonFlag = False,
) -> None:
    """Price a release on secret samples, beside its price on all records."""
    from tacit.privacy import epsilon_of, guarantee, neighbours_of

    part = parse_release(release, neighbours=neighbours)
    neighbours = neighbours_of(part).relation.value  # a file brings its own
    asked = {"sample_rate": sample_rate, "neighbours": neighbours, **as_drawn(sampling)}
    event = composition(part, rounds=rounds, sample_rate=sample_rate, sampling=sampling)
    once = composition(part, rounds=1, sample_rate=sample_rate, sampling=sampling)
    clauses = clauses_of({**asked, "release": release})
    price = guarantee(event, delta, observer=observer(rounds), assumptions=clauses)
    found: dict[str, Any] = {
        "epsilon": price.epsilon,
        "epsilon_per_round": epsilon_of(once, delta),
        "epsilon_without_sampling": epsilon_of(composition(part, rounds=rounds, sample_rate=1.0), delta),
        "delta": delta,
        "release": release,
        "rounds": rounds,
        **asked,
        "method": price.method,
    }
    print_price(
        "account subsample",
        price,
        answer=found,
        facts={
            "epsilon": f"{price.epsilon:.10g}",
            "of one round": f"{found['epsilon_per_round']:.6g}",
            "without sampling": f"{found['epsilon_without_sampling']:.6g}",
            "delta": f"{delta:.10g}",
            "rounds": rounds_in_words(rounds, sample_rate, neighbours, sampling),
            "neighbours": neighbours,
            "method": price.method,
        },
        title=f"Price of {release} on secret samples",
        json=json,
    )


def event_of(asked: dict[str, Any]) -> Event | None:
    """Return what was released, from the facts that an answer holds; None where a file said it."""
    if str(asked["release"]).endswith(".json"):
        return None
    part = parse_release(asked["release"], neighbours=asked["neighbours"])
    return _composed(asked, part, rounds=asked["rounds"])


def check_prices(asked: dict[str, Any]) -> None:
    """Refuse prices of one round and of no sampling that are not those of the release."""
    from tacit.privacy import epsilon_of
    from tacit.privacy.statement_checks import check_work_of_all

    part = parse_release(asked["release"], neighbours=asked["neighbours"])
    events = {
        "epsilon_per_round": _composed(asked, part, rounds=1),
        "epsilon_without_sampling": composition(part, rounds=asked["rounds"], sample_rate=1.0),
    }
    check_work_of_all(events.values())
    for name, event in events.items():
        check_same(name, asked[name], epsilon_of(event, asked["delta"]))


def _composed(asked: dict[str, Any], part: Event, *, rounds: int) -> Event:
    """Return releases on samples, drawn as the facts of an answer say."""
    return composition(part, rounds=rounds, sample_rate=asked["sample_rate"], sampling=asked.get("sampling"))
