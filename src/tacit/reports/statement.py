"""The statement of a run: every guarantee with its event, so that anybody can compute the price again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from msgspec import UNSET

from tacit.errors import printable
from tacit.jobs import JobResult, TrainedModel, TrustResult
from tacit.jobs.trusts import why_not_shuffled, why_not_summed
from tacit.means import MomentBound
from tacit.privacy import Guarantee
from tacit.privacy.guarantee import factor_of
from tacit.privacy.run_clauses import OPEN, SCORED, SIMULATED, compared_note
from tacit.privacy.signed import TRUSTED_SIGNER, ClaimSignature
from tacit.privacy.statement import About, DataFacts, OpenModel, Statement, digest_of
from tacit.reports.inside import hidden_words, offers_exact_noise

__all__ = [
    "and_others",
    "build_statement",
    "claims",
    "guarantees_about",
    "guess_bound",
    "left_out",
    "model_words",
    "notes_of",
    "notes_on_moment",
    "odds",
    "plain_words",
    "released",
    "units_of_all",
    "units_per_silo",
    "who_sees_one",
]

_UP = 1 + 1e-9  # 1 / 1e-5 falls short of 100,000 by rounding alone


def released(result: JobResult) -> TrustResult:
    """Return the result whose model is meant to be handed out: the one that trusts least."""
    order = {"local": 0, "aggregate": 1, "shuffle": 2, "central": 3, "none": 4}
    return min(result.results, key=lambda r: order[r.trust])


def claims(result: TrustResult) -> bool:
    """Return whether any privacy is claimed."""
    return math.isfinite(result.guarantee.epsilon)


def units_per_silo(result: JobResult) -> list[int | None]:
    """Return the number of protected units that each silo trains on, None where that number is not public.

    Under zero-out whoever hides a size fills its silo up with blank rows, and the number of rows is nobody's
    business either.
    """
    hidden = result.job.neighbours == "zero-out" and not result.facts.public
    return [None if hidden else size for size in result.facts.sizes]


def units_of_all(sizes: list[int | None]) -> int | None:
    """Return the number of units of all silos, None where one is not public."""
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def guess_bound(guarantee: Guarantee) -> float:
    """Return how often the best guess between two neighbouring data sets can be right, at even odds.

    The error probabilities a, b of a guess satisfy a + e^epsilon b >= 1 - delta, and the same with a and b
    exchanged (Kairouz, Oh and Viswanath 2015, arXiv:1311.0776, section 2). Their sum gives
    (a + b) / 2 >= (1 - delta) / (1 + e^epsilon).
    """
    return (1 + guarantee.delta * math.exp(-guarantee.epsilon)) / (1 + math.exp(-guarantee.epsilon))


def plain_words(result: TrustResult) -> str:
    """Say the weakest guarantee of a result in one sentence without symbols.

    Args:
        result: What one trust model gave.

    Returns:
        One sentence; numbers are rounded to the side of less privacy.
    """
    weakest = result.guarantee
    if not claims(result):
        return OPEN
    who = {
        "local": "anybody outside a silo sees of this training, the server and all other silos included,",
        "aggregate": "anybody sees of this training who sees no message but only sums of those of all silos, "
        f"the server {and_others(result)}included,",
        "shuffle": "anybody sees of this training who sees messages only after they are shuffled, the server "
        "and all other silos included,",
        "central": "anybody but the trusted server sees of this training",
    }[result.trust]
    mixed = " in any one silo"
    where = {"local": " in that silo", "aggregate": mixed, "shuffle": mixed}.get(result.trust, "")
    slack = f", up to a probability of {odds(weakest.delta)}" if weakest.delta > 0 else ""
    return (
        f"Whatever {who} and whatever they do with it, {weakest.neighbours}{where} changes the "
        f"probability of any conclusion by at most a factor of {factor_of(weakest.epsilon)}{slack}."
        f"{_alone_in_words(result)}"
    )


def and_others(result: TrustResult) -> str:
    """Return how many silos may be among those who see sums, as it stands behind the server."""
    colluding = result.trained.plan.colluding
    return "" if not colluding else f"and up to {colluding} other silo{'s' if colluding > 1 else ''} "


def _alone_in_words(result: TrustResult) -> str:
    """Say what is promised of one message alone, as a sentence to follow; nothing where all are seen so."""
    alone = result.guarantee_alone
    if alone is None:
        return ""
    who = who_sees_one(result.trust)
    if not math.isfinite(alone.epsilon):
        return f" Of {who}, nothing is promised."
    return f" For {who}, that factor is {factor_of(alone.epsilon)}."


def who_sees_one(trust: str) -> str:
    """Return who sees messages one by one under a trust model that hides them among others."""
    if trust == "shuffle":
        return "whoever sees the messages of a silo before they are shuffled"
    return "the server and all other silos together, who see what one silo sends"


def left_out(result: JobResult) -> dict[str, str]:
    """Return the trust models that a comparison of all is without, of those that hide a silo among others.

    Args:
        result: A finished job.

    Returns:
        Why, as a clause, by trust model.
    """
    job, ran = result.job, {one.trust for one in result.results}
    reasons = {
        "aggregate": why_not_summed(job) or "no two honest silos are left to hide each other",
        "shuffle": why_not_shuffled(job) or "one silo alone has nothing to shuffle",
    }
    return {trust: why for trust, why in reasons.items() if job.trust == "all" and trust not in ran}


def notes_of(result: JobResult) -> list[str]:
    """Say what must be known besides the guarantees; facts about the run, no private data.

    Args:
        result: A finished job.

    Returns:
        Whole sentences.
    """
    private = [r for r in result.results if claims(r)]
    # What a guarantee assumes is said with the guarantee; only facts about public data remain.
    notes = [_sentence(note) for note in result.facts.notes] if result.facts.public else []
    if not result.loss.is_default:
        notes.append(f"The loss is {result.loss.words}.")
    notes += notes_on_moment(result.job.stated, result.facts.assumed)
    if any(g.simulated for r in private for g in r.guarantees):
        notes.append(SIMULATED)
    if result.job.leaves_out_central:
        notes.append(
            f"No trusted server was compared: {released(result).trained.algorithm!r} takes steps inside "
            "silos, which no server sees to add noise to."
        )
    whom = {"aggregate": "trust in a sum", "shuffle": "shuffler"}
    notes += [f"No {whom[trust]} was compared: {why}." for trust, why in left_out(result).items()]
    if len(result.results) > 1:
        notes.append(compared_note(released(result).trust))
    if not result.facts.public:
        notes.append(SCORED)
    plans = [r.trained.plan for r in private if not all(g.simulated for g in r.guarantees)]
    continuous = [plan for plan in plans if not plan.exact]
    if continuous:
        exact = "noise 'discrete-gaussian' is exact"
        if not all(map(offers_exact_noise, continuous)):
            seen = " whose iterates are seen" if all(map(hidden_words, continuous)) else ""
            exact = f"exact noise goes with {'' if seen else 'other '}algorithms{seen}"
        notes.append(
            "The noise is continuous and computed in floating point, whose rounding the guarantee does not "
            f"cover; {exact}."
        )
    return notes


def guarantees_about(result: JobResult) -> tuple[tuple[Guarantee, ...], tuple[About, ...]]:
    """Return the guarantees of a result, and whom each is about.

    Args:
        result: A finished job.

    Returns:
        One guarantee per silo and trust model that claims something, under shuffle and aggregate trust one
        for each of two observers, and in the same order which trust model and silo each is about (silo None:
        all of them together).
    """
    found: list[tuple[Guarantee, About]] = []
    sizes, names = units_per_silo(result), result.facts.silo_names
    for one in (r for r in result.results if claims(r)):
        whole = len(one.guarantees) != len(names) or one.trust == "central"
        for alone, guarantees in ((UNSET, one.guarantees), (True, one.alone)):
            for k, guarantee in enumerate(guarantees):
                silo, units = (None, units_of_all(sizes)) if whole else (names[k], sizes[k])
                whom = About(trust=one.trust, silo=silo, units=units, alone=alone)
                found.append((guarantee, whom))
    return tuple(claim for claim, _ in found), tuple(about for _, about in found)


def build_statement(
    result: JobResult,
    *,
    run: str,
    created: datetime,
    files: Iterable[Path] = (),
    signatures: Sequence[ClaimSignature] = (),
) -> Statement:
    """Build what `tacit account verify` reads; it holds no score and nothing else of private data.

    Args:
        result: A finished job.
        run: Name of the run.
        created: When, in UTC.
        files: Files beside the statement, whose digests it holds: the model, the plan, the columns.
        signatures: Of the parties of a deployed federation, about `run` and the plan among the files.

    Returns:
        The statement, with `guarantees_about` the result.
    """
    guarantees, about = guarantees_about(result)
    sizes = units_per_silo(result)
    # Whoever promises nothing has nothing to stand behind.
    signers = {TRUSTED_SIGNER if one.silo is None else one.silo for one in about}
    return Statement(
        kind="train",
        run=printable(run),
        created=created.isoformat(timespec="seconds"),
        tacit=version("tacit"),
        released=released(result).trust,
        algorithm=released(result).trained.algorithm,
        model=printable(model_words(released(result).model)),
        guarantees=guarantees,
        about=about,
        not_private=tuple(
            OpenModel(trust=one.trust, sentence=plain_words(one)) for one in result.results if not claims(one)
        ),
        data=DataFacts(
            name=printable(result.job.title),
            public=result.facts.public,
            silos=len(sizes),
            unit=result.facts.unit,
            sizes=dict(zip(result.facts.silo_names, sizes, strict=True)),
            read_off=tuple(map(printable, result.facts.read_off)),
            sample=result.facts.sample is not None,
            trained_with={
                one.trust: one.trained.trained_with for one in result.results if one.trained.trained_with
            },
        ),
        notes=tuple(map(printable, notes_of(result))),
        digests={file.name: digest_of(file) for file in files},
        signatures=tuple(one for one in signatures if one.signer in signers),
    )


def model_words(model: TrainedModel) -> str:
    """Return which model was trained, and how many parameters it has."""
    size = model.fitted.w.size
    return f"{model.model}, {size:,} parameter{'' if size == 1 else 's'}"


def notes_on_moment(moment: MomentBound | None, numbers: Sequence[str]) -> list[str]:
    """Say what a run with a stated moment does not need, and which columns nobody has described.

    Args:
        moment: What is stated; None where columns have bounds.
        numbers: Names of columns without a description.

    Returns:
        Whole sentences; none without a moment.
    """
    if moment is None:
        return []
    said = [
        "Features and the label are in their own units and have no bounds. Instead, a moment of gradients of "
        f"order {moment.order:g} is stated to be at most {moment.value:g}: if it is not, the model is worse, "
        "and the guarantee the same."
    ]
    if numbers:
        said.append(
            f"Columns that nothing describes are numbers ({', '.join(numbers)}): a record with a cell of "
            "theirs that is none counts as zero."
        )
    return said


def _sentence(note: str) -> str:
    """Return a note as a sentence of its own."""
    return note[:1].upper() + note[1:] + ("" if note.endswith(".") else ".")


def odds(delta: float) -> str:
    """Return a small probability as "1 in N", rounded towards the larger probability; "nothing" for 0."""
    if delta == 0:
        return "nothing"
    return f"1 in {math.floor(_UP / delta):,}" if delta <= 0.1 else f"{delta:.3g}"
