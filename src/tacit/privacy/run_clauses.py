"""What a training run must say that no event says: clauses and notes that follow from facts of its statement.

Whoever writes a statement and whoever reads it derive the same words from the same facts, so that a clause
cannot be cut out of a statement that keeps the facts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tacit.errors import printable
from tacit.privacy.neighbours import Neighbours, Part, Relation, Unit

__all__ = [
    "HELD_OUT",
    "IN_ONE_PLACE",
    "MASKED",
    "OPEN",
    "RECOVERED",
    "ROSTER",
    "SAMPLE",
    "SCORED",
    "SIMULATED",
    "clauses_of_ids",
    "clauses_of_part",
    "clauses_of_public",
    "clauses_of_run",
    "clauses_of_silos",
    "clauses_of_start",
    "clauses_of_sums",
    "compared_note",
    "is_about_public",
    "is_about_reading",
    "is_about_start",
    "observer_of_one",
    "observer_of_sums",
]

_ONE_SILO: Final = "no person has records in two silos"
_IN_TURN: Final = "the order in which persons first appear in the tables is public"
_KEPT: Final = "a person who is blanked out keeps the id, so that the number of ids is public"
SAMPLE: Final = "the public sample holds no record of the data, and was not chosen by looking at them"
"""What every guarantee of a run rests on whose features were scaled by a public sample."""
_ATTRIBUTE: Final = "features, labels and the silo of every record are public, and only its group is not"
_TRAINED_WITH: Final = (
    " that the model was trained with are not protected, hold no record of the data and were not chosen by "
    "looking at them"
)
_READ_OFF: Final = "bounds read off the data without privacy do not matter"
_RANDOM: Final = "the weights that training starts from are public random numbers"
_OWN: Final = "the weights that the module starts from hold nothing of the data"
_FIRST: Final = re.compile(r"(linear|scattering|mlp|cnn)(?![\w.])")
HELD_OUT: Final = "all scores on held-out records, computed without privacy, are kept by the data's owner"

IN_ONE_PLACE: Final = "nobody sees a message before all of them are added up"
"""What the price of a sum rests on where one process adds the messages, which are not masked."""
ROSTER: Final = "the parties have agreed on the keys of all of them without the server"
MASKED: Final = "masks come off in the sum of all parties alone, and a party that is missing stops the run"
RECOVERED: Final = "masks come off in one sum a step alone, of parties that a quorum of them has signed"
"""What it rests on where every party masks its own, whoever the server is."""

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


def clauses_of_public(*, sample: bool, trained_with: int) -> tuple[str, ...]:
    """Return what guarantees rest on where public records were used beside the private ones.

    Args:
        sample: Whether they say how features are scaled.
        trained_with: How many of them the model was trained with; 0 for none.
    """
    if trained_with:
        return (f"the {trained_with:,} public records{_TRAINED_WITH}",)
    return (SAMPLE,) if sample else ()


def clauses_of_part(neighbours: Neighbours, sensitive: Sequence[str]) -> tuple[str, ...]:
    """Return what guarantees rest on where only sensitive attributes are private.

    Args:
        neighbours: Of the guarantee.
        sensitive: Names of the attributes, which are public; empty where nobody has named them.
    """
    if neighbours.part is not Part.SENSITIVE:
        return ()
    named = f" ({', '.join(map(printable, sensitive))})" if sensitive else ""
    return (f"{_ATTRIBUTE}{named}",)


def clauses_of_start(model: str | None) -> tuple[str, ...]:
    """Return what guarantees rest on because of where training starts; a linear model starts at zero.

    Args:
        model: By its name, such as "mlp:64" or "package.module:Class", perhaps with more behind it; None for
            a module of PyTorch, and "" where nobody says which it is.
    """
    if model is None:
        return (_OWN,)
    if not model:
        return ()
    # A module may be in a package whose name begins as that of a model does.
    kind = _FIRST.match(model)
    if kind is None:
        return (_OWN,)
    return () if kind[1] in ("linear", "scattering") else (_RANDOM,)


def is_about_start(clause: str) -> bool:
    """Return whether a clause is about where the training of a network starts."""
    return clause in (_RANDOM, _OWN)


def is_about_reading(clause: str) -> bool:
    """Return whether a clause is about columns whose bounds were read off the data."""
    return clause.startswith(_READ_OFF)


def is_about_public(clause: str) -> bool:
    """Return whether a clause is about public records that a model was trained with."""
    return clause.endswith(_TRAINED_WITH)


def clauses_of_silos(neighbours: Neighbours) -> tuple[str, ...]:
    """Return what guarantees rest on where several silos hold records: a copy of a person is bounded."""
    return (_ONE_SILO,) if neighbours.unit is Unit.PERSON else ()


def clauses_of_sums(*, roster: str = "", recover: bool = False) -> tuple[str, ...]:
    """Return what the price of a sum rests on besides its event: how nothing but the sum is seen.

    Args:
        roster: Digest of the keys of the parties; empty where one process adds up what is not masked.
        recover: Whether a sum is opened without parties that drop out.
    """
    if not roster:
        return (IN_ONE_PLACE,)
    return (ROSTER, RECOVERED if recover else MASKED)


def observer_of_sums(silo: str, colluding: int) -> str:
    """Return who sees the sums that a silo is part of.

    Args:
        silo: As `silo 'a'`.
        colluding: How many of the other parties may tell the server what they sent.
    """
    others = f"{colluding} other {'party' if colluding == 1 else 'parties'}"
    return f"everybody outside {silo}, the server and up to {others} together,"


def observer_of_one(silo: str) -> str:
    """Return who sees the message of a silo by itself: everybody whose messages are added to it."""
    return f"the server and all other parties together, who see the message of {silo} alone,"


def clauses_of_run(
    neighbours: Neighbours,
    *,
    public: bool,
    read_off: Sequence[str],
    sample: bool = False,
    trained_with: int = 0,
    sensitive: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return what the guarantees of a run rest on besides their events.

    Args:
        neighbours: Of the guarantee.
        public: Whether anybody may see the data anyway.
        read_off: Columns whose bounds, categories or classes were read off the data.
        sample: Whether a public sample says how features are scaled.
        trained_with: How many public records the model was trained with besides.
        sensitive: Attributes that alone are private, where the rest of a record is not.

    Returns:
        Clauses, as `Guarantee.assumptions` holds them.
    """
    found = [*clauses_of_silos(neighbours), *clauses_of_part(neighbours, sensitive)]
    if neighbours.unit is Unit.PERSON:
        found.append(_IN_TURN)  # who is held out, and dealt to which silo, follows it
    found.extend(clauses_of_ids(neighbours))
    if public:
        return tuple(found)
    found.extend(clauses_of_public(sample=sample, trained_with=trained_with))
    if read_off:
        names = ", ".join(map(printable, read_off))
        found.append(f"{_READ_OFF} ({names})")
    return (*found, HELD_OUT)
