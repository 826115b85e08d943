"""`tacit account iterate`: training whose intermediate iterates nobody sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.account.options import Delta
from tacit.cli.account.output import print_price, rounded_up
from tacit.cli.choices import OneOf
from tacit.cli.output import JsonFlag
from tacit.errors import ParameterError, check_count, check_non_negative, check_positive

if TYPE_CHECKING:
    from tacit.privacy import Event

__all__ = ["OBSERVERS", "event_of", "iterate"]

OBSERVERS: Final = {
    "all": "an observer of all iterates",
    "epochs": "an observer of the iterates at the ends of epochs",
    "last": "an observer of the last iterate",
}
_LEAVES: Final = {
    "all": "all iterates leave",
    "epochs": "the iterates at the ends of epochs leave",
    "last": "the last iterate leaves",
}
_ORDERS: Final = {"rr": "reshuffled every epoch", "so": "shuffled once", "ig": "as the records are"}
_LOSSES: Final = {"convex": "also when clipped", "any": "then only `--release all` has a price"}


def iterate(
    n: Annotated[int, typer.Option(help="Number of records, one for each step of an epoch.")],
    epochs: Annotated[int, typer.Option(help="Number of passes over the records.")],
    delta: Delta,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Budget, to find the least noise.", show_default="as --noise has it"),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(help="Noise multiplier, to find its epsilon.", show_default="as --epsilon needs"),
    ] = None,
    release: Annotated[
        str,
        typer.Option(
            click_type=OneOf(OBSERVERS, told={"epochs": "the last of each"}),
            help="Which iterates are released: {names}.",
        ),
    ] = "last",
    order: Annotated[
        str,
        typer.Option(click_type=OneOf(_ORDERS, told=_ORDERS), help="Order of the records: {names}."),
    ] = "rr",
    private: Annotated[
        int | None,
        typer.Option(
            help="Number of private records of the n, used first; the others are public.", show_default="all"
        ),
    ] = None,
    step_times_smoothness: Annotated[
        float,
        typer.Option(
            help="Step size times a public bound on the smoothness; at most 2, unless all iterates are "
            "released."
        ),
    ] = 2.0,
    loss: Annotated[
        str,
        typer.Option(click_type=OneOf(_LOSSES, told=_LOSSES), help="What is known of the loss: {names}."),
    ] = "convex",
    worst_case_order: Annotated[
        bool,
        typer.Option(
            "--worst-case-order", help="Protect every record in every order, not on average over orders."
        ),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Price shuffled gradient descent that releases only some of its iterates.

    The noise multiplier is the standard deviation of a step's noise over the bound on the norm of a record's
    gradient; replacing the record moves that gradient by twice the bound.
    """
    from tacit.privacy import PrivacyBudget, calibrate, guarantee

    if (epsilon is None) == (noise is None):
        raise ParameterError("give either --epsilon (a budget) or --noise (a noise multiplier).")
    check_count("n", n)
    check_count("epochs", epochs)
    if private is not None:
        check_count("private", private, high=n)
    check_non_negative("step-times-smoothness", step_times_smoothness)
    if release != "all":
        _check_hidden(release, step_times_smoothness, loss)

    asked: dict[str, Any] = {
        "n": n,
        "epochs": epochs,
        "private": n if private is None else private,
        "release": release,
        "order": order,
        "worst_case_order": worst_case_order,
        "step_times_smoothness": step_times_smoothness,
        "loss": loss,
    }

    def event_at(multiplier: float) -> Event:
        return event_of({**asked, "noise_multiplier": multiplier})

    if noise is None:
        assert epsilon is not None  # noqa: S101 - narrows the type
        multiplier = rounded_up(calibrate(event_at, PrivacyBudget(epsilon, delta), low=1e-3, high=1e6))
    else:
        check_positive("noise", noise)
        multiplier = noise
    event = event_at(multiplier)
    price = guarantee(event, delta, observer=OBSERVERS[release])
    found = {
        "noise_multiplier": multiplier,
        "epsilon": price.epsilon,
        "delta": delta,
        **asked,
        "method": price.method,
    }
    print_price(
        "account iterate",
        price,
        answer=found,
        facts={
            "noise multiplier": f"{multiplier:.10g}",
            "epsilon": f"{price.epsilon:.10g}",
            "delta": f"{delta:.10g}",
            "steps": f"{epochs:,} epochs of {n:,}"
            + ("" if private in (None, n) else f", the first {private:,} of each on private records"),
            "order": _ORDERS[order] + (", the worst that can be drawn" if worst_case_order else ""),
            "method": price.method,
        },
        title=f"Noise of a step / bound on the gradient of a record, where {_LEAVES[release]}",
        json=json,
        units=n,
    )


def event_of(asked: dict[str, Any]) -> Event:
    """Return the run, from the facts that an answer holds."""
    from tacit.privacy import Iteration, Order, Release

    convex = asked["loss"] == "convex"
    # An event's noise is over the sensitivity, which under replace-one is twice the bound.
    return Iteration(
        asked["noise_multiplier"] / 2,
        asked["n"],
        asked["epochs"],
        None if asked["private"] == asked["n"] else asked["private"],
        Order(asked["order"]),
        Release(asked["release"]),
        step_times_smoothness=asked["step_times_smoothness"],
        convex=convex,
        clip_safe=convex,
        prox_convex=convex,
        worst_case_order=asked["worst_case_order"],
    )


def _check_hidden(release: str, step_times_smoothness: float, loss: str) -> None:
    """Refuse to hide iterates where steps may carry runs apart (docs/theory/iteration.md, section 3)."""
    instead = "or take --release all, which needs nothing of the loss"
    if loss != "convex":
        raise ParameterError(
            f"loss must be convex where iterates are hidden (--release {release}), {instead}."
        )
    if step_times_smoothness > 2:
        raise ParameterError(
            f"step-times-smoothness must be at most 2 where iterates are hidden (--release {release}), got "
            f"{step_times_smoothness!r}; take smaller steps, {instead}."
        )
