"""The guarantees of many silos in words: what reads the same is said once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from tacit.privacy.events import chances_of
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.statement import About

__all__ = ["listed", "paragraphs"]

_MOST_NAMES: Final = 12
_ENDS: Final = 3  # of longer lists, so many names are shown at each end

_Told = tuple[Guarantee, About | None]


def paragraphs(guarantees: Sequence[Guarantee], about: Sequence[About]) -> Iterator[tuple[str, str]]:
    """Yield what guarantees say, those together that differ in the silo and its epsilon alone.

    Events are not compared: those of silos of different sizes differ, in the share that a sample is too, and
    what they promise may not.

    Args:
        guarantees: In any number.
        about: Whom each is about, in the same order, or nothing.

    Yields:
        Whom it is about, empty where nothing is known of that; and the weakest guarantee of the group, with
        the epsilon of each silo where they differ.
    """
    found: dict[object, list[_Told]] = {}
    for k, claim in enumerate(guarantees):
        whom = about[k] if about else None
        level = claim.epsilon if math.isinf(claim.epsilon) else 0.0
        same = msgspec.structs.replace(claim, epsilon=level)
        said = _without_name(same.in_words(chances=False), whom)
        found.setdefault((whom and whom.observed, said), []).append((claim, whom))
    for told in found.values():
        yield _paragraph(told)


def _paragraph(told: Sequence[_Told]) -> tuple[str, str]:
    """Return whom a group of guarantees is about, and what it says."""
    weakest, whom = max(told, key=lambda one: one[0].epsilon)
    parts = [] if whom is None else [whom.observed]
    silos = [about.silo for _, about in told if about is not None and about.silo is not None]
    if len(silos) > 1:
        parts.append(f"each of {listed([_quoted(name) for name in silos])}")
    elif len(told) > 1:
        parts.append(f"{len(told)} equal guarantees")
    if len(told) == 1:
        return ", ".join(parts), str(weakest)
    levels = _levels(told)
    alike = bool(levels) or len({chances_of(claim.event) for claim, _ in told}) == 1
    return ", ".join(parts), f"{_without_name(weakest.in_words(chances=alike), whom)}{levels}"


def _levels(told: Sequence[_Told]) -> str:
    """Say the epsilon of every silo, or of very many the least and the largest, where they differ."""
    levels = [claim.epsilon for claim, _ in told]
    if len(set(levels)) == 1:
        return ""
    named = [f"{claim.epsilon:.10g}{_in_silo(whom)}" for claim, whom in told]
    if len(named) <= _MOST_NAMES:
        return f" This is the weakest of them; each epsilon: {', '.join(named)}."
    least, largest = (named[levels.index(level)] for level in (min(levels), max(levels)))
    return f" This is the weakest of them: epsilon is between {least} and {largest}."


def _in_silo(whom: About | None) -> str:
    """Return where an epsilon holds, as it stands behind the number."""
    return "" if whom is None or whom.silo is None else f" in silo {_quoted(whom.silo)}"


def _quoted(name: str) -> str:
    """Return the name of a silo in quotes; what does not print is an escape in it already."""
    return f"'{name}'"


def listed(names: Sequence[str]) -> str:
    """Return names of silos; of a long list its ends, and how many they are."""
    if len(names) <= _MOST_NAMES:
        return f"silo{'s' if len(names) > 1 else ''} {', '.join(names)}"
    return f"{len(names)} silos {', '.join(names[:_ENDS])}, ..., {', '.join(names[-_ENDS:])}"


def _without_name(sentence: str, whom: About | None) -> str:
    """Return a sentence without the name of the silo that it is about."""
    if whom is None or whom.silo is None:
        return sentence
    for form in (f"silo {whom.silo!r}", f"silo '{whom.silo}'", f'silo "{whom.silo}"'):
        if form in sentence:
            return sentence.replace(form, "the silo", 1)
    return sentence
