"""`tacit account aggregate`: what a sum with a share of noise of every party tells, and one message alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.account.options import Delta, RoundsOption
from tacit.cli.account.output import warn_of_price
from tacit.cli.neighbours import RelationOption, neighbours_named
from tacit.cli.output import JsonFlag, print_facts, print_json, print_text
from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_positive

if TYPE_CHECKING:
    from tacit.means import ModularSumMean
    from tacit.privacy import Neighbours

__all__ = ["aggregate"]


def aggregate(
    parties: Annotated[int, typer.Option(help="Number of parties, each with a share of the noise.")],
    noise: Annotated[
        float,
        typer.Option(help="Noise multiplier of the honest sum: standard deviation over the sensitivity."),
    ],
    delta: Delta = 1e-5,
    colluding: Annotated[
        int, typer.Option(help="Parties that may collude with the server, whose shares do not count.")
    ] = 0,
    n_min: Annotated[
        int | None,
        typer.Option(help="Parties that an accepted sum holds at least.", show_default="all parties"),
    ] = None,
    dim: Annotated[int, typer.Option(help="Number of coordinates of a sum.")] = 1,
    steps: Annotated[
        int | None,
        typer.Option(help="Grid steps of the radius of a row.", show_default="2^ceil(log2(50 sqrt(dim)))"),
    ] = None,
    rounds: RoundsOption = 1,
    neighbours: RelationOption = "replace-one",
    json: JsonFlag = False,
) -> None:
    """Price a sum to which every party adds a share of noise.

    Of n-min parties in the sum, those that do not collude hide each other: their shares together have the
    given noise. Who sees one message alone, because all others collude, sees one share.
    """
    from tacit.means.modular import modular_width
    from tacit.privacy import Repeat, TrustModel, guarantee

    least = parties if n_min is None else n_min
    check_positive("noise", noise)
    check_count("parties", parties, low=2, high=LARGEST_COUNT)
    check_count("n-min", least, low=2, high=parties)
    check_count("colluding", colluding, low=0, high=parties - 1)
    check_count("rounds", rounds)
    if (shares := least - colluding) < 2:
        raise ParameterError(
            f"colluding must leave at least 2 honest parties of n-min = {least}, got {colluding}."
        )
    made = _mean(noise, dim, steps, shares, neighbours_named(neighbours))
    views = {
        TrustModel.AGGREGATE: f"the server and up to {colluding} parties together,",
        TrustModel.LOCAL: "the server and all other parties together,",
    }
    summed, alone = (
        guarantee(Repeat(made.event(1, trust), rounds), delta, observer=observer)
        for trust, observer in views.items()
    )
    warn_of_price(summed)
    bits = modular_width(
        rows=parties, parties=parties, steps=made.noise.steps, std=made.std, dim=dim, rounds=rounds
    )
    found: dict[str, Any] = {
        "epsilon": summed.epsilon,
        "epsilon_alone": alone.epsilon,
        "delta": delta,
        "noise_multiplier": noise,
        "parties": parties,
        "n_min": least,
        "colluding": colluding,
        "shares": shares,
        "dim": dim,
        "steps": made.noise.steps,
        "std_of_a_share": made.std,
        "bits_of_a_coordinate": bits,
        "rounds": rounds,
        "neighbours": neighbours,
        "method": summed.method,
        "assumptions": list(summed.assumptions),
    }
    if json:
        print_json(found)
        return
    _show(found)
    print_text(f"\n{summed}")
    print_text(f"\n{alone}")


def _show(found: dict[str, Any]) -> None:
    """Print the price for people."""
    print_facts(
        {
            "epsilon": f"{found['epsilon']:.10g}",
            "one message alone": f"epsilon {found['epsilon_alone']:.10g}",
            "delta": f"{found['delta']:.10g}",
            "parties": f"{found['parties']:,}, of which {found['n_min']:,} in a sum and "
            f"{found['shares']:,} honest at least",
            "noise of a share": f"{found['std_of_a_share']:.10g} steps, {found['steps']:,} a radius",
            "bits of a coordinate": f"{found['bits_of_a_coordinate']}, where each party has one row",
            "rounds": found["rounds"],
            "neighbours": found["neighbours"],
            "method": found["method"],
        },
        title="Price of a sum with shares of noise",
    )


def _mean(noise: float, dim: int, steps: int | None, shares: int, neighbours: Neighbours) -> ModularSumMean:
    """Return the mean whose honest sum has that noise multiplier, what rounding gives up taken off.

    s = sqrt(((z Delta)^2 + 9) / m), with the sensitivity Delta of one row a party.
    """
    import math

    import msgspec

    from tacit.means import DiscreteGaussianNoise, ModularSumMean
    from tacit.privacy import DiscreteGaussian

    check_count("dim", dim, high=LARGEST_COUNT)
    fine = 2 ** math.ceil(math.log2(50 * math.sqrt(dim))) if steps is None else steps
    made = ModularSumMean(
        dim=dim, noise=DiscreteGaussianNoise(1.0, steps=fine), shares=shares, neighbours=neighbours
    )
    one = made.noise.event(1, dim, sensitivity=made.moved, neighbours=neighbours)
    assert isinstance(one, DiscreteGaussian)  # noqa: S101 - says what is known
    std = math.hypot(noise * one.sensitivity, 3) / math.sqrt(shares)
    share = DiscreteGaussianNoise(std / (made.moved * fine), steps=fine)
    return msgspec.structs.replace(made, noise=share)
