"""`tacit frequencies`."""

from tacit.cli.frequencies.answers import notes_on
from tacit.cli.frequencies.command import frequencies
from tacit.cli.frequencies.flags import NUMBERS, SEVERAL, TRUSTS, budget_of
from tacit.cli.frequencies.levels import facts_of_separate, notes_on_levels

__all__ = [
    "NUMBERS",
    "SEVERAL",
    "TRUSTS",
    "budget_of",
    "facts_of_separate",
    "frequencies",
    "notes_on",
    "notes_on_levels",
]
