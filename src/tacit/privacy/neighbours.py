"""Who is protected, and from whom: the two choices every guarantee is relative to."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tacit.errors import ParameterError

__all__ = ["Neighbours", "Part", "Relation", "TrustModel", "Unit"]


class TrustModel(StrEnum):
    """Who is trusted with raw data, and therefore who adds the noise.

    Under `AGGREGATE` trust nobody is: everybody sees no more than the sum of all messages, to which every
    party adds a share of the noise.
    """

    CENTRAL = "central"
    AGGREGATE = "aggregate"
    SHUFFLE = "shuffle"
    LOCAL = "local"


class Relation(StrEnum):
    """What may be done to one unit to reach a neighbouring data set.

    `REPLACE_ONE` keeps the number of units, `ADD_REMOVE` changes it by one, `ZERO_OUT` replaces a unit by one
    that contributes nothing.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    ZERO_OUT = "zero-out"


class Unit(StrEnum):
    """What counts as one: a record, all records of a person in a silo, or a whole party."""

    RECORD = "record"
    PERSON = "person"
    PARTY = "party"

    @property
    def plural(self) -> str:
        """Several of them, in words."""
        return {Unit.RECORD: "records", Unit.PERSON: "persons", Unit.PARTY: "parties"}[self]


class Part(StrEnum):
    """Which part of a unit may differ between neighbours."""

    ALL = "all"
    SENSITIVE = "sensitive"
    REWARD = "reward"
    PRIVATE = "private"


class Neighbours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The neighbouring relation: two data sets that a mechanism must not tell apart.

    Attributes:
        relation: What happens to the one unit that differs.
        unit: What one unit is.
        part: Which part of the unit may differ.
    """

    relation: Relation = Relation.REPLACE_ONE
    unit: Unit = Unit.RECORD
    part: Part = Part.ALL

    def __post_init__(self) -> None:
        # A bare string equals its member but is not it, and would slip past the checks of sampled events.
        for name, kind in (("relation", Relation), ("unit", Unit), ("part", Part)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise ParameterError(f"{name} must be a {kind.__name__}, got {value!r}.")

    def __str__(self) -> str:
        """Name the relation in words, as guarantees print it."""
        what = {
            Part.ALL: self.unit.value,
            Part.SENSITIVE: f"{self.unit.value}'s sensitive attributes",
            Part.REWARD: f"{self.unit.value}'s reward",
            Part.PRIVATE: f"private {self.unit.value}",
        }[self.part]
        return {
            Relation.REPLACE_ONE: f"replacing one {what}",
            Relation.ADD_REMOVE: f"adding or removing one {what}",
            Relation.ZERO_OUT: f"blanking out one {what}",
        }[self.relation]
