"""What arithmetic can tell of a statement without a price: parts that contradict each other are refused.

A statement is read from elsewhere: all of this costs next to nothing, and comes before anything is priced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from tacit.errors import ParameterError, VerificationError
from tacit.privacy.arrivals import HONEST
from tacit.privacy.binomial import BinomialAlone
from tacit.privacy.events import DiscreteGaussianSum, Event, Leaf, NonPrivate, parts_of
from tacit.privacy.guarantee import CONTINUOUS, Guarantee
from tacit.privacy.neighbours import Part
from tacit.privacy.run_clauses import (
    OPEN,
    SCORED,
    SIMULATED,
    clauses_of_run,
    clauses_of_start,
    compared_note,
    is_about_public,
    is_about_reading,
    is_about_start,
)
from tacit.privacy.statement_counts import check_counts
from tacit.privacy.statement_sums import check_sums, leaves_of
from tacit.privacy.work import VERIFY_WORK, work_of

if TYPE_CHECKING:
    from tacit.privacy.statement import About, DataFacts, Statement

__all__ = ["check_answer", "check_noise", "check_run", "check_work_of_all", "which"]

_TRUSTS: Final = ("local", "aggregate", "shuffle", "central", "none")
_ALONE: Final = {"shuffle": "before they are shuffled", "aggregate": "who see the message of"}
"""What the observer of messages with their senders is told by, whom no shuffler or sum protects from."""


def which(number: int, count: int) -> str:
    """Say which of several guarantees an error is about."""
    return f"guarantee {number} of {count}: " if count > 1 else ""


def check_work_of_all(events: Iterable[Event]) -> None:
    """Refuse events that take too much work together: a limit for each does not bound ten thousand of them.

    Raises:
        VerificationError: More than `VERIFY_WORK` in all, or one that is nested too deep.
    """
    left = VERIFY_WORK
    for event in events:
        try:
            left -= work_of(event, most=left)
        except ParameterError as error:
            raise VerificationError(
                f"its prices cannot be computed within {VERIFY_WORK:.3g} numbers in all, which is what one "
                f"statement may take: {error}"
            ) from error


def check_noise(found: Statement) -> None:
    """Refuse noise of real numbers, drawn by a computer, without a word on floating point."""
    for number, claim in enumerate(found.guarantees, start=1):
        if not claim.simulated and _is_continuous(claim.event) and CONTINUOUS not in claim.assumptions:
            where = which(number, len(found.guarantees))
            raise VerificationError(f"{where}the statement leaves out what its price rests on: {CONTINUOUS}.")


def _is_continuous(event: Event) -> bool:
    """Return whether an event holds a law of real numbers that a float sampler only comes close to."""
    if isinstance(event, Leaf):
        return event.continuous
    return any(map(_is_continuous, parts_of(event)))


def check_run(run: Statement) -> None:
    """Refuse a run whose parts contradict each other, such as a silo of the data without a guarantee."""
    data = run.data
    if data is None or run.released is None or not run.model:
        raise VerificationError("the statement of a run must have the fields `data`, `released` and `model`.")
    if data.silos != len(data.sizes):
        raise VerificationError(f"data names {data.silos} silos and the sizes of {len(data.sizes)}.")
    open_ones = [one.trust for one in run.not_private]
    trusts = list(dict.fromkeys(about.trust for about in run.about))
    if len({*trusts, *open_ones}) != len(trusts) + len(open_ones) or not trusts + open_ones:
        raise VerificationError("every trust model must be either among the guarantees or in `not_private`.")
    if run.released not in trusts + open_ones:
        raise VerificationError(
            f"the released model {run.released!r} is in no guarantee and not in `not_private`."
        )
    for about in run.about:
        if about.trust not in _TRUSTS[:-1]:
            allowed = ", ".join(map(repr, _TRUSTS[:-1]))
            raise VerificationError(f"a guarantee must be about trust {allowed}, got {about.trust!r:.80}.")
        if about.trust == "central" and about.silo is not None:
            raise VerificationError(
                f"what a trusted server adds up is about all silos, got silo {about.silo!r:.80} under trust "
                "'central'."
            )
        if about.is_alone and about.trust not in _ALONE:
            raise VerificationError(f"nothing is mixed or added up under trust {about.trust!r:.80}.")
    if wrong := [trust for trust in open_ones if trust not in _TRUSTS]:
        raise VerificationError(f"not_private must be about {', '.join(_TRUSTS)}, got {wrong[0]!r:.80}.")
    for trust in trusts:
        for alone in (False, True) if trust in _ALONE else (False,):
            them = [one for one in run.about if one.trust == trust and one.is_alone is alone]
            _check_silos(f"{trust}, one message alone" if alone else trust, them, data.sizes)
    _check_words(run, data)
    for number, (claim, about) in enumerate(zip(run.guarantees, run.about, strict=True), start=1):
        where = which(number, len(run.guarantees))
        if claim.neighbours.unit is not data.unit:
            raise VerificationError(
                f"{where}it is about {claim.neighbours}, the data about a {data.unit.value}."
            )
        forms = (repr(about.silo), f"'{about.silo}'", f'"{about.silo}"')
        # What all silos are mixed into shows each of them to the same observer.
        mixed = about.trust == "shuffle" and not about.is_alone
        named = about.silo is None or mixed or any(form in claim.observer for form in forms)
        if about.trust in _ALONE and (_ALONE[about.trust] in claim.observer) is not about.is_alone:
            raise VerificationError(
                f"{where}its observer is not the one it is said to be about: {claim.observer!r:.200}."
            )
        if not named:
            raise VerificationError(
                f"{where}its observer does not name silo {about.silo!r}, whom it is about."
            )
        if not all(_is_seen_by(leaf, about) for leaf in leaves_of(claim.event)):
            raise VerificationError(
                f"{where}its event is not what an observer under {about.observed!r:.80} sees."
            )
        try:
            check_counts(claim.event, about, data)
        except VerificationError as error:
            raise VerificationError(f"{where}{error}") from error
    _check_sums(run, data)


def _check_sums(run: Statement, data: DataFacts) -> None:
    """Refuse guarantees under trust in a sum that are not about the same sums."""
    claims: tuple[dict[str, Guarantee], dict[str, Guarantee]] = ({}, {})
    for claim, about in zip(run.guarantees, run.about, strict=True):
        if about.trust == "aggregate":
            if about.silo is None:
                raise VerificationError("a guarantee under trust 'aggregate' is about one silo, got none.")
            claims[about.is_alone][about.silo] = claim
    if claims[0]:
        check_sums(*claims, data.silos)


def _is_seen_by(leaf: Event, about: About) -> bool:
    """Return whether a release may be what the observer of a guarantee sees: batches, sums, or others."""
    if isinstance(leaf, NonPrivate):
        return True
    shuffled = about.trust == "shuffle" and not about.is_alone
    summed = about.trust == "aggregate" and not about.is_alone
    return (
        (HONEST in leaf.assumptions) is shuffled
        and isinstance(leaf, DiscreteGaussianSum) is summed
        and (about.is_alone or not isinstance(leaf, BinomialAlone))
    )


def _check_words(run: Statement, data: DataFacts) -> None:
    """Refuse a run without a clause or a note that follows from its facts, and facts that cannot be."""
    described = "columns.toml" in run.digests
    if data.public and (data.read_off or described or data.sample or data.trained_with):
        raise VerificationError("it says that the data are public, and what is private of them.")
    if not data.public and not data.read_off and not described:
        raise VerificationError(
            "it names no column description in its digests, and no columns whose bounds were read off the "
            "data: one of them was cut out."
        )
    trusts = {*(about.trust for about in run.about), *(one.trust for one in run.not_private)}
    if wrong := [trust for trust, count in data.trained_with.items() if trust not in trusts or count < 1]:
        raise VerificationError(
            f"trained_with must name numbers of public records, at least 1, by trust models of the run, got "
            f"{wrong[0]!r:.80}: {data.trained_with[wrong[0]]}."
        )
    for number, (claim, about) in enumerate(zip(run.guarantees, run.about, strict=True), start=1):
        where = which(number, len(run.guarantees))
        said = clauses_of_run(
            claim.neighbours,
            public=data.public,
            read_off=data.read_off,
            sample=data.sample,
            trained_with=data.trained_with.get(about.trust, 0),
            sensitive=data.sensitive,
        )
        said = (*said, *clauses_of_start(run.model))
        if (claim.neighbours.part is Part.SENSITIVE) is not bool(data.sensitive):
            raise VerificationError(
                f"{where}it is about {claim.neighbours}, and data name "
                f"{', '.join(data.sensitive) if data.sensitive else 'none of these'!s:.80}."
            )
        for clause in said:
            if clause not in claim.assumptions:
                raise VerificationError(f"{where}the statement leaves out what its facts say: {clause}.")
        for clause in claim.assumptions:
            about_facts = is_about_public(clause) or is_about_reading(clause) or is_about_start(clause)
            if about_facts and clause not in said:
                raise VerificationError(f"{where}the statement says what its facts do not: {clause}.")
    if any(one.sentence != OPEN for one in run.not_private):
        raise VerificationError(f"of what was computed without privacy it must say: {OPEN}")
    needed = [compared_note(str(run.released))] if len(trusts) > 1 else []
    needed += [] if data.public else [SCORED]
    needed += [SIMULATED] if any(claim.simulated for claim in run.guarantees) else []
    for note in needed:
        if note not in run.notes:
            raise VerificationError(f"the statement leaves out a note that its facts ask for: {note}")
    if SIMULATED in run.notes and SIMULATED not in needed:
        raise VerificationError(
            f"no guarantee says that it is simulated, and a note of the statement does: {SIMULATED}"
        )


def _check_silos(trust: str, about: list[About], sizes: Mapping[str, int | None]) -> None:
    """Refuse guarantees of one trust model that leave a silo out, or give it another size."""
    known = [size for size in sizes.values() if size is not None]
    whole = {None: sum(known) if len(known) == len(sizes) else None}
    stated = {one.silo: one.units for one in about}
    if len(stated) == len(about) and stated in (whole, dict(sizes)):
        return
    left_out = sorted(set(sizes) - {one.silo for one in about if one.silo is not None})
    what = f"silo {left_out[0]!r} is missing" if left_out else "a silo comes twice, or with another size"
    raise VerificationError(
        f"the guarantees of trust {trust!r} must be about all {len(sizes)} silos of the data: {what}."
    )


def check_answer(found: Statement) -> None:
    """Refuse facts at the top that are not those of the first guarantee."""
    first, answer = found.guarantees[0], found.answer
    about = found.about[0] if found.about else None
    wanted: dict[str, object] = {
        "epsilon": first.epsilon if math.isfinite(first.epsilon) else None,
        "delta": first.delta,
        "method": first.method,
        "simulated": first.simulated,
        "guarantee": str(first),
        "neighbours": first.neighbours.relation.value,
    }
    if found.kind == "vote release":
        del wanted["method"]  # there it is that of the design
    if about is not None:
        wanted |= {"n": about.units, "trust": about.trust}
    for name, value in wanted.items():
        stated = answer.get(name, value)
        if stated != value or isinstance(stated, bool) != isinstance(value, bool):
            raise VerificationError(
                f"it says {name} {stated!r:.80} at the top, but {value!r:.80} in its guarantee: one of them "
                "was changed."
            )
