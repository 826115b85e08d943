"""What is known of an algorithm, or of one that is only named; of "auto" nothing is."""

from __future__ import annotations

from tacit.errors import ParameterError
from tacit.learning.algorithms.base import Algorithm, Method
from tacit.learning.algorithms.registry import ALGORITHMS
from tacit.privacy import Unit

__all__ = ["check_noise_kind", "protected", "shows_only_the_end"]


def _kind(algorithm: str | Algorithm) -> type[Method] | Algorithm | None:
    """Return an algorithm, or the class that a name stands for; None of a name that stands for none."""
    return ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else algorithm


def shows_only_the_end(algorithm: str | Algorithm) -> bool:
    """Return whether an algorithm, or the one of a name, hides all but the points where silos end."""
    return getattr(_kind(algorithm), "hidden", False) is True


def _noise_of_its_own(algorithm: str | Algorithm) -> str:
    """Return what the noise of an algorithm is where no other can be named, as a clause; else nothing."""
    return str(getattr(_kind(algorithm), "own_noise", ""))


def check_noise_kind(noise: str, trust: str, algorithm: str | Algorithm) -> None:
    """Refuse to name a noise where there is but one kind: that it is ignored would not be seen."""
    if noise == "discrete-gaussian" and shows_only_the_end(algorithm):
        raise ParameterError(
            "noise must be 'auto' or 'gaussian' for an algorithm with hidden iterates, whose steps are real "
            f"numbers, got {noise!r}."
        )
    if noise == "discrete-gaussian" and (own := _noise_of_its_own(algorithm)):
        raise ParameterError(f"noise must be 'auto' or 'gaussian' for this algorithm, got {noise!r}: {own}.")
    if trust == "aggregate" and noise not in ("auto", "discrete-gaussian"):
        raise ParameterError(
            "noise must be 'auto' or 'discrete-gaussian' under aggregate trust, where messages are whole "
            f"numbers, got {noise!r}."
        )
    if trust == "shuffle" and noise != "auto":
        raise ParameterError(
            f"noise must be 'auto' under shuffle trust, where it is exact and in whole bits, got {noise!r}."
        )


def protected(algorithm: str | Algorithm, *, persons: bool) -> Unit:
    """Return what a run of an algorithm, or of the one of a name, protects.

    Args:
        algorithm: With a unit of its own, or without.
        persons: Whether it is known whose each record is.

    Raises:
        ParameterError: Persons are named to an algorithm that protects whole parties, and so all of them.
    """
    own = getattr(_kind(algorithm), "unit", None)
    if own is not None and persons:
        raise ParameterError(
            f"persons must not be named to an algorithm that protects whole {own.plural}: with a party, "
            "everybody in it is protected."
        )
    return own or (Unit.PERSON if persons else Unit.RECORD)
