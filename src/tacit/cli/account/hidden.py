"""`tacit account iterate`: training whose intermediate iterates nobody sees."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tacit.cli.account.options import STATEMENT_VERSION, Delta, rounded_up
from tacit.cli.output import JsonFlag, print_facts, print_json, print_text
from tacit.errors import ParameterError, check_choice, check_positive

__all__ = ["iterate"]


def iterate(
    n: Annotated[int, typer.Option(help="Steps of an epoch: records, one a step.")],
    epochs: Annotated[int, typer.Option(help="Passes over the records.")],
    delta: Delta,
    epsilon: Annotated[float | None, typer.Option(help="Budget: find the least noise.")] = None,
    noise: Annotated[float | None, typer.Option(help="Noise multiplier: find its epsilon.")] = None,
    release: Annotated[str, typer.Option(help="What leaves: last, epochs or all iterates.")] = "last",
    order: Annotated[
        str, typer.Option(help="rr (reshuffled every epoch), so (shuffled once), ig (as they are).")
    ] = "rr",
    private: Annotated[int | None, typer.Option(help="Private records of the n; default all.")] = None,
    step_times_smoothness: Annotated[
        float, typer.Option(help="Step size times a public bound on the smoothness; at most 2 to hide.")
    ] = 2.0,
    loss: Annotated[
        str, typer.Option(help="convex (also when clipped), or any: then only `--release all` has a price.")
    ] = "convex",
    json: JsonFlag = False,
) -> None:
    """Price shuffled gradient descent of which only some iterates leave.

    The noise multiplier is the standard deviation of a step's noise over the bound on the norm of a record's
    gradient; replacing the record moves that gradient by twice the bound.
    """
    from tacit.privacy import Iteration, Order, PrivacyBudget, Release, calibrate, guarantee

    check_choice("release", release, [r.value for r in Release])
    check_choice("order", order, [o.value for o in Order])
    check_choice("loss", loss, ("convex", "any"))
    if (epsilon is None) == (noise is None):
        raise ParameterError("give either --epsilon (a budget) or --noise (a noise multiplier).")

    def event_at(multiplier: float) -> Iteration:
        # An event's noise is over the sensitivity, which under replace-one is twice the bound.
        return Iteration(
            multiplier / 2,
            n,
            epochs,
            private,
            Order(order),
            Release(release),
            step_times_smoothness=step_times_smoothness,
            convex=loss == "convex",
            clip_safe=loss == "convex",
            prox_convex=loss == "convex",
        )

    if noise is None:
        assert epsilon is not None  # noqa: S101 - narrows the type
        multiplier = rounded_up(calibrate(event_at, PrivacyBudget(epsilon, delta), low=1e-3, high=1e6))
    else:
        check_positive("noise", noise)
        multiplier = noise
    event = event_at(multiplier)
    price = guarantee(event, delta, observer="an observer of what leaves", assumptions=event.assumptions)
    found: dict[str, Any] = {
        "version": STATEMENT_VERSION,
        "noise_multiplier": multiplier,
        "epsilon": price.epsilon,
        "delta": delta,
        "n": n,
        "epochs": epochs,
        "private": n if private is None else private,
        "release": release,
        "order": order,
        "method": price.method,
    }
    if json:
        print_json({**found, "guarantees": [price.to_builtins()]})
        return
    facts = {key.replace("_", " "): str(value) for key, value in found.items() if key != "version"}
    print_facts(facts, title="Noise a step / bound on the gradient of a record")
    print_text(f"\n{price}")
