"""`tacit vote`: release a private majority of teachers; design, check and compare its noise functions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.files import check_file, check_picture
from tacit.cli.flags import takes
from tacit.cli.names import DESIGNS
from tacit.cli.output import JsonFlag, print_json, print_text, progress
from tacit.cli.paying import charged
from tacit.cli.vote.output import (
    VERSION,
    design_facts,
    plan_facts,
    release_facts,
    show_design,
    show_plan,
    show_release,
)
from tacit.cli.vote.question import DRAWS, Question
from tacit.cli.vote.release import Artefact, ReleaseFlags, TotalDelta, read_design
from tacit.errors import ParameterError, check_count

if TYPE_CHECKING:
    from tacit.numerics import IntArray

__all__ = ["app"]

_ALLOWANCE: Final = 3.0

app = typer.Typer(
    help="Release a private majority of teachers; design and check its noise.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Release a private majority of teachers; design and check its noise."""


@dataclass(frozen=True, kw_only=True)
class DesignFlags(Question):
    """Which noise function is made, and where it goes."""

    m: Annotated[
        float,
        typer.Option(help="Number of votes that the published bit may cost as much as, from 1 to all."),
    ]
    method: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(
                DESIGNS,
                told={
                    "optimal-monotone": "the best that never falls towards unanimity",
                    "optimal": "the best of all, which may turn a unanimous vote",
                    "optimized": "the same",
                },
            ),
            help="Design, as `tacit vote plan` lists them: {names}.",
            show_default="optimal-monotone",
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(help="File to write the noise function into.", show_default="no file"),
    ] = None
    json: JsonFlag = False


@app.command("design")
@takes(DesignFlags)
def design_one(flags: DesignFlags) -> None:
    """Design a noise function, with a certificate of its privacy."""
    from tacit.privacy.certified import MOST_TEACHERS
    from tacit.voting import DEFAULT_DESIGN, design

    method = DEFAULT_DESIGN if flags.method is None else flags.method
    name = "optimal" if method == "optimized" else method
    setting = flags.setting(flags.m)
    if name == "optimal" and not setting.voters.scannable:
        raise ParameterError(
            f"method {method!r} is for up to {MOST_TEACHERS} teachers with delta-teacher > 0, got "
            f"{flags.teachers}; use 'optimal-monotone'."
        )
    _, objective = flags.belief()
    if flags.out is not None:
        check_file("out", flags.out)
    noise = design(setting, name, objective)
    if flags.out is not None:
        flags.out.write_bytes(noise.to_json())
    if flags.json:
        print_json({**design_facts(noise), "out": flags.out})
    else:
        show_design(noise, f"Written to {flags.out}" if flags.out is not None else "")


@app.command()
def certify(
    artefact: Artefact,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute without floating point; slower with many teachers.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Compute the privacy of a noise function again, for the worst of all teachers."""
    from tacit import voting

    noise = read_design(artefact)
    found = voting.certify(noise.gamma, noise.setting, exact=exact or noise.certificate.exact)
    if json:
        print_json({**design_facts(noise), "delta_required": found.delta_required, "slack": found.slack})
    else:
        show_design(noise, "The certificate holds.")


@app.command()
@takes(ReleaseFlags)
def release(flags: ReleaseFlags) -> None:
    """Publish one noisy majority for each row of votes.

    With --json the output is a statement, which `tacit account verify` accepts. Whoever runs this sees all
    votes: the guarantee is for those who see the published bits.
    """
    import numpy as np

    from tacit.privacy.weak import warn_of_weak
    from tacit.randomness import secure, simulated
    from tacit.voting import ballot_counts

    flags.check()
    noise = read_design(flags.artefact)
    counts = ballot_counts(_ballots(flags.votes), noise.setting.teachers)
    if not counts.size:
        raise ParameterError("votes must hold at least one row, got none.")
    flags.check_out()
    price, notes = flags.price(noise, counts.size)
    warn_of_weak(price.epsilon, price.delta, unit=price.neighbours.unit)
    rng = secure() if flags.seed is None else simulated(flags.seed, "vote")
    digest = hashlib.sha256(noise.to_json() + f" {counts.size} queries".encode()).digest()
    # In a folder the server pays: whoever counts the votes is trusted with them.
    with charged(flags.ledger or (), price, kind="vote", plan=digest, local=False) as pay:
        labels = noise.release_counts(counts, rng)
        with pay():
            np.save(flags.out, labels.astype(np.uint8))
            if flags.json:
                print_json(release_facts(noise, price, notes, out=flags.out, queries=counts.size))
            else:
                show_release(noise, price, notes, out=flags.out, queries=counts.size)


@dataclass(frozen=True, kw_only=True)
class PlanFlags(Question):
    """How much is published together."""

    queries: Annotated[int, typer.Option(help="Number of bits that will be published.")]
    m: Annotated[
        float | None,
        typer.Option(
            help="Number of votes that a published bit may cost as much as.", show_default="3, or all"
        ),
    ] = None
    delta: TotalDelta = None
    json: JsonFlag = False


@app.command()
@takes(PlanFlags)
def plan(flags: PlanFlags) -> None:
    """Rank the designs by expected error, with the price of all queries for every kind of teachers."""
    from tacit.cli.vote.price import totals
    from tacit.randomness import simulated
    from tacit.voting import plan_designs

    check_count("teachers", flags.teachers)
    queries = check_count("queries", flags.queries, high=10**7)
    most = flags.teachers if flags.affected is None else flags.affected
    setting = flags.setting(min(_ALLOWANCE, most) if flags.m is None else flags.m)
    belief, objective = flags.belief()
    with progress("designing"):
        # No privacy rests on these draws: a public seed makes the answer repeatable.
        found = plan_designs(setting, objective, prior=belief, draws=DRAWS, rng=simulated(0, "vote-plan"))
    with progress("pricing", total=len(found)) as show:
        prices = []
        for done, one in enumerate(found):
            show(done, note=one.name)
            prices.append(totals(one.noise, queries, flags.delta))
    if flags.json:
        print_json(plan_facts(setting, queries, flags.prior, found, prices))
    else:
        show_plan(setting, queries, flags.prior, found, prices)


@app.command()
def plot(
    artefact: Artefact,
    out: Annotated[Path, typer.Option(help="Picture file to write, such as gamma.png.")],
    json: JsonFlag = False,
) -> None:
    """Draw a noise function beside the other designs of its setting, and the errors that they make."""
    from tacit.cli.vote.plot import draw_noise
    from tacit.voting import plan_designs

    check_picture(out, name="out")
    noise = read_design(artefact)
    with progress("designing"):
        others = plan_designs(noise.setting)
    draw_noise(out, noise, {one.name: one.noise for one in others})
    if json:
        print_json({"version": VERSION, "out": out, "designs": [one.name for one in others]})
    else:
        print_text(f"Written to {out}")


def _ballots(path: Path) -> IntArray:
    """Read an array of votes; no vote is quoted."""
    import numpy as np

    if not path.is_file():
        raise ParameterError(f"votes must be a file that exists, got {str(path)!r}.")
    if path.suffix != ".npy":
        raise ParameterError(f"votes must be a .npy array, as numpy.save writes it, got {str(path)!r}.")
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, MemoryError) as error:
        raise ParameterError(f"votes must be an array as numpy.save writes it, {path} is not one.") from error
    if not isinstance(found, np.ndarray):
        raise ParameterError(f"votes must be one array (.npy), {path} holds several.")
    return found
