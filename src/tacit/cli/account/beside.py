"""What the files beside the statement of a run say of it: its plan has a price, and its model a promise.

A statement names both by their digests. Whoever lowers a price or cuts a clause in the statement alone is
contradicted by them; whoever forges all three is not, as nothing here knows what really ran.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.errors import ParameterError, VerificationError, printable

if TYPE_CHECKING:
    from tacit.federation import Plan
    from tacit.privacy import Guarantee, TrustModel
    from tacit.privacy.statement import Statement

__all__ = ["check_beside"]


def check_beside(run: Statement, folder: Path) -> None:
    """Refuse the statement of a run that says other things than the plan and the model that lie beside it.

    Args:
        run: Checked by itself, its files by their digests.
        folder: Where it lies; what is not there is not missed.

    Raises:
        VerificationError: The plan has another price, or the model makes another promise.
    """
    if run.kind != "train" or run.released not in {about.trust for about in run.about}:
        return
    plan, model = folder / "plan.toml", folder / "model.json"
    try:
        if plan.is_file():
            _check_plan(run, plan.read_text(encoding="utf-8"))
        if model.is_file():
            _check_model(run, model.read_bytes())
    except VerificationError:
        raise
    except (ParameterError, ValueError) as error:
        reason = printable(str(error))
        raise VerificationError(f"the plan or the model beside it cannot be read: {reason}") from error
    except OSError as error:
        raise VerificationError(f"{error.filename} cannot be read: {error.strerror}.") from error


def _check_plan(run: Statement, text: str) -> None:
    """Refuse guarantees about the released model that are not of its plan.

    Under zero-out sizes are not shown: there events are compared but for the rounding of sums, which depends
    on them, and of samples whose rates do no more than that is known.
    """
    from tacit.federation import Plan
    from tacit.privacy import Relation, TrustModel

    plan = Plan.from_toml(text)
    sizes = [] if run.data is None else list(run.data.sizes.values())
    if len(sizes) != plan.parties:
        raise VerificationError(
            f"the plan that lies beside it, plan.toml, asks {plan.parties} silos, its data are of "
            f"{len(sizes)}."
        )
    if None not in sizes:
        plan.check_honest([size for size in sizes if size is not None])
    for claim, about in zip(run.guarantees, run.about, strict=True):
        if about.trust != run.released:
            continue
        trust = TrustModel(about.trust)
        priced = sizes if trust is TrustModel.CENTRAL else [about.units]
        known = [size for size in priced if size is not None]
        same = (plan.trust, plan.delta, plan.neighbours) == (trust, claim.delta, claim.neighbours)
        seen = TrustModel.LOCAL if about.is_alone else trust  # one silo's messages, each by itself
        if len(known) < len(priced):
            same = same and plan.neighbours.relation is Relation.ZERO_OUT
        same = same and _is_event_of(plan, known if len(known) == len(priced) else None, seen, claim)
        if not same:
            raise VerificationError(
                "the guarantees about the released model are not of the plan that lies beside it, plan.toml."
            )


def _is_event_of(plan: Plan, sizes: list[int] | None, seen: TrustModel, claim: Guarantee) -> bool:
    """Return whether an event is what a plan costs; a silo may count on more colluders than the plan does.

    Without sizes, whether it is but for what depends on them.
    """
    from tacit.federation import Full, Poisson, Step
    from tacit.privacy.run_clauses import clauses_of_sums
    from tacit.privacy.statement_sums import colluding_of

    if seen == "aggregate":
        colluding = colluding_of(claim.observer)
        ways = clauses_of_sums(roster=plan.roster, recover=plan.recover)
        if colluding < plan.colluding or not set(ways) <= set(claim.assumptions):
            return False
        plan = plan.with_colluding(colluding)
    if sizes is not None:
        return plan.event(sizes, seen) == claim.event
    alike = all(
        isinstance(step, Step)
        and (
            isinstance(step.batch, Full) or (isinstance(step.batch, Poisson) and step.batch.rate is not None)
        )
        for step, _ in plan.kinds
    )
    return not alike or _but_for_rounding(plan.event([1], seen)) == _but_for_rounding(claim.event)


def _but_for_rounding(event: Any) -> Any:
    """Return builtins of an event without the distances of its sums, in which their rounding is."""
    data = msgspec.to_builtins(event)
    if isinstance(data, list | tuple):
        return [_but_for_rounding(part) for part in data]
    if not isinstance(data, dict):
        return data
    return {name: _but_for_rounding(value) for name, value in data.items() if name != "sensitivity"}


class _Promise(msgspec.Struct):
    """What is read of a model."""

    privacy: str
    scaling: Any = None
    model: Any = msgspec.field(default_factory=dict)


def _check_model(run: Statement, text: bytes) -> None:
    """Refuse a statement of another model, without its guarantee, or a word on public records."""
    from tacit.learning.architecture import Architecture

    model = msgspec.json.decode(text, type=_Promise)
    said, name = model.privacy, printable(str(msgspec.convert(model.model, Architecture)))
    if not (run.model or "").startswith(f"{name}, "):
        raise VerificationError(
            f"model.json beside it is {name!r:.80}, and by the statement {run.model!r:.80} was trained."
        )
    if run.data is not None and run.data.sample is not (model.scaling is not None):
        raise VerificationError(
            "model.json beside it and the statement contradict each other on whether features were scaled by "
            "public records."
        )
    about = zip(run.guarantees, run.about, strict=True)
    if said not in {str(claim) for claim, one in about if one.trust == run.released and not one.is_alone}:
        raise VerificationError("no guarantee about the released model says what model.json beside it says.")
