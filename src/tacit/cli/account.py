"""`tacit account`: what does this cost, which noise does a budget need, is this statement true?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from tacit.cli.output import JsonFlag, print_facts, print_json, print_line, print_text
from tacit.errors import (
    ParameterError,
    VerificationError,
    check_choice,
    check_count,
    check_positive,
    check_probability,
)

if TYPE_CHECKING:
    from tacit.privacy import Event, Guarantee, Neighbours

__all__ = ["app"]

app = typer.Typer(help="What a release costs, and the noise for a budget.", no_args_is_help=True)

_STATEMENT_VERSION: Final = 1
_MECHANISMS: Final = ("gaussian", "laplace")
_DIGITS: Final = 6

Delta = Annotated[float, typer.Option(help="Probability that the bound may fail, in [0, 1).")]
Rounds = Annotated[int, typer.Option(help="Releases on the same data.")]
SampleRate = Annotated[
    float, typer.Option(help="Share of the records in a secret sample per round, in (0, 1].")
]
Relation = Annotated[
    str, typer.Option(help="replace-one (fixed-size samples), add-remove or zero-out (Poisson samples).")
]


@app.command()
def noise(
    epsilon: Annotated[float, typer.Option(help="Privacy loss that is allowed in all.")],
    delta: Delta,
    rounds: Rounds = 1,
    sample_rate: SampleRate = 1.0,
    neighbours: Relation = "replace-one",
    json: JsonFlag = False,
) -> None:
    """Find the least Gaussian noise that meets a budget.

    The noise multiplier is standard deviation / L2 sensitivity, under the same neighbours.
    """
    from tacit.privacy import Gaussian, PrivacyBudget, calibrate, guarantee

    budget = PrivacyBudget(epsilon, delta)
    relation = _neighbours(neighbours)
    event_at = _composition(
        lambda z: Gaussian(z, relation), relation=relation, rounds=rounds, sample_rate=sample_rate
    )
    multiplier = _rounded_up(calibrate(event_at, budget))
    price = guarantee(event_at(multiplier), delta, observer=_observer(rounds))
    found: dict[str, Any] = {
        "noise_multiplier": multiplier,
        "epsilon": epsilon,
        "delta": delta,
        "rounds": rounds,
        "sample_rate": sample_rate,
        "neighbours": neighbours,
        "method": price.method,
    }
    if json:
        print_json(found)
        return
    facts = {"noise multiplier": f"{multiplier:.{_DIGITS}f}", **_facts(found)}
    print_facts(facts, title="Gaussian noise, standard deviation / L2 sensitivity")


@app.command()
def epsilon(
    noise: Annotated[float, typer.Option(help="Noise multiplier: std or scale, over the sensitivity.")],
    delta: Delta,
    rounds: Rounds = 1,
    sample_rate: SampleRate = 1.0,
    neighbours: Relation = "replace-one",
    mechanism: Annotated[str, typer.Option(help="gaussian, or laplace (one dimension).")] = "gaussian",
    json: JsonFlag = False,
) -> None:
    """Price repeated releases with a given noise.

    With --json the output is a statement, which `tacit account verify` accepts.
    """
    from tacit.privacy import Gaussian, Laplace, guarantee

    check_positive("noise", noise)
    check_choice("mechanism", mechanism, _MECHANISMS)
    relation = _neighbours(neighbours)

    def release(z: float) -> Event:
        if mechanism == "laplace":
            return Laplace(z, neighbours=relation)
        return Gaussian(z, relation)

    event_at = _composition(release, relation=relation, rounds=rounds, sample_rate=sample_rate)
    secret = ("nobody learns which records are sampled",) if sample_rate < 1 else ()
    price = guarantee(event_at(noise), delta, observer=_observer(rounds), assumptions=secret)
    found: dict[str, Any] = {
        "version": _STATEMENT_VERSION,
        "epsilon": price.epsilon,
        "delta": delta,
        "noise_multiplier": noise,
        "mechanism": mechanism,
        "rounds": rounds,
        "sample_rate": sample_rate,
        "neighbours": neighbours,
        "method": price.method,
    }
    if json:
        print_json({**found, "guarantees": [price.to_builtins()]})
        return
    print_facts({**_facts(found), "noise multiplier": f"{noise:.10g} ({mechanism})"}, title="Price")
    print_text(f"\n{price}")


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A statement: JSON with one guarantee or a list of them.")],
    json: JsonFlag = False,
) -> None:
    """Compute the price of every guarantee in a statement again, from its event alone."""
    claims = _read_statement(file)
    if json:
        guarantees = [claim.to_builtins() for claim in claims]
        print_json({"file": file, "verified": True, "guarantees": guarantees})
        return
    count = f"{len(claims)} guarantees" if len(claims) > 1 else "1 guarantee"
    print_line(to_error=False, label="verified", text=f"{count} in {file}", colour="green")
    # Silos of one run differ in the observer only; one sentence says it for all of them.
    said: dict[tuple[object, ...], list[Guarantee]] = {}
    for claim in claims:
        said.setdefault((claim.epsilon, claim.delta, claim.event, claim.simulated), []).append(claim)
    for alike in said.values():
        more = f" [and the same for {len(alike) - 1} more]" if len(alike) > 1 else ""
        print_text(f"\n{alike[0]}{more}")


def _read_statement(path: Path) -> list[Guarantee]:
    """Return the guarantees of a statement, each of them checked."""
    from tacit.privacy import Guarantee
    from tacit.privacy import verify as check_price

    parts = _parts_of_statement(path)
    claims = []
    for number, part in enumerate(parts, start=1):
        try:
            claims.append(Guarantee.from_builtins(part))
            check_price(claims[-1])
        except VerificationError as error:
            which = f", guarantee {number} of {len(parts)}" if len(parts) > 1 else ""
            raise VerificationError(f"{path}{which}: {error}") from error
    return claims


def _parts_of_statement(path: Path) -> list[object]:
    """Return what a statement file lists as guarantees; it may also be a single one."""
    try:
        statement = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise ParameterError(f"the statement {path} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise VerificationError(f"the statement {path} is not JSON: {error}.") from error
    if not isinstance(statement, dict):
        raise VerificationError(f"the statement {path} is not a JSON object, but {_kind(statement)}.")
    if "event" in statement:
        return [statement]
    parts = statement.get("guarantees")
    if not isinstance(parts, list) or not parts:
        raise VerificationError(
            f"the statement {path} holds no guarantees: it must be one guarantee with an `event`, or have a "
            "list `guarantees` of at least one."
        )
    if statement.get("version") != _STATEMENT_VERSION:
        found = statement.get("version")
        raise VerificationError(
            f"the statement {path} has version {found!r}; this tacit reads version {_STATEMENT_VERSION}."
        )
    return parts


def _kind(value: object) -> str:
    """Name the JSON type of a value that is no object."""
    return "a list" if isinstance(value, list) else "a single value"


def _neighbours(relation: str) -> Neighbours:
    """Return the neighbours of records under a relation given by name."""
    from tacit import privacy

    check_choice("neighbours", relation, [r.value for r in privacy.Relation])
    return privacy.Neighbours(privacy.Relation(relation))


def _composition(
    release: Callable[[float], Event], *, relation: Neighbours, rounds: int, sample_rate: float
) -> Callable[[float], Event]:
    """Return the event of `rounds` releases, each on a secret sample, as a function of the noise."""
    from tacit import privacy

    check_count("rounds", rounds)
    check_probability("sample-rate", sample_rate, low_open=True)
    fixed = relation.relation is privacy.Relation.REPLACE_ONE
    how = privacy.Sample.FIXED if fixed else privacy.Sample.POISSON

    def event_at(noise: float) -> Event:
        part = release(noise)
        if sample_rate < 1:
            part = privacy.Sampled(part, sample_rate, how)
        return privacy.Repeat(part, rounds) if rounds > 1 else part

    return event_at


def _rounded_up(multiplier: float) -> float:
    """Round up to the digits that are printed, so that who copies them has no less noise."""
    nearest = round(multiplier, _DIGITS)
    return nearest if nearest >= multiplier else round(nearest + 10.0**-_DIGITS, _DIGITS)


def _observer(rounds: int) -> str:
    """Say who looks, as it reads in "whatever ... sees"."""
    return "an observer of the release" if rounds == 1 else f"an observer of all {rounds} releases"


def _facts(found: dict[str, Any]) -> dict[str, str]:
    """Return the lines that the tables of both commands share."""
    rate, rounds = found["sample_rate"], found["rounds"]
    kind = "fixed-size" if found["neighbours"] == "replace-one" else "Poisson"
    sample = "all records" if rate == 1 else f"{kind} samples of {100 * rate:.10g}% of the records"
    return {
        "epsilon": f"{found['epsilon']:.10g}",
        "delta": f"{found['delta']:.10g}",
        "rounds": f"{rounds}, on {sample}",
        "neighbours": found["neighbours"],
        "method": found["method"],
    }
