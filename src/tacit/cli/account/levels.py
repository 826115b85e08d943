"""What arithmetic can tell of the facts that a statement of frequencies for several analysts states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.cli.account.frequencies import check_intervals, check_shares
from tacit.cli.frequencies import facts_of_separate, notes_on_levels
from tacit.errors import ParameterError, VerificationError, check_count, check_finite, check_probability

if TYPE_CHECKING:
    from tacit.frequencies import LevelledHadamard
    from tacit.privacy import Guarantee
    from tacit.privacy.statement import Statement

__all__ = ["check_levels", "level_observers"]


def level_observers(found: Statement) -> tuple[str, ...]:
    """Return who looks: every analyst with all less trusted ones, and who sees public messages alone."""
    return tuple(claim.observer for claim in _claims(_scheme(found.answer), found))


def check_levels(found: Statement) -> None:
    """Refuse facts of several analysts that the scheme or the numbers themselves contradict."""
    from tacit.privacy.statement import KINDS

    answer = found.answer
    if cut := sorted(KINDS[found.kind] - set(answer)):
        raise VerificationError(f"a statement of kind {found.kind!r} must have {cut[0]!r} at the top.")
    scheme = _scheme(answer)
    n = check_count("n at the top", answer["n"])
    confidence = check_probability("confidence", answer["confidence"], low_open=True, high_open=True)
    unit = found.guarantees[0].neighbours.unit.value
    if answer["unit"] != unit or unit not in ("record", "person"):
        raise VerificationError(
            f"the unit at the top must be that of the guarantee, got {answer['unit']!r:.80}."
        )
    for name in ("table", "column", "projection"):
        if not isinstance(answer[name], str):
            raise VerificationError(f"{name} at the top must be a text.")
    for claim, wanted in zip(found.guarantees, _claims(scheme, found), strict=True):
        same = (claim.event, claim.simulated) == (wanted.event, found.guarantees[0].simulated)
        if not same or not set(wanted.assumptions) <= set(claim.assumptions):
            raise VerificationError("a guarantee is not that of the levels at the top: one was changed.")
    facts = {
        "bits_per_client": scheme.oracles[-1].message_bits,
        "private_bits_per_client": scheme.private_bits,
        "random_bits_per_client": scheme.random_bits,
    }
    _check_same(answer, facts)
    _check_same(answer["separate_messages"], facts_of_separate(scheme))
    for note in notes_on_levels(scheme.epsilons, n, confidence, unit, answer["projection"]):
        if note not in found.notes:
            raise VerificationError(f"the statement leaves out a note that its facts ask for: {note}")
    _check_analysts(found, scheme, n)


def _check_analysts(found: Statement, scheme: LevelledHadamard, n: int) -> None:
    """Refuse what analysts are said to find, where it is not of their level."""
    analysts = found.answer["analysts"]
    if not isinstance(analysts, list) or len(analysts) != len(scheme.epsilons):
        raise VerificationError(f"there must be an answer for each of {len(scheme.epsilons)} analysts.")
    values = set(analysts[0]["estimates"])
    for one, oracle, claim in zip(analysts, scheme.oracles, found.guarantees, strict=False):
        if set(one) != {"epsilon", "estimates", "intervals", "rmse", "guarantee"}:
            raise VerificationError("what an analyst finds has other fields.")
        if one["epsilon"] != oracle.epsilon or one["guarantee"] != str(claim):
            raise VerificationError("what an analyst is told of its guarantee is not what it says.")
        if set(one["estimates"]) != values:
            raise VerificationError("analysts must estimate the frequencies of the same values.")
        check_shares(one["estimates"], one["intervals"], scheme.k, found.answer["projection"])
        _check_same(one, {"rmse": (oracle.frequency_mse(n) / scheme.k) ** 0.5})
        check_intervals(oracle, list(one["intervals"].values()), n, found.answer["confidence"])


def _scheme(answer: dict[str, Any]) -> LevelledHadamard:
    """Return the scheme of the levels at the top."""
    from tacit.frequencies import LevelledHadamard

    if not isinstance(answer["levels"], list):
        raise ParameterError("levels at the top must be a list.")
    return LevelledHadamard(check_count("k at the top", answer["k"], low=2), tuple(answer["levels"]))


def _claims(scheme: LevelledHadamard, found: Statement) -> list[Guarantee]:
    """Return the guarantees that the command writes."""
    analysts, near = len(scheme.epsilons), found.guarantees[0].neighbours
    return [scheme.price(range(j, analysts), neighbours=near) for j in range(analysts + 1)]


def _check_same(stated: dict[str, Any], facts: dict[str, float]) -> None:
    """Refuse numbers that are not those of the scheme."""
    for name, true in facts.items():
        if abs(check_finite(name, stated[name]) - true) > 1e-9 * true:
            raise VerificationError(f"{name} is not that of the levels: {stated[name]!r:.80}.")
