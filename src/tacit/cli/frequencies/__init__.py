"""`tacit frequencies`."""

from tacit.cli.frequencies.answers import notes_on
from tacit.cli.frequencies.command import frequencies
from tacit.cli.frequencies.flags import (
    NUMBERS,
    SEVERAL,
    TRUSTS,
    DeltaOption,
    LevelsOption,
    MaxMessageBitsOption,
    MaxRandomBitsOption,
    budget_of,
    check_levels,
)
from tacit.cli.frequencies.large import facts_of_tree, notes_on_tree
from tacit.cli.frequencies.levels import facts_of_separate, notes_on_levels
from tacit.cli.frequencies.tables import notes_on_tables

__all__ = [
    "NUMBERS",
    "SEVERAL",
    "TRUSTS",
    "DeltaOption",
    "LevelsOption",
    "MaxMessageBitsOption",
    "MaxRandomBitsOption",
    "budget_of",
    "check_levels",
    "facts_of_separate",
    "facts_of_tree",
    "frequencies",
    "notes_on",
    "notes_on_levels",
    "notes_on_tables",
    "notes_on_tree",
]
