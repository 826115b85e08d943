"""What a training run must say that no event says: clauses and notes that follow from facts of its statement.

Whoever writes a statement and whoever reads it derive the same words from the same facts, so that a clause
cannot be cut out of a statement that keeps the facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tacit.errors import printable
from tacit.privacy.neighbours import Neighbours, Relation, Unit

__all__ = [
    "HELD_OUT",
    "OPEN",
    "SAMPLE",
    "SCORED",
    "SIMULATED",
    "clauses_of_ids",
    "clauses_of_run",
    "compared_note",
]

_ONE_SILO: Final = "no person has records in two silos"
_IN_TURN: Final = "the order in which persons first appear in the tables is public"
_KEPT: Final = "a person who is blanked out keeps the id, so that the number of ids is public"
SAMPLE: Final = "the public sample holds no record of the data, and was not chosen by looking at them"
"""What every guarantee of a run rests on whose features were scaled by a public sample."""
HELD_OUT: Final = "all scores on held-out records, computed without privacy, are kept by the data's owner"

OPEN: Final = "No privacy is claimed: the model and the messages may reveal anything about the data."
"""What is said of every model that was trained without privacy."""
SIMULATED: Final = (
    "Simulated: the noise came from a known seed, which anybody can repeat, so this run itself protects "
    "nobody. A run without a seed has the stated guarantee."
)
"""A note of every run with a seed that claims something."""
SCORED: Final = (
    "All scores (accuracy or error and their standard errors, baseline, AUC, losses, calibration, confusion, "
    "those by silo) were computed on held-out records without noise. They are no part of the guarantee and "
    "stay with the owner of the data, as do all files that show them."
)
"""A note of every run on data that are not public."""


def compared_note(handed_out: str) -> str:
    """Return the note of a run under several trust models, of which the model of one is handed out."""
    return (
        f"The trust models were trained on the same data for comparison. Hand out the {handed_out} model "
        "only: whoever gets several models learns what each reveals."
    )


def clauses_of_ids(neighbours: Neighbours) -> tuple[str, ...]:
    """Return what guarantees rest on where the number of units, or of ids of persons, is used as it is."""
    if neighbours.relation is Relation.ADD_REMOVE:
        return (f"the number of {neighbours.unit.plural} that means are divided by is public",)
    if neighbours != Neighbours(Relation.ZERO_OUT, Unit.PERSON):
        return ()
    # Without an id a person could not be told from others without one: the number of units, which every
    # observer sees in the noise, would be another one.
    return (_KEPT,)


def clauses_of_run(
    neighbours: Neighbours, *, public: bool, read_off: Sequence[str], sample: bool = False
) -> tuple[str, ...]:
    """Return what the guarantees of a run rest on besides their events.

    Args:
        neighbours: Of the guarantee.
        public: Whether anybody may see the data anyway.
        read_off: Columns whose bounds, categories or classes were read off the data.
        sample: Whether a public sample says how features are scaled.

    Returns:
        Clauses, as `Guarantee.assumptions` holds them.
    """
    found = []
    if neighbours.unit is Unit.PERSON:
        found.append(_ONE_SILO)  # sums over silos are bounded per copy of a person
        found.append(_IN_TURN)  # who is held out, and dealt to which silo, follows it
    found.extend(clauses_of_ids(neighbours))
    if public:
        return tuple(found)
    if sample:
        found.append(SAMPLE)
    if read_off:
        names = ", ".join(map(printable, read_off))
        found.append(f"bounds read off the data without privacy do not matter ({names})")
    return (*found, HELD_OUT)
