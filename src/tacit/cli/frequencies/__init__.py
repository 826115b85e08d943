"""`tacit frequencies`."""

from tacit.cli.frequencies.answers import notes_on
from tacit.cli.frequencies.command import frequencies
from tacit.cli.frequencies.flags import SEVERAL, TRUSTS, budget_of

__all__ = ["SEVERAL", "TRUSTS", "budget_of", "frequencies", "notes_on"]
