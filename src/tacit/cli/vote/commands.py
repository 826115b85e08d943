"""`tacit vote`: release a private majority of teachers; design, check and compare its noise functions."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tacit.cli.account.options import neighbours_named
from tacit.cli.files import check_file, check_picture
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
from tacit.errors import ParameterError, VerificationError, check_choice, check_count

if TYPE_CHECKING:
    from tacit.numerics import IntArray
    from tacit.voting import DesignObjective, NoiseFunction, Prior, Setting

__all__ = ["app"]

_PRIORS: Final = ("consensus", "uniform", "polarised")
_DRAWS: Final = 10_000
_ALLOWANCE: Final = 3.0
_CONSENSUS: Final = 0.75

Teachers = Annotated[int, typer.Option(help="Number of teachers, each with one private bit per query.")]
Epsilon = Annotated[float, typer.Option(help="Epsilon of one vote of one teacher.")]
Allowance = Annotated[
    float, typer.Option(help="Number of votes that the published bit may cost as much as, from 1 to all.")
]
TeacherDelta = Annotated[float, typer.Option(help="Delta of one vote of one teacher; 0: pure privacy.")]
TargetDelta = Annotated[
    float | None, typer.Option(help="Delta of the published bit; default: 1 - (1 - delta)^m.")
]
Affected = Annotated[
    int | None,
    typer.Option(help="Most teachers that one record may reach, chosen without looking at it; default: all."),
]
Tie = Annotated[str | None, typer.Option(help="What an even number of teachers publishes at a tie: coin.")]
PriorName = Annotated[
    str,
    typer.Option(
        help="What is believed of the chances of a vote for 1: consensus (all teachers lean to one side), "
        "uniform on [0, 1], or polarised (near 0 or 1), each teacher by itself. Privacy never rests on it."
    ),
]
Mean = Annotated[
    float, typer.Option(help="Chance that a teacher votes with its side, in (1/2, 1] (consensus).")
]
Artefact = Annotated[Path, typer.Argument(help="A noise function, as `tacit vote design --out` writes it.")]

app = typer.Typer(
    help="Release a private majority of teachers; design and check its noise.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Release a private majority of teachers; design and check its noise."""


@app.command("design")
def design_one(
    teachers: Teachers,
    epsilon: Epsilon,
    m: Allowance,
    delta_teacher: TeacherDelta = 0.0,
    target_delta: TargetDelta = None,
    ties: Tie = None,
    affected: Affected = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="A design that `tacit vote plan` lists; default: optimal-monotone, the best that never "
            "falls towards unanimity. optimal, or optimized: the best of all, which may turn a unanimous "
            "vote."
        ),
    ] = None,
    prior: PriorName = "consensus",
    mean: Mean = _CONSENSUS,
    out: Annotated[Path | None, typer.Option(help="File to write the noise function into.")] = None,
    json: JsonFlag = False,
) -> None:
    """Design a noise function, with a certificate of its privacy."""
    from tacit.privacy.certified import MOST_TEACHERS
    from tacit.voting import DEFAULT_DESIGN, DESIGNS, design

    method = DEFAULT_DESIGN if method is None else method
    check_choice("method", method, ("optimized", *DESIGNS))
    name = "optimal" if method == "optimized" else method
    setting = _setting(teachers, epsilon, m, delta_teacher, target_delta, ties, affected)
    if name == "optimal" and not setting.voters.scannable:
        raise ParameterError(
            f"method {method!r} is for up to {MOST_TEACHERS} teachers with delta-teacher > 0, got "
            f"{teachers}; use 'optimal-monotone'."
        )
    _, objective = _belief(prior, mean, teachers)
    if out is not None:
        check_file("out", out)
    noise = design(setting, name, objective)
    if out is not None:
        out.write_bytes(noise.to_json())
    facts = {**design_facts(noise), "out": out}
    if json:
        print_json(facts)
    else:
        show_design(noise, f"Written to {out}" if out is not None else "")


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

    noise = _read(artefact)
    found = voting.certify(noise.gamma, noise.setting, exact=exact or noise.certificate.exact)
    if json:
        print_json({**design_facts(noise), "delta_required": found.delta_required, "slack": found.slack})
    else:
        show_design(noise, "The certificate holds.")


@app.command()
def release(
    artefact: Artefact,
    votes: Annotated[
        Path, typer.Option(help="A .npy array of 0 and 1: one row per query, one column per teacher.")
    ],
    out: Annotated[Path, typer.Option(help="File for the published bits, as .npy.")],
    teachers_are: Annotated[
        str | None,
        typer.Option(
            help="fresh (every vote draws new randomness) or fixed (models trained once). Default: a price "
            "that holds for both."
        ),
    ] = None,
    shards: Annotated[
        str,
        typer.Option(
            help="shared (teachers may see the same records) or disjoint (each record reaches one teacher, "
            "chosen without looking at it)."
        ),
    ] = "shared",
    alone: Annotated[
        bool,
        typer.Option(
            "--alone",
            help="These teachers answer this one query and nothing else, ever: then fixed teachers, too, "
            "cost no more than the certificate.",
        ),
    ] = False,
    delta: Annotated[
        float | None, typer.Option(help="Delta of all bits together; default: the sum of the parts' deltas.")
    ] = None,
    neighbours: Annotated[
        str,
        typer.Option(
            help="Neighbours under which the teachers are private: replace-one, add-remove or zero-out."
        ),
    ] = "replace-one",
    ledger: Annotated[
        list[Path] | None,
        typer.Option(
            help="Ledger file that pays, or a folder: then its server and its data set pay. May be repeated: "
            "all of them pay, or none. Not for teachers whose training it has paid for."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a simulation, which protects nobody.")] = None,
    json: JsonFlag = False,
) -> None:
    """Publish one noisy majority for each row of votes.

    With --json the output is a statement, which `tacit account verify` accepts. Whoever runs this sees all
    votes: the guarantee is for those who see the published bits.
    """
    import numpy as np

    from tacit.cli.vote.price import price_of
    from tacit.randomness import secure, simulated
    from tacit.voting import ballot_counts

    if seed is not None and ledger:
        raise ParameterError("--ledger is for bits that leave; with --seed they are a simulation.")
    if alone and ledger:
        raise ParameterError(
            "--alone cannot go with --ledger, which adds up prices: those of single answers of fixed "
            "teachers do not add up."
        )
    if alone and teachers_are == "fresh":
        raise ParameterError("--alone is for fixed teachers: answers of fresh ones add up as they are.")
    noise = _read(artefact)
    ballots = _ballots(votes)
    counts = ballot_counts(ballots, noise.setting.teachers)
    if not counts.size:
        raise ParameterError("votes must hold at least one row, got none.")
    check_file("out", out)
    if out.suffix != ".npy":
        raise ParameterError(f"out must be a file that ends with .npy, got {str(out)!r}.")
    price, notes = price_of(
        noise,
        queries=counts.size,
        delta=delta,
        teachers_are=teachers_are,
        shards=shards,
        alone=alone,
        neighbours=neighbours_named(neighbours),
        simulated=seed is not None,
        counted=bool(ledger),
    )
    rng = secure() if seed is None else simulated(seed, "vote")
    digest = hashlib.sha256(noise.to_json() + f" {counts.size} queries".encode()).digest()
    # In a folder the server pays: whoever counts the votes is trusted with them.
    with charged(ledger or (), price, kind="vote", plan=digest, local=False) as pay:
        labels = noise.release_counts(counts, rng)
        with pay():
            np.save(out, labels.astype(np.uint8))
            if json:
                print_json(release_facts(noise, price, notes, out=out, queries=counts.size))
            else:
                show_release(noise, price, notes, out=out, queries=counts.size)


@app.command()
def plan(
    teachers: Teachers,
    epsilon: Epsilon,
    queries: Annotated[int, typer.Option(help="Number of bits that will be published.")],
    m: Annotated[
        float | None,
        typer.Option(help="Number of votes that a published bit may cost as much as; default: 3, or all."),
    ] = None,
    delta_teacher: TeacherDelta = 0.0,
    target_delta: TargetDelta = None,
    ties: Tie = None,
    affected: Affected = None,
    delta: Annotated[
        float | None, typer.Option(help="Delta of all bits together; default: the sum of the parts' deltas.")
    ] = None,
    prior: PriorName = "consensus",
    mean: Mean = _CONSENSUS,
    json: JsonFlag = False,
) -> None:
    """Rank the designs by expected error, with the price of all queries for every kind of teachers."""
    from tacit.cli.vote.price import totals
    from tacit.randomness import simulated
    from tacit.voting import plan_designs

    check_count("teachers", teachers)
    check_count("queries", queries, high=10**7)
    most = teachers if affected is None else affected
    setting = _setting(
        teachers,
        epsilon,
        min(_ALLOWANCE, most) if m is None else m,
        delta_teacher,
        target_delta,
        ties,
        affected,
    )
    belief, objective = _belief(prior, mean, teachers)
    with progress("designing"):
        # No privacy rests on these draws: a public seed makes the answer repeatable.
        found = plan_designs(setting, objective, prior=belief, draws=_DRAWS, rng=simulated(0, "vote-plan"))
    with progress("pricing", total=len(found)) as show:
        prices = []
        for done, one in enumerate(found):
            show(done, note=one.name)
            prices.append(totals(one.noise, queries, delta))
    if json:
        print_json(plan_facts(setting, queries, prior, found, prices))
    else:
        show_plan(setting, queries, prior, found, prices)


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
    noise = _read(artefact)
    with progress("designing"):
        others = plan_designs(noise.setting)
    draw_noise(out, noise, {one.name: one.noise for one in others})
    if json:
        print_json({"version": VERSION, "out": out, "designs": [one.name for one in others]})
    else:
        print_text(f"Written to {out}")


def _setting(
    teachers: int,
    epsilon: float,
    m: float,
    delta: float,
    target_delta: float | None,
    ties: str | None,
    affected: int | None,
) -> Setting:
    """Return the question, after checks that name the options."""
    from tacit.voting import Ties, allowance

    if ties is not None:
        check_choice("ties", ties, [tie.value for tie in Ties])
    check_count("teachers", teachers)
    if teachers % 2 == 0 and ties is None:
        raise ParameterError(
            f"teachers must be odd, got {teachers}: an even number can be tied. Add a teacher, or give "
            "--ties coin to publish a fair coin then."
        )
    return allowance(
        teachers,
        epsilon,
        m,
        delta=delta,
        target_delta=target_delta,
        ties=None if ties is None else Ties(ties),
        affected=affected,
    )


def _belief(name: str, mean: float, teachers: int) -> tuple[Prior, DesignObjective]:
    """Return a prior by name, and the objective that is right for it."""
    from tacit.randomness import simulated
    from tacit.voting import expected_error, one_sided, polarised_prior, uniform_prior

    check_choice("prior", name, _PRIORS)
    if name != "consensus" and mean != _CONSENSUS:
        raise ParameterError(f"mean is of the prior 'consensus', got it with {name!r}.")
    if name == "consensus":
        objective = one_sided(teachers, mean)
        # Spread as far as chances up to 1 allow.
        return uniform_prior(2 * mean - 1.0, 1.0), objective
    prior = uniform_prior() if name == "uniform" else polarised_prior()
    return prior, expected_error(teachers, prior, draws=_DRAWS, rng=simulated(0, "vote-objective"))


def _read(path: Path) -> NoiseFunction:
    """Read an artefact, which certifies it again."""
    from tacit.privacy.strict_json import read_start
    from tacit.voting import NoiseFunction

    if not path.is_file():
        raise ParameterError(f"artefact must be a file that exists, got {str(path)!r}.")
    try:
        return NoiseFunction.from_json(read_start(path))
    except VerificationError as error:
        raise VerificationError(f"the artefact {path} is refused: {error}") from error


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
