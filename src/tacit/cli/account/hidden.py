"""`tacit account iterate`: training whose intermediate iterates nobody sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.account.options import Delta
from tacit.cli.account.output import print_price, rounded_up
from tacit.cli.choices import OneOf
from tacit.cli.flags import takes
from tacit.cli.neighbours import RelationOption, neighbours_named
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
_PLACES: Final = {"every-step": "a draw on every step", "epoch-end": "one draw after each epoch"}
_LOSSES: Final = {"convex": "also when clipped", "any": "then only `--release all` has a price"}


@dataclass(frozen=True, kw_only=True)
class IterateFlags:
    """A run of which only some iterates leave, and a budget or a noise for it."""

    n: Annotated[int, typer.Option(help="Number of records, one for each step of an epoch.")]
    epochs: Annotated[int, typer.Option(help="Number of passes over the records.")]
    delta: Delta
    epsilon: Annotated[
        float | None,
        typer.Option(help="Budget, to find the least noise.", show_default="as --noise has it"),
    ] = None
    noise: Annotated[
        float | None,
        typer.Option(help="Noise multiplier, to find its epsilon.", show_default="as --epsilon needs"),
    ] = None
    release: Annotated[
        str,
        typer.Option(
            click_type=OneOf(OBSERVERS, told={"epochs": "the last of each"}),
            help="Which iterates are released: {names}.",
        ),
    ] = "last"
    order: Annotated[
        str,
        typer.Option(click_type=OneOf(_ORDERS, told=_ORDERS), help="Order of the records: {names}."),
    ] = "rr"
    private: Annotated[
        int | None,
        typer.Option(
            help="Number of private records of the n, used first; the others are public.", show_default="all"
        ),
    ] = None
    placement: Annotated[
        str,
        typer.Option(
            click_type=OneOf(_PLACES, told=_PLACES),
            help="Where the noise goes: {names}. At the end, no step within an epoch may be seen.",
        ),
    ] = "every-step"
    step_times_smoothness: Annotated[
        float,
        typer.Option(
            help="Step size times a public bound on the smoothness; at most 2, unless all iterates are "
            "released."
        ),
    ] = 2.0
    loss: Annotated[
        str,
        typer.Option(click_type=OneOf(_LOSSES, told=_LOSSES), help="What is known of the loss: {names}."),
    ] = "convex"
    worst_case_order: Annotated[
        bool,
        typer.Option(
            "--worst-case-order", help="Protect every record in every order, not on average over orders."
        ),
    ] = False
    neighbours: RelationOption = "replace-one"
    json: JsonFlag = False

    def facts(self) -> dict[str, Any]:
        """Return what is asked about, checked, by the names of an answer."""
        if (self.epsilon is None) == (self.noise is None):
            raise ParameterError("give either --epsilon (a budget) or --noise (a noise multiplier).")
        check_count("n", self.n)
        check_count("epochs", self.epochs)
        if self.private is not None:
            check_count("private", self.private, high=self.n)
        check_non_negative("step-times-smoothness", self.step_times_smoothness)
        if self.release == "all" and self.placement == "epoch-end":
            raise ParameterError(
                "placement must be every-step where all iterates are released: the steps of an epoch have no "
                "noise of their own with epoch-end."
            )
        if self.release != "all":
            _check_hidden(self.release, self.step_times_smoothness, self.loss)
        if self.noise is not None:
            check_positive("noise", self.noise)
        if self.neighbours == "add-remove":
            raise ParameterError(
                "neighbours must be replace-one or zero-out for a run whose number of steps is public, got "
                "add-remove."
            )
        return {
            "n": self.n,
            "epochs": self.epochs,
            "private": self.n if self.private is None else self.private,
            "release": self.release,
            "order": self.order,
            "worst_case_order": self.worst_case_order,
            "placement": self.placement,
            "step_times_smoothness": self.step_times_smoothness,
            "loss": self.loss,
            "neighbours": self.neighbours,
        }

    @property
    def steps(self) -> str:
        """The steps of the run in words."""
        first = (
            ""
            if self.private in (None, self.n)
            else f", the first {self.private:,} of each on private records"
        )
        return f"{self.epochs:,} epochs of {self.n:,}{first}"


@takes(IterateFlags)
def iterate(flags: IterateFlags) -> None:
    """Price shuffled gradient descent that releases only some of its iterates.

    The noise multiplier is the standard deviation of a step's noise over the bound on the norm of a record's
    gradient; replacing the record moves that gradient by twice the bound, blanking it out by the bound.
    """
    from tacit.privacy import PrivacyBudget, calibrate, guarantee

    asked, delta, multiplier = flags.facts(), flags.delta, flags.noise
    if flags.epsilon is not None:
        budget = PrivacyBudget(flags.epsilon, delta)
        found_at = calibrate(lambda z: event_of({**asked, "noise_multiplier": z}), budget, low=1e-3, high=1e6)
        multiplier = rounded_up(found_at)
    event = event_of({**asked, "noise_multiplier": multiplier})
    price = guarantee(event, delta, observer=OBSERVERS[flags.release])
    drawn = "step" if flags.placement == "every-step" else "draw"
    worst = ", the worst that can be drawn" if flags.worst_case_order else ""
    print_price(
        "account iterate",
        price,
        answer={
            "noise_multiplier": multiplier,
            "epsilon": price.epsilon,
            "delta": delta,
            **asked,
            "method": price.method,
        },
        facts={
            "noise multiplier": f"{multiplier:.10g}",
            "epsilon": f"{price.epsilon:.10g}",
            "delta": f"{delta:.10g}",
            "steps": flags.steps,
            "order": f"{_ORDERS[flags.order]}{worst}",
            **({"noise": _PLACES[flags.placement]} if flags.placement != "every-step" else {}),
            "method": price.method,
        },
        title=f"Noise of a {drawn} / bound on the gradient of a record, where {_LEAVES[flags.release]}",
        json=flags.json,
        units=flags.n,
    )


def event_of(asked: dict[str, Any]) -> Event:
    """Return the run, from the facts that an answer holds."""
    from tacit.privacy import Iteration, Order, Placement, Relation, Release

    convex, neighbours = asked["loss"] == "convex", neighbours_named(asked["neighbours"])
    # An event's noise is over the sensitivity, which under replace-one is twice the bound.
    moved = 2 if neighbours.relation is Relation.REPLACE_ONE else 1
    return Iteration(
        asked["noise_multiplier"] / moved,
        asked["n"],
        asked["epochs"],
        None if asked["private"] == asked["n"] else asked["private"],
        Order(asked["order"]),
        Release(asked["release"]),
        neighbours,
        step_times_smoothness=asked["step_times_smoothness"],
        convex=convex,
        clip_safe=convex,
        prox_convex=convex,
        worst_case_order=asked["worst_case_order"],
        placement=Placement(asked["placement"]),
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
