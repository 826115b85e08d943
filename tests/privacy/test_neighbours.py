"""Neighbouring relations: words, and no bare strings that only look like members."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.privacy import Neighbours, Part, Relation, Unit


def test_default_is_replacing_one_record() -> None:
    assert Neighbours() == Neighbours(Relation.REPLACE_ONE, Unit.RECORD, Part.ALL)


@pytest.mark.parametrize(
    ("neighbours", "words"),
    [
        (Neighbours(), "replacing one record"),
        (Neighbours(Relation.ADD_REMOVE, Unit.PARTY), "adding or removing one party"),
        (Neighbours(Relation.ZERO_OUT, Unit.PERSON), "blanking out one person"),
        (Neighbours(part=Part.SENSITIVE), "replacing one record's sensitive attributes"),
        (Neighbours(unit=Unit.PERSON, part=Part.REWARD), "replacing one person's reward"),
        (Neighbours(part=Part.PRIVATE), "replacing one private record"),
    ],
)
def test_words(neighbours: Neighbours, words: str) -> None:
    assert str(neighbours) == words


def test_every_combination_has_its_own_words() -> None:
    every = [Neighbours(r, u, p) for r in Relation for u in Unit for p in Part]
    assert len({str(n) for n in every}) == len(every)


@pytest.mark.parametrize(
    "fields", [{"relation": "replace-one"}, {"unit": "record"}, {"part": "all"}, {"relation": None}]
)
def test_bare_strings_are_refused(fields: dict[str, Any]) -> None:
    # "replace-one" == Relation.REPLACE_ONE but is not it: a Poisson sample would be let through.
    with pytest.raises(ParameterError, match=f"{next(iter(fields))} must be a"):
        Neighbours(**fields)
