"""What arithmetic can tell of the facts that runs, means and votes state, and of who is said to look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.account import bandits, mix
from tacit.cli.account.drawn_reports import OBSERVER as REPORTS
from tacit.cli.account.frequencies import observers as frequency_observers
from tacit.cli.account.frequencies import trusts as frequency_trusts
from tacit.cli.account.hidden import OBSERVERS as ITERATES
from tacit.cli.account.levels import level_observers
from tacit.cli.account.options import clauses_of
from tacit.cli.account.output import observer
from tacit.cli.account.shuffled import observers as shuffle_observers
from tacit.cli.account.tables import check_tables
from tacit.cli.account.tuned import OBSERVER as HALVING
from tacit.cli.mean import notes_on
from tacit.errors import VerificationError, check_count, check_finite, check_probability

if TYPE_CHECKING:
    from tacit.privacy import Event
    from tacit.privacy.statement import About, Statement

__all__ = ["check_alone", "check_bandit", "check_form", "check_means", "check_run_files", "check_votes"]

_FILES: Final = ("model.json", "plan.toml")
"""What the statement of every run names with a digest."""
_TRUSTED: Final = "everybody but the trusted server"
_MIXED: Final = "everybody who sees the shuffled batches, the server included,"


def check_form(found: Statement) -> None:
    """Refuse another number of guarantees than the command writes, other observers, or other trust models."""
    if found.kind == "train":
        _check_run_observers(found)
    elif found.kind != "guarantee":
        _check_answer_form(found)


def _check_answer_form(found: Statement) -> None:
    """Refuse guarantees of an answer that are not those of its command."""
    said = _observers(found)
    if len(found.guarantees) != len(said):
        raise VerificationError(
            f"a statement of kind {found.kind!r} holds {len(said)} guarantees, got {len(found.guarantees)}."
        )
    trusts = _trusts(found)
    if len(found.about) != len(trusts):
        raise VerificationError(
            f"a statement of kind {found.kind!r} says of {len(trusts)} guarantees whom they are about, got "
            f"{len(found.about)}."
        )
    for number, (about, trust) in enumerate(zip(found.about, trusts, strict=True)):
        if about.is_alone is not (trust == "aggregate" and number == 1):
            raise VerificationError(
                f"its guarantees are said to be about the observers {about.observed!r:.80}: one was changed."
            )
        if about.silo is not None or about.trust != trust:
            raise VerificationError(
                f"a statement of kind {found.kind!r} with these facts at the top is about all silos under "
                f"trust {trust!r}, got trust {about.trust!r:.80} and silo {about.silo!r:.80}."
            )
        if about.units != found.about[0].units:
            raise VerificationError(
                f"the guarantee about one message alone is said to be about {about.units} units, the answer "
                f"is of {found.about[0].units}."
            )
    for clause in clauses_of(found.answer):
        if clause not in found.guarantees[0].assumptions:
            raise VerificationError(f"the statement leaves out what its price rests on: {clause}.")
    for claim, observed in zip(found.guarantees, said, strict=True):
        if claim.observer != observed:
            raise VerificationError(
                f"by its facts at the top the observer is {observed!r}, got {claim.observer!r:.80}."
            )


def check_alone(found: Statement) -> None:
    """Refuse another price of one message alone than its local level."""
    from tacit.privacy import PureDP, neighbours_of

    batch, alone = found.guarantees
    message = PureDP(found.answer["local_epsilon"], neighbours_of(batch.event))
    if alone.event != message or alone.delta != 0:
        raise VerificationError(
            "the local epsilon at the top and the guarantee of one message are of different releases."
        )


def check_run_files(found: Statement) -> None:
    """Refuse the statement of a run that does not tell which model it is about, or calls a table public."""
    from tacit.data import names, prepared_names

    if found.data is not None and found.data.public and found.data.name not in names() + prepared_names():
        raise VerificationError(
            f"it says that the data are public, but {found.data.name!r:.80} is not a data set of tacit."
        )
    for name in _FILES if found.guarantees else _FILES[:1]:  # what claims nothing may have no plan
        if name not in found.digests:
            raise VerificationError(f"the statement of a run must name {name} in its digests.")


def check_means(found: Statement) -> None:
    """Refuse facts of means that are not numbers of the columns that the event holds."""
    from tacit.means.columns import clauses_of_means
    from tacit.privacy import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, TrustModel
    from tacit.privacy.statement import SUMMED

    answer, event = found.answer, found.guarantees[0].event
    trust = TrustModel(answer["trust"])
    summed = trust is TrustModel.AGGREGATE
    _check_all_there(found, without=frozenset() if summed else SUMMED)
    if not isinstance(event, DiscreteGaussianSum if summed else DiscreteGaussian | DiscreteLaplace):
        raise VerificationError("the event of means at the top must be discrete noise on their sum.")
    if summed:
        check_tables(found)
    check_count("n at the top", answer["n"])
    columns = answer["columns"]
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise VerificationError("columns at the top must be a list of names.")
    if len(set(columns)) != len(columns) or event.dim not in (None, len(columns)):
        raise VerificationError(
            f"columns at the top must be the {event.dim} different ones of the event, got {len(columns)}."
        )
    confidence = check_probability("confidence", answer["confidence"], low_open=True, high_open=True)
    neighbours = found.guarantees[0].neighbours
    if answer["unit"] != neighbours.unit or neighbours.unit not in ("record", "person"):
        raise VerificationError(
            "the unit at the top must be that of the guarantee, 'record' or 'person', got "
            f"{answer['unit']!r:.80}."
        )
    for alone, claim in zip((False, True), found.guarantees, strict=False):
        for clause in clauses_of_means(trust, neighbours, alone=alone):
            if clause not in claim.assumptions:
                raise VerificationError(f"the statement leaves out what its price rests on: {clause}.")
    for note in notes_on(answer["n"], confidence, answer["unit"]):
        if note not in found.notes:
            raise VerificationError(f"the statement leaves out a note that its facts ask for: {note}")
    for name in ("mean", "noise_std", "confidence_interval"):
        if not isinstance(answer[name], dict) or set(answer[name]) != set(columns):
            raise VerificationError(f"{name} at the top must hold one value for each column.")
    for name in columns:
        low, high = _pair(answer["confidence_interval"][name])
        mean, std = (
            check_finite("a mean at the top", answer[field][name]) for field in ("mean", "noise_std")
        )
        if not (low <= mean <= high and std > 0):
            raise VerificationError(
                f"at the top, the mean of {name!r:.80} must lie in its interval and its noise be above 0."
            )


def check_bandit(found: Statement) -> None:
    """Refuse a run of a bandit whose facts and guarantees are not those of one."""
    _check_all_there(found)
    bandits.check_run(found)


def check_votes(found: Statement) -> None:
    """Refuse facts of a release of votes that its event, its observer or its digest contradict."""
    from tacit.privacy import Certified

    answer = found.answer
    _check_all_there(found)
    queries, teachers = (check_count(f"{name} at the top", answer[name]) for name in ("queries", "teachers"))
    if not isinstance(answer["method"], str) or not isinstance(answer["out"], str):
        raise VerificationError("method and out at the top must be texts.")
    bits = re.split(r"[/\\]", answer["out"])[-1]
    if set(found.digests) != {bits}:
        raise VerificationError(f"the digests must name the bits, {bits!r:.80} at the top, and nothing else.")
    for part, times in _leaves(found.guarantees[0].event):
        if isinstance(part, Certified) and (part.teachers, times) != (teachers, queries):
            raise VerificationError(
                f"it says {queries} queries to {teachers} teachers at the top, but the event {times} to "
                f"{part.teachers}."
            )
        if times > teachers * queries:
            raise VerificationError(
                f"the event holds {times} votes, more than the {queries} queries to {teachers} teachers at "
                "the top."
            )


def _observers(found: Statement) -> tuple[str, ...]:
    """Return who looks, by the facts at the top, for every guarantee that the command writes."""
    from tacit.bandits.reward_privacy import observers_of as observers_of_bandit
    from tacit.means.columns import observer_of_means
    from tacit.privacy import TrustModel
    from tacit.voting.guarantee import observer_of_bits

    answer = found.answer
    match found.kind:
        case "mean":
            unit, trust = found.guarantees[0].neighbours.unit, TrustModel(answer["trust"])
            if trust is not TrustModel.AGGREGATE:
                return (observer_of_means(trust, unit),)
            colluding = check_count("colluding at the top", answer["colluding"], low=0)
            views = (False, True)
            return tuple(observer_of_means(trust, unit, colluding=colluding, alone=one) for one in views)
        case "frequencies" | "frequencies large" | "frequencies tables":
            return frequency_observers(found)
        case "frequencies levels":
            return level_observers(found)
        case "vote release":
            return (observer_of_bits(check_count("queries at the top", answer["queries"])),)
        case "bandit run":
            return observers_of_bandit(None if answer["trust"] == "none" else TrustModel(answer["trust"]))
        case "account epsilon" | "account subsample":
            return (observer(answer["rounds"]),)
        case "account shuffle":
            return shuffle_observers(answer["rounds"], answer["messages"])
        case "account reports":
            return (REPORTS,)
        case "account halving":
            return (HALVING,)
        case "account iterate":
            return (ITERATES[answer["release"]],)
        case "account compose":
            return (mix.OBSERVER,)
        case _:
            return (mix.OBSERVERS[answer["trust"]],)


def _trusts(found: Statement) -> tuple[str, ...]:
    """Return the trust model of every guarantee that the command says whom it is about."""
    match found.kind:
        case "mean" | "account calibrate":
            trust: str = found.answer["trust"]
            return (trust, trust) if found.kind == "mean" and trust == "aggregate" else (trust,)
        case "frequencies" | "frequencies large" | "frequencies tables":
            return frequency_trusts(found)
        case "frequencies levels":
            return ("local",) * len(found.guarantees)
        case "account shuffle":
            return ("shuffle", "local")
        case _:
            return ()


def _check_run_observers(run: Statement) -> None:
    """Refuse the trusted server among those who look, or outside of them, against what `about` says."""
    for claim, about in zip(run.guarantees, run.about, strict=True):
        if not _looks(claim.observer, about):
            raise VerificationError(
                f"it is about trust {about.trust!r:.80}, and its observer is {claim.observer!r:.80}: one of "
                "them was changed."
            )


def _looks(observer: str, about: About) -> bool:
    """Return whether an observer is that of a trust model."""
    if about.trust == "central":
        return about.silo is None and observer == _TRUSTED
    if about.trust == "shuffle":
        seen = f"anybody who sees the messages of silo {about.silo!r} before they are shuffled"
        return observer == (seen if about.is_alone else _MIXED)
    if about.trust == "aggregate":
        from tacit.privacy.run_clauses import observer_of_one, observer_of_sums
        from tacit.privacy.statement_sums import colluding_of

        silo = f"silo {about.silo!r}"
        seen = observer_of_one(silo) if about.is_alone else observer_of_sums(silo, colluding_of(observer))
        return observer == seen
    return observer.startswith("everybody outside silo ")


def _check_all_there(found: Statement, *, without: frozenset[str] = frozenset()) -> None:
    """Refuse an answer from which a fact was cut, and facts that it cannot have."""
    from tacit.privacy.statement import KINDS

    if cut := sorted(KINDS[found.kind] - {"guarantee"} - without - set(found.answer)):
        raise VerificationError(f"a statement of kind {found.kind!r} must have {cut[0]!r} at the top.")
    if more := sorted(without & set(found.answer)):
        raise VerificationError(f"a statement of this trust model has no {more[0]!r} at the top.")


def _pair(value: Any) -> tuple[float, float]:
    """Return the ends of an interval."""
    if not isinstance(value, list) or len(value) != 2:
        raise VerificationError("an interval at the top must be two numbers.")
    return check_finite("a mean at the top", value[0]), check_finite("a mean at the top", value[1])


def _leaves(event: Event, times: int = 1) -> Iterator[tuple[Event, int]]:
    """Yield what an event is made of, with how often it is repeated; proofs and parts one by one."""
    from tacit.privacy import Repeat
    from tacit.privacy.events import parts_of

    if isinstance(event, Repeat):
        yield from _leaves(event.part, times * event.count)
        return
    parts = parts_of(event)
    for part in parts:
        yield from _leaves(part, times)
    if not parts:
        yield event, times
