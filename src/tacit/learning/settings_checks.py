"""What an algorithm refuses of the settings of a run: trust, unit, penalty, missing public records."""

from __future__ import annotations

from tacit.errors import ParameterError
from tacit.learning.algorithms import ALGORITHMS, Method, algorithm_name, traits_of
from tacit.learning.settings import Settings
from tacit.numerics import Composite, ElasticNet, L2Ball, Regularizer, Zero
from tacit.privacy import TrustModel, Unit

__all__ = ["check_settings", "penalised"]


def check_settings(settings: Settings) -> None:
    """Refuse settings that their algorithm does not run with.

    Raises:
        ParameterError: The trust model, the unit, the penalty or the public records are not for it.
    """
    _check_trust(settings)
    _check_unit(settings)
    _check_penalty(settings)
    _check_public(settings)


def _check_trust(settings: Settings) -> None:
    """Refuse a trust model that the algorithm does not run under; without privacy, all of them run."""
    allowed = settings.algorithm.trusts
    if settings.trust is not None and settings.trust not in allowed:
        why = traits_of(settings.algorithm).why_no_sums
        reason = f": {why}" if why and settings.trust is TrustModel.AGGREGATE else ""
        raise ParameterError(
            f"trust must be {' or '.join(one.value for one in allowed)} for the algorithm "
            f"{algorithm_name(settings.algorithm)!r}, got {settings.trust.value}{reason}."
        )


def _check_unit(settings: Settings) -> None:
    """Refuse to protect something else than the algorithm does, or whole parties by one that does not."""
    protects = traits_of(settings.algorithm).unit
    if protects is not None and settings.unit is not protects:
        raise ParameterError(
            f"unit must be {protects.value} for the algorithm {algorithm_name(settings.algorithm)!r}, which "
            f"protects whole {protects.plural}, got {settings.unit.value}."
        )
    if protects is None and settings.unit is Unit.PARTY:
        raise ParameterError(
            f"unit must be record or person for the algorithm {algorithm_name(settings.algorithm)!r}, got "
            "party."
        )


def _check_penalty(settings: Settings) -> None:
    """Refuse a regulariser for an algorithm that would not find the minimum with it."""
    algorithm = settings.algorithm
    if not isinstance(algorithm, Method) or not penalised(settings.regularizer):
        return
    if reason := algorithm.why_no_regularizer(settings.objective):
        others = [
            name for name, kind in ALGORITHMS.items() if not kind().why_no_regularizer(settings.objective)
        ]
        given = "got " + _in_words(settings.regularizer)
        if settings.moment is not None:
            given += ", in which a moment has to hold"
        raise ParameterError(
            f"the algorithm {algorithm_name(algorithm)!r} takes no penalty and no domain, "
            f"{given}: {reason}; these take one: {', '.join(others)}."
        )


def _in_words(regularizer: Regularizer) -> str:
    """Return a penalty as it is given: what is 0 or absent says nothing."""
    if not isinstance(regularizer, Composite):
        return repr(regularizer)
    penalties = {name: getattr(regularizer, name) for name in ("l1", "l2", "group_lasso")}
    parts = [f"{name}={value!r}" for name, value in penalties.items() if value]
    if isinstance(regularizer.domain, L2Ball):
        parts.append(f"a ball of radius {regularizer.domain.radius:g}")
    elif regularizer.domain is not None:
        parts.append(repr(regularizer.domain))
    return " and ".join(parts)


def _check_public(settings: Settings) -> None:
    """Refuse to train without public records by an algorithm that needs them."""
    if traits_of(settings.algorithm).needs_public and settings.public is None:
        raise ParameterError(
            f"the algorithm {algorithm_name(settings.algorithm)!r} needs public records with labels: "
            "public=(X, y), or for tables a public file that has the label column."
        )


def penalised(regularizer: Regularizer) -> bool:
    """Return whether a regulariser adds anything to an objective."""
    return regularizer not in (Zero(), ElasticNet(l1=0.0, l2=0.0))
