"""Neighbours as options name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.choices import OneOf
from tacit.cli.names import RELATIONS
from tacit.errors import check_choice

if TYPE_CHECKING:
    from tacit.privacy import Neighbours

__all__ = ["RelationOption", "neighbours_named"]


RelationOption = Annotated[
    str,
    typer.Option(
        click_type=OneOf(RELATIONS),
        help="What may differ between data sets that nobody can tell apart: {names}.",
    ),
]


def neighbours_named(relation: str, unit: str = "record", part: str = "all") -> Neighbours:
    """Return the neighbours under a relation, of a part of a unit, all given by name."""
    from tacit import privacy

    check_choice("neighbours", relation, privacy.Relation)
    check_choice("unit", unit, privacy.Unit)
    check_choice("part", part, privacy.Part)
    return privacy.Neighbours(privacy.Relation(relation), privacy.Unit(unit), privacy.Part(part))
